/**
 * Owns the conversation of a script as a pure function: (state, event) → (state, actions). No clock, no randomness, no sound. The state is
 * JSON and is what the engine remembers: a session that is opened with it says the current line again and goes on from there.
 */
import { z } from 'zod'
import type { Json } from '../../../model/json.ts'
import { fillIn, type Values } from './fill-in.ts'
import type { Choice, Meaning, Request } from './phrases.ts'
import type { Ask, Condition, Script, Step } from './script.ts'

const Answer = z.union([z.string(), z.boolean()])

/** `step` counts the steps of the script. `speaking` until the line has been heard, then a question is `listening`. */
export const DialogueState = z.object({
  version: z.literal(1),
  step: z.number().int().nonnegative(),
  phase: z.enum(['speaking', 'listening', 'ended']),
  answers: z.record(z.string(), Answer),
  misunderstood: z.number().int().nonnegative(),
  unanswered: z.number().int().nonnegative(),
})
export type DialogueState = z.infer<typeof DialogueState>

export type DialogueEvent =
  | { readonly type: 'opened' }
  /** The caller has heard all of what was said last. */
  | { readonly type: 'played' }
  /** The caller spoke, perhaps over the agent. Null: not understood. */
  | { readonly type: 'heard'; readonly meaning: Meaning | null }
  /** Nobody spoke for too long after a question. */
  | { readonly type: 'silence' }
  /** The agent was cut off and nobody spoke. */
  | { readonly type: 'interrupted' }
  | { readonly type: 'dtmf'; readonly digit: string }

export type DialogueAction =
  | { readonly type: 'say'; readonly text: string }
  | { readonly type: 'note'; readonly key: string; readonly value: Json }
  | { readonly type: 'finish'; readonly nextAction: string | null }

export type Advanced = { readonly state: DialogueState; readonly actions: readonly DialogueAction[] }
export type Setting = { readonly script: Script; readonly values: Values }

const maxAgain = 2
const goodbye = 'Goodbye.'
const noPerson = 'I am an automated voice, and I cannot put you through to a person.'

export const initialState: DialogueState = {
  version: 1,
  step: 0,
  phase: 'speaking',
  answers: {},
  misunderstood: 0,
  unanswered: 0,
}

/** What an engine remembered, or the beginning when it is nothing this script can go on from. */
export function stateOf(memory: Json, script: Script): DialogueState {
  const parsed = DialogueState.safeParse(memory)
  return parsed.success && parsed.data.step <= script.steps.length ? parsed.data : initialState
}

/** The answers that the current line waits for. */
export function choicesOf(script: Script, state: DialogueState): readonly Choice[] {
  const step = script.steps[state.step]
  return step?.kind === 'ask' ? step.choices : []
}

export function advance(setting: Setting, state: DialogueState, event: DialogueEvent): Advanced {
  if (state.phase === 'ended') return { state, actions: event.type === 'opened' ? [finish(null)] : [] }
  const step = setting.script.steps[state.step]
  switch (event.type) {
    case 'opened':
      return enter(setting, state, firstFrom(setting.script, state, state.step), '')
    case 'played':
      return step?.kind === 'ask' ? stay({ ...state, phase: 'listening' }) : goOn(setting, state, '')
    case 'interrupted':
      return step?.kind === 'ask' ? stay({ ...state, phase: 'listening' }) : goOn(setting, state, '')
    case 'heard':
      return heard(setting, state, step, event.meaning)
    case 'silence':
      return step?.kind === 'ask' && state.phase === 'listening' ? unanswered(setting, state, step) : stay(state)
    case 'dtmf':
      return step?.kind === 'ask' ? pressed(setting, state, step, event.digit) : stay(state)
  }
}

const stay = (state: DialogueState): Advanced => ({ state, actions: [] })
const say = (text: string): DialogueAction => ({ type: 'say', text })
const finish = (nextAction: string | null): DialogueAction => ({ type: 'finish', nextAction })
const joined = (...texts: readonly string[]): string => texts.filter((text) => text !== '').join(' ')

function heard(setting: Setting, state: DialogueState, step: Step | undefined, meaning: Meaning | null): Advanced {
  if (meaning?.kind === 'request' && isAsked(meaning.request)) return requested(setting, state, step, meaning.request)
  if (step?.kind !== 'ask') return goOn(setting, state, '')
  const choice = meaning?.kind === 'choice' ? step.choices[meaning.index] : undefined
  return choice === undefined ? misunderstood(setting, state, step) : answered(setting, state, step, choice)
}

type Asked = Exclude<Request, 'yes' | 'no'>
const isAsked = (request: Request): request is Asked => request !== 'yes' && request !== 'no'

