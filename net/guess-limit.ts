/**
 * Owns how often a password may be guessed: by an address, and of one target (a trunk) by all addresses together. What is over the limit is
 * not looked at, right or wrong, so many guesses at once tell no more than few. A guesser does not lock out who knows the password: whoever
 * proved it from an address and port has a budget of their own there, and while a target is under attack each other address still has one
 * guess. What came over UDP without proof that the sender is at its address counts apart. Pure: the clock is an argument, memory is bounded.
 */
import { addressGroupOf } from './addresses.ts'
import { createRecent } from './recent.ts'
import { createTokenBuckets, giveBack, msUntil, takeToken, type Rate, type TokenBucket } from './token-bucket.ts'

export type Guesser = {
  /** Whose password it is. */
  readonly target: string
  readonly address: string
  readonly port: number
  readonly protocol: string
  /** What is sent to the address arrives there. */
  readonly isProven: boolean
}

export type GuessLimit = {
  /** Of a request with a password. When `wait` is 0 it is looked at now, and counts as wrong unless `right` is called. */
  look(guesser: Guesser): Look
}

/** `wait`: ms until a password from there is looked at. */
export type Look = { readonly wait: number; right(): void }

type GuessLimitOptions = {
  readonly now: () => number
  readonly isExempt: (address: string) => boolean
  readonly maxRemembered?: number
  /** Absent: five at once, then two a minute. */
  readonly perAddress?: Rate
}

const ofAddress: Rate = { capacity: 5, perMs: 1 / 30_000 }
/** Of an address and port that have proved the password: a phone whose new password was typed wrong is soon heard again. */
const ofProven: Rate = { capacity: 5, perMs: 1 / 3_000 }
const ofTarget: Rate = { capacity: 20, perMs: 1 / 30_000 }
/** Of each address while the target has no guesses left. */
const ofAddressUnderAttack: Rate = { capacity: 1, perMs: 1 / 600_000 }
const proofLasts = 86_400_000

export function createGuessLimit(options: GuessLimitOptions): GuessLimit {
  const { now, isExempt, maxRemembered = 20_000, perAddress = ofAddress } = options
  const addresses = createTokenBuckets(perAddress, maxRemembered)
  const provenPlaces = createTokenBuckets(ofProven, maxRemembered)
  const targets = createTokenBuckets(ofTarget, maxRemembered)
  const underAttack = createTokenBuckets(ofAddressUnderAttack, maxRemembered)
  const proofs = createRecent<number>(maxRemembered)

  const hasProved = (key: string): boolean => (proofs.get(key) ?? -Infinity) > now() - proofLasts
  const keysOf = ({ target, address, port, protocol, isProven }: Guesser) => {
    const group = `${isProven ? '' : 'claimed '}${addressGroupOf(address)}`
    return { group, place: `${target} ${protocol} ${address} ${port}`, ofGroup: `${target} ${group}` }
  }
  /** All of them must have a guess left. */
  const bucketsOf = (guesser: Guesser): TokenBucket[] => {
    const { group, place, ofGroup } = keysOf(guesser)
    if (guesser.isProven && hasProved(place)) return [provenPlaces(place, now())]
    const own = addresses(group, now())
    const target = targets(guesser.target, now())
    if (msUntil(target, now()) === 0) return [own, target]
    return hasProved(ofGroup) ? [own] : [own, underAttack(ofGroup, now())]
  }

  return {
    look(guesser) {
      if (isExempt(guesser.address)) return { wait: 0, right: () => undefined }
      const buckets = bucketsOf(guesser)
      const wait = Math.max(...buckets.map((bucket) => msUntil(bucket, now())))
      if (wait === 0) for (const bucket of buckets) takeToken(bucket, now())
      const right = () => {
        for (const bucket of buckets) giveBack(bucket)
        const { place, ofGroup } = keysOf(guesser)
        if (guesser.isProven) for (const key of [place, ofGroup]) proofs.set(key, now())
      }
      return { wait, right }
    },
  }
}
