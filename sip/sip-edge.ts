/**
 * Owns the telephone edge: calls that arrive and calls that are placed over SIP trunks, and the trunks themselves. It speaks SIP by one
 * code path, whether the server behind is the embedded one or a drachtio-server.
 */
import type { Bus, BusMessage } from '../model/bus.ts'
import { fromBytes, toBytes } from '../model/bus-json.ts'
import type { Clock } from '../model/clock.ts'
import { dialSubject, DialRequest, type DialReply } from '../model/dial.ts'
import type { Log } from '../model/log.ts'
import { trunksSubject, type Telephony } from '../model/telephony.ts'
import type { MediaPlane } from '../media/plane/media-plane.ts'
import { createAdmission } from './call/admit-arrival.ts'
import { createArrivals } from './call/arriving-call.ts'
import { placeCall } from './call/placed-call.ts'
import { askOver, type AskOverDeps } from './call/ask-over.ts'
import { tellPeer } from './call/heir.ts'
import { createDigestVerifier } from './digest-verifier.ts'
import { createCallLadder } from './call-ladder.ts'
import { createLiveCalls, type CallDeps } from './live-calls.ts'
import { answersOutsideCalls } from './other-requests.ts'
import { guardedRoutes } from './guarded-routes.ts'
import { createRealmPins } from './realm-pins.ts'
import type { Reply, RequestIn } from './stack-types.ts'
import { createDnsResolver, type Resolver } from './server/transport/dns-resolver.ts'
import type { ClientIdentities } from './server/transport/client-identities.ts'
import type { MayReach } from './server/transport/reachable-targets.ts'
import type { MessageTrail } from './message-trail.ts'
import { connectStack, type Control } from './stack.ts'
import type { Strangers } from './strangers.ts'
import { answerExaminations } from './trunk/answer-examination.ts'
import { createTrunkKeeper } from './trunk/trunk-keeper.ts'

export type SipEdgeDeps = {
  readonly control: Control
  readonly telephony: Telephony
  readonly bus: Bus
  readonly plane: Pick<MediaPlane, 'openPhone'>
  readonly clock: Clock
  readonly log: Log
  /** Of the embedded server; absent: SIP messages are not kept. */
  readonly trail?: MessageTrail
  /** Without it nobody is one. */
  readonly strangers?: Strangers
  readonly options?: SipEdgeOptions
}

export type SipEdgeOptions = {
  /** Ms until the SIP server must be there: 10 s. */
  readonly connectWithin?: number
  /** Ms that an inbound call may ring: 90 s. */
  readonly answerWithin?: number
  /** INVITEs that are looked at, at once: 500. */
  readonly maxPending?: number
  /** 0 ≤ x < 1. */
  readonly random?: () => number
  /** For the names that calls come from; absent: that of the system. */
  readonly resolver?: Resolver
  /** Those of the embedded server: it shows certificates of trunks. */
  readonly identities?: ClientIdentities
  /** A dialog of the embedded server goes on elsewhere: it is no more here, without a word to the peer. */
  readonly forget?: (dialogId: string) => void
  readonly onRefreshed?: CallDeps['onRefreshed']
  /** For a server that does not ask this itself; it sees addresses, and names only as names. */
  readonly mayReach?: MayReach
  /** False: the server keeps the 100 of a gateway to itself. */
  readonly tellsTrying?: boolean
  /** For a server that does not ask this itself: strangers whom nobody hears are refused, because such a server must have an answer. */
  readonly refusesStrangers?: boolean
}

export type SipEdge = {
  health(): SipHealth
  /** New calls are refused from now on, and none is placed. Idempotent. */
  stop(): void
  /** Calls whose telephones may be asked over are left to other edges, where there are some. Resolves when that is written down, or cannot be. */
  handOn(): Promise<void>
  /** Resolves when no call is left, or after `ms`. */
  drained(ms: number): Promise<void>
  /** New calls are refused from now on; those that run get `grace` ms to end, then they are hung up. Idempotent. */
  close(grace: number): Promise<void>
}

export type SipHealth = {
  /** To the SIP server. */
  readonly connected: boolean
  /** `udp/203.0.113.7:5060` and so on. */
  readonly listening: readonly string[]
  readonly calls: number
  readonly trunks: number
}

/** Edges share the calls that are to be placed. */
const queue = 'sip-edges'

