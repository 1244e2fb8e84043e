/** Owns webhook subscriptions in the database. Secrets are sealed at rest. docs/contract/webhooks.md "Subscriptions". */
import { randomBytes } from 'node:crypto'
import { toIso } from '../model/clock.ts'
import { deliveryModeOf, type EventType, type SubscribedType } from '../model/events.ts'
import { toId, type AccountId, type CallId, type NewId, type SubscriptionId, type WorkerId } from '../model/ids.ts'
import { Problem } from '../model/problem.ts'
import {
  defaultHookTimeout,
  type SubscriptionChange,
  type SubscriptionRequest,
  type WebhookSubscription,
} from '../model/webhook.ts'
import { withoutNulls } from '../model/without-nulls.ts'
import { orderRemoval, walkRemoval } from './removals.ts'
import { requireRoom } from './room.ts'
import { givenColumns } from './given-columns.ts'
import { openedOrNull, type SecretBox } from './secret-box.ts'
import type { Sql, Transaction } from './sql.ts'
import {
  formerSecretPlace,
  openHeaders,
  sealHeaders,
  secretOverlap,
  signingSecretPlace,
  type SealedSubscription,
} from './subscription-secrets.ts'

type Row = {
  readonly id: SubscriptionId
  readonly accountId: AccountId
  readonly workerId: WorkerId | null
  readonly eventType: SubscribedType
  readonly url: string
  readonly headers: Record<string, string>
  readonly sealedHeaders: string | null
  readonly timeoutMs: number
  readonly enabled: boolean
  readonly required: boolean
  readonly failingSince: number | null
  readonly disabledReason: 'gone' | 'failing' | null
  readonly createdAt: number
  readonly updatedAt: number
}

/** What sending to a subscription needs. */
export type MatchingSubscription = SealedSubscription & {
  readonly workerId: WorkerId | null
  readonly eventType: SubscribedType
  readonly url: string
  readonly timeoutMs: number
  readonly required: boolean
  /** Of the request of REST that placed the call; only where it is found by its call. */
  readonly requestId?: string | null
}

/** The only answer that carries the secret in plaintext. Throws Problem VALIDATION_FAILED for a worker the account has not got. */
export async function createSubscription(
  sql: Sql,
  box: SecretBox,
  { accountId, request, newId, now }: { accountId: AccountId; request: SubscriptionRequest; newId: NewId; now: number },
): Promise<WebhookSubscription> {
  const { eventType, url, headers = {}, timeoutMs = defaultHookTimeout } = request
  const workerId = request.workerId === undefined ? null : await requireWorker(sql, accountId, request.workerId)
  await requireRoom(sql, accountId, 'webhook_subscriptions')
  const secret = `whsec_${randomBytes(32).toString('base64url')}`
  const key = { accountId, id: newId<'subscription'>() }
  const rows = await sql<Row[]>`
    insert into webhook_subscriptions (id, account_id, worker_id, event_type, url, signing_secret, headers, sealed_headers,
      timeout_ms, enabled, required, created_at, updated_at)
    values (${key.id}, ${accountId}, ${workerId}, ${eventType}, ${url}, ${box.seal(secret, signingSecretPlace(key))},
      '{}', ${sealHeaders(box, key, headers)}, ${timeoutMs}, ${request.enabled ?? true}, ${request.required ?? false}, ${now}, ${now})
    returning id, account_id, worker_id, event_type, url, headers, sealed_headers, timeout_ms, enabled, required, created_at, updated_at,
      failing_since, disabled_reason`
  return toSubscription(box, rows[0] as Row, secret)
}

async function requireWorker(sql: Sql, accountId: AccountId, named: string): Promise<WorkerId> {
  const workerId = toId<'worker'>(named)
  const rows =
    workerId === null
      ? []
      : await sql`select 1 from workers where account_id = ${accountId} and id = ${workerId} and deleted_at is null`
  if (workerId !== null && rows.length > 0) return workerId
  throw new Problem('VALIDATION_FAILED', 'The worker does not exist.', [
    { path: 'workerId', message: 'must be a worker of the account' },
  ])
}

