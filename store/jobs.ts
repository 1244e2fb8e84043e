/** Owns durable waits: one row per (call, kind), due at run_at, claimed under a lease by one node at a time. */
import type { AccountId, CallId, NodeId } from '../model/ids.ts'
import { inTime } from './in-time.ts'
import { relaxedCommit } from './relaxed-commit.ts'
import type { Sql, Transaction } from './sql.ts'

export type JobKind = 'expire_token' | 'post_process' | 'dial_time' | 'dial'

export type Job = {
  readonly id: string
  readonly accountId: AccountId
  readonly callId: CallId
  readonly kind: JobKind
  /** Counts this claim: 1 at the first. */
  readonly attempts: number
  /** When it was due. */
  readonly runAt: number
}

export type NewJob = {
  readonly id: string
  readonly accountId: AccountId
  readonly callId: CallId
  readonly kind: JobKind
  readonly runAt: number
}

export const insertJob = (tx: Transaction, job: NewJob): Promise<void> => insertJobs(tx, [job])

/** A call that has a job of the kind already keeps that one. */
export async function insertJobs(tx: Transaction, jobs: readonly NewJob[]): Promise<void> {
  if (jobs.length === 0) return
  const rows = jobs.map(({ id, accountId, callId, kind, runAt }) => ({ id, accountId, callId, kind, runAt }))
  await tx`insert into jobs ${tx(rows)} on conflict (call_id, kind) do nothing`
}

/** Due anew: a job of the kind that the call has already is another one now, whoever is at work on it. */
export async function renewJob(tx: Transaction, { id, accountId, callId, kind, runAt }: NewJob): Promise<void> {
  await tx`
    insert into jobs ${tx({ id, accountId, callId, kind, runAt })}
    on conflict (call_id, kind) do update set id = excluded.id, run_at = excluded.run_at, attempts = 0,
      claimed_by = null, claimed_until = null`
}

/**
 * Jobs that are due, oldest first; one more than `limit` at most. A job whose claim ran out (its node died) is due again. Dial times come after
 * all others: an account may have any number of calls scheduled for one moment, and what must go on by then, a call that has its place, the
 * end of another account's call, does not wait behind them. One of them goes along with every claim, so that they never wait for ever.
 * `kinds`: all others are left, such as calls that have their place for a node that has room for them. A claim that is lost with the server's memory
 * is made again.
 */
export function claimJobs(
  sql: Sql,
  nodeId: NodeId,
  now: number,
  lease: number,
  limit: number,
  kinds?: readonly JobKind[],
): Promise<Job[]> {
  const ofKinds = kinds === undefined ? sql`` : sql`and kind = any(${[...kinds]}::text[])`
  return sql<Job[]>`
    with ${relaxedCommit(sql)}, first as materialized (
      select id from jobs
      where kind <> 'dial_time' and run_at <= ${now} and (claimed_until is null or claimed_until <= ${now}) ${ofKinds}
      order by run_at, id limit ${limit} for update skip locked
    ), later as materialized (
      select id from jobs
      where kind = 'dial_time' and run_at <= ${now} and (claimed_until is null or claimed_until <= ${now}) ${ofKinds}
      order by run_at, id limit greatest(1, ${limit} - (select count(*) from first)) for update skip locked
    ), claimed as (
      update jobs set claimed_by = ${nodeId}, claimed_until = ${now + lease}, attempts = attempts + 1 from relaxed
      where id = any(array(select id from first union all select id from later)) and ${inTime(sql)}
      returning id, account_id, call_id, kind, attempts, run_at)
    select id, account_id, call_id, kind, attempts, run_at from claimed order by run_at, id`
}

/** Those that are finished. Who is locked by somebody else is left. One whose end is lost with the server's memory is done again, as after the death of a node. */
export async function finishJobs(sql: Sql, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await sql<{ id: string }[]>`
    with ${relaxedCommit(sql)}
    delete from jobs using relaxed where id = any(array(
      select id from jobs where id = any(${[...ids]}::text[]) order by id for update skip locked)) and ${inTime(sql)}
    returning id`
  return new Set(rows.map(({ id }) => id))
}

/** Waits for whoever has locked it. */
export async function finishJob(sql: Sql, id: string): Promise<void> {
  await sql`delete from jobs where id = ${id}`
}

export async function retryJob(sql: Sql, id: string, runAt: number): Promise<void> {
  await sql`update jobs set run_at = ${runAt}, claimed_by = null, claimed_until = null where id = ${id}`
}
