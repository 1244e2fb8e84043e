/**
 * Owns what of the arguments of an operation is written down: names of fields that the service knows, ids but those of persons, times, words of the
 * service, switches, and numbers of settings. Everything else is masked, whatever it is called: an entry outlives the person whom a
 * text named and the secret that a field held, and is never changed. A field that nobody here knows is counted and not named. Pure.
 * docs/security.md "API keys and the audit log".
 */
import { createHash } from 'node:crypto'
import type { AccountId } from '../model/ids.ts'
import { toId } from '../model/ids.ts'
import type { Json } from '../model/json.ts'
import { openFields, namedFields, numberFields, toldWords, wordFields } from './audit-fields.ts'

const mask = '[masked]'
const uncounted = '[more]'
const unknown = '[unknown fields]'
/** Of a list, and of the fields of one object. */
const mostItems = 10
const mostFields = 60
const mostDepth = 5
/** Characters of JSON. */
const mostCharacters = 4_096
/** A setting is smaller, a telephone number longer. */
const mostNumber = 1_000_000
const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)$/

/** The same person of the same account reads alike, and nobody finds the person by it who has not got the id. */
const maskedPerson = (accountId: AccountId | null, personId: string): string =>
  `sha256:${createHash('sha256')
    .update(`${accountId ?? ''} ${personId}`)
    .digest('hex')
    .slice(0, 32)}`

export function maskedArguments(given: Json, accountId: AccountId | null): Json {
  const masked = maskedValue(given, '', { accountId, depth: 0 })
  const size = JSON.stringify(masked).length
  if (size <= mostCharacters) return masked
  // So much of so many things: which fields there were, and no more.
  const names = masked !== null && typeof masked === 'object' && !Array.isArray(masked) ? Object.keys(masked) : []
  return Object.fromEntries(names.slice(0, mostFields).map((name) => [name, mask]))
}

type Place = { readonly accountId: AccountId | null; readonly depth: number }

function maskedValue(value: Json, field: string, place: Place): Json {
  if (value === null || typeof value === 'boolean') return value
  if (typeof value === 'number') return numberFields.has(field) && Math.abs(value) < mostNumber ? value : mask
  if (typeof value === 'string') return maskedText(value, field, place)
  if (openFields.has(field) || place.depth === mostDepth) return mask
  const inner = { ...place, depth: place.depth + 1 }
  return isList(value) ? maskedList(value, field, inner) : maskedFields(value, inner)
}

const isList = (value: Json): value is readonly Json[] => Array.isArray(value)

function maskedText(text: string, field: string, { accountId }: Place): string {
  const id = /^personIds?$/.test(field) || isIdField(field) ? toId(text) : null
  if (id !== null) return /^personIds?$/.test(field) ? maskedPerson(accountId, id) : id
  if (wordFields.has(field) && toldWords.has(text)) return text
  return /(?:At|^from|^to|Date|^expires)$/.test(field) && instant.test(text) ? text : mask
}

/** An id of another system may be anything. */
const isIdField = (field: string): boolean => /(?:^id|Id|Ids)$/.test(field) && !field.startsWith('external')

function maskedList(list: readonly Json[], field: string, place: Place): Json {
  const shown = list.slice(0, mostItems).map((item) => maskedValue(item, field, place))
  return list.length > mostItems ? [...shown, `${uncounted} ${list.length - mostItems}`] : shown
}

function maskedFields(fields: { readonly [name: string]: Json }, place: Place): Json {
  const named = Object.entries(fields).map(([name, value]) => ({ name, known: knownNameOf(name), value }))
  const shown = named.filter(({ known }) => known !== null).slice(0, mostFields)
  const told = shown.map(({ name, known, value }): [string, Json] => [name, maskedValue(value, known ?? '', place)])
  const left = named.length - shown.length
  return { ...Object.fromEntries(told), ...(left > 0 && { [unknown]: left }) }
}

/** REST writes `workerId`, MCP `worker_id`, the command line `worker-id`: one field. */
function knownNameOf(name: string): string | null {
  if (name.length > 64) return null
  const field = name.replace(/[-_]([a-z])/g, (_, letter: string) => letter.toUpperCase())
  return namedFields.has(field) ? field : null
}