/** With a worker: only those scoped to it; otherwise all of the account. Oldest first. */
export async function listSubscriptions(
  sql: Sql,
  accountId: AccountId,
  workerId: string | null,
  box: SecretBox,
): Promise<WebhookSubscription[]> {
  const rows = await sql<Row[]>`
    select id, account_id, worker_id, event_type, url, headers, sealed_headers, timeout_ms, enabled, required, created_at, updated_at,
      failing_since, disabled_reason
    from webhook_subscriptions
    where account_id = ${accountId} and (${workerId}::text is null or worker_id = ${workerId}) and ${isSeen(sql)}
    order by created_at, id`
  return rows.map((row) => toSubscription(box, row, null))
}

/** Null: the account has no such subscription. */
export async function findSubscription(
  sql: Sql | Transaction,
  accountId: AccountId,
  id: SubscriptionId,
  box: SecretBox,
): Promise<WebhookSubscription | null> {
  const [row] = await sql<Row[]>`
    select id, account_id, worker_id, event_type, url, headers, sealed_headers, timeout_ms, enabled, required, created_at, updated_at,
      failing_since, disabled_reason
    from webhook_subscriptions where account_id = ${accountId} and id = ${id} and ${isSeen(sql)}`
  return row ? toSubscription(box, row, null) : null
}

/** One of a deleted worker is told what is still due to it, and is nobody's otherwise. */
export const isSeen = (sql: Sql | Transaction) => sql`webhook_subscriptions.deleted_at is null and not exists (
  select from workers where workers.id = webhook_subscriptions.worker_id and workers.deleted_at is not null)`

/** What sending to it needs, enabled or not. */
export async function findTarget(
  sql: Sql,
  accountId: AccountId,
  id: SubscriptionId,
): Promise<MatchingSubscription | null> {
  const [row] = await sql<MatchingSubscription[]>`
    select id, account_id, worker_id, event_type, url, ${sealedColumns(sql)}, timeout_ms, required
    from webhook_subscriptions where account_id = ${accountId} and id = ${id} and ${isSeen(sql)}`
  return row ?? null
}

/** With the names of SealedSubscription; the table has no other name in the query. */
export const sealedColumns = (sql: Sql | Transaction) => sql`
  signing_secret as sealed_secret, former_secret, former_secret_until as former_until, sealed_headers, headers`

/** What `change` does not name stays, and where it names nothing, everything. A secret that is replaced signs too for a while. Enabling forgets former failures. Null: the account has no such subscription. */
export async function changeSubscription(sql: Sql, box: SecretBox, key: Changed): Promise<WebhookSubscription | null> {
  return sql.begin(async (tx) => {
    const [stored] = await tx<{ sealed: string }[]>`
      select signing_secret as sealed from webhook_subscriptions
      where account_id = ${key.accountId} and id = ${key.id} and deleted_at is null for no key update`
    if (!stored) return null
    const columns = { ...changedColumns(tx, box, key), ...replacedSecret(box, key, stored.sealed) }
    if (Object.keys(columns).length === 0) return findSubscription(tx, key.accountId, key.id, box)
    const [row] = await tx<Row[]>`
      update webhook_subscriptions set ${tx({ ...columns, updatedAt: key.now })}
      where account_id = ${key.accountId} and id = ${key.id}
      returning id, account_id, worker_id, event_type, url, headers, sealed_headers, timeout_ms, enabled, required,
        created_at, updated_at, failing_since, disabled_reason`
    return row ? toSubscription(box, row, null) : null
  })
}

type Changed = {
  readonly accountId: AccountId
  readonly id: SubscriptionId
  readonly change: SubscriptionChange
  readonly now: number
}

function changedColumns(tx: Transaction, box: SecretBox, { accountId, id, change }: Changed) {
  const { url, headers, timeoutMs, enabled, required } = change
  const again = enabled ? { failingSince: null, disabledReason: null } : {}
  const sealed = headers && { headers: tx.json({}), sealedHeaders: sealHeaders(box, { accountId, id }, headers) }
  return { ...givenColumns({ url, timeoutMs, enabled, required }), ...again, ...sealed }
}

