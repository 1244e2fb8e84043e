/**
 * Owns who is a stranger here: an address that no trunk names, and that has answered none of our requests. What strangers ask is counted by
 * the guard, which says whom nobody answers any more. Of trunks' addresses nothing is counted: anybody can write their name on a packet.
 */
import type { Clock } from '../model/clock.ts'
import type { Log } from '../model/log.ts'
import type { Telephony } from '../model/telephony.ts'
import { addressGroupOf } from '../net/addresses.ts'
import type { FailureGuard, Sender } from '../net/failure-guard.ts'
import type { GuessLimit } from '../net/guess-limit.ts'
import { createRecent } from '../net/recent.ts'
import { createRateLimit, perSecond } from '../net/token-bucket.ts'

/** As a request says it: the address without its port, and `udp`, `tcp` or `tls`. */
export type From = { readonly address: string; readonly protocol: string }

/**
 * Of a request that belongs to no call and no transaction: is it looked at? Asked before anything is answered. A promise: it is not known yet
 * who that is; when it resolves this is to be asked once more, with `isDecided`. It never rejects.
 */
export type Hears = (asked: From & { readonly method: string }, isDecided: boolean) => boolean | Promise<void>

/** Of connections that peers open, by their addresses. */
export type Peers = {
  /** False for who is banned: asked before anything is read of it, and again while it is open. */
  admits(address: string): boolean
  /** It belongs here: a trunk names it, or it answered a request of ours. */
  isKnown(address: string): boolean
}

export type Strangers = Peers & {
  readonly hears: Hears
  /** It was answered by a challenge. */
  challenged(from: From): void
  /** `isThere`: the sender is at its address although it came by UDP. */
  wrongPassword(from: From, isThere: boolean): void
  proved(from: From, isThere: boolean): void
  /** Passwords are guessed no faster by who belongs here than by strangers. */
  readonly guesses: GuessLimit
  /** Answered a request of ours. */
  answered(address: string): void
}

type StrangersDeps = {
  readonly guard: FailureGuard
  readonly telephony: Pick<Telephony, 'knows'>
  readonly clock: Pick<Clock, 'now'>
  readonly log: Log
}

/** Ms for which an answer about an address is believed: a trunk may get it meanwhile. */
const believedFor = 30_000
/** Ms for which who answered us is known. */
const answeredFor = 3_600_000
const maxRemembered = 10_000
/** Senders write addresses as they like, and the database is asked about each: beyond this nobody is taken for a stranger. */
const questions = perSecond(200)

export function createStrangers({ guard, telephony, clock, log }: StrangersDeps): Strangers {
  const remembered = createRecent<{ readonly isKnown: boolean; readonly until: number }>(maxRemembered)
  const asked = new Map<string, Promise<void>>()
  const mayAsk = createRateLimit(questions)

  /** Null: it is to be asked. */
  const isKnown = (address: string): boolean | null => {
    const entry = remembered.get(address)
    return entry && entry.until > clock.now() ? entry.isKnown : null
  }
  async function find(address: string): Promise<void> {
    try {
      const found = await telephony.knows(address)
      if (isKnown(address) === null) remembered.set(address, { isKnown: found, until: clock.now() + believedFor })
      // A trunk may have got the address since it was banned.
      if (found) guard.lift(addressGroupOf(address))
    } catch (error) {
      log.error('it is not known whether an address is of a trunk', { error })
    } finally {
      asked.delete(address)
    }
  }
  /** Null: too many are asked for. */
  function ask(address: string): Promise<void> | null {
    const running = asked.get(address)
    if (running || !mayAsk(clock.now())) return running ?? null
    const finding = find(address)
    asked.set(address, finding)
    return finding
  }

  return {
    isKnown: (address) => isKnown(address) === true,
    admits(address) {
      if (!guard.isBanned(address)) return true
      const known = isKnown(address)
      if (known === null) void ask(address)
      return known === true
    },
    hears({ method, ...from }, isDecided) {
      const known = isKnown(from.address)
      if (known === true) return true
      if (known === null && remembered.get(from.address)?.isKnown === true) {
        // It is asked for again beside the call: the database may be away for longer than a caller waits.
        void ask(from.address)
        return true
      }
      const sender = senderOf(from, false)
      const isCall = method === 'INVITE'
      if (known === false) return guard.hears(sender, isCall)
      const asking = ask(from.address)
      if (guard.wait(sender) === 0) return isDecided || (asking ?? true)
      return guard.hears(sender, isCall)
    },
    challenged(from) {
      if (isKnown(from.address) !== false) return
      guard.takeBack(senderOf(from, false))
      guard.failed(senderOf(from, false), 'no_password')
    },
    wrongPassword(from, isThere) {
      if (isKnown(from.address) !== false) return
      guard.takeBack(senderOf(from, false))
      guard.failed(senderOf(from, isThere), 'wrong_password')
    },
    proved(from, isThere) {
      if (isKnown(from.address) === false) guard.takeBack(senderOf(from, false))
      if (senderOf(from, isThere).isProven) guard.proved(from.address)
    },
    guesses: guard.guesses,
    answered: (address) => remembered.set(address, { isKnown: true, until: clock.now() + answeredFor }),
  }
}

const senderOf = ({ address, protocol }: From, isThere: boolean): Sender => ({
  address,
  isProven: isThere || protocol !== 'udp',
})
