/**
 * Owns how far a conversation is, as JSON: it is what the engine remembers, and a session that is opened with it goes on from there. Where it
 * does not fit the script any more, what was said so far tells.
 */
import { z } from 'zod'
import { Json } from '../../../model/json.ts'
import type { Said } from '../../../model/voice-engine.ts'
import type { Expected } from '../expected.ts'
import { fillIn, spoken, valueAt, type Values } from '../fill-in.ts'
import { spokenDate } from '../../english/spoken-dates.ts'
import type { Ask, Condition, Script, Step } from '../steps.ts'
import { yesNo } from '../questions.ts'

const Answer = z.union([z.string(), z.boolean(), z.number()])
export type Answer = z.infer<typeof Answer>

const count = z.number().int().nonnegative()

/** A tool that was called. The script is already where it goes on after it. */
const PendingCall = z.object({
  id: z.string(),
  name: z.string(),
  purpose: z.enum(['tool', 'transfer', 'knowledge']),
  into: z.string().nullable(),
  handlesErrors: z.boolean(),
  /** Of knowledge: what was asked. */
  query: z.string(),
  /** Its result is there; `reply` is said when the words before have been heard. `moved`: the caller is being passed on, and the agent is quiet. */
  outcome: z.enum(['pending', 'done', 'moved']),
  reply: z.string(),
})
export type PendingCall = z.infer<typeof PendingCall>

/**
 * `step` counts the steps of the script. `unopened` until the first line; `speaking` until the line has been heard, then a question is
 * `listening`, and a tool that is not ready is `waiting`.
 */
export const DialogueState = z.object({
  version: z.literal(1),
  step: count,
  phase: z.enum(['unopened', 'speaking', 'listening', 'waiting', 'ended']),
  answers: z.record(z.string(), Answer),
  misunderstood: count,
  unanswered: count,
  /** Answers as they are read out, where that differs from the answer. */
  spoken: z.record(z.string(), z.string()).default({}),
  /** Results of tools; the keys of those that failed. */
  results: z.record(z.string(), Json).default({}),
  failed: z.array(z.string()).default([]),
  /** What happens on an intent now; then the script goes on with `step`. */
  aside: z.object({ name: z.string(), step: count }).nullable().default(null),
  /** The argument of a tool that is asked for now. */
  argument: z.string().nullable().default(null),
  /** An answer that is read back. */
  confirming: z.object({ value: Answer, spoken: z.string() }).nullable().default(null),
  /** A request that ends the call or passes it on and was not understood for certain: the caller is asked whether it is meant. */
  doubted: z.enum(['goodbye', 'person']).nullable().default(null),
  /** Keys that are no whole answer yet. */
  keys: z.string().default(''),
  knowledge: z.boolean().default(false),
  call: PendingCall.nullable().default(null),
  /** Counts the tools that were called, so that no id comes twice. */
  toolCalls: count.default(0),
  nextAction: z.string().nullable().default(null),
})
export type DialogueState = z.infer<typeof DialogueState>

export const initialState: DialogueState = {
  version: 1,
  step: 0,
  phase: 'unopened',
  answers: {},
  misunderstood: 0,
  unanswered: 0,
  spoken: {},
  results: {},
  failed: [],
  aside: null,
  argument: null,
  confirming: null,
  doubted: null,
  keys: '',
  knowledge: false,
  call: null,
  toolCalls: 0,
  nextAction: null,
}

/** What an engine remembered; null when it is nothing this script can go on from. */
export function stateOf(memory: Json, script: Script): DialogueState | null {
  const parsed = DialogueState.safeParse(memory)
  return parsed.success && isOf(parsed.data, script) ? parsed.data : null
}

function isOf(state: DialogueState, script: Script): boolean {
  if (state.step > script.steps.length) return false
  if (state.aside !== null && state.aside.step > (script.asides.get(state.aside.name)?.length ?? -1)) return false
  const isAsking = state.phase === 'listening' || state.argument !== null
  return !isAsking || state.doubted !== null || questionOf(script, state) !== null
}

export const stepOf = (script: Script, { aside, step }: DialogueState): Step | undefined =>
  aside === null ? script.steps[step] : script.asides.get(aside.name)?.[aside.step]

/** What is asked now: a question of the script, or an argument of a tool; null while nothing is. */
export function questionOf(script: Script, state: DialogueState): Ask | null {
  const step = stepOf(script, state)
  if (state.call !== null || step === undefined) return null
  if (step.kind === 'ask') return step
  if (step.kind !== 'tool' || state.argument === null) return null
  return step.arguments.find(({ ask }) => ask?.key === state.argument)?.ask ?? null
}

/** What the caller's next words may be. */
export function expectedOf(script: Script, state: DialogueState): Expected {
  const confirming = state.confirming !== null || state.doubted !== null
  const asked = questionOf(script, state)?.slot ?? ({ kind: 'none' } as const)
  const slot = confirming ? ({ kind: 'choices', choices: yesNo } as const) : asked
  const { intents } = script
  return state.knowledge && script.knowledgeTool !== null
    ? { slot, intents, confirming, dictate: true }
    : { slot, intents, confirming }
}

/** What is known besides the answers. */
export type World = {
  readonly values: Values
  /** YYYY-MM-DD where the caller is. */
  readonly today?: string
}

/** What placeholders stand for: what the caller said as it is. */
export const knownTo = ({ values, today = '' }: World, state: DialogueState): Values => ({
  ...state.answers,
  ...state.results,
  ...values,
  today,
})

/** The same as it is read out. */
export const sayable = (world: World, state: DialogueState): Values => ({
  ...knownTo(world, state),
  ...withoutKeys(state.spoken, world.values),
  today: world.today === undefined ? '' : spokenDate(world.today, world.today),
})

const withoutKeys = (spokenAnswers: Readonly<Record<string, string>>, values: Values): Values =>
  Object.fromEntries(Object.entries(spokenAnswers).filter(([key]) => !Object.hasOwn(values, key)))

/** A question that was never answered is nothing, so only a negated condition holds. */
export function holds(when: Condition, world: World, state: DialogueState): boolean {
  const isFailed = when.is === 'error' && state.failed.includes(when.key)
  const value = valueAt(knownTo(world, state), when.key)
  return (isFailed || spoken(value).toLowerCase() === when.is) !== when.negated
}

/** Of a conversation that somebody else began: nobody is greeted again, it goes on with the first question. */
export function stateAfter(
  { script, ...world }: World & { readonly script: Script },
  history: readonly Said[],
): DialogueState {
  if (history.length === 0) return initialState
  const said = history.map(({ text }) => text).join('\n')
  const isOpening = (step: Step): boolean => step.kind === 'say' || step.kind === 'knowledge'
  const question = script.steps.findIndex((step) => !isOpening(step) && step.kind !== 'end')
  const isHeard = (step: Step): boolean => said.includes(fillIn(step.text, sayable(world, initialState)))
  const unheard = script.steps.findIndex((step) => !isHeard(step))
  const step = [question, unheard, script.steps.length].find((index) => index >= 0) ?? 0
  const knowledge = script.steps.slice(0, step).findLast((earlier) => earlier.kind === 'knowledge')
  return { ...initialState, step, knowledge: knowledge?.isOn ?? false }
}
