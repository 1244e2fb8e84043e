/**
 * Owns how often something may happen: a token bucket, which fills steadily and holds what may happen at once after a pause; alone, or one
 * for each of many owners in a table of bounded size. Pure: time is an argument, in ms; a clock that is set back takes nothing away.
 */
import { createRecent } from './recent.ts'

export type Rate = { readonly perMs: number; readonly capacity: number }

/** Its tokens are those of `at`. */
export type TokenBucket = { readonly rate: Rate; tokens: number; at: number }

/** Without a burst of its own: what comes in one second may come at once. */
export const perSecond = (count: number, burst = count): Rate => ({ perMs: count / 1000, capacity: burst })

/** As much as in a minute may come at once. */
export const perMinute = (count: number): Rate => ({ perMs: count / 60_000, capacity: count })

const fullBucket = (rate: Rate, now: number): TokenBucket => ({ rate, tokens: rate.capacity, at: now })

function refill(bucket: TokenBucket, now: number): void {
  const { rate, tokens, at } = bucket
  bucket.tokens = Math.min(rate.capacity, tokens + Math.max(0, now - at) * rate.perMs)
  bucket.at = now
}

/** Ten tenths, added one by one, are a little less than one. */
const tiny = 1e-9

/** Whole ones, as of the last time it was asked. */
export const tokensLeft = ({ tokens }: TokenBucket): number => Math.floor(tokens + tiny)

/** False: there is none. */
export function takeToken(bucket: TokenBucket, now: number): boolean {
  refill(bucket, now)
  if (bucket.tokens + tiny < 1) return false
  bucket.tokens -= 1
  return true
}

/** Ms until there is one; 0: there is. Takes none. */
export function msUntil(bucket: TokenBucket, now: number): number {
  refill(bucket, now)
  return bucket.tokens + tiny >= 1 ? 0 : Math.ceil((1 - bucket.tokens) / bucket.rate.perMs)
}

/** Gives back what was taken from the wrong bucket. */
export function giveBack(bucket: TokenBucket): void {
  bucket.tokens = Math.min(bucket.rate.capacity, bucket.tokens + 1)
}

/** Ms until there is one more than now; 0 when it is full. */
export function msToMore(bucket: TokenBucket): number {
  const { rate, tokens } = bucket
  return tokens >= rate.capacity ? 0 : (tokensLeft(bucket) + 1 - tokens) / rate.perMs
}

/** Of one owner. True takes one. */
export function createRateLimit(rate: Rate): (now: number) => boolean {
  const bucket = fullBucket(rate, 0)
  return (now) => takeToken(bucket, now)
}

/** Whoever was not heard of lately is forgotten, and begins anew with a full bucket: half to all of `maxOwners` are remembered. */
export function createTokenBuckets(rate: Rate, maxOwners: number): (owner: string, now: number) => TokenBucket {
  const buckets = createRecent<TokenBucket>(maxOwners)
  return (owner, now) => {
    const known = buckets.get(owner)
    if (known) return known
    const bucket = fullBucket(rate, now)
    buckets.set(owner, bucket)
    return bucket
  }
}
