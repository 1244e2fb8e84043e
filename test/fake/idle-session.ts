/** Owns the session of an engine that listens to nothing and says nothing: others are made of it. */
import type { EngineSession } from '../../model/voice-engine.ts'

const nothing = (): void => undefined

export const idleSession: EngineSession = {
  hear: nothing,
  interrupt: nothing,
  played: nothing,
  dtmf: nothing,
  typed: nothing,
  say: nothing,
  voicemail: null,
  sayLast: nothing,
  toolResult: nothing,
  instruct: nothing,
  whisper: nothing,
  recall: nothing,
  hearOut: () => Promise.resolve(),
  close: nothing,
}
