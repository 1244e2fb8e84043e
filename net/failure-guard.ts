/**
 * Owns who is not heard for a while: an address that fails again and again (an unknown SIP peer, wrong passwords, keys, tokens) is first
 * heard less often, and then banned. Addresses count as limits count them (addressGroupOf). What came over UDP without any proof that the
 * sender is at the address counts apart and silences nothing else, so that nobody bans another by packets in its name. Pure: the clock is an
 * argument, memory is bounded, and no ban is forgotten before its end to make room for another.
 */
import { addressGroupOf } from './addresses.ts'
import { createGuessLimit, type GuessLimit } from './guess-limit.ts'
import { createRecent } from './recent.ts'
import { createTokenBuckets, perSecond, takeToken } from './token-bucket.ts'

/** `no_password`: a challenge that nobody answered yet. */
export type Failure = 'unknown_peer' | 'no_password' | 'wrong_password' | 'wrong_key' | 'wrong_token'

/** `isProven`: what is sent to the address arrives, as a handshake or an answer to our nonce shows. */
export type Sender = { readonly address: string; readonly isProven: boolean }

export type Ban = {
  /** As addressGroupOf says it. */
  readonly group: string
  readonly isProven: boolean
  /** `questions`: its calls are heard. An exchange asks on and on whether we are there, and proves its password when it calls. */
  readonly covers: 'questions' | 'all'
  /** The last one before it. */
  readonly failure: Failure
  /** Ms since the epoch. */
  readonly since: number
  readonly until: number
}

export type FailureGuard = {
  /**
   * Of a request of an unknown SIP peer: false for who is slowed and who is banned. It counts as a failure at once, because many may come
   * before the first is answered.
   */
  hears(sender: Sender, isCall: boolean): boolean
  /** What `hears` counted of a call was none, or another one. */
  takeBack(sender: Sender): void
  /** Of a request with a secret, which may be the right one: some are looked at during a ban too. */
  looksAt(sender: Sender): boolean
  /** False: it is not to be told so, because there were too many. */
  failed(sender: Sender, failure: Failure): boolean
  /**
   * A SIP peer showed a right password: for a day a ban only slows it, and what comes in its name by UDP does not count. Keys and tokens are
   * no such proof: who has an account here may still be a scanner.
   */
  proved(address: string): void
  /** Of passwords that people chose, whoever sends them, also who is never banned because it belongs here. */
  readonly guesses: GuessLimit
  /** Nothing that comes from the address by a connection is heard, calls neither. */
  isBanned(address: string): boolean
  /** Ms until it is heard again; 0: it is heard. */
  wait(sender: Sender): number
  bans(): readonly Ban[]
  /** A ban of another process. */
  adopt(ban: Ban): void
  /** All is forgotten of it. */
  lift(group: string): void
}

export type GuardLimits = {
  /** Failures of a SIP peer until it is banned, 2 or more; it is slowed after half of them. 0: nobody is slowed or banned. */
  readonly banAfter: number
  /** Ms. */
  readonly banFor: number
}

type GuardOptions = GuardLimits & {
  readonly now: () => number
  readonly isExempt: (address: string) => boolean
  /** Once for each ban of this process. */
  readonly banned: (ban: Ban) => void
  readonly maxCounted?: number
  readonly maxBans?: number
}

/** Keys and tokens cannot be guessed, and a client with an old one asks on and on: they weigh less. */
const weights: Readonly<Record<Failure, number>> = {
  unknown_peer: 1,
  no_password: 1 / 4,
  wrong_password: 1,
  wrong_key: 1 / 24,
  wrong_token: 1 / 12,
}
/** Ms in which half of `banAfter` is forgiven. */
const forgivenIn = 600_000
const proofLasts = 86_400_000
/** Requests of a banned address that are looked at because they may be right. */
const lookRate = perSecond(1, 5)
const tiny = 1e-9

