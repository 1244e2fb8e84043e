/**
 * Owns what becomes of a datagram that our own code fails at: it is lost, as on the way, and the call and all others of the thread go on. Anybody may
 * send it again, so it is told once a minute.
 */
import type { Log } from '../../model/log.ts'
import { createRateLimit } from '../../net/token-bucket.ts'

type Deps = {
  /** Milliseconds that never jump. */
  readonly now: () => number
  readonly log: Log
}

const tellEvery = 60_000

/** The result makes listeners that never throw, of those that may. */
export function createDatagramGuard({ now, log }: Deps) {
  const mayTell = createRateLimit({ perMs: 1 / tellEvery, capacity: 1 })
  let lost = 0
  return <From>(listener: (datagram: Buffer, from: From) => void) =>
    (datagram: Buffer, from: From): void => {
      try {
        listener(datagram, from)
      } catch (error) {
        lost += 1
        if (mayTell(now())) log.error('datagrams were lost, because handling them failed', { error, lost })
      }
    }
}
