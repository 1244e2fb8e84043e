/** Owns what every answer carries, good or bad: the request's id and the headers that keep a browser from doing more with it than read it. */
import type { AskedBy } from '../model/asked-by.ts'
import type { NewId } from '../model/ids.ts'
import { parseTraceparent, traceparentOf } from '../model/trace-context.ts'
import type { ApiEnv } from './deps.ts'

const always = Object.entries({
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
})
/** For all that is no page. */
const strictPolicy = "default-src 'none'; frame-ancestors 'none'"
const oneYear = 'max-age=31536000'
const sane = /^[\w.:+/=-]{1,128}$/

/** The client's own when it is short and plain (it is written to logs), else a new one. */
export function requestIdOf(request: Request, newId: NewId): string {
  const given = request.headers.get('x-request-id')
  return given !== null && sane.test(given) ? given : newId<'request'>()
}

/** Of a request that places a call. */
export const askedBy = (request: Request, { requestId }: Pick<ApiEnv['Bindings'], 'requestId'>): AskedBy => ({
  requestId,
  trace: traceOf(request),
})

/** Null: the client traces nothing, or by words that nobody understands. */
function traceOf(request: Request): string | null {
  const context = parseTraceparent(request.headers.get('traceparent'))
  return context && traceparentOf(context)
}

export function withStandardHeaders(response: Response, request: Request, requestId: string): Response {
  const { headers } = response
  headers.set('x-request-id', requestId)
  for (const [name, value] of always) headers.set(name, value)
  if (!headers.has('content-security-policy')) headers.set('content-security-policy', strictPolicy)
  if (!headers.has('cache-control')) headers.set('cache-control', 'no-store')
  if (request.url.startsWith('https:')) headers.set('strict-transport-security', oneYear)
  return response
}
