/**
 * Owns arguments for tools, made from their input schemas, so that a tool that is new tomorrow is called as well: good ones, the places in them
 * that name something by its id, and a copy with another value in one place.
 */
import type { Schema } from './api-operations.ts'

export type ArgumentSchema = Omit<Schema, 'properties' | 'items'> & {
  readonly properties?: Readonly<Record<string, ArgumentSchema>>
  readonly items?: ArgumentSchema
  readonly anyOf?: readonly ArgumentSchema[]
  readonly oneOf?: readonly ArgumentSchema[]
  readonly allOf?: readonly ArgumentSchema[]
  readonly const?: unknown
  readonly $defs?: Readonly<Record<string, ArgumentSchema>>
}

export type Step = string | number
type Known = Readonly<Record<string, unknown>>

/** Values that a schema cannot tell, by the name of the argument. */
const usual: Known = {
  config: { ringTimeout: 20 },
  phone_number: '+4930123456',
  scheduled_at: '2026-03-01T12:00:00Z',
  from_date: '2026-01-01T00:00:00Z',
  to_date: '2026-12-31T00:00:00Z',
  inbound_phone_number: null,
  outbound_phone_number: null,
  language: 'en',
  email: 'ada@example.com',
  tag_key: 'faq',
  tag_keys: ['faq'],
  website_url: 'https://example.com/',
  facebook_url: 'https://example.com/ada',
  linked_in_url: 'https://example.com/ada',
  country: 'DE',
  limit: 5,
  offset: 0,
  token: 'no-such-token',
  confirmation_token: 'no-such-token',
  batch_confirmation_token: 'no-such-token',
}

/** Every field the schema knows, but those that `without` names. */
export function argumentsOf(
  schema: ArgumentSchema,
  known: Known,
  without: readonly string[] = [],
): Record<string, unknown> {
  return sampleOf(schema, schema, { ...usual, ...known }, without) as Record<string, unknown>
}

function sampleOf(
  root: ArgumentSchema,
  given: ArgumentSchema,
  known: Known,
  without: readonly string[],
  name = '',
): unknown {
  const schema = followed(root, given)
  if (name in known) return known[name]
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return schema.enum[0]
  const choice = (schema.anyOf ?? schema.oneOf)?.[0]
  if (choice) return sampleOf(root, choice, known, without, name)
  const type = typeof schema.type === 'string' ? schema.type : schema.type?.[0]
  if (type === 'object') {
    const fields = Object.entries(schema.properties ?? {}).filter(([key]) => !without.includes(key))
    return Object.fromEntries(fields.map(([key, field]) => [key, sampleOf(root, field, known, without, key)]))
  }
  if (type === 'array')
    return schema.items ? [sampleOf(root, schema.items, known, without, name.replace(/s$/, ''))] : []
  if (type === 'boolean') return true
  if (type === 'integer' || type === 'number') return Math.max(1, schema.minimum ?? 1)
  if (schema.format === 'date-time') return '2026-03-01T12:00:00Z'
  return type === 'string' ? 'some text' : null
}

function followed(root: ArgumentSchema, schema: ArgumentSchema): ArgumentSchema {
  const name = schema.$ref?.split('/').at(-1)
  return name === undefined ? schema : (root.$defs?.[name] ?? {})
}

/** Where something is named by its id: `worker_id`, `document_ids.0`, `calls.0.person_id`. An id of another system names nothing here. */
export function idPlacesOf(value: unknown, path: readonly Step[] = []): (readonly Step[])[] {
  if (Array.isArray(value)) return value.flatMap((element, index) => idPlacesOf(element, [...path, index]))
  if (typeof value === 'object' && value !== null)
    return Object.entries(value).flatMap(([key, inner]) => idPlacesOf(inner, [...path, key]))
  const name = path.findLast((step) => typeof step === 'string') ?? ''
  return /_ids?$/.test(name) && !name.startsWith('external_') ? [path] : []
}

/** Every place, the whole included. */
export function placesOf(value: unknown, path: readonly Step[] = []): (readonly Step[])[] {
  const inner = typeof value === 'object' && value !== null ? Object.entries(value) : []
  return [
    path,
    ...inner.flatMap(([key, element]) => placesOf(element, [...path, Array.isArray(value) ? Number(key) : key])),
  ]
}
