/**
 * Owns the steps of a dialog that concern requests of ours: the app's and our own, their answers, the ACK, and how we end it.
 * RFC 3261 §12.2.1, §13.2.2.4, §14.1, §15.1.1; RFC 4028 §7, §10.
 */
import { hasTag } from '../message/header-fields.ts'
import { quoted } from '../message/header-text.ts'
import type { HeaderField, SipRequest, SipResponse } from '../message/message.ts'
import { cseqOf } from '../message/numbered-fields.ts'
import { responseTo } from '../message/response-to.ts'
import { isTranslatedCallee } from '../transport/seen-peer.ts'
import type { Flow } from '../transport/transport.ts'
import {
  credentialsIn,
  isAlive,
  isAsking,
  movesTarget,
  requestIn,
  withDescriptionOf,
  withoutRequest,
  withRoutesOf,
  withTargetOf,
  type DialogState,
  type Order,
  type RequestParts,
  type UnderWay,
} from './dialog-state.ts'
import { capabilities, descriptionIn, headersInDialog, withDefaults } from './draft-headers.ts'
import { glareWaitOf } from './glare-wait.ts'
import {
  alreadyAnswered,
  noDialog,
  nothingToAcknowledge,
  replyRefused,
  start,
  stay,
  stop,
  tell,
  followedBy,
  to,
  type Action,
  type Step,
  type Way,
} from './machine.ts'
import { agreedSession, askForSession, timesOf, wantedInterval, type SessionTimer } from './session-timer.ts'

const noBody = new Uint8Array(0)
const withOurContact = ['INVITE', 'UPDATE', 'REFER', 'SUBSCRIBE', 'NOTIFY']
/** Ms: what the peer cannot do now is tried again until the session expires. */
const refreshAgainAfter = 10_000

/** §12.2.1.1: CSeq grows by one, or to what the app wants. */
function send(state: DialogState, { command, leastSequence = 0, ...parts }: Order): Step {
  const { method } = parts
  const sequence = Math.max(leastSequence, state.localSequence + 1)
  const plain = requestIn(state, { ...parts, sequence })
  const request = movesTarget(method) ? withDefaults(plain, [...capabilities, ...sessionAsked(state)]) : plain
  const sent: UnderWay = { sequence, method, command, description: descriptionIn(request) }
  const credentials = method === 'INVITE' ? credentialsIn(request) : state.credentials
  return to(
    { ...state, localSequence: sequence, credentials, underWay: [...state.underWay, sent] },
    { do: 'send', command, sequence, request, wantsContact: withOurContact.includes(method) },
  )
}

const sessionAsked = ({ session }: DialogState): HeaderField[] =>
  session ? askForSession(session.seconds, session.weRefresh) : []

export function takeDraft(state: DialogState, command: string, draft: SipRequest, way: Way): Step {
  const { method, body } = draft
  const order = { command, method, body, headers: headersInDialog(draft), leastSequence: cseqOf(draft)?.number ?? 0 }
  if (method === 'BYE') return state.name === 'early' ? gone(state, command) : sendBye(state, order, way)
  if (!isAlive(state)) return gone(state, command)
  return isGlare(state, order) ? answerHere(state, command, order) : send(state, order)
}

const gone = (state: DialogState, command: string): Step => to(state, ...replyRefused(command, noDialog))

/** §15: who was called says BYE when the ACK is there, or when it is clear that none comes. */
function sendBye(state: DialogState, bye: Order, way: Way): Step {
  if (state.accepted) return stay({ ...state, byes: [...state.byes, bye] })
  return followedBy(ending(state, way), (next) => send(next, bye))
}

/** The ACK is there, or will not come: what waited for it goes out. */
export const sendHeldByes = (state: DialogState, way: Way): Step =>
  state.byes.reduce((step, bye) => followedBy(step, (next) => sendBye(next, bye, way)), stay({ ...state, byes: [] }))

/** The dialog stays for a second BYE, but not for ever. */
const ending = (state: DialogState, { t1 }: Way): Step =>
  to({ ...state, name: 'ending' }, ...stop('refresh', 'refreshAgain', 'expiry'), start('ending', 2 * 64 * t1))

/** §14.1, RFC 3311 §5.1: not while another offer waits for its answer, in whichever direction. */
function isGlare(state: DialogState, { method, body }: Order): boolean {
  if (!movesTarget(method)) return false
  const offers = method === 'INVITE' || body.length > 0
  return isAsking(state) || (offers && (state.asked !== null || state.accepted?.offers === true))
}

function answerHere(state: DialogState, command: string, order: Order): Step {
  const request = requestIn(state, { ...order, sequence: state.localSequence + 1 })
  const response = responseTo(request, { status: 491, reason: 'Request Pending', toTag: null })
  return to(state, { do: 'answerHere', command, request, response })
}

