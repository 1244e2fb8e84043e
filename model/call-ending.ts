/** Owns the sentence that says why a call ended, for people: operators in a terminal, whoever looks at a call on a page. Pure. */
import type { PhoneCall } from './phone-call.ts'

/** What of a call's answer tells its end. */
export type EndedCall = Pick<PhoneCall, 'status' | 'progress' | 'direction' | 'transport'> &
  Partial<Pick<PhoneCall, 'outcome' | 'failedReason' | 'endedBy' | 'endCause' | 'providerStatus' | 'duration'>>

/** Null: it has not ended. One sentence; whatever a version of before did not tell is left out of it. */
export function endingOf(call: EndedCall): string | null {
  const { outcome } = call
  if (outcome === undefined) return null
  return `${reasonOf(call, outcome)}${causeOf(call)}${lengthOf(call)}.`
}

function reasonOf(call: EndedCall, outcome: NonNullable<EndedCall['outcome']>): string {
  switch (outcome) {
    case 'completed':
      return completedOf(call)
    case 'voicemail':
      return 'An answering machine took the call'
    case 'no_answer':
      return 'Nobody answered'
    case 'busy':
      return call.endedBy === 'network' ? 'The carrier found the line busy' : 'The other side was busy or declined'
    case 'canceled':
      return canceledOf(call)
    case 'failed':
      return failedOf(call)
  }
}

function completedOf({ endedBy, transport }: EndedCall): string {
  switch (endedBy) {
    case 'caller':
      return transport === 'webrtc' ? 'The caller left the page or hung up' : 'The other side hung up'
    case 'agent':
      return 'The agent ended the call'
    case 'service':
      return 'The service ended the call: its account asked for it, or it reached its longest time'
    case 'network':
      return 'The network ended the call'
    case undefined:
      return 'The call came to its end'
  }
}

function canceledOf({ failedReason, endedBy, direction }: EndedCall): string {
  if (failedReason === 'cancelled_by_account_admin') return 'The account canceled the call before it was answered'
  if (failedReason === 'webrtc_client_never_connected') return 'No browser joined the call in time'
  if (endedBy === 'caller' && direction === 'inbound') return 'The caller hung up before the call was answered'
  return 'The call was taken back before it was answered'
}

function failedOf({ failedReason, endedBy }: EndedCall): string {
  switch (failedReason) {
    case 'missing_phone_numbers':
      return 'There was no number to dial'
    case 'worker_request_required_failed':
      return 'The receiver of call.worker_request, which the call needs, gave no usable answer'
    case 'voice_session_unavailable':
      return 'The voice engine that the call needs is not set up'
    case 'voice_session_creation_failed':
      return 'No voice engine gave a session, or the last one was lost'
    case 'carrier_call_failed':
      return 'The carrier refused the call'
    case 'sip_call_failed':
      return 'No gateway of the trunk took the call'
    case 'webrtc_client_never_connected':
      return 'No browser connected its sound in time'
    case 'cancelled_by_account_admin':
      return 'The account canceled the call'
    case 'media_lost':
      return 'The sound of the other side stopped coming'
    case 'internal_error':
      return 'The service failed'
    case undefined:
      return endedBy === 'network' ? 'The network failed the call' : 'The call failed, and nobody told why'
  }
}

/** `Q.850 16`, else what a SIP peer answered last; what a browser's connection says of itself is no cause. */
function causeOf({ endCause, providerStatus, transport, outcome }: EndedCall): string {
  const cause = endCause ?? (outcome !== 'completed' && transport === 'sip_trunk' ? providerStatus : undefined)
  return cause === undefined || cause === '' ? '' : ` (${cause}${meaningOf(cause)})`
}

/** ITU-T Q.850, and RFC 3261 and RFC 3326 where a status says more than its number. */
const meanings: Readonly<Record<string, string>> = {
  'Q.850 1': 'unallocated number',
  'Q.850 3': 'no route to the destination',
  'Q.850 16': 'normal clearing',
  'Q.850 17': 'user busy',
  'Q.850 18': 'no user responding',
  'Q.850 19': 'no answer',
  'Q.850 21': 'rejected',
  'Q.850 27': 'destination out of order',
  'Q.850 28': 'invalid number',
  'Q.850 31': 'normal, unspecified',
  'Q.850 34': 'no circuit free',
  'Q.850 38': 'network out of order',
  'Q.850 41': 'temporary failure',
  'Q.850 42': 'congestion',
  'Q.850 47': 'no resource',
  'Q.850 57': 'not authorised',
  'Q.850 88': 'incompatible destination',
  'Q.850 102': 'a timer of the network ran out',
  'Q.850 127': 'interworking',
  'SIP 403': 'forbidden',
  'SIP 404': 'not found',
  'SIP 407': 'wants a password',
  'SIP 408': 'timeout',
  'SIP 480': 'not available',
  'SIP 486': 'busy',
  'SIP 487': 'canceled',
  'SIP 488': 'no common codec',
  'SIP 500': 'server error',
  'SIP 503': 'out of service',
  'SIP 600': 'busy everywhere',
  'SIP 603': 'declined',
}

function meaningOf(cause: string): string {
  const meaning = meanings[cause] ?? meanings[`SIP ${cause.slice(0, 3)}`]
  return meaning === undefined ? '' : `, ${meaning}`
}

function lengthOf({ duration }: EndedCall): string {
  if (duration === undefined) return ''
  const seconds = Math.round(duration)
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
  const parts = [hours > 0 ? `${hours} h` : '', minutes > 0 ? `${minutes} min` : '', `${rest} s`]
  return `, after ${parts.filter((part) => part !== '').join(' ')}`
}
