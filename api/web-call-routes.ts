/** Owns the routes that create web calls: with a key, and for the demo page without. docs/contract/rest.md "Web calls". */
import { createHash, timingSafeEqual } from 'node:crypto'
import { createRoute, z } from '@hono/zod-openapi'
import { Problem } from '../model/problem.ts'
import { WebCallRequest, WebCallSession, type CreatedWebCall } from '../model/web-call.ts'
import type { Api, ApiDeps } from './deps.ts'
import { isLoopback } from '../net/addresses.ts'
import { isLoopbackHost } from '../net/loopback-host.ts'
import { OnceHeaders, onceOf } from './once.ts'
import { answerOf, bodyOf, named, needs, refusing, security } from './openapi.ts'
import { publicUrlOf, signalingUrlOf } from '../net/public-url.ts'
import { readJson } from './read-json.ts'
import { traceOf } from './standard-headers.ts'

const create = createRoute({
  method: 'post',
  path: '/v1/accounts/{accountId}/web-calls',
  security,
  tags: ['Web calls'],
  operationId: 'createWebCall',
  ...needs('calls'),
  summary: 'Create a browser voice session',
  description:
    'The browser opens signalingUrl with ?token=<token> before expiresAt; the token is good once. Without allowedOrigins any page may, with an empty list none. What call.worker_request answers goes before what is asked for here, llmProvider excepted.',
  middleware: [readJson],
  request: {
    params: z.object({ accountId: z.string() }),
    headers: OnceHeaders,
    body: bodyOf(named('WebCallRequest', WebCallRequest), {
      workerId: '01980a5e-8a11-7b4d-9c32-4d5e6f708192',
      customer: { type: 'lead', firstName: 'Ada' },
      context: 'Looks at the page of prices.',
      allowedOrigins: ['https://app.example.com'],
      metadata: { ticket: 7 },
    }),
  },
  // Account or worker are full; 503: the node is.
  ...refusing('WORKER_INACTIVE', 'WEB_CALL_CAPACITY_EXCEEDED', ['WEB_CALL_CAPACITY_EXCEEDED', 503]),
  responses: answerOf(named('WebCallSession', WebCallSession), 'What a browser needs to join the call.', {
    callId: '01980a5e-9b02-7c3f-8a21-3c4d5e6f7081',
    sessionId: '01980a5e-9b02-7c3f-8a21-3c4d5e6f7082',
    signalingUrl: 'wss://voice.example.com/v1/signaling',
    token: 'Zk1QbXh0c2Z6a2VwbHF3b3J0eXVpb3Bhc2RmZ2hqa2w',
    iceServers: [{ urls: ['stun:stun.example.com'] }],
    expiresAt: '2026-01-01T12:02:00.000Z',
  }),
})

export function addWebCallRoutes(app: Api, { createWebCall, iceServers, publicUrl, signalingUrl }: ApiDeps): void {
  app.openapi(create, async (c) => {
    const once = await onceOf(c, create.operationId, c.req.valid('header')['Idempotency-Key'])
    const created = await createWebCall(c.get('accountId'), c.req.valid('json'), once, traceOf(c.req.raw))
    return c.json(
      sessionOf(created, signalingUrl ?? signalingUrlOf(publicUrlOf(publicUrl, c.req.raw)), iceServers()),
      200,
    )
  })
}

/** What a proxy on this machine adds: whoever is behind it is not on this machine. */
const proxyHeaders = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip', 'via'] as const

/**
 * Takes the place of an integrator's own server, so that no key ever reaches the page. It answers this machine's own browsers and
 * only the page of this very host: neither other sites nor names that were rebound to a loopback address. A forwarder on this machine that
 * adds no header (ssh -R, a tunnel) looks like such a browser; whoever is behind it does not know the token of the page's address.
 */
export function addDemoRoute(app: Api, { createWebCall, iceServers, demo }: ApiDeps): void {
  if (!demo) return
  app.post('/demo/session', async (c) => {
    const host = c.req.header('host') ?? new URL(c.req.url).host
    const origin = c.req.header('origin')
    const own = origin === undefined || (URL.canParse(origin) && new URL(origin).host === host)
    const forwarded = proxyHeaders.some((name) => c.req.header(name) !== undefined)
    if (forwarded || !isLoopback(c.env.info.remoteAddress) || !isLoopbackHost(host) || !own)
      throw new Problem('ORIGIN_NOT_ALLOWED', 'The demo answers its own page on this machine only.')
    if (demo.token !== undefined && !isSameSecret(c.req.query('token') ?? '', demo.token))
      throw new Problem(
        'UNAUTHORIZED',
        'The demo needs the token of the address that npm start printed: open that one.',
      )
    const allowedOrigins = origin === undefined ? {} : { allowedOrigins: [origin] }
    const created = await createWebCall(demo.accountId, { workerId: demo.workerId, ...allowedOrigins })
    return c.json(sessionOf(created, signalingUrlOf(publicUrlOf(null, c.req.raw)), iceServers()), 200)
  })
}

/** Digests are of one length, so the comparison tells nothing of either. */
const isSameSecret = (given: string, expected: string): boolean => timingSafeEqual(digestOf(given), digestOf(expected))
const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest()

function sessionOf(
  created: CreatedWebCall,
  signalingUrl: string,
  iceServers: WebCallSession['iceServers'],
): WebCallSession {
  const { callId, sessionId, token, expiresAt } = created
  return { callId, sessionId, signalingUrl, token, iceServers, expiresAt }
}
