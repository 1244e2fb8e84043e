/** Owns taking turns: of what one account asks for only so much is under way at a time, so that others find a free connection to the database. */
import type { AccountId } from '../../model/ids.ts'

/** Runs `work` when the account has a place, first come first served. Rejects with the reason of `signal` when that ends the waiting. */
type TakeTurn = <Result>(accountId: AccountId, signal: AbortSignal, work: () => Promise<Result>) => Promise<Result>

type Line = { running: number; readonly waiting: Set<() => void> }

export function createTurns(limit: number): TakeTurn {
  const lines = new Map<AccountId, Line>()

  function leave(accountId: AccountId, line: Line): void {
    const [next] = line.waiting
    // The place goes straight to who waited longest.
    if (next) return next()
    line.running -= 1
    if (line.running === 0) lines.delete(accountId)
  }
  return async (accountId, signal, work) => {
    signal.throwIfAborted()
    const line = lines.get(accountId) ?? { running: 0, waiting: new Set() }
    lines.set(accountId, line)
    if (line.running < limit) line.running += 1
    else await placeOf(line, signal)
    try {
      return await work()
    } finally {
      leave(accountId, line)
    }
  }
}

/** Resolves when somebody has left: his place is taken. */
function placeOf({ waiting }: Line, signal: AbortSignal): Promise<void> {
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
