/** Owns how the count of a chat endpoint is read. OpenAI API reference, "The chat completion object": usage. Pure. */
import { countOf, unitsOf, type UsedUnits } from '../../../model/usage.ts'
import { fieldsOf, type Fields } from './fields.ts'

/** Null: it counts nothing. */
export function chatUsageIn(given: Fields | null): UsedUnits | null {
  if (given === null) return null
  const cached = countOf(fieldsOf(given['prompt_tokens_details'])?.['cached_tokens'])
  const textIn = Math.max(0, countOf(given['prompt_tokens']) - cached)
  const used = unitsOf({ textIn, textInCached: cached, textOut: countOf(given['completion_tokens']) })
  return used.length === 0 ? null : (Object.fromEntries(used) as UsedUnits)
}
