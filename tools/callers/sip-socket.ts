/** Owns one way to a SIP host, for callers made of software: a UDP socket, or a connection by TCP or TLS that is opened anew when it was lost. */
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { createSocket } from 'node:dgram'
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { familyOf, isLoopback, loopbackOf, withoutBrackets } from '../../net/addresses.ts'
import { maxMessageBytes } from '../../sip/server/message/read-head.ts'
import { createStreamFramer } from '../../sip/server/transport/stream-framer.ts'
import type { Protocol } from '../../sip/server/transport/transport.ts'

export type SipTarget = {
  readonly protocol: Protocol
  /** A name or an address. */
  readonly host: string
  readonly port: number
  /** Of TLS: who may have signed the host's certificate (PEM), in place of the usual authorities; `any`: it is not judged. */
  readonly trust?: { readonly ca: string } | 'any'
}

export type SipSocket = {
  /** Where answers come to. */
  local(): { readonly address: string; readonly port: number }
  /** Never throws: what cannot be sent is lost, as on the way. */
  send(bytes: Uint8Array): void
  /** Idempotent. */
  close(): Promise<void>
}

const connectWithin = 10_000

/** Rejects when the host has no address or takes no connection. `hear` gets each message as it came. */
export async function openSipSocket(target: SipTarget, hear: (bytes: Uint8Array) => void): Promise<SipSocket> {
  const host = withoutBrackets(target.host)
  const address = isIP(host) ? host : (await lookup(host)).address
  return target.protocol === 'udp' ? openUdp(address, target.port, hear) : openStream(target, address, hear)
}

async function openUdp(address: string, port: number, hear: (bytes: Uint8Array) => void): Promise<SipSocket> {
  const family = familyOf(address)
  const socket = createSocket(family === 6 ? 'udp6' : 'udp4')
  // What the network says of a host that is not there: who waits for an answer notices.
  socket.on('error', () => undefined)
  const bound = once(socket, 'listening')
  socket.bind(0, isLoopback(address) ? loopbackOf(family) : undefined)
  await bound
  const connected = once(socket, 'connect')
  socket.connect(port, address)
  await connected
  socket.on('message', hear)
  const { address: own, port: ownPort } = socket.address()
  let closing: Promise<void> | null = null
  return {
    local: () => ({ address: own, port: ownPort }),
    send: (bytes) => void (closing || socket.send(bytes, () => undefined)),
    close: () =>
      (closing ??= new Promise((closed) => {
        socket.close(closed)
      })),
  }
}

async function openStream(target: SipTarget, address: string, hear: (bytes: Uint8Array) => void): Promise<SipSocket> {
  let isClosed = false
  let current = await connect(target, address, hear)
  const { localAddress = '', localPort = 0 } = current
  let last = { address: localAddress, port: localPort }
  let again: Promise<void> | null = null
  const reopen = (): Promise<void> =>
    (again ??= connect(target, address, hear)
      .then((socket) => {
        if (isClosed) return void socket.destroy()
        current = socket
        last = { address: socket.localAddress ?? last.address, port: socket.localPort ?? last.port }
      })
      .finally(() => (again = null)))
  return {
    local: () => last,
    send(bytes) {
      if (isClosed) return
      if (!current.destroyed && current.writable) return void current.write(bytes)
      reopen().then(
        () => void current.write(bytes),
        () => undefined,
      )
    },
    close() {
      isClosed = true
      current.destroy()
      return Promise.resolve()
    },
  }
}

async function connect(
  { protocol, host, port, trust }: SipTarget,
  address: string,
  hear: (bytes: Uint8Array) => void,
): Promise<Socket> {
  const name = isIP(withoutBrackets(host)) ? {} : { servername: host }
  const trusted = trust === undefined || trust === 'any' ? {} : trust
  const socket =
    protocol === 'tls'
      ? connectTls({ host: address, port, ...name, ...trusted, rejectUnauthorized: trust !== 'any' })
      : connectTcp({ host: address, port })
  socket.setNoDelay(true)
  const signal = AbortSignal.timeout(connectWithin)
  try {
    await once(socket, protocol === 'tls' ? 'secureConnect' : 'connect', { signal })
  } catch (error) {
    socket.destroy()
    throw signal.aborted ? new Error(`nobody answers within ${connectWithin / 1000} s`, { cause: error }) : error
  }
  const framer = createStreamFramer(maxMessageBytes)
  socket.on('error', () => undefined)
  socket.on('data', (chunk) => {
    for (const framed of framer.push(chunk)) {
      if (framed.kind === 'message') hear(framed.bytes)
      if (framed.kind === 'broken') socket.destroy()
    }
  })
  return socket
}
