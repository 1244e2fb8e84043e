/** Owns how foreign text stands in a prompt: as data that cannot pass for instructions, and never longer than its place. */
import type { Json } from '../../../model/json.ts'
import { valueAt, type Values } from '../../script/fill-in.ts'

const maxValue = 300
const placeholder = /\{\{\s*((?:customer|context|sip)\.[\w.-]{1,200})\s*\}\}/g
/** Everything that begins a new line somewhere, Unicode's own line ends among them. */
const lineEnd = /\r\n|[\n\v\f\r\u0085\u2028\u2029]/
/** Controls, marks that turn the direction of writing, and the invisible letters of U+E0000. Joiners stay: scripts of India and Persia need them. */
const notPrinted = /[\p{Cc}\u202A-\u202E\u2066-\u2069\u{E0000}-\u{E007F}]/gu

/** One line, without what cannot be seen. */
export const oneLineOf = (text: string): string =>
  text.split(lineEnd).join(' ').replace(notPrinted, '').replace(/\s+/g, ' ').trim()

/** Each line begins with a bar, so that no text can end its own fence. */
export const fenced = (text: string): string =>
  text
    .split(lineEnd)
    .map((line) => `| ${line.replace(/\t/g, '  ').replace(notPrinted, '')}`.trimEnd())
    .join('\n')

/**
 * At the end of a line where one is near, never within a character. `limit` includes the words that tell of the cut; `missing` characters are left out
 * already.
 */
export function cutTo(text: string, limit: number, missing = 0): string {
  if (missing === 0 && text.length <= limit) return text
  const room = Math.max(0, limit - noteOf(text.length + missing).length)
  const line = text.lastIndexOf('\n', room)
  const end = line > room - 500 && line > 0 ? line : room
  const kept = text.slice(0, end).replace(/[\uD800-\uDBFF]$/, '')
  return kept + noteOf(text.length - kept.length + missing)
}

const noteOf = (missing: number): string => `\n[cut here: ${missing} more characters do not fit]`

/**
 * `{{customer.…}}`, `{{context.…}}` and `{{sip.…}}` in angle brackets, so that a name which reads like an order is still a name. Other placeholders stay: they are
 * answers of the talk.
 */
export const filledIn = (text: string, values: Values): string =>
  text.replace(placeholder, (_, path: string) => `⟨${valueOf(valueAt(values, path))}⟩`)

function valueOf(value: Json): string {
  if (value === null || value === '') return 'not known'
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return oneLineOf(text).replace(/[⟨⟩]/g, '').slice(0, maxValue)
}
