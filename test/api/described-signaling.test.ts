/**
 * docs/contract/signaling.md "Messages of the client" and "Messages of the service", and the same in the OpenAPI document: every message, with an
 * example that is one.
 */
import { readFileSync } from 'node:fs'
import { Validator } from '@cfworker/json-schema'
import { test } from 'tap'
import { ClientMessage, maxSignalingFrameBytes, ServerMessage } from '../../model/signaling.ts'
import { listedErrors } from '../scenes/listed-errors.ts'
import type { Schema } from '../scenes/api-operations.ts'
import { openWholeApi } from '../scenes/whole-api.ts'

const sides = { Client: ClientMessage, Server: ServerMessage } as const
const typesOf = (side: keyof typeof sides): string[] => sides[side].options.map(({ shape }) => shape.type.value)

type Union = { readonly anyOf?: readonly Schema[]; readonly oneOf?: readonly Schema[] }
type Component = Schema & { readonly description?: string; readonly example?: object; readonly examples?: object[] }
type Socket = {
  readonly clientMessage: Schema
  readonly serverMessage: Schema
  readonly closeCodes: object
  readonly maxFrameBytes: number
}

test('the socket is an operation of the document, with every message of both sides', async (t) => {
  const { document, operations } = await openWholeApi(t)
  const operation = operations.find(({ id }) => id === 'openSignaling')
  if (!operation) throw new Error('there is no such operation')
  const { described } = operation
  t.match(operation, { method: 'get', path: '/v1/signaling', open: true })
  t.same(operation.parameters.map(({ name }) => name).toSorted(), ['received', 'resume', 'token'])
  for (const [status, type] of Object.entries({
    401: 'UNAUTHORIZED',
    403: 'ORIGIN_NOT_ALLOWED',
    429: 'RATE_LIMITED',
    503: 'SERVICE_UNAVAILABLE',
  }))
    t.ok(listedErrors(operation)[status]?.includes(type), `${status} ${type}`)
  const socket = (described as unknown as { readonly 'x-websocket': Socket })['x-websocket']
  t.equal(socket.maxFrameBytes, maxSignalingFrameBytes)
  t.same(Object.keys(socket.closeCodes), ['1000', '1001', '1003', '1008', '1009', '1013'])
  t.same(described.responses['101']?.content?.['application/json']?.schema, socket.serverMessage)

  for (const side of ['Client', 'Server'] as const) {
    const union = document.components.schemas[`Signaling${side}Message`] as Union
    const names = (union.anyOf ?? union.oneOf ?? []).map(({ $ref }) => $ref?.split('/').at(-1) ?? '')
    t.equal(names.length, typesOf(side).length)
    const told = names.map((name) => document.components.schemas[name] as Component)
    t.same(
      told.map(({ properties }) => properties?.['type']?.enum?.[0]),
      typesOf(side),
    )
    for (const schema of told) {
      const example = schema.example ?? schema.examples?.[0]
      t.ok(schema.description, JSON.stringify(example))
      t.ok(sides[side].safeParse(example).success, `${JSON.stringify(example)} is a message`)
      const { errors } = new Validator(
        { ...schema, components: document.components } as object,
        '2020-12',
        false,
      ).validate(example)
      t.same(errors, [])
    }
  }
})

/** By the heading of its section: the fields of its table, and its example. */
function sectionsOf(page: string): Record<string, { readonly text: string; readonly example: unknown }> {
  const sections = page.split(/^### /m).slice(1)
  return Object.fromEntries(
    sections.map((section) => {
      const text = section.split(/^## /m)[0] ?? ''
      const json = /```json\n(.*?)\n```/s.exec(text)?.[1]
      return [text.slice(0, text.indexOf('\n')), { text, example: json === undefined ? null : JSON.parse(json) }]
    }),
  )
}

test('the page has a section for every message, with each of its fields and an example that is one', (t) => {
  const page = readFileSync(new URL('../../docs/contract/signaling.md', import.meta.url), 'utf8')
  const sections = sectionsOf(page)
  for (const side of ['Client', 'Server'] as const)
    for (const { shape } of sides[side].options) {
      const type = shape.type.value
      const isTwice = side === 'Server' && typesOf('Client').includes(type)
      const section = sections[isTwice ? `${type} of the service` : type]
      const parsed = sides[side].safeParse(section?.example)
      t.match([parsed.success, parsed.data?.type], [true, type], `the example of ${type}`)
      const fields = Object.keys(shape).filter((field) => field !== 'type')
      const isReserved = isTwice && type === 'candidate'
      for (const field of isReserved ? [] : fields) t.match(section?.text, `\`${field}\``, `${type} tells of ${field}`)
    }
  const all = [...typesOf('Client'), ...typesOf('Server')]
  t.equal(Object.keys(sections).length, all.length, 'and no other')
  for (const code of ['1000', '1001', '1003', '1008', '1009', '1013']) t.match(page, code)
  t.end()
})
