/** The OpenAPI document holds every table of the contract, name by name, in both directions: specified-fields.ts. */
import { test } from 'tap'
import { follow, typesOf, type Document, type Schema } from '../scenes/api-operations.ts'
import {
  additiveEndpoints,
  additiveQueries,
  additiveHeaders,
  specifiedEndpoints,
  specifiedEvents,
  specifiedFields,
  specifiedHeaders,
  specifiedQueries,
  type Table,
} from './specified-fields.ts'
import { openWholeApi } from '../scenes/whole-api.ts'

function partOf(document: Document, { schema, part = [] }: Table): Schema {
  let found = follow(document, { $ref: schema })
  for (const step of part) {
    const next = step === '[]' ? found.items : found.properties?.[step]
    if (!next) throw new Error(`${schema} has no ${part.join('.')}`)
    found = follow(document, next)
  }
  return found
}

/** As the tables of the contract say it. */
function kindOf(document: Document, given: Schema): string {
  const schema = follow(document, given)
  const types = typesOf(schema).map((type) => (type === 'integer' ? 'number' : type))
  if (types.length === 0 || types.length > 2) return 'any'
  if (types.includes('null')) return `${types.find((type) => type !== 'null')} or null`
  return types[0] === 'array' ? `${kindOf(document, schema.items ?? {})}[]` : (types[0] ?? 'any')
}

const sorted = (names: Iterable<string>): string[] => [...names].toSorted()

test('the field tables', async (t) => {
  const { document, operations } = await openWholeApi(t)

  await t.test('how well sound got through is described field by field, with its unit', (t) => {
    const described = (schema: Schema): string => (schema as { description?: string }).description ?? ''
    const quality = partOf(document, { schema: 'PhoneCall', part: ['quality'], fields: {} })
    t.match(described(quality), /Not there before/)
    const { mos, received, sent, ...others } = quality.properties as Record<string, Schema>
    t.match(described(mos as Schema), /1 \(bad\) to 4\.5/)
    for (const way of [received as Schema, sent as Schema]) {
      t.match(described(way), /other side/)
      const found = (way.properties ?? {}) as { loss: Schema; jitterMs: Schema }
      t.match(described(found.loss), /0 to 1/)
      t.match(described(found.jitterMs), /milliseconds/)
    }
    for (const [field, schema] of Object.entries(others)) {
      t.ok(described(schema), `${field} is described`)
      if (field.endsWith('Ms')) t.match(described(schema), /milliseconds/)
    }
    t.end()
  })

  for (const [name, table] of Object.entries(specifiedFields))
    await t.test(`${name} has the fields of its table and only the named additions`, (t) => {
      const { properties = {}, required = [] } = partOf(document, table)
      const { fields, additive = [], sent = false } = table
      t.same(sorted(Object.keys(properties)), sorted([...Object.keys(fields), ...additive]))
      for (const [field, { kind, required: isRequired, values }] of Object.entries(fields)) {
        const schema = follow(document, properties[field] ?? {})
        if (kind !== 'any') t.equal(kindOf(document, schema), kind, `${field} is ${kind}`)
        if (isRequired) t.ok(required.includes(field), `${field} is required`)
        else if (sent) t.notOk(required.includes(field), `${field} may be left out`)
        if (values) t.same(sorted(schema.enum as string[]), sorted(values), `${field} has its values`)
      }
      if (sent)
        t.same(
          required.filter((field) => additive.includes(field)),
          [],
          'no addition is asked for',
        )
      t.end()
    })

  const keyOf = ({ method, path }: { method: string; path: string }) => `${method} ${path}`

  await t.test('every endpoint is there, and besides only the named additions', (t) => {
    t.same(sorted(operations.map(keyOf)), sorted([...Object.keys(specifiedEndpoints), ...additiveEndpoints]))
    t.end()
  })

  await t.test('every endpoint answers what its row says', (t) => {
    const answerOf = (schema: Schema): unknown => {
      if (schema.$ref) return schema.$ref.split('/').at(-1)
      if (schema.items) return `${String(answerOf(schema.items))}[]`
      return Object.fromEntries(Object.entries(schema.properties ?? {}).map(([name, part]) => [name, answerOf(part)]))
    }
    for (const operation of operations.filter((given) => keyOf(given) in specifiedEndpoints)) {
      const expected = specifiedEndpoints[keyOf(operation)]
      const answer = operation.described.responses[expected === null ? '204' : '200']?.content?.['application/json']
      t.same(answer ? answerOf(answer.schema) : null, expected, keyOf(operation))
      if (typeof expected === 'object' && expected !== null)
        t.same(sorted(answer?.schema.required ?? []), sorted(Object.keys(expected)), 'all of it is required')
    }
    t.end()
  })

  await t.test('each event is described with its data and, when its answer counts, with the answer', (t) => {
    const nameOf = (schema: Schema | undefined) => schema?.$ref?.split('/').at(-1) ?? null
    const described = Object.entries(document.webhooks).map(([type, { post }]) => {
      const { properties = {}, required } = post.requestBody?.content['application/json']?.schema ?? {}
      t.same([properties['type']?.enum, required], [[type], ['type', 'data']])
      const headers = (post.parameters ?? []).filter((parameter) => parameter.in === 'header')
      t.same(sorted(headers.map(({ name }) => name)), sorted([...specifiedHeaders, ...additiveHeaders]), type)
      const answer = post.responses['200']?.content?.['application/json']?.schema
      return [type, [nameOf(properties['data']), nameOf(answer)]]
    })
    t.same(Object.fromEntries(described), specifiedEvents)
    t.end()
  })

  await t.test('queries are those of the contract, and none is required', (t) => {
    for (const operation of operations.filter((given) => keyOf(given) in specifiedEndpoints)) {
      const queries = operation.parameters.filter((parameter) => parameter.in === 'query')
      t.same(
        sorted(queries.map(({ name }) => name)),
        sorted([specifiedQueries, additiveQueries].flatMap((of) => of[keyOf(operation)] ?? [])),
        keyOf(operation),
      )
      t.same(
        queries.filter(({ required }) => required),
        [],
      )
    }
    t.end()
  })
})
