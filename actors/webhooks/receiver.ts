/**
 * Owns a receiver of webhooks as a customer would write one: on loopback, it checks the signature of the raw body before anything
 * else and answers 401 when it is wrong. The self-test of the service and the tests listen with it.
 */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { toSigningKey, verifySignature } from './sign.ts'

export type ReceivedDelivery = {
  readonly path: string
  /** As it came, `call.ended` for one. */
  readonly type: string
  readonly eventId: string
  readonly attempt: number
  readonly headers: IncomingHttpHeaders
  /** The raw body. */
  readonly body: string
  readonly data: unknown
}

export type WebhookReceiver = {
  /** `http://127.0.0.1:<port>`; any path below it is received. */
  readonly url: string
  /** How many came with a good signature, and how many without. */
  counts(): { readonly verified: number; readonly refused: number }
  /** Idempotent. */
  close(): Promise<void>
}

const maxBodyBytes = 1024 * 1024

/** `secretOf` names the secret of a path; null refuses. `answer` is given what was verified and ends the response. */
export async function openWebhookReceiver(deps: {
  secretOf: (path: string) => string | null
  answer: (delivery: ReceivedDelivery, response: ServerResponse) => void
}): Promise<WebhookReceiver> {
  let verified = 0
  let refused = 0

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request)
    const delivery = body && verify(request, body, deps.secretOf(request.url ?? '/'))
    if (!delivery) {
      refused += 1
      response.writeHead(401).end()
      return
    }
    verified += 1
    deps.answer(delivery, response)
  }

  const server = createServer((request, response) => {
    // The sender went away in the middle: there is nobody to answer.
    receive(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  let closed: Promise<void> | null = null
  const end = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    counts: () => ({ verified, refused }),
    close: () => (closed ??= end()),
  }
}

async function readBody(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > maxBodyBytes) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function verify(request: IncomingMessage, body: Buffer, secret: string | null): ReceivedDelivery | null {
  const header = (name: string): string => String(request.headers[name] ?? '')
  if (secret === null || !verifySignature(toSigningKey(secret), body, header('x-service-signature'))) return null
  const text = body.toString('utf8')
  const { type, data } = JSON.parse(text) as { type: string; data: unknown }
  return {
    path: request.url ?? '/',
    type,
    eventId: header('x-service-event-id'),
    attempt: Number(header('x-service-attempt')),
    headers: request.headers,
    body: text,
    data,
  }
}
