/**
 * Owns what typed words mean to a call script: what the same words would mean if they had been heard without doubt. Nothing is lost in typing, so an
 * answer counts in the middle of a sentence as well, as long as the sentence denies nothing and has one meaning only.
 */
import { wordsOfSmall } from '../../english/spoken-numbers.ts'
import type { Meaning } from '../../script/phrases.ts'
import type { Understood } from './caller-speech.ts'
import type { Understanding } from './grammar.ts'
import { wordsOf } from './vocabulary.ts'

/** Of a sentence, in which parts are looked for. */
const maxWords = 40
const digitNames = ['zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine']
const denials: ReadonlySet<string> = new Set([
  'not',
  "don't",
  'dont',
  'no',
  'never',
  'without',
  'neither',
  'nor',
  "doesn't",
])

/** Like a final text of the recogniser; its text is what was typed. */
export function understandTyped(text: string, understanding: Understanding<Meaning>): Understood {
  const words = wordsOf(text)
  const meaning =
    spellingsOf(words)
      .map((spelling) => understanding.understand(spelling)?.meaning ?? meaningWithin(spelling, understanding))
      .find((found) => found !== null) ?? null
  if (meaning !== null) return { text, meaning: withoutDoubt(meaning), confidence: 1, isNoise: false }
  return { text, meaning: understanding.dictated?.(text) ?? null, confidence: 1, isNoise: false }
}

/** `fifty` is not `fifteen` in writing: nothing needs to be read back for that. */
function withoutDoubt(meaning: Meaning): Meaning {
  if (meaning.kind !== 'value') return meaning
  const { kind, value, spoken } = meaning
  return { kind, value, spoken }
}

/** Figures as they are said: as a number, or one by one. */
function spellingsOf(words: readonly string[]): readonly (readonly string[])[] {
  if (!words.some(isFigure)) return [words]
  const spelled = (say: (figures: string) => string): string[] =>
    words.flatMap((word) => (isFigure(word) ? say(word).split(' ') : [word]))
  return [spelled(oneByOne), spelled(asNumber)]
}

const isFigure = (word: string): boolean => /^\d{1,20}$/.test(word)

const oneByOne = (figures: string): string =>
  figures
    .split('')
    .map((digit) => digitNames[Number(digit)])
    .join(' ')

/** Up to 9,999, as the numbers of scripts. */
function asNumber(figures: string): string {
  const number = Number(figures)
  if (figures.length > 4) return oneByOne(figures)
  const [thousands, hundreds, rest] = [Math.floor(number / 1000), Math.floor(number / 100) % 10, number % 100]
  const parts = [
    ...(thousands > 0 ? [wordsOfSmall(thousands), 'thousand'] : []),
    ...(hundreds > 0 ? [wordsOfSmall(hundreds), 'hundred'] : []),
    ...(rest > 0 || number === 0 ? [wordsOfSmall(rest)] : []),
  ]
  return parts.join(' ')
}

type Part = { readonly from: number; readonly to: number; readonly meaning: Meaning }

/** Of the longest part that answers, or asks for something, unless another part of the sentence does so otherwise. */
function meaningWithin(words: readonly string[], { understand }: Understanding<Meaning>): Meaning | null {
  if (words.length > maxWords || words.some((word) => denials.has(word))) return null
  const parts: Part[] = []
  for (let length = words.length - 1; length > 0; length--)
    for (let from = 0; from + length <= words.length; from++) {
      const meaning = understand(words.slice(from, from + length))?.meaning ?? null
      if (meaning !== null) parts.push({ from, to: from + length, meaning })
    }
  const isRequest = ({ meaning }: Part): boolean => meaning.kind === 'request'
  return meaningOf(parts.filter((part) => !isRequest(part))) ?? meaningOf(parts.filter(isRequest))
}

/** Longest first. */
function meaningOf(parts: readonly Part[]): Meaning | null {
  const [longest] = parts
  if (longest === undefined) return null
  const isElsewhere = ({ from, to }: Part): boolean => to <= longest.from || from >= longest.to
  const says = ({ meaning }: Part): string => JSON.stringify(meaning)
  return parts.some((part) => isElsewhere(part) && says(part) !== says(longest)) ? null : longest.meaning
}
