/** Owns webhook subscriptions in the database. Secrets are sealed at rest. rest-api-and-webhooks.md, Webhook subscription; decisions.md, Webhooks. */
import { randomBytes } from 'node:crypto'
import { toIso } from '../model/clock.ts'
import { deliveryModeOf, type EventType, type SubscribedType } from '../model/events.ts'
import type { AccountId, NewId, SubscriptionId, WorkerId } from '../model/ids.ts'
import { Problem } from '../model/problem.ts'
import { defaultHookTimeout, type SubscriptionRequest, type WebhookSubscription } from '../model/webhook.ts'
import type { SecretBox } from './secret-box.ts'
import type { Sql, Transaction } from './sql.ts'

type Row = {
  readonly id: SubscriptionId
  readonly accountId: AccountId
  readonly workerId: WorkerId | null
  readonly eventType: SubscribedType
  readonly url: string
  readonly headers: Record<string, string>
  readonly timeoutMs: number
  readonly enabled: boolean
  readonly required: boolean
  readonly createdAt: number
  readonly updatedAt: number
}

/** What sending to a subscription needs. */
export type MatchingSubscription = {
  readonly id: SubscriptionId
  readonly workerId: WorkerId | null
  readonly eventType: SubscribedType
  readonly url: string
  readonly sealedSecret: string
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
  readonly required: boolean
}

/** The only answer that carries the secret in plaintext. Throws Problem VALIDATION_FAILED for a worker the account has not got. */
export async function createSubscription(
  sql: Sql,
  box: SecretBox,
  { accountId, request, newId, now }: { accountId: AccountId; request: SubscriptionRequest; newId: NewId; now: number },
): Promise<WebhookSubscription> {
  const { workerId = null, eventType, url, headers = {}, timeoutMs = defaultHookTimeout } = request
  if (workerId !== null) await requireWorker(sql, accountId, workerId)
  const secret = `whsec_${randomBytes(32).toString('base64url')}`
  const rows = await sql<Row[]>`
    insert into webhook_subscriptions (id, account_id, worker_id, event_type, url, signing_secret, headers,
      timeout_ms, enabled, required, created_at, updated_at)
    values (${newId<'subscription'>()}, ${accountId}, ${workerId}, ${eventType}, ${url}, ${box.seal(secret)}, ${sql.json(headers)},
      ${timeoutMs}, ${request.enabled ?? true}, ${request.required ?? false}, ${now}, ${now})
    returning id, account_id, worker_id, event_type, url, headers, timeout_ms, enabled, required, created_at, updated_at`
  return toSubscription(rows[0] as Row, secret)
}

async function requireWorker(sql: Sql, accountId: AccountId, workerId: string): Promise<void> {
  const rows = await sql`select 1 from workers where account_id = ${accountId} and id = ${workerId}`
  if (rows.length > 0) return
  throw new Problem('VALIDATION_FAILED', 'The worker does not exist.', [
    { path: 'workerId', message: 'must be a worker of the account' },
  ])
}

/** With a worker: only those scoped to it; otherwise all of the account. Oldest first. */
export async function listSubscriptions(
  sql: Sql,
  accountId: AccountId,
  workerId: string | null,
): Promise<WebhookSubscription[]> {
  const rows = await sql<Row[]>`
    select id, account_id, worker_id, event_type, url, headers, timeout_ms, enabled, required, created_at, updated_at
    from webhook_subscriptions
    where account_id = ${accountId} and (${workerId}::text is null or worker_id = ${workerId})
    order by created_at, id`
  return rows.map((row) => toSubscription(row, null))
}

/** Enabled ones that get this event of this worker, in the order in which sync hooks are asked: worker-scoped first, then older first. */
export async function findMatching(
  sql: Sql | Transaction,
  { accountId, workerId, eventType }: { accountId: AccountId; workerId: WorkerId; eventType: EventType },
): Promise<MatchingSubscription[]> {
  return findMatchingAny(sql, { accountId, workerId, eventTypes: [eventType] })
}

/** The same for several types at once; `eventType` of a result is a type of the list or `*`. */
export async function findMatchingAny(
  sql: Sql | Transaction,
  { accountId, workerId, eventTypes }: { accountId: AccountId; workerId: WorkerId; eventTypes: readonly EventType[] },
): Promise<MatchingSubscription[]> {
  return sql<MatchingSubscription[]>`
    select id, worker_id, event_type, url, signing_secret as sealed_secret, headers, timeout_ms, required
    from webhook_subscriptions
    where account_id = ${accountId} and enabled
      and (worker_id is null or worker_id = ${workerId})
      and event_type = any(${[...eventTypes, '*']})
    order by worker_id is null, created_at, id`
}

/** Its pending deliveries are given up as they come due. */
export async function disableSubscription(
  sql: Sql | Transaction,
  { accountId, id, now }: { accountId: AccountId; id: SubscriptionId; now: number },
): Promise<void> {
  await sql`
    update webhook_subscriptions set enabled = false, updated_at = ${now}
    where account_id = ${accountId} and id = ${id} and enabled`
}

/** With its deliveries, sent or not. False when the account has no such subscription. */
export async function deleteSubscription(
  sql: Sql | Transaction,
  accountId: AccountId,
  id: SubscriptionId,
): Promise<boolean> {
  const deleted = await sql`delete from webhook_subscriptions where account_id = ${accountId} and id = ${id}`
  return deleted.count === 1
}

function toSubscription(row: Row, signingSecret: string | null): WebhookSubscription {
  return {
    id: row.id,
    accountId: row.accountId,
    workerId: row.workerId,
    eventType: row.eventType,
    deliveryMode: deliveryModeOf(row.eventType),
    url: row.url,
    signingSecret,
    headers: row.headers,
    timeoutMs: row.timeoutMs,
    enabled: row.enabled,
    required: row.required,
    createdAt: toIso(row.createdAt),
    updatedAt: toIso(row.updatedAt),
  }
}
