/**
 * Owns rounds whose work takes longer than a look: each look begins as much as there is room for and waits for none of it, so that what takes long
 * holds up nothing else. What ends makes room, and is followed by a look where one had left something behind.
 */
import type { Cancel, Clock } from '../../model/clock.ts'
import type { Log } from '../../model/log.ts'
import { createRounds, type Rounds } from './rounds.ts'

type Taken<Item> = {
  readonly items: readonly Item[]
  /** There was no room for all, or may not have been. */
  readonly isFull: boolean
}

export function createWorkRounds<Item>(deps: {
  readonly clock: Clock
  readonly log: Log
  /** The longest pause between two looks. */
  readonly every: number
  /** As of rounds. */
  readonly pace?: number
  readonly told?: (wake: () => void) => Cancel
  /** Finds what is to be done now, beside what is under way. */
  readonly take: (underWay: number) => Promise<Taken<Item>>
  /** Rejects for what nobody foresaw: it is logged. */
  readonly begin: (item: Item) => Promise<void>
}): Rounds {
  const { clock, log, every, pace = 0, told, take, begin } = deps
  const underWay = new Set<Promise<void>>()
  let isFull = false

  const start = (item: Item): void => {
    const work = begin(item)
      .catch((error: unknown) => log.error('a piece of work failed', { error }))
      .finally(() => {
        underWay.delete(work)
        if (isFull) rounds.wake()
      })
    underWay.add(work)
  }
  const look = async (): Promise<boolean> => {
    const taken = await take(underWay.size)
    taken.items.forEach(start)
    isFull = taken.isFull
    return false
  }
  const rounds = createRounds({ clock, log, every, pace, ...(told && { told }), look })
  return {
    wake: () => rounds.wake(),
    async idle() {
      await rounds.idle()
      while (underWay.size > 0) {
        await Promise.all(underWay)
        await rounds.idle()
      }
    },
    async close() {
      await rounds.close()
      await Promise.all(underWay)
    },
  }
}
