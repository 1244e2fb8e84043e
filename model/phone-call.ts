/**
 * Owns calls as answers show them: the call, its transcript, the link to its recording. Web calls are phone calls here too.
 * docs/contract/rest.md "Phone calls".
 */
import { z } from 'zod'
import type { AskedBy } from './asked-by.ts'
import { CallQuality, toCallQuality, type LegQuality } from './call-quality.ts'
import {
  CallStatus,
  CallWarning,
  callStatusOf,
  Direction,
  PostProcessingStatus,
  ProgressStatus,
  RecordingState,
  Speaker,
  toClockOffset,
  Transport,
  TurnLatency,
  type Turn,
} from './call.ts'
import { toIso } from './clock.ts'
import { Disclosure } from './disclosure.ts'
import { Customer, CustomerInput } from './customer.ts'
import { EvidenceByKey } from './extraction.ts'
import type { Once } from './idempotency.ts'
import type { AccountId, CallId, PersonId, TrunkId, WorkerId } from './ids.ts'
import { Instant } from './instant.ts'
import { JsonObject, Metadata } from './json.ts'
import { EndedBy, FailedReason, TerminalStatus } from './outcome.ts'
import { FilterText, pageOf, PlacePaging } from './paging.ts'
import { PhoneNumber } from './phone-number.ts'
import { PricedUsage } from './price-table.ts'
import { searchWordsOf } from './search-words.ts'
import { CallHeaders } from './sip-facts.ts'
import { withoutNulls } from './without-nulls.ts'

/** POST phone-calls. A `scheduledAt` that is past means now; no script named means all of the worker's. */
export const PhoneCallRequest = z.strictObject({
  workerId: z.string(),
  phoneNumber: PhoneNumber.optional(),
  context: z.string().max(100_000).optional(),
  customer: CustomerInput.optional(),
  callScriptFileNames: z.array(z.string().min(1).max(200)).max(50).optional(),
  scheduledAt: Instant.optional(),
  /** Additive, like all below: the number that is shown, one of the account's. Absent: the worker's. */
  from: PhoneNumber.optional(),
  headers: CallHeaders.optional(),
  instructions: z.string().max(100_000).optional(),
  metadata: Metadata.optional(),
})
export type PhoneCallRequest = z.infer<typeof PhoneCallRequest>

/** Additive. `status` takes the statuses of a call and its outcomes; `q` is words of what was said; times are of the creation, `from` inclusive, `to` exclusive. */
export const PhoneCallQuery = PlacePaging.extend({
  status: z.enum([...CallStatus.options, ...TerminalStatus.exclude(['completed']).options]).optional(),
  direction: Direction.optional(),
  workerId: z.string().optional(),
  q: FilterText.refine((text) => searchWordsOf([text]).length > 0, 'must have a letter or a digit').optional(),
  from: Instant.optional(),
  to: Instant.optional(),
})
export type PhoneCallQuery = z.infer<typeof PhoneCallQuery>

