/**
 * Owns whose turn it is: gives the free places of accounts, workers and trunks to the outbound calls that wait longest, no more of them in a
 * second than account and trunk may begin. Looks when woken, when the next turn is due, and once a second while a call waits, so that a place that another
 * process freed, or a call of before a restart, is found too. Several may run on one database; one whose node has no room for calls gives none.
 */
import type { Cancel, Clock } from '../../model/clock.ts'
import type { AccountId, NewId } from '../../model/ids.ts'
import type { Log } from '../../model/log.ts'
import { listAccountsWithWaitingCalls } from '../../store/call-capacity.ts'
import { grantSlots } from '../../store/grant-slots.ts'
import type { Sql } from '../../store/sql.ts'
import { lookingFor, type DueWatch } from './due-watch.ts'
import { createRounds, type Rounds } from './rounds.ts'

export type Dispatcher = Rounds

const pollEvery = 1_000
/** Ms between two looks: whoever ends a call wakes it. */
const pace = 50
/** Of one account in one transaction: its row is locked so long. */
const atOnce = 100
/** Turns of a fast account are given a few at a time, and not one look each. */
const leastWait = 20

export function createDispatcher(deps: {
  readonly sql: Sql
  readonly clock: Clock
  readonly log: Log
  readonly newId: NewId
  /** Absent: it looks once a second by itself. */
  readonly dueWatch?: Pick<DueWatch, 'on'>
  /** How many calls may begin here now. What it does not give stays in the queue, for this node later or another one now. */
  readonly room?: () => number
  /** Calls with a place have been committed as jobs. */
  readonly wakeJobs: () => void
}): Dispatcher {
  const { sql, clock, log, newId, room = () => Infinity } = deps

  /** Looks again when the limit of calls a second lets the next call begin, where that is before the next round. */
  let cancelTurn: Cancel = () => {}
  let nextAt = Infinity
  /** Of the room, in this round: those that were granted take it when they are dialed. */
  let left = 0
  let first = 0

  /** True when the account has more to give at once. */
  const grant = async (accountId: AccountId): Promise<boolean> => {
    const atMost = Math.min(atOnce, left)
    if (atMost < 1) return false
    const given = await grantSlots(sql, { accountId, now: clock.now(), atMost, newId })
    left -= given.granted
    if (given.granted > 0) deps.wakeJobs()
    nextAt = Math.min(nextAt, given.nextAt ?? Infinity)
    return given.more && left >= 1
  }
  /** A failure in one account does not stop the others. */
  const grantSafely = (accountId: AccountId): Promise<boolean> =>
    grant(accountId).catch((error: unknown) => {
      log.error('the places of an account could not be given away', { accountId, error })
      return false
    })
  const look = async (): Promise<boolean> => {
    let more = false
    nextAt = Infinity
    left = room()
    if (left < 1) return false
    const accounts = await listAccountsWithWaitingCalls(sql, clock.now())
    // Where there is too little room for all, another account is first each time.
    first = (first + 1) % Math.max(1, accounts.length)
    for (const accountId of [...accounts.slice(first), ...accounts.slice(0, first)])
      more = (await grantSafely(accountId)) || more
    awaitTurn()
    return more
  }
  const awaitTurn = (): void => {
    cancelTurn()
    const wait = Math.max(leastWait, nextAt - clock.now())
    if (!closed && wait < pollEvery) cancelTurn = clock.after(wait, rounds.wake)
  }
  let closed = false
  const rounds = createRounds({ clock, log, pace, look, ...lookingFor(deps.dueWatch, ['places'], pollEvery) })
  return {
    ...rounds,
    close() {
      closed = true
      cancelTurn()
      return rounds.close()
    },
  }
}
