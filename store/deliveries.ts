/**
 * Owns the outbox: deliveries written with the state change they tell of, claimed in lanes, and what became of them.
 * A lane is one (call, subscription): its oldest pending delivery, its head, is the only one that may be claimed. A claim is a lease; the number
 * of the attempt fences what an expired claim still wants to write. docs/contract/webhooks.md "Order".
 */
import { toIso } from '../model/clock.ts'
import type { CallEvent, EventType } from '../model/events.ts'
import type { AccountId, CallId, DeliveryId, NewId, NodeId, SubscriptionId, WorkerId } from '../model/ids.ts'
import type { JsonObject } from '../model/json.ts'
import type { Fragment, Sql, Transaction } from './sql.ts'
import type { SealedSubscription } from './subscription-secrets.ts'
import { holdMatching, sealedColumns, type Taker } from './subscriptions.ts'

/** The copy of a call.tool_call goes the same way as the events of the call. */
export type OutboxEvent = CallEvent | { readonly type: 'call.tool_call'; readonly data: JsonObject }

/** What is announced of one call at once; order of `events` is order of delivery. */
type Batch = {
  readonly accountId: AccountId
  readonly callId: CallId
  readonly events: readonly OutboxEvent[]
  readonly now: number
}

/**
 * One row for each event and enabled subscription that matches it. Called inside the transaction that tells why. It locks the call's row: that
 * keeps the lanes of concurrent transactions in order, and lets nothing get behind call.ended.
 */
export async function enqueueDeliveries(
  tx: Transaction,
  { newId, workerId, ...batch }: Batch & { workerId: WorkerId; newId: NewId },
): Promise<void> {
  const { accountId, callId, events } = batch
  if (events.length === 0) return
  const eventTypes = [...new Set(upToEnded(events).map(({ type }) => type))]
  const [, takers] = await Promise.all([
    tx`select from calls where id = ${callId} for no key update`,
    holdMatching(tx, { accountId, workerId, eventTypes }),
  ])
  const deliveries = newDeliveriesOf([{ ...batch, takers }], newId)
  if (deliveries.rows.length > 0) await insertionOf(tx, deliveries)
}

/** Rows as they are given to the database, a body once, however many subscriptions take it. `event`: its place among the bodies. */
export type NewDeliveries = {
  readonly rows: readonly { readonly id: DeliveryId; readonly subscriptionId: SubscriptionId; readonly event: number }[]
  readonly bodies: readonly { readonly event: number; readonly callId: CallId; readonly body: string }[]
}

/** `takers`: all that get something of the call. */
export function newDeliveriesOf(
  batches: readonly (Batch & { readonly takers: readonly Taker[] })[],
  newId: NewId,
): NewDeliveries {
  const events = batches.flatMap((batch) => upToEnded(batch.events).map((event) => ({ ...batch, ...event })))
  const rows = events.flatMap(({ type, takers }, event) => {
    const taking = takers.filter(({ eventType }) => eventType === type || eventType === '*')
    return taking.map(({ id }) => ({ id: newId<'delivery'>(), subscriptionId: id, event }))
  })
  if (rows.length === 0) return { rows, bodies: [] }
  const bodies = events.map(({ accountId, callId, now, type, data }, event) => {
    return { event, accountId, callId, at: toIso(now), type, body: JSON.stringify({ type, data }) }
  })
  return { rows, bodies }
}

/**
 * A statement, or a part of one, of calls whose rows are locked, for subscriptions that are held. A call has one call.ended; what comes after it, another
 * call.ended included, changes nothing. Due at once, for those whose clock is behind this node's as well. `only`: further joins, to the subscription of `r` and
 * the call of `b`.
 */
export const insertionOf = (
  sql: Sql | Transaction,
  { rows, bodies }: NewDeliveries,
  only: Fragment = sql``,
): Fragment => sql`
  insert into deliveries (id, account_id, subscription_id, call_id, event_type, body, event_at, run_at, created_at)
  select r.id, b."accountId", r."subscriptionId", b."callId", b.type, b.body, b.at, least(b.at, clock_timestamp()), b.at
  from json_to_recordset(${JSON.stringify(rows)}::text::json) as r(id text, "subscriptionId" text, event integer)
    join json_to_recordset(${JSON.stringify(bodies)}::text::json) as b(event integer, "accountId" text, "callId" text,
      at timestamptz, type text, body text) on b.event = r.event ${only}
  where b."callId" <> all(array(
    select call_id from deliveries
    where call_id = any(${[...new Set(bodies.map(({ callId }) => callId))]}::text[]) and event_type = 'call.ended'))
  order by r.event, r.id`

