/** Owns the REST API as one fetch-style function: order of the checks, routes, one rim for errors. docs/contract/rest.md "Requests". */
import { OpenAPIHono } from '@hono/zod-openapi'
import type { Fetch } from '../model/listener.ts'
import { issuesOf } from '../model/issues.ts'
import { invalidFields, methodNotAllowed, notFound, type Problem } from '../model/problem.ts'
import { createAudit } from '../store/audit.ts'
import { createAccessLog } from './access-log.ts'
import { addAccountRoutes } from './account-routes.ts'
import { addAccountLimitsRoutes } from './account-limits-routes.ts'
import { addAuditRoutes } from './audit-routes.ts'
import { createAllowedMethods } from './allowed-methods.ts'
import { authenticate } from './authenticate.ts'
import { addBesideRoutes } from './beside-routes.ts'
import { addConsoleRoutes } from './console/console-routes.ts'
import { addDeliveryRoutes } from './delivery-routes.ts'
import type { Api, ApiDeps, ApiEnv, Middleware, RimDeps } from './deps.ts'
import { addCaptureRoutes } from './capture-routes.ts'
import { addDiagnosticsRoutes } from './diagnostics-routes.ts'
import { addDocsRoutes } from './docs-routes.ts'
import { addDocumentRoutes } from './document-routes.ts'
import { addDocumentVersionRoutes } from './document-version-routes.ts'
import { addErasureRoutes } from './erasure-routes.ts'
import { addGrantRoutes } from './grant-routes.ts'
import { guardRoutes } from './guarded-routes.ts'
import { addHealthRoute } from './health-route.ts'
import { addKeyRoutes } from './key-routes.ts'
import { addKnowledgeRoutes } from './knowledge-routes.ts'
import { addListCallsRoute } from './list-calls-route.ts'
import { addOpenApi } from './openapi.ts'
import { addPersonRoutes } from './person-routes.ts'
import { addPhoneCallRoutes } from './phone-call-routes.ts'
import { addPauseRecordingRoutes } from './pause-recording-routes.ts'
import { addPlaceCallRoutes } from './place-call-routes.ts'
import { createRequestLimit, setRateLimitHeaders, type RequestLimit } from './rate-limit.ts'
import { addReadyRoute } from './ready-route.ts'
import { recordingsPath } from './recording-link.ts'
import { addRecordingRoutes } from './recording-routes.ts'
import { addReplayRoutes } from './replay-routes.ts'
import { addRefusalRoutes } from './refusal-routes.ts'
import { renderError, renderProblem } from './render.ts'
import { requestIdOf, withStandardHeaders } from './standard-headers.ts'
import { describeSignaling } from './signaling-description.ts'
import { addRetentionRoutes } from './retention-routes.ts'
import { addSimulationRoutes } from './simulation-routes.ts'
import { addSubscriptionRoutes } from './subscription-routes.ts'
import { addToolRoutes } from './tool-routes.ts'
import { addTrunkRoutes } from './trunk-routes.ts'
import { addDemoRoutes } from './demo-routes.ts'
import { addWebCallRoutes } from './web-call-routes.ts'
import { describeWebhooks } from './webhook-descriptions.ts'
import { addUserRoutes } from './user-routes.ts'
import { addWorkerManagementRoutes } from './worker-management-routes.ts'
import { addWorkerRoutes } from './worker-routes.ts'

/** What one answer lists at most: a body of a mebibyte has room for a hundred thousand mistakes. */
const maxIssues = 50

/**
 * The answer never throws and always carries `x-request-id`. Needs a body bounded by its listener; see renderTooLarge, which counts by the
 * same `limit`.
 */
export function createApi(deps: ApiDeps, limit = createRequestLimit(deps.rateLimits, deps.clock)): Fetch {
  return servedBy(createApp(deps, limit), deps, limit)
}

/** The same of a process that leaves REST to others: how it does, and what is answered beside. */
export function createRim(deps: RimDeps, limit: RequestLimit): Fetch {
  const app = createBareApp(deps, limit)
  addRim(app, deps, limit)
  answerTheRest(app, limit)
  return servedBy(app, deps, limit)
}

function servedBy(app: Api, deps: RimDeps, limit: RequestLimit): Fetch {
  const logAccess = createAccessLog(deps)
  return async (request, info) => {
    const began = deps.clock.now()
    const env = { info, requestId: requestIdOf(request, deps.newId), charged: null }
    const response = await respond(app, request, env, deps)
    setRateLimitHeaders(response, env.charged ?? limit.ofAddress(info))
    logAccess(request, env, began, response.status)
    return withStandardHeaders(response, request, env.requestId)
  }
}

