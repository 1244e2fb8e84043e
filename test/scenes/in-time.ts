/** Owns how a test waits: for what tells it, and for what must be looked at again. Who waits in vain is told what for, and what was there instead. */
import { setTimeout as pause } from 'node:timers/promises'
import { systemClock } from '../../app/clock.ts'

const longest = 60_000
const lookEvery = 10

const inVain = (what: string, seen: () => unknown): Error =>
  new Error(`waited in vain for ${what}; ${JSON.stringify(seen())}`)

/** Rejects after a minute. `seen` is asked then. */
export function inTime<Value>(what: string, work: Promise<Value>, seen: () => unknown = () => ''): Promise<Value> {
  const late = Promise.withResolvers<never>()
  const cancel = systemClock.after(longest, () => late.reject(inVain(what, seen)))
  return Promise.race([work, late.promise]).finally(cancel)
}

type Nothing = false | null | undefined

/**
 * Looks until there is something, and gives what that is: for what tells nobody when it comes. Rejects after a minute of real time, with `look`
 * as it is written and what `seen` says then.
 */
export async function until<Value>(
  look: () => Value | Nothing | Promise<Value | Nothing>,
  seen: () => unknown = () => '',
): Promise<Value> {
  let isLate = false
  const cancel = systemClock.after(longest, () => (isLate = true))
  try {
    for (;;) {
      const found = await look()
      if (found !== false && found !== null && found !== undefined) return found
      if (isLate) throw inVain(String(look), seen)
      await pause(lookEvery)
    }
  } finally {
    cancel()
  }
}
