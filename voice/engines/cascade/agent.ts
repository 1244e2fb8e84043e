/**
 * Owns what the agent has to say in one talk: replies of the model and texts said word for word, one after another; what the caller has heard of them;
 * and tools that the model has called.
 */
import type { JsonObject } from '../../../model/json.ts'
import type { WireEvent, WireSetup } from '../hosted/wire.ts'
import type { ModelCall } from './chat-reply.ts'
import type { Chat, ChatAnswer, ChatRequest } from './chat.ts'
import { EndpointError } from './endpoint.ts'
import { createHistory, type History } from './history.ts'
import { createReply, type Reply } from './reply.ts'
import { speakable } from './speakable.ts'
import { createSentenceCutter, piecesOf } from './sentence-cutter.ts'
import type { Speak } from './speech.ts'
import { createSpoken, type Spoken } from './spoken.ts'

export type Due =
  { readonly kind: 'reply'; readonly hint: string | null } | { readonly kind: 'say'; readonly text: string }
export type Heard = { readonly itemId: string; readonly playedMs: number } | null

export type Agent = {
  /** Said after all that is due before it, as soon as the agent may speak. */
  enqueue(due: Due): void
  /** It may speak now, if it has anything to say. */
  next(): void
  /** A session that goes on: results came that nobody has spoken about. */
  catchUp(): void
  /** The caller speaks: nothing new is heard until `goOn`, `answer` or `cut`. */
  hold(): void
  /** That was no speech: it goes on with the sentence that was cut off. */
  goOn(): void
  /** What the caller said takes the place of what was being said; tools that are under way are not waited for. */
  answer(text: string): void
  /** The line was emptied. `isHeld`: whether the agent goes on is not known yet. False for an item that is not on the line. */
  cut(heard: Heard, isHeld: boolean): boolean
  /** What it was saying at that time, ms on the caller's line; null when it was silent. */
  saying(at: number): string | null
  lastSentence(): string
  tell(text: string): void
  instruct(instructions: string): void
  answerTool(id: string, name: string, output: JsonObject, wantsReply: boolean): void
  close(): void
}

export type AgentDeps = {
  readonly setup: WireSetup
  readonly chat: Chat
  readonly speak: Speak
  readonly rateHz: number
  /** No other session of the call has it: names of items and calls begin with it. */
  readonly session: string
  /** Ms on the caller's line. */
  at(): number
  maySpeak(): boolean
  emit(event: WireEvent): void
  onFailed(where: 'chat' | 'speech', error: unknown): void
}

/** What the parts of an agent share. */
type Talk = {
  readonly deps: AgentDeps
  readonly history: History
  readonly spoken: Spoken
  instructions: string
  due: Due[]
  reply: Reply | null
  /** Sentences that were cut off, while nobody knows whether they stay so. */
  unheard: string[]
  items: number
  calls: number
}

const maxDue = 16
const maxSaid = 10_000

export function createAgent(deps: AgentDeps): Agent {
  const { instructions, history: said, memory } = deps.setup
  const history = createHistory(said, memory)
  const spoken = createSpoken()
  const talk: Talk = { deps, history, spoken, instructions, due: [], reply: null, unheard: [], items: 0, calls: 0 }
  return {
    enqueue: (due) => enqueue(talk, due),
    next: () => next(talk),
    catchUp() {
      if (history.isDue()) enqueue(talk, { kind: 'reply', hint: null })
    },
    hold: () => talk.reply?.hold(),
    goOn() {
      const { reply, unheard } = talk
      if (reply === null && unheard.length === 0) return
      spoken.settle(true)
      talk.unheard = []
      if (reply === null) saySentences(talk, null, unheard)
      else reply.resume(unheard)
    },
    answer(text) {
      drop(talk)
      cancelTools(talk)
      history.caller(text)
      talk.due = [...talk.due.filter(({ kind }) => kind === 'say'), { kind: 'reply', hint: null }]
    },
    cut(heard, isHeld) {
      const cut = spoken.cut(heard, deps.at())
      if (cut === null) return false
      if (isHeld) talk.unheard.push(...cut)
      // Of a reply that has no sound yet nothing was on the line.
      else if (talk.reply?.hasSound()) drop(talk)
      else spoken.settle(false)
      return true
    },
    saying: (at) => (spoken.isPlaying(at) ? spoken.lastSentence() : null),
    lastSentence: spoken.lastSentence,
    tell: history.caller,
    instruct(text) {
      talk.instructions = text
    },
    answerTool(id, name, output, wantsReply) {
      const state = history.answer(id, output, wantsReply)
      const isNews = state === 'unknown'
      if (isNews) history.news(`[The tool ${name} answered: ${JSON.stringify(output).slice(0, maxSaid)}]`)
      remember(talk)
      if (state === 'due' || (isNews && wantsReply)) enqueue(talk, { kind: 'reply', hint: null })
    },
    close: () => drop(talk),
  }
}

