/**
 * Owns the test of a subscription: one synthetic event of its type, signed and sent at once, outside of the outbox. Its ids are made up,
 * its metadata says `test`. `*` is tested with a call.status_update. docs/contract/webhooks.md "Test delivery".
 */
import { toIso } from '../../model/clock.ts'
import type { EndedData, EventType, StatusUpdateData, TranscriptData, WorkerRequestData } from '../../model/events.ts'
import type { AccountId, NewId } from '../../model/ids.ts'
import { storableText } from '../../model/json.ts'
import type { Log } from '../../model/log.ts'
import type { SubscriptionTest } from '../../model/webhook.ts'
import type { SecretBox } from '../../store/secret-box.ts'
import type { MatchingSubscription } from '../../store/subscriptions.ts'
import { askHook, signingKeysOf, type HookAnswer } from './ask-hook.ts'
import type { WebhookSender } from './sender.ts'
import { headersOf, sendSigned } from './sign.ts'
import { openSecrets, workerRequestAnswerOf } from './worker-request.ts'

type Deps = {
  readonly box: SecretBox
  readonly sender: WebhookSender
  readonly now: () => number
  readonly newId: NewId
  readonly log: Log
}

const asyncTimeout = 10_000
const excerptLength = 2048

/** Never throws. */
export async function sendTestEvent(
  deps: Deps,
  accountId: AccountId,
  target: MatchingSubscription,
): Promise<SubscriptionTest> {
  const type = target.eventType === '*' ? 'call.status_update' : target.eventType
  const { newId, now, log } = deps
  const opened = openSecrets(deps, target)
  if (opened === null) return { delivered: false, error: 'the signing secret cannot be opened' }
  const data = samples[type]({
    accountId,
    callId: newId<'call'>(),
    workerId: target.workerId ?? newId<'worker'>(),
    otherId: newId<'tool_call'>(),
    ts: toIso(now()),
  })
  const event: SyntheticEvent = { type, accountId, target, opened, data }
  const tested = isSync(type) ? await testSync(deps, event, type) : await testAsync(deps, event)
  log.info('webhook subscription tested', { subscriptionId: target.id, type, delivered: tested.delivered })
  return tested
}

type SyncType = 'call.worker_request' | 'call.tool_call'
type SyntheticEvent = {
  readonly type: EventType
  readonly accountId: AccountId
  readonly target: MatchingSubscription
  readonly opened: NonNullable<ReturnType<typeof openSecrets>>
  readonly data: object
}

const isSync = (type: EventType): type is SyncType => type === 'call.worker_request' || type === 'call.tool_call'

async function testAsync({ sender, now, newId }: Deps, event: SyntheticEvent): Promise<SubscriptionTest> {
  const { type, accountId, target, opened, data } = event
  const body = JSON.stringify({ type, data })
  const at = now()
  const sent = { type, eventId: newId<'delivery'>(), eventAt: at, delivery: 'async', accountId, attempt: 1 } as const
  const outgoing = { ...sent, sentAt: at, body, customHeaders: opened.headers }
  const result = await sendSigned(signingKeysOf(opened), (keys) =>
    sender.send({
      url: target.url,
      headers: headersOf(outgoing, ...keys),
      body,
      timeout: asyncTimeout,
      answer: 'excerpt',
    }),
  )
  if (result.kind === 'failed') return { delivered: false, error: `${result.reason}: ${result.details}` }
  const { status: statusCode } = result
  if (statusCode >= 200 && statusCode < 300) return { delivered: true, statusCode }
  return { delivered: false, statusCode, error: `answered with status ${statusCode}` }
}

async function testSync(deps: Deps, event: SyntheticEvent, type: SyncType): Promise<SubscriptionTest> {
  const { accountId, target, opened, data } = event
  const { url, timeoutMs: timeout } = target
  const answer = await askHook(deps, { type, url, ...opened, timeout, accountId, data })
  const flaw = flawOfAnswer(type, answer)
  const statusCode = answer.status === null ? {} : { statusCode: answer.status }
  if (flaw === null) return { delivered: true, ...statusCode }
  const body = storableText(answer.body.trim(), excerptLength)
  return { delivered: false, ...statusCode, error: body === '' ? flaw : `${flaw}: ${body}` }
}

/** What a call.tool_call subscription answers is used by nobody, so that any JSON will do. */
function flawOfAnswer(type: SyncType, answer: HookAnswer): string | null {
  if (answer.kind === 'failed') return answer.details
  const parsed = type === 'call.worker_request' ? workerRequestAnswerOf(answer) : null
  return typeof parsed === 'string' ? parsed : null
}

type About = {
  readonly accountId: AccountId
  readonly callId: string
  readonly workerId: string
  readonly otherId: string
  readonly ts: string
}

const metadata = { test: true }

const samples: Readonly<Record<EventType, (about: About) => object>> = {
  'call.worker_request': ({ callId, accountId, workerId }): WorkerRequestData => ({
    callId,
    accountId,
    workerId,
    direction: 'inbound',
    transport: 'webrtc',
    metadata,
  }),
  'call.tool_call': ({ callId, accountId, workerId, otherId }) => ({
    callId,
    accountId,
    workerId,
    toolCallId: otherId,
    name: 'test',
    arguments: {},
    metadata,
  }),
  'call.transcript': ({ callId, ts }): TranscriptData => ({
    callId,
    turnIndex: 0,
    role: 'agent',
    text: 'This is a test.',
    isFinal: true,
    confidence: null,
    source: null,
    ts,
    metadata,
  }),
  'call.status_update': ({ callId, ts }): StatusUpdateData => ({
    callId,
    status: 'in_progress',
    providerStatus: null,
    ts,
    metadata,
  }),
  'call.ended': ({ callId, accountId, workerId, ts }): EndedData => ({
    callId,
    status: 'completed',
    accountId,
    workerId,
    direction: 'inbound',
    fromNumber: null,
    toNumber: null,
    duration: 0,
    scheduledAt: null,
    startedAt: ts,
    endedAt: ts,
    recordingAvailable: false,
    metadata,
  }),
}
