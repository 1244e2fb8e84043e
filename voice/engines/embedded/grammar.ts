/**
 * Owns what can be understood in one turn: phrases and values with their meanings, made into a word graph for the recogniser, with polite words
 * around them and a loop of all English phones beside them that wins when nothing of it was said.
 */
import { walk, type WordGraph } from '../../english/grammar-pattern.ts'
import type { Phrase } from '../../script/phrases.ts'
import type { Pronounce } from './pronunciations.ts'
import { maxPhrases, wordsOf } from './vocabulary.ts'

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

/** How long the silence is after which the caller has said all: shorter after a whole answer, longer in the middle of one. */
export type Pause = 'short' | 'usual' | 'long'

export type Understanding<Meaning> = {
  readonly grammar: Grammar
  /** Null when the words are not one whole answer of this grammar. The text goes without a hesitation before it. */
  understand(words: readonly string[]): Answer<Meaning> | null
  /** After these words, the first ones of the utterance. */
  pauseAfter(words: readonly string[]): Pause
  /** What was caught in the middle of speech that is not understood, its meaning if it has one; null for nothing, and where nothing is listened for. */
  spotted(words: readonly string[]): Answer<Meaning | null> | null
  /** What speech of any words means, as dictation wrote it; null where only a grammar is listened for. */
  readonly dictated: ((text: string) => Meaning) | null
}
/** `confidence`: where it is not to be told from the sound. */
export type Answer<Meaning> = { readonly meaning: Meaning; readonly text: string; readonly confidence?: number }

/** Phrases that are caught in the middle of other speech, and what of it is worth telling. */
export type Spotting<Meaning> = {
  readonly phrases: readonly string[]
  find(words: readonly string[], isKnown: (word: string) => boolean): Answer<Meaning | null> | null
}

/** Answers that are too many to be listed. */
export type Values<Meaning> = {
  /** Equal for equal graphs. */
  readonly name: string
  readonly graph: WordGraph
  meaningOf(words: readonly string[]): Meaning | null
  /** After words that are an answer, but may be the beginning of a longer one. */
  readonly pauseBeforeMore: Pause
  /** Digits one by one: anything short that is said after them is heard as one more. */
  readonly areDigits?: boolean
}

type Options<Meaning> = {
  readonly spotting?: Spotting<Meaning> | null
  readonly values?: Values<Meaning> | null
  readonly dictated?: ((text: string) => Meaning) | null
  /** After words that are no answer. */
  readonly pauseInOther?: Pause
  /** Finds or keeps a grammar by its key. */
  kept?(key: string, make: () => Grammar): Grammar
}

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
/** Between digits "thanks" is a mumbled "six". */
const afterDigits = ['please', 'thank you']
const phones =
  'AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH'.split(' ')
const phonePrefix = '+'
/** Those of the loop that is in each grammar. */
export const phoneWords: Grammar['words'] = phones.map((phone) => [phonePrefix + phone, phone] as const)

const [start, opened, phrased, end, garbage] = [0, 1, 2, 3, 4]

/** Chosen by trying with three voices: dearer phones let wrong phrases through, cheaper ones swallow right ones. */
const garbageEntry = 1e-18
const garbagePhone = 1e-3
/** From 1e-4 to 1e-16 it hears the same. */
const spottedPhrase = 1e-10
const carrier = 0.02
const logBase = Math.log(1.0001)

/** Throws for a word that the dictionary does not have: scripts are checked before a call. An earlier phrase wins over a later one of the same words. */
export function understandingOf<Meaning>(
  phrases: readonly Phrase<Meaning>[],
  pronounce: Pronounce,
  {
    spotting = null,
    values = null,
    dictated = null,
    pauseInOther = 'usual',
    kept = (_, make) => make(),
  }: Options<Meaning> = {},
): Understanding<Meaning> {
  const meanings = new Map<string, Meaning>()
  for (const phrase of phrases.slice(0, maxPhrases)) {
    const text = wordsOf(phrase.text).join(' ')
    if (text !== '' && !meanings.has(text)) meanings.set(text, phrase.meaning)
  }
  const texts = [...meanings.keys()]
  const spotted = (spotting?.phrases ?? []).map((phrase) => wordsOf(phrase).join(' ')).filter((text) => text !== '')
  const key = [...texts, ...spotted.map((text) => `*${text}`), ...(values ? [`#${values.name}`] : [])].join('|')
  const answer = (words: readonly string[]) =>
    understand((text) => meanings.get(text) ?? values?.meaningOf(text.split(' ')), words)
  return {
    grammar: kept(key, () => grammarOf(key, texts, spotted, values, pronounce)),
    understand: answer,
    pauseAfter: (words) => pauseAfter(words, answer(words) !== null ? 'short' : pauseInOther, values),
    spotted: (words) => spotting?.find(words, (word) => !isPhone(word)) ?? null,
    dictated,
  }
}

