/**
 * Owns how many calls an account and a worker may run at once, and who waits. A call runs from its creation to its outcome; an outbound phone
 * call from the moment it got its slot (grant-slots.ts). docs/contract/rest.md "Capacity".
 */
import type { AccountId, WorkerId } from '../model/ids.ts'
import type { Sql, Transaction } from './sql.ts'

/** Of an account for which no other was set. */
export const defaultLimit = 100

/** As the index calls_running has it. */
export const runs = (tx: Sql | Transaction) =>
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
export const waits = (sql: Sql | Transaction, now: number) =>
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
  const { limit } = await lockPlaces(tx, accountId)
  const [count] = await tx<{ running: number; runningOfWorker: number }[]>`
    select count(*)::int as running, count(*) filter (where worker_id = ${workerId})::int as running_of_worker
    from calls where account_id = ${accountId} and ${runs(tx)}`
  return { limit, running: count?.running ?? 0, runningOfWorker: count?.runningOfWorker ?? 0 }
}

/** Calls of a worker that are not over: that run or ring, or wait for their time, their turn or their client. */
export async function countUnfinished(tx: Transaction, accountId: AccountId, workerId: WorkerId): Promise<number> {
  const ofWorker = tx`calls.account_id = ${accountId} and calls.worker_id = ${workerId}`
  // Each finds its index.
  const [count] = await tx<{ running: number; waiting: number }[]>`
    select (select count(*)::int from calls where ${ofWorker} and ${runs(tx)}) as running,
      (select count(*)::int from calls where ${ofWorker} and ${unplaced(tx)}) as waiting`
  return (count?.running ?? 0) + (count?.waiting ?? 0)
}

/**
 * The term of a recursive query named `queues`: goes from worker to worker along the index, so that who has nothing that waits costs nothing, and who has a
 * long queue no more than others.
 */
export const queues = (sql: Sql) => sql`
  (select account_id, worker_id from calls where ${unplaced(sql)} order by account_id, worker_id limit 1)
  union all
  select next.account_id, next.worker_id from queues cross join lateral (
    select calls.account_id, calls.worker_id from calls
    where ${unplaced(sql)} and (calls.account_id, calls.worker_id) > (queues.account_id, queues.worker_id)
    order by calls.account_id, calls.worker_id limit 1) next`

/** Of `queues`: somebody in it waits. */
export const queueWaits = (sql: Sql, now: number) => sql`
  exists (select from calls where calls.account_id = queues.account_id and calls.worker_id = queues.worker_id and ${waits(sql, now)})`

export async function listAccountsWithWaitingCalls(sql: Sql, now: number): Promise<AccountId[]> {
  const rows = await sql<{ accountId: AccountId }[]>`
    with recursive queues as (${queues(sql)})
    select distinct account_id from queues where ${queueWaits(sql, now)} order by account_id`
  return rows.map(({ accountId }) => accountId)
}

export type Places = {
  readonly limit: number
  readonly maxCallsPerSecond: number | null
}

/**
 * What the account may. Its row stays locked until the transaction ends; `no key` so that a step of a call, which refers to the account and
 * holds the row of its call, never waits for who waits for that row.
 */
export async function lockPlaces(tx: Transaction, accountId: AccountId): Promise<Places> {
  const [account] = await tx<{ limit: number | null; maxCallsPerSecond: number | null }[]>`
    select (config->>'maxConcurrentCalls')::int as "limit", (config->>'maxCallsPerSecond')::float8 as max_calls_per_second
    from accounts where id = ${accountId} for no key update`
  return { limit: account?.limit ?? defaultLimit, maxCallsPerSecond: account?.maxCallsPerSecond ?? null }
}

export async function countAllRunning(tx: Sql | Transaction, accountId: AccountId): Promise<number> {
  const [count] = await tx<{ running: number }[]>`
    select count(*)::int as running from calls where account_id = ${accountId} and ${runs(tx)}`
  return count?.running ?? 0
}
