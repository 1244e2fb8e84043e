/**
 * Owns what the model is told of the talk so far: who said what, as it was heard, and tools with their results; the oldest is forgotten when it gets
 * too much. Pure. OpenAI API reference, "Create chat completion": messages.
 */
import { storableText, type Json, type JsonObject } from '../../../model/json.ts'
import { unclear } from '../../../model/transcript-marks.ts'
import type { Said } from '../../../model/voice-engine.ts'
import type { AgentEntry, Asked, Entry, ToolCall } from './entry.ts'
import { entryOf, memoryOf, rememberedEntries } from './memory.ts'

export type ChatMessage =
  | { readonly role: 'system' | 'user'; readonly content: string }
  | { readonly role: 'assistant'; content: string | null; tool_calls?: readonly object[] }
  | { readonly role: 'tool'; readonly tool_call_id: string; readonly content: string }

export type History = {
  caller(text: string): void
  /** What the model learns besides, as if the caller had said it; remembered. */
  news(text: string): void
  /** Said before all that this session has heard, behind what it knew of that. */
  recall(said: Said): void
  /** A new utterance of the agent, not heard yet; what is returned sets its text to what was heard, or will be. */
  agent(): (heard: string) => void
  calls(calls: readonly ToolCall[]): void
  /**
   * `unknown`: there is no such call. `waiting`: others of the same reply have no result yet, or it has one already. `due`: all have, and the model
   * is to speak about them. `settled`: all have, and it has spoken.
   */
  answer(id: string, output: JsonObject, wantsReply: boolean): 'unknown' | 'waiting' | 'due' | 'settled'
  /** Calls of this session without a result, oldest first. */
  pending(): string[]
  /** What the caller said last was not understood, or all that they said where that was not already; false when nothing of it was. */
  veil(): boolean
  /** The end of it is a result that the model has not spoken about. */
  isDue(): boolean
  /** Forgets the older half for good; false when there is nothing more to forget. */
  halve(): boolean
  /** What a session that goes on needs besides what was said; null: nothing. */
  memory(): Json
  messages(instructions: string, hint: string | null): ChatMessage[]
}

/** About 12,000 tokens of a European language. */
const maxLetters = 48_000
const maxEntries = 500
const unanswered = '{"status":"running"}'
/** Of one result. */
const maxOutput = 16_000
const connected = '[The call is connected.]'
const goOn = 'Go on.'

export function createHistory(said: readonly Said[], memory: Json = null): History {
  const entries: Entry[] = rememberedEntries(memory, said)
  const earlier = new Set<Entry>(entries)
  /** Calls of other sessions are waited for by whoever made them. */
  const others = new Set(callsIn(entries).map(({ id }) => id))
  let maxSize = maxLetters

  const add = <Added extends Entry>(entry: Added): Added => {
    entries.push(entry)
    forgetOldest(entries, maxSize)
    return entry
  }
  const replace = (old: Entry, entry: Entry): void => {
    entries[entries.indexOf(old)] = entry
    if (earlier.delete(old)) earlier.add(entry)
  }
  const asked = (id: string) => {
    const entry = entries.find(
      (candidate) => candidate.kind === 'calls' && candidate.calls.some((call) => call.id === id),
    )
    return entry?.kind === 'calls' ? entry : null
  }
  return {
    caller: (text) => void add({ kind: 'caller', text }),
    news: (text) => void add({ kind: 'news', text: storableText(text, maxOutput) }),
    recall({ role, text }) {
      const entry = entryOf({ role, text: storableText(text, maxOutput) })
      earlier.add(entry)
      entries.splice(entries.findLastIndex((one) => one !== entry && earlier.has(one)) + 1, 0, entry)
      forgetOldest(entries, maxSize)
    },
    agent() {
      const entry: AgentEntry = add({ kind: 'agent', text: '' })
      return (heard) => {
        entry.text = heard
      }
    },
    calls(calls) {
      const used = new Set(callsIn(entries).map(({ wireId }) => wireId))
      add({
        kind: 'calls',
        calls: calls.map((call) => {
          // Some endpoints count anew in every reply.
          const wireId = used.has(call.wireId) ? call.id : call.wireId
          used.add(wireId)
          return { ...call, wireId, output: null, wantsReply: false }
        }),
      })
    },
    answer(id, output, wantsReply) {
      const entry = asked(id)
      const call = entry?.calls.find((candidate) => candidate.id === id)
      if (!entry || !call) return 'unknown'
      if (call.output !== null) return 'waiting'
      Object.assign(call, { output: storableText(JSON.stringify(output), maxOutput), wantsReply })
      if (entry.calls.some((other) => other.output === null)) return 'waiting'
      // What was said meanwhile was said without these results.
      entries.splice(entries.indexOf(entry), 1)
      earlier.delete(entry)
      add(entry)
      return entry.calls.some((other) => other.wantsReply) ? 'due' : 'settled'
    },
    pending: () =>
      callsIn(entries)
        .filter(({ id, output }) => output === null && !others.has(id))
        .map(({ id }) => id),
    isDue() {
      const last = entries.at(-1)
      if (last?.kind !== 'calls') return last?.kind === 'news'
      return last.calls.every(({ output }) => output !== null) && last.calls.some(({ wantsReply }) => wantsReply)
    },
    halve() {
      const before = entries.length
      maxSize = entries.reduce((sum, entry) => sum + lettersOf(entry), 0) / 2
      forgetOldest(entries, maxSize)
      return entries.length < before
    },
    veil() {
      const isOpen = (entry: Entry): boolean => entry.kind === 'caller' && entry.text !== unclear
      const last = entries.findLast(({ kind }) => kind === 'caller')
      const veiled = last && isOpen(last) ? [last] : entries.filter(isOpen)
      for (const entry of veiled) replace(entry, { kind: 'caller', text: unclear })
      return veiled.length > 0
    },
    memory: () => memoryOf(entries),
    messages: (instructions, hint) => [{ role: 'system', content: instructions }, ...messagesOf(entries, hint)],
  }
}

