/** Owns how a call is diagnosed: all that is kept of its course, of one call, as answers show it. docs/contract/rest.md "Diagnostics". */
import { z } from 'zod'
import { CallQuality } from './call-quality.ts'
import { Speaker, TurnLatency } from './call.ts'
import { EventType } from './events.ts'
import { numberOfQuery } from './paging.ts'
import { PricedUsage } from './price-table.ts'
import { DeliveryStatus } from './webhook.ts'

const count = z.number().int().nonnegative()
const offset = count.describe('Milliseconds since the answer.')

/** Of each list at most, in one answer. */
export const diagnosticsLimit = 500

const From = numberOfQuery(0, 2_147_483_647)

/** Where each list goes on: the `next` of the answer before. */
export const DiagnosticsQuery = z.object({
  fromTurn: From.default(0),
  fromStep: From.default(0),
  fromDelivery: numberOfQuery(0, Number.MAX_SAFE_INTEGER).default(0),
  fromHook: From.default(0),
})
export type DiagnosticsQuery = z.infer<typeof DiagnosticsQuery>

/** From which turn on: who follows a call of hours asks for what is new. */
export const TranscriptQuery = z.object({ fromTurn: From.default(0) })

const listOf = <Item extends z.ZodType>(item: Item) =>
  z.object({
    data: z.array(item).describe('In their order, 500 at most.'),
    next: count.nullable().describe('Where the list goes on; null: it does not.'),
  })

const at = z.string().describe('ISO 8601, UTC.')
const Details = z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]))

/** A turn without its words, which the transcript has. */
const DiagnosedTurn = z.object({
  turnIndex: count.describe('Number of the turn in the call, from 0.'),
  speaker: Speaker.describe('user is the person on the other side.'),
  from: offset,
  to: offset,
  source: z.string().nullable().describe('The engine; `supervisor`: a person in the agent’s place.'),
  confidence: z.number().nullable().describe('0 to 1; null where the engine tells none.'),
  latency: TurnLatency.nullable().describe(
    'Of an answer of the agent: milliseconds from the end of the caller’s speech to each stage.',
  ),
})
export type DiagnosedTurn = z.infer<typeof DiagnosedTurn>

const DiagnosedStep = z.object({
  seq: count.describe('Number of the step in the log.'),
  epoch: count.describe('Of the actor that took it.'),
  at,
  fact: z.string().describe('What happened, as the log of the call names it.'),
  ignored: z.boolean().describe('The call had no use for it in its state.'),
  details: Details.describe('What the log has beside the fact: numbers, words of the service, and what was wrong.'),
})
export type DiagnosedStep = z.infer<typeof DiagnosedStep>

const DeliveryAttempt = z.object({
  attempt: z.number().int(),
  at,
  durationMs: count,
  statusCode: z.number().int().nullable(),
  error: z.string().nullable(),
})

const DiagnosedDelivery = z.object({
  id: z.string().describe('The X-Service-Event-Id.'),
  subscriptionId: z.string().describe('The subscription.'),
  eventType: EventType.describe('What it tells.'),
  status: DeliveryStatus.describe('exhausted: it is not tried again unless it is asked for.'),
  eventAt: at,
  deliveredAt: z.string().nullable().describe('When it arrived. ISO 8601, UTC; null: it has not.'),
  attempts: z.array(DeliveryAttempt).describe('All attempts, in order.'),
})
export type DiagnosedDelivery = z.infer<typeof DiagnosedDelivery>

const DiagnosedHook = z.object({
  at,
  type: z.enum(['call.worker_request', 'tool']).describe('Which kind of question.'),
  name: z.string().nullable().describe('Of a tool.'),
  verdict: z
    .string()
    .nullable()
    .describe('`answered`, `failed`, `canceled`, or the status of the tool’s result; null: nobody has answered yet.'),
  tookMs: count.nullable().describe('Milliseconds until the answer; null: nobody has answered yet.'),
  details: z.string().nullable().describe('What was wrong.'),
})
export type DiagnosedHook = z.infer<typeof DiagnosedHook>

const DiagnosedEngine = z.object({
  from: at,
  to: z.string().nullable().describe('Null: it runs.'),
  engine: z.string().nullable().describe('Null: it said nothing, and none was named.'),
  purpose: z.enum(['talk', 'disclosure']).describe('disclosure: it says what is to be said first.'),
  ending: z
    .string()
    .nullable()
    .describe('What ended it, as the log names it, such as `engine_failed` or `taken_over`; null: it runs.'),
  details: z.string().nullable().describe('What the log has about its end; null: nothing.'),
})
export type DiagnosedEngine = z.infer<typeof DiagnosedEngine>

const DiagnosedTenure = z.object({
  epoch: count.describe('Number of the actor, from 1; 0 is the creation of the call.'),
  from: at.describe('Of its first step.'),
  to: at.describe('Of its last step.'),
  steps: count.describe('How many steps it took.'),
  takenOver: z.boolean().describe('It went on with a call of another actor.'),
})
export type DiagnosedTenure = z.infer<typeof DiagnosedTenure>

const DiagnosedMessage = z.object({
  at,
  direction: z.enum(['in', 'out']).describe('in: from the other side; out: to it.'),
  protocol: z.string().describe('What carried it: udp, tcp or tls; ws: the signaling socket of a browser.'),
  local: z.string().describe('Address of this service, with its port; of a socket the name that it was asked for by.'),
  remote: z.string().describe('Address of the other side, with its port; port 0: it is not known.'),
  text: z
    .string()
    .describe(
      'SIP: start line, headers and SDP. A socket: the JSON object. Credentials, keys and fingerprints are masked.',
    ),
})
export type DiagnosedMessage = z.infer<typeof DiagnosedMessage>

export const CallDiagnostics = z.object({
  callId: z.string(),
  ending: z.string().nullable().describe('Why the call ended, in one sentence; null while it has not.'),
  createdAt: at,
  startedAt: z.string().nullable().describe('When it was answered. ISO 8601, UTC; null: it has not been.'),
  endedAt: z.string().nullable().describe('When its media ended. ISO 8601, UTC; null: it has not.'),
  quality: CallQuality.nullable(),
  turns: listOf(DiagnosedTurn).describe('The turns of the talk, without their words.'),
  steps: listOf(DiagnosedStep).describe('The log of the call, but for what was said.'),
  engines: z.array(DiagnosedEngine).describe('Sessions with voice engines, one after the other, 500 at most.'),
  tenures: z.array(DiagnosedTenure).describe('Who ran the call, one actor after the other, 500 at most.'),
  hooks: z
    .array(DiagnosedHook)
    .describe('Questions that the call waited for, in their order, 500 at most: call.worker_request and tools.'),
  nextHook: count.nullable().describe('Where hooks goes on; null: it does not.'),
  deliveries: listOf(DiagnosedDelivery).describe('Webhook deliveries about the call.'),
  messages: z
    .object({
      data: z.array(DiagnosedMessage).describe('The messages, 300 at most.'),
      leftOut: count.describe('So many more there were.'),
    })
    .describe('Signaling of a call that is over, in its order: SIP, or the socket of a browser.'),
  usage: PricedUsage.nullable().describe('What it used and cost so far; null of calls of before it was counted.'),
})
export type CallDiagnostics = z.infer<typeof CallDiagnostics>
