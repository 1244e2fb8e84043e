/** Owns the TURN credentials that a browser gets: time-limited, derived from the secret shared with coturn (`use-auth-secret`). */
import { createHmac, createSecretKey } from 'node:crypto'
import type { Clock } from '../model/clock.ts'
import type { WebCallSession } from '../model/web-call.ts'

const lifetimeSeconds = 3600

/** draft-uberti-behave-turn-rest: the user name carries the expiry, the password is its HMAC-SHA1. Without TURN there is no server to name. */
export function createIceServers(
  turn: { readonly urls: readonly string[]; readonly secret: string } | null,
  clock: Clock,
): () => WebCallSession['iceServers'] {
  if (!turn) return () => []
  const key = createSecretKey(turn.secret, 'utf8')
  return () => {
    const username = `${Math.floor(clock.now() / 1000) + lifetimeSeconds}:parley`
    const credential = createHmac('sha1', key).update(username).digest('base64')
    return [{ urls: [...turn.urls], username, credential }]
  }
}
