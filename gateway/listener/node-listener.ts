/** Owns the listener's driver over node:http and ws. X-Forwarded-For is not read: the peer is who connected. */
import http from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { deadline, goOn } from '../../model/deadline.ts'
import type { Listener, ListenerOptions, RequestInfo } from '../../model/listener.ts'
import { peerAddressOf } from '../../net/addresses.ts'
import { lingerTimeout, type Limits } from './limits.ts'
import { createNodeUpgrades } from './node-upgrades.ts'
import { nodeWire } from './node-wire.ts'
import { readBody } from './read-body.ts'
import { createRunningRequests } from './running-requests.ts'
import { sendResponse } from './send-response.ts'
import { isHandshake, pathOf, toRequest } from './to-request.ts'
import type { RequestHead } from './to-request.ts'

/** Longer than a proxy in front keeps its connections, so that it is the proxy who lets go. */
const keepAliveTimeout = 75_000

export async function listenOnNode(options: ListenerOptions, limits: Limits): Promise<Listener> {
  const server = createServer(options)
  server.maxConnections = limits.maxConnections
  const running = createRunningRequests(options.clock)
  const upgrades = createNodeUpgrades(options, limits.pingInterval)
  let closing: Promise<void> | null = null

  const onRequest = (incoming: http.IncomingMessage, outgoing: http.ServerResponse): void => {
    running.track(answer(options, incoming, outgoing, () => closing !== null)).catch(() => incoming.destroy())
  }
  server.on('request', onRequest)
  server.on('checkContinue', (incoming, outgoing) => {
    if (declaredLength(incoming) <= options.maxBodyBytes) outgoing.writeContinue()
    onRequest(incoming, outgoing)
  })
  server.on('upgrade', (incoming: http.IncomingMessage, socket: Duplex, early: Buffer) => {
    const seen = { head: headOf(incoming, options), info: infoOf(incoming) }
    running.track(upgrades.upgrade(seen, incoming, socket, early)).catch(() => socket.destroy())
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

function createServer(options: ListenerOptions): http.Server {
  const settings: http.ServerOptions = {
    requestTimeout: options.requestTimeout,
    headersTimeout: options.requestTimeout,
    // How late a request that took too long is found.
    connectionsCheckingInterval: Math.min(5_000, Math.ceil(options.requestTimeout / 4)),
    keepAliveTimeout,
    // Everything else that asks for an upgrade is answered as if it had not (RFC 9110 §7.8).
    shouldUpgradeCallback: (incoming) =>
      Object.hasOwn(options.sockets, pathOf(incoming.url ?? '')) && isHandshake(headOf(incoming, options)),
  }
  return options.tls
    ? https.createServer({ ...settings, ...options.tls, handshakeTimeout: options.requestTimeout })
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

async function answer(
  options: ListenerOptions,
  incoming: http.IncomingMessage,
  outgoing: http.ServerResponse,
  closing: () => boolean,
): Promise<void> {
  const head = headOf(incoming, options)
  const wire = nodeWire(outgoing, closing)
  const body = await readBody(incoming, declaredLength(incoming), options.maxBodyBytes)
  if (body === 'gone') return
  const request = toRequest(head, body === 'too_large' ? null : body, wire.closed)
  if (!request) return refuse(outgoing, 400)
  if (body === 'too_large') return refuseBody(options, request, incoming, outgoing)
  const response = await options.fetch(request, infoOf(incoming)).catch(() => null)
  if (!response) return refuse(outgoing, 500)
  await sendResponse(response, wire, head.method === 'HEAD')
}

/** Without a body: the application could not be asked, or threw against its contract. */
function refuse(outgoing: http.ServerResponse, status: number): void {
  outgoing.shouldKeepAlive = false
  outgoing.writeHead(status, { 'content-length': 0 }).end()
}

/** The answer goes out at once; the connection ends when the client has stopped sending, or has been given time to notice. */
async function refuseBody(
  options: ListenerOptions,
  request: Request,
  incoming: http.IncomingMessage,
  outgoing: http.ServerResponse,
): Promise<void> {
  const response = options.tooLarge(request, infoOf(incoming))
  const body = await response.bytes()
  const wire = nodeWire(outgoing, () => true)
  const headers = [...response.headers].filter(([name]) => name !== 'content-length')
  wire.start({ status: response.status, headers, length: body.length })
  void wire.write(body)
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  incoming.once('end', resolve).once('close', resolve).resume()
  await deadline(options.clock, lingerTimeout, ended, goOn)
  wire.end()
}

function headOf(incoming: http.IncomingMessage, { tls }: ListenerOptions): RequestHead {
  const raw = incoming.rawHeaders
  const headers: [string, string][] = []
  for (let index = 0; index < raw.length; index += 2) headers.push([raw[index] ?? '', raw[index + 1] ?? ''])
  return { method: incoming.method ?? '', target: incoming.url ?? '', secure: tls !== null, headers }
}

const infoOf = (incoming: http.IncomingMessage): RequestInfo => ({
  remoteAddress: peerAddressOf(incoming.socket.remoteAddress ?? ''),
})

const declaredLength = (incoming: http.IncomingMessage): number => Number(incoming.headers['content-length'] ?? 0)
