/** Owns the notion of time: everything that waits takes a `Clock`, so that tests turn the hands themselves. */

/** Undoes a timer; calling it again, or after the timer ran, does nothing. */
export type Cancel = () => void

export type Clock = {
  /** Milliseconds since the epoch. */
  now(): number
  /** Runs `action` once, `ms` from now. A pending timer never keeps the process alive by itself. */
  after(ms: number, action: () => void): Cancel
  /**
   * Runs `action` once, `ms` from now or somewhat sooner: all that waits so is run together, and the process wakes up once for it. Absent: it has nothing to
   * wait together with.
   */
  within?(ms: number, action: () => void): Cancel
}

/** For what is done every so often and may as well be done with other such things. */
export const within = (clock: Pick<Clock, 'after' | 'within'>, ms: number, action: () => void): Cancel =>
  clock.within?.(ms, action) ?? clock.after(ms, action)

/** Resolves after `ms`, or at once when the signal ends it: then with false. */
export function pause(clock: Pick<Clock, 'after'>, ms: number, signal?: AbortSignal): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  if (signal?.aborted) resolve(false)
  const ended = (): void => resolve(false)
  const cancel = clock.after(ms, () => resolve(true))
  signal?.addEventListener('abort', ended, { once: true })
  return promise.finally(() => {
    cancel()
    signal?.removeEventListener('abort', ended)
  })
}

/** ISO 8601 in UTC, as every timestamp of the API reads. */
export const toIso = (ms: number): string => new Date(ms).toISOString()
