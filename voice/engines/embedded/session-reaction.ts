/** Owns what the caller's words do in a call: an answer goes to the script; a mere backchannel lets the agent go on. */
import type { EngineEvent } from '../../../model/voice-engine.ts'
import type { AgentSpeech } from './agent-speech.ts'
import type { Heard } from './caller-utterances.ts'
import type { ScriptRun } from './script-run.ts'

/** Stands in a transcript for speech that was not understood. */
const unclear = '[unclear]'
/** Shorter speech that is not understood is a backchannel while nothing is asked, ms. */
const shortest = 700

/** Empty for what was no speech after all. */
export function finalTextOf({ text, isNoise, confidence, from, to }: Heard): EngineEvent {
  const told = text === '' && !isNoise ? unclear : text
  return { type: 'user_text', text: told, isFinal: true, confidence, from, to }
}

export function reactTo(heard: Heard, run: ScriptRun, speech: AgentSpeech): void {
  const { meaning, confidence, step } = heard
  if (isNod(heard, run.isAsking())) {
    if (!speech.goOn() && run.phase() === 'speaking') run.dispatch({ type: 'played' })
    return
  }
  speech.forget()
  // The answer to a question that is over is none.
  const isAnswer = meaning?.kind === 'choice' || meaning?.kind === 'value' || meaning?.kind === 'free'
  if (isAnswer && step !== run.step()) return
  run.dispatch({ type: 'heard', meaning, confidence })
}

/** Noise, and over a line that asks nothing "okay" or a murmur: nobody wanted to interrupt. */
function isNod({ meaning, isNoise, from, to }: Heard, isAsked: boolean): boolean {
  if (isNoise) return true
  if (isAsked) return false
  if (meaning === null) return to - from < shortest
  return meaning.kind === 'request' && meaning.request === 'yes'
}
