/**
 * Owns the local receiver of `npm run admin -- webhook listen`: verifies, tells what came, marks what came before, answers. A model of a
 * good receiver, but for one thing: it keeps nothing.
 */
import type { ServerResponse } from 'node:http'
import {
  headerOf,
  openWebhookReceiver,
  refusalOfDelivery,
  type IncomingDelivery,
  type ReceivedDelivery,
  type WebhookReceiver,
} from '../callers/webhook-receiver.ts'
import { toSigningKey } from '../../actors/webhooks/sign.ts'
import { toIso } from '../../model/clock.ts'
import type { Json } from '../../model/json.ts'
import type { Arrival } from './arrival.ts'

export type ListenOptions = {
  readonly host: string
  /** 0 takes a free one. */
  readonly port: number
  /** Null: nothing is verified and everything is taken. */
  readonly secret: string | null
  /** What sync events are answered with; null: an empty answer that changes nothing. */
  readonly answer: Readonly<Record<string, Json>> | null
  /** Of every answer to what is verified. */
  readonly status: number
  readonly now: () => number
  /** Is told of every delivery, refused ones too. */
  readonly tell: (arrival: Arrival) => void
}

const maxBodyBytes = 2 * 1024 * 1024
/** The service has 128 at most, the doctor 64. */
const maxConnections = 256
const rememberedIds = 10_000

export function listenForWebhooks(options: ListenOptions): Promise<WebhookReceiver> {
  const { host, port, secret, status, now, tell } = options
  const key = secret === null ? null : toSigningKey(secret)
  const seenBefore = createRecentIds(rememberedIds)
  const at = (): string => toIso(now())

  return openWebhookReceiver({
    host,
    port,
    maxBodyBytes,
    maxConnections,
    refusalOf: (incoming) => (key ? refusalOfDelivery(incoming, key, now()) : null),
    answer(delivery: ReceivedDelivery, response: ServerResponse) {
      response.writeHead(status, { 'content-type': 'application/json' }).end(answerTo(delivery.type, options.answer))
      const { type, eventId, attempt, data } = delivery
      const duplicate = eventId !== '' && seenBefore(eventId)
      const reason = key ? null : 'not verified: no --secret'
      const callId = callIdOf(data)
      tell({ at: at(), type, eventId, attempt, callId, verified: key !== null, reason, duplicate, status, data })
    },
    refused(incoming, reason, refusedWith) {
      tell({ ...refusedArrivalOf(incoming), at: at(), reason: `refused: ${reason}`, status: refusedWith })
    },
  })
}

/** One object may serve both hooks: `result` is for tools, everything else for call.worker_request. */
function answerTo(type: string, given: ListenOptions['answer']): string {
  if (type === 'call.tool_call') return JSON.stringify(given && 'result' in given ? given : { result: null })
  return JSON.stringify(type === 'call.worker_request' && given ? given : {})
}

/** Nothing of it is trusted: the body is not even parsed. */
function refusedArrivalOf({ headers }: IncomingDelivery): Omit<Arrival, 'at' | 'reason' | 'status'> {
  return {
    type: headerOf(headers, 'x-service-event'),
    eventId: headerOf(headers, 'x-service-event-id'),
    attempt: Number(headerOf(headers, 'x-service-attempt')),
    callId: null,
    verified: false,
    duplicate: false,
    data: null,
  }
}

function callIdOf(data: unknown): string | null {
  const callId = typeof data === 'object' && data !== null && 'callId' in data ? data.callId : null
  return typeof callId === 'string' ? callId : null
}

/** True for an id that is among the last `limit` ones. */
function createRecentIds(limit: number): (id: string) => boolean {
  const ids = new Set<string>()
  return (id) => {
    if (ids.has(id)) return true
    const [oldest] = ids
    if (ids.size >= limit && oldest !== undefined) ids.delete(oldest)
    ids.add(id)
    return false
  }
}
