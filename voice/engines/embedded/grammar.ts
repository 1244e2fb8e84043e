/**
 * Owns what can be understood in one turn: phrases with their meanings, made into a word graph for the recogniser, with polite words around
 * them and a loop of all English phones beside them that wins when none of the phrases was said.
 */
import type { Pronounce } from './pronunciations.ts'

export type Transition = { readonly from: number; readonly to: number; readonly logp: number; readonly word: string }

/** As the recogniser takes it. Empty words are jumps, never two in a row: the recogniser follows one of them only. */
export type Grammar = {
  /** Equal for equal grammars. */
  readonly key: string
  readonly start: number
  readonly end: number
  readonly states: number
  readonly words: readonly (readonly [word: string, phones: string])[]
  readonly transitions: readonly Transition[]
}

export type Phrase<Meaning> = { readonly text: string; readonly meaning: Meaning }

export type Understanding<Meaning> = {
  readonly grammar: Grammar
  /** Null when the words are not one whole phrase of this grammar. The text goes without a hesitation before it. */
  understand(words: readonly string[]): { readonly meaning: Meaning; readonly text: string } | null
  /** What was caught in passing, in the middle of speech that is not understood; null for nothing, and where nothing is listened for. */
  spotted(words: readonly string[]): string | null
}

/** Phrases that are caught in the middle of other speech, and what of it is worth telling. */
export type Spotting = {
  readonly phrases: readonly string[]
  textOf(words: readonly string[], isKnown: (word: string) => boolean): string | null
}

export const maxPhrases = 400

const before = [
  'um',
  'uh',
  'well',
  'okay',
  'oh',
  'the',
  'a',
  'i think',
  "i'd like",
  'i would like',
  'i want',
  "i'll have",
]
const after = ['please', 'thanks', 'thank you']
const phones =
  'AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH'.split(' ')
const phonePrefix = '+'

const [start, opened, phrased, end, garbage] = [0, 1, 2, 3, 4]

/** Chosen by trying with three voices: dearer phones let wrong phrases through, cheaper ones swallow right ones. */
const garbageEntry = 1e-18
const garbagePhone = 1e-3
/** From 1e-4 to 1e-16 it hears the same. */
const spottedPhrase = 1e-10
const carrier = 0.02
const logBase = Math.log(1.0001)

/** Words of a phrase as the dictionary has them. */
export const wordsOf = (text: string): readonly string[] =>
  text
    .toLowerCase()
    .replaceAll('’', "'")
    .split(/[^a-z0-9'.]+/)
    .map((word) => word.replace(/\.+$/, ''))
    .filter((word) => word !== '')

/** Throws for a word that the dictionary does not have: scripts are checked before a call. An earlier phrase wins over a later one of the same words. */
export function understandingOf<Meaning>(
  phrases: readonly Phrase<Meaning>[],
  pronounce: Pronounce,
  spotting: Spotting | null = null,
): Understanding<Meaning> {
  const meanings = new Map<string, Meaning>()
  for (const phrase of phrases.slice(0, maxPhrases)) {
    const text = wordsOf(phrase.text).join(' ')
    if (text !== '' && !meanings.has(text)) meanings.set(text, phrase.meaning)
  }
  const grammar = grammarOf([...meanings.keys()], spotting?.phrases ?? [], pronounce)
  return {
    grammar,
    understand: (words) => understand(meanings, words),
    spotted: (words) => spotting?.textOf(words, (word) => !isPhone(word)) ?? null,
  }
}

/** True for a word of the phone loop, which means nothing. */
export const isPhone = (word: string): boolean => word.startsWith(phonePrefix)

function grammarOf(texts: readonly string[], spotted: readonly string[], pronounce: Pronounce): Grammar {
  const graph = createGraph()
  const share = 1 / Math.max(1, texts.length)
  for (const text of before) graph.path(start, opened, text, carrier / before.length)
  graph.jump(start, opened, 1)
  for (const text of texts) graph.path(opened, phrased, text, share)
  for (const text of after) graph.path(phrased, end, text, carrier / after.length)
  graph.jump(phrased, end, 1)
  for (const phone of phones) {
    graph.word(start, garbage, phonePrefix + phone, garbageEntry * garbagePhone)
    graph.word(garbage, garbage, phonePrefix + phone, garbagePhone)
  }
  for (const text of spotted) graph.path(garbage, garbage, text, spottedPhrase)
  graph.jump(garbage, end, 1)
  const spoken = [...before, ...after, ...texts, ...spotted].flatMap((text) => text.split(' '))
  const words = [
    ...[...new Set(spoken)].flatMap((word) => entriesOf(word, pronounce)),
    ...phones.map((phone) => [phonePrefix + phone, phone] as const),
  ]
  const key = [...texts, ...spotted.map((text) => `*${text}`)].join('|')
  return { key, start, end, words, states: graph.states(), transitions: graph.transitions }
}

function entriesOf(word: string, pronounce: Pronounce): (readonly [string, string])[] {
  const ways = pronounce(word)
  if (ways.length === 0) throw new Error(`no pronunciation for "${word}"`)
  return ways.map((phones, index) => [index === 0 ? word : `${word}(${index + 1})`, phones])
}

function createGraph() {
  const transitions: Transition[] = []
  let states = garbage + 1
  const word = (from: number, to: number, text: string, probability: number) => {
    transitions.push({ from, to, word: text, logp: Math.round(Math.log(probability) / logBase) })
  }
  return {
    transitions,
    states: () => states,
    word,
    jump: (from: number, to: number, probability: number) => word(from, to, '', probability),
    /** The words of `text` one after another; the first pays for all. */
    path(from: number, to: number, text: string, probability: number) {
      const words = text.split(' ')
      let at = from
      for (const [index, spoken] of words.entries()) {
        const next = index === words.length - 1 ? to : states++
        word(at, next, spoken, index === 0 ? probability : 1)
        at = next
      }
    },
  }
}

function understand<Meaning>(meanings: ReadonlyMap<string, Meaning>, words: readonly string[]) {
  const text = words.join(' ')
  for (const head of ['', ...before]) {
    if (head !== '' && !text.startsWith(`${head} `)) continue
    const rest = head === '' ? text : text.slice(head.length + 1)
    for (const tail of ['', ...after]) {
      if (tail !== '' && !rest.endsWith(` ${tail}`)) continue
      const meaning = meanings.get(tail === '' ? rest : rest.slice(0, -tail.length - 1))
      if (meaning !== undefined) return { meaning, text: head.includes(' ') ? text : rest }
    }
  }
  return null
}
