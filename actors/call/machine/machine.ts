/**
 * Owns the lifecycle of a call, inbound, outbound and web, as a pure XState machine: no clock, no randomness, no I/O. Time comes with every
 * fact; deadlines are absolute times in the context, because XState's own `after` timers do not survive a restored snapshot.
 */
import { assign, not } from 'xstate'
import {
  canceled,
  canceledByAdmin,
  completed,
  cutOff,
  failed,
  hungUp,
  machineActions,
  noteProviderStatus,
  stopWaiting,
  storeDecided,
  storeUnstored,
  voicemail,
  wait,
  windUp,
} from './machine-actions.ts'
import { hookTimeout, phoneStates } from './phone-states.ts'
import { notRecorded, recordingFacts } from './recording-actions.ts'
import { goOnElsewhere, startConversation } from './start-conversation.ts'
import { supervisionFacts } from './supervision.ts'
import { disclosurePlayed, goesOn, goesOnWithoutWords, talkingStates } from './talking-states.ts'
import { toolFacts } from './tool-facts.ts'
import {
  callerHeard,
  keepHeard,
  turnCommitted,
  turnFound,
  turnFoundLate,
  turnShown,
  warned,
  warnedOfRecording,
} from './turn-actions.ts'
import { workerRequestAnswers } from './worker-request.ts'

/** From the browser's socket to its media. */
const connectTimeout = 30_000
/** For conversation and leg to say their last words. */
const closeTimeout = 15_000
/** For the tone, and for a message of two minutes. */
const messageTimeout = 150_000
const maxDuration = 4 * 3_600_000

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
  // A deadline that its state did not clear is cleared here.
  on: {
    deadline_passed: { actions: { type: 'stopWaiting', params: ({ event }) => event.deadline } },
    used: { actions: 'noteUsed' },
  },
  states: {
    unborn: {
      on: {
        created: [
          { guard: 'web', target: 'waitingForClient' },
          { guard: 'inbound', target: 'arriving' },
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
          { guard: 'answeredAndCut', target: 'windingUp', actions: cutOff },
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

    ...phoneStates,

    talking: {
      ...talkingStates,
      entry: [startConversation, wait('duration', maxDuration)],
      exit: stopWaiting('duration'),
      on: {
        turn_committed: turnCommitted,
        turn_found: turnFound,
        caller_heard: callerHeard,
        turn_shown: turnShown,
        warned,
        noted: { actions: 'note' },
        ...toolFacts,
        ...recordingFacts,
        ...supervisionFacts,
        not_recorded: notRecorded,
        agent_finished: {
          target: 'windingUp',
          actions: [assign({ nextAction: ({ event }) => event.nextAction }), completed],
        },
        leg_disconnected: [
          { guard: 'cut', target: 'windingUp', actions: cutOff },
          { target: 'windingUp', actions: completed },
        ],
        hang_up_requested: { target: 'windingUp', actions: completed },
        deadline_passed: { guard: { type: 'passed', params: 'duration' }, target: 'windingUp', actions: completed },
        // A tool passed the caller on, or could not: then the talk goes on.
        transferred: { target: 'windingUp', actions: [noteProviderStatus, completed] },
        transfer_failed: { actions: noteProviderStatus },
        voicemail_detected: [
          { guard: 'leavesMessage', target: 'leavingMessage' },
          { guard: 'outbound', target: 'windingUp', actions: voicemail },
        ],
        engine_failed: [
          { guard: 'hasNext', actions: ['takeNext', goOnElsewhere] },
          { guard: 'fallsBack', actions: ['takeEmbedded', startConversation] },
          { guard: 'web', target: 'windingUp', actions: failed('voice_session_creation_failed') },
          { guard: 'unspoken', target: 'redirecting' },
          { target: 'windingUp', actions: failed('voice_session_unavailable') },
        ],
        taken_over: [{ guard: 'losesWords', actions: goesOnWithoutWords }, { actions: goesOn }],
      },
    },

    // An answering machine gets the message of the script, and no more.
    leavingMessage: {
      entry: ['leave_message', wait('message', messageTimeout)],
      exit: stopWaiting('message'),
      on: {
        turn_committed: turnCommitted,
        turn_found: turnFound,
        caller_heard: callerHeard,
        noted: { actions: 'note' },
        ...recordingFacts,
        agent_finished: { target: 'windingUp', actions: voicemail },
        leg_disconnected: { target: 'windingUp', actions: voicemail },
        hang_up_requested: { target: 'windingUp', actions: voicemail },
        engine_failed: { target: 'windingUp', actions: voicemail },
        deadline_passed: { guard: { type: 'passed', params: 'message' }, target: 'windingUp', actions: voicemail },
        // Its telephone has come over, and nobody knows how much of the message was heard.
        leg_returned: { target: 'windingUp', actions: voicemail },
        // Only the former actor knew how much of the message was said.
        taken_over: { target: 'windingUp', actions: voicemail },
      },
    },

    // Conversation and leg close; what the caller said last is heard out meanwhile.
    windingUp: {
      entry: ['noteEnd', storeDecided, windUp, wait('close', closeTimeout)],
      exit: stopWaiting('close'),
      on: {
        turn_committed: turnCommitted,
        turn_found: turnFound,
        caller_heard: callerHeard,
        noted: { actions: 'note' },
        action_chosen: { actions: 'noteAction' },
        disclosure_played: { actions: disclosurePlayed },
        warned: warnedOfRecording,
        leg_closed: [
          { guard: 'heardWords', target: 'over', actions: [...keepHeard, 'noteLegClosed'] },
          { target: 'over', actions: 'noteLegClosed' },
        ],
        deadline_passed: [
          { guard: { type: 'passedOverWords', params: 'close' }, target: 'over', actions: keepHeard },
          { guard: { type: 'passed', params: 'close' }, target: 'over' },
        ],
        taken_over: { actions: windUp },
        // Of a telephone that came over too late.
        leg_returned: { guard: not('web'), actions: windUp },
      },
    },

    over: {
      entry: ['noteEnd', storeUnstored, 'forgetMemory'],
      always: [{ guard: 'answered', target: 'processing' }, { target: 'ended' }],
    },
    // Only answered calls have something to process; their end is announced after it.
    processing: {
      entry: 'schedule_post_processing',
      on: {
        post_processed: {
          target: 'ended',
          actions: { type: 'store_analysis', params: ({ event: { type: _, ...analysis } }) => analysis },
        },
        post_processing_failed: [
          {
            guard: 'analysed',
            target: 'ended',
            actions: [{ type: 'store_analysis', params: ({ event }) => event.analysis! }, 'fail_post_processing'],
          },
          { target: 'ended', actions: 'fail_post_processing' },
        ],
        turn_found: turnFound,
      },
    },
    ended: { type: 'final', entry: 'announce_ended', on: { turn_found: turnFoundLate } },

    canceledBeforeDialing: {
      type: 'final',
      entry: ['noteEnd', storeUnstored],
    },
  },
})
