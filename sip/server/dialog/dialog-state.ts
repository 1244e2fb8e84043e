/**
 * Owns what a dialog is: plain values only, without sockets, timers or closures. Only the steps of the machine (step-dialog.ts) make a new
 * state of an old one. RFC 3261 §12.
 */
import { addressOf, readAddress, tagIn, tagOf } from '../message/address.ts'
import { hasTag, headerOf, valuesOf } from '../message/header-fields.ts'
import type { HeaderField, SipRequest, SipResponse } from '../message/message.ts'
import { cseqOf } from '../message/numbered-fields.ts'
import { isTranslatedCallee, isTranslatedCaller } from '../transport/seen-peer.ts'
import type { Flow } from '../transport/transport.ts'
import { descriptionIn, publicNameIn } from './draft-headers.ts'
import type { SessionTimer } from './session-timer.ts'

export type DialogState = {
  /** `ending`: a BYE of ours is under way. A second one may follow, for the first may have been answered with a challenge. */
  readonly name: 'early' | 'confirmed' | 'ending' | 'terminated'
  /** Who sent the INVITE: `uac` is we. */
  readonly role: 'uac' | 'uas'
  readonly callId: string
  readonly localTag: string
  readonly remoteTag: string
  /** From of what we send, tag and all, and To. */
  readonly local: string
  readonly remote: string
  /** Values of Route, the next hop first. Fixed once the dialog is confirmed. */
  readonly routeSet: readonly string[]
  /** Where the peer is: its last Contact. */
  readonly remoteTarget: string
  /** CSeq of the last request we sent; 0: none. */
  readonly localSequence: number
  /** Of the last one that came; null: none. */
  readonly remoteSequence: number | null
  /** Of the request that had it; null: none has come. */
  readonly remoteMethod: string | null
  /** The last way something came or went. */
  readonly flow: Flow
  /** A NAT stands before the peer: see seen-peer.ts. */
  readonly isTranslated: boolean
  /** By which the peer knows us, as our Contact said; null: by our address. */
  readonly publicName: string | null
  /** Which certificate of ours the dialog began with. */
  readonly client: string | null
  /** Our last session description, for refreshing. */
  readonly description: string | null
  readonly peerTakesUpdate: boolean
  /** Credentials of our last INVITE: its ACK repeats them. RFC 3261 §13.2.2.4. */
  readonly credentials: readonly HeaderField[]
  /** Null: nobody refreshes the session. RFC 4028. */
  readonly session: SessionTimer | null
  /** Another process had it before: its routes are as they were then. */
  readonly isInherited: boolean
  /** Our requests that have no final answer yet. */
  readonly underWay: readonly UnderWay[]
  /** The peer's INVITE or UPDATE that has no final answer yet, or no answer to its offer. */
  readonly asked: { readonly transactionId: string; readonly method: string } | null
  /** Our 2xx that waits for its ACK. RFC 3261 §13.3.1.4. */
  readonly accepted: Accepted | null
  /** Their last 2xx to an INVITE. RFC 3261 §13.2.2.4. */
  readonly answer: { readonly sequence: number; readonly isAcknowledged: boolean } | null
  /** They wait for the ACK of our 2xx. RFC 3261 §15. */
  readonly byes: readonly Order[]
  /** RSeq of the last reliable provisional response that came; null: none. RFC 3262 §4. */
  readonly remoteRSeq: number | null
  /** The INVITE that came and made this dialog; null: it has its final answer, or the INVITE was ours. */
  readonly ringing: Ringing | null
}

/** `repeatAfter`: ms. `offers`: it has an offer of ours, which the ACK will answer. */
export type Accepted = {
  readonly transactionId: string
  readonly sequence: number
  readonly repeatAfter: number
  readonly offers: boolean
}

/** `command`: of the app that is told of the answers; null: the request is our own. */
export type UnderWay = {
  readonly sequence: number
  readonly method: string
  readonly command: string | null
  /** What is offered with it; it counts as ours once it is accepted. */
  readonly description: string | null
}

/** A request of ours that has no CSeq yet. `leastSequence`: the app counts by itself when it answers a challenge. */
export type Order = Pick<UnderWay, 'command'> & Omit<RequestParts, 'sequence'> & { readonly leastSequence?: number }