/** Nothing when it is not replaced, or by the same: whoever knows the one before goes on being served. */
function replacedSecret(box: SecretBox, { accountId, id, change: { signingSecret }, now }: Changed, sealed: string) {
  // One that does not open signs nothing: a new one mends it.
  const former = signingSecret === undefined ? null : openedOrNull(box, sealed, signingSecretPlace({ accountId, id }))
  if (signingSecret === undefined || former === signingSecret) return {}
  return {
    signingSecret: box.seal(signingSecret, signingSecretPlace({ accountId, id })),
    formerSecret: former === null ? null : box.seal(former, formerSecretPlace({ accountId, id })),
    formerSecretUntil: former === null ? null : now + secretOverlap,
  }
}

/**
 * Enabled ones that get this event of the call's worker, by the ids of calls, in the order in which sync hooks are asked: worker-scoped first, then
 * older first.
 */
export async function findMatchingOfCalls(
  sql: Sql,
  callIds: readonly CallId[],
  eventType: EventType,
): Promise<ReadonlyMap<CallId, readonly MatchingSubscription[]>> {
  const rows = await sql<(MatchingSubscription & { readonly callId: CallId })[]>`
    select calls.id as call_id, calls.request_id, s.* from calls cross join lateral (
      ${matchingOf(sql, eventType, sql`calls.worker_id`, sql`calls.account_id`)}) s
    where calls.id = any(${[...callIds]}::text[])
    order by s.worker_id is null, s.created_at, s.id`
  return Map.groupBy(rows, ({ callId }) => callId)
}

/** The same of workers, whatever their calls. */
export async function findMatchingOfWorkers(
  sql: Sql,
  workerIds: readonly WorkerId[],
  eventType: EventType,
): Promise<ReadonlyMap<WorkerId, readonly MatchingSubscription[]>> {
  const rows = await sql<(MatchingSubscription & { readonly of: WorkerId })[]>`
    select workers.id as of, s.* from workers cross join lateral (
      ${matchingOf(sql, eventType, sql`workers.id`, sql`workers.account_id`)}) s
    where workers.id = any(${[...workerIds]}::text[])
    order by s.worker_id is null, s.created_at, s.id`
  return Map.groupBy(rows, ({ of }) => of)
}

type Fragment = ReturnType<Sql>

const matchingOf = (sql: Sql, eventType: EventType, workerId: Fragment, accountId: Fragment) => sql`
  select id, account_id, worker_id, event_type, url, ${sealedColumns(sql)}, timeout_ms, required, created_at
  from webhook_subscriptions
  where account_id = ${accountId} and enabled
    and (worker_id is null or worker_id = ${workerId})
    and event_type in (${eventType}, '*')`

/** `eventType`: one of which it takes all, or `*`. */
export type Taker = Pick<MatchingSubscription, 'id' | 'eventType'>

/**
 * Those of one worker for several types at once; `eventType` of a result is a type of the list or `*`. None of them can be removed before the
 * transaction ends: what is inserted for them stays valid.
 */
export async function holdMatching(
  tx: Transaction,
  { accountId, workerId, eventTypes }: { accountId: AccountId; workerId: WorkerId; eventTypes: readonly EventType[] },
): Promise<Taker[]> {
  return tx<Taker[]>`
    select id, event_type from webhook_subscriptions
    where account_id = ${accountId} and enabled
      and (worker_id is null or worker_id = ${workerId})
      and event_type = any(${[...eventTypes, '*']})
    order by id for key share`
}

/** The same for a call, whoever its worker is. */
export async function holdMatchingOfCall(
  tx: Transaction,
  { accountId, callId, eventTypes }: { accountId: AccountId; callId: CallId; eventTypes: readonly EventType[] },
): Promise<void> {
  await tx`
    select from webhook_subscriptions
    where account_id = ${accountId} and enabled
      and (worker_id is null or worker_id = any(array(select worker_id from calls where id = ${callId})))
      and event_type = any(${[...eventTypes, '*']})
    order by id for key share`
}

