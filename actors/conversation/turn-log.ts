/**
 * Owns the numbering of turns: what was said is committed in order and once; what is still being said is shown under the number it will get. What
 * the caller said comes before the agent's answer to it, however late its text is.
 */
import type { Speaker, Turn } from '../../model/call.ts'
import { toIso, type Cancel, type Clock } from '../../model/clock.ts'
import { storableText, type Json } from '../../model/json.ts'
import type { ServerMessage } from '../../model/signaling.ts'
import type { Said } from '../../model/voice-engine.ts'
import type { CallerWords, CallFact } from '../call/call-event.ts'
import { createOpenWords } from './open-words.ts'
import { createSpeechOrder } from './speech-order.ts'

export type TurnLog = {
  /** Of the agent. */
  commit(itemId: string, turn: Turn): void
  /**
   * The agent is being cut off: what was heard of it, as the leg will say, is a turn before that of a caller who is understood at once, as what they type is.
   * Answers with the end of it.
   */
  cutting(): () => void
  /** The caller speaks: what the agent begins to say from here on comes after it. */
  callerStarts(): void
  /** The caller has said something whose text will come: the agent's turns wait for it. */
  awaitUser(): void
  /** It has come; an empty one is none. */
  commitUser(turn: Turn): void
  agentBegins(itemId: string): void
  /** Shows a turn that is not over yet: the text so far of the agent's utterance, or of the caller's. */
  showAgent(itemId: string, text: string, now: number): void
  showUser(words: CallerWords, now: number): void
  /** The agent's utterance has been committed, or was never heard. */
  forget(itemId: string): void
  /** One that is not of this talk has the next number; it was said before all of this talk. */
  added(said: Said): void
  /** What the engine wants to remember goes with the next turn. */
  remember(memory: Json): void
  memory(): Json
  /** What the caller said is not known yet. */
  awaitsText(): boolean
  /** What was said up to now, of this actor's time and before. */
  said(): readonly Said[]
  /** Nothing more comes of the caller's words: those that were understood so far are the turn. */
  flush(): void
}

/** A text that does not come holds up no turn for longer. */
const awaitedFor = 8_000
/** Of one turn; a model that never stops is cut off here. */
const maxText = 100_000
/** Turns that a session which goes on is told of. */
const maxSaid = 200

type Deps = {
  readonly turns: number
  readonly memory: Json
  readonly history: readonly Said[]
  readonly clock: Clock
  /** The agent's words are facts before they were heard, too: somebody wants to read along. */
  readonly tellsInterim: boolean
  readonly source: string
  post(fact: CallFact): void
  signal(message: ServerMessage): void
}

export function createTurnLog(deps: Deps): TurnLog {
  const { clock, post } = deps
  let { turns, memory } = deps
  const order = createSpeechOrder()
  const waiting: { readonly itemId: string; readonly turn: Turn }[] = []
  const hidden = new Map<string, { readonly text: string; readonly now: number }>()
  const pending = new Set<string>()
  const said: Said[] = [...deps.history]
  /** So many of them were said before this talk. */
  let before = said.length
  let cancel: Cancel | null = null
  /** In their order; null: nobody is being cut off. */
  let behindCut: (() => void)[] | null = null
  const caller = createOpenWords<CallerWords>(clock, (words) => post({ type: 'caller_heard', words }))
  const agent = createOpenWords<Shown>(clock, (shown) => post({ type: 'turn_shown', ...shown }))

  const show = (role: Speaker, text: string, turnIndex: number, now: number): void =>
    deps.signal({ type: 'transcript', role, text, isFinal: false, turnIndex, ts: toIso(now) })
  const showItem = (itemId: string, text: string, now: number): void => {
    const index = turns + [...pending].indexOf(itemId)
    show('agent', text, index, now)
    const turn = { role: 'agent', text: storableText(text, maxText), confidence: null, source: deps.source } as const
    if (deps.tellsInterim) agent.show({ index, turn })
  }
  const forgetOldest = (): void => {
    if (said.length <= maxSaid) return
    said.shift()
    before = Math.max(0, before - 1)
  }
  const write = (given: Turn): void => {
    const turn = { ...given, text: storableText(given.text, maxText) }
    turns++
    said.push({ role: turn.role, text: turn.text })
    forgetOldest()
    post({ type: 'turn_committed', turn, memory })
  }
  /** Writes and shows, in order, what waits for nothing any more. */
  const release = (): void => {
    while (waiting[0] && !order.isHeld(waiting[0].itemId)) {
      const { itemId, turn } = waiting.shift()!
      order.forget(itemId)
      write(turn)
    }
    for (const [itemId, { text, now }] of hidden) {
      if (order.isHeld(itemId)) continue
      hidden.delete(itemId)
      showItem(itemId, text, now)
    }
    if (waiting.length > 0 || order.awaitsText()) return
    cancel?.()
    cancel = null
  }
  const behind = (act: () => void): void => (behindCut ? void behindCut.push(act) : act())
  const endCut = (): void => {
    const acts = behindCut ?? []
    behindCut = null
    for (const act of acts) act()
  }
  const commitUser = (turn: Turn): void => {
    const isTurn = turn.text !== ''
    if (caller.close().wasTold && !isTurn) post({ type: 'caller_heard', words: null })
    if (isTurn) write(turn)
    order.textCame()
    release()
  }
  const giveUp = (): void => {
    order.settle()
    release()
  }
  const waitAnew = (): void => {
    cancel?.()
    cancel = clock.after(awaitedFor, giveUp)
  }

  return {
    commit(itemId, turn) {
      agent.close()
      // Who is cut off had begun before.
      const isHeld = behindCut ? order.isAnswer(itemId) : order.isHeld(itemId)
      if (waiting.length === 0 && !isHeld) return write(turn)
      waiting.push({ itemId, turn })
      if (cancel === null) waitAnew()
    },
    cutting() {
      behindCut ??= []
      return endCut
    },
    callerStarts: order.callerStarts,
    awaitUser() {
      order.callerStops()
      waitAnew()
    },
    commitUser: (turn) => behind(() => commitUser(turn)),
    agentBegins: order.agentBegins,
    showAgent(itemId, text, now) {
      order.agentBegins(itemId)
      pending.add(itemId)
      if (order.isHeld(itemId)) hidden.set(itemId, { text, now })
      else showItem(itemId, text, now)
    },
    showUser({ turn, notes }, now) {
      const spoken = [...pending].filter((itemId) => !order.isHeld(itemId))
      show('user', turn.text, turns + spoken.length, now)
      if (turn.text !== '') caller.show({ turn: { ...turn, text: storableText(turn.text, maxText) }, notes })
    },
    forget(itemId) {
      pending.delete(itemId)
      hidden.delete(itemId)
      if (!waiting.some((held) => held.itemId === itemId)) order.forget(itemId)
    },
    added(earlier) {
      turns++
      said.splice(before++, 0, earlier)
      forgetOldest()
    },
    remember: (newest) => behind(() => void (memory = newest)),
    memory: () => memory,
    awaitsText: order.awaitsText,
    said: () => said,
    flush() {
      endCut()
      agent.close()
      const { words } = caller.close()
      if (words !== null) write(words.turn)
      giveUp()
    },
  }
}

type Shown = Omit<Extract<CallFact, { type: 'turn_shown' }>, 'type'>
