/**
 * Owns what reaches a call while its talk is prepared: what a caller who knows the way presses and types, what the agent is told by people of the account,
 * and turns of a former actor that are found.
 */
import type { KeyEvent } from '../../../model/leg.ts'
import type { Said } from '../../../model/voice-engine.ts'
import { maxWhispers } from '../../../model/supervision.ts'
import type { Conversation } from '../../conversation/conversation.ts'

export type EarlyWords = {
  /** A talk is prepared, which knows what was whispered until now. */
  prepare(): void
  key(event: KeyEvent): void
  /** False: no talk is prepared. */
  whisper(text: string): boolean
  /** The same. */
  found(said: Said): boolean
  handOn(conversation: Conversation): void
}

const maxKeys = 32

export function createEarlyWords(): EarlyWords {
  let keys: KeyEvent[] = []
  let whispers: string[] = []
  let turns: Said[] = []
  let isPreparing = false
  return {
    prepare() {
      isPreparing = true
      whispers = []
      turns = []
    },
    key: (event) => void (keys.length < maxKeys && keys.push(event)),
    whisper(text) {
      if (isPreparing && whispers.length < maxWhispers) whispers.push(text)
      return isPreparing
    },
    found(said) {
      if (isPreparing) turns.push(said)
      return isPreparing
    },
    handOn(conversation) {
      isPreparing = false
      const [pressed, told, found] = [keys, whispers, turns]
      ;[keys, whispers, turns] = [[], [], []]
      for (const said of found) conversation.turnFound(said)
      for (const event of pressed) conversation.legEvent(event)
      for (const text of told) conversation.whisper(text)
    },
  }
}
