/** Owns bodies that are wrong in exactly one place: every field of a schema, and every way in which it says that a value is wrong. */
import { follow, sampleOf, typesOf, type Document, type Schema } from '../scenes/api-operations.ts'

export type WrongBody = {
  /** As an issue names it. */
  readonly path: string
  readonly what: string
  readonly body: unknown
}

type Ids = Readonly<Record<string, string>>
type Path = readonly (string | number)[]
type Place = { readonly path: Path; readonly schema: Schema; readonly value: unknown; readonly required: boolean }

/** Names that end like a reference and are none. */
const noReferences = new Set(['externalId', 'voiceId', 'callerId'])

const absent = Symbol('absent')

/** Bodies with null in one place where nothing has to be, and null says nothing of its own; beside each the same without it. */
export function nullBodiesOf(document: Document, schema: Schema, ids: Ids) {
  const sample = () => sampleOf(document, schema, ids)
  return placesOf(document, schema, sample()).flatMap(({ path, schema: place, required }) =>
    required || typeof path.at(-1) !== 'string' || typesOf(place).includes('null') || typesOf(place).length === 0
      ? []
      : [
          {
            path: path.join('.'),
            withNull: withValue(sample(), path, null),
            without: withValue(sample(), path, absent),
          },
        ],
  )
}

export function wrongBodiesOf(document: Document, schema: Schema, ids: Ids): WrongBody[] {
  const good = sampleOf(document, schema, ids)
  return placesOf(document, schema, good).flatMap((place) =>
    [...wrongValues(place), ...unknownKeys(place)].map(({ what, value, at = [] }) => ({
      path: [...place.path, ...at].join('.'),
      what,
      body: withValue(good, [...place.path, ...at], value),
    })),
  )
}

/** Where a body names something by its id. */
export const referencesOf = (document: Document, schema: Schema, ids: Ids): { path: Path; name: string }[] =>
  placesOf(document, schema, sampleOf(document, schema, ids)).flatMap(({ path }) => {
    const name = String(path.findLast((step) => typeof step === 'string') ?? '')
    const isElement = typeof path.at(-1) === 'number'
    return (isElement ? /Ids$/ : /Id$/).test(name) && !noReferences.has(name) ? [{ path, name }] : []
  })

/** The whole, and everything inside; of a list its first element. */
function placesOf(document: Document, given: Schema, value: unknown, path: Path = [], required = true): Place[] {
  const schema = follow(document, given)
  const place = { path, schema, value, required }
  if (Array.isArray(value))
    return [place, ...(schema.items ? placesOf(document, schema.items, value[0], [...path, 0], false) : [])]
  if (typeof value !== 'object' || value === null) return [place]
  const parts = Object.entries(schema.properties ?? {}).flatMap(([name, part]) =>
    name in value
      ? placesOf(document, part, (value as Ids)[name], [...path, name], schema.required?.includes(name) ?? false)
      : [],
  )
  return [place, ...parts]
}

type Wrong = { readonly what: string; readonly value: unknown; readonly at?: Path }

function* wrongValues({ path, schema, value, required }: Place): Generator<Wrong> {
  const types = typesOf(schema)
  // Any JSON is good there.
  if (types.length === 0 || types.length > 3) return
  const others = { string: 'text', number: 7.5, boolean: true, object: {}, array: [] }
  for (const [type, other] of Object.entries(others))
    if (!types.includes(type) && !(type === 'number' && types.includes('integer')))
      yield { what: `a value of the type ${type}`, value: other }
  if (types.includes('integer')) yield { what: 'a number that is not whole', value: 1.5 }
  // A field that may be left out may be null.
  const mustBeThere = required || typeof path.at(-1) !== 'string'
  if (!types.includes('null') && mustBeThere) yield { what: 'null', value: null }
  if (required && typeof path.at(-1) === 'string') yield { what: 'nothing', value: absent }
  yield* outsideBounds(schema, value)
}

function* outsideBounds(schema: Schema, value: unknown): Generator<Wrong> {
  const { enum: values, pattern, format, minLength, maxLength, minItems, maxItems, minimum, maximum } = schema
  if (values) yield { what: 'a value that is none of the list', value: 'no_such_value' }
  if (pattern !== undefined) yield { what: 'a text of another form', value: '\u00fc\n' }
  if (format !== undefined && format !== 'binary') yield { what: `no ${format}`, value: 'neither of them' }
  if (minLength !== undefined && minLength > 0) yield { what: 'a text that is too short', value: '' }
  if (maxLength !== undefined && !values) yield { what: 'a text that is too long', value: longer(value, maxLength) }
  if (minItems !== undefined && minItems > 0) yield { what: 'a list that is too short', value: [] }
  if (maxItems !== undefined && Array.isArray(value))
    yield { what: 'a list that is too long', value: Array(maxItems + 1).fill(value[0]) }
  if (minimum !== undefined) yield { what: 'a number that is too small', value: minimum - 1 }
  if (maximum !== undefined) yield { what: 'a number that is too big', value: maximum + 1 }
}

const longer = (value: unknown, length: number): string => String(value).padEnd(length + 1, 'x')

function* unknownKeys({ schema, value }: Place): Generator<Wrong> {
  if (schema.additionalProperties !== false || typeof value !== 'object' || value === null) return
  yield { what: 'a field that nobody knows', value: 1, at: ['noSuchField'] }
}

/** A copy of `whole` with another value in this place; `absent` takes it away. */
export function withValue(whole: unknown, [step, ...rest]: Path, value: unknown): unknown {
  if (step === undefined) return value
  const copy = (Array.isArray(whole) ? [...whole] : { ...(whole as object) }) as Record<string | number, unknown>
  const changed = withValue(copy[step], rest, value)
  if (changed === absent) delete copy[step]
  else copy[step] = changed
  return copy
}
