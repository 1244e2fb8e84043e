/**
 * Owns how late the machine itself is: an empty beat in a thread of its own, which has nothing to do but to be in time. What it misses nobody can
 * keep, and late frames of a row are believed as far as they exceed it.
 */
import { isMainThread, parentPort, Worker } from 'node:worker_threads'
import { createTicker } from '../../media/ticker/ticker.ts'
import type { LatenessTotals } from '../../media/ticker/lateness.ts'

export type MachineBeat = {
  /** Since it began. */
  totals(): Promise<LatenessTotals>
  /** Idempotent. */
  close(): Promise<void>
}

export function openMachineBeat(): MachineBeat {
  const worker = new Worker(import.meta.filename, { name: 'empty beat' })
  worker.unref()
  return {
    totals: () =>
      new Promise((resolve) => {
        worker.once('message', resolve)
        worker.postMessage('totals')
      }),
    close: async () => void (await worker.terminate()),
  }
}

/** Part of the slots between two readings, 0–1; those that were left out are late. */
export function lateShare(before: LatenessTotals, now: LatenessTotals): number {
  const of = (name: keyof LatenessTotals): number => now[name] - before[name]
  return (of('late') + of('skipped')) / Math.max(1, of('ticks') + of('skipped'))
}

if (!isMainThread && parentPort) beat(parentPort)

function beat(port: NonNullable<typeof parentPort>): void {
  const ticker = createTicker({
    now: () => performance.now(),
    after(ms, action) {
      const timer = setTimeout(action, ms)
      return () => clearTimeout(timer)
    },
  })
  // One in each slot.
  for (let slot = 0; slot < 4; slot++) ticker.join(() => undefined)
  port.on('message', () => port.postMessage(ticker.totals()))
}
