/**
 * Owns what callers of the voice bench say, as frames of PCMU: real words of a synthetic voice, or vowels of a known length. Each utterance tells
 * with which frame who listens can know that it has begun, and with which that it is over.
 */
import { frameMs } from '../../model/frame.ts'
import { lawOfEncoding } from '../../media/codecs/g711.ts'
import { createResampler } from '../../media/pcm/resample.ts'
import type { FliteVoice } from '../../voice/engines/embedded/flite.ts'
import { createSynthesiser } from '../../voice/engines/embedded/synthesiser.ts'
import { createVoiceActivity, levelOf } from '../../media/vad/voice-activity.ts'
import { createVoiceDetectors } from '../../media/vad/voice-detector.ts'
import { systemClock } from '../../app/clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { voiceOf } from './phone-sound.ts'

export type Utterance = {
  readonly frames: readonly Uint8Array[]
  /** Index of a frame: from when it is sent, interruptions are counted. */
  readonly onset: number
  /** The same for answers. */
  readonly end: number
}

/** How a provider finds turns, in frames: so many loud ones begin one, so many silent ones end it. */
export type TurnFinding = { readonly onsetFrames: number; readonly silentFrames: number }

export const samplesPerFrame = 160
const law = lawOfEncoding('pcmu')
/** Peaks below this are no sound: about -40 dB of full scale. */
const audible = 300
/** One second: nobody takes it for a noise. */
const vowelFrames = 50
/** 5 ms. */
const unspoken = samplesPerFrame / 4
/** The longest wait for more, and some. */
const silenceAfter = 1_500 / frameMs

export const silentFrame = new Uint8Array(samplesPerFrame).fill(law.silence)

export const isLoud = (samples: Int16Array): boolean => samples.some((sample) => Math.abs(sample) > audible)

/** Begins with the first loud frame and ends with the last. */
export async function spokenUtterances(texts: readonly string[], voices: readonly FliteVoice[]): Promise<Utterance[]> {
  const synthesiser = await createSynthesiser({ clock: systemClock, log: createQuietLog() })
  try {
    const utterances: Utterance[] = []
    for (const [index, text] of texts.entries()) {
      const wide = await synthesiser.speak(text, voices[index % voices.length])
      const narrow = createResampler(16_000, 8000)?.convert(wide).slice() ?? wide
      utterances.push(bounded(narrow))
    }
    return utterances
  } finally {
    await synthesiser.close()
  }
}

function bounded(samples: Int16Array): Utterance {
  const cut = framesOf(samples)
  const loud = [...cut.keys()].filter((index) => isLoud(cut[index] as Int16Array))
  const [first = 0, last = 0] = [loud[0], loud.at(-1)]
  return { frames: cut.slice(first, last + 1).map(encoded), onset: 0, end: last - first }
}

/** What a resampler puts off stays within the last frame: a provider that counts frames would hear one more. */
function vowels(): Uint8Array[] {
  const samples = voiceOf(8000, vowelFrames)
  return framesOf(samples.fill(0, samples.length - unspoken)).map(encoded)
}

/** For providers that count: it is over with the frame that completes their silence. */
export function vowelsFor({ onsetFrames, silentFrames }: TurnFinding): Utterance {
  const spoken = vowels()
  const silence = Array.from({ length: silentFrames }, () => silentFrame)
  return { frames: [...spoken, ...silence], onset: onsetFrames - 1, end: spoken.length + silentFrames - 1 }
}

/** For an engine that finds turns with our own detector: what that makes of the vowels is tried here. */
export async function vowelsForDetector(): Promise<Utterance> {
  const spoken = vowels()
  const silence = Array.from({ length: silenceAfter }, () => silentFrame)
  const detector = (await createVoiceDetectors())()
  const activity = createVoiceActivity()
  const widen = createResampler(8000, 16_000)
  const samples = new Int16Array(samplesPerFrame)
  const [before, found] = [silence.length, { onset: 0, end: 0 }]
  for (const [index, frame] of [...silence, ...spoken, ...silence].entries()) {
    law.decode(frame, samples)
    const wide = widen?.convert(samples) ?? samples
    const event = activity.next(detector.isVoice(wide), levelOf(wide), false)
    if (event?.type === 'started') found.onset = index - before
    if (event?.type === 'stopped') found.end = index - before
  }
  detector.close()
  return { frames: [...spoken, ...silence].slice(0, found.end + 1), ...found }
}

const framesOf = (samples: Int16Array): Int16Array[] =>
  Array.from({ length: Math.floor(samples.length / samplesPerFrame) }, (_, at) =>
    samples.subarray(at * samplesPerFrame, (at + 1) * samplesPerFrame),
  )

function encoded(samples: Int16Array): Uint8Array {
  const bytes = new Uint8Array(samples.length)
  law.encode(samples, bytes)
  return bytes
}
