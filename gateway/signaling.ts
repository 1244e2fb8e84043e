/**
 * Owns the signaling socket at /v1/signaling: who may upgrade, what a text frame may be, and how many of them. Each client's
 * conversation is a WebSession. docs/contract/signaling.md "Joining" and "Limits of the socket".
 */
import type { Bus } from '../model/bus.ts'
import type { Clock } from '../model/clock.ts'
import type { CallId } from '../model/ids.ts'
import type { RequestInfo, SocketConnection, SocketDecision, SocketHandlers, SocketRoute } from '../model/listener.ts'
import type { Log } from '../model/log.ts'
import { issuesOf } from '../model/issues.ts'
import { Problem, type ErrorBody } from '../model/problem.ts'
import type { CreateWebPeer } from '../model/rtp-transport.ts'
import { ClientMessage, maxSignalingFrameBytes } from '../model/signaling.ts'
import type { Admission, Admitted } from '../model/web-call.ts'
import type { FailureGuard } from '../net/failure-guard.ts'
import { createRateLimit, perSecond } from '../net/token-bucket.ts'
import { createWebMedia, type CreateWebLeg, type WebMedia } from './web-media.ts'
import { createWebSession, type WebSession } from './web-session.ts'

export type SignalingDeps = {
  readonly admission: Admission
  readonly bus: Bus
  readonly createPeer: CreateWebPeer
  readonly createLeg: CreateWebLeg
  /** Renders what was thrown, and logs it unless it is a Problem. */
  errorOf(error: unknown, requestId: string): ErrorBody
  readonly log: Log
  readonly clock: Clock
  newRequestId(): string
  /** More are refused with 503. */
  readonly maxSessions?: number
  /** Against addresses that make tokens up; without it each is looked at. */
  readonly guard?: Pick<FailureGuard, 'looksAt' | 'failed'>
}

export type Signaling = {
  readonly route: SocketRoute
  sessions(): number
  /** Refuses new clients, closes the media that is left, then the sockets. Idempotent. */
  close(): Promise<void>
}

const maxTokenLength = 200
const maxBufferedBytes = 1024 * 1024
const maxMessagesPerSecond = 100
const maxBadMessages = 20
const policyViolation = 1008
const goingAway = 1001

export function createSignaling(deps: SignalingDeps): Signaling {
  const { maxSessions = 1000 } = deps
  const sessions = new Map<string, WebSession>()
  const medias = new Set<WebMedia>()
  let isClosed = false

  const errorOf = (error: unknown): ErrorBody => deps.errorOf(error, deps.newRequestId())
  const failed = (error: unknown): void => deps.log.error('a web leg failed to end', { error })

  function createMedia(callId: CallId, legClosed: (reason: string) => void): WebMedia {
    const { createPeer, createLeg } = deps
    const gone = (): boolean => medias.delete(media)
    const media = createWebMedia(callId, { createPeer, createLeg, legClosed, failed, gone })
    medias.add(media)
    return media
  }

  function createSession({ callId, sessionId }: Admitted): WebSession {
    const session = createWebSession(callId, {
      bus: deps.bus,
      clock: deps.clock,
      log: deps.log,
      errorOf,
      createMedia: (legClosed) => createMedia(callId, legClosed),
      ended: () => sessions.delete(sessionId),
    })
    sessions.set(sessionId, session)
    return session
  }

  /** Throws for an address that has made too many up. */
  async function admitted(address: string, token: string, ask: () => Promise<Admitted | Problem>): Promise<Admitted> {
    const sender = { address, isProven: true }
    if (deps.guard?.looksAt(sender) === false) throw tooMany()
    const result = await ask()
    const isGuess = result instanceof Problem && result.type === 'UNAUTHORIZED' && !(await deps.admission.isOurs(token))
    if (isGuess && deps.guard?.failed(sender, 'wrong_token') === false) throw tooMany()
    if (result instanceof Problem) throw result
    return result
  }

  async function admit(url: URL, origin: string | null, { remoteAddress }: RequestInfo): Promise<SocketDecision> {
    const token = tokenOf(url, 'token')
    const resumeToken = tokenOf(url, 'resume')
    if (isClosed || (token !== null && sessions.size >= maxSessions))
      throw new Problem('SERVICE_UNAVAILABLE', 'No more web calls can be taken at the moment.')
    if (token !== null) {
      const joined = await admitted(remoteAddress, token, () => deps.admission.admit(token, origin))
      return acceptAs(createSession(joined), joined, null, deps.clock)
    }
    if (resumeToken === null) throw new Problem('UNAUTHORIZED', 'A token is required.')
    const resumed = await admitted(remoteAddress, resumeToken, () => deps.admission.resume(resumeToken, origin))
    const session = sessions.get(resumed.sessionId)
    if (!session) throw new Problem('UNAUTHORIZED', 'There is nothing to come back to.')
    return acceptAs(session, resumed, receivedOf(url), deps.clock)
  }

  async function upgrade(request: Request, info: RequestInfo): Promise<SocketDecision> {
    try {
      return await admit(new URL(request.url), request.headers.get('origin'), info)
    } catch (error) {
      return { accept: false, response: refusalOf(errorOf(error)) }
    }
  }

  return {
    route: { upgrade, maxFrameBytes: maxSignalingFrameBytes, maxBufferedBytes },
    sessions: () => sessions.size,
    async close() {
      isClosed = true
      await Promise.all([...medias].map((media) => media.close()))
      for (const session of sessions.values()) session.end('service_stopping', goingAway)
    },
  }
}

const acceptAs = (session: WebSession, admitted: Admitted, received: number | null, clock: Clock): SocketDecision => ({
  accept: true,
  open(connection) {
    session.open(connection, admitted, received)
    return handlersOf(session, connection, clock)
  },
})

/** One socket's messages, in order, until it offends too often. The call itself goes on without it. */
function handlersOf(session: WebSession, connection: SocketConnection, clock: Clock): SocketHandlers {
  const maySay = createRateLimit(perSecond(maxMessagesPerSecond))
  let badMessages = 0

  function message(text: string): void {
    if (!maySay(clock.now())) return connection.close(policyViolation, 'too many messages')
    try {
      session.receive(toClientMessage(text))
    } catch (error) {
      session.fail(error)
      badMessages += 1
      if (badMessages >= maxBadMessages) connection.close(policyViolation, 'too many bad messages')
    }
  }
  return { message, closed: (code) => session.dropped(connection, code) }
}

function toClientMessage(text: string): ClientMessage {
  const given = jsonOf(text)
  const message = ClientMessage.safeParse(given)
  if (message.success) return message.data
  throw new Problem('VALIDATION_FAILED', 'The message is not understood.', issuesOf(message.error, given))
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw Object.assign(new Problem('INVALID_JSON', 'The message is no JSON.'), { cause })
  }
}

const tooMany = (): Problem => new Problem('RATE_LIMITED', 'Too many tokens that are none. Try again later.')

function tokenOf(url: URL, name: string): string | null {
  const token = url.searchParams.get(name)
  return token !== null && token.length <= maxTokenLength ? token : null
}

/** `&received=<n>`: how many status, transcript, interrupted and error messages the returning client has got. */
function receivedOf(url: URL): number | null {
  const received = url.searchParams.get('received') ?? ''
  return /^\d{1,9}$/.test(received) ? Number(received) : null
}

function refusalOf(body: ErrorBody): Response {
  const retry = body.statusCode === 503 || body.statusCode === 429 ? { 'retry-after': '5' } : {}
  return Response.json(body, { status: body.statusCode, headers: { 'cache-control': 'no-store', ...retry } })
}
