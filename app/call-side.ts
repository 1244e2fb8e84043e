/**
 * Owns the wiring of everything that acts by itself: calls, their jobs, their webhooks. `end` is the orderly way out: no new calls, running
 * calls end, what they left behind is processed and delivered.
 */
import { createAdmission } from '../actors/call/birth/admission.ts'
import { createPhoneCallCreator } from '../actors/call/birth/create-phone-call.ts'
import { createOutboundCalls } from '../actors/call/birth/outbound-calls.ts'
import { createWebCallCreator } from '../actors/call/birth/create-web-call.ts'
import { dialTimeWork, dialWork } from '../actors/call/birth/dial-jobs.ts'
import { createEndCall } from '../actors/call/life/end-call.ts'
import { createPauseRecording } from '../actors/call/life/pause-recording.ts'
import type { Engines } from '../actors/call/engine-choice.ts'
import { expireTokenWork } from '../actors/call/birth/expire-token.ts'
import { createDispatcher } from '../actors/rounds/dispatcher.ts'
import { createPostProcessing } from '../actors/after-call/post-processing.ts'
import { createProcessAgain } from '../actors/after-call/process-again.ts'
import { createDeleteCall } from '../actors/privacy/delete-call.ts'
import { createErasures } from '../actors/privacy/erase-person.ts'
import { createScheduler } from '../actors/rounds/scheduler.ts'
import { createDestinationPolicy, type DestinationPolicy } from '../actors/telephony/destination-policy.ts'
import { createTelephony } from '../actors/telephony/telephony.ts'
import { createSwitchboard } from '../actors/node/switchboard.ts'
import { createToolbox } from '../actors/tools/toolbox.ts'
import { createAskWorkerRequest } from '../actors/webhooks/worker-request.ts'
import { deadline, goOn } from '../model/deadline.ts'
import type { ErasePerson } from '../model/erasure.ts'
import type { LoadGate } from '../model/load-gate.ts'
import type { OutboundCalls } from '../model/outbound-calls.ts'
import type { CreatePhoneCall, DeleteCall, EndCall, PauseRecording, ProcessAgain } from '../model/phone-call.ts'
import { Problem } from '../model/problem.ts'
import type { InboundCall, RefusedArrival, Telephony } from '../model/telephony.ts'
import type { Toolbox } from '../model/tool.ts'
import type { Admission, CreateWebCall } from '../model/web-call.ts'
import type { Subscriptions } from '../model/webhook.ts'
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
  overloadOf,
  turnOf,
} from './gated-calls.ts'
import { unwatchedLoad, type Load } from './load.ts'
import { openKnowledgeSide, type KnowledgeSide } from './knowledge-side.ts'
import { openOutgoing, type Outgoing } from './outgoing.ts'

export type CallSide = {
  readonly createWebCall: CreateWebCall
  readonly createPhoneCall: CreatePhoneCall
  readonly outboundCalls: OutboundCalls
  readonly endCall: EndCall
  readonly processAgain: ProcessAgain
  readonly pauseRecording: PauseRecording
  readonly deleteCall: DeleteCall
  readonly erasePerson: ErasePerson
  readonly admission: Admission
  readonly telephony: Telephony
  readonly tools: Toolbox
  readonly subscriptions: Subscriptions
  readonly knowledge: KnowledgeSide['knowledge']
  readonly newCalls: LoadGate['newCalls']
  readonly noRoomFor: ReturnType<typeof noRoomForOf>
  /** Calls that have an actor in this process. */
  running(): number
  start(): Promise<void>
  /** Idempotent. */
  end(grace: number): Promise<void>
}

/** What is due when the service stops gets this long; the rest waits in the outbox for the next start. */
const drainTime = 3_000

