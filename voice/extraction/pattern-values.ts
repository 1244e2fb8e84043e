/**
 * Owns values that no call script asked for by their key: options that the caller named, and what the caller answered to a question of the agent that
 * has the words of the dimension's name. Pure. Rather nothing than a guess: of several values none is taken.
 */
import type { Claim } from '../../model/extraction.ts'
import type { Json } from '../../model/json.ts'
import { unclear } from '../../model/transcript-marks.ts'
import { wordsIn, type Span, type Word } from '../../model/words.ts'
import type { Dimension } from '../../model/worker.ts'
import { wantedPlaces, type Heard } from './asked-values.ts'
import { datesIn, emailsIn, numbersIn, phoneNumbersIn, yesNoIn } from './spoken-in.ts'

/** A shorter option is a word of many meanings: it counts as an answer only. */
const tellingOption = 4
/** A longer answer to a question for a text says more than that. */
const maxAnswerWords = 12

type Value = Span & { readonly value: Json }

/** Null: nobody said so, or it is not certain. Later words count more. */
export function patternValue(dimension: Dimension, turns: readonly Heard[], today: string): Claim | null {
  const named = namesOf(dimension)
  for (const [at, { turn, role, text, words }] of [...turns.entries()].toReversed()) {
    if (role !== 'user' || text === unclear) continue
    const isAnswer = asksFor(named, turns[at - 1])
    const value = valueIn(dimension, text, { words, today, isAnswer })
    if (value !== null) return { key: dimension.key, value: value.value, turn, quote: text.slice(value.from, value.to) }
  }
  return null
}

type Place = { readonly words: readonly Word[]; readonly today: string; readonly isAnswer: boolean }

function valueIn(dimension: Dimension, text: string, { words, today, isAnswer }: Place): Value | null {
  const { type, options = [] } = dimension
  if (type === 'enum' || (type === 'string' && options.length > 0)) return optionIn(options, text, { words, isAnswer })
  if (type === 'string' && isAbout(dimension, /e-?mail/)) return only(emailsIn(text))
  if (type === 'string' && isAbout(dimension, /phone|mobile|call_?back_number/)) return only(phoneNumbersIn(text))
  if (!isAnswer) return null
  switch (type) {
    case 'boolean':
      return yesNoIn(text)
    case 'number':
      return only(numbersIn(text))
    case 'date':
      return only(datesIn(text, today, true))
    case 'string':
      return answerIn(text)
  }
}

const isAbout = ({ key, name }: Dimension, subject: RegExp): boolean => subject.test(`${key} ${name}`.toLowerCase())

function optionIn(
  options: readonly string[],
  text: string,
  { words, isAnswer }: Pick<Place, 'words' | 'isAnswer'>,
): Value | null {
  // Who asks about an option has not chosen it.
  if (!isAnswer && text.trim().endsWith('?')) return null
  const said = options
    .filter((option) => isAnswer || option.length >= tellingOption)
    .flatMap((value) => wantedPlaces(words, value).map((span) => ({ value, ...span })))
  const whole = said.filter(
    (one) =>
      !said.some((other) => other.value.length > one.value.length && other.from <= one.from && other.to >= one.to),
  )
  return only(whole)
}

const only = (values: readonly Value[]): Value | null =>
  values.every(({ value }) => value === values[0]?.value) ? (values[0] ?? null) : null

const carriers =
  /^\s*(?:(?:well|um|uh|so)[,\s]+)?(?:(?:my|the) [\w ]{1,30} is|it'?s|it is|that'?s|that is|i am|i'm|this is)\s+/i

/** What the caller said, without the words that lead to it. */
function answerIn(text: string): Value | null {
  const from = carriers.exec(text)?.[0].length ?? 0
  const rest = text.slice(from)
  const value = rest.trim().replace(/[.,;:!?\s]+$/, '')
  const count = wordsIn(value).length
  if (count === 0 || count > maxAnswerWords || text.trim().endsWith('?') || value.startsWith('[pressed')) return null
  const begin = from + rest.indexOf(value)
  return { value, from: begin, to: begin + value.length }
}

const empty = new Set(
  'a an the of for to is are was be has have had do does did want wants wanted need needs this that it they their his her your you my our caller customer client user person if whether and or in on at by with how what which when'.split(
    ' ',
  ),
)

/** The words that mean something, of its name, else of its key. */
function namesOf({ key, name }: Dimension): string[] {
  const named = tellingWords(name)
  return named.length > 0 ? named : tellingWords(key.replaceAll('_', ' '))
}

/** The agent's turn asks, and has all of these words. */
function asksFor(wanted: readonly string[], before: Heard | undefined): boolean {
  if (before === undefined || before.role !== 'agent' || !before.text.includes('?')) return false
  return wanted.length > 0 && wanted.every((word) => before.words.some((one) => isForm(one.word, word)))
}

const tellingWords = (text: string): string[] =>
  wordsIn(text)
    .map(({ word }) => word)
    .filter((word) => !empty.has(word))

/** `guest` and `guests`, `book` and `booking`. */
function isForm(one: string, other: string): boolean {
  const [short, long] = one.length < other.length ? [one, other] : [other, one]
  return short === long || (short.length >= 4 && long.startsWith(short) && long.length - short.length <= 3)
}
