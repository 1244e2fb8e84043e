/**
 * Owns what the call machine may do: actions that change its context, effects that somebody else carries out, and the conditions it asks.
 * Effects have no code of their own: a step returns their names and parameters.
 */
import { assign, setup } from 'xstate'
import type { CallWarning, RecordingState } from '../../../model/call.ts'
import type { LegQuality } from '../../../model/call-quality.ts'
import type { Json, JsonObject } from '../../../model/json.ts'
import type { SettledLine } from '../../../model/leg.ts'
import type { Outcome } from '../../../model/outcome.ts'
import { supervisorSource, type Supervisor } from '../../../model/supervision.ts'
import { maxToolsAtOnce } from '../../../model/tool.ts'
import { addUsage, noUsage, type CallUsage } from '../../../model/usage.ts'
import type { LlmProvider } from '../../../model/worker.ts'
import type { CallBirth, CallerWords, CallFact, Deadline, Effect, WindUpReason } from '../call-event.ts'
import { closedEnd, endedByOf, endOf, endRules, outcomeOfCut, type CallEnd } from './call-end.ts'
import { memoryAfter } from './turn-memory.ts'

export type CallContext = CallBirth & {
  /** When the fact that is being worked on happened. Here and not in the event, because XState's own events (`onDone`) carry none. */
  readonly now: number
  readonly answeredAt: number | null
  readonly providerStatus: string | null
  readonly turns: number
  readonly notes: JsonObject
  /** Of turns of former actors that were found: the version of the newest, by their epochs. Absent: none were. */
  readonly found?: Readonly<Record<string, number>>
  /** Types of the warnings that were told. Absent: none. */
  readonly warned?: readonly string[]
  /** What the caller is saying. Snapshots of before it was kept have none. */
  readonly heard?: CallerWords | null
  /** Tools that the engine waits for. Snapshots of before they were counted have none. */
  readonly tools?: readonly string[]
  /** Of the line to its present leg and engine, with the newest turn of the caller. */
  readonly settled?: SettledLine | undefined
  /** As the agent named it. */
  readonly nextAction: string | null
  /** As the leg told when it closed. */
  readonly recordedMs: number | null
  readonly quality?: LegQuality
  /** As it was decided, or asked for; absent: recorded, if the call's configuration says so. */
  readonly recording?: RecordingState
  /** What is said first, while it is. */
  readonly disclosing?: string
  /** So many turns told it. Absent: nothing was to be told, or not yet. */
  readonly disclosedTurns?: number
  /** It has taken the place of the call's own. */
  readonly engine?: LlmProvider
  /** The engine's own memory, newest. */
  readonly memory: Json
  readonly outcome: Outcome | null
  /** Absent: nothing was counted, as of calls of before it was. */
  readonly usage?: CallUsage
  /** Noted when its end is decided. Calls of before there were rules have none. */
  readonly end?: CallEnd
  /** When the leg of a browser that may come back was there last; absent: it is there. */
  readonly legLeftAt?: number | undefined
  /** Who listens. Absent: nobody ever did. */
  readonly supervisors?: readonly Supervisor[]
  /** Who of them speaks in the agent's place. */
  readonly voice?: string | null
  /** What they said since they took the word is in turns. Absent: nothing is, as in calls of before it was understood. */
  readonly voiceIsTurns?: true | undefined
  /** What the agent was told of them. Absent: nothing. */
  readonly whispers?: readonly string[]
  /** The outcome has been stored. */
  readonly isStored?: true
  readonly deadlines: Readonly<Partial<Record<Deadline, number>>>
}

const completedLate: CallWarning['type'] = 'TRANSCRIPT_COMPLETED_LATE'

type Of<Type extends CallFact['type']> = Extract<CallFact, { type: Type }>
type Parameters<Type extends Effect['type']> = Omit<Extract<Effect, { type: Type }>, 'type'>

const effect =
  <Type extends Effect['type']>() =>
  (_: unknown, _parameters: Parameters<Type>) => {}

