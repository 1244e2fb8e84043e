/** Owns the REST API as one fetch-style function: order of the checks, routes, one rim for errors. rest-api-and-webhooks.md. */
import { OpenAPIHono } from '@hono/zod-openapi'
import type { Fetch } from '../model/listener.ts'
import { issuesOf, Problem } from '../model/problem.ts'
import { addAccountRoutes } from './account-routes.ts'
import { createAllowedMethods } from './allowed-methods.ts'
import { authenticate, notFound } from './authenticate.ts'
import type { Api, ApiDeps, ApiEnv } from './deps.ts'
import { addHealthRoute } from './health-route.ts'
import { addOpenApi } from './openapi.ts'
import { addPhoneCallRoutes } from './phone-call-routes.ts'
import { addRecordingRoutes } from './recording-routes.ts'
import { renderError, renderProblem } from './render.ts'
import { requestIdOf, withStandardHeaders } from './standard-headers.ts'
import { addSubscriptionRoutes } from './subscription-routes.ts'
import { addDemoRoute, addWebCallRoutes } from './web-call-routes.ts'
import { addWorkerRoutes } from './worker-routes.ts'

/** What one answer lists at most: a body of a mebibyte has room for a hundred thousand mistakes. */
const maxIssues = 50

/** The answer never throws and always carries `x-request-id`. Needs a body bounded by its listener; see renderTooLarge. */
export function createApi(deps: ApiDeps): Fetch {
  const app = createApp(deps)
  return async (request, info) => {
    const requestId = requestIdOf(request, deps.newId)
    const response = await respond(app, request, { info, requestId }, deps)
    return withStandardHeaders(response, request, requestId)
  }
}

async function respond(app: Api, request: Request, env: ApiEnv['Bindings'], deps: ApiDeps): Promise<Response> {
  try {
    return await app.fetch(request, env)
  } catch (error) {
    // What was thrown is no Error: Hono gives only those to onError.
    return renderError(error, request, env.requestId, deps.log)
  }
}

function createApp(deps: ApiDeps): Api {
  const app: Api = new OpenAPIHono<ApiEnv>({
    defaultHook: (result) => {
      if (!result.success) throw invalid(issuesOf(result.error))
    },
  })
  app.onError((error, c) => renderError(error, c.req.raw, c.env.requestId, deps.log))
  app.use('/v1/*', authenticate(deps))
  addHealthRoute(app, deps)
  addDemoRoute(app, deps)
  addAccountRoutes(app, deps)
  addWorkerRoutes(app, deps)
  addPhoneCallRoutes(app, deps)
  addWebCallRoutes(app, deps)
  addSubscriptionRoutes(app, deps)
  addRecordingRoutes(app, deps)
  addOpenApi(app, deps)
  answerTheRest(app)
  return app
}

function answerTheRest(app: Api): void {
  const allowedMethods = createAllowedMethods(app.routes)
  app.notFound((c) => {
    const allowed = allowedMethods(c.req.path)
    if (allowed.length === 0) return renderProblem(notFound(), c.env.requestId)
    const problem = new Problem('METHOD_NOT_ALLOWED', `Here only ${allowed.join(', ')}.`)
    return renderProblem(problem, c.env.requestId, { allow: allowed.join(', ') })
  })
}

function invalid(issues: Problem['issues']): Problem {
  return new Problem('VALIDATION_FAILED', 'Some fields are not valid; see issues.', (issues ?? []).slice(0, maxIssues))
}
