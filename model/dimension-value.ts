/** Owns which values fit a dimension, whoever found them. docs/contract/rest.md "Extracted values". */
import { storableText, type Json } from './json.ts'
import type { Dimension } from './worker.ts'

const maxText = 2_000

/** The value as the dimension has it; null for one that does not fit. */
export function dimensionValueOf({ type, options }: Dimension, given: Json): string | number | boolean | null {
  const text = typeof given === 'string' ? given.trim() : null
  switch (type) {
    case 'string':
      return stringOf(text ?? (typeof given === 'number' || typeof given === 'boolean' ? String(given) : ''))
    case 'number':
      if (typeof given === 'number') return Number.isFinite(given) ? given : null
      return text !== null && /^[+-]?\d{1,15}(\.\d{1,15})?$/.test(text) ? Number(text) : null
    case 'boolean':
      if (typeof given === 'boolean') return given
      return text !== null && /^(yes|no|true|false)$/i.test(text) ? /^(yes|true)$/i.test(text) : null
    case 'enum':
      return options?.find((option) => option.trim().toLowerCase() === text?.toLowerCase()) ?? null
    case 'date':
      return text === null ? null : dayOf(text)
  }
}

const stringOf = (text: string): string | null => (text === '' ? null : storableText(text, maxText))

/** ISO 8601: a day, alone or before a time, that a calendar has. */
function dayOf(text: string): string | null {
  const [, day = ''] = /^(\d{4}-\d\d-\d\d)(?:$|[T ]\d\d:\d\d)/.exec(text) ?? []
  const at = Date.parse(`${day}T00:00:00Z`)
  return Number.isNaN(at) || new Date(at).toISOString().slice(0, 10) !== day ? null : text
}
