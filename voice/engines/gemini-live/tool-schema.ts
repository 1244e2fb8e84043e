/**
 * Owns the schema of a tool for models that do not take JSON Schema: a part of OpenAPI 3.0, of which a field that is not known is refused. What cannot be
 * said in it is left out: the model is told less, and arguments are checked where the tool is run. Pure. https://ai.google.dev/api/caching#Schema
 */

type Fields = Readonly<Record<string, unknown>>

const kept = ['title', 'description', 'nullable', 'minimum', 'maximum', 'minItems', 'maxItems'] as const
const formats: readonly unknown[] = ['date-time', 'float', 'double', 'int32', 'int64']
/** A schema may be nested in itself, by a reference or by malice. */
const deepest = 8

/** Null: it has no arguments, which is said by no schema at all. */
export function openApiOf(schema: Fields): Fields | null {
  const parameters = schemaOf(schema, 0)
  return parameters['type'] === 'object' ? parameters : null
}

const objectOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {}
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

function schemaOf(given: Fields, depth: number): Fields {
  const types = Array.isArray(given['type']) ? listOf(given['type']) : [given['type']]
  const schema: Record<string, unknown> = Object.fromEntries(
    kept.flatMap((name) => (given[name] === undefined ? [] : [[name, given[name]]])),
  )
  if (types.includes('null')) schema['nullable'] = true
  if (formats.includes(given['format'])) schema['format'] = given['format']
  const values = listOf(given['enum'])
  if (values.length > 0 && values.every((value) => typeof value === 'string')) schema['enum'] = [...values]
  const properties = Object.entries(objectOf(given['properties']))
  const type = types.find((one) => one !== 'null')
  if (depth < deepest && properties.length > 0) {
    const names = properties.map(([name]) => name)
    const required = listOf(given['required']).filter((name) => typeof name === 'string' && names.includes(name))
    schema['properties'] = Object.fromEntries(
      properties.map(([name, property]) => [name, schemaOf(objectOf(property), depth + 1)]),
    )
    return { ...schema, type: 'object', ...(required.length > 0 && { required }) }
  }
  if (depth < deepest && type === 'array')
    return { ...schema, type, items: schemaOf(objectOf(given['items']), depth + 1) }
  // An object without properties is refused; what has no type at all is told as a text.
  const isPlain = type === 'number' || type === 'integer' || type === 'boolean'
  return { ...schema, type: isPlain ? type : 'string' }
}
