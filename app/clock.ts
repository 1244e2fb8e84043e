/** Owns the real clock. Its timers never keep the process alive by themselves: what must be finished is awaited by its owner. */
import type { Clock } from '../model/clock.ts'

export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, action) {
    const timer = setTimeout(action, ms).unref()
    return () => clearTimeout(timer)
  },
}