export function createFailureGuard(options: GuardOptions): FailureGuard {
  const { now, isExempt, banAfter, maxCounted = 20_000 } = options
  // Apart in memory too: packets in made-up names push out nothing that is proven.
  const ledgers = [true, false].flatMap((isProven) =>
    (['all', 'questions'] as const).map((covers) => createLedger(options, { isProven, covers })),
  )
  const [proven, provenQuestions, claimed, claimedQuestions] = ledgers as [Ledger, Ledger, Ledger, Ledger]
  const proofs = createRecent<number>(maxCounted)
  const looks = createTokenBuckets(lookRate, maxCounted)

  const isOpen = (address: string): boolean => banAfter === 0 || address === '' || isExempt(address)
  const hasProved = (group: string): boolean => (proofs.get(group) ?? -Infinity) > now() - proofLasts
  const mayLook = (group: string): boolean => takeToken(looks(group, now()), now())
  const ledgerOf = ({ isProven }: Sender): Ledger => (isProven ? proven : claimed)
  const questionsOf = ({ isProven }: Sender): Ledger => (isProven ? provenQuestions : claimedQuestions)
  /** What is proven silences also who proves nothing. */
  const wait = (sender: Sender, group: string): number => Math.max(proven.wait(group), ledgerOf(sender).wait(group))

  return {
    hears(sender, isCall) {
      if (isOpen(sender.address)) return true
      const group = addressGroupOf(sender.address)
      if (hasProved(group)) return !proven.isBanned(group) || mayLook(group)
      const ledger = isCall ? ledgerOf(sender) : questionsOf(sender)
      const isHeard = wait(sender, group) === 0 && ledger.wait(group) === 0
      ledger.count(group, 'unknown_peer')
      return isHeard
    },
    takeBack(sender) {
      const group = addressGroupOf(sender.address)
      if (!isOpen(sender.address) && !hasProved(group)) ledgerOf(sender).takeBack(group)
    },
    looksAt(sender) {
      if (isOpen(sender.address)) return true
      const group = addressGroupOf(sender.address)
      return !proven.isBanned(group) || mayLook(group)
    },
    failed(sender, failure) {
      if (isOpen(sender.address)) return true
      const group = addressGroupOf(sender.address)
      if (!sender.isProven && hasProved(group)) return true
      return ledgerOf(sender).count(group, failure)
    },
    proved(address) {
      if (!isOpen(address)) proofs.set(addressGroupOf(address), now())
    },
    guesses: createGuessLimit({ now, isExempt: isOpen, maxRemembered: maxCounted }),
    isBanned(address) {
      if (isOpen(address)) return false
      const group = addressGroupOf(address)
      return proven.isBanned(group) && !hasProved(group)
    },
    wait: (sender) => (isOpen(sender.address) ? 0 : wait(sender, addressGroupOf(sender.address))),
    bans: () => ledgers.flatMap((ledger) => ledger.bans()),
    adopt: (ban) => (ban.covers === 'all' ? ledgerOf : questionsOf)({ address: '', ...ban }).adopt(ban),
    lift(group) {
      for (const ledger of ledgers) ledger.lift(group)
    },
  }
}

type Ledger = ReturnType<typeof createLedger>

/** Of one kind of senders. */
function createLedger(options: GuardOptions, kind: Pick<Ban, 'isProven' | 'covers'>) {
  const { now, banAfter, banFor, banned, maxCounted = 20_000, maxBans = 5_000 } = options
  const slowAfter = banAfter / 2
  const forgivenPerMs = slowAfter / forgivenIn
  /** Who is forgotten here began to fail before so many others that he gains less than he spends. */
  const counts = createRecent<{ readonly failures: number; readonly at: number }>(maxCounted)
  const bans = new Map<string, Ban>()

  function failuresOf(group: string): number {
    const count = counts.get(group)
    return count ? Math.max(0, count.failures - Math.max(0, now() - count.at) * forgivenPerMs) : 0
  }
  function banOf(group: string): Ban | null {
    const ban = bans.get(group)
    if (ban && ban.until > now()) return ban
    if (ban) bans.delete(group)
    return null
  }
  function hasRoom(): boolean {
    if (bans.size >= maxBans) for (const group of bans.keys()) banOf(group)
    return bans.size < maxBans
  }

  return {
    isBanned: (group: string): boolean => banOf(group) !== null,
    /** Ms; 0: it is heard. */
    wait(group: string): number {
      const ban = banOf(group)
      if (ban) return ban.until - now()
      const excess = failuresOf(group) + 1 - slowAfter
      return excess < tiny ? 0 : Math.ceil(excess / forgivenPerMs)
    },
    /** One more. False: over what is answered. */
    count(group: string, failure: Failure): boolean {
      // A ban is not made longer: who runs against it by accident comes free.
      if (banOf(group)) return false
      const failures = Math.min(banAfter, failuresOf(group) + weights[failure])
      counts.set(group, { failures, at: now() })
      if (failures > banAfter - tiny && hasRoom()) {
        const ban = { ...kind, group, failure, since: now(), until: now() + banFor }
        bans.set(group, ban)
        counts.delete(group)
        banned(ban)
        return false
      }
      return failures < slowAfter + tiny
    },
    takeBack(group: string): void {
      const failures = failuresOf(group) - weights.unknown_peer
      if (failures > 0) counts.set(group, { failures, at: now() })
      else counts.delete(group)
    },
    bans: (): readonly Ban[] => [...bans.values()].filter(({ until }) => until > now()),
    adopt(ban: Ban): void {
      if ((banOf(ban.group)?.until ?? 0) < ban.until && hasRoom()) bans.set(ban.group, ban)
    },
    lift(group: string): void {
      bans.delete(group)
      counts.delete(group)
    },
  }
}
