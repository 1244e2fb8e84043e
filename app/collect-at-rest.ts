/**
 * Owns giving memory back after a burst. V8 keeps the pages of a burst until something makes it tidy up, and nothing does in a process at rest. So
 * the heap is collected down to what lives when no call has run for a while, and never else: it takes the thread for a tenth of a second.
 * docs/design/load.md "Memory"
 */
import process from 'node:process'
import { collectorOfHeap } from '../media/collect-heap.ts'
import { within, type Cancel, type Clock } from '../model/clock.ts'
import type { Log } from '../model/log.ts'

type Deps = {
  readonly clock: Pick<Clock, 'after' | 'within'>
  readonly log: Log
  /** No call runs here, and next to nothing else is done; since it was last asked. */
  readonly isAtRest: () => boolean
  /** Bytes that this process has. */
  readonly held?: () => number
  readonly collect?: () => void
}

const lookEvery = 5_000
/** Looks in a row. */
const restLooks = 3
/** Bytes beyond what was left the last time: less is not worth it. What the start has left behind is, always. */
const worthIt = 48 * 1024 * 1024

/** The result ends it. */
export function collectAtRest(deps: Deps): () => void {
  const { clock, log, isAtRest, held = () => process.memoryUsage.rss(), collect = collectorOfHeap() } = deps
  let left = 0
  let rested = 0
  let cancel: Cancel = () => undefined

  const look = (): void => {
    rested = isAtRest() ? rested + 1 : 0
    left = Math.min(left, held())
    if (rested >= restLooks && held() - left > worthIt) tidy()
    cancel = within(clock, lookEvery, look)
  }
  const tidy = (): void => {
    const [before, began] = [held(), performance.now()]
    collect()
    left = held()
    rested = 0
    log.info('memory was given back', { before, after: left, ms: Math.round(performance.now() - began) })
  }
  cancel = within(clock, lookEvery, look)
  return () => cancel()
}