/** Reliable provisional responses, of which one at a time is unacknowledged. RFC 3262 §3. */
export type Ringing = {
  readonly transactionId: string
  /** CSeq of the INVITE. */
  readonly sequence: number
  /** RSeq of the next one: 1 … 2**31 - 1. */
  readonly nextRSeq: number
  /** `repeatAfter`: ms. */
  readonly pending: { readonly rseq: number; readonly response: SipResponse; readonly repeatAfter: number } | null
  /** What goes out behind the PRACK of `pending`: more of them, and at last the 2xx. */
  readonly waiting: readonly (Provisional | Acceptance)[]
}

export type Provisional = { readonly kind: 'provisional'; readonly rseq: number; readonly response: SipResponse }
/** A 2xx, complete as it goes out, and the session timer that it agrees on. `command`: whose reply waits for it. */
export type Acceptance = Pick<Accepted, 'transactionId' | 'sequence' | 'offers'> & {
  readonly kind: 'acceptance'
  readonly command: string
  readonly response: SipResponse
  readonly session: SessionTimer | null
}

export type Received = {
  readonly transactionId: string
  readonly invite: SipRequest
  /** Our first answer that has a To tag. */
  readonly response: SipResponse
  readonly flow: Flow
  readonly firstRSeq: number
}

const fresh = {
  name: 'early',
  description: null,
  session: null,
  isInherited: false,
  underWay: [],
  asked: null,
  accepted: null,
  answer: null,
  byes: [],
  remoteRSeq: null,
  ringing: null,
} as const

/** §12.1.1: the INVITE that came and our answer to it. Null: the INVITE has no usable Contact. */
export function stateOfReceived({ transactionId, invite, response, flow, firstRSeq }: Received): DialogState | null {
  const contact = contactIn(invite)
  const local = headerOf(response, 'To') ?? ''
  const remote = headerOf(invite, 'From') ?? ''
  const sequence = cseqOf(invite)?.number ?? null
  if (contact === null) return null
  return {
    ...fresh,
    role: 'uas',
    callId: headerOf(invite, 'Call-ID') ?? '',
    localTag: tagIn(local) ?? '',
    // §12.1.1: a peer of RFC 2543 has no tag.
    remoteTag: tagIn(remote) ?? '',
    local,
    remote,
    routeSet: valuesOf(invite, 'Record-Route'),
    remoteTarget: contact,
    localSequence: 0,
    remoteSequence: sequence,
    remoteMethod: 'INVITE',
    flow,
    isTranslated: isTranslatedCaller(invite, flow),
    publicName: publicNameIn(response),
    client: flow.client ?? null,
    credentials: [],
    peerTakesUpdate: hasTag(invite, 'Allow', 'UPDATE'),
    // RFC 3311 §5.2: until we have answered its offer, the peer may make no other.
    asked: { transactionId, method: 'INVITE' },
    ringing: { transactionId, sequence: sequence ?? 0, nextRSeq: firstRSeq, pending: null, waiting: [] },
  }
}

/**
 * §12.1.2: the INVITE we sent and an answer to it that has a To tag. Without a Contact the peer is where the INVITE went. One that has a tag itself was
 * sent within a dialog of another process, which is ours from here on.
 */
export function stateOfPlaced(invite: SipRequest, response: SipResponse, flow: Flow): DialogState {
  const isInherited = tagOf(invite, 'To') !== null
  const local = headerOf(invite, 'From') ?? ''
  const remote = headerOf(response, 'To') ?? ''
  return {
    ...fresh,
    role: 'uac',
    callId: headerOf(invite, 'Call-ID') ?? '',
    localTag: tagIn(local) ?? '',
    remoteTag: tagIn(remote) ?? '',
    local,
    remote,
    isInherited,
    routeSet: isInherited ? valuesOf(invite, 'Route') : valuesOf(response, 'Record-Route').toReversed(),
    remoteTarget: contactIn(response) ?? invite.uri,
    localSequence: cseqOf(invite)?.number ?? 0,
    remoteSequence: null,
    remoteMethod: null,
    flow,
    isTranslated: isTranslatedCallee(response, flow),
    publicName: publicNameIn(invite),
    client: flow.client ?? null,
    description: descriptionIn(invite),
    credentials: credentialsIn(invite),
    peerTakesUpdate: false,
  }
}

