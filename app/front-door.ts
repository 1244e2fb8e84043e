/** Owns the wiring of everything that faces outward: signaling socket, page and API behind one listener. */
import { createReplayCheck } from '../actors/call/check-replay.ts'
import type { FailureGuard } from '../net/failure-guard.ts'
import { isLoopback } from '../net/addresses.ts'
import { networksOf } from '../net/networks.ts'
import { createApi, createRim } from '../api/api.ts'
import type { ApiDeps } from '../api/deps.ts'
import { createRequestLimit, emptyFor, setRateLimitHeaders, type RequestLimit } from '../api/rate-limit.ts'
import { renderTooLarge } from '../api/render.ts'
import { requestIdOf } from '../api/standard-headers.ts'
import { maxFormBytes, takesFiles } from '../api/upload-form.ts'
import { createClientAddress } from '../gateway/listener/client-address.ts'
import { listen, type ListenOptions } from '../gateway/listener/listen.ts'
import { createPage } from '../gateway/page.ts'
import { createSignaling, signalingPath, type Signaling } from '../gateway/signaling.ts'
import { createPageSessions } from '../mcp/people/people.ts'
import type { AccountId, WorkerId } from '../model/ids.ts'
import type { Fetch, Listener, RequestInfo } from '../model/listener.ts'
import type { Log } from '../model/log.ts'
import { errorBodyOf, Problem } from '../model/problem.ts'
import { databaseUnreachable } from '../store/database-unreachable.ts'
import { trunksSubject } from '../model/telephony.ts'
import { createAudit } from '../store/audit.ts'
import { removalWithin } from '../store/removals.ts'
import { createTrunks } from '../store/trunks.ts'
import type { CallSide } from './call-side.ts'
import { presetVariable, type Config } from './config.ts'
import type { Core } from './core.ts'
import { connectionsWithin, openFilesLimit } from './descriptors.ts'
import { atHttpPort } from './failing-places.ts'
import { createIceServers } from './ice-servers.ts'
import { openMcpSide } from './mcp-side.ts'
import type { MediaSide } from './media-side.ts'
import type { ReadinessOfProcess } from './readiness.ts'
import { openScriptCheck } from './script-check.ts'
import { notesOf } from './unset-notes.ts'

const maxBodyBytes = 1024 * 1024
const requestTimeout = 30_000

/** `token`: without it the page opens no call. */
export type Demo = { readonly accountId: AccountId; readonly workerId: WorkerId; readonly token?: string }

type Parts = {
  readonly core: Core
  readonly config: Config
  readonly calls: CallSide
  readonly media: MediaSide
  readonly demo: Demo | null
  readonly guard: FailureGuard
  readonly readiness: Pick<ReadinessOfProcess, 'read'>
  /** What is answered before anything else; null: it is not for it. */
  readonly beside: { answer(request: Request): Fetch | null }
}

export type FrontDoor = Pick<Listener, 'port'> & {
  /** Browsers go on with their calls at another process; resolves when none is left. */
  handOn(): Promise<void>
  /** Browsers in a call that have not heard yet that it is over. */
  sessions(): number
}

/** Of a process that leaves browsers and REST to others, too: it is asked how it does. */
export async function openFrontDoor(deps: Parts, closing: AsyncDisposableStack): Promise<FrontDoor> {
  const { core, config, guard, beside } = deps
  const { clock } = core
  const isProxy = networksOf(config.trustedProxies).includes
  const { joinLimits, listenerLimits } = limitsOf(config, isProxy)
  const signaling = config.roles.has('gateway') ? openSignaling(deps, joinLimits, closing) : null

  const limit = createRequestLimit(config.rateLimits, clock, guard)
  const clientAddress = createClientAddress(isProxy)
  const clientOf = (request: Request, info: RequestInfo): RequestInfo => ({
    ...info,
    remoteAddress: clientAddress(request, info.remoteAddress),
  })
  const { ask, people } = await openAnswers(deps, limit, closing)
  const options: ListenOptions = {
    host: config.host,
    port: config.port,
    tls: config.tls,
    driver: config.httpDriver,
    presetVariable,
    maxBodyBytes,
    maxBodyBytesFor: (method, path) => (takesFiles(method, path) ? maxFormBytes : null),
    requestTimeout,
    ...listenerLimits,
    clock,
    async fetch(request, info) {
      const client = clientOf(request, info)
      const refusal = signaling?.otherVersion(request) ?? null
      if (refusal) setRateLimitHeaders(refusal, limit.ofAddress(client))
      return refusal ?? (beside.answer(request) ?? ask)(request, client)
    },
    tooLarge: (request, info) => renderTooLarge(request, core.newId, { limit, info: clientOf(request, info) }),
    sockets: signaling
      ? {
          [signalingPath]: {
            ...signaling.route,
            upgrade: telling(limit, signaling.route.upgrade, clientOf),
          },
        }
      : {},
  }
  const listener = await atHttpPort(config, () => listen(options))
  closing.defer(() => listener.close(0))
  // Before the listener: who listens to a stream is told that it ends.
  closing.defer(() => people.close())
  // The same for browsers in a call.
  closing.defer(async () => signaling?.close())
  return { port: listener.port, sessions: () => signaling?.sessions() ?? 0, handOn: async () => signaling?.handOn() }
}