/** Of `calls`: who takes some of these of each, and holds nobody. */
export const takersColumn = (sql: Sql | Transaction, eventTypes: readonly EventType[]) => sql`
  (select coalesce(json_agg(json_build_object('id', s.id, 'eventType', s.event_type) order by s.id), '[]')
  from webhook_subscriptions s
  where s.account_id = calls.account_id and s.enabled and (s.worker_id is null or s.worker_id = calls.worker_id)
    and s.event_type = any(${eventTypes.length === 0 ? [] : [...eventTypes, '*']}::text[]))`

/** What the attempts of a while say about their subscriptions. One that is in `succeeded` is in no other. */
export type EndpointNews = {
  readonly succeeded: readonly SubscriptionId[]
  readonly failed: readonly SubscriptionId[]
  /** Answered 410 at this address; one that has another by now is not judged by it. */
  readonly gone: readonly { readonly id: SubscriptionId; readonly url: string }[]
  readonly now: number
  /** Failing since then or longer is long enough. */
  readonly failingBefore: number
}

export type DisabledSubscription = { readonly id: SubscriptionId; readonly disabledReason: 'gone' | 'failing' }

/**
 * Keeps `failing_since` and switches off what is gone or has failed for too long; their pending deliveries are given up as they come due.
 * Writes only what changes. Returns what was switched off now.
 */
export async function judgeEndpoints(sql: Sql, news: EndpointNews): Promise<DisabledSubscription[]> {
  const { succeeded, failed, gone, now, failingBefore } = news
  if (succeeded.length > 0)
    await sql`
      update webhook_subscriptions set failing_since = null where id in (
        select id from webhook_subscriptions where id = any(${[...succeeded]}) and failing_since is not null
        order by id for no key update)`
  if (failed.length + gone.length === 0) return []
  const isGone = sql`(id = any(${gone.map(({ id }) => id)}) and url = any(${gone.map(({ url }) => url)}))`
  return sql<DisabledSubscription[]>`
    with struck as materialized (
      select id, ${isGone} as is_gone, failing_since <= ${failingBefore} as is_failing
      from webhook_subscriptions
      where enabled and (${isGone}
        or id = any(${[...failed]}) and (failing_since is null or failing_since <= ${failingBefore}))
      order by id for no key update
    ), judged as (
      update webhook_subscriptions s set
        failing_since = coalesce(s.failing_since, ${now}),
        enabled = not (is_gone or is_failing is true),
        disabled_reason = case when is_gone then 'gone' when is_failing then 'failing' end,
        updated_at = case when is_gone or is_failing then ${now} else s.updated_at end
      from struck where s.id = struck.id
      returning s.id, s.disabled_reason)
    select * from judged where disabled_reason is not null`
}

/**
 * With its deliveries, sent or not. False when the account has no such subscription. Nothing is written for it or sent any more, and it is in no read;
 * its deliveries go within so many ms, or what is then left of them in the background. Whoever writes events meanwhile waits for nothing here.
 */
export async function deleteSubscription(
  sql: Sql,
  accountId: AccountId,
  id: SubscriptionId,
  within = Infinity,
): Promise<boolean> {
  const removal = await sql.begin(async (tx) => {
    const { count } = await tx`
      update webhook_subscriptions set enabled = false, deleted_at = now()
      where account_id = ${accountId} and id = ${id} and deleted_at is null`
    return count === 0 ? null : orderRemoval(tx, { kind: 'subscription', accountId, subjectId: id })
  })
  if (removal) await walkRemoval(sql, removal, within)
  return removal !== null
}

function toSubscription(box: SecretBox, row: Row, signingSecret: string | null): WebhookSubscription {
  return {
    id: row.id,
    accountId: row.accountId,
    workerId: row.workerId,
    eventType: row.eventType,
    deliveryMode: deliveryModeOf(row.eventType),
    url: row.url,
    signingSecret,
    headers: openHeaders(box, row),
    timeoutMs: row.timeoutMs,
    enabled: row.enabled,
    required: row.required,
    ...withoutNulls({
      failingSince: row.failingSince === null ? null : toIso(row.failingSince),
      disabledReason: row.disabledReason,
    }),
    createdAt: toIso(row.createdAt),
    updatedAt: toIso(row.updatedAt),
  }
}
