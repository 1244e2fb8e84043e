/**
 * Owns the authorization server as one fetch-style function: which paths there are, what is checked before the library sees a request, and what
 * of its answers goes out. docs/contract/mcp.md "Authorization".
 */
import type { EventEmitter } from 'node:events'
import { Provider } from 'oidc-provider'
import type { Audit } from '../../model/audit.ts'
import type { FetchDocument } from '../../model/fetch-document.ts'
import type { Fetch, RequestInfo } from '../../model/listener.ts'
import type { Log } from '../../model/log.ts'
import { mcpScopes, type FindMcpAccess } from '../../model/mcp-access.ts'
import { methodNotAllowed, Problem } from '../../model/problem.ts'
import type { FindSignedIn } from '../../model/user.ts'
import { createFindMcpAccess, type GrantOwner } from '../../store/oauth-grants.ts'
import type { RotatingSecretBox } from '../../store/secret-box.ts'
import type { Sql } from '../../store/sql.ts'
import type { CheckCsrf } from '../people/form-guard.ts'
import { resourceOf } from '../resource-metadata.ts'
import { createClientDocuments } from './client-documents.ts'
import { createConsent } from './consent.ts'
import { createGrantsPage, grantsPath } from './grants-page.ts'
import { createIssuers, createOrigins } from './issuers.ts'
import { createExchange } from './node-exchange.ts'
import { headersOf, oauthError, readBody, wrongInQuery } from './oauth-request.ts'
import { consentPath, createProvider, oauthRoutes } from './provider.ts'
import { createReadRegistration } from './registration.ts'
import { offlineAccess } from './scopes.ts'
import { createSigningKeys } from './signing-keys.ts'

export type OauthDeps = {
  readonly sql: Sql
  readonly box: RotatingSecretBox
  readonly now: () => number
  readonly log: Log
  /** PUBLIC_URL; null: the address a request comes to. */
  readonly publicUrl: string | null
  readonly fetchDocument: FetchDocument
  readonly audit: Audit
  readonly findSignedIn: FindSignedIn
  readonly checkCsrf: CheckCsrf
}

export type Oauth = {
  /** By path; one that ends with `/*` is everything below it. They throw Problem. */
  readonly pages: readonly { readonly path: string; readonly fetch: Fetch }[]
  readonly findMcpAccess: FindMcpAccess
}

const discovery = '/.well-known/oauth-authorization-server'
/** RFC 8414 section 3, and as OpenID Connect Discovery has it. Behind them may stand the path of an issuer or a resource. */
export const metadataPaths = [discovery, '/.well-known/openid-configuration'] as const

type Route = {
  readonly method: 'GET' | 'POST'
  /** Other origins may read it: it is no page, and asks for no cookie. */
  readonly isOpen: boolean
  readonly answer: (request: Request, info: RequestInfo) => Promise<Response>
}

export function createOauth(deps: OauthDeps): Oauth {
  const { sql, now, publicUrl } = deps
  const origins = createOrigins(publicUrl)
  const failures = new WeakMap<object, Error>()
  const documents = createClientDocuments(deps)
  const readRegistration = createReadRegistration({ now })
  const ended = (grant: GrantOwner): Promise<void> => noteEnd(deps.audit, grant)
  const issuerOf = createIssuers(createSigningKeys(deps), (origin, keys) => {
    const provider = createProvider({ ...deps, documents, ended }, origin, keys)
    provider.on('server_error', (ctx, error) => void failures.set(ctx.req, error))
    const koa: EventEmitter = provider
    koa.on('error', (error: Error, ctx?: { req: object }) => void (ctx && failures.set(ctx.req, error)))
    return { provider, handle: provider.callback() }
  })

  /** `path`: as the library knows it. */
  async function enter(request: Request, path: string, body: Uint8Array<ArrayBuffer> | null = null) {
    const origin = originOf(request.url)
    const url = new URL(origin)
    const exchange = createExchange({
      askedAt: now(),
      method: body ? 'POST' : 'GET',
      prefix: url.pathname.replace(/\/+$/, ''),
      url: new URL(path + new URL(request.url).search, url),
      headers: headersOf(request),
      body,
    })
    return { ...(await issuerOf(origin)), exchange }
  }
  async function ask(...asked: Parameters<typeof enter>): Promise<Response> {
    const { handle, exchange } = await enter(...asked)
    await handle(exchange.req, exchange.res)
    const failure = failures.get(exchange.req)
    // The rim of the service tells an outage from a bug, and logs it.
    if (failure) throw failure
    return withoutSession(await exchange.answer())
  }
  function originOf(url: string): string {
    const origin = origins.of(url)
    if (origin !== null) return origin
    throw new Problem('NOT_FOUND', 'Not by this name: PUBLIC_URL is to be set to the address that clients use.')
  }
  async function post(request: Request, path: string): Promise<Response> {
    const body = await readBody(request)
    return body instanceof Response ? body : ask(request, path, body)
  }
  async function exchangeTokens(request: Request): Promise<Response> {
    const body = await readBody(request)
    if (body instanceof Response) return body
    // The library looks at it only when a refresh token is used up.
    const resource = resourceOf(originOf(request.url))
    const isOther = new URLSearchParams(new TextDecoder().decode(body))
      .getAll('resource')
      .some((asked) => asked !== resource)
    if (isOther) return oauthError('invalid_target', `the only resource is ${resource}`)
    return ask(request, oauthRoutes.token, body)
  }
  async function register(request: Request, info: RequestInfo): Promise<Response> {
    const body = await readBody(request)
    const registration = body instanceof Response ? body : readRegistration(request, body, info)
    if (registration instanceof Response) return registration
    const answer = await ask(request, oauthRoutes.registration, registration)
    if (answer.status === 201)
      await noteRegistration(deps.audit, (await answer.clone().json()) as { client_id: string })
    return answer
  }
  const open = { method: 'GET', isOpen: true } as const
  const routes: Readonly<Record<string, Route>> = {
    [discovery]: { ...open, answer: async (request) => offered(await ask(request, discovery)) },
    [oauthRoutes.jwks]: { ...open, answer: (request) => ask(request, oauthRoutes.jwks) },
    [oauthRoutes.registration]: { method: 'POST', isOpen: true, answer: register },
    [oauthRoutes.token]: { method: 'POST', isOpen: true, answer: exchangeTokens },
    [oauthRoutes.revocation]: {
      method: 'POST',
      isOpen: true,
      answer: (request) => post(request, oauthRoutes.revocation),
    },
    [oauthRoutes.authorization]: {
      method: 'GET',
      isOpen: false,
      answer: (request) => ask(request, new URL(request.url).pathname),
    },
  }
  const endpoints: Fetch = (request, info) =>
    respond(routes[routeOf(new URL(request.url).pathname)] ?? null, request, info)
  const consent = createConsent({ ...deps, enter: (request) => enter(request, new URL(request.url).pathname) })
  return {
    pages: [
      { path: `${consentPath}/*`, fetch: consent },
      { path: '/oauth/*', fetch: endpoints },
      ...metadataPaths.flatMap((path) => [path, `${path}/*`]).map((path) => ({ path, fetch: endpoints })),
      { path: grantsPath, fetch: createGrantsPage(deps) },
    ],
    findMcpAccess: createFindMcpAccess({ sql, now, isAudience: origins.isResource }),
  }
}

