/**
 * Owns what is believed of a summary: sentences whose numbers and names stand in the transcript, or in the values that were found in it. A sentence
 * with another is left out. What cannot be told (numbers in the words of other languages than English, names where all nouns have capitals) stays. Pure.
 * docs/design/extraction.md "The summary"
 */
import type { ExtractionQuestion } from '../../model/extraction.ts'
import type { Json } from '../../model/json.ts'
import { wordsIn } from '../../model/words.ts'

type Talk = Pick<ExtractionQuestion, 'language' | 'answeredAt' | 'turns' | 'dimensions' | 'nextActions'>

export type ProvenSummary = {
  /** Null: nothing is left. */
  readonly summary: string | null
  /** Sentences. */
  readonly dropped: number
}

/** `values`: of dimensions and of the next action. */
export function provenSummary(paragraph: string, talk: Talk, values: readonly Json[]): ProvenSummary {
  const isNumberKnown = createNumberTest(talk, values)
  const isNameKnown = createNameTest(talk, values)
  const sentences = [...new Intl.Segmenter(localeOf(talk), { granularity: 'sentence' }).segment(paragraph)]
  const proven = sentences.filter(
    ({ segment }) => numbersOf(segment).every(isNumberKnown) && namesOf(segment).every(isNameKnown),
  )
  const text = proven
    .map(({ segment }) => segment)
    .join('')
    .trim()
  return { summary: text === '' ? null : text, dropped: sentences.length - proven.length }
}

const localeOf = ({ language }: Talk): string => {
  try {
    return Intl.getCanonicalLocales(language)[0] ?? 'en'
  } catch {
    // Whatever a call was given as its locale.
    return 'en'
  }
}

const textsOf = (values: readonly Json[]): string => values.map((value) => JSON.stringify(value)).join(' ')

/** In figures, with what stands between them. */
const numbersOf = (text: string): string[] => text.match(/\d+(?:[.,:/'\u00a0\u202f-]\d+)*/g) ?? []
const figuresOf = (text: string): string => text.replaceAll(/\D/g, '')

const units =
  'zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen'.split(
    ' ',
  )
const tens = 'twenty thirty forty fifty sixty seventy eighty ninety'.split(' ')
const ordinals = 'zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth'.split(' ')
/** Whoever said one of them may have meant any number. */
const openWords = new Set(
  'oh double triple hundred thousand million half quarter dozen couple noon midnight twice once pair'.split(' '),
)

/** English words become figures; the others stay. */
const inFigures = (text: string): string[] => {
  const words = wordsIn(text).map(({ word }) => word)
  return words.map((word, at) => {
    const ten = tens.indexOf(word)
    const after = units.indexOf(words[at + 1] ?? '')
    if (ten >= 0) return String((ten + 2) * 10 + (after > 0 && after < 10 ? after : 0))
    const unit = Math.max(units.indexOf(word), ordinals.indexOf(word))
    return unit >= 0 ? String(unit) : word.replace(/^(\d+)(?:st|nd|rd|th)$/, '$1')
  })
}

function createNumberTest(talk: Talk, values: readonly Json[]): (number: string) => boolean {
  const isEnglish = localeOf(talk).split('-')[0] === 'en'
  const day = new Date(talk.answeredAt).toISOString().slice(0, 10)
  const texts = [...talk.turns.map(({ text }) => text), textsOf(values), day]
  const known = new Set<string>()
  for (const text of texts) {
    for (const number of numbersOf(text)) {
      known.add(figuresOf(number))
      for (const part of number.split(/\D/)) known.add(String(Number(part)))
    }
    for (const word of inFigures(text)) if (/^\d+$/.test(word)) known.add(String(Number(word)))
  }
  const runs = texts.map((text) =>
    inFigures(text)
      .map((word) => figuresOf(word))
      .join(''),
  )
  const isOpen = talk.turns.some(({ text }) => wordsIn(text).some(({ word }) => openWords.has(word)))
  const isKnown = (figures: string): boolean =>
    known.has(figures) ||
    known.has(String(Number(figures))) ||
    (figures.length > 2 && runs.some((run) => run.includes(figures)))
  return (number) => {
    const figures = figuresOf(number)
    if (isOpen || (!isEnglish && figures.length < 3) || isKnown(figures)) return true
    const [, hour, minute] = /^(\d{1,2}):(\d\d)$/.exec(number) ?? []
    if (hour !== undefined && minute !== undefined)
      return [Number(hour), Number(hour) - 12].some((said) => known.has(String(said)))
    // `10-12` and `24/11` are several.
    const parts = number.split(/[-/]/)
    if (parts.length > 1 && parts.every((part) => isKnown(figuresOf(part)))) return true
    // `1,200.00` is said as 1200.
    const [, whole] = /^(.+)[.,]0+$/.exec(number) ?? []
    return whole !== undefined && isKnown(figuresOf(whole))
  }
}

/** Words with a capital that no sentence asks for: behind the first one. */
const namesOf = (sentence: string): string[] =>
  [...sentence.matchAll(/(?<=[\p{L}\p{N},;:)"”’'-]\s+["“(]?)\p{Lu}\p{Ll}+(?:['’-]\p{L}+)*/gu)].map(([name]) => name)

/** Who a summary speaks of. */
const roles =
  'agent assistant caller callers client customer customers user users guest bot voice company team the he she they it his her their mr mrs ms miss dr'.split(
    ' ',
  )
/** Languages that write nouns with a capital. */
const capitalNouns = new Set(['de', 'lb', 'nds'])
const shortestStem = 4

function createNameTest(talk: Talk, values: readonly Json[]): (name: string) => boolean {
  const locale = localeOf(talk)
  if (capitalNouns.has(locale.split('-')[0] ?? '')) return () => true
  const { turns, dimensions, nextActions } = talk
  const configured = [...dimensions, ...nextActions].map(({ key, name }) => `${key.replaceAll('_', ' ')} ${name}`)
  const options = dimensions.flatMap((dimension) => dimension.options ?? [])
  const said = [...turns.map(({ text }) => text), textsOf(values), ...configured, ...options, ...calendarOf(locale)]
  const known = new Set([...roles, ...said.flatMap((text) => wordsIn(text.normalize('NFC')).map(({ word }) => word))])
  return (name) => {
    const words = wordsIn(name.normalize('NFC').replace(/['’]s$/, '')).map(({ word }) => word)
    return words.every((word) => known.has(word) || [...known].some((other) => isForm(word, other)))
  }
}

const isForm = (one: string, other: string): boolean => {
  const [short, long] = one.length < other.length ? [one, other] : [other, one]
  return short.length >= shortestStem && long.startsWith(short) && long.length - short.length <= 3
}

/** Days, months and the language itself: a summary dates what was said as “tomorrow”. */
function calendarOf(locale: string): string[] {
  const days = Array.from({ length: 12 }, (_, at) => [Date.UTC(2023, at, 1), Date.UTC(2023, 0, at)]).flat()
  return [locale, 'en'].flatMap((one) => [
    ...days.map((day) => new Intl.DateTimeFormat(one, { weekday: 'long', month: 'long', timeZone: 'UTC' }).format(day)),
    new Intl.DisplayNames([one], { type: 'language' }).of(locale.split('-')[0] ?? 'en') ?? '',
  ])
}
