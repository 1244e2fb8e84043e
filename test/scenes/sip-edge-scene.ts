/** Owns a telephone edge as it runs: the embedded server, real legs on a local bus, `Telephony` in memory; the peer is a bare socket. */
import type { Test } from 'tap'
import { createLocalBus } from '../../actors/bus/local-bus.ts'
import { systemClock } from '../../app/clock.ts'
import { subjectsOf, type Bus } from '../../model/bus.ts'
import { fromBytes, toBytes } from '../../model/bus-json.ts'
import { DialReply, dialSubject, type DialRequest } from '../../model/dial.ts'
import type { CallId } from '../../model/ids.ts'
import { LegEvent, LegReply, type LegCommand } from '../../model/leg.ts'
import { createPhoneLines } from '../../media/plane/local-plane.ts'
import { createMediaPorts } from '../../media/rtp/media-ports.ts'
import { createSipServer, type SipServer, type SipServerOptions } from '../../sip/server/sip-server.ts'
import type { Listen } from '../../sip/server/transport/transports.ts'
import { createSipEdge, type SipEdge, type SipEdgeOptions } from '../../sip/sip-edge.ts'
import { createStrangers } from '../../sip/strangers.ts'
import { createLeg } from '../../media/leg/leg.ts'
import { createFailureGuard, type Ban, type FailureGuard } from '../../net/failure-guard.ts'
import { createOpusLibrary } from '../../media/codecs/opus.ts'
import { createTicker } from '../../media/ticker/ticker.ts'
import { createHandClock, type HandClock } from '../fake/hand-clock.ts'
import { createQuietLog, type QuietLog } from '../fake/quiet-log.ts'
import { openSipPeer, type SipPeer } from '../fake/sip-peer.ts'
import { createTelephonyPort, type TelephonyPort } from '../fake/telephony-port.ts'
import { until } from './in-time.ts'
import { newId } from './tenant.ts'

export type EdgeScene = {
  readonly edge: SipEdge
  readonly server: SipServer
  readonly serverPort: number
  readonly telephony: TelephonyPort
  readonly peer: SipPeer
  readonly bus: Bus
  /** Of the edge; the server and the legs live in real time. */
  readonly clock: HandClock
  readonly log: QuietLog
  /** Of sound, of all calls, that have come. */
  packets(): number
  readonly guard: FailureGuard
  readonly banned: readonly Ban[]
  /** The next event of the call's leg. */
  event(callId: CallId): Promise<LegEvent>
  command(callId: CallId, command: Omit<LegCommand, 'epoch'> & Record<string, unknown>): Promise<LegReply>
  dial(request?: Partial<DialRequest>): Promise<{ readonly callId: CallId; readonly reply: DialReply }>
  /** The call that was received last, once it has begun. */
  begun(): Promise<CallId>
}

const opus = createOpusLibrary()

type SceneOptions = {
  readonly listen?: readonly Listen[]
  /** Stands between the edge and the control port of the server. */
  readonly via?: (control: SipServer['control']) => Promise<SipServer['control']>
  /** Of the server: its clock, its DNS, whom it believes. */
  readonly server?: Partial<SipServerOptions>
}

