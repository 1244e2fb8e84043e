/** Owns work that is looked for again and again: when woken, and at least every so often. Never two rounds at once. */
import { within, type Cancel, type Clock } from '../../model/clock.ts'
import type { Log } from '../../model/log.ts'

export type Rounds = {
  /** Something may have come up: look now, or once more if a round is under way. */
  wake(): void
  /** Resolves when a round that began after this call is over. */
  idle(): Promise<void>
  /** No further round; resolves when the last one is over. Idempotent. */
  close(): Promise<void>
}

export function createRounds(deps: {
  readonly clock: Clock
  readonly log: Log
  /** The longest pause between two rounds; all rounds of a process look together. */
  readonly every: number
  /** Wakes it, sooner than that, when something is due; from its making to its close. */
  readonly told?: (wake: () => void) => Cancel
  /**
   * Real ms from the beginning of one round to that of the next, when the first left nothing behind: what comes up meanwhile is found together. Who
   * wakes it after a quiet moment waits for nothing.
   */
  readonly pace?: number
  /** True when there is more to do at once. */
  readonly look: () => Promise<boolean>
}): Rounds {
  let round: Promise<void> | null = null
  let again = false
  let closed = false
  const { pace = 0 } = deps
  let began = -Infinity
  let endPause = (): void => {}
  let cancelPoll = within(deps.clock, deps.every, poll)
  const cancelTold = deps.told?.(wake)

  function poll(): void {
    cancelPoll = within(deps.clock, deps.every, poll)
    wake()
  }
  function wake(): void {
    if (closed) return
    again = true
    round ??= go()
  }
  async function go(): Promise<void> {
    let more = false
    while (again && !closed) {
      if (!more && pace > 0) await pause(began + pace - performance.now())
      if (closed) break
      again = false
      began = performance.now()
      more = await lookSafely()
      again ||= more
    }
    // In the same breath: who wakes a round that has looked for the last time begins another one.
    round = null
  }
  function pause(ms: number): Promise<void> | void {
    if (ms <= 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, ms)
    endPause = () => {
      clearTimeout(timer)
      resolve()
    }
    return promise
  }
  function lookSafely(): Promise<boolean> {
    return deps.look().catch((error: unknown) => {
      deps.log.error('a round of work failed', { error })
      return false
    })
  }

  return {
    wake,
    async idle() {
      wake()
      while (round) await round
    },
    async close() {
      closed = true
      cancelPoll()
      cancelTold?.()
      endPause()
      await round
    },
  }
}