function requested(setting: Setting, state: DialogueState, step: Step | undefined, request: Asked): Advanced {
  const line = step === undefined ? '' : textOf(setting, state, step)
  switch (request) {
    case 'goodbye':
      return end(state, goodbye, null)
    case 'hello':
      return step?.kind === 'ask' ? speak(state, line) : goOn(setting, state, '')
    case 'repeat':
      return speak(state, line)
    case 'person':
      return speak(state, step?.kind === 'ask' ? joined(noPerson, line) : noPerson)
    case 'help':
      return speak(state, step?.kind === 'ask' ? joined(hintOf(step), line) : 'You can say repeat, or goodbye.')
  }
}

function answered(setting: Setting, state: DialogueState, step: Ask, choice: Choice): Advanced {
  if (step.key === null) return goOn(setting, state, '')
  const next = goOn(setting, { ...state, answers: { ...state.answers, [step.key]: choice.value } }, '')
  return { ...next, actions: [{ type: 'note', key: step.key, value: choice.value }, ...next.actions] }
}

function misunderstood(setting: Setting, state: DialogueState, step: Ask): Advanced {
  if (step.key === null) return goOn(setting, state, '')
  const times = state.misunderstood + 1
  if (times > maxAgain) return goOn(setting, state, 'I am sorry, I could not understand you. Let us go on.')
  const question = textOf(setting, state, step)
  const again = times === 1 ? 'Sorry, I did not understand that.' : joined('Sorry.', hintOf(step))
  return speak({ ...state, misunderstood: times }, joined(again, question))
}

function unanswered(setting: Setting, state: DialogueState, step: Ask): Advanced {
  if (step.key === null) return goOn(setting, state, '')
  const times = state.unanswered + 1
  if (times > maxAgain) return end(state, `I still cannot hear you, so I will end the call. ${goodbye}`, null)
  const again = times === 1 ? 'Are you still there?' : joined('I cannot hear you.', hintOf(step))
  return speak({ ...state, unanswered: times }, joined(again, textOf(setting, state, step)))
}

/** 1 is the first answer; of a yes or no question 1 is yes and 2 is no. */
function pressed(setting: Setting, state: DialogueState, step: Ask, digit: string): Advanced {
  const choice = /^[1-9]$/.test(digit) ? step.choices[Number(digit) - 1] : undefined
  return choice === undefined ? misunderstood(setting, state, step) : answered(setting, state, step, choice)
}

const speak = (state: DialogueState, text: string): Advanced => ({
  state: { ...state, phase: 'speaking' },
  actions: [say(text)],
})

const end = (state: DialogueState, text: string, nextAction: string | null): Advanced => ({
  state: { ...state, phase: 'ended' },
  actions: text === '' ? [finish(nextAction)] : [say(text), finish(nextAction)],
})

const goOn = (setting: Setting, state: DialogueState, before: string): Advanced =>
  enter(
    setting,
    { ...state, misunderstood: 0, unanswered: 0 },
    firstFrom(setting.script, state, state.step + 1),
    before,
  )

/** Says the line of `step`, after `before`. A line that is empty once its placeholders are filled is passed over. */
function enter(setting: Setting, state: DialogueState, index: number, before: string): Advanced {
  let at = index
  let step = setting.script.steps[at]
  while (step?.kind === 'say' && textOf(setting, state, step) === '') {
    at = firstFrom(setting.script, state, at + 1)
    step = setting.script.steps[at]
  }
  const entered: DialogueState = { ...state, step: at }
  if (step === undefined) return end(entered, before === '' ? '' : joined(before, goodbye), null)
  const text = joined(before, textOf(setting, entered, step))
  return step.kind === 'end' ? end(entered, text, step.nextAction) : speak(entered, text)
}

function firstFrom(script: Script, state: DialogueState, from: number): number {
  let at = from
  for (let step = script.steps[at]; step !== undefined; step = script.steps[++at])
    if (step.when === null || holds(step.when, state.answers)) return at
  return at
}

/** A question that was never answered is nothing, so only a negated condition holds. */
function holds(when: Condition, answers: DialogueState['answers']): boolean {
  const answer = answers[when.key]
  const name = typeof answer === 'boolean' ? (answer ? 'yes' : 'no') : answer?.toLowerCase()
  return (name === when.is) !== when.negated
}

const textOf = (setting: Setting, state: DialogueState, step: Step): string =>
  fillIn(step.text, { ...state.answers, ...setting.values })

function hintOf(ask: Ask): string {
  const names = ask.choices.map((choice) => choice.name)
  const digits = names.slice(0, 9).map((name, index) => `${index + 1} for ${name}`)
  return `You can say ${listed(names)}, or press ${listed(digits)}.`
}

const listed = (items: readonly string[]): string =>
  items.length < 2 ? items.join('') : `${items.slice(0, -1).join(', ')} or ${items.at(-1)}`
