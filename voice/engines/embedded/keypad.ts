/** Owns the keys that the caller presses: they answer the question that is asked, and are told as the caller's words when they did. */
import { textOfKeys } from '../../../model/transcript-marks.ts'
import type { EngineEvent } from '../../../model/voice-engine.ts'
import type { AgentSpeech } from './agent-speech.ts'
import type { CallerUtterances } from './caller-utterances.ts'
import type { ScriptRun } from './script-run.ts'

export type Keypad = {
  press(digit: string): void
  /** The question took these keys, in the middle of `press` or after a pause. */
  took(keys: string): void
  /** What could not be told while the caller spoke. */
  flush(): void
}

type Deps = {
  readonly caller: CallerUtterances
  readonly speech: AgentSpeech
  readonly run: ScriptRun
  emit(event: EngineEvent): void
}

const maxUntold = 32

export function createKeypad({ caller, speech, run, emit }: Deps): Keypad {
  let untold: EngineEvent[] = []
  /** The agent was silenced by a key: that was speech, and has its text. */
  let owesText = false

  const tell = (text: string): void => {
    const at = caller.at()
    const event: EngineEvent = { type: 'user_text', text, isFinal: true, confidence: 1, from: at, to: at }
    owesText = false
    // The caller's own words come first: each stop of speech is followed by its text.
    if (!caller.busy()) emit(event)
    else if (untold.length < maxUntold) untold.push(event)
  }
  return {
    press(digit) {
      // Keys that nothing asks for are no reason to fall silent.
      if (!run.isAsking()) return
      const at = caller.at()
      if (!caller.busy() && speech.fallSilent(at)) {
        emit({ type: 'user_speech_started', at })
        emit({ type: 'user_speech_stopped', at })
        owesText = true
      }
      speech.forget()
      run.dispatch({ type: 'dtmf', digit })
      if (owesText) tell('')
    },
    took: (keys) => tell(textOfKeys(keys)),
    flush() {
      for (const event of untold.splice(0)) emit(event)
    },
  }
}
