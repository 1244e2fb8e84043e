/**
 * Owns the caller's side of a leg's sound: what comes in from the wire and the line on which an actor hears it. The stream may begin anew
 * (another codec, back from hold) and the actor may change; the line goes on for the same actor, its timestamps for all of them.
 */
import { frameMs, type AudioFormat, type Frame } from '../../model/frame.ts'
import type { NegotiatedAudio, RtpPacket } from '../../model/rtp-transport.ts'
import type { CallerSound } from './caller-sound.ts'
import type { JitterBufferStats } from '../rtp/jitter-buffer.ts'
import { createReceiving, type Receiving } from './receiving.ts'
import { createUpLine, type UpLine } from './up-line.ts'

/** Who listens. The same object is the same actor. */
export type Listener = { readonly epoch: number; readonly hears: AudioFormat }

export type Listening = {
  /** What comes from here on is another stream. */
  readonly begin: (audio: NegotiatedAudio) => void
  /** `sound` belongs to the listening from here on. */
  readonly use: (sound: CallerSound, listener: Listener) => void
  readonly packet: (packet: RtpPacket) => void
  readonly tick: () => void
  /** Null before anything was negotiated. */
  readonly stats: () => JitterBufferStats | null
  /** Frames of the caller that came too far ahead of time. */
  readonly dropped: () => number
  /** Of the sound that was heard in place of lost packets and is a guess. */
  readonly concealedMs: () => number
  /** Idempotent. */
  readonly close: () => void
}

export type ListeningDeps = {
  readonly now: () => number
  /** One frame of the caller; the payload is valid during the call only. */
  readonly heard: (frame: Frame) => void
  readonly dtmf: (digit: string) => void
}

export function createListening(deps: ListeningDeps): Listening {
  const lines = createUpLines(deps)
  let receiving: Receiving | null = null
  return {
    begin(audio) {
      receiving?.restart(audio)
      receiving ??= createReceiving(audio, deps.dtmf)
    },
    use: (sound, listener) => receiving?.use({ sound, line: lines.of(listener) }),
    packet: (packet) => receiving?.packet(packet, deps.now()),
    tick: () => receiving?.tick(deps.now()),
    stats: () => receiving?.stats() ?? null,
    dropped: lines.dropped,
    concealedMs: lines.filledMs,
    close: () => receiving?.use(null),
  }
}

/** One line per actor that listens. Seq begins anew with each of them, the timestamp goes on. */
function createUpLines({ now, heard }: ListeningDeps) {
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
