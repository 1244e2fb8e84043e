/**
 * Owns the one way out for webhooks: one POST to a guarded target, everything bounded, the result a value. No redirects, no
 * retries. Sync hooks and deliveries have connections of their own, so that a caller on the line never queues behind them.
 */
import { Agent } from 'undici'
import type { Clock } from '../../model/clock.ts'
import { deadline, unlessAborted } from '../../model/deadline.ts'
import type { Log } from '../../model/log.ts'
import { detailsOf, readWhole } from './answer-of.ts'
import { createEgressGuard, EgressRefused, type Resolve } from './egress-guard.ts'

export type SendRequest = {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Milliseconds over name resolution, connecting, sending and the whole answer. */
  readonly timeout: number
  /** `whole`: an answer counts when all of it is here, 256 KiB at most. `excerpt`: its status counts, 2 KiB of it are kept. */
  readonly answer: 'whole' | 'excerpt'
  readonly signal?: AbortSignal
}

export type FailedSend = {
  readonly kind: 'failed'
  /** `refused`: by the guard, nothing was sent. `transport`: everything else that is no HTTP answer. */
  readonly reason: 'timeout' | 'refused' | 'transport' | 'too_large'
  readonly details: string
}

export type SendResult =
  | {
      readonly kind: 'answered'
      readonly status: number
      readonly body: string
      /** Milliseconds from now; null when the answer does not say. */
      readonly retryAfter: number | null
    }
  | FailedSend

export type WebhookSender = {
  /** Why nothing would ever be sent there, before any resolution; null when the addresses behind a name decide. */
  refusalOf(url: string): string | null
  /** Never throws. */
  send(request: SendRequest): Promise<SendResult>
  /** Ends what is under way as `transport`. Idempotent. */
  close(): Promise<void>
}

const maxAnswerBytes = 256 * 1024
const excerptBytes = 2 * 1024
/** Reading on keeps the connection for the next delivery; more than this is not worth it. */
const drainedBytes = 64 * 1024

export function createWebhookSender(deps: {
  allowHosts: readonly string[]
  log: Log
  clock: Clock
  resolve?: Resolve
}): WebhookSender {
  const { clock } = deps
  const guard = createEgressGuard(deps)
  const agents = { whole: agentOf(guard.connect), excerpt: agentOf(guard.connect) }
  const closing = new AbortController()
  let closed: Promise<void> | null = null

  function refusalOf(text: string): string | null {
    const url = URL.parse(text)
    return url ? guard.refusalOf(url) : 'the target is no URL'
  }
  async function send(request: SendRequest): Promise<SendResult> {
    if (closing.signal.aborted) return failed('transport', 'the sender is closed')
    const refusal = refusalOf(request.url)
    if (refusal !== null) return refused(refusal, request.url)
    const overdue = new AbortController()
    const signals = [overdue.signal, closing.signal, ...(request.signal ? [request.signal] : [])]
    const failedBy = (error: unknown): FailedSend => {
      if (overdue.signal.aborted) return failed('timeout', `no answer within ${request.timeout} ms`)
      if (error instanceof EgressRefused) return refused(error.message, request.url)
      return failed('transport', detailsOf(error))
    }
    const result = post(agents[request.answer], request, AbortSignal.any(signals), clock.now).catch(failedBy)
    return deadline(clock, request.timeout, result, () => {
      overdue.abort()
      return result
    })
  }
  function refused(details: string, url: string): FailedSend {
    deps.log.warn('webhook target refused', { details, host: URL.canParse(url) ? new URL(url).host : null })
    return failed('refused', details)
  }
  async function end(): Promise<void> {
    closing.abort()
    guard.close()
    await Promise.all([agents.whole.destroy(), agents.excerpt.destroy()])
  }
  return { refusalOf, send, close: () => (closed ??= end()) }
}

/** An origin without connections is forgotten by the agent; idle ones go after a few seconds. */
const agentOf = (connect: ReturnType<typeof createEgressGuard>['connect']): Agent =>
  new Agent({
    connect,
    connections: 64,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: 4_000,
    keepAliveMaxTimeout: 30_000,
    // The deadline of the request rules, and it is the only one.
    headersTimeout: 0,
    bodyTimeout: 0,
  })

async function post(agent: Agent, request: SendRequest, signal: AbortSignal, now: () => number): Promise<SendResult> {
  const url = new URL(request.url)
  const asked = agent.request({
    origin: url.origin,
    path: `${url.pathname}${url.search}`,
    method: 'POST',
    headers: request.headers,
    body: request.body,
    signal,
  })
  // undici notices the signal only once a connection is there; the request is then not sent any more.
  const response = await unlessAborted(asked, signal)
  const retryAfter = retryAfterOf(response.headers['retry-after'], now())
  const answered = (body: string): SendResult => ({ kind: 'answered', status: response.statusCode, body, retryAfter })
  if (request.answer === 'excerpt') return answered(await readExcerpt(response.body))
  const body = await readWhole(response.body, maxAnswerBytes)
  return body === null ? failed('too_large', `the answer is over ${maxAnswerBytes} bytes`) : answered(body)
}

async function readExcerpt(body: AsyncIterable<Buffer>): Promise<string> {
  const kept: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of body) {
      if (bytes < excerptBytes) kept.push(chunk.subarray(0, excerptBytes - bytes))
      bytes += chunk.length
      if (bytes > drainedBytes) break
    }
  } catch {
    // The receiver has answered: a body that stalls or breaks off changes nothing about that.
  }
  return Buffer.concat(kept).toString('utf8')
}

/** RFC 9110 §10.2.3: seconds, or a date. */
export function retryAfterOf(header: string | string[] | undefined, now: number): number | null {
  const text = (Array.isArray(header) ? header[0] : header)?.trim()
  if (!text) return null
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000
  const at = /^[A-Z][a-z]{2}, /.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(at) ? null : Math.max(0, at - now)
}

const failed = (reason: FailedSend['reason'], details: string): FailedSend => ({ kind: 'failed', reason, details })
