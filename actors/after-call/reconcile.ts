/**
 * Owns the rule between what the engine noted while it talked and what an extractor found in the talk afterwards. Pure.
 * docs/design/extraction.md "Which value counts".
 */
import type { Evidence, ExtractorName, HeardTurn, Quote } from '../../model/extraction.ts'
import type { Json } from '../../model/json.ts'
import { unclear } from '../../model/transcript-marks.ts'
import type { NotedValue } from '../../store/noted-values.ts'
import { quoteFrom, wholeOf } from './quotes.ts'
import type { Found } from './verify-claims.ts'

export type Settled = { readonly value: Json; readonly evidence: Evidence }

/**
 * The note counts, unless a model found another value in words that came later. The embedded extractor only fills in what nobody noted: it does not
 * understand what is said around a word.
 */
export function reconcile(noted: Found | null, found: Found | null, by: ExtractorName): Settled | null {
  if (noted === null) return found && settledOf(found, by)
  const isChanged = found !== null && by === 'model' && found.value !== noted.value && found.turn > noted.turn
  return isChanged ? settledOf(found, by) : settledOf(noted, 'engine')
}

const settledOf = ({ value, turn, quote }: Found, source: Evidence['source']): Settled => ({
  value,
  evidence: { turn, quote, source },
})

/**
 * A noted value with the words that show it: those that an extractor has for the same value, those of the value itself, or all that the caller said
 * when it was noted. Null when the caller had said nothing: then nothing shows it.
 */
export function noteWithWords(
  noted: NotedValue,
  turns: readonly HeardTurn[],
  extracted: readonly (Found | undefined)[],
): Found | null {
  const same = extracted.find((found) => found?.value === noted.value)
  if (same !== undefined) return same
  const heard = heardBy(noted.after, turns)
  const said = heard.map(({ turn, text }) => ({ turn, quote: wordsOf(noted.value, text) }))
  const literal = said.find((one): one is Quote => one.quote !== null)
  if (literal !== undefined) return { ...literal, value: noted.value }
  return heard[0] === undefined ? null : { ...wholeOf(heard[0]), value: noted.value }
}

function wordsOf(value: Json, text: string): string | null {
  if (typeof value !== 'string' && typeof value !== 'number') return null
  return quoteFrom(text, String(value))
}

/**
 * What the caller said, beginning with what the note is about: the last words before it. Hosted engines note values before they tell the words, so
 * behind a turn of the agent the caller's next one comes first.
 */
function heardBy(after: number | null, turns: readonly HeardTurn[]): HeardTurn[] {
  const said = turns.filter(({ role, text }) => role === 'user' && text !== unclear)
  const place = turns.find(({ turn }) => turn === after)
  const next = turns.find(({ turn }) => turn > (after ?? -1))
  const isLate = place?.role !== 'user' && next?.role === 'user' && next.text !== unclear
  const last = isLate ? next.turn : (after ?? Infinity)
  return [...said.filter(({ turn }) => turn <= last).toReversed(), ...said.filter(({ turn }) => turn > last)]
}
