/** Owns listening: somebody gets all sound that passes and changes nothing of it. */
import type { Sound, Stage } from './stage.ts'

/** Samples are valid during the call only. */
type Listen = (samples: Int16Array, sound: Readonly<Sound>) => void

export const tap =
  (listen: Listen): Stage =>
  (next) =>
  (sound) => {
    if (sound.samples.length > 0) listen(sound.samples, sound)
    next(sound)
  }
