/**
 * Owns `/mcp`: who may ask, in which order that is found out, and the protocol of both eras behind it. What is served there is an argument.
 * docs/contract/mcp.md "Endpoint".
 */
import { createMcpHandler, type ServerEvent } from '@modelcontextprotocol/server'
import type { Bus } from '../model/bus.ts'
import type { Clock } from '../model/clock.ts'
import type { AccountId } from '../model/ids.ts'
import type { Log } from '../model/log.ts'
import type { FindMcpAccess, McpAccess, McpScope } from '../model/mcp-access.ts'
import { errorBodyOf, Problem } from '../model/problem.ts'
import type { Asked, Beside, Charge } from '../net/http/beside.ts'
import { createLightRequest } from '../net/http/light-request.ts'
import { publicUrlOf } from '../net/public-url.ts'
import { createCheckHosts, type CheckHosts } from './allowed-hosts.ts'
import { insufficientScope, unauthorized } from './challenge.ts'
import { createChangeEvents } from './change-events.ts'
import { meantMessage, wrongParams } from './meant-message.ts'
import { mcpPath, resourceMetadata, wellKnownPath } from './resource-metadata.ts'
import { quickCallOf } from './quick-call.ts'
import { createStreams, type MaxStreams } from './streams.ts'
import type { Connection, Served } from './tool-server.ts'

export type EndpointDeps = {
  readonly findAccess: FindMcpAccess
  readonly served: Served
  readonly charge: Charge
  readonly bus: Bus
  readonly clock: Clock
  readonly log: Log
  /** As in the settings; null: the names of this machine. */
  readonly publicUrl: string | null
  /** Absent: those of docs/contract/mcp.md "Streams". */
  readonly maxStreams?: MaxStreams
}

export type Endpoint = {
  readonly beside: readonly Beside[]
  /** Tells the streams of the account, in all processes. */
  changed(accountId: AccountId, event: ServerEvent): void
  /** Ends all streams. Idempotent. */
  close(): Promise<void>
}

/** Of one request in the one revision that knows batches; who names none speaks that one. */
const maxBatch = 20
const revisionOfBatches = '2025-03-26'

export function createMcpEndpoint(deps: EndpointDeps): Endpoint {
  const { served, bus, log, publicUrl } = deps
  const checkHosts = createCheckHosts(publicUrl)
  const events = createChangeEvents(bus, log)
  const streams = createStreams(deps, events)
  const handler = createMcpHandler(
    ({ authInfo, era }) => served.newServer({ ...(authInfo?.extra?.['connection'] as Connection), era }),
    {
      bus: events.bus,
      maxSubscriptions: streams.most,
      // Shorter than the ten seconds after which uWebSockets.js takes an answer that stands still for a dead one.
      keepAliveMs: 5_000,
      // Whoever sent it is told.
      onerror: ({ message }) => log.debug('an MCP message was refused', { personal: { message } }),
    },
  )
  const answer = async (request: Request, asked: Asked): Promise<Response> => {
    const told = { requestId: asked.requestId, publicUrl: publicUrlOf(publicUrl, request) }
    const token = tokenOf(request)
    const access = await identify(deps, asked, token)
    if (!access) return unauthorized(told, token !== undefined)
    if (request.method !== 'POST') return notAllowed()
    const sent = parsed(await request.text())
    if (sent === undefined) return refused(-32700, 'Parse error: the body is not JSON.')
    const body = Array.isArray(sent) ? sent.map(meantMessage) : meantMessage(sent)
    const messages = Array.isArray(body) ? (body as unknown[]) : [body]
    const batchless = Array.isArray(body) ? refusalOfBatch(request, body) : null
    if (batchless !== null) return refused(-32600, batchless)
    const needed = missingScopes(messages, served, access)
    if (needed) return insufficientScope(told, needed)
    const asking = acceptingBoth(request)
    const wrong = wrongParams(request, body)
    if (wrong) return wrong
    const quick = quickCallOf(asking, body)
    const answered = quick && (await served.answer?.(quick, { ...told, access, era: quick.era }, request.signal))
    if (answered) return answered
    const { clientId, scopes } = access
    const authInfo = { token: '', clientId, scopes: [...scopes], extra: { connection: { ...told, access } } }
    const hand = (handed: Request): Promise<Response> => handler.fetch(handed, { authInfo, parsedBody: body })
    return isListening(body) ? streams.open({ request: asking, access, token: token ?? '' }, hand) : hand(asking)
  }
  let closing: Promise<void> | null = null
  const close = async (): Promise<void> => {
    events.close()
    await handler.close()
  }
  return {
    beside: [
      { path: mcpPath, chargesItself: true, fetch: withPages(checkHosts, deps.charge, answer) },
      {
        path: `${wellKnownPath}/*`,
        fetch: async (request) => {
          // Any page may read it: it is how one finds out where a person is asked.
          checkHosts.host(request)
          return resourceMetadata(request, publicUrlOf(publicUrl, request))
        },
      },
    ],
    changed: events.publish,
    close: () => (closing ??= close()),
  }
}

