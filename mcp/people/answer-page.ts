/** Owns the rim of the pages for people: which methods they know, and that what cannot be done is said as a page. Anything else is the API's rim's. */
import type { Fetch } from '../../model/listener.ts'
import { methodNotAllowed, Problem } from '../../model/problem.ts'
import { databaseUnreachable } from '../../store/database-unreachable.ts'
import { html } from './html.ts'
import { renderPage } from './page.ts'

const away = new Problem('SERVICE_UNAVAILABLE', 'The service is not available at the moment. Try again soon.')

export type PageHandlers = { readonly GET?: Fetch; readonly POST?: Fetch }

export function createPageFetch(handlers: PageHandlers): Fetch {
  const allowed = Object.keys(handlers).flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
  return async (request, info) => {
    const method = request.method === 'HEAD' ? 'GET' : request.method
    const handler = method === 'GET' || method === 'POST' ? handlers[method] : undefined
    if (!handler) return pageOfProblem(methodNotAllowed(allowed))
    try {
      return await handler(request, info)
    } catch (error) {
      if (error instanceof Problem) return pageOfProblem(error)
      if (databaseUnreachable(error)) return pageOfProblem(away)
      throw error
    }
  }
}

const titles: Readonly<Record<number, string>> = {
  403: 'Not allowed',
  404: 'Not here',
  429: 'Too many tries',
  503: 'Busy',
}

export function pageOfProblem({ status, message, retryAfterSeconds, allow }: Problem): Response {
  const headers = {
    ...(retryAfterSeconds !== null && { 'retry-after': String(retryAfterSeconds) }),
    ...(allow.length > 0 && { allow: allow.join(', ') }),
  }
  const body = html`<p>${message}</p>`
  return renderPage({ title: titles[status] ?? 'That did not work', body, status, headers })
}
