/**
 * Owns how many deliveries may be under way: in all, and of one subscription. An endpoint that was slow or silent last time has
 * a quarter of a subscription's share until it answers quickly again.
 */
import type { SubscriptionId } from '../../model/ids.ts'

export type Lanes = {
  /** How many more may start. */
  room(): number
  /** Subscriptions that have their share. */
  full(): SubscriptionId[]
  /** `work` never rejects. `ended` is called when its place is free again. */
  run(id: SubscriptionId, work: Promise<void>, ended: () => void): void
  /** How long the endpoint took last time, ms. */
  judge(id: SubscriptionId, took: number): void
  /** Resolves when nothing is under way. */
  idle(): Promise<void>
}

export const lanesInAll = 256
export const lanesPerSubscription = 16
/** Also what one claim may take of a subscription, so that a slow one goes over its share by less than this. */
export const lanesOfSlow = 4
const slow = 2_000
/** Forgetting the oldest costs it a few lanes for one timeout. */
const remembered = 1_000

export function createLanes(): Lanes {
  const running = new Map<SubscriptionId, Set<Promise<void>>>()
  const sluggish = new Set<SubscriptionId>()
  let count = 0

  function settle(id: SubscriptionId, work: Promise<void>): void {
    count -= 1
    const works = running.get(id)
    works?.delete(work)
    if (works?.size === 0) running.delete(id)
  }
  return {
    room: () => lanesInAll - count,
    full: () =>
      [...running]
        .filter(([id, works]) => works.size >= (sluggish.has(id) ? lanesOfSlow : lanesPerSubscription))
        .map(([id]) => id),
    run(id, work, ended) {
      count += 1
      const works = running.get(id) ?? new Set()
      running.set(id, works)
      const settled = work.then(() => {
        settle(id, settled)
        ended()
      })
      works.add(settled)
    },
    judge(id, took) {
      sluggish.delete(id)
      if (took < slow) return
      sluggish.add(id)
      const [oldest] = sluggish
      if (sluggish.size > remembered && oldest) sluggish.delete(oldest)
    },
    async idle() {
      while (count > 0) await Promise.all([...running.values()].flatMap((works) => [...works]))
    },
  }
}
