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
])
export type FailedReason = z.infer<typeof FailedReason>

export const TerminalStatus = z.enum(['completed', 'voicemail', 'no_answer', 'busy', 'canceled', 'failed'])
export type TerminalStatus = z.infer<typeof TerminalStatus>

/** `canceled` has a reason when it was taken back before it was dialed; a failed call without a known reason has null. */
export type Outcome =
  | { readonly status: 'completed' | 'voicemail' | 'no_answer' | 'busy' }
  | { readonly status: 'canceled'; readonly reason: FailedReason | null }
  | { readonly status: 'failed'; readonly reason: FailedReason | null }

export const failedReasonOf = (outcome: Outcome): FailedReason | null =>
  outcome.status === 'failed' || outcome.status === 'canceled' ? outcome.reason : null
