/** Owns the transitions of an INVITE that came in. RFC 3261 §17.2.1 (figure 7), RFC 6026 §7.1 (Accepted). */
import {
  begin,
  type Begin,
  type Class,
  fail,
  pass,
  sendAgain,
  sendResponse,
  start,
  stay,
  type Step,
  stop,
  type Timer,
  to,
  type Way,
} from './machine.ts'

export type InviteServerState =
  | { readonly name: 'proceeding' }
  /** `retransmitAfter`: ms until the final response goes out again. */
  | { readonly name: 'completed'; readonly retransmitAfter: number }
  | { readonly name: 'confirmed' }
  | { readonly name: 'accepted' }
  | { readonly name: 'terminated' }

export type InviteServerEvent =
  /** The INVITE again. */
  | { readonly type: 'request' }
  | { readonly type: 'ack' }
  /** The user of the transaction answers. */
  | { readonly type: 'respond'; readonly class: Class }
  | { readonly type: 'timer'; readonly timer: Timer }
  | { readonly type: 'transportFailed'; readonly details: string }

const proceeding: InviteServerState = { name: 'proceeding' }
const confirmed: InviteServerState = { name: 'confirmed' }
const accepted: InviteServerState = { name: 'accepted' }
const terminated: InviteServerState = { name: 'terminated' }

/** The 100 has just been sent. */
export const startInviteServer = ({ ringing }: Way): Begin<InviteServerState> => begin(proceeding, start('C', ringing))

export function stepInviteServer(
  state: InviteServerState,
  event: InviteServerEvent,
  way: Way,
): Step<InviteServerState> {
  switch (state.name) {
    case 'proceeding':
      return stepProceeding(event, way)
    case 'completed':
      return stepCompleted(state, event, way)
    case 'confirmed':
      return event.type === 'timer' ? to(terminated) : stay(state)
    case 'accepted':
      return stepAccepted(event)
    case 'terminated':
      return stay(state)
  }
}

function stepProceeding(event: InviteServerEvent, way: Way): Step<InviteServerState> {
  switch (event.type) {
    case 'request':
      return to(proceeding, sendAgain)
    case 'respond':
      return respond(event.class, way)
    case 'timer':
      return to(terminated, fail('timeout', 'the INVITE was not answered'))
    case 'transportFailed':
      return to(terminated, fail('transport', event.details))
    case 'ack':
      return stay(proceeding)
  }
}

function respond(responseClass: Class, { t1, ringing, reliable }: Way): Step<InviteServerState> {
  if (responseClass === 'provisional') return to(proceeding, sendResponse, start('C', ringing))
  if (responseClass === 'success') return to(accepted, stop('C'), sendResponse, start('L', 64 * t1))
  const state: InviteServerState = { name: 'completed', retransmitAfter: t1 }
  if (reliable) return to(state, stop('C'), sendResponse, start('H', 64 * t1))
  return to(state, stop('C'), sendResponse, start('G', t1), start('H', 64 * t1))
}

function stepCompleted(
  state: Extract<InviteServerState, { name: 'completed' }>,
  event: InviteServerEvent,
  { t2, t4, reliable }: Way,
): Step<InviteServerState> {
  switch (event.type) {
    case 'request':
      return to(state, sendAgain)
    case 'ack':
      return reliable ? to(terminated) : to(confirmed, stop('G'), stop('H'), start('I', t4))
    case 'timer': {
      if (event.timer !== 'G') return to(terminated, fail('timeout', 'no ACK came'))
      // RFC 3261 goes on every T2. Whoever wrote another's address into his packets would have us send that one twelve answers for each;
      // a client that is there has the answer by now, or asks again and gets it.
      if (state.retransmitAfter >= t2) return to(state, sendAgain)
      const retransmitAfter = Math.min(2 * state.retransmitAfter, t2)
      return to({ name: 'completed', retransmitAfter }, sendAgain, start('G', retransmitAfter))
    }
    case 'transportFailed':
      return to(terminated, fail('transport', event.details))
    case 'respond':
      return stay(state)
  }
}

/** A repeated INVITE is absorbed: the 2xx is repeated by the dialog (RFC 3261 §13.3.1.4), and every ACK is the user's. */
function stepAccepted(event: InviteServerEvent): Step<InviteServerState> {
  switch (event.type) {
    case 'ack':
      return to(accepted, pass)
    case 'respond':
      return event.class === 'success' ? to(accepted, sendResponse) : stay(accepted)
    case 'timer':
      return to(terminated)
    case 'transportFailed':
      return to(accepted, fail('transport', event.details))
    case 'request':
      return stay(accepted)
  }
}