export const PhoneCall = z.object({
  id: z.string(),
  status: CallStatus,
  direction: Direction,
  postProcessingStatus: PostProcessingStatus,
  fromNumber: z.string().optional(),
  toNumber: z.string().optional(),
  /** The key of one of the worker's next actions, or `undetermined`. */
  nextAction: z.string().optional(),
  dimensions: JsonObject.optional(),
  startedAt: z.string().optional(),
  endedAt: z.string().optional(),
  /** Seconds from answer to end. */
  duration: z.number().optional(),
  /** `id` is null while no person is stored. */
  customer: Customer.extend({ id: z.string().nullable() }).optional(),
  workerId: z.string(),
  scheduledAt: z.string().optional(),
  /** Additive, like all below: what the last call.status_update said. */
  progress: ProgressStatus.optional(),
  transport: Transport.optional(),
  /** As the events of the call have it: of its creation, else of call.worker_request's answer. */
  metadata: JsonObject.optional(),
  /** How a call that reads `completed` really ended. */
  outcome: TerminalStatus.optional(),
  failedReason: FailedReason.optional(),
  endedBy: EndedBy.optional().describe(
    'Who ended the call: the person on the other side, the agent, this service, or the network between. Not there while the call runs, and for calls of before it was told.',
  ),
  endCause: z
    .string()
    .optional()
    .describe(
      'What the other side of a telephone call gave as the cause: `Q.850 16`, `SIP 486`. Not there when it gave none.',
    ),
  providerStatus: z.string().optional(),
  /** The trunk that carries a phone call, once one was chosen. */
  trunkId: z.string().optional(),
  quality: CallQuality.optional(),
  warnings: z.array(CallWarning).optional(),
  /** Additive: where each value of `dimensions` was said, by its key; `nextAction` and `nextAction.<property>` too. */
  evidence: EvidenceByKey.optional(),
  /** Of the next action, valid by its schema. */
  nextActionData: JsonObject.optional(),
  summary: z.string().optional(),
  recordingState: RecordingState.optional(),
  disclosure: Disclosure.optional(),
  /** In the answer of one call alone. */
  usage: PricedUsage.optional().describe(
    'What the call used and cost so far, what read its transcript included. Only where one call is asked for; not there while nothing was counted, and for calls of before it was.',
  ),
})
export type PhoneCall = z.infer<typeof PhoneCall>

export const PhoneCallPage = pageOf(PhoneCall)

/**
 * The call side, as the API sees it. Throws Problem IDEMPOTENCY_KEY_REUSED, and those of docs/contract/rest.md "Refusals at creation" in the order
 * of that table. A repeated request with the same `once` gives the first one's answer.
 */
export type CreatePhoneCall = (
  accountId: AccountId,
  request: PhoneCallRequest,
  once: Once | null,
  asked?: AskedBy,
) => Promise<PhoneCall>

/** Throws Problem NOT_FOUND, and CONFLICT for a call that is past the point: dialed for `cancel`, not running for `hangUp`. */
export type EndCall = {
  cancel(accountId: AccountId, callId: CallId): Promise<PhoneCall>
  hangUp(accountId: AccountId, callId: CallId): Promise<PhoneCall>
}

/**
 * Has a call that is over processed once more, as its worker is configured by now; it has no second end. Throws Problem NOT_FOUND, and CONFLICT while
 * it is not over or is being processed, and for a call that has nothing to process.
 */
export type ProcessAgain = (accountId: AccountId, callId: CallId) => Promise<PhoneCall>
/** False: the account has no such call. Throws Problem CONFLICT while it is not over. */
export type DeleteCall = (accountId: AccountId, callId: CallId) => Promise<boolean>

/**
 * Asked again, they change nothing. Throws Problem NOT_FOUND, and CONFLICT for a call that is not answered yet, is over or is not recorded;
 * SERVICE_UNAVAILABLE when nobody answers for it.
 */
export type PauseRecording = {
  pause(accountId: AccountId, callId: CallId): Promise<PhoneCall>
  resume(accountId: AccountId, callId: CallId): Promise<PhoneCall>
}

export const TranscriptSegment = z.object({
  /** `hh:mm:ss` since answer. */
  timestamps: z.object({ from: z.string(), to: z.string() }),
  speaker: Speaker,
  text: z.string(),
  confidence: z.number().nullable(),
  source: z.string().nullable(),
  /** Of an answer of the agent: what the caller waited for, in ms from the end of their speech. */
  latency: TurnLatency.optional(),
})
export type TranscriptSegment = z.infer<typeof TranscriptSegment>

/** Additive: in which format. Absent: the recording itself. */
export const AudioDownloadQuery = z.object({ format: z.enum(['wav', 'opus']).optional() })

/** `format` is additive: told to who asked for one. */
export const AudioDownload = z.object({ id: z.string(), url: z.string(), format: z.enum(['wav', 'opus']).optional() })
export type AudioDownload = z.infer<typeof AudioDownload>

