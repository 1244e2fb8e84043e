/**
 * Owns what every operation of the OpenAPI document has in common and no route has to say: errors, headers, tags, formats.
 * docs/contract/rest.md "Errors".
 */
import type { OpenAPIHono } from '@hono/zod-openapi'
import { problemStatus, type ProblemType } from '../model/problem.ts'
import { describeFields } from './fields/describe-fields.ts'
import { parameterWords } from './fields/shared-fields.ts'

type Document = ReturnType<OpenAPIHono['getOpenAPI31Document']>
type PathItem = NonNullable<Document['paths']>[string]
type Operation = NonNullable<PathItem['get']>

const reference = (kind: string, name: string) => ({ $ref: `#/components/${kind}/${name}` })

export const standardHeaders = {
  RequestId: {
    description: 'Of this very request: the one that was sent, or a new one.',
    schema: { type: 'string' },
  },
  RateLimitPolicy: {
    description: 'How many requests (q) a minute (w, in seconds) are answered.',
    schema: { type: 'string' },
    example: '"default";q=6000;w=60',
  },
  RateLimit: {
    description: 'How many requests (r) are left now, and the seconds (t) until there is one more.',
    schema: { type: 'string' },
    example: '"default";r=5999;t=1',
  },
  RetryAfter: { description: 'Seconds.', schema: { type: 'integer' } },
} as const

const everyAnswer = {
  'X-Request-Id': reference('headers', 'RequestId'),
  'RateLimit-Policy': reference('headers', 'RateLimitPolicy'),
  RateLimit: reference('headers', 'RateLimit'),
}

const retryAfter = { 'Retry-After': reference('headers', 'RetryAfter') }

