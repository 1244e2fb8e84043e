/** Owns what becomes of the tools that a dialogue called: results, failures, what takes too long, and callers who speak meanwhile. */
import type { Json, JsonObject } from '../../../model/json.ts'
import type { ToolResult } from '../../../model/tool.ts'
import { bestSentenceOf } from './best-sentence.ts'
import { lookingUp, toolDropped, toolFailed, transferFailed, transferUnanswered, unknownAnswer } from './own-lines.ts'
import type { DialogueState, PendingCall } from './dialogue-state.ts'
import { call, enter, failed, resumable } from './enter-step.ts'
import { after, stay, type Advanced, type Setting } from './dialogue-turn.ts'

const maxQuery = 500
/** Of a result that is kept: so many values, texts so long, so deep. */
const maxValues = 400
const maxString = 500
const maxDepth = 6

/** Looks up what the caller asked; null when the call cannot. */
export function lookUp(setting: Setting, state: DialogueState, question: string): Advanced | null {
  const { knowledgeTool } = setting.script
  const query = question.trim().slice(0, maxQuery)
  if (!state.knowledge || knowledgeTool === null || query === '') return null
  const wanted = { name: knowledgeTool, purpose: 'knowledge', into: null, handlesErrors: false, query } as const
  return call(setting, resumable(setting, state), wanted, { query }, lookingUp)
}

export function resulted(setting: Setting, state: DialogueState, id: string, result: ToolResult): Advanced {
  const pending = state.call
  if (pending?.id !== id || pending.outcome !== 'pending') return stay(state)
  const settled = settledBy(state, pending, result)
  return settled.phase === 'waiting' && settled.call?.outcome === 'done' ? proceed(setting, settled) : stay(settled)
}

/** The words that were said while the tool ran have been heard. */
export function fillerOver(setting: Setting, state: DialogueState): Advanced {
  if (state.call?.outcome === 'done') return proceed(setting, state)
  return stay({ ...state, phase: 'waiting' })
}

/** Nobody waits for the tool any more. */
export function tookTooLong(setting: Setting, state: DialogueState): Advanced {
  if (state.call?.outcome === 'moved') return enter(setting, { ...state, call: null }, transferUnanswered)
  return drop(setting, state, null)
}

/** `words` in place of the usual ones. */
export function drop(setting: Setting, state: DialogueState, words: string | null): Advanced {
  const { pending, state: over } = left(state)
  if (pending === null) return enter(setting, over, words ?? '')
  const usual = pending.handlesErrors ? '' : failureOf(pending)
  return after(cancelOf(pending), enter(setting, over, words ?? usual))
}

/** The call is not waited for, and counts as failed. */
export function left(state: DialogueState): { readonly pending: PendingCall | null; readonly state: DialogueState } {
  const { call: pending } = state
  if (pending === null) return { pending, state }
  const isOpen = pending.outcome === 'pending'
  return { pending, state: { ...(isOpen ? failed(state, pending) : state), call: null } }
}

export const cancelOf = (pending: PendingCall | null) =>
  pending?.outcome === 'pending' ? [{ type: 'cancel_tool', id: pending.id } as const] : []

/** The caller spoke while a tool ran: the caller's words go first. */
export function spokenOver(setting: Setting, state: DialogueState): Advanced {
  if (state.call?.outcome === 'done') return proceed(setting, state)
  if (state.call?.outcome === 'moved' || state.call?.purpose === 'transfer') return stay(state)
  return drop(setting, state, state.call?.handlesErrors === true ? '' : toolDropped)
}

const proceed = (setting: Setting, state: DialogueState): Advanced =>
  enter(setting, { ...state, call: null }, state.call?.reply ?? '')

function settledBy(state: DialogueState, pending: PendingCall, result: ToolResult): DialogueState {
  const isDone = result.status === 'success'
  const { into, purpose } = pending
  if (!isDone && purpose !== 'knowledge') {
    const reply = pending.handlesErrors ? '' : failureOf(pending)
    return { ...failed(state, pending), call: { ...pending, outcome: 'done', reply } }
  }
  if (purpose === 'transfer') return { ...state, call: { ...pending, outcome: 'moved' } }
  if (purpose === 'knowledge') {
    const reply = (isDone ? bestSentenceOf(result.data, pending.query) : null) ?? unknownAnswer
    return { ...state, call: { ...pending, outcome: 'done', reply } }
  }
  const done: DialogueState = { ...state, call: { ...pending, outcome: 'done' } }
  if (into === null) return done
  const results = { ...state.results, [into]: pruned(dataOf(result.data ?? {})) }
  return { ...done, results, failed: state.failed.filter((key) => key !== into) }
}

function failureOf({ purpose }: PendingCall): string {
  if (purpose === 'knowledge') return unknownAnswer
  return purpose === 'transfer' ? transferFailed : toolFailed
}

/** An external tool answers with `result` and nothing beside it. */
const dataOf = (told: JsonObject): Json =>
  Object.keys(told).length === 1 && Object.hasOwn(told, 'result') ? (told['result'] ?? null) : told

/** What is remembered with every turn must be small. */
function pruned(value: Json): Json {
  let room = maxValues
  const prune = (of: Json, depth: number): Json => {
    room--
    if (typeof of === 'string') return of.slice(0, maxString)
    if (typeof of !== 'object' || of === null) return of
    if (depth === maxDepth) return null
    if (Array.isArray(of))
      return (of as readonly Json[]).slice(0, Math.max(0, room)).map((item) => prune(item, depth + 1))
    const kept: [string, Json][] = []
    for (const [key, item] of Object.entries(of)) if (room > 0) kept.push([key, prune(item, depth + 1)])
    return Object.fromEntries(kept)
  }
  return prune(value, 0)
}
