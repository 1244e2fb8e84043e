/**
 * Owns the question whether work waits that is due: jobs, webhook deliveries, documents to be read, calls without a place, what has been deleted, and what
 * dead nodes have left behind. One statement that only reads, for all who would otherwise each look, or try to claim, every second.
 */
import { queues, queueWaits } from './call-capacity.ts'
import { isOrphan, type OrphanQuestion } from './call-steps.ts'
import { waitingSubscriptions } from './deliveries.ts'
import type { JobKind } from './jobs.ts'
import { hasDeadNodes } from './nodes.ts'
import { removalsWait } from './removals.ts'
import type { Sql } from './sql.ts'

export type DueWork = JobKind | 'deliveries' | 'documents' | 'places' | 'removals' | 'orphans'

/** Of who takes over what others have left behind. */
export type LeftQuestion = OrphanQuestion & {
  /** Of dead nodes whose claims have been released. */
  readonly knownDeaths: readonly string[]
}

const jobKinds: readonly JobKind[] = ['expire_token', 'post_process', 'dial_time', 'dial']

/**
 * What is due now and claimed by nobody, or by somebody whose claim ran out. Reads up to the first of each kind, along the indexes of what waits.
 * Without `left` nothing is said of orphans.
 */
export async function findDueWork(
  sql: Sql,
  now: number,
  left: LeftQuestion | null = null,
): Promise<ReadonlySet<DueWork>> {
  const isDue = sql`run_at <= ${now} and (claimed_until is null or claimed_until <= ${now})`
  const due = jobKinds.map(
    (kind) => sql`
    select ${kind} as work where exists (
      select from jobs where ${kind === 'dial_time' ? sql`kind = 'dial_time'` : sql`kind <> 'dial_time' and kind = ${kind}`} and ${isDue})
    union all`,
  )
  const orphans =
    left &&
    sql`
    union all
    select 'orphans' where exists (select from calls where ${isOrphan(sql, left)}) or ${hasDeadNodes(sql, left.knownDeaths)}`
  const rows = await sql<{ work: DueWork }[]>`
    with recursive waiting as (${waitingSubscriptions(sql)}), queues as (${queues(sql)})
    ${due}
    select 'documents' where exists (select from document_jobs where ${isDue})
    union all
    select 'deliveries' where exists (
      select from waiting w cross join lateral (
        select from deliveries d
        where d.subscription_id = w.subscription_id and d.status = 'pending' and not d.behind and ${isDue}
        order by d.run_at, d.seq limit 1) head)
    union all
    select 'places' where exists (select from queues where ${queueWaits(sql, now)})
    union all
    select 'removals' where ${removalsWait(sql, now)}
    ${orphans ?? sql``}`
  return new Set(rows.map(({ work }) => work))
}
