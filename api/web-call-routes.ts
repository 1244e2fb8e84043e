/** Owns the route that creates web calls. docs/contract/rest.md "Web calls". */
import { createRoute, z } from '@hono/zod-openapi'
import { WebCallRequest, WebCallSession, type CreatedWebCall } from '../model/web-call.ts'
import type { Api, ApiDeps } from './deps.ts'
import { OnceHeaders, onceOf } from './once.ts'
import { answerOf, bodyOf, named, needs, refusing, security } from './openapi.ts'
import { signalingUrlFor } from '../net/public-url.ts'
import { readJson } from './read-json.ts'
import { askedBy } from './standard-headers.ts'

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
    const created = await createWebCall(c.get('accountId'), c.req.valid('json'), once, askedBy(c.req.raw, c.env))
    return c.json(sessionOf(created, signalingUrlFor({ signalingUrl, publicUrl }, c.req.raw), iceServers()), 200)
  })
}

export function sessionOf(
  created: CreatedWebCall,
  signalingUrl: string,
  iceServers: WebCallSession['iceServers'],
): WebCallSession {
  const { callId, sessionId, token, expiresAt } = created
  return { callId, sessionId, signalingUrl, token, iceServers, expiresAt }
}
