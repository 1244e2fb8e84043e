/** Owns what a session that is opened in the middle of a talk has to know of it. */
import type { AgentVoice } from './agent-voice.ts'
import type { Reactions } from './reactions.ts'
import type { TurnLog } from './turn-log.ts'

/** A session that takes the place of a dead one has to answer what was said last, and to go on with what was broken off. */
export function knownOf(turnLog: TurnLog, voice: AgentVoice, reactions: Reactions) {
  // Of the session before no text comes any more.
  turnLog.flush()
  const onItsWay = voice.onItsWay().map((text) => ({ role: 'agent', text }) as const)
  const history = [...turnLog.said(), ...onItsWay]
  const isDue = reactions.isDue() || history.at(-1)?.role !== 'agent'
  // The result of a tool asks for a reply by itself.
  return { history, owesReply: isDue && !reactions.awaitsTools(), memory: turnLog.memory() }
}
