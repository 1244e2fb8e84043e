/** Owns whether words were really said: a quote counts as it stands in the transcript, and what stands nowhere in it is none. Pure. */
import type { HeardTurn, Quote } from '../../model/extraction.ts'
import { spansOf, wordsIn } from '../../model/words.ts'

/** What is kept of a quote, in characters: it is looked up in the turn. */
const maxQuote = 500

/** As the turn has it, whatever the case, spaces and punctuation of what was claimed; null when the turn does not have it. */
export function quoteFrom(text: string, claimed: string): string | null {
  const wanted = claimed.trim()
  if (wordsIn(wanted).length === 0) return null
  const [span] = spansOf(text, wanted)
  if (span !== undefined) return cut(text.slice(span.from, span.to))
  // Languages that are written without spaces.
  return text.includes(wanted) ? cut(wanted) : null
}

/** All of a turn. */
export const wholeOf = ({ turn, text }: HeardTurn): Quote => ({ turn, quote: cut(text.trim()) })

const cut = (quote: string): string => quote.slice(0, maxQuote).toWellFormed()

/** What the agent said establishes something only once the caller has said something to it. */
export const isAnswered = (turns: readonly HeardTurn[], turn: number): boolean =>
  turns.some((one) => one.turn >= turn && one.role === 'user')

/** The transcript's own words for a claim, of its turn or of the only other one that has them; null when nobody said so. */
export function provenQuote(turns: readonly HeardTurn[], { turn: claimed, quote }: Quote): Quote | null {
  const named = turns.find(({ turn }) => turn === claimed)
  const found = named === undefined ? null : quoteFrom(named.text, quote)
  if (found !== null) return { turn: claimed, quote: found }
  const others = turns.flatMap(({ turn, text }) => {
    const words = quoteFrom(text, quote)
    return words === null ? [] : [{ turn, quote: words }]
  })
  return others.length === 1 ? (others[0] ?? null) : null
}
