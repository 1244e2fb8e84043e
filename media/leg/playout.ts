/**
 * Owns what is played to the caller: a bounded queue of the agent's frames, one of which is sent at every tick, and the keys that are
 * pressed instead.
 */
import { frameMs, type Frame } from '../../model/frame.ts'
import type { RtpPacket } from '../../model/rtp-transport.ts'
import { createDtmfSender } from '../rtp/dtmf-sender.ts'
import { toleratedMs } from '../ticker/lateness.ts'
import { createFrameQueue } from './frame-queue.ts'
import { createOutgoingStream, type AgentLine } from './outgoing-stream.ts'

export type Playout = {
  /** Frames are encoded by this from here on, and the one before it is closed; null plays nothing. Queue and numbering go on. */
  readonly use: (line: AgentLine | null) => void
  /** Forgets queue and count: what follows is another actor's line, in frames of this size. */
  readonly restart: (frameBytes: number) => void
  /** False when it is dropped: of a wrong size, not newer than the last one, or too many. */
  readonly push: (frame: Frame) => boolean
  /** Empties the queue; answers the last frame that was played, -1 when none was. */
  readonly flush: () => number
  /** Keys, which go before what is queued. False when too many wait. */
  readonly press: (digits: string) => boolean
  /**
   * On hold nothing is sent. What the agent says meanwhile waits in the queue behind what was left of it: a caller who comes back hears the
   * sentence to its end, and the actor knows that it has not been heard yet.
   */
  readonly hold: (isHeld: boolean) => void
  /** As the ticker tells it. */
  readonly tick: (at: number, lateMs: number) => void
  /** Frames that `push` refused. */
  readonly dropped: () => number
  /** Frames that were sent late. */
  readonly late: () => number
}

export type PlayoutDeps = {
  readonly send: (packet: RtpPacket) => void
  /** The first frame after a pause was sent. */
  readonly sounding: (seq: number) => void
  /** The last queued frame was sent. */
  readonly drained: (lastPlayedSeq: number) => void
}

/** Less than 200 ms without a frame is no pause of the agent. */
const pauseTicks = 200 / frameMs

export function createPlayout({ send, sounding, drained }: PlayoutDeps): Playout {
  const queue = createFrameQueue()
  const keys = createDtmfSender()
  const stream = createOutgoingStream(send)
  let isHeld = false
  let lastPlayed = -1
  let silentTicks = pauseTicks
  let late = 0
  let tickedAt = Infinity

  const play = (at: number, isLate: boolean) => {
    const frame = queue.shift()
    if (!frame) {
      silentTicks++
      return stream.rest()
    }
    stream.say(frame.payload, at)
    if (isLate) late++
    lastPlayed = frame.seq
    if (silentTicks >= pauseTicks) sounding(lastPlayed)
    silentTicks = 0
    if (queue.size() === 0) drained(lastPlayed)
  }

  return {
    use(line) {
      stream.use(line)
      // Keys that the other side no longer takes would wait for ever.
      if (line?.audio.telephoneEventPayloadType === null) keys.clear()
    },
    restart(frameBytes) {
      queue.restart(frameBytes)
      lastPlayed = -1
    },
    push: queue.push,
    dropped: queue.dropped,
    late: () => late,
    press: keys.press,
    hold(holds) {
      if (holds) stream.pause()
      isHeld = holds
    },
    flush() {
      queue.clear()
      return lastPlayed
    },
    tick(at, lateMs) {
      // The thread stood still for so long that ticks were left out: what is sent now was due at the first of them.
      const isLate = lateMs > toleratedMs || at - tickedAt > frameMs
      tickedAt = at
      const audio = stream.audio()
      if (audio === null) return
      stream.passTo(at)
      if (isHeld) return
      const events = audio.telephoneEventPayloadType
      if (events !== null && keys.isBusy()) stream.press(keys, events)
      else play(at, isLate)
    },
  }
}
