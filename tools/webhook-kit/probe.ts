/**
 * Owns the doctor's way to a receiver: one POST, everything bounded, the result a value. It dials as the service does, but it may go wherever
 * the operator points it, measures, and counts connections.
 */
import { Agent, type Dispatcher } from 'undici'
import { detailsOf, readWhole } from '../../actors/webhooks/answer-of.ts'
import { createEgressGuard } from '../../actors/webhooks/egress-guard.ts'
import type { Clock } from '../../model/clock.ts'
import { deadline, unlessAborted } from '../../model/deadline.ts'

/** `whole`: an answer counts when all of it is here. `status`: the first line counts, as for deliveries of the service. */
export type AnswerMode = 'whole' | 'status'

export type SignedRequest = { readonly headers: Readonly<Record<string, string>>; readonly body: string }

/** `ms` is from the call to the end of the answer. */
export type ProbeAnswer =
  | {
      readonly kind: 'answered'
      readonly ms: number
      readonly status: number
      readonly body: string
      /** Where a redirect points to. */
      readonly location: string | null
    }
  | {
      readonly kind: 'failed'
      readonly ms: number
      readonly reason: 'timeout' | 'transport' | 'too_large'
      readonly details: string
    }

export type Probe = {
  /** Never throws. */
  post(request: SignedRequest, wanted: { readonly timeout: number; readonly answer: AnswerMode }): Promise<ProbeAnswer>
  /** How many connections were dialled so far. */
  connections(): number
  /** Idempotent. */
  close(): Promise<void>
}

const maxAnswerBytes = 256 * 1024
const connectionsAtOnce = 64

export function createProbe({ url, clock }: { url: URL; clock: Clock }): Probe {
  // Named by the operator, so it may be private and plain http.
  const guard = createEgressGuard({ allowHosts: [url.hostname] })
  let connections = 0
  const agent = new Agent({
    connect: (options, callback) => {
      connections += 1
      guard.connect(options, callback)
    },
    connections: connectionsAtOnce,
    pipelining: 1,
    keepAliveTimeout: 4_000,
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  let closed: Promise<void> | null = null
  const end = async (): Promise<void> => {
    guard.close()
    await agent.destroy()
  }

  const post: Probe['post'] = async (request, { timeout, answer }) => {
    const overdue = new AbortController()
    const began = clock.now()
    const failed = (reason: 'timeout' | 'transport' | 'too_large', details: string): ProbeAnswer => ({
      kind: 'failed',
      ms: clock.now() - began,
      reason,
      details,
    })
    const ask = async (signal: AbortSignal): Promise<ProbeAnswer> => {
      const { headers, body: sent } = request
      const response = await unlessAborted(agent.request({ ...targetOf(url), headers, body: sent, signal }), signal)
      const body = answer === 'whole' ? await readWhole(response.body, maxAnswerBytes) : await skip(response.body)
      if (body === null) return failed('too_large', `the answer is over ${maxAnswerBytes} bytes`)
      const location = [response.headers['location']].flat()[0] ?? null
      return { kind: 'answered', ms: clock.now() - began, status: response.statusCode, body, location }
    }
    const result = ask(overdue.signal).catch((error: unknown) =>
      overdue.signal.aborted
        ? failed('timeout', `no answer within ${timeout} ms`)
        : failed('transport', detailsOf(error)),
    )
    return deadline(clock, timeout, result, () => {
      overdue.abort()
      return result
    })
  }
  return { post, connections: () => connections, close: () => (closed ??= end()) }
}

const targetOf = (url: URL): Pick<Dispatcher.RequestOptions, 'origin' | 'path' | 'method'> => ({
  origin: url.origin,
  path: `${url.pathname}${url.search}`,
  method: 'POST',
})

async function skip(body: Dispatcher.ResponseData['body']): Promise<string> {
  try {
    await body.dump({ limit: maxAnswerBytes })
  } catch {
    // The receiver has answered: a body that stalls or breaks off changes nothing about that.
  }
  return ''
}
