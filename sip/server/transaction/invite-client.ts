/** Owns the transitions of an INVITE we sent. RFC 3261 §17.1.1 (figure 5), RFC 6026 §7.2 (Accepted), CANCEL by §9.1. */
import {
  acknowledge,
  begin,
  type Begin,
  type Class,
  fail,
  pass,
  sendAgain,
  sendCancel,
  start,
  stay,
  type Step,
  stop,
  type Timer,
  to,
  type Way,
} from './machine.ts'

export type InviteClientState =
  /** `retransmitAfter`: ms until the next copy, doubled each time. */
  | { readonly name: 'calling'; readonly retransmitAfter: number; readonly canceled: boolean }
  | { readonly name: 'proceeding'; readonly canceled: boolean }
  | { readonly name: 'completed' }
  | { readonly name: 'accepted' }
  | { readonly name: 'terminated' }

export type InviteClientEvent =
  | { readonly type: 'response'; readonly class: Class }
  | { readonly type: 'timer'; readonly timer: Timer }
  | { readonly type: 'cancel' }
  | { readonly type: 'transportFailed'; readonly details: string }

const terminated: InviteClientState = { name: 'terminated' }
const completed: InviteClientState = { name: 'completed' }
const accepted: InviteClientState = { name: 'accepted' }

/** §17.1.1.2: at least 32 s, however short T1 is. */
const timerD = 32_000

/** The request has just been sent. */
export function startInviteClient({ t1, reliable, timeoutT1 }: Way): Begin<InviteClientState> {
  const state: InviteClientState = { name: 'calling', retransmitAfter: t1, canceled: false }
  return reliable ? begin(state, start('B', timeoutT1 * t1)) : begin(state, start('A', t1), start('B', timeoutT1 * t1))
}

export function stepInviteClient(
  state: InviteClientState,
  event: InviteClientEvent,
  way: Way,
): Step<InviteClientState> {
  switch (state.name) {
    case 'calling':
    case 'proceeding':
      return stepUnanswered(state, event, way)
    case 'completed':
      return stepCompleted(event)
    case 'accepted':
      return stepAccepted(event)
    case 'terminated':
      return stay(state)
  }
}

type Unanswered = Extract<InviteClientState, { canceled: boolean }>

function stepUnanswered(state: Unanswered, event: InviteClientEvent, way: Way): Step<InviteClientState> {
  switch (event.type) {
    case 'response':
      return answered(state, event.class, way)
    case 'timer':
      return timedOut(state, event.timer, way)
    case 'cancel':
      return canceled(state, way)
    case 'transportFailed':
      return to(terminated, fail('transport', event.details))
  }
}

function answered(state: Unanswered, responseClass: Class, way: Way): Step<InviteClientState> {
  if (responseClass === 'provisional') return provisional(state, way)
  const done = [stop('A'), stop('B'), stop('C'), stop('canceled')]
  // RFC 6026 §7.2: further 2xx, of this or another fork, still belong to this transaction.
  if (responseClass === 'success') return to(accepted, ...done, start('M', 64 * way.t1), pass)
  if (way.reliable) return to(terminated, acknowledge, pass)
  return to(completed, ...done, start('D', Math.max(timerD, 64 * way.t1)), acknowledge, pass)
}

function provisional(state: Unanswered, way: Way): Step<InviteClientState> {
  const proceeding: InviteClientState = { name: 'proceeding', canceled: state.canceled }
  if (state.name === 'proceeding') return state.canceled ? to(state, pass) : to(state, start('C', way.ringing), pass)
  const answeredFirst = [stop('A'), stop('B')]
  // A CANCEL that was held goes out before anybody reacts to the response.
  if (state.canceled) return to(proceeding, ...answeredFirst, sendCancel, start('canceled', 64 * way.t1), pass)
  return to(proceeding, ...answeredFirst, start('C', way.ringing), pass)
}

function timedOut(state: Unanswered, timer: Timer, way: Way): Step<InviteClientState> {
  // It rang too long: the other side is told to stop (§16.8).
  if (timer === 'C') return canceled(state, way)
  if (timer !== 'A') return to(terminated, fail('timeout', 'no final answer to INVITE'))
  if (state.name !== 'calling') return stay(state)
  const retransmitAfter = 2 * state.retransmitAfter
  return to({ ...state, retransmitAfter }, sendAgain, start('A', retransmitAfter))
}

/** §9.1: no CANCEL before a provisional response; B goes on running until there is one. */
function canceled(state: Unanswered, way: Way): Step<InviteClientState> {
  if (state.canceled) return stay(state)
  const next = { ...state, canceled: true }
  if (state.name === 'calling') return to(next)
  return to(next, stop('C'), sendCancel, start('canceled', 64 * way.t1))
}

function stepCompleted(event: InviteClientEvent): Step<InviteClientState> {
  if (event.type === 'response' && event.class === 'refusal') return to(completed, acknowledge)
  if (event.type === 'timer' || event.type === 'transportFailed') return to(terminated)
  return stay(completed)
}

function stepAccepted(event: InviteClientEvent): Step<InviteClientState> {
  if (event.type === 'response' && event.class === 'success') return to(accepted, pass)
  if (event.type === 'timer') return to(terminated)
  return stay(accepted)
}
