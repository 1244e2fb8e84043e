/** Owns JSON as a type, and which JSON can be stored. */
import { z } from 'zod'

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }
/** Not z.json(): its unions look at every value up to six times, which takes seconds for a hostile mebibyte. */
export const Json: z.ZodType<Json> = z.unknown().refine(isJson, 'must be JSON') as unknown as z.ZodType<Json>
export const JsonObject = z.record(z.string(), Json)
export type JsonObject = z.infer<typeof JsonObject>

export function isObject(value: Json): value is JsonObject
export function isObject(value: unknown): value is Record<string, unknown>
export function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** One step of a JSON pointer (RFC 6901 §3), and the key that it means. */
export const pointerToken = (key: string): string => key.replaceAll('~', '~0').replaceAll('/', '~1')
export const keyOfToken = (token: string): string => token.replaceAll('~1', '/').replaceAll('~0', '~')

const maxMetadata = 65_536
/** What an integrator gives a call to carry. It is repeated in every event of the call, for every subscriber. */
export const Metadata = JsonObject.refine(
  (metadata) => JSON.stringify(metadata).length <= maxMetadata,
  `must be at most ${maxMetadata} characters of JSON`,
)

const maxDepth = 64
/** What large and tiny numbers may take in all, written out. */
const maxDigits = 100_000

export type Flaw = { readonly path: readonly string[]; readonly message: string }

/**
 * Postgres stores neither NUL nor half a surrogate pair, and writes numbers out: `1e308` reads as 309 characters every time. Nesting is
 * bounded because everything behind this walks it recursively. A key that names the prototype of an object is lost in copies of it.
 */
export function flawOf(value: unknown): Flaw | null {
  return flawIn(value, 0, { digits: maxDigits })
}

/** What can be stored of a text that comes from elsewhere, `maxLength` characters of it. */
export const storableText = (text: string, maxLength: number): string =>
  text.replaceAll('\0', '').slice(0, maxLength).toWellFormed()

/** The same, of everything in it: what is wrong with a text is left out of it, and so is a key that none may be. Values without a flaw come back as they are. */
export function storableJson<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value), (_, item: unknown) => {
    if (typeof item === 'string') return storableText(item, item.length)
    if (typeof item !== 'object' || item === null || Array.isArray(item)) return item
    const named = Object.entries(item).filter(([key]) => key !== '__proto__')
    return Object.fromEntries(named.map(([key, inner]) => [storableText(key, key.length), inner]))
  }) as Value
}

function flawIn(value: unknown, depth: number, left: { digits: number }): Flaw | null {
  if (typeof value === 'string') return textFlawOf(value)
  if (typeof value === 'number') return numberFlawOf(value, left)
  if (typeof value !== 'object' || value === null) return null
  if (depth === maxDepth) return { path: [], message: `must not be nested deeper than ${maxDepth} levels` }
  // Not the entries of a list: each would get a text for its index.
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      const flaw = flawIn(value[index], depth + 1, left)
      if (flaw) return { ...flaw, path: [String(index), ...flaw.path] }
    }
    return null
  }
  for (const [key, item] of Object.entries(value)) {
    const flaw = keyFlawOf(key) ?? flawIn(item, depth + 1, left)
    if (flaw) return { ...flaw, path: [key, ...flaw.path] }
  }
  return null
}

const keyFlawOf = (key: string): Flaw | null =>
  key === '__proto__' ? { path: [], message: 'must have another name: no key is called so' } : textFlawOf(key)

function textFlawOf(text: string): Flaw | null {
  if (text.includes('\0')) return { path: [], message: 'must not contain the character U+0000' }
  return text.isWellFormed() ? null : { path: [], message: 'must not contain half of a surrogate pair' }
}

function numberFlawOf(value: number, left: { digits: number }): Flaw | null {
  if (!Number.isFinite(value)) return { path: [], message: 'must be a number of double precision' }
  const size = Math.abs(value)
  if (size === 0 || (size >= 1e-7 && size < 1e21)) return null
  left.digits -= Math.abs(Math.log10(size))
  return left.digits >= 0 ? null : { path: [], message: 'must not be one of so many very large or tiny numbers' }
}

function isJson(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object') return typeof value === 'string' || typeof value === 'boolean'
  if (value === null) return true
  return Array.isArray(value) ? value.every(isJson) : Object.values(value).every(isJson)
}