export const isAlive = ({ name }: DialogState): boolean => name === 'early' || name === 'confirmed'

/** Which dialog a message belongs to. §12. */
export const keyOf = (callId: string, localTag: string, remoteTag: string): string =>
  `${callId}\n${localTag}\n${remoteTag}`

/** §12.2.1.2, §12.2.2: an INVITE or UPDATE and its 2xx may move the peer. */
export function withTargetOf(state: DialogState, message: SipRequest | SipResponse): DialogState {
  const contact = contactIn(message)
  return contact === null ? state : { ...state, remoteTarget: contact }
}

/** The route set of a confirmed dialog is that of its 2xx, whatever a provisional response said (§13.2.2.4); it stays what it is then (§12.2). */
export const withRoutesOf = (state: DialogState, response: SipResponse): DialogState => {
  const { routeSet, isInherited } = state
  const routes = isInherited ? routeSet : valuesOf(response, 'Record-Route').toReversed()
  return withTargetOf({ ...state, routeSet: routes }, response)
}

/** Our description in a message of ours. */
export function withDescriptionOf(state: DialogState, message: SipRequest | SipResponse): DialogState {
  const description = descriptionIn(message)
  return description === null ? state : { ...state, description }
}

/** It has its final answer, or will have none. */
export const withoutRequest = (state: DialogState, sequence: number): DialogState => ({
  ...state,
  underWay: state.underWay.filter((one) => one.sequence !== sequence),
})

/** Answered. */
export const withoutAsked = (state: DialogState, transactionId: string): DialogState =>
  state.asked?.transactionId === transactionId ? { ...state, asked: null } : state

/** Both are offers that wait for an answer. RFC 3261 §14.1, RFC 3311 §5.1. */
export const isAsking = ({ underWay }: DialogState): boolean => underWay.some(({ method }) => movesTarget(method))

/** The target refresh requests. RFC 3261 §6, RFC 3311 §5. */
export const movesTarget = (method: string): boolean => method === 'INVITE' || method === 'UPDATE'

export const credentialsIn = (request: SipRequest): HeaderField[] =>
  request.headers.filter(({ name }) => name === 'Authorization' || name === 'Proxy-Authorization')

const contactIn = (message: SipRequest | SipResponse): string | null => addressOf(message, 'Contact')?.uri ?? null

export type RequestParts = {
  readonly method: string
  readonly sequence: number
  readonly headers: readonly HeaderField[]
  readonly body: Uint8Array
}

/** §12.2.1.1. Routes of before RFC 3261 (no `lr`) stand in the Request-URI. */
export function requestIn(state: DialogState, { method, sequence, headers, body }: RequestParts): SipRequest {
  const { uri, routes } = wayOf(state)
  const own: HeaderField[] = [
    ...routes.map((value) => ({ name: 'Route', value })),
    { name: 'Max-Forwards', value: '70' },
    { name: 'From', value: state.local },
    { name: 'To', value: state.remote },
    { name: 'Call-ID', value: state.callId },
    { name: 'CSeq', value: `${sequence} ${method}` },
  ]
  return { kind: 'request', method, uri, headers: [...own, ...headers], body }
}

function wayOf({ routeSet, remoteTarget }: DialogState): { readonly uri: string; readonly routes: readonly string[] } {
  const [first, ...others] = routeSet
  if (first === undefined || isLoose(first)) return { uri: remoteTarget, routes: routeSet }
  return { uri: uriIn(first), routes: [...others, `<${remoteTarget}>`] }
}

/** The URI that says where a request goes. §8.1.2. */
export function nextHopOf(request: SipRequest): string {
  const first = valuesOf(request, 'Route')[0]
  return first !== undefined && isLoose(first) ? uriIn(first) : request.uri
}

const isLoose = (route: string): boolean => /;lr(?=[;=?]|$)/i.test(uriIn(route))

const uriIn = (route: string): string => readAddress(route)?.uri ?? route
