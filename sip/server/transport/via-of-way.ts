/** Owns what Via says of a way: ours on what we send, `received` and `rport` on what came, and where its answer goes. RFC 3261 §18, RFC 3581 §4. */
import { withParam, type Params } from '../message/header-text.ts'
import { withFirst } from '../message/header-fields.ts'
import type { SipRequest, SipResponse } from '../message/message.ts'
import { topViaOf, withTopVia, writeVia } from '../message/via.ts'
import type { Endpoint, Flow, Protocol } from './transport.ts'

export const defaultPortOf = (protocol: Protocol): number => (protocol === 'tls' ? 5061 : 5060)

/** `sentBy`: as the peer reaches us. RFC 3581 §3: `rport` asks for the answer to come back through the NAT. */
export function withOurVia(request: SipRequest, protocol: Protocol, sentBy: Endpoint, branch: string): SipRequest {
  const params: Params = new Map([
    ['branch', branch],
    ['rport', null],
  ])
  const via = { transport: protocol.toUpperCase(), host: sentBy.address, port: sentBy.port, params }
  return withFirst(request, { name: 'Via', value: writeVia(via) })
}

/** §18.2.1: where it really came from, unless Via says the same. What the peer wrote there is overwritten. */
export function withReceived(request: SipRequest, { remote }: Flow): SipRequest {
  const via = topViaOf(request)
  if (!via) return request
  const asksPort = via.params.has('rport')
  if (!asksPort && !via.params.has('received') && via.host === withoutZone(remote.address)) return request
  const received = withParam(via.params, 'received', withoutZone(remote.address))
  return withTopVia(request, {
    ...via,
    params: asksPort ? withParam(received, 'rport', String(remote.port)) : received,
  })
}

/** A link-local address names its interface for us only. */
const withoutZone = (address: string): string => address.replace(/%.*$/, '')

/**
 * §18.2.2, RFC 3581 §4: where an answer goes that cannot take a connection back. `maddr` is not followed: it was meant for multicast, and
 * would let any sender have answers sent, each several times, to an address of its choice.
 */
export function answerPlaceOf(response: SipResponse, { protocol, remote }: Flow): Endpoint {
  const via = topViaOf(response)
  const sentByPort = via?.port ?? defaultPortOf(protocol)
  // `rport` is the port it came from (we wrote it), and its own on a connection is of no use to a new one.
  const port = protocol === 'udp' && via?.params.get('rport') ? remote.port : sentByPort
  return { address: remote.address, port }
}
