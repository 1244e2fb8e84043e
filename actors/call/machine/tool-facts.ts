/** Owns how tools of a talk are run once, in the order of the facts: asked for, then answered or no longer awaited. Pure. */
import type { CallFact } from '../call-event.ts'

type Of<Type extends CallFact['type']> = Extract<CallFact, { type: Type }>
type Args<Type extends CallFact['type']> = { readonly event: Of<Type> }

const runTool = {
  type: 'run_tool',
  params: ({ event: { type: _, ...called } }: Args<'tool_called'>) => called,
} as const

const cancelTool = {
  type: 'cancel_tool',
  params: ({ event }: Args<'tool_canceled'>) => ({ id: event.id }),
} as const

const announceToolCall = {
  type: 'announce_tool_call',
  params: ({ event: { toolCallId, name, arguments: given } }: Args<'tool_asked'>) => ({
    toolCallId,
    name,
    arguments: given,
  }),
} as const

export const toolFacts = {
  tool_called: { guard: 'newTool', actions: [runTool, 'beginTool'] },
  tool_asked: { actions: announceToolCall },
  tool_answered: { guard: 'awaited', actions: 'endTool' },
  tool_canceled: { guard: 'awaited', actions: [cancelTool, 'endTool'] },
} as const
