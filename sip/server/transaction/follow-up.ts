/** Owns the requests a client transaction makes out of its INVITE: ACK of a refusal (RFC 3261 §17.1.1.3) and CANCEL (§9.1). */
import { headerOf } from '../message/header-fields.ts'
import type { HeaderField, SipRequest, SipResponse } from '../message/message.ts'
import { cseqOf } from '../message/numbered-fields.ts'

/** Without Via: the transports put the one of the INVITE on it. */
export const ackOf = (invite: SipRequest, refusal: SipResponse): SipRequest =>
  followUp(invite, 'ACK', headerOf(refusal, 'To'), [])

/** Without Via. `extra`: such as Reason; what the CANCEL takes from its INVITE is left out of it. */
export function cancelOf(invite: SipRequest, extra: readonly HeaderField[]): SipRequest {
  const own = extra.filter(({ name }) => !taken.includes(name))
  return followUp(invite, 'CANCEL', headerOf(invite, 'To'), own)
}

const taken = ['Via', 'Max-Forwards', 'Route', 'From', 'To', 'Call-ID', 'CSeq', 'Contact', 'Require', 'Proxy-Require']

function followUp(invite: SipRequest, method: string, to: string | null, extra: readonly HeaderField[]): SipRequest {
  const headers = [
    { name: 'Max-Forwards', value: '70' },
    ...invite.headers.filter(({ name }) => name === 'Route' || name === 'From'),
    { name: 'To', value: to ?? '' },
    ...invite.headers.filter(({ name }) => name === 'Call-ID'),
    { name: 'CSeq', value: `${cseqOf(invite)?.number ?? 1} ${method}` },
    ...extra,
  ]
  return { kind: 'request', method, uri: invite.uri, headers, body: new Uint8Array(0) }
}

/** With the Via the INVITE was sent with. */
export const withViaOf = (invite: SipRequest, request: SipRequest): SipRequest => ({
  ...request,
  headers: [...invite.headers.filter(({ name }) => name === 'Via').slice(0, 1), ...request.headers],
})
