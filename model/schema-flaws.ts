/**
 * Owns what is wrong with a JSON Schema that somebody configured: keywords whose values no validator understands, patterns that cannot be compiled or are
 * dangerous, references that lead nowhere. JSON Schema 2020-12. Pure.
 */
import { isObject, keyOfToken, type Json } from './json.ts'
import { patternFlaw, type PatternBudget } from './pattern-flaw.ts'

export type SchemaFlaw = { readonly path: readonly string[]; readonly message: string }

const maxDepth = 64
const maxFlaws = 20
const types = ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string']

type Rule = (value: Json) => string | null
const rule =
  (fits: (value: Json) => boolean, message: string): Rule =>
  (value) =>
    fits(value) ? null : message
const isType = (value: Json): boolean => typeof value === 'string' && types.includes(value)
const isStrings = (value: Json): boolean => Array.isArray(value) && value.every((item) => typeof item === 'string')
const number = rule((value) => typeof value === 'number', 'must be a number')
const count = rule((value) => Number.isSafeInteger(value) && Number(value) >= 0, 'must be an integer from 0')

const rules: Readonly<Record<string, Rule>> = {
  type: rule(
    (value) => isType(value) || (Array.isArray(value) && value.length > 0 && value.every(isType)),
    `must be one or several of ${types.join(', ')}`,
  ),
  enum: rule(Array.isArray, 'must be an array'),
  required: rule(isStrings, 'must be an array of strings'),
  dependentRequired: rule(
    (value) => isObject(value) && Object.values(value).every(isStrings),
    'must be an object of arrays of strings',
  ),
  format: rule((value) => typeof value === 'string', 'must be a string'),
  minimum: number,
  maximum: number,
  exclusiveMinimum: number,
  exclusiveMaximum: number,
  multipleOf: rule((value) => typeof value === 'number' && value > 0, 'must be a number above 0'),
  minLength: count,
  maxLength: count,
  minItems: count,
  maxItems: count,
  minContains: count,
  maxContains: count,
  minProperties: count,
  maxProperties: count,
  uniqueItems: rule((value) => typeof value === 'boolean', 'must be true or false'),
}

const ofSchema = ['additionalProperties', 'unevaluatedProperties', 'propertyNames', 'unevaluatedItems', 'contains']
const ofOne = new Set([...ofSchema, 'additionalItems', 'not', 'if', 'then', 'else'])
const ofList = new Set(['prefixItems', 'allOf', 'anyOf', 'oneOf'])
const ofNames = new Set(['properties', 'patternProperties', 'dependentSchemas', '$defs', 'definitions'])

/** Of several schemas that share a budget. */
export function schemaFlaws(root: Json, budget: PatternBudget): SchemaFlaw[] {
  const flaws: SchemaFlaw[] = []
  const tell = (path: readonly string[], message: string | null): void => {
    if (message !== null && flaws.length < maxFlaws) flaws.push({ path, message })
  }
  const lookAt = (schema: Json, path: readonly string[]): void => {
    if (typeof schema === 'boolean') return
    if (!isObject(schema)) return tell(path, 'must be a schema: an object, true or false')
    if (path.length > 2 * maxDepth) return tell(path, 'must not be nested that deeply')
    for (const [keyword, value] of Object.entries(schema)) lookAtKeyword(keyword, value, [...path, keyword])
  }
  const lookAtKeyword = (keyword: string, value: Json, path: readonly string[]): void => {
    if (keyword === 'pattern') return tell(path, flawOfPattern(value, budget))
    if (keyword === '$ref') return tell(path, flawOfReference(value, root))
    if (ofOne.has(keyword) || (keyword === 'items' && !Array.isArray(value))) return lookAt(value, path)
    if (ofList.has(keyword) || keyword === 'items') {
      if (!Array.isArray(value)) return tell(path, 'must be an array of schemas')
      return value.forEach((item: Json, at) => lookAt(item, [...path, String(at)]))
    }
    if (ofNames.has(keyword)) {
      if (!isObject(value)) return tell(path, 'must be an object of schemas')
      for (const [name, inner] of Object.entries(value)) {
        if (keyword === 'patternProperties') tell([...path, name], flawOfPattern(name, budget))
        lookAt(inner, [...path, name])
      }
      return
    }
    if (Object.hasOwn(rules, keyword)) tell(path, rules[keyword]?.(value) ?? null)
  }
  lookAt(root, [])
  return flaws
}

const flawOfPattern = (value: Json, budget: PatternBudget): string | null =>
  typeof value === 'string' ? patternFlaw(value, budget) : 'must be a string'

/** Nothing is ever fetched. RFC 6901. */
function flawOfReference(value: Json, root: Json): string | null {
  if (typeof value !== 'string') return 'must be a string'
  if (value === '#') return null
  if (!value.startsWith('#/')) return 'must point into the same schema, as #/$defs/address does'
  let found: Json | undefined = root
  for (const token of value.slice(2).split('/')) {
    const key = keyOfToken(decoded(token))
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, key)) return 'leads nowhere in the schema'
    found = (found as Readonly<Record<string, Json>>)[key]
  }
  return null
}

function decoded(token: string): string {
  try {
    return decodeURIComponent(token)
  } catch {
    // Broken percent-encoding: the letters stand for themselves.
    return token
  }
}
