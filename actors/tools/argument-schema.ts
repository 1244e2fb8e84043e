/**
 * Owns checking arguments against the JSON Schema of an external tool. The schema is untrusted: it is interpreted, never compiled, and
 * before that reduced to keywords whose cost is bounded. What is reduced away may only let more through; the tool's receiver has the last word.
 *
 * Reduced away: `pattern` and `patternProperties`, because a hostile expression blocks the process for hours; formats but a few, whose
 * expressions in the validator are linear; `uniqueItems`, which compares every item with every other; references that are no plain pointers,
 * go in circles or multiply (each use of a `$ref` is a copy; copies are counted, and so are their characters).
 */
import { validate, type OutputUnit, type Schema } from '@cfworker/json-schema'
import {
  isMissing,
  isUnknown,
  mustBeOfType,
  mustBeOneOf,
  mustHaveAtLeast,
  mustHaveAtMost,
  mustHaveFormat,
} from '../../model/issue-words.ts'
import { isObject, keyOfToken, type Json, type JsonObject } from '../../model/json.ts'
import type { Issue } from '../../model/problem.ts'

const maxSchemas = 2_000
/** Characters of all that is copied: as many as a schema can have in the first place. */
const maxLength = 1_000_000
const maxDepth = 64
/** Characters of the schema times size of the arguments: what validation may cost. At the limit a few hundred ms. */
const maxCost = 3_000_000
/** Characters of a text that count as much as one value. */
const charsPerValue = 64
const maxIssues = 20
const maxMessage = 200

/** Issues have paths like `arguments.date`. */
export function argumentIssues(schema: unknown, given: JsonObject): Issue[] {
  const { schema: bounded } = reduceSchema(schema)
  if (JSON.stringify(bounded).length * sizeOf(given) > maxCost)
    return [{ path: 'arguments', message: 'are too many for the schema of the tool' }]
  try {
    const { errors } = validate(given, bounded, '2020-12', {}, false)
    return errors
      .filter(({ keyword }) => !wrappers.has(keyword))
      .map((found) => issueOf(found, bounded))
      .slice(0, maxIssues)
  } catch {
    // More errors than a call can carry as its arguments: nothing of it fits.
    return [{ path: 'arguments', message: 'must fit the schema of the tool' }]
  }
}

/** Their errors stand beside those that they only repeat. */
const wrappers = new Set([
  'properties',
  'items',
  'prefixItems',
  'allOf',
  'additionalProperties',
  'dependentSchemas',
  'if',
])

function issueOf({ instanceLocation, keywordLocation, keyword, error }: OutputUnit, schema: unknown): Issue {
  const keys = instanceLocation.split('/').slice(1).map(keyOf)
  const missing = keyword === 'required' ? /property "(.*)"\.$/s.exec(error)?.[1] : undefined
  const path = ['arguments', ...keys, ...(missing === undefined ? [] : [missing])].join('.').slice(0, maxMessage)
  if (missing !== undefined) return { path, message: isMissing }
  return { path, message: wordsOf(keyword, pointed(schema, keywordLocation)).slice(0, maxMessage) }
}

/** `rule`: what stands behind the keyword in the schema. */
function wordsOf(keyword: string, rule: unknown): string {
  if (keyword === 'false') return isUnknown
  return (rule !== undefined && wordsOfKeyword[keyword]?.(rule)) || 'must fit the schema of the tool'
}

const ofBound =
  (words: typeof mustHaveAtLeast, kind: string, isExclusive = false) =>
  (bound: unknown): string =>
    words(kind, Number(bound), { isExclusive })