export const machineActions = setup({
  types: {} as { context: CallContext; events: CallFact; input: CallBirth & { now: number } },
  actions: {
    store_worker_request: effect<'store_worker_request'>(),
    store_turn: effect<'store_turn'>(),
    show_turn: effect<'show_turn'>(),
    store_warning: effect<'store_warning'>(),
    store_recording_state: effect<'store_recording_state'>(),
    store_outcome: effect<'store_outcome'>(),
    schedule_post_processing: () => {},
    store_analysis: effect<'store_analysis'>(),
    fail_post_processing: () => {},
    announce_ended: () => {},
    ask_worker_request: () => {},
    look_for_leg: () => {},
    rejoin_leg: () => {},
    dial: () => {},
    answer: effect<'answer'>(),
    redirect: () => {},
    start_conversation: effect<'start_conversation'>(),
    run_tool: effect<'run_tool'>(),
    announce_tool_call: effect<'announce_tool_call'>(),
    cancel_tool: effect<'cancel_tool'>(),
    record: effect<'record'>(),
    disclose: effect<'disclose'>(),
    store_disclosure: effect<'store_disclosure'>(),
    leave_message: () => {},
    supervise: effect<'supervise'>(),
    step_aside: () => {},
    whisper: effect<'whisper'>(),
    wind_up: effect<'wind_up'>(),
    end: assign((_, outcome: Outcome) => ({ outcome })),
    wait: assign(({ context }, wait: { deadline: Deadline; ms: number }) => ({
      deadlines: { ...context.deadlines, [wait.deadline]: context.now + wait.ms },
    })),
    stopWaiting: assign(({ context }, deadline: Deadline) => {
      const { [deadline]: _, ...deadlines } = context.deadlines
      return { deadlines }
    }),
    noteAnswered: assign(({ context, event }) => ({
      answeredAt: context.now,
      providerStatus: (event as Of<'leg_connected'>).providerStatus,
    })),
    noteProviderStatus: assign(({ context, event }) => ({
      providerStatus:
        (event as Of<'ringing' | 'dial_failed' | 'transferred' | 'transfer_failed'>).providerStatus ??
        context.providerStatus,
    })),
    noteLegClosed: assign(({ context, event }) => {
      const closed = event as Of<'leg_closed'>
      const { recordedMs, quality } = closed
      const end = context.end && closedEnd(context.end, closed, context.now)
      return { recordedMs, ...(quality && { quality }), ...(end && { end }) }
    }),
    /** Once: what comes after the decision ends nothing. */
    noteEnd: assign(({ context, event }) =>
      context.rules === endRules && !context.end ? { end: endOf(event, context.outcome, context.now) } : {},
    ),
    noteStored: assign({ isStored: true }),
    noteLegLeft: assign(({ context, event }) => ({
      legLeftAt: context.now - ((event as Of<'leg_disconnected'>).silentFor ?? 0),
    })),
    noteLegBack: assign({ legLeftAt: undefined, settled: undefined }),
    /** Nobody came back: it ended when the leg was there last. */
    noteLeft: assign(({ context }) =>
      context.rules === endRules
        ? { end: { by: 'service' as const, cause: null, at: context.legLeftAt ?? context.now, isSettled: true } }
        : {},
    ),
    countTurn: assign(({ context, event }) => {
      const told = event as Of<'turn_committed'>
      return {
        turns: context.turns + 1,
        memory: memoryAfter(context.memory, told),
        ...usageAfter(context, told),
        ...(told.settled && { settled: told.settled }),
        ...(told.turn.role === 'user' && context.heard && { heard: null }),
        ...(told.turn.source === supervisorSource && { voiceIsTurns: true as const }),
      }
    }),
    /** What the engine remembers stays as it is. */
    countFound: assign(({ context, event }) => {
      const told = event as Of<'turn_found'>
      const found = { ...context.found, [told.epoch]: told.version }
      return { turns: context.turns + 1, found, ...usageAfter(context, told) }
    }),
    noteUsed: assign(({ context, event }) => usageAfter(context, event as Of<'used'>)),
    noteHeard: assign(({ event }) => ({ heard: (event as Of<'caller_heard'>).words })),
    /** They have become a turn. */
    countHeard: assign(({ context }) => ({
      turns: context.turns + 1,
      notes: { ...context.notes, ...notesOf(context.heard) },
      heard: null,
    })),
    noteWarned: assign(({ context, event }) => ({
      warned: [...(context.warned ?? []), (event as Of<'warned'>).warning.type],
    })),
    noteCompletedLate: assign(({ context }) => ({ warned: [...(context.warned ?? []), completedLate] })),
    noteDue: assign(({ event }) => ({ disclosing: (event as Of<'disclosure_due'>).text })),
    noteDisclosed: assign(({ context }) => ({ disclosedTurns: context.turns })),
    noteRecording: assign((_, recording: RecordingState) => ({ recording })),
    noteAction: assign(({ event }) => ({ nextAction: (event as Of<'action_chosen'>).nextAction })),
    beginTool: assign(({ context, event }) => ({
      tools: [...(context.tools ?? []), (event as Of<'tool_called'>).id],
    })),
    endTool: assign(({ context, event }) => ({
      tools: (context.tools ?? []).filter((id) => id !== (event as Of<'tool_answered' | 'tool_canceled'>).id),
    })),
    /** No session goes on any more. */
    forgetMemory: assign({ memory: null }),
    /** Another engine's memory means nothing to it. */
    takeEmbedded: assign({ engine: 'embedded', memory: null, settled: undefined }),
    takeNext: assign(({ context, event }) => {
      const { fallsBackTo = context.engine } = event as Of<'engine_failed'>
      return { memory: null, settled: undefined, ...(fallsBackTo && { engine: fallsBackTo }) }
    }),
    /** Tools of a former actor are not answered, where it was so when that was logged. */
    forgetTools: assign(({ context, event }) => (keepsTools(event) ? { tools: context.tools ?? [] } : { tools: [] })),
    note: assign(({ context, event }) => {
      const { key, value } = event as Of<'noted'>
      return { notes: { ...context.notes, [key]: value } }
    }),
  },
  guards: {
    web: ({ context }) => context.transport === 'webrtc',
    inbound: ({ context }) => context.direction === 'inbound',
    later: ({ context }) => context.scheduledAt !== null && context.scheduledAt > context.now,
    answered: ({ context }) => context.answeredAt !== null,
    isUnasked: ({ event }) => (event as Of<'client_connected'>).isUnasked === true,
    required: ({ event }) => (event as Of<'worker_request_failed'>).required,
    hungUp: ({ event }) => (event as Of<'leg_disconnected'>).cause === 'hung_up',
    /** The leg of an answered call went although nobody hung up. */
    cut: ({ context, event }) => context.rules === endRules && endedByOf(event as Of<'leg_disconnected'>) !== 'caller',
    answeredAndCut: ({ context, event }) =>
      context.rules === endRules &&
      context.answeredAt !== null &&
      endedByOf(event as Of<'leg_disconnected'>) !== 'caller',
    /** By another process: of a browser, and of a telephone that may be asked over. */
    mayReturn: ({ context, event }) => {
      const { gone, awaited } = event as Of<'leg_disconnected'>
      return gone === true && (context.transport === 'webrtc' || awaited === true)
    },
    outbound: ({ context }) => context.direction === 'outbound',
    leavesMessage: ({ context, event }) =>
      context.direction === 'outbound' && (event as Of<'voicemail_detected'>).leavesMessage === true,
    /** An inbound phone call in which nobody has said anything yet. */
    unspoken: ({ context, event }) =>
      context.transport === 'sip_trunk' &&
      context.direction === 'inbound' &&
      context.turns === 0 &&
      (event as Of<'engine_failed'>).hasSpoken !== true,
    fallsBack: ({ context, event }) =>
      context.engine === undefined && (event as Of<'engine_failed'>).fallsBack === true,
    hasNext: ({ context, event }) => {
      const { fallsBackTo } = event as Of<'engine_failed'>
      return fallsBackTo !== undefined && fallsBackTo !== context.engine
    },
    /** Once: an id that is under way is not run again. */
    newTool: ({ context, event }) => {
      const tools = context.tools ?? []
      return tools.length < maxToolsAtOnce && !tools.includes((event as Of<'tool_called'>).id)
    },
    awaited: ({ context, event }) =>
      (context.tools ?? []).includes((event as Of<'tool_answered' | 'tool_canceled'>).id),
    newWarning: ({ context, event }) => !(context.warned ?? []).includes((event as Of<'warned'>).warning.type),
    /** And no other: calls of before it was told ignored all warnings of that moment, and are replayed. */
    soundLost: ({ context, event }) => {
      const { type } = (event as Of<'warned'>).warning
      return type === 'RECORDING_INCOMPLETE' && !(context.warned ?? []).includes(type)
    },
    analysed: ({ event }) => (event as Of<'post_processing_failed'>).analysis !== undefined,
    undisclosed: ({ context }) => context.disclosedTurns === undefined && context.turns === 0,
    heardOut: ({ event }) => (event as Of<'disclosure_played'>).completed,
    /** Nobody has decided otherwise. */
    isRecorded: ({ context: { recording = 'on' } }) => recording === 'on',
    isPaused: ({ context }) => context.recording === 'paused',
    saysSomething: ({ event }) => (event as Of<'caller_heard'>).words !== null,
    heardWords: ({ context }) => (context.heard ?? null) !== null,
    /** Those that nobody hears again. */
    losesWords: ({ context, event }) =>
      (context.heard ?? null) !== null && (event as Of<'taken_over'>).hearsAgain !== true,
    /** Whoever found it may tell it again, having died in between. */
    newlyFound: ({ context: { found = {} }, event }) => {
      const { epoch, version } = event as Of<'turn_found'>
      return version > (found[epoch] ?? -1)
    },
    firstFoundLate: ({ context: { found = {}, warned = [] }, event }) => {
      const { epoch, version } = event as Of<'turn_found'>
      return version > (found[epoch] ?? -1) && !warned.includes(completedLate)
    },
    seeksLeg: ({ event }) => (event as Of<'taken_over'>).seeksLeg === true,
    passed: ({ event }, deadline: Deadline) => (event as Of<'deadline_passed'>).deadline === deadline,
    passedOverWords: ({ context, event }, deadline: Deadline) =>
      (context.heard ?? null) !== null && (event as Of<'deadline_passed'>).deadline === deadline,
  },
})

