/**
 * Owns the question whether work waits that is due: jobs, webhook deliveries, documents to be read. One statement that only reads, for all who would
 * otherwise each try to claim every second, which is a transaction even where there is nothing.
 */
import { waitingSubscriptions } from './deliveries.ts'
import type { JobKind } from './jobs.ts'
import type { Sql } from './sql.ts'

export type DueWork = JobKind | 'deliveries' | 'documents'

const jobKinds: readonly JobKind[] = ['expire_token', 'post_process', 'dial_time', 'dial']

/** What is due now and claimed by nobody, or by somebody whose claim ran out. Reads up to the first of each kind, along the indexes of what waits. */
export async function findDueWork(sql: Sql, now: number): Promise<ReadonlySet<DueWork>> {
  const isDue = sql`run_at <= ${now} and (claimed_until is null or claimed_until <= ${now})`
  const due = jobKinds.map(
    (kind) => sql`
    select ${kind} as work where exists (
      select from jobs where ${kind === 'dial_time' ? sql`kind = 'dial_time'` : sql`kind <> 'dial_time' and kind = ${kind}`} and ${isDue})
    union all`,
  )
  const rows = await sql<{ work: DueWork }[]>`
    with recursive waiting as (${waitingSubscriptions(sql)})
    ${due}
    select 'documents' where exists (select from document_jobs where ${isDue})
    union all
    select 'deliveries' where exists (
      select from waiting w cross join lateral (
        select from deliveries d
        where d.subscription_id = w.subscription_id and d.status = 'pending' and not d.behind and ${isDue}
        order by d.run_at, d.seq limit 1) head)`
  return new Set(rows.map(({ work }) => work))
}
