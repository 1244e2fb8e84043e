/**
 * Owns the language of call scripts: a document becomes steps, or errors with line numbers. Plain prose works: each paragraph and each list
 * item is something to say, a paragraph that ends with a question waits for an answer. A line that begins with a lower-case `say`, `ask`, `end`
 * or `if` is a statement:
 *
 *     say Hello {{customer.firstName}}.
 *     ask tea (yes/no): Would you like tea?
 *     ask drink (tea / black tea | coffee | fruit juice): What would you like instead?
 *     if drink is coffee: say Coffee it is.
 *     end (send_order): Thank you. Goodbye.
 *     # a comment; indented lines go on with the statement above
 */
import { affirmative, type Choice, negative } from './phrases.ts'
import { wordsOf } from './grammar.ts'
import type { Pronounce } from './pronunciations.ts'

export type Condition = { readonly key: string; readonly is: string; readonly negated: boolean }
type Common = { readonly line: number; readonly when: Condition | null }
export type Say = Common & { readonly kind: 'say'; readonly text: string }
/** Without a key the question is asked in passing: nothing is noted and nothing is asked again. */
export type Ask = Common & {
  readonly kind: 'ask'
  readonly key: string | null
  readonly text: string
  readonly choices: readonly Choice[]
}
export type End = Common & { readonly kind: 'end'; readonly text: string; readonly nextAction: string | null }
export type Step = Say | Ask | End
export type Script = { readonly steps: readonly Step[] }
export type ScriptError = { readonly line: number; readonly message: string }

type Options = {
  readonly pronounce: Pronounce
  /** Keys of the worker's next actions; without them any key goes. */
  readonly nextActions?: readonly string[]
}

/** A paragraph, list item or statement with the number of its first line. */
type Block = { readonly line: number; text: string; readonly isStatement: boolean }

const maxSteps = 2000
const maxChoices = 40
const maxAlternatives = 20
const maxText = 2000

const statement = /^(say|ask|end|if)\b/
/** Recognised even in the middle of a paragraph, where a line of prose may begin with any word. */
const unmistakable = /^(ask\s+\w+\s*\(|if\s+\w+\s+is\s.*:|end\s*(\(|:|$)|say:)/
const bullet = /^(?:[-*+•]|\d{1,3}[.)])\s+/
const keyPattern = /^[a-z][a-z0-9_]{0,63}$/

export const yesNo: readonly Choice[] = [
  { value: true, name: 'yes', phrases: affirmative },
  { value: false, name: 'no', phrases: negative },
]

/** Steps of everything that could be read, and every error found. A script with errors is not fit for a call. */
export function parseScript(text: string, options: Options): { script: Script; errors: readonly ScriptError[] } {
  const errors: ScriptError[] = []
  const steps: Step[] = []
  for (const block of blocksOf(text)) {
    if (steps.length >= maxSteps) {
      errors.push({ line: block.line, message: `more than ${maxSteps} steps` })
      break
    }
    const complain = (message: string) => void errors.push({ line: block.line, message })
    if (block.text.length > maxText) complain(`longer than ${maxText} characters`)
    const step = block.isStatement ? statementOf(block, block.text, null, complain) : proseOf(block)
    if (step === null) continue
    checkStep(step, steps, options, complain)
    steps.push(step)
  }
  return { script: { steps }, errors }
}

function blocksOf(text: string): Block[] {
  const blocks: Block[] = []
  let open = null as Block | null
  for (const [index, raw] of text.split(/\r\n|\r|\n/).entries()) {
    const line = raw.trim()
    if (line.startsWith('#') || !/[\p{L}\p{N}]/u.test(line)) {
      open = null
      continue
    }
    const rest = line.replace(bullet, '')
    const isIndented = /^\s/.test(raw) && rest === line
    const isStatement = (open === null || open.isStatement || rest !== line ? statement : unmistakable).test(rest)
    if (open !== null && rest === line && (isIndented || !(isStatement || open.isStatement))) {
      open.text += ` ${rest}`
      continue
    }
    open = { line: index + 1, text: rest, isStatement }
    blocks.push(open)
  }
  return blocks
}

function proseOf(block: Block): Step {
  const text = plain(block.text)
  const common = { line: block.line, when: null, text }
  return text.endsWith('?') ? { ...common, kind: 'ask', key: null, choices: yesNo } : { ...common, kind: 'say' }
}

type Complain = (message: string) => void

function statementOf(block: Block, text: string, when: Condition | null, complain: Complain): Step | null {
  const common = { line: block.line, when }
  const [, keyword = '', rest = ''] = /^(\w+)(.*)$/s.exec(text) ?? []
  if (keyword === 'say') return sayOf(common, rest, complain)
  if (keyword === 'ask') return askOf(common, rest, complain)
  if (keyword === 'end') return endOf(common, rest)
  if (when !== null) return fail(complain, 'after the condition comes say, ask or end')
  const condition = /^\s+(\w+)\s+is\s+(not\s+)?([^:]+):\s*(.+)$/s.exec(rest)
  if (condition === null) return fail(complain, 'a condition reads: if <key> is <value>: say …')
  const [, key = '', not, value = '', then = ''] = condition
  return statementOf(block, then, { key, is: value.trim().toLowerCase(), negated: not !== undefined }, complain)
}

function sayOf(common: Common, rest: string, complain: Complain): Say | null {
  const text = plain(rest.replace(/^\s*:/, ''))
  if (text === '') return fail(complain, 'say what?')
  return { ...common, kind: 'say', text }
}

function askOf(common: Common, rest: string, complain: Complain): Ask | null {
  const parts = /^\s+(\S+)\s*\(([^)]*)\)\s*:\s*(.+)$/s.exec(rest)
  if (parts === null) return fail(complain, 'a question reads: ask <key> (yes/no): …? or ask <key> (tea | coffee): …?')
  const [, key = '', options = '', text = ''] = parts
  if (!keyPattern.test(key))
    complain(`the key "${key}" must be lower-case letters, digits and _, starting with a letter`)
  return { ...common, kind: 'ask', key, text: plain(text), choices: choicesOf(options, complain) }
}