/** Rejects when the SIP server is not there, or refuses the secret. */
export async function createSipEdge(deps: SipEdgeDeps): Promise<SipEdge> {
  const { telephony, bus, clock, log, strangers = everybodyIsKnown, options = {} } = deps
  const { random = Math.random } = options
  const { trail } = deps
  const ladder = trail ? createCallLadder({ trail, telephony, clock }) : null
  const liveCalls = createLiveCalls(ladder)
  let isStopping = false
  const stopping = () => isStopping
  const routes = {
    ...answersOutsideCalls(stopping),
    // The connection carries calls before it is known here that it does.
    invite: (invite: RequestIn, reply: Reply) =>
      void ready.promise.then(({ arrivals }) => arrivals.arrive(invite, reply)),
  }
  const ready = Promise.withResolvers<{ arrivals: ReturnType<typeof createArrivals> }>()
  const stack = await connect(deps, { routes, strangers })
  const pins = createRealmPins({ telephony, log })
  const calls = { ...callDepsOf(deps, { stack, liveCalls }), pins }
  const verifier = createDigestVerifier({ now: clock.now })
  const admission = createAdmission({ telephony, verifier, strangers })
  const { answerWithin = 90_000, maxPending = 500 } = options
  const arrivals = createArrivals({ ...calls, admission, isStopping: stopping, answerWithin, maxPending })
  const ownResolver = createDnsResolver()
  const { resolver = ownResolver, tellsTrying = true } = options
  const keeper = createTrunkKeeper({ telephony, stack, pins, resolver, clock, log, random })
  const placing = { ...calls, isStopping: stopping, health: keeper.health, tellsTrying }
  const dialing = bus.subscribe(
    dialSubject,
    answerDial((request) => placeCall(placing, request), log),
    { queue },
  )
  const examinations = answerExaminations({ ...deps, stack, pins, resolver, random })
  const heritage = openHeritage({ ...calls, isStopping: stopping, isEmbedded: options.identities !== undefined })
  const changes = bus.subscribe(trunksSubject, () => keeper.askSoon())
  ready.resolve({ arrivals })
  keeper.start()

  const stop = () => {
    isStopping = true
    dialing.close()
    changes.close()
    examinations.close()
  }
  const end = async (grace: number) => {
    stop()
    await liveCalls.drained(clock, grace)
    await liveCalls.close(clock)
    ladder?.close()
    await keeper.close()
    await heritage.close()
    await pins.written()
    ownResolver.close()
    await stack.close()
  }
  let closing: Promise<void> | null = null
  return {
    health: () => ({
      connected: stack.isConnected(),
      listening: stack.listening(),
      calls: liveCalls.size(),
      trunks: keeper.kept(),
    }),
    stop,
    handOn: heritage.handOn,
    drained: (ms) => liveCalls.drained(clock, ms),
    close: (grace) => (closing ??= end(grace)),
  }
}

type Served = { readonly routes: Parameters<typeof guardedRoutes>[0]; readonly strangers: Strangers }

/** To the SIP server, which gives this what comes. */
function connect(deps: SipEdgeDeps, { routes, strangers }: Served): ReturnType<typeof connectStack> {
  const { connectWithin = 10_000, mayReach, identities, refusesStrangers = false } = deps.options ?? {}
  return connectStack({
    ...deps,
    routes: refusesStrangers ? guardedRoutes(routes, strangers) : routes,
    connectWithin,
    answered: strangers.answered,
    ...(mayReach && { mayReach }),
    ...(identities && { identities }),
  })
}

const everybodyIsKnown: Strangers = {
  isKnown: () => true,
  admits: () => true,
  hears: () => true,
  challenged: () => undefined,
  wrongPassword: () => undefined,
  proved: () => undefined,
  guesses: { look: () => ({ wait: 0, right: () => undefined }) },
  answered: () => undefined,
}

function callDepsOf(deps: SipEdgeDeps, { stack, liveCalls }: Pick<CallDeps, 'stack' | 'liveCalls'>): CallDeps {
  const { telephony, bus, plane, clock, log } = deps
  const { forget, onRefreshed } = deps.options ?? {}
  const ofServer = { ...(forget && { forget }), ...(onRefreshed && { onRefreshed }) }
  return { stack, telephony, bus, plane, liveCalls, clock, log, ...ofServer }
}

/** What this edge inherits of those that died, and what others inherit of this one. */
function openHeritage(deps: AskOverDeps) {
  const { telephony, liveCalls, log } = deps
  const { dialogs } = telephony
  const heir = dialogs?.inherit({
    mayAsk: () => deps.isEmbedded && !deps.isStopping(),
    askOver: (inherited) => askOver(deps, inherited),
    tell: (inherited) => tellPeer(deps, inherited),
  })
  const handOn = async () => {
    if (liveCalls.size() === 0) return
    // What is left here is not this one's to inherit, and it is others who are asked.
    await heir?.close()
    if (!(await dialogs?.haveHeirs())) return
    const left = await liveCalls.leave()
    if (left.length > 0) await dialogs?.leave(left)
    log.info('calls were left to other edges', { calls: left.length })
  }
  return {
    handOn: () => handOn().catch((error: unknown) => log.error('calls could not be left to other edges', { error })),
    close: async () => heir?.close(),
  }
}

/** Always answers. */
function answerDial(place: (request: DialRequest) => Promise<DialReply>, log: Log): (message: BusMessage) => void {
  return (message) => {
    const request = DialRequest.safeParse(fromBytes(message.payload))
    const reply = (answer: DialReply) => message.respond(toBytes(answer))
    if (!request.success) return reply({ type: 'refused', details: 'not a request to dial' })
    place(request.data).then(reply, (error: unknown) => {
      log.error('a call could not be placed', { callId: request.data.callId, error })
      reply({ type: 'refused', details: 'the telephone edge has no room for the call, or failed' })
    })
  }
}
