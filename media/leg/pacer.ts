/**
 * Owns what is played to the caller and when: at every tick one frame of a bounded queue, or the keys that are pressed instead, or a pause.
 * It goes through the stages of the line and out as RTP.
 */
import { frameMs, type Frame } from '../../model/frame.ts'
import type { NegotiatedAudio, RtpPacket } from '../../model/rtp-transport.ts'
import { createDtmfSender } from '../rtp/dtmf-sender.ts'
import { toleratedMs } from '../ticker/lateness.ts'
import { createFrameQueue } from './frame-queue.ts'
import { createOutgoingStream } from './outgoing-stream.ts'
import { expectedAtFirst } from './loss-watch.ts'
import type { DownStages } from './stages.ts'
import { chain, createSound, noBytes, renew, type Sink } from './stages/stage.ts'

export type Pacer = {
  /** What is played goes through these from here on, and those before are closed; null plays nothing. Queue and numbering go on. */
  readonly use: (line: AgentLine | null) => void
  /** Forgets queue and count: what follows is another actor's line, in frames of this size. */
  readonly restart: (frameBytes: number) => void
  /** False when it is dropped: of a wrong size, not newer than the last one, or too many. */
  readonly push: (frame: Frame) => boolean
  /** Empties the queue; answers the last frame that was played, -1 when none was. */
  readonly flush: () => number
  /** Forgets what is queued behind a frame that is missing; `taken`: the last before that. */
  readonly rewind: () => { readonly played: number; readonly taken: number }
  /** Keys, which go before what is queued. False when too many wait. */
  readonly press: (digits: string) => boolean
  /**
   * On hold nothing is sent. What the agent says meanwhile waits in the queue behind what was left of it: a caller who comes back hears the
   * sentence to its end, and the actor knows that it has not been heard yet.
   */
  readonly hold: (isHeld: boolean) => void
  /** Percent of packets that get lost on their way. */
  readonly expectLoss: (percent: number) => void
  /** As the ticker tells it. */
  readonly tick: (at: number, lateMs: number) => void
  /** Half a tick has passed. */
  readonly halfway: () => void
  /** Some sound waits for the rest of its packet. */
  readonly isWaiting: () => boolean
  /** Frames that `push` refused. */
  readonly dropped: () => number
  /** Frames that were sent late. */
  readonly late: () => number
}

/** What is negotiated, and what leads to it. */
export type AgentLine = { readonly audio: NegotiatedAudio; readonly stages: DownStages }

export type PacerDeps = {
  readonly send: (packet: RtpPacket) => void
  /** The first frame after a pause was sent. */
  readonly sounding: (seq: number) => void
  /** The last queued frame was sent. */
  readonly drained: (lastPlayedSeq: number) => void
}

/** Less than 200 ms without a frame is no pause of the agent. */
const pauseTicks = 200 / frameMs

export function createPacer({ send, sounding, drained }: PacerDeps): Pacer {
  const queue = createFrameQueue()
  const keys = createDtmfSender()
  const stream = createOutgoingStream(send)
  const sound = createSound()
  let line: (AgentLine & { readonly take: Sink }) | null = null
  let isHeld = false
  let lastPlayed = -1
  let hasPlayed = false
  let silentTicks = 0
  let late = 0
  let tickedAt = Infinity
  let expectedLoss = expectedAtFirst

  const played = (seq: number, isLate: boolean) => {
    lastPlayed = seq
    if (isLate) late++
    if (!hasPlayed || silentTicks >= pauseTicks) sounding(seq)
    hasPlayed = true
    silentTicks = 0
    if (queue.size() === 0) drained(seq)
  }

  const play = (take: Sink, isLate: boolean) => {
    const frame = queue.shift()
    if (frame !== undefined) {
      take(renew(sound, 'sound', frame.payload))
      return played(frame.seq, isLate)
    }
    sound.silentTicks = ++silentTicks
    take(renew(sound, 'pause', noBytes))
  }

  return {
    use(newLine) {
      line?.stages.close()
      line = newLine && { ...newLine, take: chain(newLine.stages.list, stream.take) }
      if (newLine === null) return
      newLine.stages.expectLoss(expectedLoss)
      stream.use(newLine.audio)
      // Keys that the other side no longer takes would wait for ever.
      if (newLine.audio.telephoneEventPayloadType === null) keys.clear()
    },
    restart(frameBytes) {
      queue.restart(frameBytes)
      lastPlayed = -1
    },
    push: queue.push,
    dropped: queue.dropped,
    late: () => late,
    isWaiting: stream.isWaiting,
    halfway: stream.halfway,
    press: keys.press,
    hold(holds) {
      if (holds) stream.pause()
      isHeld = holds
    },
    expectLoss(percent) {
      expectedLoss = percent
      line?.stages.expectLoss(percent)
    },
    flush() {
      queue.clear()
      return lastPlayed
    },
    rewind: () => ({ taken: queue.rewind(), played: lastPlayed }),
    tick(at, lateMs) {
      // The thread stood still for so long that ticks were left out: what is sent now was due at the first of them.
      const isLate = lateMs > toleratedMs || at - tickedAt > frameMs
      tickedAt = at
      if (line === null) return
      sound.at = at
      sound.timestamp = stream.passTo(at)
      if (isHeld) return
      const events = line.audio.telephoneEventPayloadType
      if (events !== null && keys.isBusy()) stream.press(keys, events)
      else play(line.take, isLate)
    },
  }
}