/** The newest entry stays whatever its size; the sums are small enough to be done again. */
function forgetOldest(entries: Entry[], maxSize: number): void {
  let letters = entries.reduce((sum, entry) => sum + lettersOf(entry), 0)
  while (entries.length > 1 && (letters > maxSize || entries.length > maxEntries)) {
    const oldest = entries.shift()
    if (oldest) letters -= lettersOf(oldest)
  }
}

const callsIn = (entries: readonly Entry[]): Asked[] =>
  entries.flatMap((entry) => (entry.kind === 'calls' ? entry.calls : []))

const lettersOf = (entry: Entry): number =>
  entry.kind === 'calls' ? JSON.stringify(entry.calls).length : entry.text.length

/** Many models refuse a talk that the user does not begin or in which somebody speaks twice in a row; an end that is the assistant's is gone on with. */
function messagesOf(entries: readonly Entry[], hint: string | null): ChatMessage[] {
  const messages: ChatMessage[] = []
  for (const entry of entries) addEntry(messages, entry)
  if (messages[0]?.role !== 'user') messages.unshift({ role: 'user', content: connected })
  const last = messages.at(-1)?.role
  if (hint !== null || last === 'assistant')
    addCaller(messages, `[Instruction, not said by the caller: ${hint ?? goOn}]`)
  return messages
}

function addEntry(messages: ChatMessage[], entry: Entry): void {
  if (entry.kind === 'calls') return addCalls(messages, entry.calls)
  const text = entry.text.trim()
  if (text === '') return
  if (entry.kind !== 'agent') return addCaller(messages, text)
  const last = messages.at(-1)
  if (last?.role === 'assistant') last.content = `${last.content} ${text}`
  else messages.push({ role: 'assistant', content: text })
}

function addCaller(messages: ChatMessage[], text: string): void {
  const last = messages.at(-1)
  if (last?.role === 'user') messages[messages.length - 1] = { role: 'user', content: `${last.content}\n${text}` }
  else messages.push({ role: 'user', content: text })
}

function addCalls(messages: ChatMessage[], calls: readonly Asked[]): void {
  const toolCalls = calls.map(({ wireId, name, arguments: given }) => ({
    id: wireId,
    type: 'function',
    function: { name, arguments: JSON.stringify(given ?? {}) },
  }))
  const last = messages.at(-1)
  if (last?.role === 'assistant') last.tool_calls = toolCalls
  else messages.push({ role: 'assistant', content: null, tool_calls: toolCalls })
  for (const { wireId, output } of calls)
    messages.push({ role: 'tool', tool_call_id: wireId, content: output ?? unanswered })
}
