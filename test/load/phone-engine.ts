/**
 * Owns the engine of the telephone benches: it does what a real one does on every call, without recognition and synthesis. It looks for a voice in
 * each frame, speaks from memory nearly all the time once it has heard one, and answers a mark with a mark.
 */
import { frameMs, samplesOf, samplesPerFrame, type AudioFormat } from '../../model/frame.ts'
import type { EngineEvent, EngineSession, VoiceEngine } from '../../model/voice-engine.ts'
import { lawOfEncoding } from '../../media/codecs/g711.ts'
import { createVoiceActivity, levelOf } from '../../media/vad/voice-activity.ts'
import { createVoiceDetectors, type VoiceDetector } from '../../media/vad/voice-detector.ts'
import { idleSession } from '../fake/idle-session.ts'
import { isMark, markOf, voiceOf } from './phone-sound.ts'

/** `idle` hears and says nothing; the others are what the engine hears and speaks. */
export const phoneModes = ['idle', 'pcmu', 'pcm16'] as const
export type PhoneMode = (typeof phoneModes)[number]

type Emit = (event: EngineEvent) => void

const formats: Readonly<Record<PhoneMode, AudioFormat>> = {
  idle: { encoding: 'pcmu', rateHz: 8000 },
  pcmu: { encoding: 'pcmu', rateHz: 8000 },
  pcm16: { encoding: 'pcm16', rateHz: 16000 },
}
const law = lawOfEncoding('pcmu')
/** Four seconds of speech, then one to breathe. */
const spokenFrames = 4_000 / frameMs
const turnFrames = 5_000 / frameMs
/** A real engine hands its sound over in pieces of 200 ms. */
const pieceFrames = 200 / frameMs
const sentence = 'One moment please, I am looking at what is still free on that evening, and at what is not.'

export type PhoneEngine = {
  readonly engine: VoiceEngine
  /** For sessions that are opened from now on. */
  use(mode: PhoneMode): void
}

export async function createPhoneEngine(): Promise<PhoneEngine> {
  const createDetector = await createVoiceDetectors()
  const voices = { pcmu: soundIn(formats.pcmu), pcm16: soundIn(formats.pcm16) }
  let mode: PhoneMode = 'idle'
  return {
    use: (next) => void (mode = next),
    engine: {
      name: 'phone bench',
      get hears() {
        return [formats[mode]]
      },
      get speaks() {
        return [formats[mode]]
      },
      open: (_config, emit) =>
        Promise.resolve(mode === 'idle' ? idleSession : createSession(voices[mode], createDetector(), emit)),
      close: () => Promise.resolve(),
    },
  }
}

type Sound = { readonly format: AudioFormat; readonly pieces: readonly Uint8Array[]; readonly mark: Uint8Array }

function soundIn(format: AudioFormat): Sound {
  const encode = (samples: Int16Array): Uint8Array => {
    if (format.encoding === 'pcm16') return new Uint8Array(samples.buffer)
    const bytes = new Uint8Array(samples.length)
    law.encode(samples, bytes)
    return bytes
  }
  const speech = encode(voiceOf(format.rateHz, spokenFrames))
  const pieceBytes = (speech.length / spokenFrames) * pieceFrames
  const count = speech.length / pieceBytes
  const pieces = Array.from({ length: count }, (_, at) => speech.subarray(at * pieceBytes, (at + 1) * pieceBytes))
  return { format, pieces, mark: encode(markOf(format.rateHz)) }
}

function createSession({ format, pieces, mark }: Sound, detector: VoiceDetector, emit: Emit): EngineSession {
  const activity = createVoiceActivity()
  const read = readingOf(format)
  let frames = 0
  let nextTurn: number | null = null

  const say = (): void => {
    const itemId = `turn ${frames}`
    emit({ type: 'agent_text', itemId, text: sentence })
    for (const payload of pieces) emit({ type: 'audio', itemId, payload })
    emit({ type: 'item_done', itemId })
  }

  return {
    ...idleSession,
    hear(payload) {
      const { samples, wide } = read(payload)
      if (isMark(samples)) emit({ type: 'audio', itemId: 'mark', payload: mark })
      const heard = activity.next(detector.isVoice(wide), levelOf(samples), false)
      if (heard?.type === 'started') nextTurn ??= frames
      if (nextTurn !== null && frames >= nextTurn) {
        say()
        nextTurn += turnFrames
      }
      frames++
    },
    close: detector.close,
  }
}

/** `wide` is for the detector, which wants 16 kHz: of 8 kHz each sample twice is good enough for it. */
function readingOf(format: AudioFormat): (payload: Uint8Array) => { samples: Int16Array; wide: Int16Array } {
  if (format.encoding === 'pcm16')
    return (payload) => {
      const samples = samplesOf(payload)
      return { samples, wide: samples }
    }
  const samples = new Int16Array(samplesPerFrame(format))
  const wide = new Int16Array(samples.length * 2)
  return (payload) => {
    law.decode(payload, samples)
    for (let at = 0; at < samples.length; at++) wide[at * 2] = wide[at * 2 + 1] = samples[at]!
    return { samples, wide }
  }
}
