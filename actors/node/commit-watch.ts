/**
 * Owns how long this node's commits take: those of steps of calls, and those of its lease, which is renewed every second whether a call runs or
 * not. Only the lease tells that the database is gone: a step may wait for a lock on its own call.
 */

export type CommitWatch = {
  /** One step of a call, with the attempts that it took. Rejects as the work does. */
  step<Value>(commit: () => Promise<Value>): Promise<Value>
  /** One at a time. */
  lease(renew: () => Promise<void>): Promise<void>
  /**
   * `medianMs` is of what was written since the last reading; null: nothing. `stuckMs`: so long the lease waits to be renewed, from the first
   * attempt that was not answered; 0: it does not.
   */
  read(): { readonly medianMs: number | null; readonly stuckMs: number }
}

/** Between two readings; more would tell nothing else. */
const maxKept = 1_000

/** `now`: ms that never jump. */
export function createCommitWatch(now: () => number): CommitWatch {
  let took: number[] = []
  let waitingSince: number | null = null

  const step = async <Value>(commit: () => Promise<Value>): Promise<Value> => {
    const began = now()
    const value = await commit()
    if (took.length < maxKept) took.push(now() - began)
    return value
  }
  return {
    step,
    async lease(renew) {
      waitingSince ??= now()
      await step(renew)
      waitingSince = null
    },
    read() {
      const sorted = took.toSorted((a, b) => a - b)
      took = []
      return {
        medianMs: sorted[sorted.length >> 1] ?? null,
        stuckMs: waitingSince === null ? 0 : now() - waitingSince,
      }
    },
  }
}