export async function openEdgeScene(
  t: Test,
  { listen, via, server: serverOptions, ...options }: SipEdgeOptions & SceneOptions = {},
): Promise<EdgeScene> {
  const log = createQuietLog()
  const clock = createHandClock(Date.now())
  const telephony = createTelephonyPort()
  const banned: Ban[] = []
  const guard = createFailureGuard({
    now: clock.now,
    banAfter: 10,
    banFor: 600_000,
    isExempt: () => false,
    banned: (ban) => void banned.push(ban),
  })
  const strangers = createStrangers({ guard, telephony, clock, log })
  const server = await createSipServer({
    listen: listen ?? [{ protocol: 'udp', address: '127.0.0.1', port: 0 }],
    clock: systemClock,
    log,
    ...(!options.refusesStrangers && { hears: strangers.hears, peers: strangers }),
    ...serverOptions,
  })
  const bus = createLocalBus({ log, clock: systemClock })
  const now = (): number => performance.now()
  const ticker = createTicker({ now, after: (ms, action) => systemClock.after(ms, action) })
  const media = createMediaPorts({ bindAddress: '127.0.0.1', externalAddress: null, portRange: [0, 0], now, log })
  const endpoints: Awaited<ReturnType<typeof media.open>>[] = []
  const open: typeof media.open = async (handlers) => {
    const endpoint = await media.open(handlers)
    endpoints.push(endpoint)
    return endpoint
  }
  const recordings = {
    create: () => ({ append() {}, overwriteStart() {}, close: async () => {} }),
  }
  const edge = await createSipEdge({
    control: via ? await via(server.control) : server.control,
    telephony,
    bus,
    plane: {
      openPhone: createPhoneLines({ ports: { ...media, open }, ticker, log }, (wanted) =>
        createLeg({ bus, ticker, opus, recordings, log, now, ...wanted }),
      ),
    },
    clock,
    log,
    strangers,
    options: {
      random: () => 0.5,
      identities: server.identities,
      forget: server.forget,
      onRefreshed: server.onRefreshed,
      ...options,
    },
  }).catch(async (error: unknown) => {
    ticker.close()
    await Promise.all([server.close(), bus.close()])
    throw error
  })
  const serverPort = server.listening[0]!.local.port
  const peer = await openSipPeer(serverPort)
  const events = createEvents(bus)
  t.teardown(async () => {
    await passing(clock, edge.close(0))
    await peer.close()
    await server.close()
    await media.close()
    ticker.close()
    await bus.close()
    // After its end a test asserts no more: what is thrown fails it.
    if (clock.pending() !== 0) throw new Error(`${clock.pending()} timers of the edge are left`)
    if (media.inUse() !== 0) throw new Error('media ports are left')
  })
  return {
    edge,
    server,
    serverPort,
    telephony,
    peer,
    bus,
    clock,
    log,
    packets: () => endpoints.reduce((sum, endpoint) => sum + endpoint.stats().packetsReceived, 0),
    guard,
    banned,
    event: events.next,
    async command(callId, command) {
      const payload = toBytes({ epoch: 1, ...command })
      return LegReply.parse(fromBytes(await bus.request(subjectsOf(callId).legCommand, payload, { timeout: 10_000 })))
    },
    async dial(request = {}) {
      const callId = newId<'call'>()
      const asked: DialRequest = {
        callId,
        epoch: 1,
        accountId: telephony.accountId,
        workerId: telephony.workerId,
        fromNumber: '+4930999',
        toNumber: '+4915112345678',
        ringTimeout: 30_000,
        ...request,
      }
      const answer = await bus.request(dialSubject, toBytes(asked), { timeout: 10_000 })
      return { callId: asked.callId as CallId, reply: DialReply.parse(fromBytes(answer)) }
    },
    begun: () => until(() => telephony.begun.at(-1)),
  }
}

/** Lets time pass until it is done: whoever waits for a peer that is gone waits in vain. */
export async function passing(clock: HandClock, work: Promise<void>): Promise<void> {
  let isDone = false
  void work.finally(() => void (isDone = true))
  await until(() => {
    clock.advance(100)
    return isDone
  })
  return work
}

/** Events of all legs, kept until they are asked for. */
function createEvents(bus: Bus) {
  const arrived = new Map<string, LegEvent[]>()
  bus.subscribe('call.*.leg.event', ({ subject, payload }) => {
    const callId = subject.split('.')[1] ?? ''
    arrived.set(callId, [...(arrived.get(callId) ?? []), LegEvent.parse(fromBytes(payload))])
  })
  return { next: (callId: CallId) => until(() => arrived.get(callId)?.shift()) }
}