function upToEnded(events: readonly OutboxEvent[]): readonly OutboxEvent[] {
  const ended = events.findIndex(({ type }) => type === 'call.ended')
  return ended === -1 ? events : events.slice(0, ended + 1)
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
  readonly enabled: boolean
  /** Of the request of REST that placed the call; null: none did. */
  readonly requestId: string | null
} & Omit<SealedSubscription, 'id' | 'accountId'>

export type Claim = {
  readonly nodeId: NodeId
  readonly now: number
  readonly limit: number
  /** How long the claim holds, ms. Longer than sending and recording can take. */
  readonly lease: number
  /** Of one subscription at most so many, of those in `rooms` at most what it says. */
  readonly perSubscription: number
  readonly rooms: ReadonlyMap<SubscriptionId, number>
}

/** Of a subscription beyond its room: so many at the front of its queue may stand behind another of their lane, in the first look and in the next ones. */
const aheadAtFirst = 16
const aheadThen = 1_000
/** Bounds what a claim marks of a queue in which nothing is marked yet; the next claim goes on. */
const looksOfClaim = 20

/**
 * Heads of lanes that are due, longest due first. A delivery whose claim ran out (its node died) is due again. What is found to stand behind
 * another of its lane is marked, so that no claim reads it again before the other has ended (0034_lane_heads.sql); while the front of a queue is
 * full of those, it looks once more.
 */
export async function claimDue(sql: Sql, claim: Claim): Promise<ClaimedDelivery[]> {
  for (let look = 1; ; look += 1) {
    const ahead = look === 1 ? aheadAtFirst : aheadThen
    const rows = await claimOnce(sql, claim, ahead)
    const claimed = rows.filter((row): row is ClaimedDelivery & Marked => row.id !== null)
    if (claimed.length > 0 || (rows[0]?.marked ?? 0) < aheadAtFirst || look === looksOfClaim) return claimed
  }
}

/** How many were found to stand behind another. */
type Marked = { readonly marked: number }

/** Of deliveries `d` with given ids: told plainly, a planner that takes pending ones for few would rather read all of them than look ids up. */
const isPending = (sql: Sql) => sql`case d.status when 'pending' then true end`

/** Of `with recursive waiting`: those of which something is pending, and null behind the last one. From one to the next along the index of heads. */
export const waitingSubscriptions = (sql: Sql) => sql`
  (select subscription_id from deliveries where status = 'pending' and not behind order by subscription_id limit 1)
  union all
  select (
    select d.subscription_id from deliveries d
    where d.status = 'pending' and not d.behind and d.subscription_id > w.subscription_id
    order by d.subscription_id limit 1)
  from waiting w where w.subscription_id is not null`

/**
 * One row without an id where nothing was claimed. Walks from subscription to subscription along the index, so that a long queue costs nobody
 * anything but its own subscription, and nothing while that one is full. Ids go from step to step as an array: the planner takes a set of unknown
 * size for a large one, and reads the whole table. Whatever is locked by somebody else is passed over: a claim waits for nobody.
 */
