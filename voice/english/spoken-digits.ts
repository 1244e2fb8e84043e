/** Owns digits as they are said one by one: `four oh double seven`. */
import { oneOf, sequence, type Pattern } from './grammar-pattern.ts'

const digitOfWord: Readonly<Record<string, string>> = {
  zero: '0',
  oh: '0',
  one: '1',
  two: '2',
  three: '3',
  four: '4',
  five: '5',
  six: '6',
  seven: '7',
  eight: '8',
  nine: '9',
}
const digitWords = Object.keys(digitOfWord)
const times: Readonly<Record<string, number>> = { double: 2, triple: 3 }

/** Longer ones are pressed, not said. */
export const maxSpokenDigits = 20

/** As many digits as `min` to `max` say; both at least 1. Who says `zero` does not say `oh` as well: else any pause is heard as an `oh`. */
export const digitsPattern = (min: number, max: number): Pattern =>
  oneOf(
    ...['oh', 'zero'].map((other) =>
      digitsOfWords(
        digitWords.filter((word) => word !== other),
        min,
        max,
      ),
    ),
  )

function digitsOfWords(words: readonly string[], min: number, max: number): Pattern {
  const longest = Math.min(max, maxSpokenDigits)
  const after: Pattern[] = [''] // By the number of digits that may still come.
  for (let left = 1; left <= longest; left++) {
    const repeated = Object.entries(times).filter(([, count]) => count <= left)
    const further = oneOf(
      sequence(oneOf(...words), after[left - 1] ?? ''),
      ...repeated.map(([word, count]) => sequence(word, oneOf(...words), after[left - count] ?? '')),
    )
    after.push(longest - left >= min ? oneOf('', further) : further)
  }
  return after[longest] ?? ''
}

/** Null when the words are no digits. */
export function digitsOf(words: readonly string[]): string | null {
  let digits = ''
  let count = 1
  for (const word of words) {
    const repeated = times[word]
    const digit = digitOfWord[word]
    if (repeated !== undefined && count === 1) count = repeated
    else if (digit !== undefined) {
      digits += digit.repeat(count)
      count = 1
    } else return null
  }
  return count > 1 || digits === '' ? null : digits
}
