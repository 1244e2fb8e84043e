/** Owns the transitions of a request that came in and is no INVITE. RFC 3261 §17.2.2 (figure 8). */
import {
  begin,
  type Begin,
  type Class,
  fail,
  sendAgain,
  sendResponse,
  start,
  stay,
  type Step,
  stop,
  to,
  type Timer,
  type Way,
} from './machine.ts'

export type NonInviteServerState = { readonly name: 'trying' | 'proceeding' | 'completed' | 'terminated' }

export type NonInviteServerEvent =
  /** The request again. */
  | { readonly type: 'request' }
  /** The user of the transaction answers. */
  | { readonly type: 'respond'; readonly class: Class }
  | { readonly type: 'timer'; readonly timer: Timer }
  | { readonly type: 'transportFailed'; readonly details: string }

const trying: NonInviteServerState = { name: 'trying' }
const proceeding: NonInviteServerState = { name: 'proceeding' }
const completed: NonInviteServerState = { name: 'completed' }
const terminated: NonInviteServerState = { name: 'terminated' }

/** After 64*T1 the sender has given up (timer F), and an answer would match no transaction. RFC 4320 §4.2. */
export const startNonInviteServer = ({ t1 }: Way): Begin<NonInviteServerState> =>
  begin(trying, start('unanswered', 64 * t1))

export function stepNonInviteServer(
  state: NonInviteServerState,
  event: NonInviteServerEvent,
  way: Way,
): Step<NonInviteServerState> {
  if (state.name === 'terminated') return stay(state)
  if (state.name === 'completed') return stepCompleted(event)
  switch (event.type) {
    case 'request':
      return state.name === 'trying' ? stay(state) : to(state, sendAgain)
    case 'respond':
      return respond(event.class, way)
    case 'timer':
      return to(terminated, fail('timeout', 'the request was not answered'))
    case 'transportFailed':
      return to(terminated, fail('transport', event.details))
  }
}

function respond(responseClass: Class, { t1, reliable }: Way): Step<NonInviteServerState> {
  if (responseClass === 'provisional') return to(proceeding, sendResponse)
  if (reliable) return to(terminated, sendResponse)
  return to(completed, stop('unanswered'), sendResponse, start('J', 64 * t1))
}

function stepCompleted(event: NonInviteServerEvent): Step<NonInviteServerState> {
  switch (event.type) {
    case 'request':
      return to(completed, sendAgain)
    case 'transportFailed':
      return to(terminated, fail('transport', event.details))
    case 'timer':
      return to(terminated)
    case 'respond':
      return stay(completed)
  }
}
