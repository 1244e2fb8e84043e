/**
 * Owns the estimate of how many tokens a text is to a model. Each model cuts texts in its own way, and none of their tables is here: a token for four
 * characters of ASCII, for two of any other alphabet, and for each sign of scripts that write words without spaces. Of the tokenisers of OpenAI and
 * Google that errs on the side of too many. Pure.
 */

const wide =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\p{Extended_Pictographic}]/u

function weightOf(character: string): number {
  if (character <= '\u007f') return 1 / 4
  return wide.test(character) ? 1 : 1 / 2
}

export function tokensIn(text: string): number {
  let tokens = 0
  for (const character of text) tokens += weightOf(character)
  return Math.ceil(tokens)
}

/** The end of a text, of so many tokens at most. */
export function endWithin(text: string, maxTokens: number): string {
  let tokens = 0
  let from = text.length
  for (const character of Array.from(text).toReversed()) {
    tokens += weightOf(character)
    if (tokens > maxTokens) break
    from -= character.length
  }
  return text.slice(from)
}
