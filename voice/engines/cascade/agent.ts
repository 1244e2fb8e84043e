/**
 * Owns what the agent has to say in one talk: replies of the model and texts said word for word, one after another; what the caller has heard of them;
 * and tools that the model has called.
 */
import type { JsonObject } from '../../../model/json.ts'
import type { Said } from '../../../model/voice-engine.ts'
import type { WireEvent, WireSetup } from '../hosted/wire.ts'
import type { ModelCall } from './chat-reply.ts'
import type { Chat, ChatAnswer, ChatRequest } from './chat.ts'
import { EndpointError } from './endpoint.ts'
import { createHistory } from './history.ts'
import { createReply, type Reply } from './reply.ts'
import { speakable } from './speakable.ts'
import { createSentenceCutter, piecesOf } from './sentence-cutter.ts'
import type { Speak } from './speech.ts'
import { createSpoken } from './spoken.ts'

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
  recall(said: Said): void
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

const maxDue = 16
const maxSaid = 10_000

/** One reply answers whatever has been said by then. */
const isAnswer = (due: Due): boolean => due.kind === 'reply' && due.hint === null

export function createAgent(deps: AgentDeps): Agent {
  const { setup, session, emit } = deps
  const history = createHistory(setup.history, setup.memory)
  const spoken = createSpoken()
  let { instructions } = setup
  let due: Due[] = []
  let reply: Reply | null = null
  /** Sentences that were cut off, while it is not known yet whether they stay so. */
  let unheard: string[] = []
  let items = 0
  let calls = 0

  const next = (): void => {
    if (reply !== null || !deps.maySpeak()) return
    const first = due.shift()
    if (first?.kind === 'say') saySentences(first.text, piecesOf(first.text, setup.language))
    if (first?.kind === 'reply') converse(first.hint)
  }
  const enqueue = (wanted: Due): void => {
    const isCovered = isAnswer(wanted) && due.some(isAnswer)
    if (!isCovered && due.length < maxDue) due.push(wanted)
    next()
  }
  const drop = (): void => {
    const dropped = reply
    reply = null
    unheard = []
    dropped?.drop()
    spoken.settle(false)
  }
  /** `text`: known to be all of it. */
  const begin = (text: string | null, words: AbortController): Reply => {
    const begun = createReply({
      text,
      words,
      speak: deps.speak,
      bytesPerMs: (deps.rateHz * 2) / 1000,
      at: deps.at,
      openItem() {
        const itemId = `${session}-item-${++items}`
        return { itemId, spoken: spoken.item(itemId, history.agent()) }
      },
      emit,
      onCalls: callTools,
      onOver() {
        if (reply === begun) reply = null
        next()
      },
      onFailed: (error) => deps.onFailed('speech', error),
    })
    reply = begun
    begun.begin()
    return begun
  }
  const saySentences = (text: string | null, sentences: readonly string[]): void => {
    const begun = begin(text, new AbortController())
    sentences.forEach(begun.add)
    begun.end([])
  }
  const converse = (hint: string | null): void => {
    const words = new AbortController()
    const begun = begin(null, words)
    const cutter = createSentenceCutter(setup.language)
    let hasWords = false
    const add = (sentences: readonly string[]): void => {
      for (const sentence of sentences.map(speakable)) {
        if (sentence === null) continue
        hasWords = true
        begun.add(sentence)
      }
    }
    const talk = async (): Promise<void> => {
      const answer = await ask(hint, { signal: words.signal, onText: (text) => add(cutter.push(text)) })
      // A reply does not end in the middle of a sentence; but half of one is better than nothing.
      if (!answer.isCut || !hasWords) add(cutter.end())
      begun.end(answer.calls)
    }
    talk().catch((error: unknown) => {
      if (!words.signal.aborted) deps.onFailed('chat', error)
    })
  }
  /** What is too much for the model is told again without its beginning; what a filter takes offence at, without the caller's words: they are asked again. */
  const canTellLess = ({ isTooLong, isFiltered }: EndpointError): boolean =>
    (isTooLong && history.halve()) || (isFiltered && history.veil())
  const ask = async (hint: string | null, how: Pick<ChatRequest, 'signal' | 'onText'>): Promise<ChatAnswer> => {
    const { tools, worker } = setup
    for (;;) {
      const messages = history.messages(instructions, hint)
      try {
        return await deps.chat({ ...how, messages, tools, temperature: worker.llmTemperature ?? null })
      } catch (error) {
        if (!(error instanceof EndpointError) || how.signal.aborted || !canTellLess(error)) throw error
      }
    }
  }
  const callTools = (made: readonly ModelCall[]): void => {
    const ours = made.map(({ id: theirs, name, arguments: given }) => {
      const id = `${session}-call-${++calls}`
      return { id, wireId: theirs ?? id, name, arguments: given }
    })
    history.calls(ours)
    // Before they are called: a session that goes on from here must not call them again.
    if (ours.length > 0) remember()
    for (const { id, name, arguments: given } of ours) emit({ type: 'tool_call', id, name, arguments: given })
  }
  const cancelTools = (): void => {
    const canceled = history.pending()
    for (const id of canceled) history.answer(id, { error: 'canceled: the caller spoke' }, false)
    if (canceled.length > 0) remember()
    for (const id of canceled) emit({ type: 'tool_canceled', id })
  }
  const remember = (): void => {
    const memory = history.memory()
    if (memory !== null) emit({ type: 'memory', memory })
  }

  return {
    enqueue,
    next,
    catchUp() {
      if (history.isDue()) enqueue({ kind: 'reply', hint: null })
    },
    hold: () => reply?.hold(),
    goOn() {
      if (reply === null && unheard.length === 0) return
      const missed = unheard
      spoken.settle(true)
      unheard = []
      if (reply === null) saySentences(null, missed)
      else reply.resume(missed)
    },
    answer(text) {
      drop()
      cancelTools()
      history.caller(text)
      due = [...due.filter(({ kind }) => kind === 'say'), { kind: 'reply', hint: null }]
    },
    cut(heard, isHeld) {
      const cut = spoken.cut(heard, deps.at())
      if (cut === null) return false
      if (isHeld) unheard.push(...cut)
      // Of a reply that has no sound yet nothing was on the line.
      else if (reply?.hasSound()) drop()
      else spoken.settle(false)
      return true
    },
    saying: (at) => (spoken.isPlaying(at) ? spoken.lastSentence() : null),
    lastSentence: spoken.lastSentence,
    tell: history.caller,
    recall: history.recall,
    instruct(text) {
      instructions = text
    },
    answerTool(id, name, output, wantsReply) {
      const state = history.answer(id, output, wantsReply)
      const isNews = state === 'unknown'
      if (isNews) history.news(`[The tool ${name} answered: ${JSON.stringify(output).slice(0, maxSaid)}]`)
      remember()
      if (state === 'due' || (isNews && wantsReply)) enqueue({ kind: 'reply', hint: null })
    },
    close: drop,
  }
}
