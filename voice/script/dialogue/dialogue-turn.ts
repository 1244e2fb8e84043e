/** Owns what goes into a dialogue and what comes out of it. */
import type { Json, JsonObject } from '../../../model/json.ts'
import type { ToolResult } from '../../../model/tool.ts'
import type { DialogueState, World } from './dialogue-state.ts'
import type { Meaning } from '../phrases.ts'
import type { Script } from '../steps.ts'

export type DialogueEvent =
  /** `isOwed` false: it goes on after a line that the caller has heard. */
  | { readonly type: 'opened'; readonly isOwed?: boolean }
  /** The caller has heard all of what was said last. */
  | { readonly type: 'played' }
  /** The caller spoke, perhaps over the agent. Null: not understood. `confidence` is 0 to 1. */
  | { readonly type: 'heard'; readonly meaning: Meaning | null; readonly confidence?: number }
  /** Nobody spoke for too long after a question, or a tool takes too long. */
  | { readonly type: 'silence' }
  /** The agent was cut off and nobody spoke. */
  | { readonly type: 'interrupted' }
  | { readonly type: 'dtmf'; readonly digit: string }
  | { readonly type: 'tool_result'; readonly id: string; readonly result: ToolResult }

export type DialogueAction =
  | { readonly type: 'say'; readonly text: string }
  | { readonly type: 'note'; readonly key: string; readonly value: Json }
  | { readonly type: 'call_tool'; readonly id: string; readonly name: string; readonly arguments: JsonObject }
  | { readonly type: 'cancel_tool'; readonly id: string }
  /** These keys were an answer. */
  | { readonly type: 'took_keys'; readonly keys: string }
  | { readonly type: 'finish'; readonly nextAction: string | null }

export type Advanced = { readonly state: DialogueState; readonly actions: readonly DialogueAction[] }
export type Setting = World & {
  readonly script: Script
  /** Before the ids of tool calls: another one in every session of a call. */
  readonly idPrefix?: string
}

export const goodbye = 'Goodbye.'

export const stay = (state: DialogueState): Advanced => ({ state, actions: [] })

export const joined = (...texts: readonly string[]): string => texts.filter((text) => text !== '').join(' ')

/** Actions that come first. */
export const after = (actions: readonly DialogueAction[], advanced: Advanced): Advanced => ({
  state: advanced.state,
  actions: [...actions, ...advanced.actions],
})

export const speak = (state: DialogueState, text: string): Advanced => ({
  state: { ...state, phase: 'speaking' },
  actions: [{ type: 'say', text }],
})

export const end = (state: DialogueState, text: string, nextAction: string | null): Advanced => ({
  state: { ...state, phase: 'ended', nextAction },
  actions: [...(text === '' ? [] : [{ type: 'say', text } as const]), { type: 'finish', nextAction }],
})