const wordsOfKeyword: Readonly<Record<string, (rule: unknown) => string>> = {
  type: (types) => mustBeOfType([types].flat().map(String)),
  enum: (values) => mustBeOneOf([values].flat()),
  const: (value) => mustBeOneOf([value]),
  format: (format) => mustHaveFormat(String(format)),
  multipleOf: (divisor) => `must be a multiple of ${Number(divisor)}`,
  minLength: ofBound(mustHaveAtLeast, 'string'),
  maxLength: ofBound(mustHaveAtMost, 'string'),
  minItems: ofBound(mustHaveAtLeast, 'array'),
  maxItems: ofBound(mustHaveAtMost, 'array'),
  minProperties: ofBound(mustHaveAtLeast, 'object'),
  maxProperties: ofBound(mustHaveAtMost, 'object'),
  minimum: ofBound(mustHaveAtLeast, 'number'),
  maximum: ofBound(mustHaveAtMost, 'number'),
  exclusiveMinimum: ofBound(mustHaveAtLeast, 'number', true),
  exclusiveMaximum: ofBound(mustHaveAtMost, 'number', true),
}

/** RFC 6901, in the form of a URI fragment. */
const keyOf = (token: string): string => keyOfToken(decodeURIComponent(token))

function sizeOf(value: Json): number {
  if (typeof value === 'string') return 1 + value.length / charsPerValue
  if (typeof value !== 'object' || value === null) return 1
  return Object.entries(value).reduce((sum, [key, item]) => sum + key.length / charsPerValue + sizeOf(item as Json), 1)
}

/** `whole`: nothing that could refuse a value was left out. */
type Reduced = { readonly schema: Schema | boolean; readonly whole: boolean }
type Reduce = (schema: unknown) => Reduced
type Kind = (value: unknown, reduce: Reduce) => { readonly value: unknown; readonly whole: boolean } | null

const nothing: Reduced = { schema: true, whole: false }

function reduceSchema(root: unknown): Reduced {
  const lengthOf = createLengths()
  let left = maxSchemas
  let room = maxLength
  const reduceAt = (schema: unknown, depth: number): Reduced => {
    if (typeof schema === 'boolean') return { schema, whole: true }
    if (!isObject(schema) || depth > maxDepth || left <= 0) return nothing
    left -= 1
    room -= lengthOf(schema)
    if (room < 0) return nothing
    return reduceObject(schema, root, (inner) => reduceAt(inner, depth + 1))
  }
  return reduceAt(root, 0)
}

/** How long a schema is without the schemas inside of it, of which only the names count. Looked at once, however often it is copied. */
function createLengths(): (schema: Record<string, unknown>) => number {
  const known = new Map<object, number>()
  const measure = (schema: Record<string, unknown>): number =>
    Object.entries(schema).reduce((sum, [keyword, value]) => sum + keyword.length + lengthOfValue(keyword, value), 0)
  return (schema) => {
    const length = known.get(schema) ?? measure(schema)
    known.set(schema, length)
    return length
  }
}

function lengthOfValue(keyword: string, value: unknown): number {
  if (ofAnyLength.has(keyword)) return JSON.stringify(value).length
  if (typeof value !== 'object' || value === null) return 1
  return Object.keys(value).reduce((sum, key) => sum + 1 + (Array.isArray(value) ? 0 : key.length), 0)
}

function reduceObject(schema: Record<string, unknown>, root: unknown, reduce: Reduce): Reduced {
  const kept: [string, unknown][] = []
  let whole = !Object.keys(schema).some((keyword) => leftOut.has(keyword))
  for (const [keyword, kind] of kinds) {
    if (!Object.hasOwn(schema, keyword)) continue
    const reduced = kind(schema[keyword], reduce)
    whole &&= reduced?.whole ?? false
    if (reduced && (reduced.whole || !exact.has(keyword))) kept.push([keyword, reduced.value])
  }
  const target = typeof schema['$ref'] === 'string' ? reduce(pointed(root, schema['$ref'])) : null
  whole &&= target?.whole ?? true
  const reduced = Object.fromEntries(kept)
  if (target) reduced['allOf'] = [target.schema, ...((reduced['allOf'] as unknown[] | undefined) ?? [])]
  return { schema: withoutRests(reduced, schema, whole) as Schema, whole }
}

/** What a keyword that is left out would have claimed is no rest: then a rule for the rest cannot be kept either. */
function withoutRests(
  reduced: Record<string, unknown>,
  schema: Record<string, unknown>,
  whole: boolean,
): Record<string, unknown> {
  const { additionalProperties, unevaluatedProperties, unevaluatedItems, ...others } = reduced
  return {
    ...others,
    ...(additionalProperties !== undefined && !('patternProperties' in schema) && { additionalProperties }),
    ...(whole && unevaluatedProperties !== undefined && { unevaluatedProperties }),
    ...(whole && unevaluatedItems !== undefined && { unevaluatedItems }),
  }
}

