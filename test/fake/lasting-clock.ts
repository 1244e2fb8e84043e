/** Owns the real clock for a test in which nothing but a timer keeps the process alive. */
import type { Clock } from '../../model/clock.ts'

export const lastingClock: Clock = {
  now: () => Date.now(),
  after(ms, action) {
    const timer = setTimeout(action, ms)
    return () => clearTimeout(timer)
  },
}