type Upgrade = Signaling['route']['upgrade']
type ClientOf = (request: Request, info: RequestInfo) => RequestInfo

/** A browser that is refused is told what its address has left, as by any answer; one that sent too many tokens, that it is nothing for so long. */
const telling =
  (limit: RequestLimit, upgrade: Upgrade, clientOf: ClientOf): Upgrade =>
  async (request, info) => {
    const client = clientOf(request, info)
    const decision = await upgrade(request, client)
    if (decision.accept) return decision
    const left = limit.ofAddress(client)
    const { status, headers } = decision.response
    const wait = Number(headers.get('retry-after')) * 1000
    setRateLimitHeaders(decision.response, left && status === 429 ? emptyFor(wait, left) : left)
    return decision
  }

function openSignaling(
  { core, calls, media, guard }: Parts,
  joinLimits: ReturnType<typeof limitsOf>['joinLimits'],
  closing: AsyncDisposableStack,
): Signaling {
  const { clock, log, bus } = core
  const signaling = createSignaling({
    admission: calls.admission,
    bus,
    openMedia: media.openWeb,
    keep: (callId, ladder) => calls.telephony.ladder?.(callId, ladder),
    errorOf: (error, requestId) => errorBodyOf(problemOf(error, requestId, log), requestId),
    log,
    clock,
    newRequestId: core.newId,
    guard,
    joinLimits,
  })
  closing.defer(() => signaling.close())
  return signaling
}

const nobody = { beside: [], sessions: null, close: async () => undefined }

/** What is answered to requests: the API, and people and their clients beside it. */
async function openAnswers(deps: Parts, limit: RequestLimit, closing: AsyncDisposableStack) {
  const { core, config } = deps
  const audit = createAudit({ ...core, sql: core.requests })
  closing.defer(() => audit.close())
  const checkScript = await openScriptCheck()
  const people = config.roles.has('mcp') ? openMcpSide({ ...deps, limit, audit, checkScript }) : nobody
  closing.defer(() => people.close())
  const sessions = people.sessions ?? createPageSessions({ ...core, sql: core.requests, publicUrl: config.publicUrl })
  const isForBrowsers = config.roles.has('gateway')
  const supervise = deps.calls.openSupervision(isForBrowsers ? deps.media.openSupervisor : null)
  closing.defer(() => supervise.close())
  return { people, ask: openFetch(deps, limit, { checkScript, beside: people.beside, audit, sessions, supervise }) }
}

function limitsOf({ connections, maxBodyBytesInFlight, rateLimits }: Config, isProxy: (address: string) => boolean) {
  const { inAll, perAddress, webCallsPerAddress } = connections
  // A proxy that nobody named is most often on this machine.
  const isExempt = (address: string): boolean => isLoopback(address) || isProxy(address)
  const maxConnections = connectionsWithin(openFilesLimit(), { http: inAll, sip: 0 }).http
  return {
    joinLimits: { triesPerMinute: rateLimits.perAddress, maxCallsPerAddress: webCallsPerAddress, isExempt },
    listenerLimits: { maxConnections, maxConnectionsPerAddress: perAddress, isExempt, maxBodyBytesInFlight },
  }
}

type Beyond = Pick<ApiDeps, 'checkScript' | 'beside' | 'audit' | 'sessions' | 'supervise'>

function openFetch({ core, config, calls, demo, readiness }: Parts, limit: RequestLimit, beyond: Beyond): Fetch {
  const page = config.roles.has('gateway') ? createPage() : noPage
  const deps = {
    ...core,
    ...calls,
    sql: core.requests,
    callSql: core.sql,
    trunks: createTrunks({
      removalWithin,
      ...core,
      sql: core.requests,
      changed: () => core.bus.publish(trunksSubject, new Uint8Array()),
    }),
    checkReplay: createReplayCheck({ ...core, sql: core.requests }),
    mayClaimNumbers: config.mayClaimNumbers,
    ...beyond,
    iceServers: createIceServers(config.turn, core.clock),
    publicUrl: config.publicUrl,
    prices: config.prices,
    signalingUrl: config.signalingUrl,
    readiness: readiness.read,
    rateLimits: config.rateLimits,
    notes: notesOf(config, core),
    demo: config.demo ? demo : null,
  }
  const api = config.roles.has('api') ? createApi(deps, limit) : createRim(deps, limit)
  return async (request, info) => {
    const file = page(request)
    if (!file) return api(request, info)
    setRateLimitHeaders(file, limit.ofAddress(info))
    file.headers.set('x-request-id', requestIdOf(request, core.newId))
    return file
  }
}

const noPage = (): null => null

/** What a signaling socket is told of a bug: that there was one, and the request id to find it by. */
function problemOf(error: unknown, requestId: string, log: Log): Problem {
  if (error instanceof Problem) return error
  log.error('a signaling message failed', { requestId, error })
  if (databaseUnreachable(error))
    return new Problem('SERVICE_UNAVAILABLE', 'The service is not available. Try again soon.')
  return new Problem('INTERNAL', 'Something went wrong on our side.')
}