const errorOf = (description: string, types: readonly ProblemType[], headers = {}) => ({
  description: types.length === 0 ? description : `${description} ${types.map((type) => `\`${type}\``).join(', ')}`,
  headers: { ...everyAnswer, ...headers },
  content: { 'application/json': { schema: types.length === 0 ? anyError : errorOfType(types) } },
})

const anyError = reference('schemas', 'Error')
const errorOfType = (types: readonly ProblemType[]) => {
  const type = { type: 'string' as const, enum: [...types], description: 'Stable code to branch on.' }
  return { allOf: [anyError, { type: 'object' as const, properties: { type } }] }
}

const words: Readonly<Record<number, string>> = {
  400: 'What was asked is not valid or cannot be had; `issues` says where.',
  401: 'The API key, the token or the link is missing or not valid.',
  403: 'The key, or the page, may not do that.',
  404: 'The account has no such resource.',
  409: 'The resource is in no state for this, or the account has something else by this name.',
  412: 'The recording is another one than If-Match names.',
  413: 'The body is over 1 MiB, or a file over 20 MiB.',
  415: 'The body is of another type than those that are named.',
  416: 'The recording has no such bytes.',
  426: 'The socket speaks another version of the protocol: `Sec-WebSocket-Version` names it.',
  429: 'Too many requests.',
  500: 'A fault of the service. Its log has the cause, by `requestId`.',
  503: 'The service cannot work at the moment.',
}

const methods = ['get', 'put', 'post', 'patch', 'delete'] as const

export function completeDocument(document: Document): Document {
  const tags = new Set<string>()
  for (const [path, item] of Object.entries(document.paths ?? {}))
    for (const method of methods) {
      const operation = item[method]
      if (!operation) continue
      for (const tag of operation.tags ?? []) tags.add(tag)
      operation.responses = { ...withHeaders(operation), ...errorsOf(refusalsOf(path, operation)) }
      describeOperation(operation)
    }
  for (const item of Object.values(document.webhooks ?? {}))
    if ('post' in item && item.post) describeOperation(item.post)
  for (const [name, schema] of Object.entries(document.components?.schemas ?? {})) {
    addFormats(schema)
    describeFields(schema as Described, [name])
  }
  return { ...document, tags: [...tags].map((name) => ({ name })) }
}

/** The answers that the route itself names get the headers that all have. */
function withHeaders({ responses }: Operation): Operation['responses'] {
  for (const response of Object.values(responses ?? {}))
    if (!('$ref' in response)) response.headers = { ...everyAnswer, ...response.headers }
  return responses
}

export type Refusal = ProblemType | readonly [type: ProblemType, status: number]

/** The scope that the key of a request must have: see `needs`. */
export const requiredScope = 'x-required-scope'
/** Stands at a route and not in the document. */
export const ownersMark = Symbol('owners only')
/** The same: it only reads, and is in the audit log all the same. */
export const auditedMark = Symbol('audited')

/** What a route says of itself that no shape tells: see `refusing`. The document has it as answers. */
const ownRefusals = 'x-refusals'

/** The types of errors that an operation may answer: its own, and those that follow from its shape. */
function refusalsOf(path: string, operation: Operation): Refusal[] {
  const { parameters = [], requestBody, security = [] } = operation
  const isIn = (place: string) => parameters.some((given) => 'in' in given && given.in === place)
  const own = (operation[ownRefusals] ?? []) as Refusal[]
  delete operation[ownRefusals]
  const shaped: readonly [boolean, ...ProblemType[]][] = [
    [requestBody !== undefined || isIn('query') || isIn('header'), 'VALIDATION_FAILED'],
    [requestBody !== undefined, 'INVALID_JSON', 'PAYLOAD_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'],
    [security.length > 0, 'UNAUTHORIZED'],
    [operation[requiredScope] !== undefined, 'INSUFFICIENT_SCOPE'],
    [path.includes('{'), 'NOT_FOUND'],
    [isIn('header'), 'IDEMPOTENCY_KEY_REUSED'],
    [true, 'RATE_LIMITED', 'INTERNAL', 'SERVICE_UNAVAILABLE'],
  ]
  return [...new Set([...shaped.flatMap(([applies, ...types]) => (applies ? types : [])), ...own])]
}

function errorsOf(refusals: readonly Refusal[]) {
  const byStatus = Map.groupBy(refusals, (refusal) =>
    typeof refusal === 'string' ? problemStatus[refusal] : refusal[1],
  )
  const errors = [...byStatus].map(([status, given]) => {
    const ofStatus = given.map((refusal) => (typeof refusal === 'string' ? refusal : refusal[0]))
    const headers = status === 429 || status === 503 ? retryAfter : {}
    return [status, errorOf(words[status] ?? '', ofStatus, headers)] as const
  })
  return { ...Object.fromEntries(errors), default: errorOf('Any other error; `type` is stable.', []) }
}

function describeOperation({ operationId = '', parameters = [], requestBody, responses }: Operation): void {
  for (const parameter of parameters) {
    if (!('in' in parameter)) continue
    const told = parameterWords[`${operationId}.${parameter.name}`] ?? parameterWords[parameter.name]
    if (told !== undefined) parameter.description ??= told
  }
  for (const part of [requestBody, ...Object.values(responses ?? {})])
    for (const { schema } of Object.values((part as { content?: Content } | undefined)?.content ?? {}))
      describeFields(schema, [])
}

type Described = Parameters<typeof describeFields>[0]
type Content = Readonly<Record<string, { readonly schema: Described }>>

const times = /^(at|ts)$|(At|Since)$/
const links = new Set(['url', 'deliveryUrl', 'signalingUrl'])

/** Formats are added by name: schemas of answers are not used for validation and carry none. */
function addFormats(schema: unknown): void {
  if (typeof schema !== 'object' || schema === null) return
  const { properties = {} } = schema as { properties?: Record<string, { type?: unknown; format?: string }> }
  for (const [name, property] of Object.entries(properties)) {
    if (![property.type].flat().includes('string')) continue
    if (times.test(name)) property.format = 'date-time'
    if (links.has(name)) property.format = 'uri'
  }
  for (const part of Object.values(schema)) addFormats(part)
}
