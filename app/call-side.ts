/**
 * Owns the wiring of everything that acts by itself: calls, their jobs, their webhooks. `end` is the orderly way out: no new calls, running
 * calls end, what they left behind is processed and delivered.
 */
import { createAdmission } from '../actors/call/birth/admission.ts'
import { createPhoneCallCreator } from '../actors/call/birth/create-phone-call.ts'
import { createOutboundCalls } from '../actors/call/birth/outbound-calls.ts'
import { createWebCallCreator } from '../actors/call/birth/create-web-call.ts'
import { dialTimeWork, dialWork } from '../actors/call/birth/dial-jobs.ts'
import type { Engines } from '../actors/call/engine-choice.ts'
import { expireTokenWork } from '../actors/call/birth/expire-token.ts'
import { createDispatcher } from '../actors/rounds/dispatcher.ts'
import { createPostProcessing } from '../actors/after-call/post-processing.ts'
import { createProcessAgain } from '../actors/after-call/process-again.ts'
import { createDeleteCall } from '../actors/privacy/delete-call.ts'
import { createErasures } from '../actors/privacy/erase-person.ts'
import { createSupervise, type Supervising } from '../actors/supervision/supervise.ts'
import { createScheduler } from '../actors/rounds/scheduler.ts'
import { createDestinationPolicy, type DestinationPolicy } from '../actors/telephony/destination-policy.ts'
import { createTelephony } from '../actors/telephony/telephony.ts'
import { noPeers, takesOver, type NodePeers } from '../actors/node/node-beats.ts'
import type { CallRouter } from '../actors/node/call-router.ts'
import { listenForPlaced } from '../actors/node/placement.ts'
import { listenForWork } from '../actors/node/wakes.ts'
import { createSwitchboard, type Switchboard } from '../actors/node/switchboard.ts'
import { createToolbox } from '../actors/tools/toolbox.ts'
import { createAskWorkerRequest } from '../actors/webhooks/worker-request.ts'
import type { OpenWebMedia } from '../media/plane/media-plane.ts'
import type { CaptureCall } from '../model/call-capture.ts'
import { pause } from '../model/clock.ts'
import { deadline, goOn } from '../model/deadline.ts'
import type { ErasePerson } from '../model/erasure.ts'
import type { LoadGate } from '../model/load-gate.ts'
import type { NodeBeat } from '../model/node-beat.ts'
import type { OutboundCalls } from '../model/outbound-calls.ts'
import type { CreatePhoneCall, DeleteCall, EndCall, PauseRecording, ProcessAgain } from '../model/phone-call.ts'
import { Problem } from '../model/problem.ts'
import type { InboundCall, RefusedArrival, Telephony } from '../model/telephony.ts'
import type { Toolbox } from '../model/tool.ts'
import type { Admission, CreateWebCall } from '../model/web-call.ts'
import type { Subscriptions } from '../model/webhook.ts'
import { createJournalFolder, journalFolderOf, type JournalFolder } from '../store/journal-folder.ts'
import type { Config } from './config.ts'
import type { Core } from './core.ts'
import { openExtractors } from './extractors.ts'
import {
  countedDials,
  gatedOutboundCalls,
  gatedPhoneCalls,
  gatedWebCalls,
  joinedInTurn,
  noRoomForOf,
  openUntil,
  overloadOf,
  turnOf,
} from './gated-calls.ts'
import { unwatchedLoad, type Load } from './load.ts'
import { openFarActing, openFarOutgoing } from './far-side.ts'
import { openKnowledgeSide, type KnowledgeSide } from './knowledge-side.ts'
import { jointGate, phoneRoom } from './joint-gate.ts'
import { onRunningCalls } from './on-running-calls.ts'
import { openOutgoing, type Outgoing } from './outgoing.ts'
import { knownTo } from './voice-side.ts'

export type CallSide = {
  readonly createWebCall: CreateWebCall
  readonly createPhoneCall: CreatePhoneCall
  readonly outboundCalls: OutboundCalls
  readonly endCall: EndCall
  readonly processAgain: ProcessAgain
  readonly pauseRecording: PauseRecording
  readonly captureCall: CaptureCall
  readonly deleteCall: DeleteCall
  readonly erasePerson: ErasePerson
  readonly admission: Admission
  readonly telephony: Telephony
  readonly tools: Toolbox
  openSupervision(openMedia: OpenWebMedia | null): Supervising
  readonly subscriptions: Subscriptions
  readonly knowledge: KnowledgeSide['knowledge']
  readonly newCalls: LoadGate['newCalls']
  readonly noRoomFor: ReturnType<typeof noRoomForOf>
  /** Calls that have an actor in this process. */
  running(): number
  /** As the other nodes are told. */
  state(): Omit<NodeBeat, 'roles' | 'leaves'>
  start(): Promise<void>
  /**
   * No new calls. Those that have an actor here are handed over to other nodes; resolves when none has one any more, nobody takes any, or `within` ms have
   * passed.
   */
  handOver(within: number): Promise<void>
  /** Idempotent. */
  end(grace: number): Promise<void>
}

