/**
 * Owns how many calls an account and a worker may run at once, and who of those that wait is next. A call runs from its creation to its
 * outcome; an outbound phone call from the moment it got its slot. decisions.md, capacity.
 */
import type { AccountId, CallId, NewId, WorkerId } from '../model/ids.ts'
import { insertJobs } from './jobs.ts'
import type { Sql, Transaction } from './sql.ts'

const defaultLimit = 100

/** As the index calls_running has it. */
const runs = (tx: Transaction) =>
  tx`calls.outcome is null
    and (calls.transport = 'webrtc' or calls.direction = 'inbound' or calls.slot_granted_at is not null)`

/** As the index calls_waiting has it: for its time or its turn. */
const unplaced = (sql: Sql | Transaction) =>
  sql`calls.transport = 'sip_trunk' and calls.progress in ('scheduled', 'queued') and calls.slot_granted_at is null
    and calls.outcome is null`

/**
 * A call whose time has come waits, whether it has been told so or not: after a pause of the service
 * those that are overdue are told in any order, and get their places in the right one.
 */
const waits = (sql: Sql | Transaction, now: number) =>
  sql`${unplaced(sql)} and coalesce(calls.scheduled_at, calls.created_at) <= ${now}`

export type RunningCalls = {
  /** Of the account. */
  readonly limit: number
  readonly running: number
  readonly runningOfWorker: number
}

/** Nobody else gives a place of this account away until the transaction ends: two calls cannot both take the last one. */
export async function countRunningCalls(
  tx: Transaction,
  accountId: AccountId,
  workerId: WorkerId,
): Promise<RunningCalls> {
  const limit = await lockPlaces(tx, accountId)
  const [count] = await tx<{ running: number; runningOfWorker: number }[]>`
    select count(*)::int as running, count(*) filter (where worker_id = ${workerId})::int as running_of_worker
    from calls where account_id = ${accountId} and ${runs(tx)}`
  return { limit, running: count?.running ?? 0, runningOfWorker: count?.runningOfWorker ?? 0 }
}

/** Goes from worker to worker along the index: who has nothing that waits costs nothing, and who has a long queue no more than others. */
export async function listAccountsWithWaitingCalls(sql: Sql, now: number): Promise<AccountId[]> {
  const rows = await sql<{ accountId: AccountId }[]>`
    with recursive queues as (
      (select account_id, worker_id from calls where ${unplaced(sql)} order by account_id, worker_id limit 1)
      union all
      select next.account_id, next.worker_id from queues cross join lateral (
        select calls.account_id, calls.worker_id from calls
        where ${unplaced(sql)} and (calls.account_id, calls.worker_id) > (queues.account_id, queues.worker_id)
        order by calls.account_id, calls.worker_id limit 1) next
    )
    select distinct account_id from queues where exists (
      select from calls where calls.account_id = queues.account_id and calls.worker_id = queues.worker_id and ${waits(sql, now)})
    order by account_id`
  return rows.map(({ accountId }) => accountId)
}

/**
 * Gives the free places of one account to those that wait longest, `atMost` of them; each gets a job that dials it, in the same
 * transaction. A worker at its limit is passed over.
 */
export function grantSlots(
  sql: Sql,
  { accountId, now, atMost, newId }: { accountId: AccountId; now: number; atMost: number; newId: NewId },
): Promise<{ readonly granted: number; /** There may be more to give at once. */ readonly more: boolean }> {
  return sql.begin(async (tx) => {
    const limit = await lockPlaces(tx, accountId)
    const places = Math.min(atMost, limit - (await countAllRunning(tx, accountId)))
    if (places <= 0) return { granted: 0, more: false }
    const next = await listLongestWaiting(tx, { accountId, now, places })
    // Asked once more: a call that was canceled a moment ago is let go, and its place is for the next round. Rows are locked in one order, as
    // by who deletes a person with its calls.
    const granted = await tx<{ id: CallId }[]>`
      update calls set slot_granted_at = ${now} where id = any(array(
        select id from calls where id = any(${next}) and ${waits(tx, now)} order by id for no key update)) returning id`
    await insertJobs(
      tx,
      granted.map(({ id: callId }) => ({ id: newId(), accountId, callId, kind: 'dial', runAt: now })),
    )
    return { granted: granted.length, more: next.length === atMost || granted.length < next.length }
  })
}

/**
 * How many places the account has. Its row stays locked until the transaction ends; `no key` so that a step of a call, which refers to
 * the account and holds the row of its call, never waits for who waits for that row.
 */
async function lockPlaces(tx: Transaction, accountId: AccountId): Promise<number> {
  const [account] = await tx<{ limit: number | null }[]>`
    select (config->>'maxConcurrentCalls')::int as "limit" from accounts where id = ${accountId} for no key update`
  return account?.limit ?? defaultLimit
}

async function countAllRunning(tx: Transaction, accountId: AccountId): Promise<number> {
  const [count] = await tx<{ running: number }[]>`
    select count(*)::int as running from calls where account_id = ${accountId} and ${runs(tx)}`
  return count?.running ?? 0
}

/** Of each worker no more than it has room for; of all of them the first. */
async function listLongestWaiting(
  tx: Transaction,
  { accountId, now, places }: { accountId: AccountId; now: number; places: number },
): Promise<CallId[]> {
  const rows = await tx<{ id: CallId }[]>`
    with rooms as (
      select id, greatest(0, least(${places}::bigint, max_concurrent_calls - (
        select count(*) from calls where calls.account_id = ${accountId} and calls.worker_id = workers.id and ${runs(tx)}
      ))) as room
      from workers where account_id = ${accountId})
    select waiting.id from rooms cross join lateral (
      select calls.id, coalesce(scheduled_at, created_at) as since from calls
      where calls.account_id = ${accountId} and calls.worker_id = rooms.id and ${waits(tx, now)}
      order by coalesce(scheduled_at, created_at), calls.id limit rooms.room) waiting
    order by waiting.since, waiting.id limit ${places}`
  return rows.map(({ id }) => id)
}
