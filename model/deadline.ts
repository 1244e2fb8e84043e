/** Owns the bound on a wait for work that may never end. */
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

/** For who waits so long and goes on in any case. */
export const goOn = (): void => {}
