/** Owns the rim of the pages for people: which methods they know, and that what cannot be done is said as a page. Anything else is the API's rim's. */
import type { Fetch } from '../../model/listener.ts'
import { Problem } from '../../model/problem.ts'
import { html } from './html.ts'
import { renderPage } from './page.ts'

export type PageHandlers = { readonly GET?: Fetch; readonly POST?: Fetch }

export function createPageFetch(handlers: PageHandlers): Fetch {
  const allowed = Object.keys(handlers).flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
  return async (request, info) => {
    const method = request.method === 'HEAD' ? 'GET' : request.method
    const handler = method === 'GET' || method === 'POST' ? handlers[method] : undefined
    if (!handler) return methodNotAllowed(allowed.join(', '))
    try {
      return await handler(request, info)
    } catch (error) {
      if (error instanceof Problem) return pageOfProblem(error)
      throw error
    }
  }
}

function methodNotAllowed(allow: string): Response {
  const problem = new Problem('METHOD_NOT_ALLOWED', `Here only ${allow}.`)
  return pageOfProblem(problem, { allow })
}

const titles: Readonly<Record<number, string>> = {
  403: 'Not allowed',
  404: 'Not here',
  429: 'Too many tries',
  503: 'Busy',
}

export function pageOfProblem(problem: Problem, headers: Readonly<Record<string, string>> = {}): Response {
  const { status, message, retryAfterSeconds } = problem
  const retry = retryAfterSeconds === null ? {} : { 'retry-after': String(retryAfterSeconds) }
  const body = html`<p>${message}</p>`
  return renderPage({ title: titles[status] ?? 'That did not work', body, status, headers: { ...retry, ...headers } })
}
