/** Owns decoding: payloads become samples. A packet that is none counts as lost. */
import { noBytes, noSamples, type Stage } from './stage.ts'

/** Samples may be valid until the next call only. Null: there are none. */
type Decode = (payload: Uint8Array) => Int16Array | null

export const decode =
  (read: Decode): Stage =>
  (next) =>
  (sound) => {
    if (sound.kind === 'sound') {
      const samples = read(sound.payload)
      sound.samples = samples ?? noSamples
      if (samples === null) sound.kind = 'lost'
      if (samples === null) sound.payload = noBytes
    }
    next(sound)
  }
