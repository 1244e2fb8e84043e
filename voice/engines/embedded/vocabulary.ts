/** Owns which words the recogniser can recognise: the `Vocabulary` of call scripts, over the pronouncing dictionary. */
import type { Vocabulary } from '../../script/vocabulary.ts'
import { readPronunciations, type Pronounce } from './pronunciations.ts'

export const maxPhrases = 400

/** Words of a phrase as the dictionary has them, without accents. Words of other alphabets stay words: nobody must take them for others. */
export const wordsOf = (text: string): readonly string[] =>
  text
    .normalize('NFKD')
    .replace(/(?<=[a-z])\p{M}+/giu, '')
    .normalize('NFC')
    .toLowerCase()
    .replaceAll('’', "'")
    .split(/[^\p{L}\p{N}'.]+/u)
    .map((word) => word.replace(/\.+$/, ''))
    .filter((word) => word !== '')

export const vocabularyOf = (pronounce: Pronounce): Vocabulary => ({
  wordsOf,
  has: (word) => pronounce(word).length > 0,
  maxPhrases,
})

/** Reads the dictionary once in a process. */
export const readVocabulary = async (): Promise<Vocabulary> => vocabularyOf(await readPronunciations())
