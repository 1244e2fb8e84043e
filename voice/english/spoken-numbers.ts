/** Owns whole numbers as English says them: the words of a number in every usual way, and the number of words. 0 to 9999. */
import { maybe, oneOf, sequence, type Pattern } from './grammar-pattern.ts'

const small =
  'zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen'.split(
    ' ',
  )
const tens = 'twenty thirty forty fifty sixty seventy eighty ninety'.split(' ')
const ordinalsOfSmall =
  'zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth'.split(
    ' ',
  )

/** From 0 to 99. */
export function wordsOfSmall(number: number): string {
  const ten = tens[Math.floor(number / 10) - 2]
  if (ten === undefined) return small[number] ?? ''
  return number % 10 === 0 ? ten : `${ten} ${small[number % 10]}`
}

const smallNumbers = new Map(Array.from({ length: 100 }, (_, number) => [wordsOfSmall(number), number]))

/** From 1 to 99. */
export function wordsOfOrdinal(number: number): string {
  const ten = tens[Math.floor(number / 10) - 2]
  if (ten === undefined) return ordinalsOfSmall[number] ?? ''
  return number % 10 === 0 ? ten.replace(/y$/, 'ieth') : `${ten} ${ordinalsOfSmall[number % 10]}`
}

/** Of 1 to 99, as `twenty first`. */
export const ordinals: ReadonlyMap<string, number> = new Map(
  Array.from({ length: 99 }, (_, index) => [wordsOfOrdinal(index + 1), index + 1]),
)

/** Of two digits, from `ten` on. */
const isPair = (number: number): boolean => number >= 10

/** `twenty one`, `a hundred and five`, `two thousand six`, `twelve hundred`, `nineteen oh five`, `twenty twenty seven`; null for anything else. */
export function numberOf(words: readonly string[]): number | null {
  const text = words.join(' ')
  const thousands = splitAt(text, 'thousand')
  if (thousands !== null) return joined(thousands, 1, 9, 1000)
  const hundreds = splitAt(text, 'hundred')
  if (hundreds !== null) return joined(hundreds, 1, 99, 100)
  return smallNumbers.get(text) ?? pairsOf(words)
}

function splitAt(text: string, unit: string): readonly [before: string, after: string] | null {
  const [before, after, ...more] = ` ${text} `.split(` ${unit} `)
  return before === undefined || after === undefined || more.length > 0 ? null : [before.trim(), after.trim()]
}

function joined([before, after]: readonly [string, string], least: number, most: number, unit: number): number | null {
  const many = before === 'a' ? 1 : (smallNumbers.get(before) ?? 0)
  if (many < least || many > most || (many > 9 && many % 10 === 0)) return null
  if (after === '') return many * unit
  const rest = numberOf(after.replace(/^and /, '').split(' '))
  return rest === null || rest === 0 || rest >= unit ? null : many * unit + rest
}

function pairsOf(words: readonly string[]): number | null {
  for (let at = 1; at < words.length; at++) {
    const first = smallNumbers.get(words.slice(0, at).join(' '))
    const last = smallNumbers.get(words.slice(at).join(' ').replace(/^oh /, ''))
    if (first === undefined || last === undefined || !isPair(first)) continue
    if (isPair(last) !== (words[at] === 'oh') && last > 0) return 100 * first + last
  }
  return null
}

const range = (from: number, to: number): readonly number[] =>
  Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => from + index)
const below100 = oneOf(...range(1, 99).map(wordsOfSmall))
const digit = oneOf(...range(1, 9).map(wordsOfSmall))
const afterUnit = (rest: Pattern): Pattern => maybe(sequence(maybe('and'), rest))
const hundred = sequence(oneOf('a', digit), 'hundred', afterUnit(below100))
/** `twelve hundred and five`, but nobody says `ten hundred`. */
const manyHundred = sequence(
  oneOf(
    ...range(11, 99)
      .filter((number) => number % 10 !== 0)
      .map(wordsOfSmall),
  ),
  'hundred',
  afterUnit(below100),
)
const pair = oneOf(...range(10, 99).map(wordsOfSmall))
const pairs: Pattern = sequence(pair, oneOf(pair, sequence('oh', digit)))
const thousand = sequence(oneOf('a', digit), 'thousand', afterUnit(oneOf(below100, hundred)))

/** From this many on a range is cut to its hundreds and thousands only. */
const maxListed = 200

/** All ways to say the numbers of a range within 0 to 9999, and some more where the range is wide. */
export function numbersPattern(min: number, max: number): Pattern {
  if (max - min <= maxListed && max < 1000) return oneOf(...range(min, max).map(waysOf))
  return oneOf('zero', below100, hundred, ...(max >= 1000 ? [manyHundred, thousand, pairs] : []))
}

/** Below 1000. */
function waysOf(number: number): Pattern {
  if (number < 100) return wordsOfSmall(number)
  const many = wordsOfSmall(Math.floor(number / 100))
  const head = sequence(oneOf(many, ...(many === 'one' ? ['a'] : [])), 'hundred')
  return number % 100 === 0 ? head : sequence(head, maybe('and'), wordsOfSmall(number % 100))
}
