/** A stage for the front door: real listener, bus and WebRTC peers, with tokens in memory and a leg that echoes. */
import type { Test } from 'tap'
import { systemClock } from '../../app/clock.ts'
import { createLocalBus } from '../../actors/bus/local-bus.ts'
import { presetVariable } from '../../app/config.ts'
import { listen } from '../../gateway/listener/listen.ts'
import type { JoinLimits } from '../../gateway/join-guard.ts'
import { createSignaling } from '../../gateway/signaling.ts'
import { createWebMedia, type WebLeg } from '../../gateway/web-media.ts'
import { subjectsOf, type Bus } from '../../model/bus.ts'
import { toId, type CallId } from '../../model/ids.ts'
import type { SocketConnection, SocketRoute } from '../../model/listener.ts'
import type { MessageLadder } from '../../model/message-ladder.ts'
import { errorBodyOf, Problem } from '../../model/problem.ts'
import type { FailureGuard } from '../../net/failure-guard.ts'
import type { RtpTransport } from '../../model/rtp-transport.ts'
import type { Admission, Admitted } from '../../model/web-call.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { openWebPeers } from './web-peers.ts'

export const callId = toId<'call'>('01900000-0000-7000-8000-000000000001') as CallId

/** Single-use tokens in memory; `good` and every later resume token admit once. */
function createAdmission() {
  const tokens = new Map([
    ['good', 'session-1'],
    ['other', 'session-2'],
  ])
  let made = 0
  const questions: string[] = []
  const take = async (token: string, origin: string | null): Promise<Admitted | Problem> => {
    questions.push(token)
    const sessionId = tokens.get(token)
    if (sessionId === undefined) return new Problem('UNAUTHORIZED', 'The token is not known.')
    if (origin === 'https://evil.example') return new Problem('ORIGIN_NOT_ALLOWED', 'This origin may not call.')
    tokens.delete(token)
    const resumeToken = `resume-${(made += 1)}`
    tokens.set(resumeToken, sessionId)
    return { callId, sessionId, resumeToken }
  }
  /** Resume tokens of calls that are over, and how they ended. */
  const over = new Map<string, string>()
  /** What a client that comes from another process is told. */
  const arrivals = { refusal: null as Problem | null }
  const admission: Admission = {
    admit: take,
    async resume(token, origin) {
      const ended = over.get(token)
      return ended === undefined ? take(token, origin) : { ended }
    },
    arrive: async () => arrivals.refusal,
    isOurs: async (token) => token === 'used',
  }
  return { ...admission, tokens, questions, arrivals, over }
}

/** A leg that sends back what it hears and notes what it is told. */
function createEchoLeg(onClosed: (reason?: string) => void): WebLeg & { heard: string[]; end(reason: string): void } {
  const heard: string[] = []
  let transport: RtpTransport | null = null
  let isClosed = false
  async function close(reason?: string): Promise<void> {
    if (isClosed) return
    isClosed = true
    await transport?.close()
    onClosed(reason)
  }
  return {
    heard,
    handlers: {
      negotiated: ({ codec }) => void heard.push(`negotiated ${codec}`),
      connected: (status) => void heard.push(`connected ${status}`),
      packet: (packet) => transport?.send(packet),
      disconnected(cause) {
        heard.push(`disconnected ${cause}`)
        void close()
      },
    },
    attach: (attached) => void (transport = attached),
    dtmf: (digit) => void heard.push(`dtmf ${digit}`),
    typed: (text) => void heard.push(`typed ${text}`),
    hangUp: async (details) => void heard.push(`hang up: ${details}`),
    close: () => close(),
    end: (reason) => void close(reason),
  }
}

type StageOptions = {
  readonly maxSessions?: number
  readonly fetch?: (request: Request) => Promise<Response>
  readonly guard?: FailureGuard
  readonly joinLimits?: Partial<JoinLimits>
  readonly firstMessageWithin?: number
  readonly bus?: Bus
  /** Another process of the same service: the bus to it, and the tokens that it knows. */
  readonly beside?: { readonly bus: Bus; readonly admission: ReturnType<typeof createAdmission> }
}

export async function setUpStage(
  t: Test,
  { maxSessions = 10, fetch, guard, joinLimits, firstMessageWithin, bus: given, beside }: StageOptions = {},
) {
  const log = createQuietLog()
  const clock = createHandClock()
  const bus = beside?.bus ?? given ?? createLocalBus({ log, clock })
  const admission = beside?.admission ?? createAdmission()
  const peers = openWebPeers(log)
  const legs: ReturnType<typeof createEchoLeg>[] = []
  const connections: SocketConnection[] = []
  const ladders: MessageLadder[] = []
  let requests = 0
  const createLeg = (_callId: CallId, onClosed: (reason?: string) => void): WebLeg => {
    const leg = createEchoLeg(onClosed)
    legs.push(leg)
    return leg
  }
  const signaling = createSignaling({
    admission,
    bus,
    keep: (_callId, ladder) => void ladders.push(ladder),
    openMedia: (callId, events) =>
      createWebMedia(callId, { clock, createPeer: peers.createPeer, createLeg, ...events }),
    errorOf: (error, requestId) =>
      errorBodyOf(error instanceof Problem ? error : new Problem('INTERNAL', 'Something failed.'), requestId),
    log,
    clock,
    newRequestId: () => `request-${beside ? 'b' : 'a'}-${(requests += 1)}`,
    maxSessions,
    ...(guard && { guard }),
    ...(joinLimits && { joinLimits }),
    ...(firstMessageWithin !== undefined && { firstMessageWithin }),
  })
  const listener = await listen({
    driver: 'node',
    presetVariable,
    host: '127.0.0.1',
    port: 0,
    tls: null,
    maxBodyBytes: 1024,
    requestTimeout: 5000,
    clock: systemClock,
    fetch: fetch ?? (async (request) => signaling.otherVersion(request) ?? new Response(null, { status: 404 })),
    tooLarge: () => new Response(null, { status: 413 }),
    sockets: { '/v1/signaling': noted(signaling.route, connections) },
  })
  t.teardown(async () => {
    await signaling.close()
    await peers.close()
    await listener.close(0)
    if (!beside) await bus.close()
  })
  const url = `ws://127.0.0.1:${listener.port}/v1/signaling`
  const say = (message: unknown) => bus.publish(subjectsOf(callId).signal, Buffer.from(JSON.stringify(message)))
  return { url, port: listener.port, admission, signaling, clock, bus, legs, connections, ladders, say, log }
}

/** The same route, and every connection it opens is noted. */
const noted = (route: SocketRoute, connections: SocketConnection[]): SocketRoute => ({
  ...route,
  async upgrade(request, info) {
    const decision = await route.upgrade(request, info)
    if (!decision.accept) return decision
    return {
      ...decision,
      open(connection) {
        connections.push(connection)
        return decision.open(connection)
      },
    }
  },
})