/** `#/$defs/address`; undefined for anything else. RFC 6901. */
function pointed(root: unknown, reference: string): unknown {
  if (reference === '#') return root
  if (!reference.startsWith('#/') || !URL.canParse(`x:${reference}`)) return undefined
  let found: unknown = root
  for (const token of reference.slice(2).split('/')) {
    const key = plainKeyOf(token)
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, key)) return undefined
    found = (found as Record<string, unknown>)[key]
  }
  return found
}

function plainKeyOf(token: string): string {
  try {
    return keyOf(token)
  } catch {
    // Broken percent-encoding: the letters stand for themselves.
    return token
  }
}

const asIs =
  (fits: (value: unknown) => boolean): Kind =>
  (value) =>
    fits(value) ? { value, whole: true } : null
const isNumber = asIs((value) => typeof value === 'number')
const isStrings = (value: unknown): boolean => Array.isArray(value) && value.every((item) => typeof item === 'string')

const one: Kind = (value, reduce) => {
  const { schema, whole } = reduce(value)
  return { value: schema, whole }
}
const many: Kind = (value, reduce) => {
  if (!Array.isArray(value) || value.length === 0) return null
  const reduced = value.map(reduce)
  return { value: reduced.map(({ schema }) => schema), whole: reduced.every(({ whole }) => whole) }
}
const named: Kind = (value, reduce) => {
  if (!isObject(value)) return null
  const reduced = Object.entries(value).map(([key, schema]) => [key, reduce(schema)] as const)
  return {
    value: Object.fromEntries(reduced.map(([key, { schema }]) => [key, schema])),
    whole: reduced.every(([, { whole }]) => whole),
  }
}

const safeFormats = new Set(['date', 'time', 'date-time', 'email', 'uuid', 'ipv4'])

/** Keywords that are kept, and what their values must look like; the others say nothing about a value, but for `leftOut`. */
const kinds: ReadonlyMap<string, Kind> = new Map([
  ['type', asIs((value) => typeof value === 'string' || isStrings(value))],
  ['const', asIs(() => true)],
  ['enum', asIs(Array.isArray)],
  ['format', asIs((value) => typeof value === 'string' && safeFormats.has(value))],
  ['required', asIs(isStrings)],
  ['dependentRequired', asIs((value) => isObject(value) && Object.values(value).every(isStrings))],
  ['minimum', isNumber],
  ['maximum', isNumber],
  ['exclusiveMinimum', isNumber],
  ['exclusiveMaximum', isNumber],
  ['multipleOf', isNumber],
  ['minLength', isNumber],
  ['maxLength', isNumber],
  ['minItems', isNumber],
  ['maxItems', isNumber],
  ['minContains', isNumber],
  ['maxContains', isNumber],
  ['minProperties', isNumber],
  ['maxProperties', isNumber],
  ['properties', named],
  ['dependentSchemas', named],
  ['additionalProperties', one],
  ['unevaluatedProperties', one],
  ['propertyNames', one],
  ['items', (value, reduce) => (Array.isArray(value) ? many(value, reduce) : one(value, reduce))],
  ['prefixItems', many],
  ['additionalItems', one],
  ['unevaluatedItems', one],
  ['contains', one],
  ['allOf', many],
  ['anyOf', many],
  ['oneOf', many],
  ['not', one],
  ['if', one],
  ['then', one],
  ['else', one],
])

/** Those whose values are copied, or read, as they are. */
const ofAnyLength = new Set(['$ref', 'type', 'const', 'enum', 'required', 'dependentRequired'])

/** Where letting more through inside would let less through outside. */
const exact = new Set(['not', 'oneOf', 'if', 'contains'])
const leftOut = new Set(['pattern', 'patternProperties', 'uniqueItems', 'dependencies', '$dynamicRef', '$recursiveRef'])
