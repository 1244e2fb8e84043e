/** Owns taking turns: of what one account asks for only so much is under way at a time, so that others find a free connection to the database. */
import type { AccountId } from '../../model/ids.ts'

/** Runs `work` when the account has a place, first come first served. Rejects with the reason of `signal` when that ends the waiting. */
type TakeTurn = <Result>(accountId: AccountId, signal: AbortSignal, work: () => Promise<Result>) => Promise<Result>

type Queue = { running: number; readonly waiting: Set<() => void> }

export function createTurns(limit: number): TakeTurn {
  const queues = new Map<AccountId, Queue>()

  function leave(accountId: AccountId, queue: Queue): void {
    const [next] = queue.waiting
    // The place goes straight to who waited longest.
    if (next) return next()
    queue.running -= 1
    if (queue.running === 0) queues.delete(accountId)
  }
  return async (accountId, signal, work) => {
    signal.throwIfAborted()
    const queue = queues.get(accountId) ?? { running: 0, waiting: new Set() }
    queues.set(accountId, queue)
    if (queue.running < limit) queue.running += 1
    else await placeOf(queue, signal)
    try {
      return await work()
    } finally {
      leave(accountId, queue)
    }
  }
}

/** Resolves when another one leaves and gives its place to this one. */
function placeOf({ waiting }: Queue, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const go = (): void => {
      waiting.delete(go)
      signal.removeEventListener('abort', giveUp)
      resolve()
    }
    const giveUp = (): void => {
      waiting.delete(go)
      reject(signal.reason as Error)
    }
    waiting.add(go)
    signal.addEventListener('abort', giveUp, { once: true })
  })
}