/** True for a word of the phone loop, which means nothing. */
export const isPhone = (word: string): boolean => word.startsWith(phonePrefix)

function grammarOf(
  key: string,
  texts: readonly string[],
  spotted: readonly string[],
  answers: Values<unknown> | null,
  pronounce: Pronounce,
): Grammar {
  const values = answers?.graph ?? []
  const tails = answers?.areDigits ? afterDigits : after
  const graph = createGraph()
  const share = 1 / Math.max(1, texts.length)
  for (const text of before) graph.path(start, opened, text, carrier / before.length)
  graph.jump(start, opened, 1)
  for (const text of texts) graph.path(opened, phrased, text, share)
  graph.values(opened, phrased, values)
  for (const text of tails) graph.path(phrased, end, text, carrier / tails.length)
  graph.jump(phrased, end, 1)
  for (const phone of phones) {
    graph.word(start, garbage, phonePrefix + phone, garbageEntry * garbagePhone)
    graph.word(garbage, garbage, phonePrefix + phone, garbagePhone)
  }
  for (const text of spotted) graph.path(garbage, garbage, text, spottedPhrase)
  graph.jump(garbage, end, 1)
  const listed = [...before, ...after, ...texts, ...spotted].flatMap((text) => text.split(' '))
  const spoken = [...listed, ...values.flatMap(({ arcs }) => [...arcs.keys()])]
  const words = [...[...new Set(spoken)].flatMap((word) => entriesOf(word, pronounce)), ...phoneWords]
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
    /** The words of a value, each as likely as the others at its place. */
    values(from: number, to: number, values: WordGraph) {
      const numberOf = (state: number): number => (state === values.length - 1 ? from : states + state)
      for (const [state, { arcs }] of values.entries())
        for (const [text, next] of arcs) {
          const { isEnd = false, arcs: more } = values[next] ?? {}
          if (isEnd) word(numberOf(state), to, text, 1 / arcs.size)
          if (more !== undefined && more.size > 0) word(numberOf(state), numberOf(next), text, 1 / arcs.size)
        }
      states += values.length
    },
  }
}

/** Polite words around an answer are tried off, the ones before it first. */
function understand<Meaning>(
  meaningOf: (text: string) => Meaning | null | undefined,
  words: readonly string[],
): Answer<Meaning> | null {
  const text = words.join(' ')
  for (const [head, rest] of withoutHeads(text)) {
    for (const tail of ['', ...after]) {
      if (tail !== '' && !rest.endsWith(` ${tail}`)) continue
      const meaning = meaningOf(tail === '' ? rest : rest.slice(0, -tail.length - 1))
      if (meaning !== undefined && meaning !== null) return { meaning, text: head.includes(' ') ? text : rest }
    }
  }
  return null
}

const withoutHeads = (text: string): readonly (readonly [head: string, rest: string])[] =>
  ['', ...before]
    .filter((head) => head === '' || text.startsWith(`${head} `))
    .map((head) => [head, head === '' ? text : text.slice(head.length + 1)])

function pauseAfter(words: readonly string[], otherwise: Pause, values: Values<unknown> | null): Pause {
  const ways = withoutHeads(words.join(' ')).map(([, rest]) => walk(values?.graph ?? [], rest.split(' ')))
  if (ways.includes('under way')) return 'long'
  if (ways.includes('whole, may go on')) return values?.pauseBeforeMore ?? 'usual'
  return otherwise
}
