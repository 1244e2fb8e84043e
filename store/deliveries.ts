/**
 * Owns the outbox: deliveries written with the state change they tell of, claimed in lanes, and what became of them.
 * A lane is one (call, subscription): its oldest pending delivery is the only one that may be claimed. A claim is a lease; the number
 * of the attempt fences what an expired claim still wants to write. decisions.md, Webhooks.
 */
import type { CallEvent, EventType } from '../model/events.ts'
import type { AccountId, CallId, DeliveryId, NewId, NodeId, SubscriptionId, WorkerId } from '../model/ids.ts'
import type { JsonObject } from '../model/json.ts'
import type { Sql, Transaction } from './sql.ts'
import { findMatchingAny } from './subscriptions.ts'

/** The copy of a call.tool_call goes the same way as the events of the call. */
export type OutboxEvent = CallEvent | { readonly type: 'call.tool_call'; readonly data: JsonObject }

/**
 * One row for each event and enabled subscription that matches it; order of `events` is order of delivery. Called inside the
 * transaction that changes the call, after it locked the call's row: that keeps the lanes of concurrent transactions in order.
 * A second call.ended for the same call and subscription changes nothing.
 */
export async function enqueueDeliveries(
  tx: Transaction,
  batch: {
    readonly accountId: AccountId
    readonly workerId: WorkerId
    readonly callId: CallId
    readonly events: readonly OutboxEvent[]
    readonly now: number
    readonly newId: NewId
  },
): Promise<void> {
  const { accountId, workerId, callId, events, now, newId } = batch
  if (events.length === 0) return
  const eventTypes = [...new Set(events.map(({ type }) => type))]
  const subscriptions = await findMatchingAny(tx, { accountId, workerId, eventTypes })
  const rows = events.flatMap(({ type, data }) => {
    const body = JSON.stringify({ type, data })
    const takers = subscriptions.filter(({ eventType }) => eventType === type || eventType === '*')
    return takers.map(({ id }) => ({
      id: newId<'delivery'>(),
      accountId,
      subscriptionId: id,
      callId,
      eventType: type,
      body,
      eventAt: now,
      runAt: now,
      createdAt: now,
    }))
  })
  if (rows.length === 0) return
  await tx`
    insert into deliveries ${tx(rows)}
    on conflict (call_id, subscription_id) where event_type = 'call.ended' do nothing`
}

export type ClaimedDelivery = {
  readonly id: DeliveryId
  readonly accountId: AccountId
  readonly callId: CallId
  readonly subscriptionId: SubscriptionId
  readonly eventType: EventType
  readonly body: string
  readonly eventAt: number
  /** Counts this claim: 1 at the first. */
  readonly attempt: number
  readonly url: string
  readonly sealedSecret: string
  readonly headers: Readonly<Record<string, string>>
  readonly enabled: boolean
}

export type Claim = {
  readonly nodeId: NodeId
  readonly now: number
  readonly limit: number
  /** How long the claim holds, ms. Longer than sending and recording can take. */
  readonly lease: number
  /** Of one subscription at most so many. */
  readonly perSubscription: number
  /** Subscriptions that have enough under way. */
  readonly except: readonly SubscriptionId[]
}

