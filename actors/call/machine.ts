/**
 * Owns the lifecycle of a call, inbound, outbound and web, as a pure XState machine: no clock, no randomness, no I/O. Time comes with every
 * event; its actions either change the context or are effects: named, with parameters, carried out by somebody else. Deadlines are absolute
 * times in the context, because XState's own `after` timers do not survive a restored snapshot.
 */
import { assign, setup } from 'xstate'
import type { Json, JsonObject } from '../../model/json.ts'
import type { Outcome } from '../../model/outcome.ts'
import type { CallBirth, CallFact, Deadline, Effect, WindUpReason } from './call-event.ts'

/** From the browser's socket to its media. */
const connectTimeout = 30_000
/** For conversation and leg to say their last words. */
const closeTimeout = 15_000
const maxDuration = 4 * 3_600_000
/** Until the dialer reports anything final by itself; the worker's ringTimeout is the dialer's business and shorter. */
const dialTimeout = 330_000

export type CallContext = CallBirth & {
  /** When the fact that is being worked on happened. Here and not in the event, because XState's own events (`onDone`) carry none. */
  readonly now: number
  readonly answeredAt: number | null
  readonly providerStatus: string | null
  readonly turns: number
  readonly notes: JsonObject
  /** As the agent named it. */
  readonly nextAction: string | null
  /** The engine's own memory, newest. */
  readonly memory: Json
  readonly outcome: Outcome | null
  readonly deadlines: Readonly<Partial<Record<Deadline, number>>>
}

type Of<Type extends CallFact['type']> = Extract<CallFact, { type: Type }>
type Parameters<Type extends Effect['type']> = Omit<Extract<Effect, { type: Type }>, 'type'>

/** Effects have no code of their own: a step returns their names and parameters. */
const effect =
  <Type extends Effect['type']>() =>
  (_: unknown, _parameters: Parameters<Type>) => {}

const call = setup({
  types: {} as { context: CallContext; events: CallFact; input: CallBirth & { now: number } },
  actions: {
    store_worker_request: effect<'store_worker_request'>(),
    store_turn: effect<'store_turn'>(),
    store_outcome: effect<'store_outcome'>(),
    schedule_post_processing: () => {},
    store_analysis: effect<'store_analysis'>(),
    fail_post_processing: () => {},
    announce_ended: () => {},
    ask_worker_request: () => {},
    dial: () => {},
    start_conversation: effect<'start_conversation'>(),
    wind_up: effect<'wind_up'>(),
    end: assign((_, outcome: Outcome) => ({ outcome })),
    wait: assign(({ context }, wait: { deadline: Deadline; ms: number }) => ({
      deadlines: { ...context.deadlines, [wait.deadline]: context.now + wait.ms },
    })),
    stopWaiting: assign({ deadlines: {} }),
    noteAnswered: assign(({ context, event }) => ({
      answeredAt: context.now,
      providerStatus: (event as Of<'leg_connected'>).providerStatus,
    })),
    noteProviderStatus: assign(({ event }) => ({
      providerStatus: (event as Of<'ringing' | 'dial_failed'>).providerStatus,
    })),
    countTurn: assign(({ context, event }) => ({
      turns: context.turns + 1,
      memory: (event as Of<'turn_committed'>).memory,
    })),
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
    required: ({ event }) => (event as Of<'worker_request_failed'>).required,
    passed: ({ event }, deadline: Deadline) => (event as Of<'deadline_passed'>).deadline === deadline,
  },
})

const failed = (reason: Extract<Outcome, { status: 'failed' }>['reason']) =>
  ({ type: 'end', params: { status: 'failed', reason } }) as const
const completed = { type: 'end', params: { status: 'completed' } } as const
const canceled = { type: 'end', params: { status: 'canceled', reason: null } } as const
const canceledByAdmin = { type: 'end', params: { status: 'canceled', reason: 'cancelled_by_account_admin' } } as const

