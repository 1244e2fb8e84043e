/**
 * Owns asking call.worker_request: the first matching subscription, once, before the voice session starts.
 * docs/contract/webhooks.md "call.worker_request" and "Sync rules".
 */
import type { Clock } from '../../model/clock.ts'
import { parseWorkerRequestAnswer, type WorkerRequestAnswer, type WorkerRequestData } from '../../model/events.ts'
import type { CallId, NewId } from '../../model/ids.ts'
import type { Log } from '../../model/log.ts'
import { storableText } from '../../model/json.ts'
import { issuesOf } from '../../model/issues.ts'
import { createOneQuery } from '../../store/one-query.ts'
import type { SecretBox } from '../../store/secret-box.ts'
import type { Sql } from '../../store/sql.ts'
import { formerSecretAt, formerSecretPlace, openHeaders, signingSecretPlace } from '../../store/subscription-secrets.ts'
import { findMatchingOfCalls, type MatchingSubscription } from '../../store/subscriptions.ts'
import { askHook, maxDetails, type HookAnswer, type HookQuestion } from './ask-hook.ts'
import type { WebhookSender } from './sender.ts'

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
  readonly clock: Pick<Clock, 'after'>
  readonly newId: NewId
}

/** `known`: who is asked, null: nobody; absent: the database says. */
export type AskWorkerRequest = (
  callId: CallId,
  question: () => Promise<WorkerRequestData>,
  known?: MatchingSubscription | null,
) => Promise<WorkerRequestOutcome>

/**
 * Whoever is asked has `timeoutMs` of the subscription at most (10 s at the very most). Throws only when the database is away, or the question does.
 * Subscriptions of calls that begin in the same moment are read together.
 */
export function createAskWorkerRequest(deps: Deps): AskWorkerRequest {
  const findHooks = createOneQuery({
    keyOf: (callId: CallId) => callId,
    query: (callIds) => findMatchingOfCalls(deps.sql, callIds, 'call.worker_request'),
    clock: deps.clock,
  })
  return async (callId, question, known) => {
    const [subscription] = known === undefined ? ((await findHooks(callId)) ?? []) : [known]
    if (!subscription) return { kind: 'none' }
    const parsed = await ask(deps, subscription, await question())
    if (typeof parsed !== 'string') return { kind: 'answered', answer: parsed }
    const { id: subscriptionId, required } = subscription
    deps.log.warn('call.worker_request failed', { callId, subscriptionId, required, details: parsed })
    return { kind: 'failed', required, details: parsed }
  }
}

/** A text says what was wrong. */
async function ask(
  deps: Deps,
  subscription: MatchingSubscription,
  data: WorkerRequestData,
): Promise<WorkerRequestAnswer | string> {
  const opened = openSecrets(deps, subscription)
  if (opened === null) return 'the signing secret cannot be opened'
  const { url, timeoutMs: timeout, requestId = null } = subscription
  const question = {
    type: 'call.worker_request',
    url,
    ...opened,
    timeout,
    accountId: data.accountId,
    callId: data.callId,
    requestId,
    data,
  } as const
  return workerRequestAnswerOf(await askHook(deps, question))
}

/** Null: it was sealed with another key. */
export function openSecrets(
  { box, log, now }: Pick<Deps, 'box' | 'log' | 'now'>,
  subscription: MatchingSubscription,
): Pick<HookQuestion, 'secret' | 'formerSecret' | 'headers'> | null {
  try {
    const former = formerSecretAt(subscription, now())
    return {
      secret: box.open(subscription.sealedSecret, signingSecretPlace(subscription)),
      formerSecret: former === null ? null : box.open(former, formerSecretPlace(subscription)),
      headers: openHeaders(box, subscription),
    }
  } catch (error) {
    log.error('a signing secret cannot be opened', { error, subscriptionId: subscription.id })
    return null
  }
}

/** A text says what was wrong. All fields are optional. */
export function workerRequestAnswerOf(answer: HookAnswer): WorkerRequestAnswer | string {
  if (answer.kind === 'failed') return answer.details
  const parsed = parseWorkerRequestAnswer(answer.json)
  if (parsed.success) return parsed.data
  const issues = issuesOf(parsed.error, answer.json).slice(0, 5)
  const details = issues.map(({ path, message }) => `${path || 'it'} ${message}`).join('; ')
  return storableText(`the answer is invalid: ${details}`, maxDetails)
}
