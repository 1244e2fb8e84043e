/**
 * Owns how much is under way at once, and how long it is waited for: what goes beyond the width waits its turn, in order. The queue is as
 * long as there are trunks to look after.
 */
import type { Clock } from '../../model/clock.ts'

export type Gate = <Answer>(action: () => Promise<Answer>) => Promise<Answer>

export function createGate(width: number): Gate {
  const waiting: (() => void)[] = []
  let free = width
  const leave = () => {
    const next = waiting.shift()
    if (next) next()
    else free += 1
  }
  return async (action) => {
    if (free > 0) free -= 1
    else await new Promise<void>((resolve) => void waiting.push(resolve))
    try {
      return await action()
    } finally {
      leave()
    }
  }
}

/** Resolves with the work, or after `ms`. */
export async function within(clock: Clock, ms: number, work: Promise<unknown>): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>()
  const cancel = clock.after(ms, resolve)
  await Promise.race([work, late]).finally(cancel)
}
