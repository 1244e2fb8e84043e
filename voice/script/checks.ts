/** Owns what must hold between the lines of a call script: keys that are asked before, intents that lead somewhere, words that can be recognised. */
import { phrasesOf, type Choice } from './phrases.ts'
import { ownRequests, type Aside } from './asides.ts'
import { yesNo } from './questions.ts'
import type { Ask, Condition, Options, Script, ScriptError, Step } from './steps.ts'
import type { Vocabulary } from './vocabulary.ts'

export type Complain = (message: string) => void

const maxIntents = 40
/** Of all intents together: what can always be said, and yes and no or the choices of a tool's schema, must find room beside them. */
const maxIntentWays = 300
/** Of one way to say something: nobody says more than that word for word. */
const maxWords = 25
/** What every call knows. */
const known = ['customer', 'context', 'sip']

export function checkBlocks(script: Script, asides: readonly Aside[], options: Options): ScriptError[] {
  const errors: ScriptError[] = []
  const at =
    (line: number): Complain =>
    (message) =>
      void errors.push({ line, message })
  // What happens on an intent may have happened before any line, and may come after any.
  const beside = asides.flatMap(({ steps }) => steps)
  const earlier = keysOf(beside)
  for (const step of script.steps) {
    checkStep(step, earlier, options.vocabulary, at(step.line))
    noteKeys(step, earlier)
  }
  for (const step of beside) checkStep(step, earlier, options.vocabulary, at(step.line))
  checkWays(script, beside, options.vocabulary, at)
  checkIntents(script, asides, options.vocabulary, at)
  return errors
}

/** What conditions can be about. `isOpen`: a tool that the call has not got would have asked for something. */
type Keys = { readonly asks: Map<string, Ask[]>; readonly results: Set<string>; isOpen: boolean }

function keysOf(steps: readonly Step[]): Keys {
  const keys: Keys = { asks: new Map(), results: new Set(), isOpen: false }
  for (const step of steps) noteKeys(step, keys)
  return keys
}

function noteKeys(step: Step, keys: Keys): void {
  const asks = step.kind === 'tool' ? step.arguments.map(({ ask }) => ask) : [step.kind === 'ask' ? step : null]
  for (const ask of asks)
    if (ask !== null && ask.key !== null) keys.asks.set(ask.key, [...(keys.asks.get(ask.key) ?? []), ask])
  if (step.kind !== 'tool') return
  if (step.into !== null) keys.results.add(step.into)
  keys.isOpen ||= step.tool === null
}

function checkStep(step: Step, earlier: Keys, vocabulary: Vocabulary, complain: Complain): void {
  if (step.when !== null) checkCondition(step.when, earlier, complain)
  if (step.kind === 'ask' && step.slot.kind === 'choices') checkChoices(step.slot.choices, vocabulary, complain)
}

function checkCondition(when: Condition, { asks, results, isOpen }: Keys, complain: Complain): void {
  const [head = ''] = when.key.split('.')
  const isPath = head !== when.key
  if (results.has(head) || (isPath && known.includes(head))) return
  if (isPath) return complain(`"${head}" is no result of a tool before this line`)
  const asked = asks.get(when.key) ?? []
  if (asked.length === 0) return isOpen ? undefined : complain(`"${when.key}" is not asked before this line`)
  if (!asked.some((ask) => isAnswer(ask, when.is))) complain(`"${when.is}" is no answer to "${when.key}"`)
}

function isAnswer({ slot }: Ask, value: string): boolean {
  switch (slot.kind) {
    case 'choices':
      return slot.choices.some((choice) => choice.name.toLowerCase() === value)
    case 'digits':
      return /^\d+$/.test(value) && value.length >= slot.min && value.length <= slot.max
    case 'number':
      return /^\d+$/.test(value) && Number(value) >= slot.min && Number(value) <= slot.max
    case 'date':
      return /^\d{4}-\d\d-\d\d$/.test(value)
    case 'time':
      return /^\d\d:\d\d$/.test(value)
    case 'free':
      return true
  }
}

/** What is too much is not listened for. */
function checkWays(
  { steps, intents }: Script,
  beside: readonly Step[],
  { maxPhrases }: Vocabulary,
  at: (line: number) => Complain,
): void {
  const waysOf = (choices: readonly Choice[]): number => choices.reduce((sum, { phrases }) => sum + phrases.length, 0)
  const tooMany = waysOf(intents) - maxIntentWays
  const last = intents.at(-1)
  if (tooMany > 0 && last) return at(last.line)(`the intents have ${tooMany} ways to say them too many: leave some out`)
  const left = maxPhrases - phrasesOf([]).length - waysOf(intents)
  for (const step of [...steps, ...beside]) {
    const surplus = step.kind === 'ask' && step.slot.kind === 'choices' ? waysOf(step.slot.choices) - left : 0
    if (surplus > 0)
      at(step.line)(`the choices and the intents have ${surplus} ways to say them too many: leave some out`)
  }
}

function checkIntents(
  { intents, asides: happening }: Script,
  asides: readonly Aside[],
  vocabulary: Vocabulary,
  at: (line: number) => Complain,
): void {
  const seen = new Set<string>()
  for (const [index, { line, name, phrases }] of intents.entries()) {
    const complain = at(line)
    if (index === maxIntents) complain(`more than ${maxIntents} intents`)
    if (intents.findIndex((intent) => intent.name === name) < index) complain(`the intent "${name}" is there twice`)
    if (!happening.has(name)) complain(`nothing happens on "${name}": write on ${name}: say …`)
    checkPhrases(phrases, seen, vocabulary, complain)
  }
  for (const { name, line } of asides)
    if (!ownRequests.includes(name) && !intents.some((intent) => intent.name === name))
      at(line)(`there is no intent "${name}"`)
}

function checkChoices(choices: readonly Choice[], vocabulary: Vocabulary, complain: Complain): void {
  if (choices === yesNo) return
  const phrases = choices.flatMap((choice) => choice.phrases)
  checkPhrases(phrases, new Set(), vocabulary, complain)
}

function checkPhrases(phrases: readonly string[], seen: Set<string>, vocabulary: Vocabulary, complain: Complain): void {
  for (const phrase of phrases) {
    const words = vocabulary.wordsOf(phrase)
    const spoken = words.join(' ')
    if (phrase !== '' && spoken === '') complain(`"${phrase}" has no words to recognise`)
    if (spoken !== '' && seen.has(spoken)) complain(`"${phrase}" stands for two answers`)
    seen.add(spoken)
    if (words.length > maxWords) complain(`more than ${maxWords} words in one way to say something`)
    for (const word of new Set(words)) if (!vocabulary.has(word)) complain(unknownWord(word))
  }
}

const unknownWord = (word: string): string =>
  `the word "${word}" is not in the pronouncing dictionary: write it ${/\d/.test(word) ? 'in words' : 'in other, English words'}`
