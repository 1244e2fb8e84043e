/**
 * Owns how many messages one address may send: a token bucket each, in a table of bounded size. It is asked before anything of a message is
 * read, so a flood costs little more than the packets themselves.
 */
import { addressGroupOf, isLoopback } from '../../../net/addresses.ts'

export type ArrivalLimits = {
  /** 0: as many as come. */
  readonly messagesPerSecond: number
  /** What may come at once after a pause. */
  readonly messageBurst: number
  /** Addresses that are remembered; what was not heard of lately is forgotten, and begins anew. */
  readonly maxAddresses: number
  readonly exemptsLoopback: boolean
}

type Bucket = { tokens: number; at: number }

/** False: it is to be dropped without a word. */
export type ArrivalLimit = (address: string) => boolean

export function createArrivalLimit(limits: ArrivalLimits, now: () => number): ArrivalLimit {
  const { messagesPerSecond, messageBurst, maxAddresses, exemptsLoopback } = limits
  let young = new Map<string, Bucket>()
  let old = new Map<string, Bucket>()

  /** Two generations, of which the older is dropped when the younger is full: half to all of `maxAddresses` are remembered. */
  function bucketOf(group: string): Bucket {
    const known = young.get(group)
    if (known) return known
    const bucket = old.get(group) ?? { tokens: messageBurst, at: now() }
    if (young.size >= maxAddresses / 2) {
      old = young
      young = new Map()
    }
    young.set(group, bucket)
    return bucket
  }

  return (address) => {
    if (messagesPerSecond === 0 || (exemptsLoopback && isLoopback(address))) return true
    const bucket = bucketOf(addressGroupOf(address))
    const at = now()
    // A clock that was set back takes nothing away.
    const earned = (Math.max(0, at - bucket.at) * messagesPerSecond) / 1000
    bucket.tokens = Math.min(messageBurst, bucket.tokens + earned)
    bucket.at = at
    if (bucket.tokens < 1) return false
    bucket.tokens -= 1
    return true
  }
}
