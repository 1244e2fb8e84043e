/** Owns the last stage of each direction: samples become the bytes that go out. */
import { tailTicks } from './silence.ts'
import type { Stage } from './stage.ts'

type Options = {
  readonly write: (samples: Int16Array) => Uint8Array
  /** Bytes that nobody changed go out as they came: they are in the format that goes out. */
  readonly isUntouched: boolean
  /** 20 ms of a pause in place of its samples; null where silence is sent as sound. */
  readonly rest?: (() => Uint8Array) | null
}

export const encode =
  ({ write, isUntouched, rest = null }: Options): Stage =>
  (next) =>
  (sound) => {
    if (rest !== null && sound.kind === 'pause' && sound.silentTicks >= tailTicks) sound.payload = rest()
    else if (!isUntouched || sound.payload.length === 0) sound.payload = write(sound.samples)
    next(sound)
  }
