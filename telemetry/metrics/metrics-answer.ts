/** Owns what is answered to who asks for the numbers: nothing to strangers, and to whoever may know them the text that Prometheus reads. */
import { hash, timingSafeEqual } from 'node:crypto'
import type { Fetch, RequestInfo } from '../../model/listener.ts'
import type { FailureGuard } from '../../net/failure-guard.ts'
import type { Metrics } from './metrics.ts'

export const metricsPath = '/metrics'

type Deps = {
  readonly metrics: Pick<Metrics, 'scrape'>
  /** As `Authorization: Bearer …`; null: whoever reaches the listener may ask. */
  readonly token: string | null
  /** Who guesses. */
  readonly guard: Pick<FailureGuard, 'looksAt' | 'failed'>
}

export function createMetricsAnswer({ metrics, token, guard }: Deps): Fetch {
  const expected = token === null ? null : digestOf(`bearer ${token}`)
  const mayAsk = (request: Request, { remoteAddress: address }: RequestInfo): boolean => {
    if (expected === null) return true
    const sender = { address, isProven: true }
    if (!guard.looksAt(sender)) return false
    const given = (request.headers.get('authorization') ?? '').trim().replace(/^bearer +/i, 'bearer ')
    if (timingSafeEqual(digestOf(given), expected)) return true
    guard.failed(sender, 'wrong_token')
    return false
  }
  return async (request, info) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') return refusalOf(405, { allow: 'GET, HEAD' })
    if (!mayAsk(request, info)) return refusalOf(401, { 'www-authenticate': 'Bearer' })
    info.proved?.()
    const headers = { 'content-type': 'text/plain; version=0.0.4; charset=utf-8', 'cache-control': 'no-store' }
    return new Response(request.method === 'HEAD' ? null : await metrics.scrape(), { headers })
  }
}

const digestOf = (text: string): Buffer => hash('sha256', text, 'buffer')

const words = {
  401: 'The numbers of this process are for those who have the token.',
  404: 'Not found.',
  405: 'Read it.',
}

export const refusalOf = (status: keyof typeof words, headers: Readonly<Record<string, string>> = {}): Response =>
  new Response(`${words[status]}\n`, { status, headers: { 'content-type': 'text/plain; charset=utf-8', ...headers } })
