/**
 * Owns what of a draft is for the server and not for the peer: of a request in a dialog that another process had, where its peer was seen; of the CANCEL
 * of an INVITE that another process sent, by which Via, and that it goes where that went. Only drafts of the app are read for it, and it is taken out of them.
 */
import { readAddress } from './message/address.ts'
import { hostPortText } from './message/header-text.ts'
import type { SipRequest } from './message/message.ts'
import { readSipUri } from './message/uri.ts'
import { topViaOf, type Via } from './message/via.ts'
import type { SeenPeer } from './transport/seen-peer.ts'
import { destinationOf } from './transport/resolve-targets.ts'
import type { Protocol } from './transport/transport.ts'

export const seenAtHeader = 'X-Seen-At'
export const viaHeader = 'X-Sent-Via'

type Seen = {
  readonly protocol: Protocol
  readonly address: string
  readonly port: number
  readonly isTranslated: boolean
}

/** For the headers of a draft. `via`: of the INVITE that is canceled. */
export const seenAt = ({
  protocol,
  address,
  port,
  isTranslated,
  via,
}: Seen & { readonly via?: string }): Record<string, string> => ({
  ...(via !== undefined && { [viaHeader]: via }),
  [seenAtHeader]: `<sip:${hostPortText(address, port)};transport=${protocol}>${isTranslated ? ';translated' : ''}`,
})

/** Null: it is no request of such a dialog. */
export function seenPeerIn(draft: SipRequest): SeenPeer | null {
  const value = valueOf(draft, seenAtHeader)
  const address = value === null ? null : readAddress(value)
  const uri = address && readSipUri(address.uri)
  if (!address || !uri) return null
  const { host, port, transport } = destinationOf(uri)
  const protocol = transport === 'tcp' || transport === 'tls' ? transport : 'udp'
  const remote = { address: host, port: port ?? 5060 }
  const flow = { protocol, remote, local: { address: '', port: 0 }, connection: 0 } as const
  return { flow, isTranslated: address.params.has('translated') }
}

/** Null: it cancels no INVITE of another process. */
export function sentViaIn(draft: SipRequest): Via | null {
  const value = valueOf(draft, viaHeader)
  return value === null ? null : topViaOf({ headers: [{ name: 'Via', value }] })
}

const valueOf = (draft: SipRequest, header: string): string | null =>
  draft.headers.find(({ name }) => name.toLowerCase() === header.toLowerCase())?.value ?? null
