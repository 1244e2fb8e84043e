/**
 * Owns the `Vocabulary` port: what the compiler of call scripts must know of the recogniser that will listen to the callers. The embedded engine
 * implements it (engines/embedded/vocabulary.ts).
 */

export type Vocabulary = {
  /** The words of a phrase as the recogniser spells them. Empty for a phrase without words. */
  wordsOf(phrase: string): readonly string[]
  /** `word` as `wordsOf` gives it. False for a word that cannot be recognised. */
  has(word: string): boolean
  /** So many phrases can be listened for at once. */
  readonly maxPhrases: number
}
