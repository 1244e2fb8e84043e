/** Owns keys that come as sound: each press is told once, and whoever listens behind this hears silence in its place. */
import { createKeyDetector } from '../../vad/key-detector.ts'
import { noBytes, type Stage } from './stage.ts'

export const keys =
  (rateHz: number, pressed: (digit: string) => void): Stage =>
  (next) => {
    const detector = createKeyDetector(rateHz)
    let silence = new Int16Array(0)
    return (sound) => {
      const { samples } = sound
      if (samples.length > 0) {
        const { began, isPressed } = detector.hear(samples)
        began.forEach(pressed)
        if (isPressed) {
          if (silence.length !== samples.length) silence = new Int16Array(samples.length)
          sound.samples = silence
          sound.payload = noBytes
        }
      }
      next(sound)
    }
  }
