/**
 * Owns the numbering of turns: what was said is committed in order and once; what is still being said is shown under the number it will get. What
 * the caller said comes before the agent's answer to it, however late its text is.
 */
import type { Speaker, Turn } from '../../model/call.ts'
import { toIso, type Cancel, type Clock } from '../../model/clock.ts'
import { flawOf, storableText, type Json } from '../../model/json.ts'
import type { ServerMessage } from '../../model/signaling.ts'
import type { Said } from '../../model/voice-engine.ts'
import type { CallFact } from '../call/call-event.ts'

export type TurnLog = {
  commit(turn: Turn): void
  /** The caller has said something whose text will come: the agent's turns wait for it. */
  awaitUser(): void
  /** It has come; an empty one is none. */
  commitUser(turn: Turn): void
  /** Shows a turn that is not over yet: the text so far of the agent's utterance, or of the caller's. */
  showAgent(itemId: string, text: string, now: number): void
  showUser(text: string, now: number): void
  /** The agent's utterance has been committed, or was never heard. */
  forget(itemId: string): void
  /** What the engine wants to remember goes with the next turn. */
  remember(memory: Json): void
  memory(): Json
  /** What the caller said is not known yet. */
  awaitsText(): boolean
  /** What was said up to now, of this actor's time and before. */
  said(): readonly Said[]
  /** Waits for nothing any more. */
  flush(): void
}

/** A text that does not come holds up no turn for longer. */
const awaitedFor = 8_000
/** Of one turn; a model that never stops is cut off here. */
const maxText = 100_000
/** Turns that a session which goes on is told of. */
const maxSaid = 200

export function createTurnLog(deps: {
  readonly turns: number
  readonly memory: Json
  readonly history: readonly Said[]
  readonly clock: Clock
  post(fact: CallFact): void
  signal(message: ServerMessage): void
}): TurnLog {
  let turns = deps.turns
  let memory = deps.memory
  let awaited = 0
  const waiting: Turn[] = []
  let cancel: Cancel = () => {}
  const said: Said[] = [...deps.history]
  const pending = new Set<string>()

  const show = (role: Speaker, text: string, turnIndex: number, now: number): void =>
    deps.signal({ type: 'transcript', role, text, isFinal: false, turnIndex, ts: toIso(now) })
  const write = (given: Turn): void => {
    const turn = { ...given, text: storableText(given.text, maxText) }
    turns++
    said.push({ role: turn.role, text: turn.text })
    if (said.length > maxSaid) said.shift()
    deps.post({ type: 'turn_committed', turn, memory })
  }
  const flush = (): void => {
    awaited = 0
    cancel()
    waiting.splice(0).forEach(write)
  }

  return {
    commit(turn) {
      if (awaited > 0) waiting.push(turn)
      else write(turn)
    },
    awaitUser() {
      awaited++
      cancel()
      cancel = deps.clock.after(awaitedFor, flush)
    },
    commitUser(turn) {
      if (turn.text !== '') write(turn)
      awaited = Math.max(0, awaited - 1)
      if (awaited === 0) flush()
    },
    showAgent(itemId, text, now) {
      pending.add(itemId)
      show('agent', text, turns + [...pending].indexOf(itemId), now)
    },
    showUser: (text, now) => show('user', text, turns + pending.size, now),
    forget: (itemId) => void pending.delete(itemId),
    remember: (newest) => {
      if (flawOf(newest) === null) memory = newest
    },
    memory: () => memory,
    awaitsText: () => awaited > 0,
    said: () => said,
    flush,
  }
}
