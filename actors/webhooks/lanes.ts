/**
 * Owns how many deliveries may be under way: in all, and of one subscription. An endpoint that answered quickly last time has more lanes while
 * most are free; one that was slow or silent has few until it answers quickly again.
 */
import type { SubscriptionId } from '../../model/ids.ts'

export type Lanes = {
  /** How many more may start. */
  room(): number
  /** The same of the subscriptions that are not unknown and idle. */
  rooms(): Map<SubscriptionId, number>
  /** `work` never rejects. `ended` is called when its place is free again. */
  run(id: SubscriptionId, work: Promise<void>, ended: () => void): void
  /** How long the endpoint took last time, ms. */
  judge(id: SubscriptionId, took: number): void
  /** Resolves when nothing is under way. */
  idle(): Promise<void>
}

export const lanesInAll = 512
export const lanesOfUnknown = 16
export const lanesOfQuick = 64
export const lanesOfSlow = 4
const slow = 2_000
/** Forgetting the oldest costs it a few lanes for one timeout. */
const remembered = 1_000

type Speed = 'quick' | 'slow'

export function createLanes(): Lanes {
  const running = new Map<SubscriptionId, Set<Promise<void>>>()
  const speeds = new Map<SubscriptionId, Speed>()
  let count = 0

  function shareOf(id: SubscriptionId): number {
    const speed = speeds.get(id)
    if (speed === 'slow') return lanesOfSlow
    return speed === 'quick' && count < lanesInAll / 2 ? lanesOfQuick : lanesOfUnknown
  }
  /** A few free lanes are none: looking for their work costs as much as for many, and more of them will be free in a moment. */
  function roomOf(id: SubscriptionId): number {
    const share = shareOf(id)
    const free = share - (running.get(id)?.size ?? 0)
    return free < share / 4 ? 0 : free
  }
  function settle(id: SubscriptionId, work: Promise<void>): void {
    count -= 1
    const works = running.get(id)
    works?.delete(work)
    if (works?.size === 0) running.delete(id)
  }
  return {
    room: () => lanesInAll - count,
    rooms: () => new Map([...new Set([...running.keys(), ...speeds.keys()])].map((id) => [id, roomOf(id)])),
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
      speeds.delete(id)
      speeds.set(id, took < slow ? 'quick' : 'slow')
      const [oldest] = speeds.keys()
      if (speeds.size > remembered && oldest !== undefined) speeds.delete(oldest)
    },
    async idle() {
      while (count > 0) await Promise.all([...running.values()].flatMap((works) => [...works]))
    },
  }
}
