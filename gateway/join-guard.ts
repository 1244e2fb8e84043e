/**
 * Owns what one client address may cost the signaling socket: how many tokens that are none it may try, and how many calls it may have at once.
 * A token that was found to be made up costs no second question to the database.
 */
import { hash } from 'node:crypto'
import { Problem } from '../model/problem.ts'
import type { Admission } from '../model/web-call.ts'
import { addressGroupOf, isLoopback } from '../net/addresses.ts'
import type { FailureGuard } from '../net/failure-guard.ts'
import { createRecent } from '../net/recent.ts'
import { createTokenBuckets, giveBack, perMinute, takeToken } from '../net/token-bucket.ts'

export type JoinLimits = {
  /** Tokens that are none, of one address. 0: any number. */
  readonly triesPerMinute: number
  /** Of one address, or one /64 of IPv6. */
  readonly maxCallsPerAddress: number
  /** Of an address that stands for many clients. */
  readonly isExempt: (address: string) => boolean
}

export const defaultJoinLimits: JoinLimits = { triesPerMinute: 600, maxCallsPerAddress: 500, isExempt: isLoopback }

export type JoinGuard = {
  /** What `ask` admits. Throws the problem of a token that is not admitted, or RATE_LIMITED without asking. */
  admitted<Found extends object>(address: string, token: string, ask: () => Promise<Found | Problem>): Promise<Found>
  /** A place for one more call of this address, until it is given back. Throws RATE_LIMITED. */
  take(address: string): { give(): void }
}

type Deps = {
  readonly isOurs: Admission['isOurs']
  /** Against addresses that make tokens up; without it each is looked at, as often as the limits say. */
  readonly guard: Pick<FailureGuard, 'looksAt' | 'failed'> | null
  readonly now: () => number
}

/** Addresses and tokens; what was not heard of lately is forgotten. */
const maxRemembered = 20_000

export function createJoinGuard({ isOurs, guard, now }: Deps, limits: JoinLimits): JoinGuard {
  const triesOf = createTokenBuckets(perMinute(limits.triesPerMinute), maxRemembered)
  const madeUp = createRecent<true>(maxRemembered)
  const calls = new Map<string, number>()

  /** Whom to give it back to when the token proves good. */
  function charge(address: string) {
    if (limits.triesPerMinute === 0) return null
    const tries = triesOf(addressGroupOf(address), now())
    if (!takeToken(tries, now())) throw tooManyTokens()
    return tries
  }

  async function isMadeUp(token: string, digest: string): Promise<boolean> {
    if (await isOurs(token)) return false
    madeUp.set(digest, true)
    return true
  }

  return {
    async admitted(address, token, ask) {
      const sender = { address, isProven: true }
      if (guard?.looksAt(sender) === false) throw tooManyTokens()
      const tries = charge(address)
      const digest = hash('sha256', token, 'base64')
      const result = madeUp.get(digest) ? unknownToken() : await ask()
      if (!(result instanceof Problem) || result.type !== 'UNAUTHORIZED') {
        if (tries) giveBack(tries)
        if (result instanceof Problem) throw result
        return result
      }
      const isGuess = madeUp.get(digest) ?? (await isMadeUp(token, digest))
      if (isGuess && guard?.failed(sender, 'wrong_token') === false) throw tooManyTokens()
      throw result
    },
    take(address) {
      const group = addressGroupOf(address)
      const held = calls.get(group) ?? 0
      if (held >= limits.maxCallsPerAddress && !limits.isExempt(address)) throw tooManyCalls()
      calls.set(group, held + 1)
      let isGiven = false
      return {
        give() {
          if (isGiven) return
          isGiven = true
          const left = (calls.get(group) ?? 1) - 1
          if (left > 0) calls.set(group, left)
          else calls.delete(group)
        },
      }
    },
  }
}

const unknownToken = (): Problem => new Problem('UNAUTHORIZED', 'the token is unknown, used or expired')
const tooManyTokens = (): Problem => new Problem('RATE_LIMITED', 'Too many tokens that are none. Try again later.')
const tooManyCalls = (): Problem => new Problem('RATE_LIMITED', 'Too many calls from one address. Try again later.')