/** Hanging up on somebody who was never answered cancels the call. */
const hungUp = {
  type: 'end',
  params: ({ context }: { context: CallContext }): Outcome =>
    context.answeredAt === null ? { status: 'canceled', reason: null } : { status: 'completed' },
} as const

const windUp = {
  type: 'wind_up',
  params: ({ context }: { context: CallContext }): { reason: WindUpReason } => ({
    reason: context.outcome?.status ?? 'completed',
  }),
} as const

const startConversation = {
  type: 'start_conversation',
  params: ({ context }: { context: CallContext }) => ({
    turns: context.turns,
    memory: context.memory,
    answeredAt: context.answeredAt ?? 0,
  }),
} as const

const turnCommitted = {
  actions: [
    {
      type: 'store_turn',
      params: ({ context, event }: { context: CallContext; event: Of<'turn_committed'> }) => ({
        index: context.turns,
        turn: event.turn,
      }),
    },
    'countTurn',
  ],
} as const

const storeWorkerRequest = {
  type: 'store_worker_request',
  params: ({ event }: { event: Of<'worker_request_answered'> }) => ({
    config: event.config,
    instructions: event.instructions,
    tools: event.tools,
    metadata: event.metadata,
  }),
} as const

/** What a call does from `asking` on is the same for browser and phone: the answer changes the call, a required failure ends it. */
const workerRequestAnswers = (settled: string) =>
  ({
    worker_request_answered: { target: settled, actions: storeWorkerRequest },
    worker_request_failed: [
      { guard: 'required', target: '#call.windingUp', actions: failed('worker_request_required_failed') },
      { target: settled },
    ],
    taken_over: { actions: 'ask_worker_request' },
  }) as const

