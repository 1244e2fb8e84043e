/**
 * Owns the other half of a step: the effects that reach out of the database, carried out after the commit. What comes of them returns to the
 * actor as facts. Nothing here decides anything.
 */
import { subjectsOf, type Bus } from '../../../model/bus.ts'
import { toBytes } from '../../../model/bus-json.ts'
import type { CallWarning } from '../../../model/call.ts'
import { storableText } from '../../../model/json.ts'
import { isKeyEvent, type ClosedLeg, type LegEvent } from '../../../model/leg.ts'
import type { Log } from '../../../model/log.ts'
import type { Said } from '../../../model/voice-engine.ts'
import type { Conversation } from '../../conversation/conversation.ts'
import { createUsageMeter, type UsageMeter } from '../../conversation/usage-meter.ts'
import { commandLeg } from '../../node/leg-link.ts'
import { answer, redirect } from './answer.ts'
import { askWorkerRequest } from './ask-worker-request.ts'
import { createCallAttendance, type CallAttendance } from './attend-call.ts'
import type { CallFact, Effect } from '../call-event.ts'
import { messagesOf } from './browser-messages.ts'
import { createEarlyWords } from './early-words.ts'
import { dial, legFactOf, sipCallFailed } from './dial.ts'
import type { CallEnd, PerformerDeps } from './performer-deps.ts'
import { readLostTools } from './read-call.ts'
import { prepareConversation, prepareDisclosure } from './prepare-talk.ts'
import { createRecordingOrders, type RecordingOrders } from './recording-orders.ts'
import { createSupervisionOrders, type SupervisionOrders } from './supervision-orders.ts'
import { createToolRuns, type GiveResult, type ToolRuns } from './run-tool.ts'
import { createToldInOrder } from './told-in-order.ts'
import type { TriedSession } from './try-session.ts'

/** The leg completes its recording before it answers. */
const closeTimeout = 10_000
/** A leg that does not answer at once keeps nothing, and the call is handed over all the same. */
const keepTimeout = 200

type StartConversation = Extract<Effect, { type: 'start_conversation' }>
type Supervise = Extract<Effect, { type: 'supervise' }>
type Disclose = Extract<Effect, { type: 'disclose' }>

export type CallPerformer = {
  /** Starts the effects in order and returns; never throws. */
  perform(effects: readonly Effect[]): void
  legEvent(event: LegEvent): void
  /** The talk pauses; without one: nothing is under way. */
  isQuiet(): boolean
  /** Leaves the conversation without a word: the call goes on elsewhere. */
  abandon(): void
  /** The same, and another actor is about to take the call: what the caller says is kept, what the agent says is said on. */
  leave(): Promise<void>
  /** Resolves when everything that was started has come to its end. */
  settled(): Promise<void>
}

const nobody = (): void => undefined

