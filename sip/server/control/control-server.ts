/**
 * Owns the socket that apps connect to: loopback only. A connection must prove the secret before anything else is read of it, and within a
 * time; a client that speaks something else, or does not read, is cut.
 */
import { once } from 'node:events'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import type { App } from './app.ts'
import { createControlConnection, type ControlConnection, type ControlDeps } from './control-connection.ts'
import { createRoutes } from './routes.ts'

export type ControlServer = {
  readonly port: number
  /** The app whose turn it is for a new request. */
  appFor(method: string): App | null
  /** Methods that some app wants. */
  methods(): string[]
  /** Connections that proved the secret. */
  apps(): number
  /** Idempotent. */
  close(): Promise<void>
}

export async function createControlServer(deps: ControlDeps): Promise<ControlServer> {
  const connections = new Set<ControlConnection>()
  const routes = createRoutes<App>()
  const server = createServer({ noDelay: true }, accept)
  let closing: Promise<void> | null = null

  function accept(socket: Socket): void {
    if (closing || connections.size >= deps.limits.connections) return void socket.destroy()
    const connection = createControlConnection(deps, socket, {
      route: (verb) => routes.add(verb, connection.app),
      removeRoute: (verb) => routes.remove(verb, connection.app),
      closed: () => leave(connection),
    })
    connections.add(connection)
  }

  function leave(connection: ControlConnection): void {
    connections.delete(connection)
    routes.leave(connection.app)
    if (!connection.isProved()) return
    deps.log.info('SIP app disconnected')
    deps.gone(connection.app)
  }

  server.listen(0, deps.host)
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    appFor: (method) => routes.next(method),
    methods: routes.methods,
    apps: () => [...connections].filter((connection) => connection.isProved()).length,
    close: () => (closing ??= closeAll(server, connections)),
  }
}

async function closeAll(server: Server, connections: ReadonlySet<ControlConnection>): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  connections.forEach((connection) => connection.close())
  await closed
}
