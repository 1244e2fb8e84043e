/** Owns what the machine does with what is said: turns that are complete, words of the caller that are not yet, and warnings. Pure. */
import type { CallFact } from '../call-event.ts'
import type { CallContext } from './machine-actions.ts'

type Of<Type extends CallFact['type']> = Extract<CallFact, { type: Type }>

const heardTurn = ({ context }: { context: CallContext }) => ({
  index: context.turns,
  // Asked for only where there are words.
  turn: context.heard!.turn,
})

const shownOfCaller = ({ context }: { context: CallContext }) => {
  const { role, text, confidence, source } = context.heard!.turn
  return { index: context.turns, turn: { role, text, confidence, source } }
}

export const turnShown = {
  actions: [
    {
      type: 'show_turn',
      params: ({ event: { index, turn } }: { event: Of<'turn_shown'> }) => ({ index, turn }),
    },
  ],
} as const

export const turnCommitted = {
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

type Found = { readonly context: CallContext; readonly event: Of<'turn_found'> }

const found = ({ context, event }: Found) => ({ index: context.turns, turn: event.turn, isFound: true }) as const

const storeFound = { type: 'store_turn', params: found } as const

/** Behind those that the call has by now: when it was said stands in it. */
export const turnFound = { guard: 'newlyFound', actions: [storeFound, 'countFound'] } as const

const storeLate = {
  type: 'store_turn',
  params: (told: Found) => ({ ...found(told), isLate: true }) as const,
} as const

const completedLate = {
  type: 'store_warning',
  params: {
    warning: {
      type: 'TRANSCRIPT_COMPLETED_LATE',
      message:
        'What was said while the database was away was found when call.ended had been sent: the transcript has more than that event. Process the call again to have it considered.',
    },
  },
} as const

/** Of a call whose end has been announced. */
export const turnFoundLate = [
  { guard: 'firstFoundLate', actions: [storeLate, 'countFound', completedLate, 'noteCompletedLate'] },
  { guard: 'newlyFound', actions: [storeLate, 'countFound'] },
] as const

/** What the caller is saying is shown, and kept for the case that nobody is left to hear the end of it. */
export const callerHeard = [
  { guard: 'saysSomething', actions: ['noteHeard', { type: 'show_turn', params: shownOfCaller }] },
  { actions: 'noteHeard' },
] as const

export const warned = {
  guard: 'newWarning',
  actions: [
    { type: 'store_warning', params: ({ event }: { event: Of<'warned'> }) => ({ warning: event.warning }) },
    'noteWarned',
  ],
} as const

/** Told by the leg as it closes. */
export const warnedOfRecording = { ...warned, guard: 'soundLost' } as const

/** It stands as it was understood by then. */
export const keepHeard = [{ type: 'store_turn', params: heardTurn }, 'countHeard'] as const
