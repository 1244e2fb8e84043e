/** Owns what the browser of a web call is told of an effect. Pure. */
import type { CallWarning } from '../../../model/call.ts'
import { toIso } from '../../../model/clock.ts'
import type { CallId } from '../../../model/ids.ts'
import { failedReasonOf, type Outcome } from '../../../model/outcome.ts'
import { errorBodyOf, Problem } from '../../../model/problem.ts'
import type { ServerMessage } from '../../../model/signaling.ts'
import type { Effect } from '../call-event.ts'

/** The page of the caller has no use for what the disk or a provider did to the operator. */
const forOperators: readonly CallWarning['type'][] = [
  'RECORDING_INCOMPLETE',
  'DISCLOSURE_MISSING',
  'DISCLOSURE_REWORDED',
]

/** `now`: ms since the epoch. */
export function messagesOf(effect: Effect, callId: CallId, now: number): ServerMessage[] {
  const ts = toIso(now)
  if (effect.type === 'announce_status') return [{ type: 'status', status: effect.status, ts }]
  if (effect.type === 'store_outcome')
    return [...errorsOf(effect.outcome, callId), { type: 'bye', reason: effect.outcome.status }]
  if (effect.type === 'store_warning' && forOperators.includes(effect.warning.type)) return []
  if (effect.type === 'store_warning') return [{ type: 'warning', warning: effect.warning, ts }]
  if (effect.type !== 'store_turn') return []
  const { role, text } = effect.turn
  return [{ type: 'transcript', role, text, isFinal: true, turnIndex: effect.index, ts }]
}

/** A page can say to its visitor that it was not their microphone. */
function errorsOf(outcome: Outcome, callId: CallId): ServerMessage[] {
  if (failedReasonOf(outcome) !== 'voice_session_creation_failed') return []
  const problem = new Problem('SERVICE_UNAVAILABLE', 'No voice session could be created for the call; try again later.')
  return [{ type: 'error', error: errorBodyOf(problem, callId) }]
}