const noteRegistration = (audit: Audit, { client_id: clientId }: { readonly client_id: string }): Promise<void> =>
  audit.note({
    accountId: null,
    actor: { kind: 'mcp_client', clientId, userId: null },
    action: 'oauth.register',
    arguments: {},
    result: 'success',
  })

/** What a client did that ended its grant. A code or a token that comes a second time may be in the hands of two. */
async function noteEnd(audit: Audit, { accountId, userId, clientId }: GrantOwner): Promise<void> {
  const ctx = Provider.ctx?.oidc
  const used = ctx?.params?.['grant_type'] === 'refresh_token' ? 'oauth.refresh_token_reused' : 'oauth.code_reused'
  const action = ctx?.route === 'revocation' ? 'oauth.revoke' : used
  const actor = { kind: 'mcp_client', clientId, userId } as const
  await audit.note({ accountId, actor, action, arguments: {}, result: 'success' })
}

/** The key of a route. */
function routeOf(path: string): string {
  if (metadataPaths.some((known) => path === known || path.startsWith(`${known}/`))) return discovery
  const isResumed = new RegExp(`^${oauthRoutes.authorization}/[\\w-]{1,100}$`).test(path)
  return isResumed ? oauthRoutes.authorization : path
}

async function respond(route: Route | null, request: Request, info: RequestInfo): Promise<Response> {
  if (route === null) throw new Problem('NOT_FOUND', 'There is nothing here.')
  if (route.isOpen && request.method === 'OPTIONS')
    return readable(new Response(null, { status: 204, headers: preflight }))
  const method = request.method === 'HEAD' ? 'GET' : request.method
  if (method !== route.method) throw methodNotAllowed(methodsOf(route))
  const answer = wrongInQuery(new URL(request.url).search) ?? (await route.answer(request, info))
  return route.isOpen ? readable(answer) : answer
}

const methodsOf = ({ method, isOpen }: Route): string[] => [
  ...(method === 'GET' ? ['GET', 'HEAD'] : [method]),
  ...(isOpen ? ['OPTIONS'] : []),
]

const preflight = {
  'access-control-allow-methods': 'GET, POST',
  'access-control-allow-headers': 'authorization, content-type, mcp-protocol-version',
  'access-control-max-age': '3600',
}

/** By pages of any origin: a token is sent by hand, never by the browser. */
function readable(answer: Response): Response {
  answer.headers.set('access-control-allow-origin', '*')
  answer.headers.set('access-control-expose-headers', 'www-authenticate, retry-after')
  return answer
}

/** The library's own session is kept nowhere, so its cookie is nothing to anybody. */
function withoutSession(answer: Response): Response {
  const cookies = answer.headers.getSetCookie()
  answer.headers.delete('set-cookie')
  for (const cookie of cookies) if (!cookie.startsWith('oauth_session')) answer.headers.append('set-cookie', cookie)
  return answer
}

/** What the library would do as well is not offered. */
async function offered(answer: Response): Promise<Response> {
  const metadata = (await answer.json()) as Record<string, unknown>
  const only = { response_modes_supported: ['query'], scopes_supported: [...mcpScopes, offlineAccess] }
  return Response.json({ ...metadata, ...only }, { status: answer.status })
}
