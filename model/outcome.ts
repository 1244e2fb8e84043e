/**
 * Owns how a call ends. An ending is a value, never an exception. docs/contract/rest.md "States of a call", docs/contract/webhooks.md
 * "failedReason".
 */
import { z } from 'zod'

export const FailedReason = z.enum([
  'missing_phone_numbers',
  'worker_request_required_failed',
  'voice_session_unavailable',
  'voice_session_creation_failed',
  'carrier_call_failed',
  'sip_call_failed',
  'webrtc_client_never_connected',
  'cancelled_by_account_admin',
  // Additive: an end that was no end of the talk.
  'media_lost',
  'internal_error',
])
export type FailedReason = z.infer<typeof FailedReason>

export const TerminalStatus = z.enum(['completed', 'voicemail', 'no_answer', 'busy', 'canceled', 'failed'])
export type TerminalStatus = z.infer<typeof TerminalStatus>

/**
 * Who ended a call: the person on the other side (their telephone or browser), the agent, this service (for its account, by its limits, by a
 * fault of its own), or the network between.
 */
export const EndedBy = z.enum(['caller', 'agent', 'service', 'network'])
export type EndedBy = z.infer<typeof EndedBy>

/** `canceled` has a reason when it was taken back before it was dialed; a failed call without a known reason has null. */
export type Outcome =
  | { readonly status: 'completed' | 'voicemail' | 'no_answer' | 'busy' }
  | { readonly status: 'canceled'; readonly reason: FailedReason | null }
  | { readonly status: 'failed'; readonly reason: FailedReason | null }

export const failedReasonOf = (outcome: Outcome): FailedReason | null =>
  outcome.status === 'failed' || outcome.status === 'canceled' ? outcome.reason : null
