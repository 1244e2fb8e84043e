/** Owns the WebSockets of the node driver: the decision before the upgrade, and ws behind the hub's rules. */
import http from 'node:http'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import type { WebSocket } from 'ws'
import { deadline, goOn } from '../../model/deadline.ts'
import type { ListenerOptions, RequestInfo, SocketRoute } from '../../model/listener.ts'
import type { Limits } from './limits.ts'
import { nodeWire } from './node-wire.ts'
import { sendResponse } from './send-response.ts'
import { adoptGone, createSocketHub } from './socket-hub.ts'
import type { Accepted, RawSocket, SocketHub } from './socket-hub.ts'
import { pathOf, toRequest } from './to-request.ts'
import type { RequestHead } from './to-request.ts'

/** How long the other side may take to answer a close frame. */
const closeTimeout = 2_000

type Seen = { readonly head: RequestHead; readonly info: RequestInfo }

export function createNodeUpgrades(options: ListenerOptions, { pingInterval, writeTimeout }: Limits) {
  const hub = createSocketHub(pingInterval)
  const servers = new Map(Object.entries(options.sockets).map(([path, route]) => [path, serverOf(route)]))
  const open = new Set<Duplex>()
  let whenEmpty: (() => void) | null = null

  function keep(socket: Duplex): void {
    open.add(socket)
    // A client that resets its connection is gone, and `close` says so.
    socket.on('error', () => socket.destroy())
    socket.once('close', () => {
      open.delete(socket)
      if (open.size === 0) whenEmpty?.()
    })
  }

  async function upgrade(seen: Seen, incoming: IncomingMessage, socket: Duplex, early: Buffer): Promise<void> {
    keep(socket)
    const path = pathOf(seen.head.target)
    const [route, server] = [options.sockets[path], servers.get(path)]
    const gone = new AbortController()
    socket.once('close', () => gone.abort())
    const request = toRequest(seen.head, null, gone.signal)
    if (!request || !route || !server)
      return refuse(incoming, socket, new Response(null, { status: 400 }), writeTimeout)
    const decision = await route.upgrade(request, seen.info)
    if (!decision.accept) return refuse(incoming, socket, decision.response, writeTimeout)
    if (socket.destroyed || !socket.writable) return adoptGone(decision)
    server.handleUpgrade(incoming, socket, early, (webSocket) => attach(webSocket, hub, route, decision))
  }

  /** Close frames first; who does not answer them in time is cut. */
  async function close(): Promise<void> {
    hub.closeAll(1001, 'going away')
    hub.close()
    if (open.size > 0) {
      const { promise, resolve } = Promise.withResolvers<void>()
      whenEmpty = resolve
      await deadline(options.clock, closeTimeout / 2, promise, goOn)
    }
    for (const socket of open) socket.destroy()
  }

  return { upgrade, close }
}

function serverOf(route: SocketRoute): WebSocketServer {
  const settings = {
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: route.maxFrameBytes,
    closeTimeout,
  }
  return new WebSocketServer(settings)
}

/** Node has already let go of the connection, so this answer is its last one. */
function refuse(incoming: IncomingMessage, socket: Duplex, response: Response, writeTimeout: number): Promise<void> {
  const outgoing = new http.ServerResponse(incoming)
  outgoing.assignSocket(socket as never)
  outgoing.once('finish', () => socket.end(() => socket.destroy()))
  return sendResponse(response, nodeWire(outgoing, { last: () => true, beforeEnd: () => null, writeTimeout }), false)
}

function attach(webSocket: WebSocket, hub: SocketHub, route: SocketRoute, accepted: Accepted): void {
  const raw: RawSocket = {
    send: (text) => webSocket.send(text),
    bufferedBytes: () => webSocket.bufferedAmount,
    ping: () => webSocket.ping(),
    close: (code, reason) => webSocket.close(code, reason),
    cut: () => webSocket.terminate(),
  }
  const events = hub.adopt(raw, route, accepted)
  webSocket.on('message', (message: Buffer, isBinary) => (isBinary ? events.binary() : events.text(message.toString())))
  webSocket.on('pong', () => events.pong())
  // ws sends the close frame for these itself.
  webSocket.on('error', (error) => events.gone(codeOf(error)))
  webSocket.on('close', (code) => events.gone(code))
}

/** RFC 6455 §7.4.1 for what ws calls a broken frame. */
function codeOf(error: Error): number {
  const name = 'code' in error ? String(error.code) : ''
  if (name === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH') return 1009
  if (name === 'WS_ERR_INVALID_UTF8') return 1007
  return name.startsWith('WS_ERR_') ? 1002 : 1006
}
