/**
 * Owns the agent's line of sound: a bounded queue of frames, one of which is sent at every tick, and the RTP numbering of what is sent.
 * Timestamps go on with time through silence; the first packet after silence carries the marker (RFC 3550 §5.1, RFC 3551 §4.1).
 */
import { randomInt } from 'node:crypto'
import { frameMs, type Frame } from '../../model/frame.ts'
import type { NegotiatedAudio, RtpPacket } from '../../model/rtp-transport.ts'
import type { AgentSound } from './agent-sound.ts'

type AgentLine = { readonly sound: AgentSound; readonly audio: NegotiatedAudio }

export type Playout = {
  /** Frames are encoded by this from here on, and the one before it is closed; null plays nothing. */
  readonly use: (line: AgentLine | null) => void
  /** Forgets queue and count: what follows is another actor's line, in frames of this size. */
  readonly restart: (frameBytes: number) => void
  /** False when it is dropped: of a wrong size, not newer than the last one, or too many. */
  readonly push: (frame: Frame) => boolean
  /** Empties the queue; answers the last frame that was played, -1 when none was. */
  readonly flush: () => number
  readonly tick: (at: number) => void
  /** Frames that `push` refused. */
  readonly dropped: () => number
}

export type PlayoutDeps = {
  readonly send: (packet: RtpPacket) => void
  /** The last queued frame was sent. */
  readonly drained: (lastPlayedSeq: number) => void
}

/** 120 s. */
const maxQueued = 6000
/** Silence that is sent before the line is quiet (200 ms), and then every so often (400 ms), in ticks. */
const tailTicks = 10
const keepAliveTicks = 20

export function createPlayout({ send, drained }: PlayoutDeps): Playout {
  const queue = createFrameQueue()
  const numbering = createRtpNumbering()
  let line: AgentLine | null = null
  // Not 0, so that the very first frame carries the marker too.
  let silentTicks = 1
  let lastPlayed = -1

  const transmit = ({ payloadType }: NegotiatedAudio, payload: Uint8Array, marker: boolean) =>
    send({ payloadType, marker, sequenceNumber: numbering.next(), timestamp: numbering.timestamp(), payload })

  const play = ({ sound, audio }: AgentLine, frame: Frame, at: number) => {
    transmit(audio, sound.encode(frame.payload, at), silentTicks > 0)
    silentTicks = 0
    lastPlayed = frame.seq
    if (queue.size() === 0) drained(lastPlayed)
  }

  const rest = ({ sound, audio }: AgentLine) => {
    silentTicks++
    if (silentTicks <= tailTicks || (silentTicks - tailTicks) % keepAliveTicks === 0)
      transmit(audio, sound.silence(), false)
  }

  return {
    use(newLine) {
      line?.sound.close()
      line = newLine
    },
    restart(frameBytes) {
      queue.restart(frameBytes)
      lastPlayed = -1
    },
    push: (frame) => queue.push(frame),
    dropped: queue.dropped,
    flush() {
      queue.clear()
      return lastPlayed
    },
    tick(at) {
      if (line === null) return
      numbering.passTo(at, line.audio)
      const frame = queue.shift()
      if (frame) play(line, frame, at)
      else rest(line)
    },
  }
}

/** Sequence numbers count packets; the timestamp counts time. Both begin at random (RFC 3550 §5.1). */
function createRtpNumbering() {
  let sequenceNumber = randomInt(0x1_0000)
  let timestamp = randomInt(0x1_0000_0000)
  let passedTo: number | null = null
  return {
    next: () => (sequenceNumber = (sequenceNumber + 1) & 0xffff),
    timestamp: () => timestamp,
    /** Ticks that were left out have passed all the same. */
    passTo(at: number, { clockRateHz }: NegotiatedAudio) {
      const ticks = passedTo === null ? 1 : Math.max(1, Math.round((at - passedTo) / frameMs))
      passedTo = at
      timestamp = (timestamp + (ticks * clockRateHz * frameMs) / 1000) >>> 0
    },
  }
}

/** Frames that were taken and still lie in front of the queue, at most. */
const compactAt = 256

/** First in, first out, without moving the rest at every step. Takes only frames of one size, each newer than the one before. */
function createFrameQueue() {
  const frames: Frame[] = []
  let head = 0
  let lastSeq = -1
  let frameBytes = 0
  let dropped = 0
  const size = () => frames.length - head
  const clear = () => {
    frames.length = 0
    head = 0
  }
  return {
    clear,
    size,
    dropped: () => dropped,
    restart(bytes: number) {
      clear()
      frameBytes = bytes
      lastSeq = -1
    },
    push(frame: Frame): boolean {
      const fits = frame.payload.length === frameBytes && frame.seq > lastSeq && size() < maxQueued
      if (!fits) dropped++
      if (!fits) return false
      lastSeq = frame.seq
      frames.push(frame)
      return true
    },
    shift(): Frame | undefined {
      const frame = frames[head]
      if (frame === undefined) return undefined
      if (++head >= compactAt) head -= frames.splice(0, head).length
      return frame
    },
  }
}
