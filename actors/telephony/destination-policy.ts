/**
 * Owns the guard against toll fraud: where an account may call, and how long its outbound calls may talk in a day. Asked when a call is placed,
 * when it is dialed, and before a caller is passed on.
 */
import type { Clock } from '../../model/clock.ts'
import type { AccountId } from '../../model/ids.ts'
import { Problem } from '../../model/problem.ts'
import type { RefusedArrival } from '../../model/telephony.ts'
import { findAccount, guessHomeCountry } from '../../store/accounts.ts'
import type { Sql, Transaction } from '../../store/sql.ts'
import { talkedSince } from '../../store/telephony.ts'
import { whyNotCalled } from './destination-rules.ts'

const day = 24 * 3_600_000
const minute = 60_000
/** The sum of a day reads every call of it: one answer serves all calls of a few seconds. */
const sumLifetime = 5_000
const maxSums = 1_000

type Wanted = {
  readonly fromNumber: string | null
  readonly toNumber: string | null
  /** Where `toNumber` stands in the request. */
  readonly path: string
}

/** Throws Problem VALIDATION_FAILED with `path`. A call without one of its numbers fails when it is dialed. */
export async function requireDestination(
  tx: Transaction,
  accountId: AccountId,
  { fromNumber, toNumber, path }: Wanted,
): Promise<void> {
  if (toNumber === null) return
  const { isSettled, ...limits } = await limitsOf(tx, accountId)
  const homeCountryOnly = limits.homeCountryOnly && (isSettled || fromNumber !== null)
  const message = whyNotCalled({ ...limits, homeCountryOnly }, toNumber)
  if (message !== null)
    throw new Problem('VALIDATION_FAILED', 'The account may not call this number; see issues.', [{ path, message }])
}

/** Until a number has settled the home of the account, it is that of the number which its worker has. */
async function limitsOf(sql: Sql | Transaction, accountId: AccountId) {
  const limits = (await findAccount(sql, accountId))?.config ?? {}
  if (!limits.homeCountryOnly || limits.homeCountry !== undefined) return { ...limits, isSettled: true }
  const homeCountry = await guessHomeCountry(sql, accountId)
  return { ...limits, ...(homeCountry !== null && { homeCountry }), isSettled: false }
}

export type DestinationPolicy = (accountId: AccountId, toNumber: string) => Promise<RefusedArrival | null>

export function createDestinationPolicy({
  sql,
  clock,
}: {
  readonly sql: Sql
  readonly clock: Clock
}): DestinationPolicy {
  const sums = new Map<AccountId, { readonly until: number; readonly ms: Promise<number> }>()

  /** Ms talked since midnight, UTC. */
  const talkedToday = (accountId: AccountId): Promise<number> => {
    const now = clock.now()
    const known = sums.get(accountId)
    if (known && known.until > now) return known.ms
    const ms = talkedSince(sql, accountId, now - (now % day), now)
    sums.delete(accountId)
    for (const oldest of sums.size >= maxSums ? [...sums.keys()].slice(0, 1) : []) sums.delete(oldest)
    sums.set(accountId, { until: now + sumLifetime, ms })
    ms.catch(() => sums.delete(accountId))
    return ms
  }

  return async (accountId, toNumber) => {
    const limits = await limitsOf(sql, accountId)
    const { dailyMinutes } = limits
    const refused = { sipStatus: 403, accountId, trunkId: null }
    const message = whyNotCalled(limits, toNumber)
    if (message !== null)
      return { ...refused, reason: 'destination_not_allowed', details: `The number ${toNumber} ${message}.` }
    if (dailyMinutes === undefined || (await talkedToday(accountId)) < dailyMinutes * minute) return null
    const details = `Outbound calls of the account have talked their ${dailyMinutes} minutes of today (dailyMinutes); the day begins at 00:00 UTC.`
    return { ...refused, reason: 'daily_minutes_used_up', details }
  }
}
