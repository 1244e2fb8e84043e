/**
 * Owns the sound of one leg: codecs, the lines of both directions and the recording. They are made when it is known what was
 * negotiated, what the actor hears and speaks, and that the caller is there; and made anew when one of these changes.
 */
import { frameMs, type Frame } from '../../model/frame.ts'
import type { LegCommand } from '../../model/leg.ts'
import type { Log } from '../../model/log.ts'
import type { RecordingStore } from '../../model/recording-store.ts'
import type { NegotiatedAudio, RtpPacket } from '../../model/rtp-transport.ts'
import { createAgentSound } from './agent-sound.ts'
import { createCallerSound } from './caller-sound.ts'
import type { JitterBufferStats } from './jitter-buffer.ts'
import type { OpusLibrary } from './opus.ts'
import { createPlayout } from './playout.ts'
import { createReceiving, type Receiving } from './receiving.ts'
import { createRecording, type Recording } from './recording.ts'
import { createUpLine, frameBytesOf, type UpLine } from './up-line.ts'

export type StartCommand = Extract<LegCommand, { readonly type: 'start' }>

export type LegMedia = {
  readonly negotiated: (audio: NegotiatedAudio) => void
  /** The caller is there. Called once. */
  readonly live: () => void
  readonly start: (command: StartCommand) => void
  readonly packet: (packet: RtpPacket) => void
  /** A frame of the agent. */
  readonly push: (frame: Frame) => void
  /** Answers as `lastPlayedSeq`. */
  readonly flush: () => number
  readonly tick: (at: number) => void
  readonly stats: () => MediaStats
  /** Frees codecs and completes the recording; resolves with its length in ms, null when there is none. Idempotent. */
  readonly finish: () => Promise<number | null>
}

export type MediaStats = {
  /** Null before the negotiation. */
  readonly received: JitterBufferStats | null
  /** Frames of the caller that came too far ahead of time. */
  readonly callerFramesDropped: number
  /** Frames of the agent that had a wrong size, were out of order or too many. */
  readonly agentFramesDropped: number
}

export type LegMediaDeps = {
  readonly opus: OpusLibrary
  readonly recordings: RecordingStore
  readonly log: Log
  readonly now: () => number
  readonly send: (packet: RtpPacket) => void
  /** One frame of the caller; the payload is valid during the call only. */
  readonly heard: (frame: Frame) => void
  readonly dtmf: (digit: string) => void
  readonly drained: (lastPlayedSeq: number) => void
}

export function createLegMedia(deps: LegMediaDeps): LegMedia {
  const playout = createPlayout(deps)
  const lines = createUpLines(deps)
  let audio: NegotiatedAudio | null = null
  let session: StartCommand | null = null
  let receiving: Receiving | null = null
  let recording: Recording | null = null
  let isLive = false
  let finished = false

  const open = () => {
    if (audio === null || session === null || !isLive || finished) return
    recording ??= recordingOf(deps, audio, session)
    const { hears, speaks } = session
    const { opus } = deps
    const sound = createCallerSound({ audio, hears, opus, tap: recording?.caller ?? null })
    receiving?.use({ sound, line: lines.open(session) })
    playout.use({ audio, sound: createAgentSound({ audio, speaks, opus, tap: recording?.agent ?? null }) })
  }

  return {
    negotiated(agreed) {
      receiving?.use(null)
      audio = agreed
      receiving = createReceiving(agreed, deps.dtmf)
      open()
    },
    live() {
      isLive = true
      open()
    },
    start(command) {
      session = command
      playout.restart(frameBytesOf(command.speaks))
      open()
    },
    packet: (packet) => receiving?.packet(packet, deps.now()),
    push(frame) {
      if (!playout.push(frame) && playout.dropped() === 1)
        deps.log.warn('frames of the agent are dropped', { seq: frame.seq })
    },
    flush: playout.flush,
    tick(at) {
      receiving?.tick(deps.now())
      playout.tick(at)
      recording?.tick(at)
    },
    stats: () => ({
      received: receiving?.stats() ?? null,
      callerFramesDropped: lines.dropped(),
      agentFramesDropped: playout.dropped(),
    }),
    async finish() {
      finished = true
      receiving?.use(null)
      playout.use(null)
      return recording === null ? null : recording.finish(deps.now())
    },
  }
}

/** The caller's lines of sound, one per actor that listens. Seq begins anew with each of them, the timestamp goes on. */
function createUpLines({ now, heard }: LegMediaDeps) {
  let line: UpLine | null = null
  let heardMs = 0
  let droppedBefore = 0
  return {
    dropped: () => droppedBefore + (line?.dropped() ?? 0),
    open({ epoch, hears }: StartCommand): UpLine {
      droppedBefore += line?.dropped() ?? 0
      line = createUpLine(hears, now(), (payload, seq) => {
        heard({ epoch, seq, timestamp: heardMs, payload })
        heardMs += frameMs
      })
      return line
    },
  }
}

function recordingOf(
  { recordings, now }: LegMediaDeps,
  audio: NegotiatedAudio,
  { recording }: StartCommand,
): Recording | null {
  if (recording === null) return null
  const { key, mode } = recording
  return createRecording({ writer: recordings.create(key), mode, startedAt: now(), clockRateHz: audio.clockRateHz })
}
