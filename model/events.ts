/** Owns the five events that webhooks carry: names, modes and the shape of each `data`. docs/contract/webhooks.md "Delivery modes". */
import { z } from 'zod'
import { CallerProof } from './caller-proof.ts'
import { Direction, ProgressStatus, Speaker } from './call.ts'
import { ExternalTool } from './external-tool.ts'
import { Json, JsonObject, Metadata } from './json.ts'
import { Language } from './language.ts'
import { nullAsAbsent } from './null-as-absent.ts'
import { EndedBy, TerminalStatus } from './outcome.ts'
import { SipFacts } from './sip-facts.ts'
import { WorkerConfig } from './worker.ts'

export const EventType = z.enum([
  'call.worker_request',
  'call.tool_call',
  'call.transcript',
  'call.status_update',
  'call.ended',
])
export type EventType = z.infer<typeof EventType>

/** A subscription names one event type, or `*` for all of them. */
export const SubscribedType = z.enum([...EventType.options, '*'])
export type SubscribedType = z.infer<typeof SubscribedType>

export const deliveryModeOf = (type: SubscribedType): 'sync' | 'async' | 'both' => {
  if (type === '*') return 'both'
  return type === 'call.worker_request' || type === 'call.tool_call' ? 'sync' : 'async'
}

const metadata = JsonObject.optional()

export const WorkerRequestData = z.object({
  callId: z.string(),
  accountId: z.string(),
  workerId: z.string(),
  direction: Direction,
  transport: z.string().optional(),
  customer: z
    .object({
      number: z.string().optional(),
      name: z.string().nullable().optional(),
      personId: z.string().nullable().optional(),
      language: z.string().nullable().optional(),
    })
    .optional(),
  /** Additive: of an inbound phone call. */
  sip: SipFacts.extend({ /** Does the number prove who calls? */ identity: CallerProof.optional() }).optional(),
  metadata,
})
export type WorkerRequestData = z.infer<typeof WorkerRequestData>

/**
 * The answer of a call.worker_request receiver. `config` is partial; what it does not name stays. A receiver may send back all of the Worker
 * configuration it knows: what cannot be changed for one call, or is not known, is passed over.
 */
export const WorkerRequestAnswer = z.object({
  config: z.object({ ...WorkerConfig.shape, language: Language.optional() }).optional(),
  instructions: z.string().max(100_000).optional(),
  tools: z.array(z.object(ExternalTool.shape)).max(64).optional(),
  metadata: Metadata.optional(),
})
export type WorkerRequestAnswer = z.infer<typeof WorkerRequestAnswer>

/** Null reads as absent, whatever may be absent in it, and all of it too: frameworks write it for a receiver that has nothing to say. */
export const parseWorkerRequestAnswer = (json: unknown): z.ZodSafeParseResult<WorkerRequestAnswer> =>
  WorkerRequestAnswer.safeParse(nullAsAbsent(WorkerRequestAnswer, json ?? {}))

export const ToolCallData = z.object({
  callId: z.string(),
  accountId: z.string(),
  workerId: z.string(),
  /** Unique per tool call. */
  toolCallId: z.string(),
  name: z.string(),
  arguments: JsonObject,
  metadata,
})
export type ToolCallData = z.infer<typeof ToolCallData>

/** The answer of a call.tool_call receiver: `result` must be there, null too. */
export const ToolCallAnswer = z.object({ result: Json })
export type ToolCallAnswer = z.infer<typeof ToolCallAnswer>

export const StatusUpdateData = z.object({
  callId: z.string(),
  status: ProgressStatus,
  providerStatus: z.string().nullable(),
  ts: z.string(),
  metadata,
})
export type StatusUpdateData = z.infer<typeof StatusUpdateData>

export const TranscriptData = z.object({
  callId: z.string(),
  turnIndex: z.number().int(),
  role: Speaker,
  text: z.string(),
  isFinal: z.boolean(),
  confidence: z.number().nullable(),
  source: z.string().nullable(),
  ts: z.string(),
  metadata,
})
export type TranscriptData = z.infer<typeof TranscriptData>

export const EndedData = z.object({
  callId: z.string(),
  status: TerminalStatus,
  failedReason: z.string().nullable().optional(),
  accountId: z.string(),
  workerId: z.string(),
  direction: Direction.optional(),
  fromNumber: z.string().nullable().optional(),
  toNumber: z.string().nullable().optional(),
  duration: z.number().nullable().optional(),
  scheduledAt: z.string().nullable().optional(),
  startedAt: z.string().nullable().optional(),
  endedAt: z.string().nullable().optional(),
  /** Additive, like the next. */
  endedBy: EndedBy.nullable().optional(),
  endCause: z.string().nullable().optional(),
  transcript: Json.optional(),
  recordingAvailable: z.boolean(),
  nextAction: z.object({ key: z.string(), name: z.string(), data: JsonObject.optional() }).optional(),
  personId: z.string().nullable().optional(),
  metadata,
})
export type EndedData = z.infer<typeof EndedData>

/** What one state change wants delivered, before anybody knows who subscribed. */
export type CallEvent =
  | { readonly type: 'call.status_update'; readonly data: StatusUpdateData }
  | { readonly type: 'call.transcript'; readonly data: TranscriptData }
  | { readonly type: 'call.ended'; readonly data: EndedData }
  | { readonly type: 'call.tool_call'; readonly data: ToolCallData }
