/** Owns the bounds on a wait for work that may never end: a time, and a signal. */
import type { Clock } from './clock.ts'

/**
 * The work, or after `ms` what `late` gives or throws; rejects as the work does. Work that is late goes on: `late` ends it where it can be ended,
 * and what still becomes of it reaches nobody.
 */
export async function deadline<Value, Late>(
  clock: Pick<Clock, 'after'>,
  ms: number,
  work: Promise<Value>,
  late: () => Late | Promise<Late>,
): Promise<Value | Late> {
  const { promise, resolve } = Promise.withResolvers<Late>()
  const cancel = clock.after(ms, () => resolve(Promise.try(late)))
  return Promise.race([work, promise]).finally(cancel)
}

/** The work, or once the signal is aborted the error that `ended` makes. No listener is left: with one, a composed signal lives as long as its sources. */
export async function unlessAborted<Value>(
  work: Promise<Value>,
  signal: AbortSignal,
  ended: () => Error = () => new Error('the request was ended'),
): Promise<Value> {
  const { promise, reject } = Promise.withResolvers<never>()
  const abort = (): void => reject(ended())
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  return Promise.race([work, promise]).finally(() => signal.removeEventListener('abort', abort))
}

/** For who waits so long and goes on in any case. */
export const goOn = (): void => {}