/** `command` null: of our own, with nothing in it. §13.2.2.4. */
export function acknowledge(state: DialogState, command: string | null, draft: SipRequest | null): Step {
  const { answer } = state
  if (!answer || answer.isAcknowledged) return to(state, ...replyRefused(command, nothingToAcknowledge))
  const headers = [...state.credentials, ...(draft ? headersInDialog(draft) : [])]
  const parts = { method: 'ACK', sequence: answer.sequence, headers, body: draft?.body ?? noBody }
  const described = draft ? withDescriptionOf(state, draft) : state
  return to({ ...described, answer: { ...answer, isAcknowledged: true } }, ...stop('ackOfApp'), {
    do: 'sendAck',
    command,
    request: requestIn(state, parts),
  })
}

/** In order, each once. RFC 3262 §4. */
export const takeRSeq = (state: DialogState, rseq: number): DialogState =>
  state.remoteRSeq === null || rseq === state.remoteRSeq + 1 ? { ...state, remoteRSeq: rseq } : state

/** The 2xx to our INVITE that made the dialog. Whatever else is a 2xx here came again: its ACK may have been lost. */
export function takeSuccess(state: DialogState, response: SipResponse, flow: Flow, way: Way): Step {
  if (isRepeated(state, response)) return acknowledgeAgain(state)
  if (state.name !== 'early' || state.role !== 'uac') return stay(state)
  const peerTakesUpdate = hasTag(response, 'Allow', 'UPDATE')
  const seen = { flow, isTranslated: isTranslatedCallee(response, flow) }
  const confirmed: DialogState = { ...withRoutesOf(state, response), ...seen, name: 'confirmed', peerTakesUpdate }
  return followedBy(answered(confirmed, response, way), (next) => withSession(next, agreedSession(response)))
}

export const isRepeated = ({ answer }: DialogState, response: SipResponse): boolean =>
  answer !== null && answer.sequence === cseqOf(response)?.number

export const acknowledgeAgain = (state: DialogState): Step =>
  state.answer?.isAcknowledged ? to(state, { do: 'sendAckAgain' }) : stay(state)

const answered = (state: DialogState, response: SipResponse, { t1 }: Way): Step =>
  to(
    { ...state, answer: { sequence: cseqOf(response)?.number ?? 0, isAcknowledged: false } },
    start('ackOfApp', 64 * t1),
  )

export type Heard = { readonly sequence: number; readonly response: SipResponse; readonly flow: Flow }

/** §12.2.1.2. The app hears of it before the dialog does anything by itself. */
export function takeResponse(state: DialogState, heard: Heard, way: Way): Step {
  const { sequence, response } = heard
  const { status } = response
  const sent = state.underWay.find((one) => one.sequence === sequence)
  if (status === 100) return stay(state)
  if (!sent) return status < 300 && isRepeated(state, response) ? acknowledgeAgain(state) : stay(state)
  if (status < 200) return to(state, ...toldOf(sent, heard))
  const rest = withoutRequest(state, sequence)
  const isMoved = status < 300 && movesTarget(sent.method)
  return followedBy(
    isMoved ? notice(rest, sent, response, way) : stay(rest),
    (next) => to(next, ...toldOf(sent, heard)),
    (next) => settle(next, sent, response, way),
  )
}

/** Of our own requests nobody is told. */
export const toldOf = ({ command }: UnderWay, { response, flow }: Heard): Action[] =>
  command === null ? [] : [tell(response, { source: 'network', transactionId: command, flow })]

/** A 2xx to INVITE or UPDATE. */
function notice(state: DialogState, { method, description }: UnderWay, response: SipResponse, way: Way): Step {
  const next: DialogState = {
    ...withTargetOf(state, response),
    description: description ?? state.description,
    peerTakesUpdate: hasTag(response, 'Allow', 'UPDATE') || state.peerTakesUpdate,
  }
  const acknowledging = method === 'INVITE' ? answered(next, response, way) : stay(next)
  return isAlive(next) ? followedBy(acknowledging, (one) => withSession(one, agreedSession(response))) : acknowledging
}

/** §12.2.1.2, RFC 5057 §5.1: which final answers end the dialog. A BYE of the app that is challenged is sent again. */
function settle(state: DialogState, { method, command }: UnderWay, response: SipResponse, way: Way): Step {
  const { status } = response
  const isChallenged = status === 401 || status === 407
  if (method === 'BYE') return isChallenged && command !== null ? stay(state) : terminate(state)
  const isLost = status === 481 || (status === 408 && movesTarget(method))
  if (isLost && isAlive(state) && [...refreshing, 'INFO'].includes(method))
    return end(state, 'the peer knows the call no more', true, way)
  return command === null && refreshing.includes(method) ? refreshed(state, method, response, way) : stay(state)
}

