/**
 * Owns how an error becomes an answer, in one place for the whole API: problems as they are, an unreachable database as 503, anything
 * else as 500 with its cause in the log and nothing of it in the body. docs/contract/rest.md "Errors".
 */
import { HTTPException } from 'hono/http-exception'
import type { NewId } from '../model/ids.ts'
import type { RequestInfo } from '../model/listener.ts'
import type { Log } from '../model/log.ts'
import { errorBodyOf, Problem } from '../model/problem.ts'
import { databaseUnreachable } from '../store/database-unreachable.ts'
import { loggedPathOf } from './access-log.ts'
import { setRateLimitHeaders, type RequestLimit } from './rate-limit.ts'
import { requestIdOf, withStandardHeaders } from './standard-headers.ts'
import { takesFiles } from './upload-form.ts'

/** Seconds. About what a database takes to come back from a restart. */
const retryAfter = '5'

export function renderProblem(
  problem: Problem,
  requestId: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const body = errorBodyOf(problem, requestId)
  return Response.json(body, { status: body.statusCode, headers: { ...headersOf(problem), ...headers } })
}

/** Logs what is no problem of the client's, once. */
export function renderError(error: unknown, request: Request, requestId: string, log: Log): Response {
  const problem = toProblem(error)
  if (problem) return renderProblem(problem, requestId)
  const fields = { requestId, method: request.method, path: loggedPathOf(request.url), error }
  if (databaseUnreachable(error)) {
    log.warn('the database cannot be reached', fields)
    return renderProblem(new Problem('SERVICE_UNAVAILABLE', 'The service is not available. Try again soon.'), requestId)
  }
  log.error('request failed', fields)
  return renderProblem(new Problem('INTERNAL', 'Something went wrong on our side.'), requestId)
}

/** For the listener, which refuses such a body before the API sees the request; so it is charged to the address, whatever its key. */
export function renderTooLarge(
  request: Request,
  newId: NewId,
  limited: { readonly limit: RequestLimit; readonly info: RequestInfo } | null = null,
): Response {
  const requestId = requestIdOf(request, newId)
  const refused = limited && refusalOf(limited.limit, limited.info)
  const isFile = takesFiles(request.method, new URL(request.url).pathname)
  const most = isFile ? 'A file may have 20 MiB at most.' : 'The body of a request may have 1 MiB at most.'
  const tooLarge = new Problem('PAYLOAD_TOO_LARGE', most)
  const response = renderProblem(refused?.problem ?? tooLarge, requestId)
  setRateLimitHeaders(response, refused?.charged ?? null)
  return withStandardHeaders(response, request, requestId)
}

function refusalOf(limit: RequestLimit, info: RequestInfo) {
  const request = { info, charged: null }
  try {
    limit.chargeAddress(request)
    return { charged: request.charged, problem: null }
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    return { charged: request.charged, problem: error }
  }
}

function toProblem(error: unknown): Problem | null {
  if (error instanceof Problem) return error
  if (!(error instanceof HTTPException)) return null
  if (error.status === 415) return new Problem('UNSUPPORTED_MEDIA_TYPE', 'The body must be application/json.')
  return error.status === 400 ? new Problem('INVALID_JSON', 'The body is not JSON.') : null
}

function headersOf({ type, status, retryAfterSeconds, allow }: Problem): Record<string, string> {
  if (allow.length > 0) return { allow: allow.join(', ') }
  if (status === 503) return { 'retry-after': retryAfterSeconds === null ? retryAfter : String(retryAfterSeconds) }
  // RFC 9110 section 15.5.2 asks for a challenge; no browser knows this scheme, so none asks its user.
  return type === 'UNAUTHORIZED' ? { 'www-authenticate': 'ApiKey' } : {}
}
