/** Owns how much waits in the queues of all processes, counted up to a bound: who asks must not cost more the more there is. */
import type { JobKind } from './jobs.ts'
import type { Sql } from './sql.ts'

/** Of each kind. */
const mostCounted = 10_000

/** Those under way are among them. */
export async function countDueJobs(sql: Sql, now: number): Promise<readonly { kind: JobKind; due: number }[]> {
  return sql<{ kind: JobKind; due: number }[]>`
    select kind, count(*)::int as due from (
      (select kind from jobs where kind <> 'dial_time' and run_at <= ${now} order by run_at limit ${mostCounted})
      union all
      (select kind from jobs where kind = 'dial_time' and run_at <= ${now} order by run_at limit ${mostCounted})) due
    group by kind`
}

export async function countWaitingDeliveries(sql: Sql): Promise<number> {
  const [row] = await sql<{ waiting: number }[]>`
    select count(*)::int as waiting from (
      select from deliveries where status = 'pending' and event_at > '-infinity' limit ${mostCounted}) pending`
  return row?.waiting ?? 0
}
