/**
 * Owns values in the words of a transcript, wherever they stand in a turn: numbers, digits, days, times, yes and no, e-mail addresses and telephone
 * numbers, in figures or in English words. Each comes with its place in the text. Pure.
 */
import { wordsIn, type Span, type Word } from '../../model/words.ts'
import { dateOf } from '../english/spoken-dates.ts'
import { digitsOf } from '../english/spoken-digits.ts'
import { numberOf, wordsOfOrdinal, wordsOfSmall } from '../english/spoken-numbers.ts'
import { timeOf } from '../english/spoken-times.ts'
import { affirmative, negative } from '../script/phrases.ts'

export type Spoken<Value> = Span & { readonly value: Value }

/** Words of a date with its weekday and year, or of a large number. */
const longest = 10

/** From left to right, of those that overlap the longest. */
function found<Value>(words: readonly Word[], valueOf: (words: readonly string[]) => Value | null): Spoken<Value>[] {
  const all: Spoken<Value>[] = []
  for (let at = 0; at < words.length;) {
    const next = longestAt(words, at, valueOf)
    if (next !== null) all.push(next.spoken)
    at += next?.length ?? 1
  }
  return all
}

function longestAt<Value>(words: readonly Word[], at: number, valueOf: (words: readonly string[]) => Value | null) {
  for (let length = Math.min(longest, words.length - at); length > 0; length--) {
    const taken = words.slice(at, at + length)
    const value = valueOf(taken.map(({ word }) => word))
    if (value !== null) return { length, spoken: { value, from: taken[0]!.from, to: taken.at(-1)!.to } }
  }
  return null
}

/** `3rd`, `3` and `pm` as they are said; the words of one figure share its place. */
const saidWords = (text: string): Word[] =>
  wordsIn(text).flatMap((written) => sayingOf(written.word).map((word) => ({ ...written, word })))

function sayingOf(word: string): string[] {
  const [, figures = '', ending = ''] = /^(\d{1,4})(st|nd|rd|th)?$/.exec(word) ?? []
  const number = Number(figures)
  if (ending !== '' && number >= 1 && number <= 99) return wordsOfOrdinal(number).split(' ')
  if (figures !== '' && ending === '') return saidNumber(number).split(' ')
  if (word === 'am' || word === 'pm') return [word[0] ?? '', 'm']
  return [word]
}

/** As years are said, from 1000 on. */
function saidNumber(number: number): string {
  if (number < 100) return wordsOfSmall(number)
  const [many, rest] = [Math.floor(number / 100), number % 100]
  if (number < 1000) return `${wordsOfSmall(many)} hundred${rest === 0 ? '' : ` and ${wordsOfSmall(rest)}`}`
  if (number % 1000 < 10)
    return `${wordsOfSmall(Math.floor(number / 1000))} thousand${rest === 0 ? '' : ` ${wordsOfSmall(rest)}`}`
  if (rest === 0) return `${wordsOfSmall(many)} hundred`
  return `${wordsOfSmall(many)} ${rest < 10 ? 'oh ' : ''}${wordsOfSmall(rest)}`
}

/** `12`, `1,200`, `3.5`, `twelve`, `a hundred and five`. */
export function numbersIn(text: string): Spoken<number>[] {
  const figures = [...text.matchAll(/(?<![\w.,:/-])\d{1,9}(?:,\d{3})*(?:\.\d{1,9})?(?![\w:/-]|[.,]\d)/g)].map(
    ({ 0: written, index }) => ({
      value: Number(written.replaceAll(',', '')),
      from: index,
      to: index + written.length,
    }),
  )
  const words = wordsIn(text).filter(({ word }) => !/\d/.test(word))
  // Not across what stands in figures.
  const spoken = found(words, numberOf).filter(({ from, to }) => !/\d/.test(text.slice(from, to)))
  return [...figures, ...spoken].toSorted((one, other) => one.from - other.from)
}

/** All digits that follow one another: `4 oh double seven`, `47 11`. */
export function digitsIn(text: string): Spoken<string>[] {
  const words = wordsIn(text)
  const all: Spoken<string>[] = []
  for (let at = 0; at < words.length;) {
    let end = at
    let value = ''
    for (let until = at + 1; until <= words.length; until++) {
      const digits = plainDigitsOf(words.slice(at, until).map(({ word }) => word))
      if (digits === 'none') break
      if (digits !== 'open') [value, end] = [digits.digits, until]
    }
    if (end > at) all.push({ value, from: words[at]!.from, to: words[end - 1]!.to })
    at = Math.max(at + 1, end)
  }
  return all
}