const usageAfter = ({ usage: before = noUsage }: CallContext, { usage }: { readonly usage?: CallUsage }) =>
  usage ? { usage: addUsage(before, usage) } : {}

export const keepsTools = (event: CallFact): boolean => event.type === 'taken_over' && event.keepsTools === true

const notesOf = (words: CallerWords | null | undefined): JsonObject =>
  Object.fromEntries((words?.notes ?? []).map(({ key, value }) => [key, value]))

export const failed = (reason: Extract<Outcome, { status: 'failed' }>['reason']) =>
  ({ type: 'end', params: { status: 'failed', reason } }) as const
export const completed = { type: 'end', params: { status: 'completed' } } as const
export const voicemail = { type: 'end', params: { status: 'voicemail' } } as const
export const canceled = { type: 'end', params: { status: 'canceled', reason: null } } as const
export const canceledByAdmin = {
  type: 'end',
  params: { status: 'canceled', reason: 'cancelled_by_account_admin' },
} as const

export const cutOff = {
  type: 'end',
  params: ({ event }: { event: CallFact }): Outcome => outcomeOfCut(event as Of<'leg_disconnected'>),
} as const

/** A hang-up before the answer cancels the call. */
export const hungUp = {
  type: 'end',
  params: ({ context }: { context: CallContext }): Outcome =>
    context.answeredAt === null ? { status: 'canceled', reason: null } : { status: 'completed' },
} as const

