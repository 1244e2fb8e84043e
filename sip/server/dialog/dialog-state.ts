/** Owns what a dialog is: pure values, and how requests are made within it. RFC 3261 §12. */
import { addressOf, tagIn } from '../message/address.ts'
import { headerOf, valuesOf } from '../message/header-fields.ts'
import type { HeaderField, SipRequest, SipResponse } from '../message/message.ts'
import { readAddress } from '../message/address.ts'
import { cseqOf } from '../message/numbered-fields.ts'

export type DialogState = {
  readonly callId: string
  readonly localTag: string
  readonly remoteTag: string
  /** From of what we send, tag and all, and To. */
  readonly local: string
  readonly remote: string
  /** Values of Route, the next hop first. Fixed for the life of the dialog. */
  readonly routeSet: readonly string[]
  /** Where the peer is: its last Contact. */
  readonly remoteTarget: string
  /** CSeq of the last request we sent; 0: none. */
  readonly localSequence: number
  /** Of the last one that came; null: none. */
  readonly remoteSequence: number | null
}

/** §12.1.1: the INVITE that came and our answer to it. Null: the INVITE has no usable Contact. */
export function stateOfReceived(invite: SipRequest, response: SipResponse): DialogState | null {
  const contact = contactIn(invite)
  const local = headerOf(response, 'To') ?? ''
  const remote = headerOf(invite, 'From') ?? ''
  if (contact === null) return null
  return {
    callId: headerOf(invite, 'Call-ID') ?? '',
    localTag: tagIn(local) ?? '',
    // §12.1.1: a peer of RFC 2543 has no tag.
    remoteTag: tagIn(remote) ?? '',
    local,
    remote,
    routeSet: valuesOf(invite, 'Record-Route'),
    remoteTarget: contact,
    localSequence: 0,
    remoteSequence: cseqOf(invite)?.number ?? null,
  }
}

/** §12.1.2: the INVITE we sent and an answer to it that has a To tag. Without a Contact the peer is where the INVITE went. */
export function stateOfPlaced(invite: SipRequest, response: SipResponse): DialogState {
  const local = headerOf(invite, 'From') ?? ''
  const remote = headerOf(response, 'To') ?? ''
  return {
    callId: headerOf(invite, 'Call-ID') ?? '',
    localTag: tagIn(local) ?? '',
    remoteTag: tagIn(remote) ?? '',
    local,
    remote,
    routeSet: valuesOf(response, 'Record-Route').toReversed(),
    remoteTarget: contactIn(response) ?? invite.uri,
    localSequence: cseqOf(invite)?.number ?? 0,
    remoteSequence: null,
  }
}

/** §12.2.1.2, §12.2.2: an INVITE or UPDATE and its 2xx may move the peer. */
export function withTargetOf(state: DialogState, message: SipRequest | SipResponse): DialogState {
  const contact = contactIn(message)
  return contact === null ? state : { ...state, remoteTarget: contact }
}

/** The route set of a confirmed dialog is that of its 2xx, whatever a provisional response said. §13.2.2.4. */
export const confirmedBy = (state: DialogState, response: SipResponse): DialogState =>
  withTargetOf({ ...state, routeSet: valuesOf(response, 'Record-Route').toReversed() }, response)

const contactIn = (message: SipRequest | SipResponse): string | null => addressOf(message, 'Contact')?.uri ?? null

type Parts = {
  readonly method: string
  readonly sequence: number
  readonly headers: readonly HeaderField[]
  readonly body: Uint8Array
}

/** §12.2.1.1. Routes of before RFC 3261 (no `lr`) stand in the Request-URI. */
export function requestIn(state: DialogState, { method, sequence, headers, body }: Parts): SipRequest {
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
