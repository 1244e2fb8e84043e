/** Owns how a phone call is placed. No SIP edge is part of this process yet: none can be. rest-api-and-webhooks.md, failedReason. */
import type { FailedReason } from '../../model/outcome.ts'
import type { CallFactsRow } from '../../store/call-rows.ts'
import type { CallFact } from './call-event.ts'

const dialFailed = (reason: FailedReason): CallFact => ({
  type: 'dial_failed',
  outcome: { status: 'failed', reason },
  providerStatus: null,
})

export const sipCallFailed: CallFact = dialFailed('sip_call_failed')

/** A call without numbers was accepted all the same: it fails here, where its creator hears of it by call.ended. */
export function dial({ direction, fromNumber, toNumber }: CallFactsRow): CallFact {
  const missing = direction === 'outbound' && (fromNumber === null || toNumber === null)
  return missing ? dialFailed('missing_phone_numbers') : sipCallFailed
}