/** Heads of lanes that are due, longest due first. A delivery whose claim ran out (its node died) is due again. */
export function claimDue(
  sql: Sql,
  { nodeId, now, limit, lease, perSubscription, except }: Claim,
): Promise<ClaimedDelivery[]> {
  // Twice the limit is looked at: enough to go past subscriptions with long queues, which are in `except` at the next claim.
  return sql<ClaimedDelivery[]>`
    with due as (
      select d.id, d.subscription_id, d.run_at, d.seq from deliveries d
      where d.status = 'pending' and d.run_at <= ${now} and (d.claimed_until is null or d.claimed_until <= ${now})
        and d.subscription_id <> all(${[...except]})
        and not exists (
          select 1 from deliveries e
          where e.call_id = d.call_id and e.subscription_id = d.subscription_id and e.status = 'pending' and e.seq < d.seq)
      order by d.run_at, d.seq limit ${2 * limit}
    ), ranked as (
      select id, row_number() over (partition by subscription_id order by run_at, seq) as place from due
    ), taken as materialized (
      select d.id from deliveries d join ranked r on r.id = d.id
      where r.place <= ${perSubscription} and d.status = 'pending'
        and (d.claimed_until is null or d.claimed_until <= ${now})
      order by d.run_at, d.seq limit ${limit}
      for update of d skip locked
    )
    update deliveries d set claimed_by = ${nodeId}, claimed_until = ${now + lease}, attempts = d.attempts + 1
    from taken, webhook_subscriptions s
    where d.id = taken.id and s.id = d.subscription_id
    returning d.id, d.account_id, d.call_id, d.subscription_id, d.event_type, d.body, d.event_at, d.attempts as attempt,
      s.url, s.signing_secret as sealed_secret, s.headers, s.enabled`
}

export type AttemptRecord = {
  readonly id: DeliveryId
  readonly attempt: number
  readonly statusCode: number | null
  readonly error: string | null
}

/** Whoever holds the claim by now: after a 2xx a delivery is never sent again. */
export async function recordDelivered(sql: Sql, record: AttemptRecord, now: number): Promise<void> {
  await sql`
    update deliveries set status = 'delivered', delivered_at = ${now}, last_status_code = ${record.statusCode},
      last_error = null, claimed_by = null, claimed_until = null
    where id = ${record.id} and status <> 'delivered'`
}

/** Nothing when another claim has begun meanwhile. */
export async function recordRetry(sql: Sql, record: AttemptRecord, runAt: number): Promise<void> {
  await sql`
    update deliveries set run_at = ${runAt}, last_status_code = ${record.statusCode}, last_error = ${record.error},
      claimed_by = null, claimed_until = null
    where id = ${record.id} and status = 'pending' and attempts = ${record.attempt}`
}

/**
 * Given up. What stands behind it in the lane and was generated before `staleBefore` goes with it, call.ended excepted: a dead
 * endpoint holds up call.ended for the life of one piece of news, and not of each.
 */
export async function recordExhausted(
  sql: Sql | Transaction,
  record: AttemptRecord,
  staleBefore: number,
): Promise<void> {
  await sql`
    with given_up as (
      update deliveries set status = 'exhausted', last_status_code = ${record.statusCode}, last_error = ${record.error},
        claimed_by = null, claimed_until = null
      where id = ${record.id} and status = 'pending' and attempts = ${record.attempt}
      returning call_id, subscription_id, seq)
    update deliveries d set status = 'exhausted', last_error = 'too old when its turn came'
    from given_up g
    where d.call_id = g.call_id and d.subscription_id = g.subscription_id and d.seq > g.seq and d.status = 'pending'
      and d.event_type <> 'call.ended' and d.event_at < ${staleBefore}`
}

/** Ends the queue of an endpoint that is too slow for its events: all but call.ended that nobody works on. Returns how many. */
export async function giveUpStale(sql: Sql, { before, now }: { before: number; now: number }): Promise<number> {
  const { count } = await sql`
    update deliveries set status = 'exhausted', last_error = 'too old when its turn came'
    where status = 'pending' and run_at < ${before} and event_at < ${before} and event_type <> 'call.ended'
      and (claimed_until is null or claimed_until <= ${now})`
  return count
}

/** What a stopping node still holds is due again at once. The attempt counts: nobody knows whether it arrived. */
export async function releaseDeliveries(sql: Sql, nodeId: NodeId): Promise<void> {
  await sql`
    update deliveries set claimed_by = null, claimed_until = null where claimed_by = ${nodeId} and status = 'pending'`
}

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
