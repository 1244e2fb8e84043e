/** Owns opening a connection, TCP or TLS, and whom it is to: RFC 3261 §26.3.1, RFC 5922 §7. */
import net from 'node:net'
import tls from 'node:tls'
import type { Clock } from '../../../model/clock.ts'
import type { ClientIdentities, ClientIdentity } from './client-identities.ts'
import { type Target, TransportError } from './transport.ts'

export type TlsClient = {
  /** PEM of the authorities that are believed; null: those that come with node. */
  readonly ca: string | null
  /** False: any certificate is taken. */
  readonly verify: boolean
  /** Of the service, for who asks. */
  readonly identity?: ClientIdentity | null
  readonly identities?: ClientIdentities
}

export type OpenOptions = {
  readonly target: Target
  readonly localAddress: string | null
  /** Ms until it is connected and, with TLS, through its handshake. */
  readonly timeout: number
  readonly tlsClient: TlsClient
  readonly clock: Clock
  /** The socket is closed, whether it ever was open or not. */
  gone(): void
}

/** `unready` holds the socket meanwhile; whoever destroys it there ends the waiting. Rejects with TransportError. */
export function openSocket(options: OpenOptions, unready: Set<net.Socket>): Promise<net.Socket> {
  const { target, timeout, clock } = options
  const { promise, resolve, reject } = Promise.withResolvers<net.Socket>()
  const socket = target.protocol === 'tls' ? connectTls(options) : net.connect(placeOf(options))
  unready.add(socket)
  const settled = (): void => {
    giveUp()
    unready.delete(socket)
  }
  const giveUp = clock.after(timeout, () => socket.destroy(new Error('no connection in time')))
  socket.once(target.protocol === 'tls' ? 'secureConnect' : 'connect', () => {
    settled()
    resolve(socket)
  })
  let cause: Error | undefined
  socket.on('error', (error) => (cause ??= error))
  socket.once('close', () => {
    settled()
    options.gone()
    const { address, port } = target.remote
    const details = `${target.protocol.toUpperCase()} to ${address} port ${port}: ${cause?.message ?? 'closed'}`
    reject(new TransportError(details, { cause }))
  })
  return promise
}

const placeOf = ({ target, localAddress }: OpenOptions) => ({
  host: target.remote.address,
  port: target.remote.port,
  ...(localAddress === null ? {} : { localAddress }),
})

function connectTls(options: OpenOptions): tls.TLSSocket {
  const { target, tlsClient } = options
  const { serverName } = target
  return tls.connect({
    ...placeOf(options),
    ...identityFor(options),
    ...(tlsClient.ca === null ? {} : { ca: tlsClient.ca }),
    // An address is no server name of TLS (RFC 6066 §3).
    ...(serverName === null || net.isIP(serverName) !== 0 ? {} : { servername: serverName }),
    minVersion: 'TLSv1.2',
    rejectUnauthorized: tlsClient.verify,
    checkServerIdentity: (_host, certificate) => identityFault(serverName, certificate),
  })
}

/** Throws TransportError: another certificate than the trunk's own would be another peer. */
function identityFor({ target: { client = null }, tlsClient }: OpenOptions): ClientIdentity | object {
  if (client === null) return tlsClient.identity ?? {}
  const identity = tlsClient.identities?.of(client)
  if (!identity) throw new TransportError('the certificate of the trunk is not known any more')
  return identity
}

/** RFC 5922 §7.1: a certificate for SIP may name its domain as a URI; else as any server of TLS does. */
function identityFault(serverName: string | null, certificate: tls.PeerCertificate): Error | undefined {
  if (serverName === null) return undefined
  const uris = (certificate.subjectaltname ?? '').split(', ').filter((name) => name.startsWith('URI:'))
  if (uris.some((uri) => uri.toLowerCase() === `uri:sip:${serverName.toLowerCase()}`)) return undefined
  return tls.checkServerIdentity(serverName, certificate)
}
