/**
 * Owns the sound of the telephone benches: something that a voice detector takes for a voice, and a mark, which is louder than anything in it.
 * A mark goes out in the midst of silence and comes back; the time between is what is measured.
 */
import { frameMs } from '../../model/frame.ts'

const markPeak = 28_000
/** Between the loudest of the voice and what is left of a mark that was resampled. */
const loud = 15_000
const voicePeak = 9_000
const harmonics = 20
/** Hz: where a mouth lets much through. */
const formants = [600, 1_200, 2_500] as const

/** Vowels at 120 Hz, three and a half a second. 16-bit samples. */
export function voiceOf(rateHz: number, frames: number): Int16Array {
  const sound = Float64Array.from({ length: (rateHz * frameMs * frames) / 1000 }, (_, index) => vowelAt(index / rateHz))
  const most = sound.reduce((peak, sample) => Math.max(peak, Math.abs(sample)), 1)
  return Int16Array.from(sound, (sample) => Math.round((sample / most) * voicePeak))
}

function vowelAt(seconds: number): number {
  const phase = 2 * Math.PI * (120 * seconds - 2 * Math.cos(2 * Math.PI * 2 * seconds))
  const syllable = Math.abs(Math.sin(Math.PI * 3.5 * seconds)) ** 0.5
  let sample = 0
  for (let harmonic = 1; harmonic <= harmonics; harmonic++)
    sample += syllable * strengthAt(harmonic * 120) * Math.sin(harmonic * phase)
  return sample
}

const strengthAt = (hertz: number): number =>
  formants.reduce((sum, formant) => sum + 1 / (1 + ((hertz - formant) / 150) ** 2), 0.05)

/** One frame. */
export function markOf(rateHz: number): Int16Array {
  return Int16Array.from({ length: (rateHz * frameMs) / 1000 }, (_, index) =>
    Math.round(markPeak * Math.sin((2 * Math.PI * 440 * index) / rateHz)),
  )
}

export function isMark(samples: Int16Array): boolean {
  for (const sample of samples) if (sample > loud || sample < -loud) return true
  return false
}
