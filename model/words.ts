/** Owns how words are found in a text, whatever stands between them and however they are written. */

/** `from` and `to` are places in the text, `to` exclusive. */
export type Word = { readonly word: string; readonly from: number; readonly to: number }
export type Span = Pick<Word, 'from' | 'to'>

const shape = /[\p{L}\p{N}]+(?:['’]\p{L}+)*/gu

/** In lower case, without punctuation. */
export const wordsIn = (text: string): Word[] =>
  [...text.matchAll(shape)].map(({ 0: word, index }) => ({
    word: word.toLowerCase().replaceAll('’', "'"),
    from: index,
    to: index + word.length,
  }))

/** The places of the words `wanted`, one behind the other. None for no words. */
export function placesOf(words: readonly Word[], wanted: readonly string[]): Span[] {
  const places: Span[] = []
  for (let at = 0; wanted.length > 0 && at + wanted.length <= words.length; at++) {
    if (!wanted.every((word, index) => words[at + index]?.word === word)) continue
    places.push({ from: words[at]!.from, to: words[at + wanted.length - 1]!.to })
  }
  return places
}

/** The same of one text in another. */
export const spansOf = (text: string, wanted: string): Span[] =>
  placesOf(
    wordsIn(text),
    wordsIn(wanted).map(({ word }) => word),
  )