async function respond(app: Api, request: Request, env: ApiEnv['Bindings'], deps: RimDeps): Promise<Response> {
  try {
    return await app.fetch(request, env)
  } catch (error) {
    // What was thrown is no Error: Hono gives only those to onError.
    return renderError(error, request, env.requestId, deps.log)
  }
}

function createBareApp(deps: RimDeps, limit: RequestLimit): Api {
  const app: Api = new OpenAPIHono<ApiEnv>({
    defaultHook: (result) => {
      if (!result.success) throw invalid(issuesOf(result.error, givenOf(result)))
    },
  })
  app.onError((error, c) => renderError(error, c.req.raw, c.env.requestId, deps.log))
  // Who floods everything else from behind a load balancer must not make it believe that the service is ill.
  for (const path of ['/health', '/ready']) app.use(path, chargeAddress(limit, 'health '))
  return app
}

function addRim(app: Api, deps: RimDeps, limit: RequestLimit): void {
  addHealthRoute(app, deps)
  addReadyRoute(app, deps)
  addBesideRoutes(app, deps.beside ?? [], chargeAddress(limit))
}

function createApp(deps: ApiDeps, limit: RequestLimit): Api {
  const audit = deps.audit ?? createAudit(deps)
  const app = createBareApp(deps, limit)
  app.use('/v1/*', authenticate(deps, limit))
  for (const path of openPaths) app.use(path, chargeAddress(limit))
  const requireGuards = guardRoutes(app, deps, audit)
  addDemoRoutes(app, deps)
  addDocsRoutes(app)
  addConsoleRoutes(app, deps, limit, audit)
  addAccountRoutes(app, deps)
  addRetentionRoutes(app, deps)
  addAccountLimitsRoutes(app, deps)
  addGrantRoutes(app, deps)
  addKeyRoutes(app, deps)
  addUserRoutes(app, deps)
  addAuditRoutes(app, deps, audit)
  addWorkerRoutes(app, deps)
  addWorkerManagementRoutes(app, deps)
  addToolRoutes(app, deps)
  addPhoneCallRoutes(app, deps)
  addListCallsRoute(app, deps)
  addDiagnosticsRoutes(app, deps)
  addReplayRoutes(app, deps)
  addCaptureRoutes(app, deps)
  addPlaceCallRoutes(app, deps)
  addPauseRecordingRoutes(app, deps)
  addWebCallRoutes(app, deps)
  addSubscriptionRoutes(app, deps)
  addDeliveryRoutes(app, deps)
  addRecordingRoutes(app, deps)
  addPersonRoutes(app, deps)
  addErasureRoutes(app, deps)
  addDocumentRoutes(app, deps)
  addDocumentVersionRoutes(app, deps)
  addKnowledgeRoutes(app, deps)
  addTrunkRoutes(app, deps)
  addRefusalRoutes(app, deps)
  addSimulationRoutes(app, deps)
  addRim(app, deps, limit)
  requireGuards()
  describeSignaling(app)
  describeWebhooks(app)
  addOpenApi(app, deps)
  answerTheRest(app, limit)
  return app
}

/** What is answered without a key. Paths that are nothing are charged where they end, in answerTheRest. */
const openPaths = ['/openapi.json', '/docs/*', '/console/assets/*', '/demo/*', `${recordingsPath}/*`]

const chargeAddress =
  (limit: RequestLimit, purpose?: string): Middleware =>
  (c, next) => {
    limit.chargeAddress(c.env, purpose)
    return next()
  }

function answerTheRest(app: Api, limit: RequestLimit): void {
  const allowedMethods = createAllowedMethods(app.routes)
  app.notFound((c) => {
    if (c.env.charged === null && !c.get('accountId')) limit.chargeAddress(c.env)
    const allowed = allowedMethods(c.req.path)
    if (allowed.length === 0) return renderProblem(notFound(), c.env.requestId)
    return renderProblem(methodNotAllowed(allowed), c.env.requestId)
  })
}

/** What was checked; the types of the library do not tell of it. */
const givenOf = (result: object): unknown => ('data' in result ? result.data : undefined)

function invalid(issues: Problem['issues']): Problem {
  return invalidFields((issues ?? []).slice(0, maxIssues))
}
