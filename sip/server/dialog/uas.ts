/**
 * Owns the steps of a dialog that concern requests of the peer: which of them the app gets to see, its answers, and the INVITE that made the
 * dialog until its ACK. RFC 3261 §12.2.2, §13.3.1, §14.2, §15.1.2; RFC 3262 §3; RFC 3311 §5.2; RFC 4028 §9.
 */
import { hasTag, withHeader } from '../message/header-fields.ts'
import type { HeaderField, SipRequest, SipResponse } from '../message/message.ts'
import { cseqOf, rackOf } from '../message/numbered-fields.ts'
import type { Flow } from '../transport/transport.ts'
import {
  isAlive,
  isAsking,
  movesTarget,
  withDescriptionOf,
  withoutAsked,
  withTargetOf,
  type Acceptance,
  type DialogState,
  type Provisional,
  type Ringing,
} from './dialog-state.ts'
import {
  alreadyAnswered,
  ask,
  refuse,
  replyRefused,
  replySent,
  respond,
  start,
  stay,
  stop,
  tell,
  followedBy,
  to,
  tooManyWait,
  type Step,
  type Way,
} from './machine.ts'
import { answerSession, isTooShort, minSessionSeconds } from './session-timer.ts'
import { end, sendHeldByes, terminate, withSession } from './uac.ts'

/** Reliable provisional responses behind the one that is unacknowledged. */
const maxWaiting = 16

export type Arrived = { readonly transactionId: string; readonly request: SipRequest; readonly flow: Flow }

/**
 * CSeq of what comes only grows. What is lower is out of order (§12.2.2). The very request of before in another transaction has come by two ways, or in a
 * loop, as one outside of dialogs (§8.2.2.2); another one of its number is out of order as well, as each has a number of its own (§12.2.1.1).
 */
export function takeRequest(state: DialogState, arrived: Arrived, way: Way): Step {
  const { transactionId, request, flow } = arrived
  const sequence = cseqOf(request)?.number ?? 0
  const { remoteSequence, remoteMethod } = state
  if (sequence === remoteSequence && request.method === remoteMethod) return to(state, refuse(transactionId, 482))
  if (remoteSequence !== null && sequence <= remoteSequence) return to(state, refuse(transactionId, 500, retryAfter(0)))
  const next = { ...state, remoteSequence: sequence, remoteMethod: request.method, flow }
  if (request.method === 'BYE') return takeBye(next, transactionId)
  if (state.name === 'ending') return to(next, refuse(transactionId, 481))
  if (movesTarget(request.method)) return takeOffer(next, arrived, way)
  if (request.method === 'PRACK') return takePrack(next, arrived, way)
  return to(next, ask(transactionId))
}

/** The dialog is over whatever the app says; what it says goes back to the peer. Before the answer a BYE is as good as a CANCEL. §15. */
function takeBye(state: DialogState, transactionId: string): Step {
  const { ringing, asked } = state
  const first = ringing ? refuse(transactionId, 200) : ask(transactionId)
  const unanswered = new Set([ringing?.transactionId, asked?.transactionId].filter((id) => id !== undefined))
  return followedBy(to(state, first, ...[...unanswered].map((id) => refuse(id, 487))), terminate)
}

function takeOffer(state: DialogState, { transactionId, request }: Arrived, way: Way): Step {
  const { method } = request
  const refusal = refusalOf(state, request, way)
  if (refusal) return to(state, refuse(transactionId, refusal.status, refusal.headers))
  const peerTakesUpdate = hasTag(request, 'Allow', 'UPDATE') || state.peerTakesUpdate
  // What is asked already goes on: an UPDATE without an offer changes nothing of it.
  const next = { ...withTargetOf(state, request), peerTakesUpdate, asked: state.asked ?? { transactionId, method } }
  return to(next, ask(transactionId))
}

type Refusal = { readonly status: number; readonly headers?: readonly HeaderField[] }

/** RFC 3261 §14.2, RFC 3311 §5.2, RFC 4028 §9. */
function refusalOf(state: DialogState, request: SipRequest, { chance }: Way): Refusal | null {
  const isInvite = request.method === 'INVITE'
  const offers = isInvite || request.body.length > 0
  const soon = { status: 500, headers: retryAfter(Math.floor(chance * 11)) }
  if (isTooShort(request)) return { status: 422, headers: [{ name: 'Min-SE', value: String(minSessionSeconds) }] }
  if (state.asked && (offers || state.asked.method === 'UPDATE')) return soon
  if (isInvite && state.accepted) return soon
  const isOurTurn = isAsking(state) || state.accepted?.offers === true
  return isOurTurn && offers ? { status: 491 } : null
}

