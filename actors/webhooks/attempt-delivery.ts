/** Owns one attempt at one delivery: prepare → send → what it means, with values between them. Writing that down is the recorder's. */
import type { Clock } from '../../model/clock.ts'
import type { CallId } from '../../model/ids.ts'
import { storableText } from '../../model/json.ts'
import type { Log } from '../../model/log.ts'
import { noTelemetry, type Telemetry } from '../../model/telemetry.ts'
import type { ClaimedDelivery } from '../../store/deliveries.ts'
import type { AttemptRecord } from '../../store/delivery-verdicts.ts'
import type { SecretBox } from '../../store/secret-box.ts'
import { formerSecretAt, formerSecretPlace, openHeaders, signingSecretPlace } from '../../store/subscription-secrets.ts'
import type { Attempted, Endpoint } from './record-attempts.ts'
import { verdictOf, type Verdict } from './verdict.ts'
import type { SendRequest, SendResult, WebhookSender } from './sender.ts'
import { createSigningKeys, headersOf, sendSigned, type SigningKeys } from './sign.ts'

/** Null: the signal ended it, and whether it arrived is unknown. Never throws. */
export type AttemptDelivery = (delivery: ClaimedDelivery, signal: AbortSignal) => Promise<Attempted | null>

type Signed = (keys: SigningKeys, traceparent?: string) => SendRequest
type AttemptResult = SendResult | { readonly kind: 'unwanted' }
type Prepared =
  | { readonly kind: 'ready'; readonly keys: SigningKeys; readonly requestBy: Signed }
  | { readonly kind: 'settled'; readonly result: AttemptResult }

type Deps = {
  readonly box: SecretBox
  readonly sender: Pick<WebhookSender, 'send'>
  readonly clock: Clock
  readonly log: Log
  readonly telemetry?: Telemetry
  /** By which trace somebody asked for the call; absent: nobody traces. */
  readonly knowTrace?: (callId: CallId) => Promise<void>
  /** 0 ≤ random() < 1. */
  readonly random: () => number
}

const sendTimeout = 10_000
const excerptLength = 2048

export function createAttemptDelivery(deps: Deps): AttemptDelivery {
  const { box, sender, clock, log, random, telemetry = noTelemetry } = deps
  const keyOf = createSigningKeys((sealed, place) => box.open(sealed, place))

  function prepare(delivery: ClaimedDelivery): Prepared {
    if (!delivery.enabled) return { kind: 'settled', result: { kind: 'unwanted' } }
    try {
      const subscription = { ...delivery, id: delivery.subscriptionId }
      const former = formerSecretAt(subscription, clock.now())
      const current = keyOf(delivery.sealedSecret, signingSecretPlace(subscription))
      const keys: SigningKeys = former === null ? [current] : [current, keyOf(former, formerSecretPlace(subscription))]
      const customHeaders = openHeaders(box, subscription)
      const requestBy = (by: SigningKeys, traceparent?: string) =>
        requestOf({ delivery, customHeaders, traceparent }, by, clock.now())
      return { kind: 'ready', keys, requestBy }
    } catch (error) {
      log.error('a signing secret cannot be opened', { error, subscriptionId: delivery.subscriptionId })
      const details = 'the signing secret cannot be opened'
      return { kind: 'settled', result: { kind: 'failed', reason: 'refused', details } }
    }
  }

  /** Never throws: what goes wrong is a result. */
  async function resultOf(delivery: ClaimedDelivery, signal: AbortSignal): Promise<AttemptResult> {
    const { id: deliveryId, callId, eventType: event, eventAt, attempt } = delivery
    const prepared = prepare(delivery)
    if (prepared.kind === 'settled') return prepared.result
    if (attempt === 1) telemetry.observe('delivery.latency', Math.max(0, clock.now() - eventAt), { event })
    await deps.knowTrace?.(callId)
    const span = telemetry.span('delivery.attempt', { event }, { deliveryId, callId, attempt })
    const result = await sendSigned(prepared.keys, (keys) =>
      sender.send({ ...prepared.requestBy(keys, span.traceparent), signal }),
    )
    span.end(result.kind === 'answered' && result.status < 300 ? 'ok' : 'failed')
    return result
  }

  return async (delivery, signal) => {
    const at = clock.now()
    const result = await resultOf(delivery, signal)
    if (signal.aborted && result.kind === 'failed') return null
    const now = clock.now()
    const { eventType, eventAt, attempt, subscriptionId, url } = delivery
    const verdict: Verdict =
      result.kind === 'unwanted'
        ? { kind: 'exhausted' }
        : verdictOf({ eventType, eventAt, attempt, result, now, random: random() })
    const record = recordOf(delivery, result, verdict, { at, now })
    telemetry.count('delivery.attempts', { event: eventType, verdict: record.verdict })
    log.debug('webhook delivery attempted', { deliveryId: delivery.id, attempt, verdict: verdict.kind })
    if (record.verdict === 'exhausted')
      log.warn('webhook delivery given up', { deliveryId: delivery.id, subscriptionId, eventType, attempt })
    return { record, subscriptionId, url, endpoint: endpointOf(result, verdict) }
  }
}

const requestOf = (
  {
    delivery,
    customHeaders,
    traceparent,
  }: {
    readonly delivery: ClaimedDelivery
    readonly customHeaders: Readonly<Record<string, string>>
    readonly traceparent: string | undefined
  },
  keys: SigningKeys,
  now: number,
): SendRequest => ({
  url: delivery.url,
  headers: headersOf(
    {
      type: delivery.eventType,
      eventId: delivery.id,
      eventAt: delivery.eventAt,
      delivery: 'async',
      accountId: delivery.accountId,
      attempt: delivery.attempt,
      sentAt: now,
      body: delivery.body,
      requestId: delivery.requestId,
      ...(traceparent && { traceparent }),
      customHeaders,
    },
    ...keys,
  ),
  body: delivery.body,
  timeout: sendTimeout,
  answer: 'excerpt',
})

function recordOf(
  { id, attempt }: ClaimedDelivery,
  result: AttemptResult,
  verdict: Verdict,
  { at, now }: { at: number; now: number },
): AttemptRecord {
  return {
    id,
    attempt,
    at,
    durationMs: Math.max(0, Math.round(now - at)),
    ...summaryOf(result),
    verdict: verdict.kind === 'disable' ? 'exhausted' : verdict.kind,
    runAt: verdict.kind === 'retry' ? verdict.at : null,
  }
}

function summaryOf(result: AttemptResult): Pick<AttemptRecord, 'statusCode' | 'error' | 'responseExcerpt'> {
  switch (result.kind) {
    case 'unwanted':
      return { statusCode: null, error: 'the subscription is disabled', responseExcerpt: null }
    case 'failed':
      return {
        statusCode: null,
        error: storableText(`${result.reason}: ${result.details}`, excerptLength),
        responseExcerpt: null,
      }
    case 'answered': {
      const error = result.status < 300 ? null : `answered with status ${result.status}`
      return { statusCode: result.status, error, responseExcerpt: storableText(result.body, excerptLength) }
    }
  }
}

function endpointOf(result: AttemptResult, verdict: Verdict): Endpoint {
  if (result.kind === 'unwanted') return null
  if (verdict.kind === 'disable') return 'gone'
  return verdict.kind === 'delivered' ? 'answers' : 'fails'
}