function endOf(common: Common, rest: string): End {
  const [, action, text = ''] = /^\s*(?:\(\s*([^)]*?)\s*\))?\s*:?\s*(.*)$/s.exec(rest) ?? []
  return { ...common, kind: 'end', text: plain(text), nextAction: action ?? null }
}

function choicesOf(options: string, complain: Complain): readonly Choice[] {
  if (/^\s*yes\s*\/\s*no\s*$/i.test(options)) return yesNo
  const choices = options.split('|').map((option): Choice => {
    const phrases = option.split('/').map((phrase) => phrase.trim())
    if (phrases.includes('')) complain('a choice is empty')
    if (phrases.length > maxAlternatives) complain(`more than ${maxAlternatives} ways to say one choice`)
    const name = phrases[0] ?? ''
    return { value: name, name, phrases }
  })
  if (choices.length > maxChoices) complain(`more than ${maxChoices} choices`)
  return choices
}

function checkStep(step: Step, earlier: readonly Step[], options: Options, complain: Complain): void {
  if (step.when !== null) checkCondition(step.when, earlier, complain)
  if (step.kind === 'ask') checkChoices(step.choices, options.pronounce, complain)
  if (step.kind !== 'end' || step.nextAction === null || options.nextActions === undefined) return
  if (!options.nextActions.includes(step.nextAction)) complain(`"${step.nextAction}" is no next action of this worker`)
}

function checkCondition(when: Condition, earlier: readonly Step[], complain: Complain): void {
  const asks = earlier.filter((step): step is Ask => step.kind === 'ask' && step.key === when.key)
  if (asks.length === 0) return complain(`"${when.key}" is not asked before this line`)
  const names = asks.flatMap((ask) => ask.choices.map((choice) => choice.name.toLowerCase()))
  if (!names.includes(when.is)) complain(`"${when.is}" is no answer to "${when.key}"`)
}

function checkChoices(choices: readonly Choice[], pronounce: Pronounce, complain: Complain): void {
  if (choices === yesNo) return
  const seen = new Set<string>()
  for (const phrase of choices.flatMap((choice) => choice.phrases)) {
    const words = wordsOf(phrase)
    const spoken = words.join(' ')
    if (spoken !== '' && seen.has(spoken)) complain(`"${phrase}" stands for two answers`)
    seen.add(spoken)
    for (const word of words)
      if (pronounce(word).length === 0) complain(`the word "${word}" is not in the pronouncing dictionary`)
  }
}

/** Marks of emphasis and code are for the eye. */
const plain = (text: string): string =>
  text
    .replace(/(\*\*|__|[*`~])(?=\S)(.+?)(?<=\S)\1/g, '$2')
    .replace(/\s+/g, ' ')
    .trim()

function fail(complain: Complain, message: string): null {
  complain(message)
  return null
}
