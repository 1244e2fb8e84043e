/**
 * Owns a receiver of webhooks as a customer would write one: it checks the signature of the raw body before anything else and answers
 * 401 when it is wrong. The self-test of the service, `npm run admin -- webhook listen` and the tests listen with it.
 */
import { timingSafeEqual, type KeyObject } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { standardSignatureOf, toSigningKey, verifySignature } from '../../actors/webhooks/sign.ts'

/** A request whose body is here and not yet trusted. */
export type IncomingDelivery = {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** The raw bytes: what is signed. */
  readonly body: Buffer
}

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

/** `secretOf` names the secret of a path; null refuses. `refusalOf` decides instead: why a delivery is refused, null takes it. */
type Trust =
  | { readonly secretOf: (path: string) => string | null }
  | { readonly refusalOf: (incoming: IncomingDelivery) => string | null }

type Deps = Trust & {
  /** Is given what was verified, and ends the response. */
  readonly answer: (delivery: ReceivedDelivery, response: ServerResponse) => void
  /** Is told what was answered with 401, or with 400 and 413 for a body that is no delivery at all. */
  readonly refused?: (incoming: IncomingDelivery, reason: string, status: number) => void
  /** Loopback, unless told otherwise. */
  readonly host?: string
  /** 0, as without it, takes a free one. */
  readonly port?: number
  readonly maxBodyBytes?: number
  /** With the largest body, this bounds what is in memory at once. Unbounded without it: for senders that are known. */
  readonly maxConnections?: number
}

const defaultMaxBodyBytes = 1024 * 1024
/** How far `webhook-timestamp` may be off: what the libraries of Standard Webhooks allow. */
const timestampTolerance = 300_000

export async function openWebhookReceiver(deps: Deps): Promise<WebhookReceiver> {
  const { host = '127.0.0.1', port = 0, maxBodyBytes = defaultMaxBodyBytes } = deps
  const refusalOf = refusalBy(deps)
  let verified = 0
  let refused = 0

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request, maxBodyBytes)
    const incoming = { path: request.url ?? '/', headers: request.headers, body: body ?? Buffer.alloc(0) }
    if (!body) return refuse(incoming, 413, `the body is over ${maxBodyBytes} bytes`)
    const refusal = refusalOf(incoming)
    if (refusal !== null) return refuse(incoming, 401, refusal)
    const delivery = toDelivery(incoming)
    if (!delivery) return refuse(incoming, 400, 'the body is no JSON object')
    verified += 1
    deps.answer(delivery, response)

    function refuse(what: IncomingDelivery, status: number, reason: string): void {
      refused += 1
      // The rest of a body that is too long is not read, so the connection is of no use any more.
      response.writeHead(status, status === 413 ? { connection: 'close' } : {}).end()
      deps.refused?.(what, reason, status)
    }
  }

  const server = createServer((request, response) => {
    // The sender went away in the middle: there is nobody to answer.
    receive(request, response).catch(() => response.destroy())
  })
  if (deps.maxConnections !== undefined) server.maxConnections = deps.maxConnections
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  let closed: Promise<void> | null = null
  const end = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  return {
    url: urlOf(server.address() as AddressInfo),
    counts: () => ({ verified, refused }),
    close: () => (closed ??= end()),
  }
}

/**
 * Why this is no delivery of who holds the key; null when it is one. Both signatures must be right: the hex one over the body alone tells
 * nothing of its age, the one of Standard Webhooks covers id and time, so that what was recorded cannot be played again later.
 */
export function refusalOfDelivery({ headers, body }: IncomingDelivery, key: KeyObject, now: number): string | null {
  const missing = ['x-service-signature', 'webhook-id', 'webhook-timestamp', 'webhook-signature'].find(
    (name) => headerOf(headers, name) === '',
  )
  if (missing !== undefined) return `${missing} is missing`
  if (!verifySignature(key, body, headerOf(headers, 'x-service-signature'))) return 'X-Service-Signature is wrong'
  const timestamp = headerOf(headers, 'webhook-timestamp')
  if (!/^\d{1,12}$/.test(timestamp)) return 'webhook-timestamp is no number of seconds'
  const age = now - Number(timestamp) * 1000
  if (Math.abs(age) > timestampTolerance) return `webhook-timestamp is ${Math.round(age / 1000)} s old`
  const expected = standardSignatureOf(key, headerOf(headers, 'webhook-id'), Number(timestamp), body.toString('utf8'))
  // Several may be there, one for each key while keys are exchanged.
  const given = headerOf(headers, 'webhook-signature').split(' ')
  return given.some((signature) => sameText(signature, expected)) ? null : 'webhook-signature is wrong'
}

/** Takes the same time wherever they differ: a recorded X-Service-Signature is right here already, this one must not be guessed. */
function sameText(given: string, expected: string): boolean {
  const [left, right] = [Buffer.from(given), Buffer.from(expected)]
  return left.length === right.length && timingSafeEqual(left, right)
}

export const headerOf = (headers: IncomingHttpHeaders, name: string): string => String(headers[name] ?? '')

function refusalBy(trust: Trust): (incoming: IncomingDelivery) => string | null {
  if ('refusalOf' in trust) return trust.refusalOf
  return ({ path, headers, body }) => {
    const secret = trust.secretOf(path)
    if (secret === null) return 'nothing is expected here'
    const good = verifySignature(toSigningKey(secret), body, headerOf(headers, 'x-service-signature'))
    return good ? null : 'X-Service-Signature is wrong'
  }
}

async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer | null> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > maxBytes) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function toDelivery({ path, headers, body }: IncomingDelivery): ReceivedDelivery | null {
  const text = body.toString('utf8')
  const json = parseObject(text)
  if (!json) return null
  return {
    path,
    type: String(json['type']),
    eventId: headerOf(headers, 'x-service-event-id'),
    attempt: Number(headerOf(headers, 'x-service-attempt')),
    headers,
    body: text,
    data: json['data'],
  }
}

function parseObject(text: string): Record<string, unknown> | null {
  try {
    const json: unknown = JSON.parse(text)
    return typeof json === 'object' && json !== null ? (json as Record<string, unknown>) : null
  } catch {
    // No JSON, so no delivery: the caller says so to who sent it.
    return null
  }
}

function urlOf({ address, family, port }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}