/** Which pages may read the answers, and the questions that browsers ask before (Fetch Standard, "CORS protocol"). */
function withPages(
  checkHosts: CheckHosts,
  charge: Charge,
  answer: (request: Request, asked: Asked) => Promise<Response>,
): Beside['fetch'] {
  return async (request, _info, asked) => {
    const origin = checkHosts.page(request)
    const answering = request.method === 'OPTIONS' ? preflight(charge, asked) : answer(request, asked)
    if (origin === null) return answering
    const response = await answering.catch((error: unknown) => problemFor(error, asked))
    response.headers.set('access-control-allow-origin', origin)
    response.headers.set('access-control-expose-headers', exposed)
    response.headers.append('vary', 'origin')
    return response
  }
}

const exposed = 'www-authenticate, x-request-id, retry-after, ratelimit, ratelimit-policy'

async function preflight(charge: Charge, asked: Asked): Promise<Response> {
  charge.chargeAddress(asked)
  const headers = {
    allow: 'POST, OPTIONS',
    'access-control-allow-methods': 'POST',
    'access-control-allow-headers':
      'authorization, content-type, accept, mcp-protocol-version, mcp-method, mcp-name, x-request-id, last-event-id',
  }
  return new Response(null, { status: 204, headers })
}

/** As the rim says it, which knows of no page: one that may not read an answer is not even told that it asks too often. */
function problemFor(error: unknown, { requestId }: Asked): Response {
  if (!(error instanceof Problem)) throw error
  const retry = error.retryAfterSeconds === null ? {} : { 'retry-after': String(error.retryAfterSeconds) }
  return Response.json(errorBodyOf(error, requestId), { status: error.status, headers: retry })
}

const bothTypes = ['application/json', 'text/event-stream']

/** Names of types mean the same in any case, and a star is any of them. RFC 9110 section 12.5.1. */
function takes(accept: string, type: string): boolean {
  const ranges = accept.split(',').map((range) => (range.split(';', 1)[0] ?? '').trim().toLowerCase())
  return ['*/*', type.replace(/\/.*/, '/*'), type].some((range) => ranges.includes(range))
}

/** Who takes anything, or says so in other words, takes JSON and streams, both of which the library wants named to the letter. Its body was read. */
function acceptingBoth(request: Request): Request {
  const accept = request.headers.get('accept') ?? ''
  const isNamed = bothTypes.every((type) => accept.includes(type))
  if (isNamed || (accept.trim() !== '' && !bothTypes.every((type) => takes(accept, type)))) return request
  const { method, url, signal } = request
  const headers = new Headers([...request.headers])
  headers.set('accept', bothTypes.join(', '))
  return createLightRequest({ method, url, headers, signal })
}

const bearer = /^Bearer +([\w.~+/-]{1,2048}=*)$/i

/** Only from the header (RFC 6750 section 2.1): never from a query, which is written to logs. */
const tokenOf = ({ headers }: Request): string | undefined => {
  const header = headers.get('authorization')
  return header === null ? undefined : (bearer.exec(header.trim())?.[1] ?? '')
}

/** Throws Problem RATE_LIMITED. */
async function identify(
  { charge, findAccess, clock }: EndpointDeps,
  asked: Asked,
  token: string | undefined,
): Promise<McpAccess | null> {
  charge.beforeKey(asked, token)
  const access = token === undefined || token === '' ? null : await findAccess(token)
  if (token === undefined || !access || access.expiresAt <= clock.now()) {
    charge.wrongKey(asked, token)
    return null
  }
  charge.goodKey(asked, token, access.accountId)
  asked.info.proved?.()
  return access
}

/** Nothing is sent to clients that ask for nothing, and there are no sessions to end. */
function notAllowed(): Response {
  return refused(-32000, 'Method not allowed.', 405, { allow: 'POST' })
}

const refused = (code: number, message: string, status = 400, headers: Record<string, string> = {}): Response =>
  Response.json({ jsonrpc: '2.0', error: { code, message }, id: null }, { status, headers })

/** Null: it is taken. Batches came with one revision of the protocol and went with the next. */
function refusalOfBatch({ headers }: Request, batch: readonly unknown[]): string | null {
  const revision = headers.get('mcp-protocol-version') ?? revisionOfBatches
  if (revision !== revisionOfBatches)
    return `Batches are of revision ${revisionOfBatches} only: send each message by itself.`
  if (batch.length === 0) return 'A batch has at least one message.'
  return batch.length > maxBatch ? `A batch may have ${maxBatch} messages at most.` : null
}

/** Undefined: not JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

type Message = { readonly method?: unknown; readonly params?: { readonly name?: unknown } | null } | null

const isListening = (body: unknown): boolean => (body as Message)?.method === 'subscriptions/listen'

/** Of all calls in the request together; null: nothing is missing. A tool that is not there is an error of the protocol. */
function missingScopes(messages: readonly unknown[], { scopesOf }: Served, access: McpAccess): McpScope[] | null {
  const missing = new Set<McpScope>()
  for (const message of messages as Message[]) {
    const name = message?.method === 'tools/call' ? message.params?.name : undefined
    const scopes = typeof name === 'string' ? scopesOf(name) : null
    const [first] = scopes ?? []
    if (first && !scopes?.some((scope) => access.scopes.includes(scope))) missing.add(first)
  }
  return missing.size === 0 ? null : [...missing]
}
