/**
 * Owns how late a process of the load is itself: what its event loop waits, read every second. A figure of the service is believed as far as it
 * exceeds this one.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { LoadTally } from './load-tally.ts'

const resolution = 10
const readEvery = 1_000
const nsPerMs = 1e6

/** The result ends it. */
export function watchOwnLateness(tally: LoadTally): () => void {
  const delay = monitorEventLoopDelay({ resolution })
  delay.enable()
  const timer = setInterval(() => {
    // What the timer of the monitor waits by itself is no delay.
    for (const percentile of [50, 99, 100])
      tally.value('loopDelay', Math.max(0, delay.percentile(percentile) / nsPerMs - resolution))
    delay.reset()
  }, readEvery)
  return () => {
    clearInterval(timer)
    delay.disable()
  }
}
