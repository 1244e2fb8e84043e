/**
 * Owns how many messages one address may send: a token bucket each, in a table of bounded size. It is asked before anything of a message is
 * read, so a flood costs little more than the packets themselves.
 */
import { addressGroupOf, isLoopback } from '../../../net/addresses.ts'
import { createTokenBuckets, perSecond, takeToken } from '../../../net/token-bucket.ts'

export type ArrivalLimits = {
  /** 0: as many as come. */
  readonly messagesPerSecond: number
  /** What may come at once after a pause. */
  readonly messageBurst: number
  /** Addresses that are remembered; what was not heard of lately is forgotten, and begins anew. */
  readonly maxAddresses: number
  readonly exemptsLoopback: boolean
}

/** False: it is to be dropped without an answer. */
export type ArrivalLimit = (address: string) => boolean

export function createArrivalLimit(limits: ArrivalLimits, now: () => number): ArrivalLimit {
  const { messagesPerSecond, messageBurst, maxAddresses, exemptsLoopback } = limits
  const bucketOf = createTokenBuckets(perSecond(messagesPerSecond, messageBurst), maxAddresses)
  return (address) => {
    if (messagesPerSecond === 0 || (exemptsLoopback && isLoopback(address))) return true
    const at = now()
    return takeToken(bucketOf(addressGroupOf(address), at), at)
  }
}
