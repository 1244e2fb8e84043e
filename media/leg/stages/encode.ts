/** Owns the last stage of each direction: samples become the bytes that go out. */
import type { Stage } from './stage.ts'

type Options = {
  readonly write: (samples: Int16Array) => Uint8Array
  /** Bytes that nobody changed go out as they came: they are in the format that goes out. */
  readonly isUntouched: boolean
}

export const encode =
  ({ write, isUntouched }: Options): Stage =>
  (next) =>
  (sound) => {
    if (!isUntouched || sound.payload.length === 0) sound.payload = write(sound.samples)
    next(sound)
  }