export function createCallPerformer(deps: PerformerDeps, end: CallEnd): CallPerformer {
  const { bus, clock } = deps
  const { run, isIdle, settled } = createRuns(deps.log, end)
  let conversation: Conversation | null = null
  /** What is said before the talk, or the talk whose engine was lost, until its place is taken. */
  let former: Conversation | null = null
  const tools = createToolRuns(deps, end)
  const meter = createUsageMeter()
  /** Before the answer, for the first talk. */
  let tried: TriedSession | null = null
  const keep = (session: TriedSession): void => (abandoned ? session.close() : void (tried = session))
  let abandoned = false
  /** The talk that is to give way to a supervisor, and what is begun after that. */
  let [aside, talks] = [nothingToDo, 0]

  const early = createEarlyWords()
  const legEvent = (event: LegEvent): void => {
    // Of another actor; what it has not heard comes again.
    if (isKeyEvent(event) && event.line && event.line.epoch !== end.epoch) return
    if (conversation) return conversation.legEvent(event)
    if (isKeyEvent(event)) early.key(event)
  }

  const numbered = (fact: CallFact): CallFact =>
    fact.type === 'tool_called' ? { ...fact, toolCallId: deps.newId() } : fact
  const talkEnd: CallEnd = {
    ...end,
    post(untold) {
      const fact = numbered(meter.withUsage(untold))
      if (fact.type === 'tool_called') tools.wanted(fact)
      if (fact.type !== 'turn_committed') return end.post(fact)
      // Who follows need not hear it again.
      const settled = fact.turn.role === 'user' ? (conversation?.settles(fact.turn) ?? null) : null
      const writing = end.deliver(settled ? { ...fact, settled } : fact)
      told.turnIsWritten(writing)
      if (settled) void writing.then((taken) => taken && conversation?.written(settled), nobody)
    },
  }
  const told = createToldInOrder((message) => bus.publish(subjectsOf(end.callId).signal, toBytes(message)))
  const attendance = createCallAttendance(deps, end, { meter, post: talkEnd.post })
  const startConversation = async (effect: StartConversation): Promise<void> => {
    const talk = ++talks
    attendance.close()
    await aside
    recording.begin(effect.recording)
    early.prepare()
    former = conversation
    const earlier = former && { earlier: former.earlier }
    const parts = { deps, end: talkEnd, run, signal: told.tell, recording, meter, tried, ...earlier }
    const prepared = await prepareConversation(parts, effect)
    if (!prepared || abandoned || talk !== talks) return
    conversation = prepared.conversation
    early.handOn(conversation)
    tools.offer(prepared)
    const lost = effect.lostTools ? await readLostTools(deps, end.callId, effect.lostTools) : []
    // What the caller says is kept by the former one until somebody listens.
    await conversation.open().finally(() => former?.abandon())
    for (const tool of lost) run(tools.takeOver(tool, giveResult), noFact)
  }
  const disclose = async (effect: Disclose): Promise<void> => {
    dropTried()
    recording.begin(effect.recording)
    const prepared = await prepareDisclosure({ deps, end: talkEnd, run, signal: told.tell, recording, meter }, effect)
    if (!prepared || abandoned) return
    conversation?.abandon()
    conversation = prepared
    early.handOn(conversation)
    await prepared.open()
  }
  const stepAside = (): Promise<void> => {
    talks++
    dropTried()
    tried = null
    const giving = conversation
    aside = aside
      .then(() => giving?.fallSilent())
      .catch((error: unknown) => deps.log.error('an agent that steps aside was not silenced', { error }))
      .finally(() => giving?.abandon())
    return aside
  }
  const giveResult: GiveResult = (id, name, result) => conversation?.toolResult(id, name, result)
  const whisper = (text: string): void => void (early.whisper(text) || conversation?.whisper(text))
  const turnFound = ({ role, text }: Said): void => {
    if (!early.found({ role, text })) conversation?.turnFound({ role, text })
  }
  const supervise = (effect: Supervise): Promise<void> => {
    const done = supervision.set(effect, aside)
    if (effect.voice === null) attendance.close()
    else run(attendance.begin(done), noFact)
    return done
  }
  const dropTried = (): void => tried?.close()
  const passOn = async (): Promise<void> => {
    await conversation?.stop()
    await redirect(deps, end)
  }
  const abandon = (): void => {
    abandoned = true
    tools.cancelAll()
    dropTried()
    attendance.close()
    conversation?.abandon()
    former?.abandon()
  }
  const recording = createRecordingOrders(deps, end)
  const supervision = createSupervisionOrders(deps, end)
  const conversationOf = (): Conversation | null => conversation
  const acts = { startConversation, disclose, passOn, stepAside, giveResult, whisper, turnFound, supervise }
  const talking = { conversationOf, ...acts, supervision }
  const parts: Parts = { deps, end, run, tools, meter, recording, keep, dropTried, attendance, ...talking }

  return {
    perform(effects) {
      for (const effect of effects) {
        for (const message of messagesOf(effect, end.callId, clock.now())) told.tell(message)
        performOne(parts, effect)
      }
    },
    legEvent,
    isQuiet: () => conversation?.isQuiet() ?? isIdle(),
    abandon,
    async leave() {
      const keep = { type: 'keep', epoch: end.epoch } as const
      await commandLeg(bus, end.callId, keep, keepTimeout)
      const keys = conversation?.leave() ?? []
      abandon()
      if (keys.length > 0) await commandLeg(bus, end.callId, { ...keep, keys }, keepTimeout)
    },
    settled,
  }
}

type Parts = {
  readonly deps: PerformerDeps
  readonly end: CallEnd
  readonly run: ReturnType<typeof createRuns>['run']
  readonly tools: ToolRuns
  readonly meter: UsageMeter
  readonly recording: RecordingOrders
  keep(tried: TriedSession): void
  dropTried(): void
  conversationOf(): Conversation | null
  startConversation(effect: StartConversation): Promise<void>
  disclose(effect: Disclose): Promise<void>
  passOn(): Promise<void>
  stepAside(): Promise<void>
  readonly giveResult: GiveResult
  whisper(text: string): void
  turnFound(said: Said): void
  supervise(effect: Supervise): Promise<void>
  readonly supervision: Pick<SupervisionOrders, 'end'>
  readonly attendance: Pick<CallAttendance, 'stop'>
}

