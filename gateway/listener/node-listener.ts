/** Owns the listener's driver over node:http and ws. X-Forwarded-For is not read: the peer is who connected. */
import http from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Listener, ListenerOptions, RequestInfo } from '../../model/listener.ts'
import { peerAddressOf } from '../../net/addresses.ts'
import { createByteBudget, type ByteBudget } from '../../net/byte-budget.ts'
import { createConnectionPlaces, type Place } from '../../net/connection-places.ts'
import type { Limits } from './limits.ts'
import { declaredLength, hasBody, isWhole, lingerFor, readNodeBody } from './node-body.ts'
import { createNodePlaces } from './node-places.ts'
import { createNodeUpgrades } from './node-upgrades.ts'
import { nodeWire } from './node-wire.ts'
import { createRunningRequests } from './running-requests.ts'
import { sendResponse } from './send-response.ts'
import { isHandshake, maxBodyBytesOf, pathOf, toRequest } from './to-request.ts'
import type { RequestHead } from './to-request.ts'

/** Longer than a proxy in front keeps its connections, so that it is the proxy who lets go. */
const keepAliveTimeout = 75_000

export async function listenOnNode(options: ListenerOptions, limits: Limits): Promise<Listener> {
  const server = createServer(options, limits)
  const places = createConnectionPlaces(limits)
  const placeOf = createNodePlaces(server, places).of
  const budget = createByteBudget({ ...limits, maxBytes: limits.maxBodyBytesInFlight })
  const running = createRunningRequests(options.clock)
  const upgrades = createNodeUpgrades(options, limits)
  let closing: Promise<void> | null = null
  const seen = { options, limits, budget, closing: () => closing !== null }

  function onRequest(incoming: http.IncomingMessage, outgoing: http.ServerResponse, awaitsContinue: boolean): void {
    const place = placeOf(incoming.socket)
    place?.begin()
    outgoing.once('close', () => place?.rest())
    running.track(answer(seen, { incoming, outgoing, awaitsContinue }, place)).catch(() => incoming.destroy())
  }
  server.on('request', (incoming, outgoing) => onRequest(incoming, outgoing, false))
  server.on('checkContinue', (incoming, outgoing) => onRequest(incoming, outgoing, true))
  server.on('upgrade', (incoming: http.IncomingMessage, socket: Duplex, early: Buffer) => {
    const place = placeOf(incoming.socket)
    // A WebSocket has something to do as long as it is there.
    place?.begin()
    const asked = { head: headOf(incoming, options), info: infoOf(incoming, place) }
    running.track(upgrades.upgrade(asked, incoming, socket, early)).catch(() => socket.destroy())
  })

  async function shut(graceMs: number): Promise<void> {
    const ended = new Promise((resolve) => server.close(resolve))
    await running.idle(graceMs)
    await upgrades.close()
    server.closeAllConnections()
    await ended
  }

  await bound(server, options)
  const { port } = server.address() as AddressInfo
  return { driver: 'node', port, close: (graceMs) => (closing ??= shut(graceMs)) }
}

function createServer(options: ListenerOptions, { headerTimeout }: Limits): http.Server {
  const { requestTimeout } = options
  const headersTimeout = Math.min(headerTimeout, requestTimeout)
  const settings: http.ServerOptions = {
    requestTimeout,
    headersTimeout,
    // How late a request that took too long is found.
    connectionsCheckingInterval: Math.min(5_000, Math.ceil(headersTimeout / 4)),
    keepAliveTimeout,
    // Everything else that asks for an upgrade is answered as if it had not (RFC 9110 §7.8).
    shouldUpgradeCallback: (incoming) =>
      Object.hasOwn(options.sockets, pathOf(incoming.url ?? '')) && isHandshake(headOf(incoming, options)),
  }
  return options.tls
    ? https.createServer({ ...settings, ...options.tls, handshakeTimeout: headersTimeout })
    : http.createServer(settings)
}

function bound(server: http.Server, { host, port }: ListenerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

type Seen = {
  readonly options: ListenerOptions
  readonly limits: Limits
  readonly budget: ByteBudget
  readonly closing: () => boolean
}
type Arrived = {
  readonly incoming: http.IncomingMessage
  readonly outgoing: http.ServerResponse
  readonly awaitsContinue: boolean
}

async function answer(seen: Seen, arrived: Arrived, place: Place | undefined): Promise<void> {
  const { options, limits, budget, closing } = seen
  const { incoming, outgoing } = arrived
  const head = headOf(incoming, options)
  const info = infoOf(incoming, place)
  const hasOne = hasBody(incoming)
  // Nobody waits for the rest of a body that nobody wants: the connection ends with the answer.
  const isUnread = (): boolean => hasOne && !isWhole(incoming)
  const wire = nodeWire(outgoing, {
    last: () => closing() || isUnread(),
    beforeEnd: () => (isUnread() ? lingerFor(incoming, options.clock) : null),
    writeTimeout: limits.writeTimeout,
  })
  const share = hasOne ? budget.open(info.remoteAddress) : null
  const maxBytes = maxBodyBytesOf(options, head)
  const request = toRequest(head, share && (() => readNodeBody(arrived, maxBytes, share)), wire.closed)
  if (!request) return refuse(outgoing, 400)
  const response =
    declaredLength(incoming) > maxBytes
      ? options.tooLarge(request, info)
      : await options.fetch(request, info).catch(() => null)
  share?.release()
  if (!response) return refuse(outgoing, 500)
  await sendResponse(response, wire, head.method === 'HEAD')
}

/** Without a body: the application could not be asked, or threw against its contract. */
function refuse(outgoing: http.ServerResponse, status: number): void {
  outgoing.shouldKeepAlive = false
  outgoing.writeHead(status, { 'content-length': 0 }).end()
}

function headOf(incoming: http.IncomingMessage, { tls }: ListenerOptions): RequestHead {
  const raw = incoming.rawHeaders
  const headers: [string, string][] = []
  for (let index = 0; index < raw.length; index += 2) headers.push([raw[index] ?? '', raw[index + 1] ?? ''])
  return { method: incoming.method ?? '', target: incoming.url ?? '', secure: tls !== null, headers }
}

function infoOf(incoming: http.IncomingMessage, place: Place | undefined): RequestInfo {
  const remoteAddress = peerAddressOf(incoming.socket.remoteAddress ?? '')
  return place ? { remoteAddress, proved: place.prove } : { remoteAddress }
}