export const windUp = {
  type: 'wind_up',
  params: ({ context }: { context: CallContext }): { reason: WindUpReason } => ({
    reason: context.outcome?.status ?? 'completed',
  }),
} as const

/**
 * Terminal states are one write: a call that was not answered has its outcome from the moment that its end is decided, because its status reads
 * so; an answered one when its last words have been said.
 */
export const storeDecided = machineActions.enqueueActions(({ context, enqueue }) => {
  if (context.rules !== endRules || context.answeredAt !== null) return
  enqueue(storeOutcome)
  enqueue('noteStored')
})

export const storeUnstored = machineActions.enqueueActions(({ context, enqueue }) => {
  if (!context.isStored) enqueue(storeOutcome)
})

const storeOutcome = {
  type: 'store_outcome',
  params: ({ context }: { context: CallContext }) => {
    const { outcome, answeredAt, end, now, quality, usage } = context
    return {
      outcome: outcome ?? ({ status: 'completed' } as const),
      answeredAt,
      endedAt: end ? Math.min(now, Math.max(end.at, answeredAt ?? end.at)) : now,
      ...(end && { endedBy: end.by, endCause: end.cause }),
      // Legs that tell none, and logs of before they did, must give the same effect as ever.
      ...(quality && { quality }),
      ...(usage && { usage }),
    }
  },
} as const

export const noteProviderStatus = 'noteProviderStatus' as const
export const wait = (deadline: Deadline, ms: number) => ({ type: 'wait', params: { deadline, ms } }) as const
export const stopWaiting = (deadline: Deadline) => ({ type: 'stopWaiting', params: deadline }) as const
