/** Owns the UDP sockets of the SIP server. RFC 3261 §18. */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import type { Log } from '../../../model/log.ts'
import { familyOf, isWildcard } from '../../../net/addresses.ts'
import { type Endpoint, TransportError } from './transport.ts'

export type UdpSocket = {
  /** As bound. */
  readonly local: Endpoint
  /** Rejects with TransportError. */
  send(bytes: Uint8Array, to: Endpoint): Promise<void>
  /** Idempotent. */
  close(): Promise<void>
}

/** Bursts arrive while the process does something else. The kernel may grant less. */
const receiveBufferBytes = 4 * 1024 * 1024

export async function openUdpSocket(
  wanted: Endpoint,
  log: Log,
  arrived: (bytes: Uint8Array, remote: Endpoint) => void,
): Promise<UdpSocket> {
  const type = familyOf(wanted.address) === 6 ? 'udp6' : 'udp4'
  const socket = createSocket({ type, ipv6Only: type === 'udp6', recvBufferSize: receiveBufferBytes })
  socket.bind(wanted.port, wanted.address)
  await once(socket, 'listening')
  socket.on('error', (error) => log.error('SIP socket failed', { error }))
  socket.on('message', (bytes, { address, port }) => arrived(bytes, { address, port }))
  const { port } = socket.address()
  let closing: Promise<void> | null = null
  return {
    local: { address: wanted.address, port },
    send: (bytes, to) => (closing ? Promise.reject(new TransportError('the server stops')) : send(socket, bytes, to)),
    close: () => (closing ??= closed(socket)),
  }
}

async function closed(socket: Socket): Promise<void> {
  const gone = once(socket, 'close')
  socket.close()
  await gone
}

function send(socket: Socket, bytes: Uint8Array, { address, port }: Endpoint): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const failed = (error: Error): void =>
    reject(new TransportError(`UDP to ${address} port ${port}: ${error.message}`, { cause: error }))
  try {
    socket.send(bytes, port, address, (error) => (error ? failed(error) : resolve()))
  } catch (error) {
    // An address or port that can be none is thrown at once.
    failed(error instanceof Error ? error : new Error(String(error)))
  }
  return promise
}

/** The socket an answer leaves by is the one its request came to. RFC 3581 §4. */
export const socketAt = (sockets: readonly UdpSocket[], local: Endpoint): UdpSocket | undefined =>
  sockets.find((socket) => socket.local.port === local.port && socket.local.address === local.address) ??
  sockets.find(
    (socket) =>
      socket.local.port === local.port &&
      isWildcard(socket.local.address) &&
      familyOf(socket.local.address) === familyOf(local.address),
  )
