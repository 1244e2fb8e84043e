/**
 * Owns what the recogniser listens for, made of what a script expects next: its answers, values and intents, and what can always be said, as one grammar. Intents
 * are caught in the middle of other speech as well. Grammars are kept, for calls ask the same questions.
 */
import type { Expected, Slot } from '../../script/expected.ts'
import { understandingOf, type Grammar, type Spotting, type Understanding, type Values } from './grammar.ts'
import { nodPhrases, phrasesOf, type Choice, type Meaning, type Phrase } from '../../script/phrases.ts'
import type { Pronounce } from './pronunciations.ts'
import { wordsOf } from './vocabulary.ts'
import { spokenValuesOf, type SpokenValues, type ValueSlot } from '../../script/spoken-values.ts'

export type Understandings = {
  /** `today` is the caller's, as 2027-05-03. Throws for a word that the dictionary does not have. */
  understandingFor(expected: Expected, today: string): Understanding<Meaning>
}

const maxGrammars = 200
const maxValues = 50
/** What is shorter is heard in any speech. */
const telltalePhones = 7

export function createUnderstandings(pronounce: Pronounce): Understandings {
  const grammars = createKept<Grammar>(maxGrammars)
  const spokenValues = createKept<SpokenValues>(maxValues)
  return {
    understandingFor({ slot, intents, dictate = false }, today) {
      const answers = slot.kind === 'choices' ? phrasesWith(slot.choices, 'choice') : []
      const values = isValue(slot) ? spokenValues(JSON.stringify(slot), () => spokenValuesOf(slot)) : null
      const nods = slot.kind === 'none' ? nodPhrases() : []
      const phrases = [...answers, ...phrasesWith(intents, 'intent'), ...phrasesOf([]), ...nods]
      return understandingOf(phrases, pronounce, {
        values: values && meaningsOf(values, slot, today),
        spotting: spottingOf(intents, pronounce),
        dictated: slot.kind === 'free' || dictate ? (text) => ({ kind: 'free', text }) : null,
        pauseInOther: slot.kind === 'free' ? 'long' : 'usual',
        kept: grammars,
      })
    },
  }
}

const isValue = (slot: Slot): slot is ValueSlot =>
  slot.kind === 'digits' || slot.kind === 'number' || slot.kind === 'date' || slot.kind === 'time'

const phrasesWith = (choices: readonly Choice[], kind: 'choice' | 'intent'): Phrase<Meaning>[] =>
  choices.flatMap((choice, index) => choice.phrases.map((text) => ({ text, meaning: { kind, index } })))

/** Between digits people stop; a number, a date or a time that is whole mostly is all. */
function meaningsOf({ name, graph, valueOf }: SpokenValues, slot: Slot, today: string): Values<Meaning> {
  return {
    name,
    graph,
    pauseBeforeMore: slot.kind === 'digits' ? 'long' : 'usual',
    areDigits: slot.kind === 'digits',
    meaningOf(words) {
      const value = valueOf(words, today)
      return value === null ? null : { kind: 'value', ...value }
    },
  }
}

/** Null where no intent is long enough to be told from other speech. */
function spottingOf(intents: readonly Choice[], pronounce: Pronounce): Spotting<Meaning> | null {
  const phrases = intents.flatMap((intent, index) =>
    intent.phrases.map((phrase) => ({ text: wordsOf(phrase).join(' '), index })),
  )
  const telling = phrases.filter(({ text }) => phonesOf(text, pronounce) >= telltalePhones)
  if (telling.length === 0) return null
  return {
    phrases: [...new Set(telling.map(({ text }) => text))],
    find(words, isKnown) {
      const spoken = ` ${words.map((word) => (isKnown(word) ? word : '…')).join(' ')} `
      const found = telling.find(({ text }) => spoken.includes(` ${text} `))
      if (found === undefined) return null
      const text = spoken.trim().replace(/…( …)*/g, '…')
      return { text, meaning: { kind: 'intent', index: found.index } }
    },
  }
}

const phonesOf = (text: string, pronounce: Pronounce): number =>
  text.split(' ').reduce((sum, word) => sum + (pronounce(word)[0]?.split(' ').length ?? 0), 0)

/** Finds by key what was made before; what was not asked for longest is forgotten. */
function createKept<Value>(max: number): (key: string, make: () => Value) => Value {
  const kept = new Map<string, Value>()
  return (key, make) => {
    const found = kept.get(key) ?? make()
    kept.delete(key)
    kept.set(key, found)
    for (const oldest of kept.keys()) if (kept.size > max) kept.delete(oldest)
    return found
  }
}
