/**
 * Owns how many requests are answered: a token bucket per account and one per client address, in this process. A bucket holds a minute's
 * requests and fills steadily. Answers tell of it as draft-ietf-httpapi-ratelimit-headers does; `t` is the time until there is more.
 */
import { hash } from 'node:crypto'
import type { Clock } from '../model/clock.ts'
import type { AccountId } from '../model/ids.ts'
import { Problem } from '../model/problem.ts'
import { addressGroupOf } from '../net/addresses.ts'
import { createRecent } from './recent.ts'

const minute = 60_000
/** What is remembered at most, of each kind; what was not used lately is forgotten, and begins anew. */
const maxRemembered = 20_000

/** Requests per minute; 0: as many as come. */
export type RateLimits = { readonly perAccount: number; readonly perAddress: number }

/** What is left to one account or address after a request. */
export type Budget = { readonly limit: number; tokens: number; at: number }

/** What a request tells of itself, and where it is noted whom it was charged to. */
type Charged = { readonly info: { readonly remoteAddress: string }; charged: Budget | null }

/** Every method throws Problem RATE_LIMITED when nothing is left. */
export type RequestLimit = {
  /** Of a request that needs no key. What has a `purpose` has a budget of its own. */
  chargeAddress(request: Charged, purpose?: string): void
  /** Before the database is asked about a key: one that was never good is charged to its address. */
  beforeKey(request: Charged, key: string | undefined): void
  /** When the key proved good: its account is charged instead. */
  goodKey(request: Charged, key: string, accountId: AccountId): void
  /** When no account has the key, or not any more. */
  wrongKey(request: Charged, key: string | undefined): void
}

export function createRequestLimit(limits: RateLimits, { now }: Pick<Clock, 'now'>): RequestLimit {
  const accounts = createBuckets(limits.perAccount, now)
  const addresses = createBuckets(limits.perAddress, now)
  const provenKeys = createProvenKeys()
  const charge = (request: Charged, budget: Budget | null): void => {
    request.charged = budget
    if (budget && !take(budget)) throw refusal()
  }
  const chargeAddress = (request: Charged, purpose = ''): void => {
    if (limits.perAddress === 0) return charge(request, null)
    charge(request, addresses.find(purpose + addressGroupOf(request.info.remoteAddress)))
  }
  return {
    chargeAddress,
    beforeKey(request, key) {
      if (limits.perAddress !== 0 && (key === undefined || !provenKeys.has(key))) chargeAddress(request)
    },
    goodKey(request, key, accountId) {
      if (request.charged) {
        request.charged.tokens += 1
        provenKeys.add(key)
      }
      charge(request, limits.perAccount === 0 ? null : accounts.find(accountId))
    },
    wrongKey(request, key) {
      if (request.charged) return
      if (key !== undefined) provenKeys.remove(key)
      chargeAddress(request)
    },
  }
}

/** The answer's headers; nothing when no budget was charged. */
export function setRateLimitHeaders({ headers, status }: Response, charged: Budget | null): void {
  if (charged === null) return
  const left = wholeOf(charged.tokens)
  const wait = secondsToMore(charged)
  headers.set('ratelimit-policy', `"default";q=${charged.limit};w=60`)
  headers.set('ratelimit', `"default";r=${left};t=${wait}`)
  if (status === 429) headers.set('retry-after', String(wait))
}

const refusal = (): Problem =>
  new Problem('RATE_LIMITED', 'Too many requests. Try again after the time in Retry-After.')

/** Ten tenths, added one by one, are a little less than one. */
const tiny = 1e-9
const wholeOf = (tokens: number): number => Math.floor(tokens + tiny)

function take(budget: Budget): boolean {
  if (wholeOf(budget.tokens) < 1) return false
  budget.tokens -= 1
  return true
}

/** Seconds until one more request is free; 0 when nothing is missing. */
function secondsToMore({ tokens, limit }: Budget): number {
  if (tokens >= limit) return 0
  return Math.max(1, Math.ceil(((wholeOf(tokens) + 1 - tokens) * 60) / limit - tiny))
}

function createBuckets(limit: number, now: () => number) {
  const buckets = createRecent<Budget>(maxRemembered)
  const make = (owner: string): Budget => {
    const bucket = { limit, tokens: limit, at: now() }
    buckets.set(owner, bucket)
    return bucket
  }
  return {
    find(owner: string): Budget {
      const bucket = buckets.get(owner) ?? make(owner)
      refill(bucket, now())
      return bucket
    },
  }
}

/** A clock that was set back takes nothing away. */
function refill(bucket: Budget, now: number): void {
  const earned = Math.max(0, now - bucket.at) * (bucket.limit / minute)
  bucket.tokens = Math.min(bucket.limit, bucket.tokens + earned)
  bucket.at = now
}

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
