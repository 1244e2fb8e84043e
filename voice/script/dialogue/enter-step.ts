/** Owns going from line to line: which step comes next, what is said on it, which tool is called with what. */
import type { Json, JsonObject } from '../../../model/json.ts'
import { toolMissing } from './own-lines.ts'
import { holds, knownTo, sayable, stepOf, type DialogueState, type PendingCall } from './dialogue-state.ts'
import { end, goodbye, joined, speak, type Advanced, type DialogueAction, type Setting } from './dialogue-turn.ts'
import { fillIn, spoken, valueAt } from '../fill-in.ts'
import type { Step, ToolArgument, ToolStep } from '../steps.ts'

/** Nothing of the question that was asked last. */
const fresh = { misunderstood: 0, unanswered: 0, argument: null, confirming: null, keys: '' } as const

export const next = (state: DialogueState): DialogueState => {
  const { aside, step } = state
  return { ...state, ...fresh, ...(aside ? { aside: { ...aside, step: aside.step + 1 } } : { step: step + 1 }) }
}

/** Where the script goes on after something else: with the question, or behind the line that was said. A tool that runs has been passed. */
export function resumable(setting: Setting, state: DialogueState): DialogueState {
  const isLine = state.call === null && stepOf(setting.script, state)?.kind === 'say'
  return isLine ? next(state) : { ...state, ...fresh }
}

export const textOf = (setting: Setting, state: DialogueState, text: string): string =>
  fillIn(text, sayable(setting, state))

export const goOn = (setting: Setting, state: DialogueState, before = ''): Advanced =>
  enter(setting, next(state), before)

/** Says the line of the current step, after `before`, or the first one after it that there is something to say or do on. */
export function enter(setting: Setting, entered: DialogueState, before: string): Advanced {
  let state = entered
  let said = before
  for (;;) {
    const step = stepOf(setting.script, state)
    if (step === undefined && state.aside === null) return end(state, said === '' ? '' : joined(said, goodbye), null)
    if (step === undefined) {
      state = { ...state, ...fresh, aside: null }
      continue
    }
    const here =
      step.when !== null && !holds(step.when, setting, state) ? passed(state) : onStep(setting, state, step, said)
    if ('actions' in here) return here
    state = here.state
    // Of several tools that are missing once is enough.
    if (!said.endsWith(here.says)) said = joined(said, here.says)
  }
}

type Passed = { readonly state: DialogueState; readonly says: string }
const passed = (state: DialogueState, says = ''): Passed => ({ state: next(state), says })

function onStep(setting: Setting, state: DialogueState, step: Step, before: string): Advanced | Passed {
  const text = textOf(setting, state, step.text)
  switch (step.kind) {
    case 'say':
      return text === '' ? passed(state) : speak(state, joined(before, text))
    case 'ask':
      return speak(state, joined(before, text))
    case 'end':
      return end(state, joined(before, text), step.nextAction)
    case 'knowledge':
      return passed({ ...state, knowledge: step.isOn })
    case 'tool':
      return onTool(setting, state, step, before)
  }
}

/** Calls it, asks for what it needs, or says that there is no such tool. */
function onTool(setting: Setting, state: DialogueState, step: ToolStep, before: string): Advanced | Passed {
  const unknown = step.arguments.filter((argument) => argument.isRequired && valueOf(setting, state, argument) === null)
  if (step.tool === null || unknown.some(({ ask }) => ask === null))
    return passed(failed(state, step), step.handlesErrors ? '' : toolMissing)
  const ask = unknown[0]?.ask
  if (ask) return speak({ ...state, ...fresh, argument: ask.key }, joined(before, ask.text))
  const { tool: name, purpose, into, handlesErrors } = step
  const given: JsonObject = Object.fromEntries(
    step.arguments.flatMap((argument) => {
      const value = valueOf(setting, state, argument)
      return value === null ? [] : [[argument.name, value]]
    }),
  )
  const filler = joined(before, textOf(setting, state, step.text))
  return call(setting, next(state), { name, purpose, into, handlesErrors, query: '' }, given, filler)
}

export type Wanted = Pick<PendingCall, 'name' | 'purpose' | 'into' | 'handlesErrors' | 'query'>

/** `state` is where the script goes on afterwards. */
export function call(
  setting: Setting,
  state: DialogueState,
  wanted: Wanted,
  given: JsonObject,
  filler: string,
): Advanced {
  const toolCalls = state.toolCalls + 1
  const id = `${setting.idPrefix ?? ''}tool-${toolCalls}`
  const phase = filler === '' ? 'waiting' : 'speaking'
  const pending: PendingCall = { ...wanted, id, outcome: 'pending', reply: '' }
  const calling: DialogueAction = { type: 'call_tool', id, name: wanted.name, arguments: given }
  return {
    state: { ...state, ...fresh, phase, toolCalls, call: pending },
    actions: filler === '' ? [calling] : [calling, { type: 'say', text: filler }],
  }
}

/** The result of this tool is an error. */
export function failed(state: DialogueState, { into }: Pick<ToolStep, 'into'>): DialogueState {
  if (into === null) return state
  const { [into]: _, ...results } = state.results
  return { ...state, results, failed: [...state.failed.filter((key) => key !== into), into] }
}

/** Null for what is not known. */
function valueOf(setting: Setting, state: DialogueState, { name, type, value, isRequired }: ToolArgument): Json {
  const written = value === null ? null : writtenOf(setting, state, value)
  const isKnown = written !== null && written !== ''
  const asked = isRequired && Object.hasOwn(state.answers, name) ? (state.answers[name] ?? null) : null
  return fitting(isKnown ? written : asked, type)
}

function writtenOf(setting: Setting, state: DialogueState, value: NonNullable<ToolArgument['value']>): Json {
  if ('literal' in value) return value.literal
  const plain = knownTo(setting, state)
  return 'path' in value ? valueAt(plain, value.path) : fillIn(value.text, plain)
}

/** What a caller says may be of another type than the tool wants. */
function fitting(value: Json, type: string | null): Json {
  if (type === 'string' && (typeof value === 'number' || typeof value === 'boolean')) return spoken(value)
  if ((type === 'number' || type === 'integer') && typeof value === 'string' && /^\s*-?\d+(\.\d+)?\s*$/.test(value))
    return Number(value)
  if (type === 'boolean' && typeof value === 'string' && /^(yes|no|true|false)$/i.test(value))
    return /^(yes|true)$/i.test(value)
  return value
}
