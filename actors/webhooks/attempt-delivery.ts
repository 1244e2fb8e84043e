/** Owns one attempt at one delivery, in three phases with values between them: prepare → send → record. */
import type { KeyObject } from 'node:crypto'
import type { Clock } from '../../model/clock.ts'
import type { Log } from '../../model/log.ts'
import {
  recordDelivered,
  recordExhausted,
  recordRetry,
  type AttemptRecord,
  type ClaimedDelivery,
} from '../../store/deliveries.ts'
import type { SecretBox } from '../../store/secret-box.ts'
import type { Sql } from '../../store/sql.ts'
import { disableSubscription } from '../../store/subscriptions.ts'
import { newsLifetime, verdictOf, type Verdict } from './retry.ts'
import type { SendRequest, SendResult, WebhookSender } from './sender.ts'
import { createSigningKeys, headersOf } from './sign.ts'

export type AttemptDelivery = {
  /** Prepares and sends. Never throws. */
  send(delivery: ClaimedDelivery, signal: AbortSignal): Promise<AttemptResult>
  /** Writes down what it means. Tries again while the database is away, until `signal`. Never throws. */
  record(delivery: ClaimedDelivery, result: AttemptResult, signal: AbortSignal): Promise<void>
}

type AttemptResult = SendResult | { readonly kind: 'unwanted' }
type Prepared =
  | { readonly kind: 'ready'; readonly request: SendRequest }
  | { readonly kind: 'settled'; readonly result: AttemptResult }

type Deps = {
  readonly sql: Sql
  readonly box: SecretBox
  readonly sender: WebhookSender
  readonly clock: Clock
  readonly log: Log
  /** 0 ≤ random() < 1. */
  readonly random: () => number
}

const sendTimeout = 10_000
const recordTries = 20
const recordPause = 1_000

export function createAttemptDelivery({ sql, box, sender, clock, log, random }: Deps): AttemptDelivery {
  const keyOf = createSigningKeys()

  function prepare(delivery: ClaimedDelivery): Prepared {
    if (!delivery.enabled) return { kind: 'settled', result: { kind: 'unwanted' } }
    try {
      return { kind: 'ready', request: requestOf(delivery, keyOf(box.open(delivery.sealedSecret)), clock.now()) }
    } catch (error) {
      log.error('a signing secret cannot be opened', { error, subscriptionId: delivery.subscriptionId })
      const details = 'the signing secret cannot be opened'
      return { kind: 'settled', result: { kind: 'failed', reason: 'refused', details } }
    }
  }

  return {
    async send(delivery, signal) {
      const prepared = prepare(delivery)
      return prepared.kind === 'ready' ? sender.send({ ...prepared.request, signal }) : prepared.result
    },
    async record(delivery, result, signal) {
      // A 2xx that is not written down means a second delivery: worth several tries.
      for (let tries = 1; tries <= recordTries; tries += 1) {
        try {
          return await recordResult(sql, delivery, result, { now: clock.now(), random: random(), log })
        } catch (error) {
          log.error('a delivery attempt could not be recorded', { error, deliveryId: delivery.id, tries })
        }
        if (!(await pause(clock, recordPause, signal))) return
      }
    },
  }
}

const requestOf = (delivery: ClaimedDelivery, key: KeyObject, now: number): SendRequest => ({
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
      customHeaders: delivery.headers,
    },
    key,
  ),
  body: delivery.body,
  timeout: sendTimeout,
  answer: 'excerpt',
})

type At = { readonly now: number; readonly random: number; readonly log: Log }

async function recordResult(sql: Sql, delivery: ClaimedDelivery, result: AttemptResult, at: At): Promise<void> {
  const { id, attempt, eventType, eventAt, subscriptionId, accountId } = delivery
  const record: AttemptRecord = { id, attempt, ...summaryOf(result) }
  const verdict: Verdict =
    result.kind === 'unwanted' ? { kind: 'exhausted' } : verdictOf({ eventType, eventAt, attempt, result, ...at })
  at.log.debug('webhook delivery attempted', { deliveryId: id, attempt, verdict: verdict.kind, ...summaryOf(result) })
  const staleBefore = at.now - newsLifetime
  switch (verdict.kind) {
    case 'delivered':
      return recordDelivered(sql, record, at.now)
    case 'retry':
      return recordRetry(sql, record, verdict.at)
    case 'exhausted':
      at.log.warn('webhook delivery given up', { deliveryId: id, subscriptionId, eventType, attempt })
      return recordExhausted(sql, record, staleBefore)
    case 'disable':
      at.log.warn('webhook subscription disabled: its endpoint is gone', { subscriptionId })
      await sql.begin(async (tx) => {
        await disableSubscription(tx, { accountId, id: subscriptionId, now: at.now })
        await recordExhausted(tx, record, staleBefore)
      })
  }
}

function summaryOf(result: AttemptResult): Pick<AttemptRecord, 'statusCode' | 'error'> {
  switch (result.kind) {
    case 'unwanted':
      return { statusCode: null, error: 'the subscription is disabled' }
    case 'failed':
      return { statusCode: null, error: `${result.reason}: ${result.details}` }
    case 'answered':
      // Postgres text holds no NUL.
      return { statusCode: result.status, error: result.body.replaceAll('\0', '').slice(0, 2048) }
  }
}

/** False when the signal ended it. */
function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(false)
    const cancel = clock.after(ms, () => {
      signal.removeEventListener('abort', ended)
      resolve(true)
    })
    const ended = () => {
      cancel()
      resolve(false)
    }
    signal.addEventListener('abort', ended, { once: true })
  })
}
