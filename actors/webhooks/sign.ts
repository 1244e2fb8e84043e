/**
 * Owns the signature and the headers of a delivery, and their check on the receiving side. Secrets are used to the letter
 * (UTF-8, `whsec_` included), for both signatures. docs/contract/webhooks.md "Delivery headers" and "Signatures";
 * standardwebhooks.com for the `webhook-*` trio (its libraries verify with the secret format `raw`).
 */
import { createHmac, createSecretKey, timingSafeEqual, type KeyObject } from 'node:crypto'
import { toIso } from '../../model/clock.ts'
import type { EventType } from '../../model/events.ts'

export type OutgoingEvent = {
  readonly type: EventType
  /** Stays the same over the retries of one delivery. */
  readonly eventId: string
  /** When the event was generated. */
  readonly eventAt: number
  readonly delivery: 'sync' | 'async'
  readonly accountId: string
  /** 1, 2, … */
  readonly attempt: number
  readonly sentAt: number
  /** To the letter: what is signed is what is sent. */
  readonly body: string
  /** Of the work that it is sent for; absent: nobody traces. */
  readonly traceparent?: string
  /** Of the request of REST that placed the call; none did: the event's own. */
  readonly requestId?: string | null
  /** The subscription's own headers. */
  readonly customHeaders: Readonly<Record<string, string>>
}

/** A string or Buffer as key is imported anew at every use, which costs five times the HMAC itself. */
export const toSigningKey = (secret: string): KeyObject => createSecretKey(secret, 'utf8')

/** The key of a secret that is sealed in its place. Remembers the `limit` that were made last; throws what `open` throws. */
export function createSigningKeys(open: (sealed: string, place: string) => string, limit = 1000) {
  const keys = new Map<string, KeyObject>()
  return (sealed: string, place = ''): KeyObject => {
    // What opened in one place does not stand for another.
    const known = keys.get(`${place} ${sealed}`)
    if (known) return known
    const key = toSigningKey(open(sealed, place))
    const [oldest] = keys.keys()
    if (keys.size >= limit && oldest !== undefined) keys.delete(oldest)
    keys.set(`${place} ${sealed}`, key)
    return key
  }
}

/** The current one, and the one before it while receivers may know that one. */
export type SigningKeys = readonly [KeyObject, KeyObject?]

/** Statuses by which receivers refuse a signature. */
const refusals = [400, 401, 403]

/**
 * Sends by `send` until the signature is not refused. While there are two secrets, X-Service-Signature is of the current one and
 * webhook-signature has both (Standard Webhooks). Receivers that look at the former or expect one signature alone refuse that, and get it signed
 * as before, by either; so whoever knows one of the secrets takes it.
 */
export async function sendSigned<Result extends { readonly kind: string }>(
  [current, former]: SigningKeys,
  send: (keys: SigningKeys) => Promise<Result>,
): Promise<Result> {
  const first = await send(former ? [current, former] : [current])
  if (!former || !isRefusal(first)) return first
  const second = await send([former])
  return isRefusal(second) ? send([current]) : second
}

const isRefusal = (result: { readonly kind: string; readonly status?: unknown }): boolean =>
  result.kind === 'answered' && refusals.includes(Number(result.status))

/** Hex HMAC-SHA256 of the raw body: `X-Service-Signature`. */
export const signatureOf = (key: KeyObject, body: string | Uint8Array): string =>
  createHmac('sha256', key).update(body).digest('hex')

/** `timestamp` in seconds since the epoch, as the header carries it. */
export function standardSignatureOf(key: KeyObject, id: string, timestamp: number, body: string): string {
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`
}

/**
 * Every header of a delivery but Content-Length and Host, which belong to the connection. Custom headers never replace those that the service signs
 * and receivers rely on; what it adds for their convenience they do.
 */
export function headersOf(event: OutgoingEvent, ...[key, former]: SigningKeys): Record<string, string> {
  const seconds = Math.floor(event.sentAt / 1000)
  const standard = (one: KeyObject) => standardSignatureOf(one, event.eventId, seconds, event.body)
  const usual: Record<string, string> = {
    'User-Agent': 'Parley-Webhooks',
    'X-Request-Id': event.requestId ?? event.eventId,
    ...(event.traceparent && { traceparent: event.traceparent }),
  }
  const own: Record<string, string> = {
    'Content-Type': 'application/json',
    'X-Service-Event': event.type,
    'X-Service-Event-Id': event.eventId,
    'X-Service-Timestamp': toIso(event.eventAt),
    'X-Service-Delivery': event.delivery,
    'X-Service-Account-Id': event.accountId,
    'X-Service-Signature': signatureOf(key, event.body),
    'X-Service-Attempt': String(event.attempt),
    'webhook-id': event.eventId,
    'webhook-timestamp': String(seconds),
    'webhook-signature': former ? `${standard(key)} ${standard(former)}` : standard(key),
  }
  const custom = without(event.customHeaders, own)
  return { ...without(usual, custom), ...custom, ...own }
}

/** Names of headers mean the same in any case. */
function without(headers: Readonly<Record<string, string>>, named: Readonly<Record<string, string>>) {
  const names = new Set(Object.keys(named).map((name) => name.toLowerCase()))
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !names.has(name.toLowerCase())))
}

/** For receivers, before the body is parsed. Takes the same time whatever is wrong with the signature. */
export function verifySignature(key: KeyObject, body: string | Uint8Array, signature: string | null): boolean {
  const given = Buffer.from(signature ?? '', 'utf8')
  const expected = Buffer.from(signatureOf(key, body), 'utf8')
  // Lengths are public: the right one is always 64.
  return given.length === expected.length && timingSafeEqual(given, expected)
}
