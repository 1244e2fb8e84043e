/**
 * Owns the states within a talk: it is open, or the leg of a browser is gone and may come back by another process for a moment, or the caller is told first
 * what must be said first, to its end. Then nothing but the end of the call, or of
 * its engine, leaves this state before, and who takes the call over says it again from its beginning. Pure. docs/contract/rest.md "Disclosure".
 */
import { and } from 'xstate'
import type { CallFact } from '../call-event.ts'
import { failed, machineActions, stopWaiting, wait, type CallContext } from './machine-actions.ts'
import { resumed } from './recording-actions.ts'
import { waitForReturn } from './wait-for-return.ts'
import { startConversation } from './start-conversation.ts'
import { openToSupervisors, supervisedStates, superviseAgain } from './supervision.ts'
import { keepHeard } from './turn-actions.ts'

/** 2,000 characters take about three minutes. */
const disclosureTimeout = 300_000

const disclose = {
  type: 'disclose',
  params: ({ context }: { context: CallContext }) => ({
    text: context.disclosing ?? '',
    answeredAt: context.answeredAt ?? 0,
    ...(context.engine && { engine: context.engine }),
    ...(context.recording && { recording: context.recording }),
  }),
} as const

type Played = Extract<CallFact, { type: 'disclosure_played' }>

/** How much of it was heard is a fact of the call. */
export const disclosurePlayed = [
  {
    type: 'store_disclosure',
    params: ({ event }: { event: Played }) => ({ playedMs: event.playedMs, completed: event.completed }),
  },
  'noteDisclosed',
] as const

/** Of an actor that took the call over. */
export const goesOn = ['forgetTools', startConversation, superviseAgain] as const
export const goesOnWithoutWords = [...keepHeard, ...goesOn] as const

const { createStateConfig } = machineActions

/** What both do alike is the talk's. */
export const talkingStates = {
  initial: 'open',
  states: {
    open: createStateConfig({
      on: {
        disclosure_due: { guard: 'undisclosed', target: 'disclosing', actions: 'noteDue' },
        leg_disconnected: { guard: 'mayReturn', target: 'legless', actions: waitForReturn },
        // Before anybody noticed that the former one was gone.
        leg_returned: { actions: ['noteLegBack', 'rejoin_leg', superviseAgain] },
        ...openToSupervisors,
      },
    }),
    legless: createStateConfig({
      exit: stopWaiting('return'),
      on: {
        leg_returned: { target: 'open', actions: ['noteLegBack', 'rejoin_leg', superviseAgain] },
        // Told again, by somebody else.
        leg_disconnected: { guard: 'mayReturn' },
        // The browser may be back, and have told only the actor that is no more: whoever starts the leg finds out.
        taken_over: [
          {
            guard: and(['seeksLeg', 'losesWords']),
            target: 'open',
            actions: ['noteLegBack', ...goesOnWithoutWords],
          },
          { guard: 'seeksLeg', target: 'open', actions: ['noteLegBack', ...goesOn] },
        ],
        deadline_passed: {
          guard: { type: 'passed', params: 'return' },
          target: '#call.windingUp',
          actions: ['noteLeft', failed('internal_error')],
        },
      },
    }),
    disclosing: createStateConfig({
      entry: [disclose, wait('disclosure', disclosureTimeout)],
      exit: stopWaiting('disclosure'),
      on: {
        disclosure_played: { guard: 'heardOut', target: 'open', actions: [...disclosurePlayed, startConversation] },
        recording_resume_requested: resumed('agent'),
        engine_failed: [
          { guard: 'hasNext', actions: ['takeNext', disclose] },
          { guard: 'fallsBack', actions: ['takeEmbedded', disclose] },
        ],
        deadline_passed: {
          guard: { type: 'passed', params: 'disclosure' },
          target: '#call.windingUp',
          actions: failed('internal_error'),
        },
        taken_over: { actions: [disclose, superviseAgain] },
        leg_returned: { actions: [disclose, superviseAgain] },
      },
    }),
    ...supervisedStates,
  },
} as const
