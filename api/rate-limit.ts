/**
 * Owns how many requests are answered: a token bucket per account and one per client address, in this process. A bucket holds a minute's
 * requests and fills steadily. Answers tell of it as draft-ietf-httpapi-ratelimit-headers does; `t` is the time until there is more.
 */
import { hash } from 'node:crypto'
import type { Clock } from '../model/clock.ts'
import type { AccountId } from '../model/ids.ts'
import { Problem } from '../model/problem.ts'
import { addressGroupOf } from '../net/addresses.ts'
import type { FailureGuard } from '../net/failure-guard.ts'
import { createRecent } from '../net/recent.ts'
import {
  createTokenBuckets,
  giveBack,
  msToMore,
  msUntil,
  perMinute,
  takeToken,
  tokensLeft,
  type TokenBucket,
} from '../net/token-bucket.ts'

/** What is remembered at most, of each kind; what was not used lately is forgotten, and begins anew. */
const maxRemembered = 20_000

/** Requests per minute; 0: as many as come. */
export type RateLimits = { readonly perAccount: number; readonly perAddress: number }

/** What a request tells of itself, and where it is noted whom it was charged to. */
type Charged = { readonly info: { readonly remoteAddress: string }; charged: TokenBucket | null }

/** Every method throws Problem RATE_LIMITED when nothing is left. */
export type RequestLimit = {
  /** Of a request that needs no key. What has a `purpose` has a budget of its own. */
  chargeAddress(request: Charged, purpose?: string): void
  /** Before the database is asked about a key: one that was never good is charged to its address. */
  beforeKey(request: Charged, key: string | undefined): void
  /** When the key proved good: its account is charged instead. */
  goodKey(request: Charged, key: string, accountId: AccountId): void
  /** When no account has the key, or not any more: 429 takes the place of 401 for an address that sent too many. */
  wrongKey(request: Charged, key: string | undefined): void
  /** What an answer tells of that was charged to nobody: what its address has left. Takes nothing, never throws; null: any number. */
  ofAddress(info: Charged['info']): TokenBucket | null
}

type WhoFails = Pick<FailureGuard, 'looksAt' | 'failed' | 'wait'>

/** Without a guard wrong keys cost requests and nothing else. */
export function createRequestLimit(
  limits: RateLimits,
  { now }: Pick<Clock, 'now'>,
  guard: WhoFails | null = null,
): RequestLimit {
  const accounts = createTokenBuckets(perMinute(limits.perAccount), maxRemembered)
  const addresses = createTokenBuckets(perMinute(limits.perAddress), maxRemembered)
  const provenKeys = createProvenKeys()
  const charge = (request: Charged, bucket: TokenBucket): void => {
    request.charged = bucket
    if (!takeToken(bucket, now())) throw refusal()
  }
  const chargeAddress = (request: Charged, purpose = ''): void => {
    if (limits.perAddress !== 0) charge(request, addresses(purpose + addressGroupOf(request.info.remoteAddress), now()))
  }
  /** Of a connection, so nobody else is at the address. */
  const senderOf = ({ info }: Charged) => ({ address: info.remoteAddress, isProven: true })
  const refuseFor = (request: Charged, ms: number): never => {
    request.charged = emptyFor(ms, request.charged)
    throw refusal()
  }
  return {
    chargeAddress,
    ofAddress({ remoteAddress }) {
      if (limits.perAddress === 0) return null
      const bucket = addresses(addressGroupOf(remoteAddress), now())
      msUntil(bucket, now())
      return bucket
    },
    beforeKey(request, key) {
      if (key !== undefined && provenKeys.has(key)) return
      if (key !== undefined && guard?.looksAt(senderOf(request)) === false) refuseFor(request, lookPause)
      if (limits.perAddress !== 0) chargeAddress(request)
    },
    goodKey(request, key, accountId) {
      if (request.charged || limits.perAddress === 0) provenKeys.add(key)
      if (request.charged) giveBack(request.charged)
      request.charged = null
      if (limits.perAccount !== 0) charge(request, accounts(accountId, now()))
    },
    wrongKey(request, key) {
      if (key !== undefined) provenKeys.remove(key)
      if (!request.charged) chargeAddress(request)
      const sender = senderOf(request)
      if (key !== undefined && guard?.failed(sender, 'wrong_key') === false) refuseFor(request, guard.wait(sender))
    },
  }
}

/** Ms: a right key is worth another try soon, also while its address is banned for wrong ones. */
const lookPause = 1_000

/** What an answer tells of when it is not the number of requests that was too high: nothing is left, and more comes after `ms`. */
export const emptyFor = (ms: number, charged: TokenBucket | null): TokenBucket => {
  const capacity = charged?.rate.capacity ?? 1
  return { rate: { capacity, perMs: 1 / Math.max(1, ms) }, tokens: 0, at: 0 }
}

/** The answer's headers; nothing where nothing is bounded. */
export function setRateLimitHeaders({ headers, status }: Response, charged: TokenBucket | null): void {
  if (charged === null) return
  const wait = secondsToMore(charged)
  headers.set('ratelimit-policy', `"default";q=${charged.rate.capacity};w=60`)
  headers.set('ratelimit', `"default";r=${tokensLeft(charged)};t=${wait}`)
  if (status === 429) headers.set('retry-after', String(wait))
}

/** Until one more request is free; 0 when nothing is missing. What the division adds is no second more. */
function secondsToMore(charged: TokenBucket): number {
  const ms = msToMore(charged)
  return ms === 0 ? 0 : Math.max(1, Math.ceil(ms / 1000 - 1e-9))
}

const refusal = (): Problem =>
  new Problem('RATE_LIMITED', 'Too many requests. Try again after the time in Retry-After.')

/**
 * Keys that were good once: a flood of wrong keys from one address (a proxy's, for instance) must not shut out who has a right one. They
 * are still asked about at every request. Only a digest is kept.
 */
function createProvenKeys() {
  const digests = createRecent<true>(maxRemembered)
  return {
    has: (key: string): boolean => digests.get(digestOf(key)) === true,
    add: (key: string): void => digests.set(digestOf(key), true),
    remove: (key: string): void => digests.delete(digestOf(key)),
  }
}

const digestOf = (key: string): string => hash('sha256', key, 'base64')
