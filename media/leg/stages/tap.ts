/** Owns listening: somebody gets all sound that passes and changes nothing of it. */
import { createResampler } from '../../pcm/resample.ts'
import type { Sound, Stage } from './stage.ts'

/** Samples are those of the sound at the rate that is wanted, valid during the call only. */
type Listen = (samples: Int16Array, sound: Readonly<Sound>) => void

/** Sound that passes has `fromHz`, what is listened to has `toHz`. */
export const tap =
  (fromHz: number, toHz: number, listen: Listen): Stage =>
  (next) => {
    const resampler = createResampler(fromHz, toHz)
    return (sound) => {
      const { samples } = sound
      if (samples.length > 0) listen(resampler?.convert(samples) ?? samples, sound)
      next(sound)
    }
  }
