/**
 * Owns the two states within a talk: it is open, or the caller is told first what must be said first, to its end. Then nothing but the end of the call, or of
 * its engine, leaves this state before, and who takes the call over says it again from its beginning. Pure. docs/contract/rest.md "Disclosure".
 */
import type { CallFact } from '../call-event.ts'
import { failed, machineActions, startConversation, stopWaiting, wait, type CallContext } from './machine-actions.ts'
import { resumed } from './recording-actions.ts'

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

const { createStateConfig } = machineActions

/** What both do alike is the talk's. */
export const talkingStates = {
  initial: 'open',
  states: {
    open: createStateConfig({
      on: { disclosure_due: { guard: 'undisclosed', target: 'disclosing', actions: 'noteDue' } },
    }),
    disclosing: createStateConfig({
      entry: [disclose, wait('disclosure', disclosureTimeout)],
      exit: stopWaiting('disclosure'),
      on: {
        disclosure_played: { guard: 'heardOut', target: 'open', actions: [...disclosurePlayed, startConversation] },
        recording_resume_requested: resumed('agent'),
        engine_failed: { guard: 'fallsBack', actions: ['takeEmbedded', disclose] },
        deadline_passed: {
          guard: { type: 'passed', params: 'disclosure' },
          target: '#call.windingUp',
          actions: failed('internal_error'),
        },
        taken_over: { actions: disclose },
      },
    }),
  },
} as const
