/** Owns the keys a caller presses one after another: they are one thing said, when the caller pauses or presses `#`. Counts frames of the caller's line. */
import { frameMs } from '../../../model/frame.ts'

export type Keys = {
  press(digit: string): void
  frame(): void
  /** Keys were pressed that have not been told yet. */
  waiting(): boolean
}

const pauseFrames = 1_500 / frameMs
const maxKeys = 32

export function createKeys(told: (text: string) => void): Keys {
  let pressed: string[] = []
  let frames = 0
  const tell = (): void => {
    const text = `[pressed ${pressed.join(' ')}]`
    pressed = []
    told(text)
  }
  return {
    press(digit) {
      pressed.push(digit)
      frames = 0
      if (digit === '#' || pressed.length >= maxKeys) tell()
    },
    frame() {
      frames++
      if (pressed.length > 0 && frames >= pauseFrames) tell()
    },
    waiting: () => pressed.length > 0,
  }
}
