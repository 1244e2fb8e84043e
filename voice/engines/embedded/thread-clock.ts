/** Owns timers within a voice thread, which has no clock of the service. They keep no thread alive. */
import type { Clock } from '../../../model/clock.ts'

export const afterInThread: Clock['after'] = (ms, action) => {
  const timer = setTimeout(action, ms).unref()
  return () => clearTimeout(timer)
}
