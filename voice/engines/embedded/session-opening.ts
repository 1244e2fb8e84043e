/** Owns how a call with the embedded engine begins: an announcement where there is one, then whoever speaks first. */
import type { EngineEvent } from '../../../model/voice-engine.ts'
import type { AgentSpeech } from './agent-speech.ts'
import { initialState } from '../../script/dialogue/dialogue-state.ts'

type Announced = {
  /** Null: nothing is announced. */
  readonly text: string | null
  readonly speech: Pick<AgentSpeech, 'say'>
  emit(event: EngineEvent): void
}

/**
 * Every word of it is to be heard: nobody is listened to until it has been played, so that neither noise nor speech cuts it off. That it was
 * said is remembered with its own turn, which is written when it has been heard.
 */
export function createAnnouncement({ text, speech, emit }: Announced, goOn: () => void) {
  let isSaid = text === null || text.trim() === ''
  return {
    isSaid: () => isSaid,
    /** True when there is something to say. */
    begin(): boolean {
      if (isSaid || text === null) return false
      emit({ type: 'memory', memory: initialState })
      speech.say(text, () => {})
      return true
    },
    end(): void {
      isSaid = true
      goOn()
    },
  }
}

/** The agent's first line comes when the time of the caller's first words is over, or after them; once. */
export function createOpening(by: number, open: () => void) {
  let waits = true
  const begin = (): boolean => {
    if (!waits) return false
    waits = false
    open()
    return true
  }
  return {
    begin,
    waits: () => waits,
    at(ms: number): void {
      if (ms >= by) begin()
    },
  }
}
