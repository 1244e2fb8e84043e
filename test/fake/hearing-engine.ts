/** Owns an engine that says a pure tone, or nothing, and keeps what it hears of every call. A real implementation of the port. */
import { samplesOf } from '../../model/frame.ts'
import type { EngineConfig, EngineEvent, VoiceEngine } from '../../model/voice-engine.ts'
import { idleSession } from './idle-session.ts'
import { until } from '../scenes/in-time.ts'

export type HearingSession = {
  readonly config: EngineConfig
  /** Keys, in the order they were pressed. */
  readonly digits: string[]
  /** At 16 kHz, the newest 8 s. */
  heard(): Int16Array
  emit(event: EngineEvent): void
  isClosed(): boolean
}

export type HearingEngine = VoiceEngine & {
  readonly sessions: readonly HearingSession[]
  /** The newest whose call script holds the text; waits for one. */
  of(text: string): Promise<HearingSession>
  /** Calls whose script holds the text find no session until the result is called: they ring on. */
  hold(text: string): () => void
}

export const engineRateHz = 16_000
const framesKept = 400

/** `tone`: said for so many seconds, all at once; null says nothing. */
export function createHearingEngine({ tone, seconds = 6 }: { tone: number | null; seconds?: number }): HearingEngine {
  const format = { encoding: 'pcm16', rateHz: engineRateHz } as const
  const sessions: HearingSession[] = []
  const held = new Map<string, Promise<void>>()
  const speech = tone === null ? null : toneOf(tone, seconds)
  return {
    name: 'hearing',
    hears: [format],
    speaks: [format],
    sessions,
    of: (text) =>
      until(() => sessions.findLast((session) => isOfCall(session) && session.config.script?.includes(text))),
    hold(text) {
      const { promise, resolve } = Promise.withResolvers<void>()
      held.set(text, promise)
      return resolve
    },
    async open(config, emit) {
      for (const [text, released] of held) if (config.script?.includes(text)) await released
      const frames: Uint8Array[] = []
      const digits: string[] = []
      let isClosed = false
      sessions.push({ config, digits, heard: () => joined(frames), emit, isClosed: () => isClosed })
      if (speech) setImmediate(() => emit({ type: 'audio', itemId: 'tone', payload: speech }))
      return {
        ...idleSession,
        hear(payload) {
          frames.push(payload.slice())
          if (frames.length > framesKept) frames.shift()
        },
        dtmf: (digit) => void digits.push(digit),
        typed: () => undefined,
        close: () => void (isClosed = true),
      }
    },
    close: () => Promise.resolve(),
  }
}

/** Before an outbound call is dialed a session is tried out. */
const isOfCall = ({ isClosed, heard }: HearingSession): boolean => !isClosed() || heard().length > 0

const joined = (frames: readonly Uint8Array[]): Int16Array =>
  Int16Array.from(frames.flatMap((frame) => [...samplesOf(frame)]))

/** 16-bit samples as bytes, not loud. */
function toneOf(hertz: number, seconds: number): Uint8Array {
  const samples = new Int16Array(engineRateHz * seconds)
  for (const index of samples.keys())
    samples[index] = Math.round(8000 * Math.sin((2 * Math.PI * hertz * index) / engineRateHz))
  return new Uint8Array(samples.buffer)
}
