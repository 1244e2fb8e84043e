/** Owns the listener's driver over uWebSockets.js, which the operator installs: its binary needs glibc 2.38 or newer. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { HttpResponse, TemplatedApp, us_listen_socket } from 'uWebSockets.js'
import type { Listener, ListenerOptions, RequestInfo } from '../../model/listener.ts'
import { createByteBudget, type ByteBudget } from '../../net/byte-budget.ts'
import type { Limits } from './limits.ts'
import { createRunningRequests } from './running-requests.ts'
import { sendResponse } from './send-response.ts'
import { createSocketHub } from './socket-hub.ts'
import { headerOf, maxBodyBytesOf, toRequest } from './to-request.ts'
import type { RequestHead } from './to-request.ts'
import { takeUwsBody } from './uws-body.ts'
import { boundConnections, type UwsConnections } from './uws-connections.ts'
import { announcedOf, headOf, infoOf } from './uws-request.ts'
import { uwsSocketsOf } from './uws-sockets.ts'
import { uwsWire } from './uws-wire.ts'

/** What node takes. */
const maxHeaderSize = 16 * 1024

export type Uws = typeof import('uWebSockets.js')

/** Sets a variable of the process, unless somebody has. */
export type PresetVariable = (name: string, value: string) => void

/** Throws where the package or its binary for this machine is missing. */
export function loadUws(presetVariable: PresetVariable): Promise<Uws> {
  // The library looks at it when it is loaded. By itself it takes a quarter of what node takes.
  presetVariable('UWS_HTTP_MAX_HEADERS_SIZE', String(maxHeaderSize))
  return import('uWebSockets.js')
}

export async function listenOnUws(uws: Uws, options: ListenerOptions, limits: Limits): Promise<Listener> {
  const app = createApp(uws, options.tls)
  const running = createRunningRequests(options.clock)
  const hub = createSocketHub(limits.pingInterval)
  let closing: Promise<void> | null = null

  const connections = boundConnections(app, limits)
  const budget = createByteBudget({ ...limits, maxBytes: limits.maxBodyBytesInFlight })
  const seen = { options, budget, connections, closing: () => closing !== null }

  function serve(res: HttpResponse, head: RequestHead): void {
    running.track(answer(seen, res, head)).catch(() => res.close())
  }
  const sockets = uwsSocketsOf({ options, hub, running, serve, connections })
  for (const [route, behavior] of sockets) app.ws(route, behavior)
  app.any('/*', (res, req) => serve(res, headOf(req, options)))

  const socket = await bound(app, options)
  async function shut(graceMs: number): Promise<void> {
    uws.us_listen_socket_close(socket)
    await running.idle(graceMs)
    hub.closeAll(1001, 'going away')
    hub.close()
    app.close()
  }
  return {
    driver: 'uws',
    port: uws.us_socket_local_port(socket),
    close: (graceMs) => (closing ??= shut(graceMs)),
  }
}

/** The library reads certificates from files only, and only now; they exist for this moment, for this user. */
function createApp(uws: Uws, tls: ListenerOptions['tls']): TemplatedApp {
  if (!tls) return uws.App()
  const folder = mkdtempSync(path.join(tmpdir(), 'parley-tls-'))
  try {
    const [cert, key] = [path.join(folder, 'cert.pem'), path.join(folder, 'key.pem')]
    writeFileSync(cert, tls.cert, { mode: 0o600 })
    writeFileSync(key, tls.key, { mode: 0o600 })
    return uws.SSLApp({ cert_file_name: cert, key_file_name: key })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** LIBUS_LISTEN_EXCLUSIVE_PORT. By default a second process could take the same port and half of the connections. */
const exclusivePort = 1

type Listened = (socket: us_listen_socket | false) => void

/** The declarations miss the form with host, port and options. */
const listenOn = (app: TemplatedApp) =>
  app.listen.bind(app) as unknown as (host: string, port: number, options: number, listened: Listened) => void

function bound(app: TemplatedApp, { host, port }: ListenerOptions): Promise<us_listen_socket> {
  return new Promise((resolve, reject) => {
    const listened: Listened = (socket) => {
      if (socket) resolve(socket)
      else reject(new Error(`cannot listen on ${host}:${port}`))
    }
    listenOn(app)(host, port, exclusivePort, listened)
  })
}

type Seen = {
  readonly options: ListenerOptions
  readonly budget: ByteBudget
  readonly connections: UwsConnections
  readonly closing: () => boolean
}

/** Everything of `res` that must happen in this turn happens before the first await. */
async function answer(
  { options, budget, connections, closing }: Seen,
  res: HttpResponse,
  head: RequestHead,
): Promise<void> {
  const info = infoOf(res)
  let isLast = headerOf(head, 'connection')?.toLowerCase() === 'close'
  const announced = announcedOf(head)
  if (!announced) return void res.close()
  const place = connections.ask(info.remoteAddress)
  const last = (): boolean => (isLast ||= closing() || place.isCrowded())
  const wire = uwsWire(res, last, connections.told)
  wire.closed.addEventListener('abort', place.gone, { once: true })
  const share = budget.open(info.remoteAddress)
  const maxBodyBytes = maxBodyBytesOf(options, head)
  const body = takeUwsBody(res, announced, { ...options, maxBodyBytes, closed: wire.closed, share })
  const request = toRequest(head, body && body.read, wire.closed)
  isLast ||= !request
  try {
    const response = request
      ? await asked({ ...options, maxBodyBytes }, request, { info, declared: announced.declared })
      : bad()
    if (body && !body.isWhole()) {
      isLast = true
      await body.discard(options.clock)
    }
    body?.release()
    await sendResponse(response, wire, head.method === 'HEAD')
  } finally {
    place.over(!isLast)
  }
}

const bad = (): Response => new Response(null, { status: 400 })

type Announcement = { readonly info: RequestInfo; readonly declared: number }

/** 500 without a word when the application breaks its promise never to throw. */
async function asked(options: ListenerOptions, request: Request, { info, declared }: Announcement): Promise<Response> {
  if (declared > options.maxBodyBytes) return options.tooLarge(request, info)
  return options.fetch(request, info).catch(() => new Response(null, { status: 500 }))
}
