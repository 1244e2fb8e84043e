/**
 * Owns the TCP and TLS connections of the SIP server: those it takes, those it opens, and which of them a message may use. RFC 3261 §18,
 * RFC 5923 in its simple form.
 */
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { Cancel, Clock } from '../../../model/clock.ts'
import type { Log } from '../../../model/log.ts'
import { peerAddressOf } from '../../../net/addresses.ts'
import { createConnectionPlaces, type Place, type PlaceLimits } from '../../../net/connection-places.ts'
import type { Peers } from '../../strangers.ts'
import { openSocket, type TlsClient } from './open-socket.ts'
import { createProvedNames, isNameless } from './proved-names.ts'
import { shakeHands } from './shake-hands.ts'
import {
  type ConnectionHandlers,
  type ConnectionLimits,
  createStreamConnection,
  type StreamConnection,
} from './stream-connection.ts'
import { type Flow, type Protocol, type Target, TransportError } from './transport.ts'

export type ConnectionsLimits = ConnectionLimits &
  Omit<PlaceLimits, 'isExempt'> & {
    /** Ms of TLS handshake of a connection that is taken. */
    readonly handshake: number
  }

export type ConnectionsOptions = {
  readonly limits: ConnectionsLimits
  readonly peers: Peers
  readonly tlsClient: TlsClient
  readonly clock: Clock
  readonly log: Log
  /** Where connections to this peer come from; null: the system chooses. */
  localAddressFor(target: Target): string | null
}

export type StreamConnections = {
  /** A socket a listener took: with TLS before its handshake. */
  take(socket: Socket, protocol: Protocol): void
  /**
   * An open one or a new one; those that ask for the same at once get the same. `isKnown`: the peer has shown who it is by an
   * earlier message, as within a dialog. Rejects with TransportError.
   */
  obtain(target: Target, timeout: number, isKnown?: boolean): Promise<StreamConnection>
  /** The connection of this flow, if it is still there. */
  find(flow: Flow): StreamConnection | null
  count(): number
  /** Of peers, that found no place, or gave theirs to another. */
  refused(): number
  /** Idempotent; all are cut. */
  close(): void
}

/** Ms between two looks at the deadlines. */
const checkInterval = 1_000

export function createStreamConnections(options: ConnectionsOptions, handlers: ConnectionHandlers): StreamConnections {
  const { limits, tlsClient, clock, log, peers } = options
  const places = createConnectionPlaces({ ...limits, isExempt: () => false })
  const table = createTable(clock)
  const names = createProvedNames()
  const opening = new Map<string, Promise<StreamConnection>>()
  /** Sockets in their handshake, either way. */
  const unready = new Set<Socket>()
  let lastId = 0
  let isClosed = false

  function add(
    socket: Socket,
    protocol: Protocol,
    { serverName, client = null, place = null }: Origin,
  ): StreamConnection {
    lastId += 1
    const seen = { socket, protocol, connection: lastId, serverName, client, limits, place, peers, now: clock.now }
    const closed = (flow: Flow, why: string): void => {
      table.remove(flow)
      log.debug('SIP connection closed', { protocol, why, personal: { address: flow.remote.address } })
      handlers.closed(flow, why)
    }
    return table.add(createStreamConnection(seen, { ...handlers, closed }))
  }

  function take(socket: Socket, protocol: Protocol): void {
    const address = peerAddressOf(socket.remoteAddress ?? '')
    let connection: StreamConnection | null = null
    const makeWay = (): void => (connection ? connection.cut('another needed its place') : void socket.destroy())
    // Without an address it is gone already.
    const place = isClosed || address === '' ? null : places.take(address, makeWay)
    if (!place) return void socket.destroy()
    socket.once('close', place.give)
    const ready = (): void => void (connection = add(socket, protocol, { serverName: undefined, place }))
    if (!(socket instanceof TLSSocket)) ready()
    else shakeHands(socket, clock, limits.handshake, unready, ready)
  }

  async function open(target: Target, timeout: number): Promise<StreamConnection> {
    const place = isClosed ? null : places.takeOwn()
    if (!place) throw new TransportError(isClosed ? 'the server stops' : 'too many connections')
    const localAddress = options.localAddressFor(target)
    const socket = await openSocket({ target, localAddress, timeout, tlsClient, clock, gone: place.give }, unready)
    if (isClosed) socket.destroy()
    if (tlsClient.verify) names.add(target)
    const { protocol, serverName, client = null } = target
    return add(socket, protocol, { serverName, client })
  }

  function obtain(asked: Target, timeout: number, isKnown = false): Promise<StreamConnection> {
    const target = isKnown ? names.named(asked) : asked
    const known = table.toward(target).find((connection) => serves(connection, target))
    const near = known ?? (isKnown && isNameless(target) ? table.from(target) : undefined)
    if (near) return Promise.resolve(near)
    const key = `${peerOf(target)} ${target.serverName ?? ''} ${target.client ?? ''}`
    const running = opening.get(key)
    if (running) return running
    const fresh = open(target, timeout).finally(() => opening.delete(key))
    opening.set(key, fresh)
    return fresh
  }

  return {
    take,
    obtain,
    find: (flow) => table.find(flow.connection),
    count: table.count,
    refused: () => places.refused() + places.cut(),
    close() {
      isClosed = true
      for (const socket of unready) socket.destroy()
      for (const connection of table.all()) connection.cut('the server stops')
    },
  }
}