/** `open`: what was said so far goes on, as `double` does. */
function plainDigitsOf(words: readonly string[]): { readonly digits: string } | 'open' | 'none' {
  const last = words.at(-1) ?? ''
  if (last === 'double' || last === 'triple') return words.length <= longestDigits ? 'open' : 'none'
  let digits = ''
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? ''
    const taken = word === 'double' || word === 'triple' ? [word, words[++at] ?? ''] : [word]
    const said = /^\d+$/.test(word) ? word : digitsOf(taken)
    if (said === null) return 'none'
    digits += said
  }
  return digits.length <= longestDigits ? { digits } : 'none'
}
const longestDigits = 40

/** A day that is no more than a number (`the third`) is one only as an answer. */
export function datesIn(text: string, today: string, isAnswer: boolean): Spoken<string>[] {
  const written = [...text.matchAll(/(?<!\d)(\d{4})-(\d\d)-(\d\d)(?!\d)/g)].flatMap(({ 0: day, index }) =>
    isDay(day) ? [{ value: day, from: index, to: index + day.length }] : [],
  )
  const dotted = [...text.matchAll(/(?<![\d.])(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})(?!\d)/g)].flatMap((match) => {
    const [whole, day = '', month = '', year = ''] = match
    const value = `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`
    return isDay(value) ? [{ value, from: match.index, to: match.index + whole.length }] : []
  })
  if (written.length + dotted.length > 0) return [...written, ...dotted]
  return found(saidWords(text), (words) => (isAnswer || !isBareNumber(words) ? dateOf(words, today) : null))
}

const isBareNumber = (words: readonly string[]): boolean => words[0] === 'the' && words.length <= 3

function isDay(day: string): boolean {
  const at = Date.parse(`${day}T00:00:00Z`)
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(day)
}

/** As `15:30`. */
export function timesIn(text: string): Spoken<string>[] {
  const written = [...text.matchAll(/(?<![\d:])(\d{1,2}):(\d\d)(?!\d)\s*([ap])?\.?(?:\s?m\b\.?)?/gi)].flatMap(
    (match) => {
      const value = clockOf(Number(match[1]), Number(match[2]), match[3]?.toLowerCase() ?? '')
      return value === null ? [] : [{ value, from: match.index, to: match.index + match[0].trimEnd().length }]
    },
  )
  return written.length > 0 ? written : found(saidWords(text), timeOf)
}

function clockOf(hour: number, minute: number, half: string): string | null {
  if (minute > 59 || hour > (half === '' ? 23 : 12)) return null
  const hours = half === '' ? hour : (hour % 12) + (half === 'p' ? 12 : 0)
  return [hours, minute].map((part) => String(part).padStart(2, '0')).join(':')
}

const answersOf = (phrases: readonly string[]) => phrases.toSorted((one, other) => other.length - one.length)
const yes = answersOf([
  ...affirmative,
  'yes please',
  "i'd love to",
  'i would',
  'i do',
  'definitely',
  'right',
  'please do',
])
const no = answersOf([...negative, "i wouldn't", "i don't", "i'm not", 'i am not', 'never', 'not yet'])

/** The beginning of an answer, behind words that mean nothing. */
export function yesNoIn(text: string): Spoken<boolean> | null {
  const words = wordsIn(text)
  const fillers = words.findIndex(
    ({ word }) => !['well', 'um', 'uh', 'oh', 'so', 'and', 'hm', 'ah', 'er'].includes(word),
  )
  const said = words.slice(Math.max(0, fillers))
  const begins = (phrase: string): Span | null => {
    const wanted = phrase.split(' ')
    const fits = wanted.every((word, index) => said[index]?.word === word)
    return fits ? { from: said[0]!.from, to: said[wanted.length - 1]!.to } : null
  }
  const refusal = no.map(begins).find((span) => span !== null)
  if (refusal) return { ...refusal, value: false }
  const consent = yes.map(begins).find((span) => span !== null)
  return consent ? { ...consent, value: true } : null
}

export const emailsIn = (text: string): Spoken<string>[] =>
  matches(text, /[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}/g)

/** In figures, with whatever stands between them; seven digits at least. */
export const phoneNumbersIn = (text: string): Spoken<string>[] =>
  matches(text, /(?<![\w])\+?\d(?:[\s().\-/]{0,2}\d){6,14}(?!\d)/g)

const matches = (text: string, shape: RegExp): Spoken<string>[] =>
  [...text.matchAll(shape)].map(({ 0: value, index }) => ({ value, from: index, to: index + value.length }))