/** Additive. Channels of a `split` recording: the agent, then the caller. */
export const AudioPeaks = z.object({
  id: z.string(),
  peaksPerSecond: z.number().int(),
  durationMs: z.number().int(),
  channels: z.array(z.array(z.number())),
})
export type AudioPeaks = z.infer<typeof AudioPeaks>

/** Times are ms since the epoch; `startedAt` is the answer. */
export type PhoneCallFacts = {
  readonly id: CallId
  readonly accountId: AccountId
  readonly workerId: WorkerId
  readonly direction: Direction
  readonly transport: Transport
  readonly progress: ProgressStatus
  readonly outcome: TerminalStatus | null
  readonly failedReason: FailedReason | null
  readonly providerStatus: string | null
  readonly postProcessingStatus: PostProcessingStatus
  readonly fromNumber: string | null
  readonly toNumber: string | null
  readonly personId: PersonId | null
  readonly customer: Customer | null
  readonly metadata: JsonObject | null
  readonly nextAction: { readonly key: string; readonly data?: JsonObject } | null
  readonly dimensions: JsonObject | null
  /** Null for calls of before it was kept, like the summary. */
  readonly evidence: EvidenceByKey | null
  readonly summary: string | null
  readonly scheduledAt: number | null
  readonly startedAt: number | null
  readonly endedAt: number | null
  readonly endedBy: EndedBy | null
  readonly endCause: string | null
  /** Null for web calls too. */
  readonly trunkId: TrunkId | null
  readonly quality: LegQuality | null
  readonly warnings: readonly CallWarning[]
  /** Null: recorded as any other, or not begun. */
  readonly recordingState: RecordingState | null
  /** Null: nothing was to be disclosed, or not yet. */
  readonly disclosure: Disclosure | null
}

export function toPhoneCall(call: PhoneCallFacts): PhoneCall {
  const { id, direction, postProcessingStatus, workerId, outcome, failedReason, providerStatus, dimensions } = call
  return {
    id,
    status: callStatusOf(call.progress),
    direction,
    postProcessingStatus,
    workerId,
    progress: call.progress,
    transport: call.transport,
    ...withoutNulls({
      ...numbersOf(call),
      nextAction: call.nextAction?.key,
      dimensions,
      startedAt: isoOrNull(call.startedAt),
      endedAt: isoOrNull(call.endedAt),
      duration: durationOf(call),
      customer: customerOf(call),
      metadata: call.metadata,
      scheduledAt: isoOrNull(call.scheduledAt),
      outcome,
      failedReason,
      endedBy: call.endedBy,
      endCause: call.endCause,
      providerStatus,
      trunkId: call.trunkId,
      quality: call.quality && toCallQuality(call.quality),
      warnings: call.warnings.length > 0 ? [...call.warnings] : null,
      evidence: call.evidence && Object.keys(call.evidence).length > 0 ? call.evidence : null,
      nextActionData: call.nextAction?.data,
      summary: call.summary,
      recordingState: call.recordingState,
      disclosure: call.disclosure,
    }),
  }
}

export function toTranscriptSegment({ from, to, role, text, confidence, source, latency }: Turn): TranscriptSegment {
  const timestamps = { from: toClockOffset(from), to: toClockOffset(to) }
  return { timestamps, speaker: role, text, confidence, source, ...(latency && { latency }) }
}

/** A browser has no number, whatever a row says. */
function numbersOf({ transport, fromNumber, toNumber }: PhoneCallFacts) {
  return transport === 'webrtc' ? {} : { fromNumber, toNumber }
}

/** Seconds from answer to end; null for a call that was never answered or is not over. */
export function durationOf({ startedAt, endedAt }: Pick<PhoneCallFacts, 'startedAt' | 'endedAt'>): number | null {
  return startedAt === null || endedAt === null ? null : (endedAt - startedAt) / 1000
}

function customerOf({ customer, personId, accountId }: PhoneCallFacts): PhoneCall['customer'] | null {
  return customer && { ...customer, accountId, id: personId }
}

const isoOrNull = (ms: number | null): string | null => (ms === null ? null : toIso(ms))
