/** Owns what a question of a call script waits for: the words in its parentheses become a slot and options. */
import { affirmative, type Choice, negative } from './phrases.ts'
import { plain } from './text.ts'
import type { Ask, AskedSlot } from './steps.ts'

type Complain = (message: string) => void
type Settings = Pick<Ask, 'slot' | 'confirm' | 'tries'>

export const defaultTries = 3
const maxTries = 5
const maxChoices = 40
const maxAlternatives = 20
/** Of `no match` and of `no input`: a question is asked no oftener than `maxTries`. */
const maxReprompts = maxTries
export const maxDigits = 20
/** The largest number that is understood. */
export const maxNumber = 9999

export const yesNo: readonly Choice[] = [
  { value: true, name: 'yes', phrases: affirmative },
  { value: false, name: 'no', phrases: negative },
]

/** How a question of this kind is asked when nothing else is said about it. */
export const usualOf = (slot: AskedSlot): Pick<Ask, 'confirm' | 'tries' | 'noMatch' | 'noInput'> => ({
  confirm: confirmOf(slot),
  tries: defaultTries,
  noMatch: [],
  noInput: [],
})

function confirmOf({ kind }: AskedSlot): Ask['confirm'] {
  if (kind === 'digits') return 'spoken'
  return kind === 'choices' || kind === 'free' ? 'never' : 'unsure'
}

/** What stands in the parentheses of `ask`. */
export function settingsOf(written: string, complain: Complain): Settings {
  let rest = written
  let confirm: Ask['confirm'] | null = null
  let tries = defaultTries
  for (let option = optionOf(rest); option !== null; option = optionOf(rest)) {
    rest = option.before
    if (option.word === 'confirm') confirm = 'always'
    else if (option.word.startsWith('no')) confirm = 'never'
    else tries = Number(option.word.replace(/\D/g, ''))
  }
  if (tries < 1 || tries > maxTries) complain(`tries must be 1 to ${maxTries}`)
  const slot = slotOf(rest.trim(), complain)
  return { slot, confirm: confirm ?? confirmOf(slot), tries }
}

function optionOf(text: string): { readonly before: string; readonly word: string } | null {
  const found = /^(.*),\s*(confirm|no\s+confirm|tries\s+\d{1,3})\s*$/s.exec(text)
  return found && { before: found[1] ?? '', word: found[2] ?? '' }
}

function slotOf(written: string, complain: Complain): AskedSlot {
  const kind = /^(?:digits|number)\b(?![^\d]*\|)|^(?:date|time|phrase|free)(?=\s*(?:,|$))/.exec(written)?.[0]
  if (kind === undefined) return { kind: 'choices', choices: choicesOf(written, complain) }
  const rest = written.slice(kind.length).trim()
  if (kind === 'digits') return digitsOf(rest, complain)
  if (kind === 'number') return numberOf(rest, complain)
  if (rest !== '') complain(`"${written}" has an option that is none of: confirm, no confirm, tries <n>`)
  return { kind: kind === 'date' || kind === 'time' ? kind : 'free' }
}

function digitsOf(rest: string, complain: Complain): AskedSlot {
  const range = rangeOf(rest)
  if (rest === '') return { kind: 'digits', min: 1, max: maxDigits }
  if (range === null) complain('digits are written: digits, digits 4 or digits 3-8, then options after a comma')
  const [min, max] = range ?? [1, maxDigits]
  if (min < 1 || max > maxDigits || min > max) complain(`how many digits must be 1 to ${maxDigits}, the fewest first`)
  return { kind: 'digits', min, max }
}

function numberOf(rest: string, complain: Complain): AskedSlot {
  const range = rangeOf(rest)
  if (rest === '') return { kind: 'number', min: 0, max: maxNumber }
  if (range === null) complain('a number is written: number or number 1-20, then options after a comma')
  const [min, max] = range ?? [0, maxNumber]
  if (max > maxNumber || min > max) complain(`a number must be 0 to ${maxNumber}, the smallest first`)
  return { kind: 'number', min, max }
}

function rangeOf(text: string): readonly [number, number] | null {
  const found = /^(\d{1,6})(?:\s*(?:-|–|to)\s*(\d{1,6}))?$/.exec(text)
  return found && [Number(found[1]), Number(found[2] ?? found[1])]
}

function choicesOf(options: string, complain: Complain): readonly Choice[] {
  if (/^\s*yes\s*\/\s*no\s*$/i.test(options)) return yesNo
  const choices = options.split('|').map((option): Choice => {
    const phrases = alternativesOf(option, /\//)
    if (phrases.includes('')) complain('a choice is empty')
    if (phrases.length > maxAlternatives) complain(`more than ${maxAlternatives} ways to say one choice`)
    const name = phrases[0] ?? ''
    return { value: name, name, phrases }
  })
  if (choices.length > maxChoices) complain(`more than ${maxChoices} choices`)
  return choices
}

export const alternativesOf = (text: string, separator: RegExp): string[] =>
  text.split(separator).map((phrase) => phrase.trim())

/** A question with its own words for when it is asked again. */
export function reprompted(ask: Ask, line: string, complain: Complain): Ask {
  const [, occasion = '', text = ''] = /^no\s+(match|input)\s*:\s*(.*)$/s.exec(line) ?? []
  const said = plain(text)
  if (said === '') complain(`say what when there is no ${occasion}?`)
  const { length } = occasion === 'match' ? ask.noMatch : ask.noInput
  if (length >= maxReprompts) {
    complain(`more than ${maxReprompts} lines of "no ${occasion}": a question is asked ${maxTries} times at most`)
    return ask
  }
  return occasion === 'match'
    ? { ...ask, noMatch: [...ask.noMatch, said] }
    : { ...ask, noInput: [...ask.noInput, said] }
}
