/** Owns the WebSockets of the uWebSockets.js driver: the decision before the upgrade, and its sockets behind the hub's rules. */
import type { HttpResponse, us_socket_context_t, WebSocket, WebSocketBehavior } from 'uWebSockets.js'
import type { ListenerOptions, SocketRoute } from '../../model/listener.ts'
import type { createRunningRequests } from './running-requests.ts'
import { sendResponse } from './send-response.ts'
import { adoptGone } from './socket-hub.ts'
import type { Accepted, RawSocket, SocketEvents, SocketHub } from './socket-hub.ts'
import { headerOf, isHandshake, toRequest } from './to-request.ts'
import type { RequestHead } from './to-request.ts'
import type { UwsConnections } from './uws-connections.ts'
import { headOf, infoOf } from './uws-request.ts'
import type { RunningPlace } from './uws-places.ts'
import { uwsWire } from './uws-wire.ts'

type Attached = {
  readonly accepted: Accepted
  readonly place: RunningPlace
  events: SocketEvents | null
  gone: boolean
}

type Deps = {
  readonly options: ListenerOptions
  readonly hub: SocketHub
  readonly running: ReturnType<typeof createRunningRequests>
  /** The way of a request that asks for no upgrade we know. */
  readonly serve: (res: HttpResponse, head: RequestHead) => void
  readonly connections: UwsConnections
}

/** The library cuts a frame over its own limit without a close frame. Ours is lower and has one; past this many times ours, it is cut. */
const hardLimit = 4

export const uwsSocketsOf = (deps: Deps): [string, WebSocketBehavior<Attached>][] =>
  Object.entries(deps.options.sockets).map(([path, route]) => [path, behaviorOf(route, deps)])

function behaviorOf(
  route: SocketRoute,
  { options, hub, running, serve, connections }: Deps,
): WebSocketBehavior<Attached> {
  return {
    // Ours are the hub's: limits, pings and idle sockets.
    maxPayloadLength: route.maxFrameBytes * hardLimit,
    maxBackpressure: 0,
    idleTimeout: 0,
    sendPingsAutomatically: false,
    upgrade(res, req, context) {
      const head = headOf(req, options)
      if (!isHandshake(head)) return serve(res, head)
      running.track(upgrade(route, res, { head, context, connections })).catch(() => res.close())
    },
    open(ws) {
      const attached = ws.getUserData()
      attached.events = hub.adopt(rawOf(ws, attached), route, attached.accepted)
    },
    message(ws, message, isBinary) {
      const { events } = ws.getUserData()
      if (message.byteLength > route.maxFrameBytes) events?.oversized()
      else if (isBinary) events?.binary()
      else events?.text(Buffer.from(message).toString())
    },
    pong: (ws) => ws.getUserData().events?.pong(),
    close(ws, code, message) {
      const attached = ws.getUserData()
      attached.gone = true
      connections.socketClosed()
      attached.place.over(false)
      const oversized = code === 1006 && Buffer.from(message).toString().startsWith('Received too big message')
      attached.events?.gone(oversized ? 1009 : code)
    },
  }
}

type Asked = {
  readonly head: RequestHead
  readonly context: us_socket_context_t
  readonly connections: UwsConnections
}

/** Everything of `res` that must happen in this turn happens before the first await. */
async function upgrade(route: SocketRoute, res: HttpResponse, { head, context, connections }: Asked): Promise<void> {
  const info = infoOf(res)
  const place = connections.ask(info.remoteAddress)
  const wire = uwsWire(res, () => true, connections.told)
  wire.closed.addEventListener('abort', place.gone, { once: true })
  const request = toRequest(head, null, wire.closed)
  if (!request) {
    wire.whole({ status: 400, headers: [], length: 0 }, null)
    return place.over(false)
  }
  const decision = await route.upgrade(request, info)
  if (!decision.accept) return sendResponse(decision.response, wire, false).finally(() => place.over(false))
  if (wire.closed.aborted) return adoptGone(decision)
  wire.release()
  const key = headerOf(head, 'sec-websocket-key') ?? ''
  // Of the subprotocols a client offers the first is taken, as ws does.
  const protocol = headerOf(head, 'sec-websocket-protocol')?.split(',', 1)[0]?.trim() ?? ''
  const attached: Attached = { accepted: decision, place, events: null, gone: false }
  res.cork(() => res.upgrade(attached, key, protocol, '', context))
}

/** A socket that is gone may not be touched. */
function rawOf(ws: WebSocket<Attached>, attached: Attached): RawSocket {
  const touch = (action: () => void): void => {
    if (!attached.gone) ws.cork(action)
  }
  return {
    send: (text) => touch(() => ws.send(text)),
    bufferedBytes: () => (attached.gone ? 0 : ws.getBufferedAmount()),
    ping: () => touch(() => ws.ping()),
    close: (code, reason) => touch(() => ws.end(code, reason)),
    cut: () => touch(() => ws.close()),
  }
}
