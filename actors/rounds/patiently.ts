/** Owns trying again what fails for a moment. */
import type { Clock } from '../../model/clock.ts'

type Patience = {
  readonly clock: Clock
  /** Ms between attempts: one more than there are delays. */
  readonly delays: readonly number[]
  /** Other errors are thrown at once. */
  mayPass(error: unknown): boolean
}

/** Throws what the last attempt threw. */
export async function patiently<Value>(
  { clock, delays, mayPass }: Patience,
  attempt: () => Promise<Value>,
): Promise<Value> {
  for (const delay of delays) {
    try {
      return await attempt()
    } catch (error) {
      if (!mayPass(error)) throw error
      await new Promise<void>((resolve) => void clock.after(delay, resolve))
    }
  }
  return attempt()
}
