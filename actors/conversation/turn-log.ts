/** Owns the numbering of turns: what was said is committed in order and once; what is still being said is shown under the number it will get. */
import type { Speaker, Turn } from '../../model/call.ts'
import { toIso } from '../../model/clock.ts'
import type { Json } from '../../model/json.ts'
import type { ServerMessage } from '../../model/signaling.ts'
import type { CallFact } from '../call/call-event.ts'

export type TurnLog = {
  commit(turn: Turn): void
  /** Shows a turn that is not over yet; agent's utterances by their item, once each. */
  showAgent(itemId: string, text: string, now: number): void
  showUser(text: string, now: number): void
  /** The agent's utterance has been committed, or was never heard. */
  forget(itemId: string): void
  /** What the engine wants to remember goes with the next turn. */
  remember(memory: Json): void
}

export function createTurnLog(deps: {
  readonly turns: number
  readonly memory: Json
  post(fact: CallFact): void
  signal(message: ServerMessage): void
}): TurnLog {
  let turns = deps.turns
  let memory = deps.memory
  const pending = new Set<string>()

  const show = (role: Speaker, text: string, turnIndex: number, now: number): void =>
    deps.signal({ type: 'transcript', role, text, isFinal: false, turnIndex, ts: toIso(now) })

  return {
    commit(turn) {
      turns++
      deps.post({ type: 'turn_committed', turn, memory })
    },
    showAgent(itemId, text, now) {
      if (pending.has(itemId)) return
      show('agent', text, turns + pending.size, now)
      pending.add(itemId)
    },
    showUser: (text, now) => show('user', text, turns + pending.size, now),
    forget: (itemId) => void pending.delete(itemId),
    remember: (newest) => {
      memory = newest
    },
  }
}