const refreshing = ['INVITE', 'UPDATE']

/** Null: the call needs no refreshing. RFC 4028 §7.2, §9. */
export function withSession(state: DialogState, session: SessionTimer | null): Step {
  const times = session && timesOf(session)
  const starting = times ? [start('expiry', times.expiry)] : []
  if (times && session.weRefresh) starting.push(start('refresh', times.refresh))
  return to({ ...state, session }, ...stop('expiry', 'refresh'), ...starting)
}

/** By UPDATE where the peer takes it, else by an INVITE with our last session description. RFC 4028 §7.4, §10. */
export function refresh(state: DialogState): Step {
  if (state.name !== 'confirmed') return stay(state)
  // Whatever is under way refreshes the session as well; if it fails, we are here again.
  if (isAsking(state) || state.asked) return to(state, start('refreshAgain', refreshAgainAfter))
  const sending = send(state, { command: null, ...refreshOf(state) })
  return { ...sending, actions: [...stop('refreshAgain'), ...sending.actions] }
}

function refreshOf({ peerTakesUpdate, description }: DialogState): Pick<RequestParts, 'method' | 'headers' | 'body'> {
  if (peerTakesUpdate) return { method: 'UPDATE', headers: [], body: noBody }
  if (description === null) return { method: 'INVITE', headers: [], body: noBody }
  const headers = [{ name: 'Content-Type', value: 'application/sdp' }]
  return { method: 'INVITE', headers, body: Buffer.from(description) }
}

function refreshed(state: DialogState, method: string, response: SipResponse, way: Way): Step {
  const { status } = response
  if (status < 300) return method === 'INVITE' ? acknowledgeRefresh(state, descriptionIn(response)) : stay(state)
  if (!isAlive(state)) return stay(state)
  if (status === 491) return to(state, start('refreshAgain', glareWait(state, way)))
  const isRefused = method === 'UPDATE' && [405, 501, 401, 407].includes(status)
  const next = isRefused ? { ...state, peerTakesUpdate: false } : state
  const again = start('refreshAgain', [405, 422, 501].includes(status) ? 0 : refreshAgainAfter)
  const wanted = status === 422 && next.session ? wantedInterval(response, next.session.seconds) : null
  const lengthened = wanted && next.session ? withSession(next, { ...next.session, seconds: wanted }) : stay(next)
  return followedBy(lengthened, (one) => to(one, again))
}

/** What the peer answers may differ from what it said before: it has moved, holds, or is back. §14.1, RFC 3264 §8. */
const acknowledgeRefresh = (state: DialogState, description: string | null): Step =>
  followedBy(acknowledge(state, null, null), (next) =>
    description === null ? stay(next) : to(next, { do: 'followRefresh', description }),
  )

/** Of a dialog of another process nobody knows who made its Call-ID. */
const glareWait = ({ role, isInherited }: DialogState, { chance }: Way): number =>
  glareWaitOf(role === 'uas' ? 'theirs' : isInherited ? 'unknown' : 'ours', chance)

/** A BYE of ours. `told`: the app hears of it as of one that nobody sent. Idempotent. */
export function end(state: DialogState, reason: string, told: boolean, way: Way): Step {
  if (state.name !== 'confirmed') return stay(state)
  const headers = [{ name: 'Reason', value: `SIP ;cause=200 ;text=${quoted(reason)}` }]
  const bye = { method: 'BYE', headers, body: noBody }
  return followedBy(
    // §13.2.2.4: a 2xx is acknowledged even when the call is not wanted.
    acknowledge(state, null, null),
    (next) => ending(next, way),
    (next) => to(next, ...(told ? [toldOfBye(next, bye)] : [])),
    (next) => sendBye(next, { command: null, ...bye }, way),
  )
}

const toldOfBye = (state: DialogState, bye: Omit<RequestParts, 'sequence'>): Action =>
  tell(requestIn(state, { ...bye, sequence: state.localSequence + 1 }), {
    source: 'application',
    transactionId: 'unsolicited',
    flow: state.flow,
  })

export function terminate(state: DialogState): Step {
  const waiting = state.ringing?.waiting.flatMap((one) => (one.kind === 'acceptance' ? [one.command] : [])) ?? []
  return to(
    { ...state, name: 'terminated', byes: [], accepted: null, ringing: null },
    ...state.byes.flatMap(({ command }) => replyRefused(command, noDialog)),
    ...waiting.flatMap((command) => replyRefused(command, alreadyAnswered)),
  )
}