/** Of a connection: `place` of one that a peer opened, the others of one that we opened. */
type Origin = {
  readonly serverName: string | null | undefined
  readonly client?: string | null
  readonly place?: Place | null
}

/** Connections by number and by peer; one timer for all looks at their deadlines as long as there are any. */
function createTable(clock: Clock) {
  const connections = new Map<number, StreamConnection>()
  const byPeer = new Map<string, StreamConnection[]>()
  let stop: Cancel | null = null
  const watch = (): void => {
    stop ??= clock.after(checkInterval, () => {
      stop = null
      watch()
      for (const connection of connections.values()) connection.check()
    })
  }
  const toward = (target: Pick<Target, 'protocol' | 'remote'>): readonly StreamConnection[] =>
    byPeer.get(peerOf(target)) ?? []

  return {
    toward,
    /** Whose peer came from this address: ours to it have been asked for before. */
    from(target: Target): StreamConnection | undefined {
      const { protocol, remote } = target
      const isFrom = ({ flow }: StreamConnection): boolean =>
        flow.protocol === protocol && flow.remote.address === remote.address && shows(flow, target)
      return [...connections.values()].findLast((one) => isFrom(one) && one.isOpen())
    },
    all: (): StreamConnection[] => [...connections.values()],
    count: (): number => connections.size,
    find(connection: number): StreamConnection | null {
      const known = connections.get(connection)
      return known?.isOpen() ? known : null
    },
    add(connection: StreamConnection): StreamConnection {
      connections.set(connection.flow.connection, connection)
      byPeer.set(peerOf(connection.flow), [...toward(connection.flow), connection])
      watch()
      return connection
    },
    remove(flow: Flow): void {
      connections.delete(flow.connection)
      const left = toward(flow).filter((one) => one.flow.connection !== flow.connection)
      if (left.length > 0) byPeer.set(peerOf(flow), left)
      else byPeer.delete(peerOf(flow))
      if (connections.size > 0) return
      stop?.()
      stop = null
    },
  }
}

const peerOf = ({ protocol, remote }: Pick<Target, 'protocol' | 'remote'>): string =>
  `${protocol} ${remote.address} ${remote.port}`

/**
 * A name that must be proved has been proved by connections that were opened for it only: a peer that came by itself has proved none
 * (RFC 5923 §9).
 */
const serves = ({ serverName, isOpen, flow }: StreamConnection, target: Target): boolean =>
  isOpen() && (target.protocol === 'tcp' || (isProved(serverName, target) && shows(flow, target)))

const isProved = (serverName: string | null | undefined, target: Target): boolean =>
  target.serverName === null || target.serverName === serverName

/** One account's certificate speaks for no other; what a peer opened shows the service's, and serves whoever it called. */
const shows = (flow: Flow, { client }: Target): boolean => (flow.client ?? null) === (client ?? null)
