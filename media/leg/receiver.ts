/**
 * Owns what comes in from the wire until an actor hears it: puts packets in order, takes key presses and comfort noise out, and passes the
 * caller's voice through the stages of the line to the actor who listens at the moment. The stream may begin anew (another codec, back from
 * hold) and the actor may change; the line goes on for the same actor, its timestamps for all of them.
 */
import { frameMs, type AudioFormat, type Frame } from '../../model/frame.ts'
import type { NegotiatedAudio, RtpPacket } from '../../model/rtp-transport.ts'
import { levelOfComfortNoise } from '../pcm/comfort-noise.ts'
import { createDtmfReceiver } from '../rtp/dtmf-receiver.ts'
import { isComfortNoise } from '../rtp/other-types.ts'
import { createJitterBuffer, type JitterBuffer, type JitterBufferStats, type Released } from '../rtp/jitter-buffer.ts'
import { chain, createSound, noBytes, renew, type Sink, type Stages } from './stages/stage.ts'
import { createUpLine, type UpLine } from './up-line.ts'

/** Who listens. The same object is the same actor. */
export type Listener = { readonly epoch: number; readonly hears: AudioFormat }

export type Receiver = {
  /** What comes from here on is another stream. Whoever listens must be told by `use` if the codec is another. */
  readonly begin: (audio: NegotiatedAudio) => void
  /** What is heard goes through these to the listener; those before are closed. Until then key presses are told all the same. */
  readonly use: (stages: Stages, listener: Listener) => void
  readonly packet: (packet: RtpPacket) => void
  readonly tick: () => void
  /** Null before anything was negotiated. */
  readonly stats: () => JitterBufferStats | null
  /** Frames of the caller that came too far ahead of time. */
  readonly dropped: () => number
  /** Of the sound that was heard in place of lost packets and is a guess. */
  readonly concealedMs: () => number
  /** Nothing more comes: what waits for missing packets is heard now. */
  readonly end: () => void
  /** Nobody hears any more. Idempotent. */
  readonly close: () => void
}

export type ReceiverDeps = {
  readonly now: () => number
  /** One frame of the caller; the payload is valid during the call only. */
  readonly heard: (frame: Frame) => void
  readonly dtmf: (digit: string) => void
}

type Stream = { readonly audio: NegotiatedAudio; readonly buffer: JitterBuffer }
type Hearer = { readonly take: Sink; readonly line: UpLine; readonly close: () => void }

export function createReceiver(deps: ReceiverDeps): Receiver {
  const lines = createUpLines(deps)
  const keys = createDtmfReceiver()
  const sound = createSound()
  let stream: Stream | null = null
  let before: JitterBufferStats | null = null
  let hearer: Hearer | null = null
  /** Of the noise that stands for the caller's silence; null while there is none. */
  let noiseLevel: number | null = null

  const hear = (kind: 'sound' | 'lost', payload: Uint8Array, timestamp: number, now: number) => {
    if (hearer === null) return
    sound.timestamp = timestamp
    sound.at = now
    hearer.take(renew(sound, kind, payload))
  }

  const miss = (next: RtpPacket | null, { payloadType }: NegotiatedAudio, now: number) =>
    hear('lost', next?.payloadType === payloadType ? next.payload : noBytes, 0, now)

  const rest = ({ payload }: RtpPacket) => {
    noiseLevel = levelOfComfortNoise(payload)
    hearer?.line.rest()
  }

  const deliver = (released: Released, audio: NegotiatedAudio, now: number) => {
    if (!('packet' in released)) return miss(released.next, audio, now)
    const { packet } = released
    if (packet.payloadType === audio.payloadType) {
      noiseLevel = null
      return hear('sound', packet.payload, packet.timestamp, now)
    }
    if (packet.payloadType !== audio.telephoneEventPayloadType)
      return isComfortNoise(packet.payloadType, audio) ? rest(packet) : undefined
    const digit = keys.receive(packet)
    if (digit !== null) deps.dtmf(digit)
  }

  /** `until`: what would have waited no longer than that. */
  const drain = ({ audio, buffer }: Stream, now: number, until = now) => {
    for (let released = buffer.due(until); released !== null; released = buffer.due(until))
      deliver(released, audio, now)
  }

  const stats = () => together(before, stream?.buffer.stats() ?? null)

  return {
    begin(audio) {
      before = stats()
      stream = { audio, buffer: bufferFor(audio) }
      noiseLevel = null
    },
    use({ list, close }, listener) {
      hearer?.close()
      const line = lines.of(listener)
      hearer = { take: chain(list, endOn(line)), line, close }
    },
    packet(packet) {
      if (stream === null) return
      const now = deps.now()
      stream.buffer.push(packet, now)
      drain(stream, now)
    },
    tick() {
      if (stream === null) return
      const now = deps.now()
      drain(stream, now)
      hearer?.line.tick(now, noiseLevel)
    },
    stats,
    dropped: lines.dropped,
    concealedMs: lines.filledMs,
    end() {
      if (stream !== null) drain(stream, deps.now(), Infinity)
    },
    close() {
      hearer?.close()
      hearer = null
    },
  }
}

const endOn =
  (line: UpLine): Sink =>
  ({ kind, payload, at }) => {
    if (kind === 'guess') line.filler(payload, at)
    else line.sound(payload, at)
  }

const bufferFor = ({ clockRateHz, payloadType }: NegotiatedAudio): JitterBuffer =>
  createJitterBuffer({ clockRateHz, soundPayloadType: payloadType })

const together = (before: JitterBufferStats | null, now: JitterBufferStats | null): JitterBufferStats | null => {
  if (before === null || now === null) return now
  return {
    received: before.received + now.received,
    lost: before.lost + now.lost,
    late: before.late + now.late,
    duplicated: before.duplicated + now.duplicated,
    resynchronised: before.resynchronised + now.resynchronised,
    jitterMs: now.jitterMs,
  }
}

/** One line per actor that listens. Seq begins anew with each of them, the timestamp goes on. */
function createUpLines({ now, heard }: ReceiverDeps) {
  let line: UpLine | null = null
  let listener: Listener | null = null
  let heardMs = 0
  let droppedBefore = 0
  let filledMsBefore = 0

  const open = ({ epoch, hears }: Listener): UpLine => {
    droppedBefore += line?.dropped() ?? 0
    filledMsBefore += line?.filledMs() ?? 0
    return createUpLine(hears, now(), (payload, seq) => {
      heard({ epoch, seq, timestamp: heardMs, payload })
      heardMs += frameMs
    })
  }
  return {
    dropped: () => droppedBefore + (line?.dropped() ?? 0),
    filledMs: () => filledMsBefore + (line?.filledMs() ?? 0),
    of(wanted: Listener): UpLine {
      if (line === null || listener !== wanted) line = open(wanted)
      listener = wanted
      return line
    },
  }
}