function claimOnce(sql: Sql, { nodeId, now, limit, lease, perSubscription, rooms }: Claim, ahead: number) {
  const isFree = sql`(d.claimed_until is null or d.claimed_until <= ${now})`
  return sql<((ClaimedDelivery | { readonly id: null }) & Marked)[]>`
    with recursive waiting as (${waitingSubscriptions(sql)}), rooms as (
      select w.subscription_id, least(coalesce(r.room, ${perSubscription}), ${limit}) as room
      from waiting w left join unnest(${[...rooms.keys()]}::text[], ${[...rooms.values()]}::integer[])
        as r(subscription_id, room) on r.subscription_id = w.subscription_id
      where w.subscription_id is not null
        and not exists (select from webhook_subscriptions where id = w.subscription_id and deleted_at is not null)
    ), found as materialized (
      select f.id, f.run_at, f.seq, f.before, rooms.subscription_id, rooms.room from rooms cross join lateral (
        select d.id, d.run_at, d.seq, (
          select e.id from deliveries e
          where e.call_id = d.call_id and e.subscription_id = d.subscription_id and e.status = 'pending' and e.seq < d.seq
          order by e.seq desc limit 1) as before
        from deliveries d
        where d.subscription_id = rooms.subscription_id and d.status = 'pending' and not d.behind and d.run_at <= ${now} and ${isFree}
        order by d.run_at, d.seq limit rooms.room + ${ahead}) f
      where rooms.room > 0
    ), held as materialized (
      select d.id from deliveries d where d.id = any(array(select before from found where before is not null)) and ${isPending(sql)}
      for share skip locked
    ), followers as materialized (
      select d.id from deliveries d
      where d.id = any(array(select f.id from found f join held on held.id = f.before)) and ${isPending(sql)} and ${isFree}
      for no key update skip locked
    ), marked as (
      update deliveries set behind = true where id = any(array(select id from followers)) returning id
    ), taken as materialized (
      select d.id from deliveries d
      where d.id = any(array(
          select id from (
            select id, run_at, seq, room, row_number() over (partition by subscription_id order by run_at, seq) as place
            from found where before is null) heads
          where place <= room order by run_at, seq limit ${limit}))
        and ${isPending(sql)} and ${isFree}
      for no key update skip locked
    ), claimed as (
      update deliveries d set claimed_by = ${nodeId}, claimed_until = ${now + lease}, attempts = d.attempts + 1
      from webhook_subscriptions s
      where d.id = any(array(select id from taken)) and s.id = d.subscription_id
      returning d.id, d.account_id, d.call_id, d.subscription_id, d.event_type, d.body, d.event_at, d.attempts as attempt,
        s.url, s.enabled, ${sealedColumns(sql)}, (select request_id from calls where calls.id = d.call_id) as request_id
    )
    select claimed.*, count.marked from (select count(*)::int as marked from marked) count left join claimed on true`
}

/** Given up in one statement, which stays a short one however long a queue has become. */
export const staleAtOnce = 10_000

/**
 * Ends the queue of an endpoint that is too slow for its events: all but call.ended that nobody works on. Returns how many, `staleAtOnce` at
 * most. What stands behind another and what does not end apart: the second takes a mark away, and waits for whoever ends what it marks.
 */
export async function giveUpStale(sql: Sql, { before, now }: { before: number; now: number }): Promise<number> {
  const giveUp = async (behind: boolean, limit: number): Promise<number> => {
    const { count } = await sql`
      update deliveries set status = 'exhausted', behind = false where id = any(array(
        select id from deliveries
        where status = 'pending' and event_type <> 'call.ended' and event_at < ${before} and run_at < ${before} and behind = ${behind}
          and (claimed_until is null or claimed_until <= ${now})
        order by event_at limit ${limit} for no key update skip locked))`
    return count
  }
  const followers = await giveUp(true, staleAtOnce)
  return followers + (await giveUp(false, staleAtOnce - followers))
}

/** Heads of a subscription that may be due before one that is claimed: claims take the longest due first. */
const aheadOfClaimed = 1_000

/**
 * What these nodes held is due again at once. The attempt counts: nobody knows whether it arrived. Looks where claims are made, at the front of
 * each queue: an index of what is claimed would have to be written at each claim. What stands further behind by now is due when its claim runs out.
 */
export async function releaseDeliveries(sql: Sql, nodeIds: readonly NodeId[]): Promise<void> {
  const ids = [...nodeIds]
  await sql`
    with recursive waiting as (${waitingSubscriptions(sql)}), front as materialized (
      select f.id, f.claimed_by from waiting w cross join lateral (
        select d.id, d.claimed_by from deliveries d
        where d.subscription_id = w.subscription_id and d.status = 'pending' and not d.behind
        order by d.run_at, d.seq limit ${aheadOfClaimed}) f
    )
    update deliveries d set claimed_by = null, claimed_until = null
    where d.id = any(array(select id from front where claimed_by = any(${ids}::text[])))
      and d.claimed_by = any(${ids}::text[]) and ${isPending(sql)}`
}
