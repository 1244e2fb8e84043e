/** Owns deliveries as they are read: what became of each, attempt by attempt; sending one again; forgetting them in time. */
import { toIso } from '../model/clock.ts'
import type { EventType } from '../model/events.ts'
import { toId, type AccountId, type CallId, type DeliveryId, type SubscriptionId } from '../model/ids.ts'
import { cursorOf, toPage, type Page } from '../model/paging.ts'
import type { Delivery, DeliveryQuery, DeliveryStatus } from '../model/webhook.ts'
import type { AttemptFacts } from './delivery-verdicts.ts'
import type { Sql } from './sql.ts'
import { isSeen } from './subscriptions.ts'

type Row = {
  readonly id: DeliveryId
  readonly subscriptionId: SubscriptionId
  readonly callId: CallId
  readonly eventType: EventType
  readonly status: DeliveryStatus
  readonly eventAt: number
  readonly runAt: number
  readonly deliveredAt: number | null
}

type AttemptRow = AttemptFacts & { readonly deliveryId: DeliveryId }

/** Newest first. A `callId` that is no id matches nothing. */
export async function listDeliveries(
  sql: Sql,
  accountId: AccountId,
  subscriptionId: SubscriptionId,
  query: DeliveryQuery,
): Promise<Page<Delivery>> {
  const { limit, status = null, callId } = query
  const cursor = cursorOf<'delivery'>(query)
  const rows = await sql<Row[]>`
    select id, subscription_id, call_id, event_type, status, event_at, run_at, delivered_at from deliveries
    where account_id = ${accountId}
      ${callId === undefined ? inOrderOf(sql, subscriptionId, cursor) : ofCall(sql, { subscriptionId, cursor, callId })}
      ${status === null ? sql`` : withStatus(sql, status)}
    order by subscription_id desc, id desc limit ${limit + 1}`
  const attempts = await attemptsOf(sql, rows)
  return toPage(rows, limit, (row) => toDelivery(row, attempts.get(row.id) ?? []))
}

/** Behind every id. */
const lastId = 'g'

/**
 * Told as what is between two places, so that only an index of the subscription has this order: where the planner takes much for pending it
 * would rather walk through the deliveries of everybody.
 */
const inOrderOf = (sql: Sql, subscriptionId: SubscriptionId, cursor: DeliveryId | null) => sql`
  and subscription_id >= ${subscriptionId} and (subscription_id, id) < (${subscriptionId}, ${cursor ?? lastId})`

const ofCall = (
  sql: Sql,
  { subscriptionId, cursor, callId }: { subscriptionId: SubscriptionId; cursor: DeliveryId | null; callId: string },
) => sql`
  and subscription_id = ${subscriptionId} and call_id = ${toId<'call'>(callId) ?? ''} ${cursor === null ? sql`` : sql`and id < ${cursor}`}`

/** To the letter, as the indexes of the rare ones have it. */
function withStatus(sql: Sql, status: DeliveryStatus) {
  switch (status) {
    case 'pending':
      return sql`and status = 'pending' and event_at > '-infinity'`
    case 'exhausted':
      return sql`and status = 'exhausted'`
    case 'delivered':
      return sql`and status = 'delivered'`
  }
}

export async function findDelivery(
  sql: Sql,
  accountId: AccountId,
  subscriptionId: SubscriptionId,
  id: DeliveryId,
): Promise<Delivery | null> {
  const rows = await sql<Row[]>`
    select id, subscription_id, call_id, event_type, status, event_at, run_at, delivered_at from deliveries
    where account_id = ${accountId} and subscription_id = ${subscriptionId} and id = ${id} and ${hasItsSubscription(sql)}`
  const attempts = await attemptsOf(sql, rows)
  return rows[0] ? toDelivery(rows[0], attempts.get(id) ?? []) : null
}

/**
 * Makes an exhausted delivery due again, at its old place in the lane. While a later one of the lane is under way it waits for the end of
 * that claim. False when there is no such delivery, or it is not exhausted.
 */
export async function resendDelivery(
  sql: Sql,
  key: { accountId: AccountId; subscriptionId: SubscriptionId; id: DeliveryId; now: number },
): Promise<boolean> {
  const { count } = await sql`
    update deliveries d set status = 'pending', behind = false, claimed_by = null, claimed_until = null,
      run_at = greatest(${key.now}::timestamptz, (
        select max(e.claimed_until) from deliveries e
        where e.call_id = d.call_id and e.subscription_id = d.subscription_id and e.status = 'pending'))
    where account_id = ${key.accountId} and subscription_id = ${key.subscriptionId} and id = ${key.id} and status = 'exhausted'
      and ${hasItsSubscription(sql)}`
  return count === 1
}

/** Those of one that nobody sees any more are sent, or go, unseen. */
const hasItsSubscription = (sql: Sql) =>
  sql`exists (select from webhook_subscriptions where webhook_subscriptions.id = subscription_id and ${isSeen(sql)})`

/** Deletes up to `limit` that are no longer pending and were written before `before`, with their attempts. Several may do this at once. */
export async function forgetDeliveries(sql: Sql, before: number, limit: number): Promise<number> {
  const { count } = await sql`
    delete from deliveries where id in (
      select id from deliveries where status <> 'pending' and created_at < ${before}
      order by created_at limit ${limit} for update skip locked)`
  return count
}

async function attemptsOf(sql: Sql, rows: readonly Row[]): Promise<Map<DeliveryId, AttemptRow[]>> {
  const attempts =
    rows.length === 0
      ? []
      : await sql<AttemptRow[]>`
          select delivery_id, attempt, at, duration_ms, status_code, error, response_excerpt from delivery_attempts
          where delivery_id = any(${rows.map(({ id }) => id)}) order by delivery_id, attempt`
  return Map.groupBy(attempts, ({ deliveryId }) => deliveryId)
}

function toDelivery(row: Row, attempts: readonly AttemptRow[]): Delivery {
  const { id, subscriptionId, callId, eventType, status } = row
  return {
    id,
    subscriptionId,
    callId,
    eventType,
    status,
    eventAt: toIso(row.eventAt),
    nextAttemptAt: status === 'pending' ? toIso(row.runAt) : null,
    deliveredAt: row.deliveredAt === null ? null : toIso(row.deliveredAt),
    attempts: attempts.map(({ attempt, at, durationMs, statusCode, error, responseExcerpt }) => ({
      attempt,
      at: toIso(at),
      durationMs,
      statusCode,
      error,
      responseExcerpt,
    })),
  }
}
