/** Owns JSON as a type, and which JSON can be stored. */
import { z } from 'zod'

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }
export const Json: z.ZodType<Json> = z.json()
export const JsonObject = z.record(z.string(), Json)
export type JsonObject = z.infer<typeof JsonObject>

const maxDepth = 64

export type Flaw = { readonly path: readonly string[]; readonly message: string }

/** Postgres stores neither NUL nor half a surrogate pair; nesting is bounded because everything behind this walks it recursively. */
export function flawOf(value: unknown, depth = 0): Flaw | null {
  if (typeof value === 'string') return textFlawOf(value)
  if (typeof value !== 'object' || value === null) return null
  if (depth === maxDepth) return { path: [], message: `must not be nested deeper than ${maxDepth} levels` }
  for (const [key, item] of Object.entries(value)) {
    const flaw = textFlawOf(key) ?? flawOf(item, depth + 1)
    if (flaw) return { ...flaw, path: [key, ...flaw.path] }
  }
  return null
}

function textFlawOf(text: string): Flaw | null {
  if (text.includes('\0')) return { path: [], message: 'must not contain the character U+0000' }
  return text.isWellFormed() ? null : { path: [], message: 'must not contain half of a surrogate pair' }
}