const retryAfter = (seconds: number): HeaderField[] => [{ name: 'Retry-After', value: String(seconds) }]

export type Answer = {
  readonly command: string
  readonly transactionId: string
  readonly request: SipRequest
  readonly response: SipResponse
}

/** The app answers. */
export function takeAnswer(state: DialogState, answer: Answer, way: Way): Step {
  const { transactionId, request, response } = answer
  const { status } = response
  const ringing = state.ringing?.transactionId === transactionId ? state.ringing : null
  if (status < 200) return ringing ? ring(state, ringing, answer, way) : sendAnswer(state, answer)
  if (status < 300 && request.method === 'INVITE') return accept(state, ringing, answer, way)
  const settled = withoutAsked(state, transactionId)
  return status < 300 && request.method === 'UPDATE' ? agree(settled, answer) : sendAnswer(settled, answer)
}

const sendAnswer = (state: DialogState, { command, transactionId, response }: Omit<Answer, 'request'>): Step =>
  to(state, respond(transactionId, response), replySent(command, response, transactionId))

/** A 2xx to UPDATE. RFC 3311 §5.2. */
function agree(state: DialogState, answer: Answer): Step {
  const { response, session } = withSessionOf(answer)
  const described = withDescriptionOf(state, response)
  const agreed = isAlive(state) ? withSession(described, session) : stay(described)
  return followedBy(agreed, (next) => sendAnswer(next, { ...answer, response }))
}

/** A 2xx as it goes out, and the timer that it agrees on. RFC 4028 §9. */
function withSessionOf({ request, response }: Answer): Pick<Acceptance, 'response' | 'session'> {
  const { headers, timer } = answerSession(request)
  const complete = headers.reduce((message, { name, value }) => withHeader(message, name, value), response)
  return { response: complete, session: timer }
}

/** A provisional response to the INVITE that made the dialog. */
function ring(state: DialogState, ringing: Ringing, answer: Answer, way: Way): Step {
  const { command, transactionId, response } = answer
  const described = withDescriptionOf(state, response)
  if (!hasTag(response, 'Require', '100rel')) return sendAnswer(described, answer)
  if (ringing.waiting.length >= maxWaiting) return to(state, ...replyRefused(command, tooManyWait))
  const rseq = ringing.nextRSeq
  const provisional: Provisional = { kind: 'provisional', rseq, response: withHeader(response, 'RSeq', String(rseq)) }
  // With a description that is sure to arrive the offer is answered: the peer may make another one.
  const offered = response.body.length > 0 ? withoutAsked(described, transactionId) : described
  const sending = sendInTurn(offered, { ...ringing, nextRSeq: rseq + 1 }, provisional, way)
  return followedBy(sending, (next) => to(next, replySent(command, provisional.response, transactionId)))
}

/** RFC 3262 §3: nothing overtakes a provisional response that is unacknowledged, the 2xx neither. */
function sendInTurn(state: DialogState, ringing: Ringing, next: Provisional | Acceptance, way: Way): Step {
  if (ringing.pending) return stay({ ...state, ringing: { ...ringing, waiting: [...ringing.waiting, next] } })
  if (next.kind === 'acceptance') return confirm(state, ringing, next, way)
  const { rseq, response } = next
  return to(
    { ...state, ringing: { ...ringing, pending: { rseq, response, repeatAfter: way.t1 } } },
    respond(ringing.transactionId, response),
    start('repeatProvisional', way.t1),
    start('prack', 64 * way.t1),
  )
}

/** Doubled without a bound: 64*T1 end it. */
export function repeatProvisional(state: DialogState): Step {
  const { ringing } = state
  if (!ringing?.pending) return stay(state)
  const repeatAfter = 2 * ringing.pending.repeatAfter
  return to(
    { ...state, ringing: { ...ringing, pending: { ...ringing.pending, repeatAfter } } },
    respond(ringing.transactionId, ringing.pending.response),
    start('repeatProvisional', repeatAfter),
  )
}

/** RFC 3262 §3: the INVITE is refused with a 5xx. */
export const prackLost = (state: DialogState): Step =>
  followedBy(to(state, ...(state.ringing ? [refuse(state.ringing.transactionId, 504)] : [])), terminate)