function next(talk: Talk): void {
  const { deps } = talk
  if (talk.reply !== null || !deps.maySpeak()) return
  const first = talk.due.shift()
  if (first?.kind === 'say') saySentences(talk, first.text, piecesOf(first.text, deps.setup.language))
  if (first?.kind === 'reply') converse(talk, first.hint)
}

function enqueue(talk: Talk, wanted: Due): void {
  const isCovered = isAnswer(wanted) && talk.due.some(isAnswer)
  if (!isCovered && talk.due.length < maxDue) talk.due.push(wanted)
  next(talk)
}

/** One reply answers whatever has been said by then. */
const isAnswer = (due: Due): boolean => due.kind === 'reply' && due.hint === null

function drop(talk: Talk): void {
  const dropped = talk.reply
  talk.reply = null
  talk.unheard = []
  dropped?.drop()
  talk.spoken.settle(false)
}

/** `text`: known to be all of it. */
function begin(talk: Talk, text: string | null, words: AbortController): Reply {
  const { deps, history, spoken } = talk
  const reply = createReply({
    text,
    words,
    speak: deps.speak,
    bytesPerMs: (deps.rateHz * 2) / 1000,
    at: deps.at,
    openItem() {
      const itemId = `${deps.session}-item-${++talk.items}`
      return { itemId, spoken: spoken.item(itemId, history.agent()) }
    },
    emit: deps.emit,
    onCalls: (calls) => callTools(talk, calls),
    onOver() {
      if (talk.reply === reply) talk.reply = null
      next(talk)
    },
    onFailed: (error) => deps.onFailed('speech', error),
  })
  talk.reply = reply
  return reply
}

function saySentences(talk: Talk, text: string | null, sentences: readonly string[]): void {
  const reply = begin(talk, text, new AbortController())
  sentences.forEach(reply.add)
  reply.end([])
}

function converse(talk: Talk, hint: string | null): void {
  const { deps } = talk
  const words = new AbortController()
  const reply = begin(talk, null, words)
  const cutter = createSentenceCutter(deps.setup.language)
  let hasWords = false
  const add = (sentences: readonly string[]): void => {
    for (const sentence of sentences.map(speakable)) {
      if (sentence === null) continue
      hasWords = true
      reply.add(sentence)
    }
  }
  const talkOver = async (): Promise<void> => {
    const { calls, isCut } = await ask(talk, hint, {
      signal: words.signal,
      onText: (text) => add(cutter.push(text)),
    })
    // Nobody ends in the middle of a sentence; but half of one is better than nothing.
    if (!isCut || !hasWords) add(cutter.end())
    reply.end(calls)
  }
  talkOver().catch((error: unknown) => {
    if (!words.signal.aborted) deps.onFailed('chat', error)
  })
}

/** What is too much for the model is told again without its beginning. */
async function ask(talk: Talk, hint: string | null, how: Pick<ChatRequest, 'signal' | 'onText'>): Promise<ChatAnswer> {
  const { deps, history, instructions } = talk
  const { tools, worker } = deps.setup
  for (;;) {
    const messages = history.messages(instructions, hint)
    try {
      return await deps.chat({ ...how, messages, tools, temperature: worker.llmTemperature ?? null })
    } catch (error) {
      const isTooLong = error instanceof EndpointError && error.isTooLong
      if (!isTooLong || how.signal.aborted || !history.halve()) throw error
    }
  }
}

function callTools(talk: Talk, made: readonly ModelCall[]): void {
  const { deps, history } = talk
  const calls = made.map(({ id, name, arguments: given }) => {
    const ours = `${deps.session}-call-${++talk.calls}`
    return { id: ours, wireId: id ?? ours, name, arguments: given }
  })
  history.calls(calls)
  // Before they are called: whoever goes on from here must not call them again.
  if (calls.length > 0) remember(talk)
  for (const { id, name, arguments: given } of calls) deps.emit({ type: 'tool_call', id, name, arguments: given })
}

function cancelTools(talk: Talk): void {
  const { deps, history } = talk
  const canceled = history.pending()
  for (const id of canceled) history.answer(id, { error: 'canceled: the caller spoke' }, false)
  if (canceled.length > 0) remember(talk)
  for (const id of canceled) deps.emit({ type: 'tool_canceled', id })
}

function remember({ deps, history }: Talk): void {
  const memory = history.memory()
  if (memory !== null) deps.emit({ type: 'memory', memory })
}
