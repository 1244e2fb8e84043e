/** Owns real time for tests whose threads and sockets are real; its timers keep nothing alive. */
import type { Clock } from '../../model/clock.ts'

export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, action) {
    const timer = setTimeout(action, ms).unref()
    return () => clearTimeout(timer)
  },
}