/** What is due when the service stops gets this long; the rest waits in the outbox for the next start. */
const drainTime = 3_000
/** Ms until calls that nobody took are offered again. */
const offerAgain = 1_000
/** More than one node begins at a time. */
const mostRoomTold = 1_000

/** Without `load` nothing is refused for it. */
export function openCallSide(
  core: Core,
  config: Config,
  engines: Engines,
  closing: AsyncDisposableStack,
  load: Load = unwatchedLoad(core.clock),
  peers: NodePeers = noPeers,
): CallSide {
  const { roles } = config
  const gate = jointGate(load.gate, { ...core, roles, peers })
  let ending = false
  const stopping = () => new Problem('SERVICE_UNAVAILABLE', 'The service is stopping; try again in a moment.')
  const unlessEnding: UnlessEnding =
    (act) =>
    async (...given) => {
      if (ending) throw stopping()
      return act(...given)
    }
  const outgoing = (roles.has('actors') ? openOutgoing : openFarOutgoing)(core, config, closing)
  const refusalOf = createDestinationPolicy(core)
  const knowing = openKnowledgeSide(core, config, closing)
  const both = { ...knowing, load, outgoing, refusalOf, peers, room: () => phoneRoom(gate, roles, peers) }
  const acting = { ...both, engines, settings: config, unlessEnding, isEnding: () => ending }
  const acted = roles.has('actors') ? openActing(core, acting, closing) : openFarActing(core, both, closing)
  const { switchboard, scheduler, processing, dispatcher, tools, extractors } = acted
  const { subscriptions, wakeDeliveries } = outgoing
  const creating = { ...core, engines: knownTo(config, engines), wakeDeliveries, wakeDispatcher: dispatcher.wake }
  const { createWebCall, admission } = gatedWebCalls(gate, {
    createWebCall: createWebCallCreator(creating),
    admission: joinedInTurn(load.setUps, createAdmission({ ...core, router: switchboard })),
  })
  const outboundCalls = gatedOutboundCalls(gate, createOutboundCalls(creating))
  const telephony = createTelephony({ ...core, ...acting, router: switchboard, wakeDeliveries })
  closing.defer(() => telephony.close())
  const erasures = createErasures(core)
  closing.defer(() => erasures.close())

  return {
    createWebCall: unlessEnding(createWebCall),
    createPhoneCall: unlessEnding(gatedPhoneCalls(gate, createPhoneCallCreator(creating))),
    outboundCalls: {
      plan: outboundCalls.plan,
      place: unlessEnding(outboundCalls.place),
      confirm: unlessEnding(outboundCalls.confirm),
    },
    ...onRunningCalls({ ...core, router: switchboard }),
    processAgain: createProcessAgain({ ...core, wakeJobs: () => processing.wake() }),
    deleteCall: createDeleteCall(core),
    erasePerson: unlessEnding(erasures.erasePerson),
    tools,
    openSupervision: (openMedia) => createSupervise({ ...core, engines, router: switchboard, openMedia }),
    subscriptions,
    knowledge: knowing.knowledge,
    telephony: {
      ...telephony,
      overload: overloadOf(gate),
      turn: turnOf(load.setUps),
      receive: async (call) => (ending ? closedTo(call) : telephony.receive(call)),
    },
    newCalls: () => gate.newCalls(),
    noRoomFor: noRoomForOf(gate),
    admission: openUntil(() => ending, stopping, admission),
    running: () => switchboard.running(),
    state: () => ({
      running: switchboard.running(),
      room: Math.min(gate.room('phone_call'), mostRoomTold),
      draining: ending,
      holds: switchboard.holds(),
    }),
    async start() {
      await switchboard.start()
      outgoing.start()
      await knowing.start()
      erasures.start()
      scheduler.wake()
      processing.wake()
      dispatcher.wake()
    },
    async handOver(within) {
      ending = true
      // What is due from here on is another node's.
      await dispatcher.close()
      if (!isTakenByOthers(peers)) return
      await scheduler.close()
      await offerCalls(core.clock, { switchboard, peers }, within)
    },
    async end(grace) {
      ending = true
      await dispatcher.close()
      await switchboard.close(grace)
      // A model that takes its time is asked again at the next start.
      const processed = Promise.all([scheduler.idle(), processing.idle()])
      await deadline(core.clock, drainTime, processed, () => extractors.close())
      await processed
      await deadline(core.clock, drainTime, outgoing.drained(), goOn)
    },
  }
}

type Offering = { readonly switchboard: Pick<Switchboard, 'running' | 'handOver'>; readonly peers: NodePeers }

/** To others, again and again for so many ms, until all are taken. */
async function offerCalls(clock: Core['clock'], { switchboard, peers }: Offering, within: number): Promise<void> {
  const over = new AbortController()
  const { promise: aborted, resolve } = Promise.withResolvers<void>()
  const cancel = clock.after(within, () => {
    over.abort()
    resolve()
  })
  while (switchboard.running() > 0 && isTakenByOthers(peers) && !over.signal.aborted) {
    // A claim may wait for a database that is away for longer than this node has.
    await Promise.race([switchboard.handOver(over.signal), aborted])
    if (switchboard.running() > 0) await pause(clock, offerAgain, over.signal)
  }
  cancel()
}

