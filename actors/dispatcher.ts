/**
 * Owns whose turn it is: gives the free places of accounts and workers to the outbound calls that wait longest. Looks when woken and once a
 * second, so that a place that another process freed, or a call of before a restart, is found too. Several may run on one database.
 */
import type { Clock } from '../model/clock.ts'
import type { AccountId, NewId } from '../model/ids.ts'
import type { Log } from '../model/log.ts'
import { grantSlots, listAccountsWithWaitingCalls } from '../store/call-capacity.ts'
import type { Sql } from '../store/sql.ts'
import { createRounds, type Rounds } from './rounds.ts'

export type Dispatcher = Rounds

const pollEvery = 1_000
/** Of one account in one transaction: its row is locked so long. */
const atOnce = 100

export function createDispatcher(deps: {
  readonly sql: Sql
  readonly clock: Clock
  readonly log: Log
  readonly newId: NewId
  /** Calls with a place have been committed as jobs. */
  readonly wakeJobs: () => void
}): Dispatcher {
  const { sql, clock, log, newId } = deps

  /** True when the account has more to give at once. */
  const grant = async (accountId: AccountId): Promise<boolean> => {
    const { granted, more } = await grantSlots(sql, { accountId, now: clock.now(), atMost: atOnce, newId })
    if (granted > 0) deps.wakeJobs()
    return more
  }
  /** What goes wrong in one account is not another's trouble. */
  const grantSafely = (accountId: AccountId): Promise<boolean> =>
    grant(accountId).catch((error: unknown) => {
      log.error('the places of an account could not be given away', { accountId, error })
      return false
    })
  const look = async (): Promise<boolean> => {
    let more = false
    for (const accountId of await listAccountsWithWaitingCalls(sql, clock.now()))
      more = (await grantSafely(accountId)) || more
    return more
  }
  return createRounds({ clock, log, every: pollEvery, look })
}
