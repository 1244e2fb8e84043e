/**
 * Owns the states of a call that only a telephone has: it arrives and is answered, or is dialed and rings, or is passed on because no voice
 * session can be had. Each asks again for what was under way when another actor takes over, and each ends by its deadline at the latest.
 */
import {
  canceled,
  cutOff,
  failed,
  machineActions,
  noteProviderStatus,
  stopWaiting,
  wait,
  type CallContext,
} from './machine-actions.ts'
import { workerRequestAnswers } from './worker-request.ts'

/** From the birth of an inbound call to its leg. */
const arriveTimeout = 10_000
/** The receiver has 10 s at most; an answer that is not here by then was lost. */
export const hookTimeout = 30_000
/** Until the dialer reports anything final by itself; the worker's ringTimeout is the dialer's business and shorter. */
const dialTimeout = 330_000
/** From our 200 to the caller's media; 64*T1 for the ACK (RFC 3261 §13.3.1.4) and some. */
const answerTimeout = 40_000
/** For the other side to try the number it was given; longer than REFER (35 s) and its NOTIFY (90 s) may take. */
const redirectTimeout = 130_000

const { createStateConfig } = machineActions
const unavailable = failed('voice_session_unavailable')
const hungUpOrCanceled = {
  leg_disconnected: { target: '#call.windingUp', actions: canceled },
  hang_up_requested: { target: '#call.windingUp', actions: canceled },
} as const

const answerLeg = {
  type: 'answer',
  params: ({ context }: { context: CallContext }) => (context.engine ? { engine: context.engine } : {}),
} as const

export const phoneStates = {
  // An inbound call is stored; its leg is being made.
  arriving: createStateConfig({
    entry: wait('arrive', arriveTimeout),
    exit: stopWaiting('arrive'),
    on: {
      client_connected: [{ guard: 'isUnasked', target: 'reaching' }, { target: 'resolving' }],
      ...hungUpOrCanceled,
      deadline_passed: {
        guard: { type: 'passed', params: 'arrive' },
        target: '#call.windingUp',
        actions: canceled,
      },
      taken_over: { actions: 'look_for_leg' },
    },
  }),

  resolving: createStateConfig({
    entry: ['ask_worker_request', wait('hook', hookTimeout)],
    exit: stopWaiting('hook'),
    on: {
      ...workerRequestAnswers('reaching'),
      ...hungUpOrCanceled,
    },
  }),

  // The worker request is settled: an inbound call is answered, an outbound one dialed.
  reaching: createStateConfig({ always: [{ guard: 'inbound', target: 'answering' }, { target: 'dialing' }] }),

  // Outbound: the other side is to ring.
  dialing: createStateConfig({
    entry: ['dial', wait('ring', dialTimeout)],
    exit: stopWaiting('ring'),
    on: {
      ringing: { target: '.ringing', actions: noteProviderStatus },
      leg_connected: { target: '#call.talking', actions: 'noteAnswered' },
      dial_failed: {
        target: '#call.windingUp',
        actions: [noteProviderStatus, { type: 'end', params: ({ event }) => event.outcome }],
      },
      leg_disconnected: [
        { guard: 'hungUp', target: '#call.windingUp', actions: canceled },
        { guard: 'cut', target: '#call.windingUp', actions: cutOff },
        { target: '#call.windingUp', actions: failed(null) },
      ],
      hang_up_requested: { target: '#call.windingUp', actions: canceled },
      deadline_passed: {
        guard: { type: 'passed', params: 'ring' },
        target: '#call.windingUp',
        actions: { type: 'end', params: { status: 'no_answer' } },
      },
      taken_over: { actions: 'dial' },
    },
    initial: 'silent',
    states: { silent: {}, ringing: {} },
  }),

  // Inbound: it rings, and we take the call.
  answering: createStateConfig({
    entry: [answerLeg, wait('answer', answerTimeout)],
    exit: stopWaiting('answer'),
    on: {
      leg_connected: { target: '#call.talking', actions: 'noteAnswered' },
      engine_failed: [
        { guard: 'hasNext', actions: ['takeNext', answerLeg] },
        { guard: 'fallsBack', actions: ['takeEmbedded', answerLeg] },
        { target: 'redirecting' },
      ],
      ...hungUpOrCanceled,
      deadline_passed: {
        guard: { type: 'passed', params: 'answer' },
        target: '#call.windingUp',
        actions: failed(null),
      },
      taken_over: { actions: answerLeg },
    },
  }),

  // No voice session can be had: the caller goes to the redirect number, where there is one. docs/contract/rest.md "Worker configuration".
  redirecting: createStateConfig({
    entry: ['redirect', wait('redirect', redirectTimeout)],
    exit: stopWaiting('redirect'),
    on: {
      transferred: { target: '#call.windingUp', actions: [noteProviderStatus, unavailable] },
      transfer_failed: { target: '#call.windingUp', actions: [noteProviderStatus, unavailable] },
      leg_disconnected: { target: '#call.windingUp', actions: unavailable },
      hang_up_requested: { target: '#call.windingUp', actions: unavailable },
      deadline_passed: {
        guard: { type: 'passed', params: 'redirect' },
        target: '#call.windingUp',
        actions: unavailable,
      },
      taken_over: { actions: 'redirect' },
    },
  }),
}
