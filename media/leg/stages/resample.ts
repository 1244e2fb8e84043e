/** Owns the change from one sample rate to another on the way. */
import { createResampler } from '../../pcm/resample.ts'
import { noBytes, type Stage } from './stage.ts'

/** Null when both rates are the same. */
export function resample(fromHz: number, toHz: number): Stage | null {
  if (fromHz === toHz) return null
  return (next) => {
    const resampler = createResampler(fromHz, toHz)
    return (sound) => {
      if (resampler) sound.samples = resampler.convert(sound.samples)
      sound.payload = noBytes
      next(sound)
    }
  }
}
