/** Owns how long a test waits for one thing: who waits in vain is told what for, and what was there instead. */
import { systemClock } from '../../app/clock.ts'

const limit = 60_000

/** Rejects after a minute. `seen` is asked then. */
export function inTime<Value>(what: string, work: Promise<Value>, seen: () => unknown = () => ''): Promise<Value> {
  const late = Promise.withResolvers<never>()
  const cancel = systemClock.after(limit, () =>
    late.reject(new Error(`waited in vain for ${what}; ${JSON.stringify(seen())}`)),
  )
  return Promise.race([work, late.promise]).finally(cancel)
}

const lookEvery = 10

/** For what tells no one: looks again and again. */
export async function until(what: string, isSo: () => boolean): Promise<void> {
  let isLate = false
  const cancel = systemClock.after(limit, () => (isLate = true))
  while (!isSo()) {
    if (isLate) throw new Error(`waited in vain for ${what}`)
    await new Promise<void>((resolve) => void systemClock.after(lookEvery, resolve))
  }
  cancel()
}
