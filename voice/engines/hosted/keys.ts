/** Owns the keys a caller presses one after another: they are one thing said, when the caller pauses or presses `#`. Pure. */
import { frameMs } from '../../../model/frame.ts'

/** `pressed` have not been told yet; the last one at frame `since`. */
export type Keys = { readonly pressed: readonly string[]; readonly since: number }

export const initialKeys: Keys = { pressed: [], since: 0 }

const pauseFrames = 1_500 / frameMs
const maxKeys = 32

export const isPressing = ({ pressed }: Keys): boolean => pressed.length > 0

export const keyPressed = ({ pressed }: Keys, digit: string, now: number): Keys => ({
  pressed: [...pressed, digit],
  since: now,
})

/** True when no more keys are to be waited for. */
export const areKeysDue = ({ pressed, since }: Keys, now: number): boolean =>
  pressed.length > 0 && (pressed.at(-1) === '#' || pressed.length >= maxKeys || now - since >= pauseFrames)
