/**
 * Owns calls as answers show them: the call, its transcript, the link to its recording. Web calls are phone calls here too.
 * rest-api-and-webhooks.md, Phone call; decisions.md, Phone calls.
 */
import { z } from 'zod'
import {
  CallStatus,
  callStatusOf,
  Direction,
  PostProcessingStatus,
  Speaker,
  toClockOffset,
  type ProgressStatus,
  type Transport,
  type Turn,
} from './call.ts'
import { toIso } from './clock.ts'
import { Customer } from './customer.ts'
import type { AccountId, CallId, PersonId, WorkerId } from './ids.ts'
import { JsonObject } from './json.ts'
import { FailedReason, TerminalStatus } from './outcome.ts'
import { withoutNulls } from './without-nulls.ts'

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
  customer: Customer.optional(),
  workerId: z.string(),
  scheduledAt: z.string().optional(),
  /** Additive, like the two below: how a call that reads `completed` really ended. */
  outcome: TerminalStatus.optional(),
  failedReason: FailedReason.optional(),
  providerStatus: z.string().optional(),
})
export type PhoneCall = z.infer<typeof PhoneCall>

export const TranscriptSegment = z.object({
  /** `hh:mm:ss` since answer. */
  timestamps: z.object({ from: z.string(), to: z.string() }),
  speaker: Speaker,
  text: z.string(),
  confidence: z.number().nullable(),
  source: z.string().nullable(),
})
export type TranscriptSegment = z.infer<typeof TranscriptSegment>

export const AudioDownload = z.object({ id: z.string(), url: z.string() })
export type AudioDownload = z.infer<typeof AudioDownload>

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
  readonly nextAction: { readonly key: string } | null
  readonly dimensions: JsonObject | null
  readonly scheduledAt: number | null
  readonly startedAt: number | null
  readonly endedAt: number | null
}

export function toPhoneCall(call: PhoneCallFacts): PhoneCall {
  const { id, direction, postProcessingStatus, workerId, outcome, failedReason, providerStatus, dimensions } = call
  return {
    id,
    status: callStatusOf(call.progress),
    direction,
    postProcessingStatus,
    workerId,
    ...withoutNulls({
      ...numbersOf(call),
      nextAction: call.nextAction?.key,
      dimensions,
      startedAt: isoOrNull(call.startedAt),
      endedAt: isoOrNull(call.endedAt),
      duration: durationOf(call),
      customer: customerOf(call),
      scheduledAt: isoOrNull(call.scheduledAt),
      outcome,
      failedReason,
      providerStatus,
    }),
  }
}

export function toTranscriptSegment({ from, to, role, text, confidence, source }: Turn): TranscriptSegment {
  return { timestamps: { from: toClockOffset(from), to: toClockOffset(to) }, speaker: role, text, confidence, source }
}

/** A browser has no number, whatever a row says. */
function numbersOf({ transport, fromNumber, toNumber }: PhoneCallFacts) {
  return transport === 'webrtc' ? {} : { fromNumber, toNumber }
}

/** Seconds from answer to end; null for a call that was never answered or is not over. */
export function durationOf({ startedAt, endedAt }: Pick<PhoneCallFacts, 'startedAt' | 'endedAt'>): number | null {
  return startedAt === null || endedAt === null ? null : (endedAt - startedAt) / 1000
}

function customerOf({ customer, personId, accountId }: PhoneCallFacts): Customer | null {
  return customer && { ...customer, accountId, ...withoutNulls({ id: personId }) }
}

const isoOrNull = (ms: number | null): string | null => (ms === null ? null : toIso(ms))
