/** Owns what a talk is started with: at its beginning, by an actor that took the call over, and by an engine that took the place of a lost one. Pure. */
import type { CallFact } from '../call-event.ts'
import { keepsTools, type CallContext } from './machine-actions.ts'

type Failed = Extract<CallFact, { type: 'engine_failed' }>

const conversationOf = (context: CallContext) => ({
  turns: context.turns,
  memory: context.memory,
  answeredAt: context.answeredAt ?? 0,
  ...(context.engine && { engine: context.engine }),
  ...(context.recording && { recording: context.recording }),
  ...(context.whispers?.length && { whispers: context.whispers }),
  ...(context.disclosedTurns !== undefined && { disclosedTurns: context.disclosedTurns }),
})

export const startConversation = {
  type: 'start_conversation',
  params: ({ context, event }: { context: CallContext; event: CallFact }) => ({
    ...conversationOf(context),
    ...(keepsTools(event) && context.tools?.length && { lostTools: context.tools }),
    ...(event.type === 'taken_over' && context.settled && { settled: context.settled }),
  }),
} as const

/** With the engine that has taken the place of one that was lost. */
export const goOnElsewhere = {
  type: 'start_conversation',
  params: ({ context, event }: { context: CallContext; event: CallFact }) => ({
    ...conversationOf(context),
    ...((event as Failed).hasSpoken === true && { bridges: true as const }),
  }),
} as const

/** Behind a person who spoke in the agent's place. */
export const takeUpAgain = {
  type: 'start_conversation',
  params: ({ context }: { context: CallContext }) => ({ ...conversationOf(context), isDue: true as const }),
} as const