/** Without `load` nothing is refused for it. */
export function openCallSide(
  core: Core,
  config: Config,
  engines: Engines,
  closing: AsyncDisposableStack,
  load: Load = unwatchedLoad(core.clock),
): CallSide {
  const { gate } = load
  let ending = false
  const stopping = () => new Problem('SERVICE_UNAVAILABLE', 'The service is stopping; try again in a moment.')
  const unlessEnding: UnlessEnding =
    (act) =>
    async (...given) => {
      if (ending) throw stopping()
      return act(...given)
    }
  const outgoing = openOutgoing(core, config, closing)
  const refusalOf = createDestinationPolicy(core)
  const knowing = openKnowledgeSide(core, config, closing)
  const { knowledge } = knowing
  const acting = { engines, extraction: config, load, outgoing, knowledge, unlessEnding, refusalOf }
  const { switchboard, scheduler, processing, dispatcher, tools, extractors } = openActing(core, acting, closing)
  const { subscriptions, wakeDeliveries } = outgoing
  const creating = { ...core, engines, wakeDeliveries, wakeDispatcher: () => dispatcher.wake() }
  const { createWebCall, admission } = gatedWebCalls(gate, {
    createWebCall: createWebCallCreator(creating),
    admission: joinedInTurn(load.setUps, createAdmission({ ...core, router: switchboard })),
  })
  const createPhoneCall = createPhoneCallCreator(creating)
  const outboundCalls = gatedOutboundCalls(gate, createOutboundCalls(creating))
  const telephony = createTelephony({ ...core, router: switchboard, refusalOf, wakeDeliveries })
  closing.defer(() => telephony.close())
  const erasures = createErasures(core)
  closing.defer(() => erasures.close())

  return {
    createWebCall: unlessEnding(createWebCall),
    createPhoneCall: unlessEnding(gatedPhoneCalls(gate, createPhoneCall)),
    outboundCalls: {
      plan: outboundCalls.plan,
      place: unlessEnding(outboundCalls.place),
      confirm: unlessEnding(outboundCalls.confirm),
    },
    endCall: createEndCall({ ...core, router: switchboard }),
    processAgain: createProcessAgain({ ...core, wakeJobs: () => processing.wake() }),
    pauseRecording: createPauseRecording({ ...core, router: switchboard }),
    deleteCall: createDeleteCall(core),
    erasePerson: unlessEnding(erasures.erasePerson),
    tools,
    subscriptions,
    knowledge,
    telephony: {
      ...telephony,
      overload: overloadOf(gate),
      turn: turnOf(load.setUps),
      receive: async (call) => (ending ? closedTo(call) : telephony.receive(call)),
    },
    newCalls: () => gate.newCalls(),
    noRoomFor: noRoomForOf(gate),
    admission: { ...admission, admit: async (token, origin) => (ending ? stopping() : admission.admit(token, origin)) },
    running: () => switchboard.running(),
    async start() {
      await switchboard.start()
      outgoing.start()
      await knowing.start()
      erasures.start()
      scheduler.wake()
      processing.wake()
      dispatcher.wake()
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
  readonly extraction: Pick<Config, 'extraction'>
  readonly load: Load
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
    room: () => gate.room('phone_call'),
  })
  closing.defer(() => dispatcher.close())
  /** Its tools act on calls, and calls use tools. */
  const tools: Toolbox = {
    list: (...given) => toolbox.list(...given),
    call: (...given) => toolbox.call(...given),
  }
  const switchboard = createSwitchboard({
    ...core,
    engines,
    commits,
    tools,
    askWorkerRequest: createAskWorkerRequest(hook),
    wakeDeliveries,
    // Of calls that are over.
    wakeJobs: () => processing.wake(),
    wakeDispatcher,
    refusalOf,
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
  const extractors = openExtractors(core, deps.extraction)
  const dial = dialWork({ ...core, router: switchboard })
  const scheduler = createScheduler({
    ...core,
    mayDial: () => gate.room('phone_call') > 0,
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
  return { switchboard, scheduler, processing, dispatcher, tools, extractors }
}