export const callMachine = call.createMachine({
  id: 'call',
  context: ({ input }) => ({
    ...input,
    answeredAt: null,
    providerStatus: null,
    turns: 0,
    notes: {},
    nextAction: null,
    memory: null,
    outcome: null,
    deadlines: {},
  }),
  initial: 'unborn',
  states: {
    unborn: {
      on: {
        created: [
          { guard: 'web', target: 'waitingForClient' },
          { guard: 'inbound', target: 'resolving' },
          { guard: 'later', target: 'scheduled' },
          { target: 'queued' },
        ],
      },
    },

    // A web call before its browser came.
    waitingForClient: {
      on: {
        client_connected: 'preparing',
        token_expired: { target: 'over', actions: failed('webrtc_client_never_connected') },
        cancel_requested: { target: 'canceledBeforeDialing', actions: canceledByAdmin },
        hang_up_requested: { target: 'over', actions: canceled },
      },
    },

    // A browser negotiates its media while the worker request is asked.
    preparing: {
      type: 'parallel',
      entry: { type: 'wait', params: { deadline: 'connect', ms: connectTimeout } },
      exit: 'stopWaiting',
      on: {
        leg_disconnected: [
          { guard: 'answered', target: 'windingUp', actions: completed },
          { target: 'windingUp', actions: failed('webrtc_client_never_connected') },
        ],
        hang_up_requested: { target: 'windingUp', actions: hungUp },
        cancel_requested: { target: 'windingUp', actions: hungUp },
      },
      states: {
        media: {
          initial: 'negotiating',
          states: {
            negotiating: {
              on: {
                leg_connected: { target: 'up', actions: 'noteAnswered' },
                deadline_passed: {
                  guard: { type: 'passed', params: 'connect' },
                  target: '#call.windingUp',
                  actions: failed('webrtc_client_never_connected'),
                },
              },
            },
            up: { type: 'final' },
          },
        },
        worker: {
          initial: 'asking',
          states: {
            asking: { entry: 'ask_worker_request', on: workerRequestAnswers('settled') },
            settled: { type: 'final' },
          },
        },
      },
      onDone: 'talking',
    },

    // An outbound phone call before it is dialed.
    scheduled: {
      on: {
        dial_time_reached: 'queued',
        cancel_requested: { target: 'canceledBeforeDialing', actions: canceledByAdmin },
      },
    },
    queued: {
      on: {
        slot_granted: 'resolving',
        cancel_requested: { target: 'canceledBeforeDialing', actions: canceledByAdmin },
      },
    },
    resolving: {
      entry: 'ask_worker_request',
      on: {
        ...workerRequestAnswers('dialing'),
        leg_disconnected: { target: 'windingUp', actions: canceled },
        hang_up_requested: { target: 'windingUp', actions: canceled },
      },
    },
    // Outbound: the other side rings. Inbound: we answer.
    dialing: {
      entry: ['dial', { type: 'wait', params: { deadline: 'ring', ms: dialTimeout } }],
      exit: 'stopWaiting',
      on: {
        ringing: { target: '.ringing', actions: 'noteProviderStatus' },
        leg_connected: { target: 'talking', actions: 'noteAnswered' },
        dial_failed: {
          target: 'windingUp',
          actions: ['noteProviderStatus', { type: 'end', params: ({ event }) => event.outcome }],
        },
        leg_disconnected: { target: 'windingUp', actions: canceled },
        hang_up_requested: { target: 'windingUp', actions: canceled },
        deadline_passed: {
          guard: { type: 'passed', params: 'ring' },
          target: 'windingUp',
          actions: { type: 'end', params: { status: 'no_answer' } },
        },
        taken_over: { actions: 'dial' },
      },
      initial: 'silent',
      states: { silent: {}, ringing: {} },
    },

    talking: {
      entry: [startConversation, { type: 'wait', params: { deadline: 'duration', ms: maxDuration } }],
      exit: 'stopWaiting',
      on: {
        turn_committed: turnCommitted,
        noted: { actions: 'note' },
        agent_finished: {
          target: 'windingUp',
          actions: [assign({ nextAction: ({ event }) => event.nextAction }), completed],
        },
        leg_disconnected: { target: 'windingUp', actions: completed },
        hang_up_requested: { target: 'windingUp', actions: completed },
        deadline_passed: { guard: { type: 'passed', params: 'duration' }, target: 'windingUp', actions: completed },
        engine_failed: [
          { guard: 'web', target: 'windingUp', actions: failed('voice_session_creation_failed') },
          { target: 'windingUp', actions: failed('voice_session_unavailable') },
        ],
        taken_over: { actions: startConversation },
      },
    },

    // Conversation and leg close; the last turn may still come.
    windingUp: {
      entry: [windUp, { type: 'wait', params: { deadline: 'close', ms: closeTimeout } }],
      exit: 'stopWaiting',
      on: {
        turn_committed: turnCommitted,
        noted: { actions: 'note' },
        leg_closed: 'over',
        deadline_passed: { guard: { type: 'passed', params: 'close' }, target: 'over' },
        taken_over: { actions: windUp },
      },
    },

    over: {
      entry: {
        type: 'store_outcome',
        params: ({ context }) => ({
          outcome: context.outcome ?? { status: 'completed' },
          answeredAt: context.answeredAt,
          endedAt: context.now,
        }),
      },
      always: [{ guard: 'answered', target: 'processing' }, { target: 'ended' }],
    },
    // Only answered calls have something to process; their end is announced after it.
    processing: {
      entry: 'schedule_post_processing',
      on: {
        post_processed: {
          target: 'ended',
          actions: {
            type: 'store_analysis',
            params: ({ event }) => ({
              recordedMs: event.recordedMs,
              dimensions: event.dimensions,
              nextAction: event.nextAction,
            }),
          },
        },
        post_processing_failed: { target: 'ended', actions: 'fail_post_processing' },
      },
    },
    ended: { type: 'final', entry: 'announce_ended' },

    canceledBeforeDialing: {
      type: 'final',
      entry: {
        type: 'store_outcome',
        params: ({ context }) => ({
          outcome: context.outcome ?? { status: 'canceled', reason: null },
          answeredAt: null,
          endedAt: context.now,
        }),
      },
    },
  },
})
