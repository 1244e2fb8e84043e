/** Owns the transitions of a request we sent that is no INVITE. RFC 3261 §17.1.2 (figure 6). */
import {
  begin,
  type Begin,
  type Class,
  fail,
  pass,
  sendAgain,
  start,
  stay,
  type Step,
  stop,
  type Timer,
  to,
  type Way,
} from './machine.ts'

export type NonInviteClientState =
  | { readonly name: 'trying'; readonly retransmitAfter: number }
  | { readonly name: 'proceeding' }
  | { readonly name: 'completed' }
  | { readonly name: 'terminated' }

export type NonInviteClientEvent =
  | { readonly type: 'response'; readonly class: Class }
  | { readonly type: 'timer'; readonly timer: Timer }
  | { readonly type: 'transportFailed'; readonly details: string }

const proceeding: NonInviteClientState = { name: 'proceeding' }
const completed: NonInviteClientState = { name: 'completed' }
const terminated: NonInviteClientState = { name: 'terminated' }

/** The request has just been sent. */
export function startNonInviteClient({ t1, reliable, timeoutT1 }: Way): Begin<NonInviteClientState> {
  const state: NonInviteClientState = { name: 'trying', retransmitAfter: t1 }
  return reliable ? begin(state, start('F', timeoutT1 * t1)) : begin(state, start('E', t1), start('F', timeoutT1 * t1))
}

export function stepNonInviteClient(
  state: NonInviteClientState,
  event: NonInviteClientEvent,
  way: Way,
): Step<NonInviteClientState> {
  if (state.name === 'terminated') return stay(state)
  // §17.1.2.2: K absorbs repeated responses.
  if (state.name === 'completed') return event.type === 'timer' ? to(terminated) : stay(state)
  switch (event.type) {
    case 'response':
      return answered(event.class, way)
    case 'timer':
      return timedOut(state, event.timer, way)
    case 'transportFailed':
      return to(terminated, fail('transport', event.details))
  }
}

function answered(responseClass: Class, way: Way): Step<NonInviteClientState> {
  // E goes on as it was set, and at T2 from its next time on; F keeps its time.
  if (responseClass === 'provisional') return to(proceeding, pass)
  if (way.reliable) return to(terminated, pass)
  return to(completed, stop('E'), stop('F'), start('K', way.t4), pass)
}

function timedOut(
  state: Extract<NonInviteClientState, { name: 'trying' | 'proceeding' }>,
  timer: Timer,
  { t2 }: Way,
): Step<NonInviteClientState> {
  if (timer !== 'E') return to(terminated, fail('timeout', 'no final answer'))
  if (state.name === 'proceeding') return to(state, sendAgain, start('E', t2))
  const retransmitAfter = Math.min(2 * state.retransmitAfter, t2)
  return to({ name: 'trying', retransmitAfter }, sendAgain, start('E', retransmitAfter))
}
