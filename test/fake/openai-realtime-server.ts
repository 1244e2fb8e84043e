/**
 * Owns a server that behaves as OpenAI Realtime (GA) is documented to, on a real socket. What its model says, the test says; how it listens,
 * takes turns, refuses and breaks off is its own.
 */
import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { RealtimeClientEvent } from 'openai/resources/realtime/realtime'
import { WebSocketServer, type WebSocket } from 'ws'
import type { RealtimeOptions } from './openai-realtime-options.ts'
import { createRealtimeSession, type RealtimeFakeSession } from './openai-realtime-session.ts'
import { fakeTls } from '../scenes/tls.ts'

export type RealtimeServer = {
  readonly url: string
  readonly key: string
  readonly sessions: readonly RealtimeFakeSession[]
  /** All that clients have sent, of one type. */
  events<Type extends RealtimeClientEvent['type']>(type: Type): Extract<RealtimeClientEvent, { type: Type }>[]
  /** Codes of the errors that were answered. */
  errors(): readonly string[]
  close(): Promise<void>
}

export async function openRealtimeServer(options: RealtimeOptions): Promise<RealtimeServer> {
  const key = `sk-${randomBytes(12).toString('hex')}`
  const http = options.tls ? createTlsServer(fakeTls) : createServer()
  const sockets = new WebSocketServer({ noServer: true, maxPayload: 16 * 1024 * 1024 })
  const sessions: RealtimeFakeSession[] = []
  http.on('upgrade', (request, socket, head) => {
    const status = statusOf(request, key)
    if (status !== null) return socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
    const inOnePacket = (write: () => void): void => {
      socket.cork()
      write()
      socket.uncork()
    }
    const begin = (client: WebSocket): void => void sessions.push(createRealtimeSession(client, options, inOnePacket))
    // The answer to the upgrade and the first event come together.
    inOnePacket(() => sockets.handleUpgrade(request, socket, head, begin))
  })
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const { port } = http.address() as AddressInfo
  return {
    url: `${options.tls ? 'wss' : 'ws'}://127.0.0.1:${port}/v1/realtime`,
    key,
    sessions,
    events: (type) => sessions.flatMap(({ received }) => received.filter((event) => event.type === type) as never[]),
    errors: () => sessions.flatMap((session) => session.errors),
    async close() {
      for (const client of sockets.clients) client.terminate()
      await new Promise((resolve) => http.close(resolve))
    },
  }
}

function statusOf({ url, headers }: IncomingMessage, key: string): string | null {
  const { pathname, searchParams } = new URL(url ?? '/', 'http://localhost')
  if (pathname !== '/v1/realtime') return '404 Not Found'
  if (headers.authorization !== `Bearer ${key}`) return '401 Unauthorized'
  return searchParams.get('model') ? null : '400 Bad Request'
}
