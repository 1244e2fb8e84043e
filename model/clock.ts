/** Owns the notion of time: everything that waits takes a `Clock`, so that tests turn the hands themselves. */

/** Undoes a timer; calling it again, or after the timer ran, does nothing. */
export type Cancel = () => void

export type Clock = {
  /** Milliseconds since the epoch. */
  now(): number
  /** Runs `action` once, `ms` from now. A pending timer never keeps the process alive by itself. */
  after(ms: number, action: () => void): Cancel
}

/** Resolves with the work, or after `ms`; rejects as the work does. */
export async function within(clock: Pick<Clock, 'after'>, ms: number, work: Promise<unknown>): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>()
  const cancel = clock.after(ms, resolve)
  await Promise.race([work, late]).finally(cancel)
}

/** ISO 8601 in UTC, as every timestamp of the API reads. */
export const toIso = (ms: number): string => new Date(ms).toISOString()
