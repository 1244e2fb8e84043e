/**
 * Owns the one header of a draft that is for the server and not for the peer: of a request in a dialog that another process had, where its peer was
 * seen. Only drafts of the app are read for it, and it is taken out of them.
 */
import { readAddress } from './message/address.ts'
import { hostPortText } from './message/header-text.ts'
import type { SipRequest } from './message/message.ts'
import { readSipUri } from './message/uri.ts'
import type { SeenPeer } from './transport/seen-peer.ts'
import { destinationOf } from './transport/resolve-targets.ts'
import type { Protocol } from './transport/transport.ts'

export const seenAtHeader = 'X-Seen-At'

type Seen = {
  readonly protocol: Protocol
  readonly address: string
  readonly port: number
  readonly isTranslated: boolean
}

/** For the headers of a draft. */
export const seenAt = ({ protocol, address, port, isTranslated }: Seen): Record<string, string> => ({
  [seenAtHeader]: `<sip:${hostPortText(address, port)};transport=${protocol}>${isTranslated ? ';translated' : ''}`,
})

/** Null: it is no request of such a dialog. */
export function seenPeerIn(draft: SipRequest): SeenPeer | null {
  const value = draft.headers.find(({ name }) => name.toLowerCase() === seenAtHeader.toLowerCase())?.value
  const address = value === undefined ? null : readAddress(value)
  const uri = address && readSipUri(address.uri)
  if (!address || !uri) return null
  const { host, port, transport } = destinationOf(uri)
  const protocol = transport === 'tcp' || transport === 'tls' ? transport : 'udp'
  const remote = { address: host, port: port ?? 5060 }
  const flow = { protocol, remote, local: { address: '', port: 0 }, connection: 0 } as const
  return { flow, isTranslated: address.params.has('translated') }
}
