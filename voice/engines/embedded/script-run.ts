/** Owns how far one call is in its script: events of the line go into the dialogue, and what that wants is told and said. */
import type { Json } from '../../../model/json.ts'
import type { EngineEvent, Note, Said } from '../../../model/voice-engine.ts'
import type { AgentSpeech } from './agent-speech.ts'
import { advance } from '../../script/dialogue/dialogue.ts'
import {
  expectedOf,
  questionOf,
  stateAfter,
  stateOf,
  type DialogueState,
} from '../../script/dialogue/dialogue-state.ts'
import type { DialogueAction, DialogueEvent, Setting } from '../../script/dialogue/dialogue-turn.ts'
import type { Expected } from '../../script/expected.ts'
import type { Meaning } from '../../script/phrases.ts'

export type ScriptRun = {
  dispatch(event: DialogueEvent): void
  /** Another number for every question, and for everything that is no question. */
  step(): number
  phase(): DialogueState['phase']
  expected(): Expected
  /** A question waits for its answer, perhaps while it is said. */
  isAsking(): boolean
  /** Keys have been pressed, and more could come. */
  isPressing(): boolean
  /** What would be noted if this were heard now. */
  notesOf(meaning: Meaning): readonly Note[]
  /** How long nothing may happen now, ms; null: for ever. */
  silenceLimit(): number | null
}

type Deps = {
  readonly setting: Setting
  readonly memory: Json
  readonly history: readonly Said[]
  readonly speech: Pick<AgentSpeech, 'say'>
  emit(event: EngineEvent): void
  /** These keys were an answer. */
  onKeys(keys: string): void
}

/** Silence after a question that is a missing answer. */
const noInput = 6000
/** The same after a key, when more keys could come. */
const noKey = 3000
/** A tool that has not answered by then has failed. */
const noResult = 20_000
/** So long it may ring where a caller is passed on to. */
const noTransfer = 45_000

export function createScriptRun({ setting, memory, history, speech, emit, onKeys }: Deps): ScriptRun {
  let state = stateOf(memory, setting.script) ?? stateAfter(setting, history)
  let step = 0

  const tell = (action: DialogueAction): void => {
    if (action.type === 'cancel_tool') emit({ type: 'tool_canceled', id: action.id })
    if (action.type === 'call_tool') emit({ ...action, type: 'tool_call' })
  }
  return {
    dispatch(event) {
      const { state: next, actions } = advance(setting, state, event)
      const isNew = next !== state || event.type === 'opened'
      if (placeOf(next) !== placeOf(state)) step++
      state = next
      for (const action of actions) if (action.type === 'took_keys') onKeys(action.keys)
      for (const note of notesIn(actions)) emit({ type: 'noted', ...note })
      // Before the tool is called: whoever goes on from here must not call it again.
      if (isNew) emit({ type: 'memory', memory: next })
      for (const action of actions) tell(action)
      const text = actions.find((action) => action.type === 'say')?.text
      const finish = actions.find((action) => action.type === 'finish')
      const onSaid = (): void => {
        if (finish) emit({ type: 'finished', nextAction: finish.nextAction })
      }
      if (text !== undefined) speech.say(text, onSaid)
      else onSaid()
    },
    step: () => step,
    phase: () => state.phase,
    expected: () => expectedOf(setting.script, state),
    isAsking: () => state.doubted !== null || questionOf(setting.script, state) !== null,
    isPressing: () => state.keys !== '',
    notesOf: (meaning) => notesIn(advance(setting, state, { type: 'heard', meaning, confidence: 1 }).actions),
    silenceLimit: () => silenceLimitOf(state),
  }
}

const notesIn = (actions: readonly DialogueAction[]): Note[] =>
  actions.flatMap((action) => (action.type === 'note' ? [{ key: action.key, value: action.value }] : []))

const placeOf = ({ step, aside, argument, confirming, doubted, call }: DialogueState): string =>
  JSON.stringify([step, aside, argument, confirming !== null, doubted, call?.id])

function silenceLimitOf({ phase, keys, call }: DialogueState): number | null {
  if (phase === 'listening') return keys === '' ? noInput : noKey
  if (phase !== 'waiting') return null
  return call?.outcome === 'moved' ? noTransfer : noResult
}
