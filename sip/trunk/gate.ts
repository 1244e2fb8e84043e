/**
 * Owns how much is under way at once, and how long it is waited for: what goes beyond the width waits its turn, in order. The queue is as
 * long as there are trunks to look after.
 */

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
