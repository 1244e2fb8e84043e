/**
 * Owns what an attempt leaves behind: its line in the log and what became of its delivery, in one statement, of many attempts at once. The
 * number of the attempt fences what an expired claim still wants to write.
 */
import { toIso } from '../model/clock.ts'
import type { DeliveryId, SubscriptionId } from '../model/ids.ts'
import type { Sql } from './sql.ts'

/** One attempt, as the log keeps it. */
export type AttemptFacts = {
  readonly attempt: number
  readonly at: number
  readonly durationMs: number
  readonly statusCode: number | null
  readonly error: string | null
  readonly responseExcerpt: string | null
}

export type AttemptRecord = AttemptFacts & {
  readonly id: DeliveryId
  readonly verdict: 'delivered' | 'retry' | 'exhausted'
  /** Of `retry`; null otherwise. */
  readonly runAt: number | null
}

/**
 * Delivered counts whoever holds the claim by now: after a 2xx a delivery is never sent again. The other verdicts change nothing once another
 * claim has begun. With one that is given up goes what stands behind it in the lane and was generated before `staleBefore`, call.ended
 * excepted: a dead endpoint holds up call.ended for the life of one piece of news, and not of each. Again with the same records is harmless.
 */
export async function recordAttempts(
  sql: Sql,
  records: readonly AttemptRecord[],
  { now, staleBefore }: { now: number; staleBefore: number },
): Promise<void> {
  const rows = records.map((record) => ({
    ...record,
    at: toIso(record.at),
    runAt: record.runAt === null ? null : toIso(record.runAt),
  }))
  // Locks are taken in one order everywhere, so that two nodes never wait for each other.
  await sql`
    with records as materialized (
      select * from json_to_recordset(${JSON.stringify(rows)}::text::json) as r(id text, attempt integer, at timestamptz,
        "durationMs" integer, "statusCode" integer, error text, "responseExcerpt" text, verdict text, "runAt" timestamptz)
    ), held as materialized (
      select id from deliveries where id = any(array(select id from records)) order by id for no key update
    ), judged as (
      update deliveries d set
        status = case r.verdict when 'retry' then 'pending' else r.verdict end,
        run_at = coalesce(r."runAt", d.run_at),
        delivered_at = case r.verdict when 'delivered' then ${now}::timestamptz end,
        claimed_by = null, claimed_until = null
      from (select distinct on (id) * from records order by id, verdict <> 'delivered', attempt desc) r
      where d.id = any(array(select id from held)) and r.id = d.id
        and case r.verdict when 'delivered' then d.status <> 'delivered' else d.status = 'pending' and d.attempts = r.attempt end
      returning d.call_id, d.subscription_id, d.seq, d.status
    ), logged as (
      insert into delivery_attempts (delivery_id, attempt, at, duration_ms, status_code, error, response_excerpt)
      select r.id, r.attempt, r.at, r."durationMs", r."statusCode", r.error, r."responseExcerpt"
      from records r join held on held.id = r.id
      on conflict do nothing
    )
    update deliveries d set status = 'exhausted', behind = false
    from judged g
    where g.status = 'exhausted' and d.call_id = g.call_id and d.subscription_id = g.subscription_id and d.seq > g.seq
      and d.status = 'pending' and d.event_type <> 'call.ended' and d.event_at < ${staleBefore}`
}

/** Those of them that something may be sent to. */
export async function findEnabled(sql: Sql, ids: readonly SubscriptionId[]): Promise<ReadonlySet<SubscriptionId>> {
  if (ids.length === 0) return new Set()
  const rows = await sql<{ id: SubscriptionId }[]>`
    select id from webhook_subscriptions where id = any(${[...ids]}) and enabled`
  return new Set(rows.map(({ id }) => id))
}