const isTakenByOthers = (peers: NodePeers): boolean => peers.heard().some(takesOver)

/** Bytes of steps that wait for the database: an hour of fifty calls. */
const maxJournal = 512 << 20

/** What recordings leave free is for the database, and for what waits for it. */
const journalOf = ({ nodeId, log }: Core, { dataDir, recordingReserve }: Config): JournalFolder =>
  createJournalFolder({
    folder: journalFolderOf(dataDir),
    nodeId,
    limit: maxJournal,
    reserve: recordingReserve / 2,
    log,
  })

const closedTo = ({ route }: InboundCall): RefusedArrival => ({
  reason: 'service_stopping',
  details: 'The service is stopping; another node, or a try in a moment, takes the call.',
  sipStatus: 503,
  accountId: route.trunk.accountId,
  trunkId: route.trunk.id,
})

/** What begins a call, and is refused once the service stops. */
type UnlessEnding = <Given extends readonly unknown[], Answer>(
  act: (...given: Given) => Promise<Answer>,
) => (...given: Given) => Promise<Answer>

type Acting = {
  readonly engines: Engines
  readonly settings: Config
  readonly load: Load
  readonly peers: NodePeers
  /** So many phone calls may be placed. */
  readonly room: () => number
  readonly isEnding: () => boolean
  readonly outgoing: Outgoing
  readonly knowledge: KnowledgeSide['knowledge']
  readonly unlessEnding: UnlessEnding
  readonly refusalOf: DestinationPolicy
}

function openActing(core: Core, deps: Acting, closing: AsyncDisposableStack) {
  const { sender, email, wakeDeliveries } = deps.outgoing
  const { refusalOf, engines, knowledge } = deps
  const { gate, commits, setUps } = deps.load
  const hook = { ...core, sender, now: core.clock.now }
  const wakeDispatcher = (): void => dispatcher.wake()
  const dispatcher = createDispatcher({
    ...core,
    wakeJobs: () => scheduler.wake(),
    room: deps.room,
  })
  closing.defer(() => dispatcher.close())
  /** Its tools act on calls, and calls use tools. */
  const tools: Toolbox = {
    list: (...given) => toolbox.list(...given),
    call: (...given) => toolbox.call(...given),
  }
  const switchboard = createSwitchboard({
    ...core,
    peers: deps.peers,
    engines,
    commits,
    tools,
    askWorkerRequest: createAskWorkerRequest(hook),
    wakeDeliveries,
    // Of calls that are over.
    wakeJobs: () => processing.wake(),
    wakeDispatcher,
    refusalOf,
    journal: journalOf(core, deps.settings),
  })
  const toolbox = createToolbox({
    ...core,
    sender,
    router: switchboard,
    email,
    knowledge,
    wakeDeliveries,
    refusalOf,
  })
  closing.defer(() => switchboard.close(0))
  const extractors = openExtractors(core, deps.settings)
  const dial = dialWork({ ...core, router: switchboard })
  const scheduler = createScheduler({
    ...core,
    mayDial: () => deps.room() > 0,
    work: {
      expire_token: expireTokenWork({ ...core, router: switchboard }),
      dial_time: deps.unlessEnding(dialTimeWork({ ...core, router: switchboard, wakeDispatcher })),
      dial: deps.unlessEnding(countedDials(gate, (job) => setUps.inTurn(() => dial(job)))),
    },
  })
  // Of its own: a model that is slow, or answers nobody, must not keep calls from being dialed.
  const processing = createScheduler({
    ...core,
    work: { post_process: createPostProcessing({ ...core, router: switchboard, extractors }) },
  })
  closing.defer(() => scheduler.close())
  closing.defer(() => processing.close())
  // Before the scheduler, which waits for its jobs.
  closing.defer(() => extractors.close())
  listenForOthers(core, { ...deps, router: switchboard, dispatcher, scheduler, processing }, closing)
  return { switchboard, scheduler, processing, dispatcher, tools, extractors }
}

type Others = Pick<Acting, 'isEnding' | 'outgoing' | 'load'> & {
  readonly router: CallRouter
} & Readonly<Record<'dispatcher' | 'scheduler' | 'processing', { wake(): void }>>

/** Processes without actors of their own: they have facts for calls that nobody has, and work that waits. */
function listenForOthers({ bus, nodeId }: Core, others: Others, closing: AsyncDisposableStack): void {
  const { router, isEnding, load, outgoing, dispatcher, scheduler, processing } = others
  const begins = (): void => load.gate.began('phone_call', 1)
  const placed = listenForPlaced(bus, nodeId, { router, isLeaving: isEnding, begins })
  const { wake } = outgoing
  const work = listenForWork(bus, {
    deliveries: wake,
    dispatcher: dispatcher.wake,
    scheduler: scheduler.wake,
    processing: processing.wake,
  })
  closing.defer(async () => {
    placed.close()
    work.close()
  })
}
