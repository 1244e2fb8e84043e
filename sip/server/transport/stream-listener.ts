/** Owns one socket that takes connections: TCP, or TLS with our certificate. */
import { constants } from 'node:crypto'
import { once } from 'node:events'
import net from 'node:net'
import tls from 'node:tls'
import type { Log } from '../../../model/log.ts'
import { familyOf } from '../../../net/addresses.ts'
import type { Endpoint, Protocol } from './transport.ts'

/** Of what is to be listened on; `tls`: PEM. */
export type StreamPlace = Endpoint & {
  readonly protocol: Protocol
  readonly tls?: { readonly cert: string; readonly key: string }
}

export type StreamListener = {
  /** As bound. */
  readonly local: Endpoint
  /** Idempotent. Connections that were taken are their owner's. */
  close(): Promise<void>
}

/** `taken` gets a TLS socket before its handshake. */
export async function openStreamListener(
  wanted: StreamPlace,
  log: Log,
  taken: (socket: net.Socket) => void,
): Promise<StreamListener> {
  const context = wanted.protocol === 'tls' ? contextOf(wanted) : null
  // `tls.Server` would hand the socket over after the handshake only, and with bounds of its own.
  const server = net.createServer((plain) => {
    const socket = context ? new tls.TLSSocket(plain, { isServer: true, secureContext: context }) : plain
    // Whatever it is, 'close' follows.
    socket.on('error', () => undefined)
    taken(socket)
  })
  server.listen({ host: wanted.address, port: wanted.port, ipv6Only: familyOf(wanted.address) === 6 })
  await once(server, 'listening')
  // Such as no more files to open: those that are open go on.
  server.on('error', (error) => log.error('SIP listener failed', { error }))
  const { port } = server.address() as net.AddressInfo
  let closing: Promise<unknown> | null = null
  return {
    local: { address: wanted.address, port },
    async close() {
      closing ??= new Promise((resolve) => server.close(resolve))
      await closing
    },
  }
}

function contextOf({ tls: identity }: StreamPlace): tls.SecureContext {
  if (!identity) throw new Error('a TLS listener needs a certificate and its key')
  // A peer that has its keys negotiated again and again would cost what a handshake costs each time.
  const secureOptions = constants.SSL_OP_NO_RENEGOTIATION
  return tls.createSecureContext({ ...identity, minVersion: 'TLSv1.2', secureOptions })
}
