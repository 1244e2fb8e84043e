/** Owns trying again what failed and may succeed a moment later. */
import { pause, type Clock } from './clock.ts'

/** Ms from the `failures`th failure to the next attempt; null: there is none, and the error is thrown. */
export type RetryWait = (error: unknown, failures: number) => number | null

export type Retrying = {
  readonly clock: Pick<Clock, 'after'>
  readonly wait: RetryWait
  /** Ends a wait; nothing is tried after it. */
  readonly signal?: AbortSignal | undefined
}

/** Throws what the last attempt threw. */
export async function retry<Value>({ clock, wait, signal }: Retrying, attempt: () => Promise<Value>): Promise<Value> {
  for (let failures = 1; ; failures++) {
    try {
      return await attempt()
    } catch (error) {
      const ms = wait(error, failures)
      if (ms === null || !(await pause(clock, ms, signal))) throw error
    }
  }
}

/** One attempt more than there are delays. An error that may not pass is thrown at once. */
export const waitsOf =
  (delays: readonly number[], mayPass: (error: unknown) => boolean = () => true): RetryWait =>
  (error, failures) =>
    mayPass(error) ? (delays[failures - 1] ?? null) : null

const spread = 0.2

/** A fifth shorter to a fifth longer, so that those who failed together do not come back together. 0 ≤ random < 1. */
export const jittered = (ms: number, random: number): number => ms * (1 - spread + 2 * spread * random)
