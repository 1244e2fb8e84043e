/**
 * Owns one connection, TCP or TLS: framing, keep-alive, and the bounds on what its peer may keep waiting. Deadlines are looked at from
 * outside (`check`), so a connection has no timer of its own. RFC 3261 §18.3, RFC 5626 §4.4.1.
 */
import type { Socket } from 'node:net'
import type { MessageFault } from '../message/message.ts'
import { createDeadlines, type DeadlineLimits } from './connection-deadlines.ts'
import { peerAddressOf } from '../../../net/addresses.ts'
import type { Place } from '../../../net/connection-places.ts'
import type { Peers } from '../../strangers.ts'
import { createStreamFramer, type Framed } from './stream-framer.ts'
import { type Flow, type Protocol, TransportError } from './transport.ts'

export type ConnectionLimits = DeadlineLimits & {
  readonly maxMessageBytes: number
  /** Bytes the peer has not read; more, and it is cut off. */
  readonly maxUnsentBytes: number
}

export type ConnectionHandlers = {
  message(bytes: Uint8Array, flow: Flow): void
  broken(bytes: Uint8Array, fault: MessageFault, flow: Flow): void
  /** Once. */
  closed(flow: Flow, why: string): void
}

export type StreamConnection = {
  readonly flow: Flow
  /** Opened by us: the name its certificate was checked against, null for none. Undefined: opened by the peer. */
  readonly serverName: string | null | undefined
  isOpen(): boolean
  /** It carries a call: it is cut for nobody, and may be silent as long as calls may. */
  keep(): void
  /** In the order of the calls. Throws TransportError. */
  send(bytes: Uint8Array, wantsAnswer?: boolean): void
  /** Now and then. */
  check(): void
  /** Idempotent; at once. */
  cut(why: string): void
}

export type ConnectionOptions = {
  /** Connected, and through its handshake. */
  readonly socket: Socket
  readonly protocol: Protocol
  readonly connection: number
  readonly serverName: string | null | undefined
  /** As of Flow. */
  readonly client: string | null
  readonly limits: ConnectionLimits
  /** Of one that a peer opened. */
  readonly place: Place | null
  readonly peers: Peers
  now(): number
}

/** Ms for the last answer to leave. */
const lingerTime = 2_000
const ping = Buffer.from('\r\n\r\n')
const pong = Buffer.from('\r\n')

export function createStreamConnection(options: ConnectionOptions, handlers: ConnectionHandlers): StreamConnection {
  const { socket, limits, now, serverName, place, peers } = options
  const flow = flowOf(options)
  const framer = createStreamFramer(limits.maxMessageBytes)
  const deadlines = createDeadlines(limits, serverName !== undefined, now)
  /** When it is cut at the latest, once it is ending. */
  let endsAt: number | null = null
  let why = 'the peer closed it'
  let isOver = false
  /** Nobody that belongs here, as far as is known. */
  let isStranger = place !== null
  let isKept = place === null

  const isOpen = (): boolean => !isOver && endsAt === null && socket.writable

  /** False: the peer had not read what was there before, and is cut off. */
  function write(bytes: Uint8Array, kind: 'request' | 'message' | 'keepAlive'): boolean {
    socket.write(bytes)
    deadlines.sent(kind)
    if (socket.writableLength <= limits.maxUnsentBytes) return true
    cut('the peer does not read')
    return false
  }

  function cut(reason: string): void {
    if (isOver) return
    why = reason
    socket.destroy()
    over()
  }

  function over(): void {
    if (isOver) return
    isOver = true
    handlers.closed(flow, why)
  }

  function keep(): void {
    isStranger = false
    if (isKept) return
    isKept = true
    place?.begin()
  }

  /** False: whoever is at the other end is banned by now. */
  function mayStay(): boolean {
    if (isKept) return true
    const { address } = flow.remote
    if (!peers.admits(address)) {
      cut('its address is banned')
      return false
    }
    if (isStranger && peers.isKnown(address)) {
      isStranger = false
      place?.prove()
    }
    return true
  }

  function take(framed: Exclude<Framed, { kind: 'ping' }>): void {
    if (framed.kind === 'message') {
      deadlines.received()
      if (!mayStay()) return
      return handlers.message(framed.bytes, flow)
    }
    // The answer is given while this runs; then the stream ends.
    handlers.broken(framed.bytes, framed.fault, flow)
    why = framed.fault.reason
    endsAt = now() + lingerTime
    socket.end()
  }

  function arrived(chunk: Buffer): void {
    if (isOver || endsAt !== null) return
    deadlines.heard()
    const framed = framer.push(chunk)
    for (const one of framed) if (one.kind !== 'ping' && !isOver) take(one)
    // One for all that came together: thousands of them in one packet would cost a write each.
    if (isOpen() && framed.some(({ kind }) => kind === 'ping')) write(pong, 'keepAlive')
    deadlines.left(framer.isPartial())
  }

  function check(): void {
    if (isOver || !mayStay()) return
    const reason = endsAt === null ? deadlines.expired(isStranger) : now() >= endsAt ? why : null
    if (reason !== null) cut(reason)
    else if (isOpen() && deadlines.wantsKeepAlive()) write(ping, 'keepAlive')
  }

  function send(bytes: Uint8Array, wantsAnswer = false): void {
    if (!isOpen()) throw new TransportError('the connection is gone')
    if (wantsAnswer) keep()
    if (!write(bytes, wantsAnswer ? 'request' : 'message')) throw new TransportError('the peer does not read')
  }

  socket.setNoDelay(true)
  socket.setKeepAlive(true, 60_000)
  socket.on('data', arrived)
  socket.on('error', (error) => (why = error.message))
  socket.on('close', over)
  return { flow, serverName, isOpen, keep, send, check, cut }
}

function flowOf({ socket, protocol, connection, client }: ConnectionOptions): Flow {
  const { remoteAddress = '', remotePort = 0, localAddress = '', localPort = 0 } = socket
  return {
    protocol,
    connection,
    remote: { address: peerAddressOf(remoteAddress), port: remotePort },
    local: { address: peerAddressOf(localAddress), port: localPort },
    ...(client !== null && { client }),
  }
}
