/**
 * Owns when calls are due: an open loop. Callers come by themselves and do not wait until others were served, so a service that stands still finds as
 * many of them at its door as people would.
 */
import { createRandom } from '../chaos/random.ts'
import type { Arrivals } from './load-job.ts'

/** Ms from the beginning, in order; the same for a seed. While the rate rises they are further apart. */
export function* arrivalsOf({ rate, rampMs, durationMs, calls, seed }: Arrivals): Generator<number> {
  const random = createRandom(seed)
  const rampCalls = (rate * rampMs) / 2000
  for (let index = 0; index < calls; index++) {
    // Half of the space between two calls, so that processes and callers do not beat together.
    const place = index + random.next() / 2
    // The integral of a rate that rises evenly, and is even then, solved for the time.
    const at =
      place < rampCalls ? Math.sqrt((2000 * place * rampMs) / rate) : rampMs + ((place - rampCalls) * 1000) / rate
    if (at >= durationMs) return
    yield at
  }
}
