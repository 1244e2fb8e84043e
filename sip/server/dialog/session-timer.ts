/** Owns session timers: who refreshes a call how often, and what becomes of one that nobody refreshes. RFC 4028. */
import { hasTag } from '../message/header-fields.ts'
import type { HeaderField, SipResponse } from '../message/message.ts'
import { secondsOf, sessionExpiresOf, type SessionExpires } from '../message/numbered-fields.ts'

/** §4, §5: no interval may be shorter. Seconds. */
export const minSessionSeconds = 90
/** Longer ones are no use, and would not fit a timer. */
const maxSessionSeconds = 24 * 60 * 60

type Fields = { readonly headers: readonly HeaderField[] }

export type SessionTimer = { readonly seconds: number; readonly weRefresh: boolean }

/** §10: half of the interval is over, and the end; the BYE comes a little before the peer's. Ms. */
export const timesOf = ({ seconds }: SessionTimer): { readonly refresh: number; readonly expiry: number } => ({
  refresh: seconds * 500,
  expiry: (seconds - Math.min(32, seconds / 3)) * 1000,
})

/** §9: of an INVITE or UPDATE that came. */
export const isTooShort = (request: Fields): boolean =>
  (sessionExpiresOf(request)?.seconds ?? minSessionSeconds) < minSessionSeconds

/**
 * §9: what our 2xx says. A peer without `timer` cannot refresh, so we do; where the peer can and names nobody, it refreshes: it knows the way
 * through its NAT.
 */
export function answerSession(request: Fields): {
  readonly headers: HeaderField[]
  readonly timer: SessionTimer | null
} {
  const asked = sessionExpiresOf(request)
  if (!asked) return { headers: [], timer: null }
  const peerCan = hasTag(request, 'Supported', 'timer') || hasTag(request, 'Require', 'timer')
  const refresher = peerCan ? (asked.refresher ?? 'uac') : 'uas'
  const seconds = Math.min(asked.seconds, maxSessionSeconds)
  const value = sessionValue({ seconds, refresher })
  const require = refresher === 'uac' ? [{ name: 'Require', value: 'timer' }] : []
  return {
    headers: [{ name: 'Session-Expires', value }, ...require],
    timer: { seconds, weRefresh: refresher === 'uas' },
  }
}

/** §7.1, §7.4: of a request of ours. Within a call the roles stay: the sender is the uac. `null`: nobody refreshes yet. */
export function askForSession(seconds: number, weRefresh: boolean | null): HeaderField[] {
  const refresher = weRefresh === null ? null : weRefresh ? 'uac' : 'uas'
  const minimum = seconds > minSessionSeconds ? [{ name: 'Min-SE', value: String(minSessionSeconds) }] : []
  return [{ name: 'Session-Expires', value: sessionValue({ seconds, refresher }) }, ...minimum]
}

/** §7.3: of our INVITE once more, with the interval that a 422 wants and who was to refresh. Null: it wants none that could be had. */
export function askForLonger({ seconds, refresher }: SessionExpires, refusal: Fields): HeaderField[] | null {
  const wanted = wantedInterval(refusal, seconds)
  if (wanted === null) return null
  const value = sessionValue({ seconds: wanted, refresher })
  return [
    { name: 'Session-Expires', value },
    { name: 'Min-SE', value: String(wanted) },
  ]
}

export const sessionValue = ({ seconds, refresher }: SessionExpires): string =>
  refresher === null ? String(seconds) : `${seconds};refresher=${refresher}`

/** §7.2: of a 2xx to a request of ours. */
export function agreedSession(response: SipResponse): SessionTimer | null {
  const agreed = sessionExpiresOf(response)
  if (!agreed) return null
  const seconds = Math.min(Math.max(agreed.seconds, minSessionSeconds), maxSessionSeconds)
  return { seconds, weRefresh: agreed.refresher !== 'uas' }
}

/** §7.3: what a 422 wants at least. Null: it does not say, or wants no more than was offered. */
export function wantedInterval(response: Fields, offered: number): number | null {
  const wanted = secondsOf(response, 'Min-SE')
  return wanted !== null && wanted > offered && wanted <= maxSessionSeconds ? wanted : null
}
