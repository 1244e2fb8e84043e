/**
 * Owns asking call.worker_request: the first matching subscription, once, before the voice session starts.
 * rest-api-and-webhooks.md, call.worker_request and "Sync rules"; decisions.md, Webhooks.
 */
import { WorkerRequestAnswer, type WorkerRequestData } from '../../model/events.ts'
import type { AccountId, NewId, WorkerId } from '../../model/ids.ts'
import { flawOf } from '../../model/json.ts'
import type { Log } from '../../model/log.ts'
import { issuesOf } from '../../model/problem.ts'
import { maxHookTimeout } from '../../model/webhook.ts'
import type { SecretBox } from '../../store/secret-box.ts'
import type { Sql } from '../../store/sql.ts'
import { findMatching, type MatchingSubscription } from '../../store/subscriptions.ts'
import type { SendResult, WebhookSender } from './sender.ts'
import { headersOf, toSigningKey } from './sign.ts'

export type WorkerRequestOutcome =
  /** Nobody is subscribed. */
  | { readonly kind: 'none' }
  | { readonly kind: 'answered'; readonly answer: WorkerRequestAnswer }
  /** `required`: the call is to be aborted. Otherwise it goes on with the worker's own configuration. `details` is for the log. */
  | { readonly kind: 'failed'; readonly required: boolean; readonly details: string }

type Deps = {
  readonly sql: Sql
  readonly box: SecretBox
  readonly sender: WebhookSender
  readonly log: Log
  readonly now: () => number
  readonly newId: NewId
}

/** Takes `timeoutMs` of the subscription at most (10 s at the very most). Throws only when the database is away. */
export async function askWorkerRequest(deps: Deps, data: WorkerRequestData): Promise<WorkerRequestOutcome> {
  const accountId = data.accountId as AccountId
  const workerId = data.workerId as WorkerId
  const [subscription] = await findMatching(deps.sql, { accountId, workerId, eventType: 'call.worker_request' })
  if (!subscription) return { kind: 'none' }
  const parsed = answerOf(await ask(deps, subscription, data))
  if (typeof parsed !== 'string') return { kind: 'answered', answer: parsed }
  const { id: subscriptionId, required } = subscription
  deps.log.warn('call.worker_request failed', { callId: data.callId, subscriptionId, required, details: parsed })
  return { kind: 'failed', required, details: parsed }
}

async function ask(deps: Deps, subscription: MatchingSubscription, data: WorkerRequestData): Promise<SendResult> {
  const body = JSON.stringify({ type: 'call.worker_request', data })
  const now = deps.now()
  const secret = openSecret(deps, subscription)
  if (secret === null) return { kind: 'failed', reason: 'refused', details: 'the signing secret cannot be opened' }
  const headers = headersOf(
    {
      type: 'call.worker_request',
      eventId: deps.newId<'delivery'>(),
      eventAt: now,
      delivery: 'sync',
      accountId: data.accountId,
      attempt: 1,
      sentAt: now,
      body,
      customHeaders: subscription.headers,
    },
    toSigningKey(secret),
  )
  const timeout = Math.min(subscription.timeoutMs, maxHookTimeout)
  return deps.sender.send({ url: subscription.url, headers, body, timeout, answer: 'whole' })
}

function openSecret({ box, log }: Deps, { id, sealedSecret }: MatchingSubscription): string | null {
  try {
    return box.open(sealedSecret)
  } catch (error) {
    log.error('a signing secret cannot be opened', { error, subscriptionId: id })
    return null
  }
}

/** A text says what was wrong. An empty body of a 2xx is the empty answer: all of its fields are optional. */
function answerOf(result: SendResult): WorkerRequestAnswer | string {
  if (result.kind === 'failed') return `${result.reason}: ${result.details}`
  if (result.status < 200 || result.status > 299) return `answered with status ${result.status}`
  const json = parseJson(result.body.trim() === '' ? '{}' : result.body)
  if (json === undefined) return 'the answer is no JSON'
  const flaw = flawOf(json)
  if (flaw) return `the answer cannot be stored: ${flaw.path.join('.')} ${flaw.message}`
  const parsed = WorkerRequestAnswer.safeParse(json)
  if (parsed.success) return parsed.data
  const issues = issuesOf(parsed.error).slice(0, 5)
  return `the answer is invalid: ${issues.map(({ path, message }) => `${path} ${message}`).join('; ')}`
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Undefined is no JSON value, so it stands for "none".
    return undefined
  }
}
