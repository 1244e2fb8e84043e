/**
 * Owns the lifecycle of a call, inbound, outbound and web, as a pure XState machine: no clock, no randomness, no I/O. Time comes with every
 * fact; deadlines are absolute times in the context, because XState's own `after` timers do not survive a restored snapshot.
 */
import { assign } from 'xstate'
import {
  canceled,
  canceledByAdmin,
  completed,
  failed,
  hungUp,
  machineActions,
  startConversation,
  stopWaiting,
  storeWorkerRequest,
  turnCommitted,
  wait,
  windUp,
} from './machine-actions.ts'

/** From the browser's socket to its media. */
const connectTimeout = 30_000
/** The receiver has 10 s at most; an answer that is not here by then was lost. */
const hookTimeout = 30_000
/** For conversation and leg to say their last words. */
const closeTimeout = 15_000
const maxDuration = 4 * 3_600_000
/** Until the dialer reports anything final by itself; the worker's ringTimeout is the dialer's business and shorter. */
const dialTimeout = 330_000

/** What a call does from `asking` on is the same for browser and phone: the answer changes the call, a required failure ends it. */
const workerRequestAnswers = (settled: string) =>
  ({
    worker_request_answered: { target: settled, actions: storeWorkerRequest },
    worker_request_failed: [
      { guard: 'required', target: '#call.windingUp', actions: failed('worker_request_required_failed') },
      { target: settled },
    ],
    deadline_passed: {
      guard: { type: 'passed', params: 'hook' },
      target: '#call.windingUp',
      actions: failed(null),
    },
    taken_over: { actions: 'ask_worker_request' },
  }) as const

export const callMachine = machineActions.createMachine({
  id: 'call',
  context: ({ input }) => ({
    ...input,
    answeredAt: null,
    providerStatus: null,
    turns: 0,
    notes: {},
    nextAction: null,
    recordedMs: null,
    memory: null,
    outcome: null,
    deadlines: {},
  }),
  initial: 'unborn',
  // A wait that no state asks for any more is over, whoever forgot it.
  on: { deadline_passed: { actions: { type: 'stopWaiting', params: ({ event }) => event.deadline } } },
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
      on: {
        leg_disconnected: [
          { guard: 'answered', target: 'windingUp', actions: completed },
          { target: 'windingUp', actions: failed('webrtc_client_never_connected') },
        ],
        hang_up_requested: { target: 'windingUp', actions: hungUp },
      },
      states: {
        media: {
          initial: 'negotiating',
          states: {
            negotiating: {
              entry: wait('connect', connectTimeout),
              exit: stopWaiting('connect'),
              on: {
                taken_over: { actions: 'look_for_leg' },
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
            asking: {
              entry: ['ask_worker_request', wait('hook', hookTimeout)],
              exit: stopWaiting('hook'),
              on: workerRequestAnswers('settled'),
            },
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
      entry: ['ask_worker_request', wait('hook', hookTimeout)],
      exit: stopWaiting('hook'),
      on: {
        ...workerRequestAnswers('dialing'),
        leg_disconnected: { target: 'windingUp', actions: canceled },
        hang_up_requested: { target: 'windingUp', actions: canceled },
      },
    },
    // Outbound: the other side rings. Inbound: we answer.
    dialing: {
      entry: ['dial', wait('ring', dialTimeout)],
      exit: stopWaiting('ring'),
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
      entry: [startConversation, wait('duration', maxDuration)],
      exit: stopWaiting('duration'),
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
      entry: [windUp, wait('close', closeTimeout)],
      exit: stopWaiting('close'),
      on: {
        turn_committed: turnCommitted,
        noted: { actions: 'note' },
        leg_closed: { target: 'over', actions: 'noteRecording' },
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
