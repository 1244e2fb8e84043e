/** Owns the words by which a text is found: small letters without accents, each once. The same of what was said and of what is looked for. */
import { wordsIn } from './words.ts'

/** Longer ones are compared by their beginning. */
const mostLetters = 40
/** A talk of hours has fewer. */
const mostWords = 10_000

export function searchWordsOf(texts: Iterable<string>): string[] {
  const words = new Set<string>()
  for (const text of texts)
    for (const { word } of wordsIn(text.normalize('NFKD').replace(/\p{M}/gu, ''))) {
      if (words.size === mostWords) return [...words]
      words.add(
        Array.from(word.slice(0, 2 * mostLetters))
          .slice(0, mostLetters)
          .join(''),
      )
    }
  return [...words]
}
