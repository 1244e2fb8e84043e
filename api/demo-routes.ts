/**
 * Owns what the demonstration page asks for without a key: a session, and what came of its call. It takes the place of an integrator's own server, so that
 * no key ever reaches the page.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { Context } from 'hono'
import { notFound, Problem } from '../model/problem.ts'
import { toPhoneCall } from '../model/phone-call.ts'
import { recordingKeyIn } from '../model/recording-store.ts'
import { isLoopback } from '../net/addresses.ts'
import { isLoopbackHost } from '../net/loopback-host.ts'
import { publicUrlOf, signalingUrlOf } from '../net/public-url.ts'
import { findCall } from '../store/calls.ts'
import { idOf } from './authenticate.ts'
import type { Api, ApiDeps, ApiEnv } from './deps.ts'
import { linkLifetime, recordingLinkOf } from './recording-link.ts'
import { sessionOf } from './web-call-routes.ts'

/** What a proxy on this machine adds: whoever is behind it is not on this machine. */
const proxyHeaders = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip', 'via'] as const

export function addDemoRoutes(app: Api, deps: ApiDeps): void {
  const { demo } = deps
  if (!demo) return
  app.post('/demo/session', async (c) => {
    requireOwnPage(c, demo.token)
    const origin = c.req.header('origin')
    const allowedOrigins = origin === undefined ? {} : { allowedOrigins: [origin] }
    const created = await deps.createWebCall(demo.accountId, { workerId: demo.workerId, ...allowedOrigins })
    return c.json(sessionOf(created, signalingUrlOf(publicUrlOf(null, c.req.raw)), deps.iceServers()), 200)
  })
  app.get('/demo/calls/:callId', async (c) => {
    requireOwnPage(c, demo.token)
    const call = await findCall(deps.sql, demo.accountId, idOf<'call'>(c.req.param('callId')))
    if (call?.workerId !== demo.workerId || call.transport !== 'webrtc') throw notFound()
    const { status, outcome, postProcessingStatus, duration, dimensions, nextAction, nextActionData } =
      toPhoneCall(call)
    const { recordingKey } = call
    const hasRecording =
      recordingKey !== null && (await deps.recordings.read(recordingKeyIn('wav', recordingKey))) !== null
    const recordingUrl = hasRecording
      ? recordingLinkOf(
          deps.recordingUrlKey,
          { accountId: demo.accountId, callId: call.id },
          deps.clock.now() + linkLifetime,
        )
      : null
    return c.json(
      { status, outcome, postProcessingStatus, duration, dimensions, nextAction, nextActionData, recordingUrl },
      200,
    )
  })
}

/**
 * It answers this machine's own browsers and only the page of this very host: neither other sites nor names that were rebound to a loopback
 * address. A forwarder on this machine that adds no header (ssh -R, a tunnel) looks like such a browser; whoever is behind it does not know the
 * token of the page's address.
 */
function requireOwnPage(c: Context<ApiEnv>, token: string | undefined): void {
  const host = c.req.header('host') ?? new URL(c.req.url).host
  const origin = c.req.header('origin')
  const own = origin === undefined || (URL.canParse(origin) && new URL(origin).host === host)
  const forwarded = proxyHeaders.some((name) => c.req.header(name) !== undefined)
  if (forwarded || !isLoopback(c.env.info.remoteAddress) || !isLoopbackHost(host) || !own)
    throw new Problem('ORIGIN_NOT_ALLOWED', 'The demo answers its own page on this machine only.')
  if (token !== undefined && !isSameSecret(c.req.query('token') ?? '', token))
    throw new Problem('UNAUTHORIZED', 'The demo needs the token of the address that npm start printed: open that one.')
}

/** Digests are of one length, so the comparison tells nothing of either. */
const isSameSecret = (given: string, expected: string): boolean => timingSafeEqual(digestOf(given), digestOf(expected))
const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest()
