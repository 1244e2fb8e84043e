/** Owns what is left in the outbox, as tests ask for it. */
import type { CallId } from '../../model/ids.ts'
import type { Sql } from '../../store/sql.ts'

/**
 * For whoever waits until the outbox has run dry: of one call, or of all. `due` are the heads of lanes that can go now or are under
 * way; `waiting` is the rest: heads that wait for their next attempt, and what stands behind a head.
 */
export async function countPending(
  sql: Sql,
  { callId, now }: { callId: CallId | null; now: number },
): Promise<{ due: number; waiting: number }> {
  const [row] = await sql<{ due: number; pending: number }[]>`
    select count(*)::int as pending, count(*) filter (where d.run_at <= ${now} and not exists (
      select 1 from deliveries e
      where e.call_id = d.call_id and e.subscription_id = d.subscription_id and e.status = 'pending' and e.seq < d.seq))::int as due
    from deliveries d where d.status = 'pending' and (${callId}::text is null or d.call_id = ${callId})`
  return { due: row?.due ?? 0, waiting: (row?.pending ?? 0) - (row?.due ?? 0) }
}
