/** Owns the values that a caller can answer with: how each is said, with the words that go before it, and what the words mean. */
import type { Slot } from './expected.ts'
import { graphOf, oneOf, sequence, type Pattern, type WordGraph } from '../english/grammar-pattern.ts'
import { dateOf, datesPattern, spokenDate } from '../english/spoken-dates.ts'
import { digitsOf, digitsPattern } from '../english/spoken-digits.ts'
import { numberOf, numbersPattern } from '../english/spoken-numbers.ts'
import { spokenTime, timeOf, timesPattern } from '../english/spoken-times.ts'

export type ValueSlot = Extract<Slot, { kind: 'digits' | 'number' | 'date' | 'time' }>
export type SpokenValue = {
  readonly value: string | number
  readonly spoken: string
  /** With one word exchanged for one that sounds like it, as `fifteen` for `fifty`, it would be another value. */
  readonly isAlike?: boolean
}

export type SpokenValues = {
  /** Equal for equal graphs, and short. */
  readonly name: string
  readonly graph: WordGraph
  /** Words before a value that mean nothing. `today` is a day such as 2027-05-03. Null for what is no value of the slot. */
  valueOf(words: readonly string[], today: string): SpokenValue | null
}

const carriers = ["it's", 'it is', "that's", 'that is', 'make it', "i'd say", 'maybe', 'about'] as const
const carriersOf: Readonly<Record<ValueSlot['kind'], readonly string[]>> = {
  digits: [...carriers, 'my number is', 'the number is', 'number', 'the code is', 'my code is'],
  number: [...carriers, 'my number is', 'the number is', 'number'],
  date: [...carriers, 'on', "let's say"],
  time: [...carriers, 'at', 'around', "let's say", "it's at"],
}
const largestNumber = 9999

export function spokenValuesOf(slot: ValueSlot): SpokenValues {
  const before = carriersOf[slot.kind]
  return {
    name: slot.kind === 'digits' || slot.kind === 'number' ? `${slot.kind} ${slot.min} ${slot.max}` : slot.kind,
    graph: graphOf(sequence(oneOf('', ...before), patternOf(slot))),
    valueOf(words, today) {
      const text = words.join(' ')
      for (const carrier of ['', ...before]) {
        if (carrier !== '' && !text.startsWith(`${carrier} `)) continue
        const plain = words.slice(carrier === '' ? 0 : carrier.split(' ').length)
        const value = plainValueOf(slot, plain, today)
        if (value === null) continue
        return slot.kind !== 'digits' && isAlike(slot, plain, today) ? { ...value, isAlike: true } : value
      }
      return null
    },
  }
}

/** Over a telephone each is taken for the other. */
const alikeWords: ReadonlyMap<string, string> = new Map(
  [
    ['five', 'nine'],
    ['thirteen', 'thirty'],
    ['fourteen', 'forty'],
    ['fifteen', 'fifty'],
    ['sixteen', 'sixty'],
    ['seventeen', 'seventy'],
    ['eighteen', 'eighty'],
    ['nineteen', 'ninety'],
    ['thirteenth', 'thirtieth'],
  ].flatMap(([one = '', other = '']): [string, string][] => [
    [one, other],
    [other, one],
  ]),
)

const isAlike = (slot: ValueSlot, words: readonly string[], today: string): boolean =>
  words.some((word, index) => {
    const other = alikeWords.get(word)
    return other !== undefined && plainValueOf(slot, words.with(index, other), today) !== null
  })

function patternOf(slot: ValueSlot): Pattern {
  switch (slot.kind) {
    case 'digits':
      return digitsPattern(slot.min, slot.max)
    case 'number':
      return numbersPattern(Math.max(0, slot.min), Math.min(largestNumber, slot.max))
    case 'date':
      return datesPattern
    case 'time':
      return timesPattern
  }
}

function plainValueOf(slot: ValueSlot, words: readonly string[], today: string): SpokenValue | null {
  switch (slot.kind) {
    case 'digits': {
      const digits = digitsOf(words)
      if (digits === null || digits.length < slot.min || digits.length > slot.max) return null
      return { value: digits, spoken: digits.split('').join(' ') }
    }
    case 'number': {
      const number = numberOf(words)
      return number === null || number < slot.min || number > slot.max
        ? null
        : { value: number, spoken: String(number) }
    }
    case 'date': {
      const date = dateOf(words, today)
      return date === null ? null : { value: date, spoken: spokenDate(date, today) }
    }
    case 'time': {
      const time = timeOf(words)
      return time === null ? null : { value: time, spoken: spokenTime(time) }
    }
  }
}
