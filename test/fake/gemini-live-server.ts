/**
 * Owns a server that behaves as the Gemini Live API is documented to, on a real socket. What its model says, the test says; how it listens, takes
 * turns, breaks off, resumes and refuses is its own.
 */
import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { LiveClientMessage } from '@google/genai'
import { WebSocketServer } from 'ws'
import type { GeminiOptions, SavedSession } from './gemini-live-options.ts'
import { createGeminiSession, type GeminiFakeSession } from './gemini-live-session.ts'

export type GeminiServer = {
  /** Without the path. */
  readonly url: string
  readonly key: string
  readonly sessions: readonly GeminiFakeSession[]
  /** All that clients have sent, of one kind. */
  received<Kind extends keyof LiveClientMessage>(kind: Kind): NonNullable<LiveClientMessage[Kind]>[]
  close(): Promise<void>
}

const method = /^\/+ws\/google\.ai\.generativelanguage\.(v1|v1beta|v1alpha)\.GenerativeService\.BidiGenerateContent$/

export async function openGeminiServer(options: GeminiOptions): Promise<GeminiServer> {
  const key = `AIza${randomBytes(16).toString('hex')}`
  const http = createServer()
  const sockets = new WebSocketServer({ noServer: true, maxPayload: 16 * 1024 * 1024 })
  const saved = new Map<string, SavedSession>()
  const sessions: GeminiFakeSession[] = []
  http.on('upgrade', (request, socket, head) => {
    const { status, given } = admit(request)
    if (status !== null) return socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
    sockets.handleUpgrade(request, socket, head, (client) => {
      // The real one tells so after the upgrade.
      if (given !== key) return client.close(1007, 'API key not valid. Please pass a valid API key.')
      sessions.push(createGeminiSession(client, options, saved))
    })
  })
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const { port } = http.address() as AddressInfo
  return {
    url: `ws://127.0.0.1:${port}`,
    key,
    sessions,
    received: (kind) => sessions.flatMap(({ received }) => received.flatMap((message) => message[kind] ?? [])) as never,
    async close() {
      for (const client of sockets.clients) client.terminate()
      await new Promise((resolve) => http.close(resolve))
    },
  }
}

function admit({ url, headers }: IncomingMessage): { readonly status: string | null; readonly given: string | null } {
  const [path = '', query = ''] = (url ?? '').split('?')
  const given = new URLSearchParams(query).get('key') ?? headers['x-goog-api-key']?.toString() ?? null
  if (!method.test(path)) return { status: '404 Not Found', given }
  return { status: given === null ? '403 Forbidden' : null, given }
}
