/** Owns what is told when no session of a call's engine can be had any more. */
import { storableText } from '../../model/json.ts'
import type { CallFact } from '../call/call-event.ts'
import type { AgentVoice } from './agent-voice.ts'
import type { TurnLog } from './turn-log.ts'

/** Of what a provider says of itself. */
export const maxDetails = 300

type Deps = {
  readonly isReplaceable?: boolean
  readonly hasSpoken: boolean
  readonly voice: Pick<AgentVoice, 'speaking' | 'cut'>
  readonly turnLog: Pick<TurnLog, 'flush'>
  post(fact: CallFact): void
}

export async function tellLost(deps: Deps, details: string): Promise<void> {
  const { hasSpoken, voice, turnLog, post } = deps
  if (deps.isReplaceable) {
    // What was said is known before somebody else goes on from it.
    if (voice.speaking()) await voice.cut()
    turnLog.flush()
  }
  post({ type: 'engine_failed', details: storableText(details, maxDetails), hasSpoken })
}
