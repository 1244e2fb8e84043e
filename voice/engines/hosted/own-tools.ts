/**
 * Owns the tools that are the engine's own: by them a model tells what only a conversation can establish. They never leave the engine; the worker's
 * tools do.
 */
import { z } from 'zod'
import { Json, type JsonObject } from '../../../model/json.ts'
import { endCall, noteValue, type EngineTool } from '../../../model/voice-engine.ts'
import type { Dimension, EffectiveConfig, NextAction } from '../../../model/worker.ts'

/** What the model did with one of them; `wrong` is for the model. */
export type OwnToolUse =
  | { readonly kind: 'end'; readonly nextAction: string | null }
  | { readonly kind: 'note'; readonly key: string; readonly value: Json }
  | { readonly kind: 'wrong'; readonly message: string }

const Note = z.object({ key: z.string(), value: Json })
const End = z.object({ next_action: z.string().nullish() })

export function ownToolsOf({ dimensions = [], nextActions = [] }: EffectiveConfig): EngineTool[] {
  return dimensions.length === 0 ? [endToolOf(nextActions)] : [endToolOf(nextActions), noteToolOf(dimensions)]
}

/** Null for a tool of the worker. */
export function useOwnTool(worker: EffectiveConfig, name: string, given: JsonObject): OwnToolUse | null {
  if (name === endCall) return useEnd(worker.nextActions ?? [], given)
  return name === noteValue ? useNote(worker.dimensions ?? [], given) : null
}

function useEnd(nextActions: readonly NextAction[], given: JsonObject): OwnToolUse {
  const key = End.safeParse(given).data?.next_action ?? null
  return { kind: 'end', nextAction: nextActions.some((action) => action.key === key) ? key : null }
}

function useNote(dimensions: readonly Dimension[], given: JsonObject): OwnToolUse {
  const { data: note } = Note.safeParse(given)
  if (!note) return { kind: 'wrong', message: 'key and value must be given' }
  if (dimensions.some(({ key }) => key === note.key)) return { kind: 'note', ...note }
  return { kind: 'wrong', message: `key must be one of: ${dimensions.map(({ key }) => key).join(', ')}` }
}

function endToolOf(nextActions: readonly NextAction[]): EngineTool {
  const next_action = {
    type: 'string',
    enum: nextActions.map(({ key }) => key),
    description: 'What is to be done after the call, where one of these is.',
  }
  return {
    name: endCall,
    description: 'Ends the call. Say goodbye first, in the same turn; then call this.',
    inputSchema: { type: 'object', properties: nextActions.length === 0 ? {} : { next_action }, required: [] },
  }
}

function noteToolOf(dimensions: readonly Dimension[]): EngineTool {
  const keys = dimensions.map(({ key }) => key)
  return {
    name: noteValue,
    description: 'Notes what the caller has said or agreed to, as soon as it is known. Nothing is said about it.',
    inputSchema: {
      type: 'object',
      properties: {
        key: { type: 'string', enum: keys },
        value: { description: 'Of the type that the instructions name for this key.' },
      },
      required: ['key', 'value'],
    },
  }
}
