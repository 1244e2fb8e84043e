/** Owns what a caller is told before anything else, by language, and how much of it was heard. docs/contract/rest.md "Disclosure". */
import { z } from 'zod'
import { Language } from './language.ts'

const Text = z.string().max(2000).regex(/\S/, 'must not be blank')

/** One text for every language, or one for each by its BCP 47 tag. */
export const DisclosureText = z.union([
  Text,
  z.record(Language, Text).refine((texts) => Object.keys(texts).length <= 100, 'must have 100 languages at most'),
])
export type DisclosureText = z.infer<typeof DisclosureText>

/** Of a call. `playedMs`: of its sound, what was sent to the caller. `completed`: all of it was. */
export const Disclosure = z.object({ playedMs: z.number().int().nonnegative(), completed: z.boolean() })
export type Disclosure = z.infer<typeof Disclosure>

/**
 * For a call in the first of these languages: its own text, one of the same language (RFC 4647 section 3.4, then any region), else the same for the next
 * language. Null: there is none that the caller would understand.
 */
export function disclosureFor(given: DisclosureText | undefined, languages: readonly string[]): string | null {
  if (given === undefined) return null
  if (typeof given === 'string') return given.trim()
  const texts = Object.entries(given).map(([tag, text]) => ({ tag: tag.toLowerCase(), text: text.trim() }))
  const found = languages.map((language) => textIn(texts, language.toLowerCase())).find((text) => text !== null)
  return found ?? null
}

function textIn(texts: readonly { readonly tag: string; readonly text: string }[], language: string): string | null {
  const parts = language.split('-')
  const ranges = parts.map((_, index) => parts.slice(0, parts.length - index).join('-'))
  const exact = ranges.map((range) => texts.find(({ tag }) => tag === range)).find((one) => one !== undefined)
  return (exact ?? texts.find(({ tag }) => tag.split('-')[0] === parts[0]))?.text ?? null
}
