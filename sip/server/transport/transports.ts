/** Owns the network of the SIP server: listeners, what comes in by them, and by which way a message goes out. RFC 3261 §18. */
import { networkInterfaces } from 'node:os'
import type { Clock } from '../../../model/clock.ts'
import type { Log } from '../../../model/log.ts'
import { maxMessageBytes } from '../message/read-head.ts'
import { type ArrivalLimits, createArrivalLimit } from './arrival-limit.ts'
import { createIntake, type IntakeHandlers } from './intake.ts'
import { createSending } from './sending.ts'
import { openStreamListener, type StreamListener } from './stream-listener.ts'
import { isWildcard, peerAddressOf } from '../../../net/addresses.ts'
import { networksOf } from '../../../net/networks.ts'
import type { Peers } from '../../strangers.ts'
import type { TlsClient } from './open-socket.ts'
import { type Bound, createPlaces, type ExternalAddress, type OwnAddress, type Places } from './places.ts'
import { type ConnectionsLimits, createStreamConnections, type StreamConnections } from './stream-connections.ts'
import type { Flow, Protocol, Target, Transports } from './transport.ts'
import { openUdpSocket, type UdpSocket } from './udp-sockets.ts'

export type Listen = {
  readonly protocol: Protocol
  /** `0.0.0.0` and `::`: every address of the host of that family. */
  readonly address: string
  /** 0: any free one. */
  readonly port: number
  /** PEM; needed for `tls`. */
  readonly tls?: { readonly cert: string; readonly key: string }
}

export type TransportLimits = ConnectionsLimits &
  ArrivalLimits & {
    /** A request that is longer goes by TCP rather than by UDP. RFC 3261 §18.1.1. */
    readonly maxUdpRequestBytes: number
    /** Ms to connect. */
    readonly connect: number
    /** Ms to connect when it was UDP that was asked for. */
    readonly connectInstead: number
    /** Of one address: each may cost a handshake of TLS. 0: as many as come. */
    readonly connectionsPerSecond: number
    readonly connectionBurst: number
  }

export const defaultTransportLimits: TransportLimits = {
  maxMessageBytes,
  maxUdpRequestBytes: 1_300,
  connect: 5_000,
  connectInstead: 1_500,
  handshake: 10_000,
  firstMessage: 30_000,
  messageTime: 15_000,
  // Longer than the refresh of any session, so that a call that says nothing keeps its way.
  idle: 3_600_000,
  strangerIdle: 120_000,
  keepAlive: 30_000,
  // Beyond Timers B and F (RFC 3261 §17.1).
  unanswered: 33_000,
  maxUnsentBytes: 256 * 1024,
  maxConnections: 2_000,
  maxConnectionsPerAddress: 100,
  connectionsPerSecond: 10,
  connectionBurst: 100,
  messagesPerSecond: 500,
  messageBurst: 1_000,
  maxAddresses: 20_000,
  exemptsLoopback: true,
}

export type TransportsOptions = {
  readonly listen: readonly Listen[]
  /** What peers outside of our networks reach us by; null: the addresses that are listened on. */
  readonly externalAddress: ExternalAddress
  readonly tlsClient: TlsClient
  readonly limits?: Partial<TransportLimits>
  /** Without it everybody is known. */
  readonly peers?: Peers
  readonly clock: Clock
  readonly log: Log
}

export type TransportHandlers = IntakeHandlers & {
  /** A connection is gone. */
  closed(flow: Flow): void
}

const everybody: Peers = { admits: () => true, isKnown: () => true }

type Listeners = { readonly sockets: UdpSocket[]; readonly streams: StreamListener[]; readonly bound: Bound[] }

/** Rejects when one of the addresses cannot be listened on; then nothing is left open. */
export async function createTransports(options: TransportsOptions, handlers: TransportHandlers): Promise<Transports> {
  const { clock, log, tlsClient, externalAddress, peers = everybody } = options
  const limits = { ...defaultTransportLimits, ...options.limits }
  const listeners: Listeners = { sockets: [], streams: [], bound: [] }
  const places = createPlaces({ bound: listeners.bound, externalAddress, ownAddresses: createOwnAddresses(clock) })
  const admits = createArrivalLimit(limits, clock.now)
  const { connectionsPerSecond: messagesPerSecond, connectionBurst: messageBurst } = limits
  const mayConnect = createArrivalLimit({ ...limits, messagesPerSecond, messageBurst }, clock.now)
  const intake = createIntake({ admits, handlers, isOurs: places.isOurs, clock, log })
  const connections = createStreamConnections(
    { limits, peers, tlsClient, clock, log, localAddressFor: (target) => sourceOf(places, target) },
    { message: intake.message, broken: intake.broken, closed: (flow) => handlers.closed(flow) },
  )
  /** Who opens us knows of nothing before he has us: what comes earlier is lost like a packet before the start. */
  let isReady = false
  let closing: Promise<void> | null = null
  const close = (): Promise<void> => (closing ??= closeAll(listeners, connections))
  try {
    for (const wanted of options.listen) await listen(wanted)
  } catch (error) {
    await close()
    throw error
  }

  async function listen(wanted: Listen): Promise<void> {
    const { protocol } = wanted
    if (protocol !== 'udp') {
      const stream = await openStreamListener(wanted, log, (socket) => {
        const address = peerAddressOf(socket.remoteAddress ?? '')
        const isWelcome = isReady && peers.admits(address) && mayConnect(address)
        return isWelcome ? connections.take(socket, protocol) : socket.destroy()
      })
      listeners.streams.push(stream)
      listeners.bound.push({ protocol, local: stream.local })
      return
    }
    const socket: UdpSocket = await openUdpSocket(wanted, log, (bytes, remote) => {
      if (!isReady) return
      const local = places.localOf({ protocol, local: socket.local }, remote.address)
      intake.message(bytes, { protocol, remote, local, connection: 0 })
    })
    listeners.sockets.push(socket)
    listeners.bound.push({ protocol, local: socket.local })
  }

  isReady = true
  return {
    ...createSending({ limits, places, connections, sockets: listeners.sockets, clock }),
    listening: listeners.bound.map((bound) => ({ ...bound, external: places.externalOfBound(bound) })),
    externalOf: (protocol, remote) => places.externalOf(protocol, remote.address),
    connections: connections.count,
    dropped: () => ({ ...intake.dropped, connections: connections.refused() }),
    close,
  }
}

/** A connection leaves from the address its protocol is listened for on, so that the peer knows it. */
function sourceOf(places: Places, { protocol, remote }: Target): string | null {
  const listener = places.listenerFor(protocol, remote.address)
  return listener === null || isWildcard(listener.local.address) ? null : listener.local.address
}

async function closeAll({ sockets, streams }: Listeners, connections: StreamConnections): Promise<void> {
  connections.close()
  await Promise.all([...sockets, ...streams].map((listener) => listener.close()))
}

/** Ms for which the addresses of the host are believed. */
const ownAddressesAge = 10_000

function createOwnAddresses(clock: Clock): () => readonly OwnAddress[] {
  let known: { readonly at: number; readonly addresses: readonly OwnAddress[] } | null = null
  return () => {
    if (known && Math.abs(clock.now() - known.at) < ownAddressesAge) return known.addresses
    const found = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
    const addresses = found.map(({ address, internal, cidr }) => ({
      address,
      internal,
      network: networksOf(cidr === null ? [] : [cidr]),
    }))
    known = { at: clock.now(), addresses }
    return addresses
  }
}
