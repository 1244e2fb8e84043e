/** Owns the OpenAPI document as generated tests read it: its operations, its schemas followed, samples of what a schema allows. */
import { fakeTls } from './tls.ts'
import { randomUUID } from 'node:crypto'

export type Schema = {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly enum?: readonly unknown[]
  readonly pattern?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly maxItems?: number
  readonly minItems?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly additionalProperties?: boolean | Schema
}

export type Parameter = {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required: boolean
  readonly schema: Schema
}

type Content = Readonly<Record<string, { readonly schema: Schema; readonly example?: unknown }>>
type Answer = { readonly $ref?: string; readonly content?: Content }

export type DescribedOperation = {
  readonly operationId: string
  readonly summary: string
  readonly tags: readonly string[]
  readonly security: readonly object[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<Record<string, Answer>>
}

export type Document = {
  readonly webhooks: Readonly<Record<string, { readonly post: DescribedOperation }>>
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

export type Operation = {
  readonly id: string
  readonly method: string
  readonly path: string
  /** Asks for no key. */
  readonly open: boolean
  readonly parameters: readonly Parameter[]
  readonly body: Schema | null
  readonly described: DescribedOperation
}

export const operationsOf = (document: Document): Operation[] =>
  Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, described]) => ({
      id: described.operationId,
      method,
      path,
      open: described.security.length === 0,
      parameters: described.parameters ?? [],
      body: described.requestBody?.content['application/json']?.schema ?? null,
      described,
    })),
  )

export function follow(document: Document, schema: Schema): Schema {
  const name = schema.$ref?.split('/').at(-1)
  if (name === undefined) return schema
  const found = document.components.schemas[name]
  if (!found) throw new Error(`the document has no schema ${name}`)
  return found
}

export const typesOf = ({ type }: Schema): readonly string[] => {
  if (type === undefined) return []
  return typeof type === 'string' ? [type] : type
}

/** Fields whose values follow from the ids of the account. */
const references: Readonly<Record<string, (ids: Ids) => unknown>> = {
  workerId: ({ workerId }) => workerId,
  phoneCallId: ({ phoneCallId }) => phoneCallId,
  callId: ({ phoneCallId }) => phoneCallId,
  workerIds: ({ workerId }) => [workerId],
}
type Ids = Readonly<Record<string, string>>

/** Values that a schema cannot tell. Whatever is not here is made from the schema. */
const known: Readonly<Record<string, unknown>> = {
  // The one kind of subscription that may be required.
  eventType: 'call.worker_request',
  allowedAddresses: ['203.0.113.0/24'],
  allowedOrigins: ['https://app.example.com'],
  arguments: { query: 'opening hours' },
  callScriptFileNames: ['script.txt'],
  // A number of the account: this one has none.
  from: undefined,
  expiresAt: '2026-03-01T12:00:00.000Z',
  scheduledAt: '2026-03-01T12:00:00+01:00',
  ranAt: '2026-01-01T12:00:00Z',
  headers: { 'X-Tenant': 'acme' },
  host: 'sip.example.com',
  language: 'en',
  locale: 'en-GB',
  // More than any test has running.
  maxConcurrentCalls: 1000,
  metadata: { ticket: 7 },
  // Calls come in by it.
  password: 'a password of eight',
  provider: 'knowledge_base',
  tlsCertificate: fakeTls.cert,
  tlsKey: fakeTls.key,
  toolName: 'search',
  // Nothing listens there, and no name has to be resolved.
  url: 'http://127.0.0.1:9/hook',
}
const texts = ['text', '+4930123456', 'https://hooks.example.com/', 'ada@example.com', 'x', '1']

/** A body with every field that the schema knows. Not the same twice: some values are taken once. */
export function sampleOf(document: Document, given: Schema, ids: Ids, name = ''): unknown {
  const schema = follow(document, given)
  const reference = references[name]
  if (reference) return reference(ids)
  if (name === 'externalId') return `crm-${randomUUID()}`
  if (name in known) return known[name]
  if (schema.enum) return schema.enum[0]
  const [type] = typesOf(schema)
  if (type === 'object') return sampleOfObject(document, schema, ids)
  if (type === 'array') return schema.items ? [sampleOf(document, schema.items, ids)] : []
  if (type === 'boolean') return true
  if (type === 'number' || type === 'integer') return Math.max(1, schema.minimum ?? 1)
  return type === 'string' ? textOf(schema, name) : null
}

const sampleOfObject = (document: Document, { properties = {} }: Schema, ids: Ids): Record<string, unknown> =>
  Object.fromEntries(Object.entries(properties).map(([key, schema]) => [key, sampleOf(document, schema, ids, key)]))

function textOf({ pattern, format, minLength = 0 }: Schema, name: string): string {
  const fits = (text: string): boolean =>
    (pattern === undefined || new RegExp(pattern, 'u').test(text)) &&
    (format !== 'uri' || URL.canParse(text)) &&
    (format !== 'email' || text.includes('@')) &&
    text.length >= minLength
  const text = [...texts, 'long enough for a secret'].find(fits)
  if (text === undefined) throw new Error(`no sample for ${name}: ${pattern ?? format}`)
  return text
}