function takePrack(state: DialogState, { transactionId, request }: Arrived, way: Way): Step {
  const { ringing } = state
  if (!ringing?.pending || !isFor(request, ringing)) return to(state, refuse(transactionId, 481))
  const clear = { ...ringing, pending: null }
  const acknowledged = to({ ...state, ringing: clear }, ...stop('repeatProvisional', 'prack'), ask(transactionId))
  const [next, ...waiting] = ringing.waiting
  return next ? followedBy(acknowledged, (one) => sendInTurn(one, { ...clear, waiting }, next, way)) : acknowledged
}

function isFor(prack: SipRequest, { pending, sequence }: Ringing): boolean {
  const rack = rackOf(prack)
  return rack?.rseq === pending?.rseq && rack?.cseq.number === sequence && rack.cseq.method === 'INVITE'
}

/** A 2xx to INVITE. §13.3.1.4. */
function accept(state: DialogState, ringing: Ringing | null, answer: Answer, way: Way): Step {
  const { command, transactionId, request } = answer
  const isOpen = ringing !== null || state.asked?.transactionId === transactionId
  if (!isOpen) return to(state, ...replyRefused(command, alreadyAnswered))
  const sequence = cseqOf(request)?.number ?? 0
  const offers = request.body.length === 0
  const ids = { command, transactionId, sequence }
  const acceptance: Acceptance = { kind: 'acceptance', ...ids, offers, ...withSessionOf(answer) }
  return ringing ? sendInTurn(state, ringing, acceptance, way) : sendAcceptance(state, acceptance, way)
}

/** What waits behind it comes too late. */
function confirm(state: DialogState, { waiting }: Ringing, acceptance: Acceptance, way: Way): Step {
  const late = waiting.flatMap((one) => (one.kind === 'acceptance' ? replyRefused(one.command, alreadyAnswered) : []))
  const sending = sendAcceptance({ ...state, name: 'confirmed', ringing: null }, acceptance, way)
  return followedBy(sending, (next) => to(next, ...late))
}

/** Repeated until its ACK comes; over TCP as well, for the way may have a part in UDP. §13.3.1.4. */
function sendAcceptance(state: DialogState, acceptance: Acceptance, way: Way): Step {
  const { transactionId, sequence, offers, response, session } = acceptance
  const described = withDescriptionOf(withoutAsked(state, transactionId), response)
  const accepted: DialogState = { ...described, accepted: { transactionId, sequence, offers, repeatAfter: way.t1 } }
  const agreed = isAlive(accepted) ? withSession(accepted, session) : stay(accepted)
  return followedBy(
    agreed,
    (next) => sendAnswer(next, acceptance),
    (next) => to(next, start('repeatAcceptance', way.t1), start('ackOfPeer', 64 * way.t1)),
  )
}

export function repeatAcceptance(state: DialogState, { t2 }: Way): Step {
  const { accepted } = state
  if (!accepted) return stay(state)
  const repeatAfter = Math.min(2 * accepted.repeatAfter, t2)
  const again = { do: 'respondAgain', transactionId: accepted.transactionId } as const
  return to({ ...state, accepted: { ...accepted, repeatAfter } }, again, start('repeatAcceptance', repeatAfter))
}

export function takeAck(state: DialogState, request: SipRequest, flow: Flow, way: Way): Step {
  const { accepted } = state
  if (!accepted || accepted.sequence !== cseqOf(request)?.number) return stay(state)
  const news = tell(request, { source: 'network', transactionId: accepted.transactionId, flow })
  const acknowledged = to({ ...state, accepted: null }, ...stop('repeatAcceptance', 'ackOfPeer'), news)
  return followedBy(acknowledged, (next) => sendHeldByes(next, way))
}

/** No ACK comes: a BYE that waited for it goes out, or one of ours. */
export function ackLost(state: DialogState, way: Way, reason = 'ACK timeout'): Step {
  const lost = to({ ...state, accepted: null }, ...stop('repeatAcceptance', 'ackOfPeer'))
  const byeWaits = state.byes.length > 0
  return followedBy(lost, (next) => (byeWaits ? sendHeldByes(next, way) : end(next, reason, true, way)))
}

/** Of a 2xx to INVITE: there is nobody whose ACK could be waited for. §17.2.4. */
export const answerLost = (state: DialogState, transactionId: string, way: Way): Step =>
  state.accepted?.transactionId === transactionId ? ackLost(state, way, 'the answer could not be sent') : stay(state)