function performOne(parts: Parts, effect: Effect): void {
  const { deps, end, run, tools, conversationOf } = parts
  wakeFor(deps, effect)
  switch (effect.type) {
    case 'ask_worker_request':
      return run(askWorkerRequest(deps, end), hookFailed)
    case 'dial':
      return run(dial(deps, end), dialFailed)
    case 'answer':
      return run(answer(deps, end, effect.engine, parts.keep), legLost)
    case 'redirect':
      return run(parts.passOn(), transferFailed)
    case 'start_conversation':
      return run(parts.startConversation(effect), engineFailed)
    case 'disclose':
      return run(parts.disclose(effect), engineFailed)
    case 'run_tool':
      return run(tools.run(effect, parts.giveResult), noFact)
    case 'cancel_tool':
      return tools.cancel(effect.id)
    case 'leave_message':
      tools.cancelAll()
      return run(leaveMessage(end, conversationOf()), engineFailed)
    case 'step_aside':
      return run(parts.stepAside(), noFact)
    case 'supervise':
      return run(parts.supervise(effect), noFact)
    case 'whisper':
      return parts.whisper(effect.text)
    case 'wind_up':
      tools.cancelAll()
      parts.dropTried()
      parts.supervision.end()
      return run(windUp(parts, effect.reason), legGone)
    case 'record':
      conversationOf()?.recordingPaused(effect.parts === 'none')
      return run(parts.recording.set(effect.parts), noFact)
    case 'rejoin_leg':
      return run(conversationOf()?.rejoin() ?? nothingToDo, engineFailed)
    case 'look_for_leg':
      return run(lookForLeg(deps.bus, end), noFact)
    case 'store_turn':
      if (effect.isFound) parts.turnFound(effect.turn)
      return
    // Done in the transaction of the step.
    case 'announce_status':
    case 'show_turn':
    case 'store_warning':
    case 'store_recording_state':
    case 'store_disclosure':
    case 'announce_ended':
    case 'announce_tool_call':
    case 'schedule_post_processing':
    case 'store_outcome':
    case 'store_worker_request':
    case 'store_analysis':
    case 'fail_post_processing':
      return
  }
}

/** Wakes those who work on the rows that the step wrote. Deliveries are told of where they are written. */
function wakeFor(deps: PerformerDeps, { type }: Effect): void {
  if (type === 'schedule_post_processing') deps.wakeJobs()
  if (type === 'store_outcome') deps.wakeDispatcher()
}

/** What was started and is not over yet. */
function createRuns(log: Log, end: CallEnd) {
  const underWay = new Set<Promise<void>>()
  return {
    /** An effect that fails is a fact too: without it the call would wait for ever. */
    run(work: Promise<void>, failure: (details: string) => CallFact | null): void {
      const guarded = work
        .catch((error: unknown) => {
          const fact = failure(error instanceof Error ? error.message : String(error))
          log.error('an effect of a call failed', { fact: fact?.type, error })
          if (fact) end.post(fact)
        })
        .finally(() => underWay.delete(guarded))
      underWay.add(guarded)
    },
    isIdle: (): boolean => underWay.size === 0,
    settled: async (): Promise<void> => void (await Promise.all(underWay)),
  }
}

async function leaveMessage(end: CallEnd, conversation: Conversation | null): Promise<void> {
  if (conversation) return conversation.leaveMessage()
  end.post({ type: 'agent_finished', nextAction: null })
}

/** The caller's line is not kept open for the words that are still being understood, and the call has ended before they are. */
async function windUp(parts: Parts, reason: string): Promise<void> {
  const { end, conversationOf, meter, attendance } = parts
  const { bus, clock } = parts.deps
  const conversation = conversationOf()
  await conversation?.fallSilent()
  const closing = commandLeg(bus, end.callId, { type: 'close', epoch: end.epoch, reason }, closeTimeout)
  const endedAt = clock.now()
  const [reply] = await Promise.all([closing, conversation?.stop(), attendance.stop()])
  const rest = meter.rest()
  if (rest) end.post(rest)
  if (reply?.type === 'closed' && reply.recordingIncomplete) end.post({ type: 'warned', warning: soundLost })
  end.post({ ...(reply?.type === 'closed' ? legClosed(reply) : legGone()), endedAt })
}

const soundLost: CallWarning = {
  type: 'RECORDING_INCOMPLETE',
  message: 'The disk had no room for all of the recording; what is missing is silent in it.',
}

async function lookForLeg(bus: Bus, end: CallEnd): Promise<void> {
  const fact = await legFactOf(bus, end)
  if (fact !== null && typeof fact === 'object') end.post(fact)
}

const nothingToDo = Promise.resolve()
const noFact = (): null => null
/** Whether the receiver is a required one is not known when asking failed on our side: the call does not go on without it. */
const hookFailed = (details: string): CallFact => ({ type: 'worker_request_failed', required: true, details })
const engineFailed = (details: string): CallFact => ({ type: 'engine_failed', details: storableText(details, 300) })
const legLost = (details: string): CallFact => ({ type: 'leg_disconnected', cause: 'failed', details })
const transferFailed = (): CallFact => ({ type: 'transfer_failed', providerStatus: null })
/** The reason is in the log only. */
const dialFailed = (): CallFact => sipCallFailed('internal error')
type LegClosed = Extract<CallFact, { type: 'leg_closed' }>
const legGone = (): LegClosed => ({ type: 'leg_closed', recordedMs: null })
const legClosed = ({ recordedMs, quality, silentFor = 0 }: ClosedLeg): LegClosed => ({
  type: 'leg_closed',
  recordedMs,
  silentFor,
  ...(quality && { quality }),
})
