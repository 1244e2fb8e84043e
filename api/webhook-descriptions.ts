/**
 * Owns how the OpenAPI document tells of what receivers get and may answer. Sending is no business of the API. docs/contract/webhooks.md
 * "Delivery modes".
 */
import { z } from '@hono/zod-openapi'
import {
  EndedData,
  StatusUpdateData,
  ToolCallAnswer,
  ToolCallData,
  TranscriptData,
  WorkerRequestAnswer,
  WorkerRequestData,
  type EventType,
} from '../model/events.ts'
import type { Api } from './deps.ts'
import { bodyOf, named } from './openapi.ts'

type Description = {
  readonly operationId: string
  readonly summary: string
  readonly data: z.ZodType
  /** Of an event whose answer changes the call. */
  readonly answer: z.ZodType | null
}

const events: Readonly<Record<EventType, Description>> = {
  'call.worker_request': {
    operationId: 'onWorkerRequest',
    summary: 'Configure a call right before it starts',
    data: named('WorkerRequestData', WorkerRequestData),
    answer: named('WorkerRequestAnswer', WorkerRequestAnswer),
  },
  'call.tool_call': {
    operationId: 'onToolCall',
    summary: 'Do the work of an external tool',
    data: named('ToolCallData', ToolCallData),
    answer: named('ToolCallAnswer', ToolCallAnswer),
  },
  'call.transcript': {
    operationId: 'onTranscript',
    summary: 'Learn what was said',
    data: named('TranscriptData', TranscriptData),
    answer: null,
  },
  'call.status_update': {
    operationId: 'onStatusUpdate',
    summary: 'Learn that the status of a call has changed',
    data: named('StatusUpdateData', StatusUpdateData),
    answer: null,
  },
  'call.ended': {
    operationId: 'onEnded',
    summary: 'Learn how a call ended, as the last event of it',
    data: named('EndedData', EndedData),
    answer: null,
  },
}

const describedAs = (description: string, schema: z.ZodType = z.string()) => schema.openapi({ description })

const DeliveryHeaders = z.object({
  'X-Service-Event': describedAs('The type of the event.'),
  'X-Service-Event-Id': describedAs('Stays the same when the delivery is repeated: drop what you have seen.'),
  'X-Service-Timestamp': describedAs('When the event was made.', z.iso.datetime()),
  'X-Service-Delivery': describedAs('sync: the call waits for the answer.', z.enum(['sync', 'async'])),
  'X-Service-Account-Id': describedAs('The account.'),
  'X-Service-Signature': describedAs('HMAC-SHA256 of the raw body with the signing secret, in hex.'),
  'X-Service-Attempt': describedAs('1 for the first attempt.'),
  'X-Request-Id': describedAs(
    'Of the REST request that asked for the call, as its answer had it; of other calls as X-Service-Event-Id.',
  ),
  traceparent: describedAs('W3C Trace Context of the call; where the operator traces calls.').optional(),
  'webhook-id': describedAs('As X-Service-Event-Id.'),
  'webhook-timestamp': describedAs('Seconds since the epoch, of this attempt.'),
  'webhook-signature': describedAs('The signature of Standard Webhooks, with the same secret.'),
})

export function describeWebhooks({ openAPIRegistry: registry }: Api): void {
  for (const [type, { operationId, summary, data, answer }] of Object.entries(events))
    registry.registerWebhook({
      method: 'post',
      path: type,
      operationId,
      summary,
      tags: ['Webhooks'],
      security: [],
      request: { headers: DeliveryHeaders, body: bodyOf(z.object({ type: z.literal(type), data })) },
      responses: answer
        ? { 200: { description: 'What is to be done.', content: { 'application/json': { schema: answer } } } }
        : { '2XX': { description: 'Received. The body is not looked at.' } },
    })
}
