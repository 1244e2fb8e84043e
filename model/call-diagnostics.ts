/** Owns how a call is diagnosed: all that is kept of its course, of one call, as answers show it. docs/contract/rest.md "Diagnostics". */
import { z } from 'zod'
import { CallQuality } from './call-quality.ts'
import { Speaker, TurnLatency } from './call.ts'
import { EventType } from './events.ts'
import { PricedUsage } from './price-table.ts'
import { DeliveryStatus } from './webhook.ts'

const count = z.number().int().nonnegative()
const offset = count.describe('Milliseconds since the answer.')

/** Of each list at most, in one answer. */
export const diagnosticsLimit = 500

const From = z.coerce.number().int().min(0).max(2_147_483_647)

/** Where each list goes on: the `next` of the answer before. */
export const DiagnosticsQuery = z.object({
  fromTurn: From.default(0),
  fromStep: From.default(0),
  fromDelivery: z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER).default(0),
})
export type DiagnosticsQuery = z.infer<typeof DiagnosticsQuery>

const listOf = <Item extends z.ZodType>(item: Item) =>
  z.object({ data: z.array(item), next: count.nullable().describe('Where the list goes on; null: it does not.') })

const at = z.string().describe('ISO 8601, UTC.')

/** A turn without its words, which the transcript has. */
const DiagnosedTurn = z.object({
  turnIndex: count,
  speaker: Speaker,
  from: offset,
  to: offset,
  source: z.string().nullable().describe('The engine.'),
  confidence: z.number().nullable(),
  latency: TurnLatency.nullable().describe(
    'Of an answer of the agent: milliseconds from the end of the caller’s speech to each stage.',
  ),
})
export type DiagnosedTurn = z.infer<typeof DiagnosedTurn>

const DiagnosedStep = z.object({
  seq: count,
  epoch: count.describe('Of the actor that took it.'),
  at,
  fact: z.string().describe('What happened, as the log of the call names it.'),
  ignored: z.boolean().describe('The call had no use for it in its state.'),
  details: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
})
export type DiagnosedStep = z.infer<typeof DiagnosedStep>

const DiagnosedDelivery = z.object({
  id: z.string().describe('The X-Service-Event-Id.'),
  subscriptionId: z.string(),
  eventType: EventType,
  status: DeliveryStatus,
  eventAt: at,
  deliveredAt: z.string().nullable(),
  attempts: z.array(
    z.object({
      attempt: z.number().int(),
      at,
      durationMs: count,
      statusCode: z.number().int().nullable(),
      error: z.string().nullable(),
    }),
  ),
})
export type DiagnosedDelivery = z.infer<typeof DiagnosedDelivery>

const DiagnosedHook = z.object({
  at,
  type: z.enum(['call.worker_request', 'tool']),
  name: z.string().nullable().describe('Of a tool.'),
  verdict: z
    .string()
    .nullable()
    .describe('`answered`, `failed`, `canceled`, or the status of the tool’s result; null: nobody has answered yet.'),
  tookMs: count.nullable(),
  details: z.string().nullable().describe('What was wrong.'),
})
export type DiagnosedHook = z.infer<typeof DiagnosedHook>

const DiagnosedEngine = z.object({
  from: at,
  to: z.string().nullable().describe('Null: it runs.'),
  engine: z.string().nullable().describe('Null: it said nothing, and none was named.'),
  purpose: z.enum(['talk', 'disclosure']),
  ending: z.string().nullable().describe('What ended it, as the log names it: `engine_failed`, `taken_over`, …'),
  details: z.string().nullable(),
})
export type DiagnosedEngine = z.infer<typeof DiagnosedEngine>

const DiagnosedTenure = z.object({
  epoch: count,
  from: at.describe('Of its first step.'),
  to: at.describe('Of its last step.'),
  steps: count,
  takenOver: z.boolean().describe('It went on with a call of another actor.'),
})
export type DiagnosedTenure = z.infer<typeof DiagnosedTenure>

const DiagnosedMessage = z.object({
  at,
  direction: z.enum(['in', 'out']),
  protocol: z.string(),
  local: z.string(),
  remote: z.string(),
  text: z.string().describe('Start line, headers and SDP; credentials and keys are masked.'),
})
export type DiagnosedMessage = z.infer<typeof DiagnosedMessage>

export const CallDiagnostics = z.object({
  callId: z.string(),
  ending: z.string().nullable().describe('Why the call ended, in one sentence; null while it has not.'),
  createdAt: at,
  startedAt: z.string().nullable().describe('Of the answer.'),
  endedAt: z.string().nullable(),
  quality: CallQuality.nullable(),
  turns: listOf(DiagnosedTurn),
  steps: listOf(DiagnosedStep).describe('The log of the call, but for what was said.'),
  engines: z.array(DiagnosedEngine),
  tenures: z.array(DiagnosedTenure).describe('Who ran the call, one actor after the other.'),
  hooks: z.array(DiagnosedHook).describe('Questions that the call waited for: call.worker_request and tools.'),
  deliveries: listOf(DiagnosedDelivery),
  messages: z
    .object({ data: z.array(DiagnosedMessage), leftOut: count.describe('So many more there were.') })
    .describe('SIP messages of a telephone call that is over, in their order.'),
  usage: PricedUsage.nullable().describe('What it used and cost so far; null of calls of before it was counted.'),
})
export type CallDiagnostics = z.infer<typeof CallDiagnostics>
