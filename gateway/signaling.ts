/**
 * Owns the signaling socket at /v1/signaling: who may upgrade, what a text frame may be, and how many of them. Each client's
 * conversation is a WebSession. docs/contract/signaling.md "Joining" and "Limits of the socket".
 */
import { subjectsOf, type Bus } from '../model/bus.ts'
import { fromBytes } from '../model/bus-json.ts'
import type { Clock } from '../model/clock.ts'
import type { CallId } from '../model/ids.ts'
import type { RequestInfo, SocketConnection, SocketDecision, SocketHandlers, SocketRoute } from '../model/listener.ts'
import type { Log } from '../model/log.ts'
import { issuesOf } from '../model/issues.ts'
import { Problem, type ErrorBody } from '../model/problem.ts'
import type { OpenWebMedia, WebMedia } from '../media/plane/media-plane.ts'
import type { MessageLadder } from '../model/message-ladder.ts'
import { ClientMessage, maxSignalingFrameBytes, SessionMoved, type ServerMessage } from '../model/signaling.ts'
import type { Admission, Admitted } from '../model/web-call.ts'
import type { FailureGuard } from '../net/failure-guard.ts'
import { createRecent } from '../net/recent.ts'
import { createRateLimit, perSecond } from '../net/token-bucket.ts'
import { createJoinGuard, defaultJoinLimits, type JoinLimits } from './join-guard.ts'
import { createSignalingTrail, type SocketPlace } from './signaling-trail.ts'
import { createWebSession, type WebSession, type WebSessionDeps } from './web-session.ts'

export type SignalingDeps = {
  readonly admission: Admission
  readonly bus: Bus
  readonly openMedia: OpenWebMedia
  /** The messages of a session that is over. Never throws, never waits. Absent: they are not kept. */
  keep?(callId: CallId, ladder: MessageLadder): void
  /** Renders what was thrown, and logs it unless it is a Problem. */
  errorOf(error: unknown, requestId: string): ErrorBody
  readonly log: Log
  readonly clock: Clock
  newRequestId(): string
  /** More are refused with 503. */
  readonly maxSessions?: number
  /** Against addresses that make tokens up; without it each is looked at. */
  readonly guard?: Pick<FailureGuard, 'looksAt' | 'failed'>
  readonly joinLimits?: Partial<JoinLimits>
  /** Ms in which a client that has joined must say something; it is closed with 1008 otherwise. */
  readonly firstMessageWithin?: number
}

export type Signaling = {
  readonly route: SocketRoute
  /** What is answered to who asks for the socket by a version of the protocol that nobody here speaks; null: they do not. RFC 6455 section 4.4. */
  otherVersion(request: Request): Response | null
  sessions(): number
  /** Lets nobody in any more, and has all clients go on at another process; resolves when none is left here. */
  handOn(): Promise<void>
  /** Refuses new clients, closes the media that is left, then the sockets. Idempotent. */
  close(): Promise<void>
}

export const signalingPath = '/v1/signaling'

const maxTokenLength = 200
const maxBufferedBytes = 1024 * 1024
const maxMessagesPerSecond = 100
const maxBadMessages = 20
/** Sessions. */
const maxRemembered = 5_000
const policyViolation = 1008
/** The call itself waits 30 s for its media. */
const patience = 20_000
const goingAway = 1001

