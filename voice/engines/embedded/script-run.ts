/** Owns how far one call is in its script: events of the line go into the dialogue, and what that wants is told and said. */
import type { Json } from '../../../model/json.ts'
import type { EngineEvent } from '../../../model/voice-engine.ts'
import type { AgentMouth } from './agent-mouth.ts'
import { advance, choicesOf, stateOf, type DialogueEvent, type DialogueState, type Setting } from './dialogue.ts'
import type { Choice } from './phrases.ts'

export type ScriptRun = {
  dispatch(event: DialogueEvent): void
  /** Counts the steps of the script. */
  step(): number
  phase(): DialogueState['phase']
  /** The answers of the question that is asked now; empty for any other line. */
  choices(): readonly Choice[]
}

type Deps = {
  readonly setting: Setting
  readonly memory: Json
  readonly mouth: Pick<AgentMouth, 'say'>
  emit(event: EngineEvent): void
}

export function createScriptRun({ setting, memory, mouth, emit }: Deps): ScriptRun {
  let state = stateOf(memory, setting.script)
  return {
    dispatch(event) {
      const { state: next, actions } = advance(setting, state, event)
      const isNew = next !== state || event.type === 'opened'
      state = next
      for (const action of actions)
        if (action.type === 'note') emit({ type: 'noted', key: action.key, value: action.value })
      if (isNew) emit({ type: 'memory', memory: next })
      const text = actions.find((action) => action.type === 'say')?.text
      const finish = actions.find((action) => action.type === 'finish')
      const onSaid = (): void => {
        if (finish) emit({ type: 'finished', nextAction: finish.nextAction })
      }
      if (text !== undefined) mouth.say(text, onSaid)
      else onSaid()
    },
    step: () => state.step,
    phase: () => state.phase,
    choices: () => choicesOf(setting.script, state),
  }
}
