/** Owns how a scenario names words: those that must be in a text, whatever their case and marks, or an expression between slashes. */

export type Pattern = { fits(text: string): boolean }

/** Null: an expression that is none. */
export function patternOf(text: string): Pattern | null {
  const expression = /^\/(.+)\/$/s.exec(text)?.[1]
  if (expression === undefined) {
    const words = plain(text)
    return { fits: (said) => ` ${plain(said)} `.includes(` ${words} `) }
  }
  try {
    const compiled = new RegExp(expression, 'iu')
    return { fits: (said) => compiled.test(said) }
  } catch {
    return null
  }
}

/** Of a scenario that was read: there is one. */
export const fits = (pattern: string, text: string): boolean => patternOf(pattern)?.fits(text) ?? false

/** Lower-case words with single spaces between them. An apostrophe within a word is one, whichever way it is written; around it it is a mark. */
export const plain = (text: string): string =>
  text
    .normalize('NFC')
    .toLowerCase()
    .replaceAll('’', "'")
    .match(/[\p{L}\p{M}\p{N}]+(?:'[\p{L}\p{M}\p{N}]+)*/gu)
    ?.join(' ') ?? ''