export function createSignaling(deps: SignalingDeps): Signaling {
  const { maxSessions = 1000 } = deps
  const joinGuard = createJoinGuard(
    { isOurs: deps.admission.isOurs, guard: deps.guard ?? null, now: deps.clock.now },
    { ...defaultJoinLimits, ...deps.joinLimits },
  )
  const sessions = new Map<string, WebSession>()
  /** Ended here, lately: there is nothing to come back to. */
  const over = createRecent<true>(maxRemembered)
  /** Sessions whose clients have said something: who comes back to one may be silent. */
  const spoken = new WeakSet<WebSession>()
  const medias = new Set<WebMedia>()
  let isClosed = false
  let nobodyLeft: (() => void) | null = null

  const errorOf = (error: unknown): ErrorBody => deps.errorOf(error, deps.newRequestId())
  const failed = (error: unknown): void => deps.log.error('a web leg failed to end', { error })

  /** `by`: its session came from another process. Once the next one does, the leg goes, and the call hears nothing of it. */
  function createMedia(callId: CallId, legClosed: (reason: string) => void, by: string | null): WebMedia {
    const gone = (): void => {
      medias.delete(media)
      moving.close()
    }
    const moving = deps.bus.subscribe(subjectsOf(callId).moved, ({ payload }) => {
      const told = SessionMoved.safeParse(fromBytes(payload)).data
      if (told && told.by !== by) media.close().catch(failed)
    })
    const media = deps.openMedia(callId, { legClosed, failed, gone }, by !== null)
    medias.add(media)
    return media
  }

  function createSession(
    { callId, sessionId }: Admitted,
    ended: () => void,
    moved: WebSessionDeps['moved'] = null,
  ): WebSession {
    const trail = createSignalingTrail(deps.clock)
    const session = createWebSession(callId, {
      trail,
      moved,
      bus: deps.bus,
      clock: deps.clock,
      log: deps.log,
      errorOf,
      createMedia: (legClosed) => createMedia(callId, legClosed, moved?.by ?? null),
      ended(isElsewhere) {
        sessions.delete(sessionId)
        if (!isElsewhere) over.set(sessionId, true)
        if (sessions.size === 0) nobodyLeft?.()
        deps.keep?.(callId, trail.take())
        ended()
      },
    })
    sessions.set(sessionId, session)
    return session
  }

  function acceptAs(session: WebSession, { admitted, received, place }: Accepted): SocketDecision {
    const { firstMessageWithin = patience } = deps
    return {
      accept: true,
      ...(!spoken.has(session) && { firstMessageWithin }),
      open(connection) {
        session.open({ connection, place }, admitted, received)
        return handlersOf(session, connection, { clock: deps.clock, heard: () => spoken.add(session) })
      },
    }
  }

  async function join(token: string, origin: string | null, { address, place }: Asking): Promise<SocketDecision> {
    const taken = joinGuard.take(address)
    try {
      const admitted = await joinGuard.admitted(address, token, () => deps.admission.admit(token, origin))
      return acceptAs(createSession(admitted, taken.give), { admitted, received: null, place })
    } catch (error) {
      taken.give()
      throw error
    }
  }

  /** The process that had it is gone, or behind another address: the call goes on here, with sound that begins anew. */
  async function comeFromElsewhere(address: string, resumed: Admitted, received: number): Promise<WebSession> {
    if (over.get(resumed.sessionId)) throw new Problem('UNAUTHORIZED', 'There is nothing to come back to.')
    requireRoom()
    const place = joinGuard.take(address)
    try {
      const refusal = await deps.admission.arrive()
      if (refusal) throw refusal
      requireRoom()
    } catch (error) {
      place.give()
      throw error
    }
    const cameTwice = sessions.get(resumed.sessionId)
    if (!cameTwice) return createSession(resumed, place.give, { by: deps.newRequestId(), received })
    place.give()
    return cameTwice
  }

  function requireRoom(): void {
    if (isClosed || sessions.size >= maxSessions)
      throw new Problem('SERVICE_UNAVAILABLE', 'No more web calls can be taken at the moment.')
  }

  async function admit(url: URL, origin: string | null, { remoteAddress }: RequestInfo): Promise<SocketDecision> {
    const token = tokenOf(url, 'token')
    const resumeToken = tokenOf(url, 'resume')
    if (isClosed || token !== null) requireRoom()
    const place = { local: hostOf(url), remote: portedOf(remoteAddress) }
    if (token !== null) return join(token, origin, { address: remoteAddress, place })
    if (resumeToken === null) throw new Problem('UNAUTHORIZED', 'A token is required.')
    const ask = () => deps.admission.resume(resumeToken, origin)
    const admitted = await joinGuard.admitted(remoteAddress, resumeToken, ask)
    if ('ended' in admitted) return tellEnd(admitted.ended)
    const received = receivedOf(url)
    const here = sessions.get(admitted.sessionId)
    const session = here ?? (await comeFromElsewhere(remoteAddress, admitted, received ?? 0))
    return acceptAs(session, { admitted, received, place })
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
    otherVersion(request) {
      if (!asksByOtherVersion(request)) return null
      const problem = new Problem('UPGRADE_REQUIRED', `The socket speaks version ${spokenVersion} of the protocol.`)
      return refusalOf(errorOf(problem), { 'sec-websocket-version': spokenVersion })
    },
    sessions: () => sessions.size,
    async handOn() {
      isClosed = true
      if (sessions.size === 0) return
      const left = new Promise<void>((resolve) => (nobodyLeft = resolve))
      for (const session of sessions.values()) session.part()
      await left
    },
    async close() {
      isClosed = true
      await Promise.all([...medias].map((media) => media.close()))
      for (const session of sessions.values()) session.end('service_stopping', goingAway)
    },
  }
}

/** Who asks to be let in. */
type Asking = { readonly address: string; readonly place: SocketPlace }
type Accepted = { readonly admitted: Admitted; readonly received: number | null; readonly place: SocketPlace }

const portedOf = (address: string): string => (address.includes(':') ? `[${address}]:0` : `${address}:0`)

const hostOf = ({ host, port, protocol }: URL): string =>
  port === '' ? `${host}:${protocol.endsWith('s:') ? 443 : 80}` : host

/** Who was away when its call ended hears of that. */
const tellEnd = (reason: string): SocketDecision => ({
  accept: true,
  open(connection) {
    connection.send(JSON.stringify({ type: 'bye', reason } satisfies ServerMessage))
    connection.close(1000, reason)
    return { message: () => undefined, closed: () => undefined }
  },
})

type Hearing = { readonly clock: Clock; heard(): void }

/** One socket's messages, in order, until it offends too often. The call itself goes on without it. */
function handlersOf(session: WebSession, connection: SocketConnection, { clock, heard }: Hearing): SocketHandlers {
  const maySay = createRateLimit(perSecond(maxMessagesPerSecond))
  let badMessages = 0

  function message(text: string): void {
    if (!maySay(clock.now())) return connection.close(policyViolation, 'too many messages')
    try {
      session.receive(toClientMessage(text))
      heard()
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

function tokenOf(url: URL, name: string): string | null {
  const token = url.searchParams.get(name)
  return token !== null && token.length <= maxTokenLength ? token : null
}

/** `&received=<n>`: how many status, transcript, interrupted and error messages the returning client has got. */
function receivedOf(url: URL): number | null {
  const received = url.searchParams.get('received') ?? ''
  return /^\d{1,9}$/.test(received) ? Number(received) : null
}

const spokenVersion = '13'

function asksByOtherVersion({ method, url, headers }: Request): boolean {
  const version = headers.get('sec-websocket-version')
  const asks = method === 'GET' && headers.get('upgrade')?.toLowerCase() === 'websocket'
  return asks && version !== null && version.trim() !== spokenVersion && new URL(url).pathname === signalingPath
}

function refusalOf(body: ErrorBody, more: Readonly<Record<string, string>> = {}): Response {
  const retry = body.statusCode === 503 || body.statusCode === 429 ? { 'retry-after': '5' } : {}
  const headers = { 'cache-control': 'no-store', 'x-request-id': body.requestId, ...retry, ...more }
  return Response.json(body, { status: body.statusCode, headers })
}
