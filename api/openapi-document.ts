/**
 * Owns what every operation of the OpenAPI document has in common and no route has to say: errors, headers, tags, formats.
 * docs/contract/rest.md "Errors".
 */
import type { OpenAPIHono } from '@hono/zod-openapi'

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

const errorOf = (description: string, headers = {}) => ({
  description,
  headers: { ...everyAnswer, ...headers },
  content: { 'application/json': { schema: reference('schemas', 'Error') } },
})
const retryAfter = { 'Retry-After': reference('headers', 'RetryAfter') }

export const errorResponses = {
  BadRequest: errorOf('What was asked is not valid or cannot be had; `type` says why, `issues` where.'),
  Unauthorized: errorOf('The API key is missing or not valid.'),
  NotFound: errorOf('The account has no such resource.'),
  Conflict: errorOf('The resource is in no state for this, or the Idempotency-Key belongs to another request.'),
  PayloadTooLarge: errorOf('The body is over 1 MiB.'),
  UnsupportedMediaType: errorOf('The body is not application/json.'),
  RateLimited: errorOf('Too many requests.', retryAfter),
  Error: errorOf('Any other error; `type` is stable.'),
}

const methods = ['get', 'put', 'post', 'patch', 'delete'] as const

export function completeDocument(document: Document): Document {
  const tags = new Set<string>()
  for (const [path, item] of Object.entries(document.paths ?? {}))
    for (const method of methods) {
      const operation = item[method]
      if (!operation) continue
      for (const tag of operation.tags ?? []) tags.add(tag)
      operation.responses = { ...withHeaders(operation), ...errorsOf(path, operation), ...operation.responses }
    }
  for (const schema of Object.values(document.components?.schemas ?? {})) addFormats(schema)
  return { ...document, tags: [...tags].map((name) => ({ name })) }
}

/** The answers that the route itself names get the headers that all have. */
function withHeaders({ responses }: Operation): Operation['responses'] {
  for (const response of Object.values(responses ?? {}))
    if (!('$ref' in response)) response.headers = { ...everyAnswer, ...response.headers }
  return responses
}

/** The errors that follow from the shape of an operation. */
function errorsOf(path: string, { parameters = [], requestBody, security = [] }: Operation): Record<string, unknown> {
  const response = (name: keyof typeof errorResponses) => reference('responses', name)
  const takesInput = requestBody !== undefined || parameters.some((given) => 'in' in given && given.in !== 'path')
  return {
    ...(takesInput && { 400: response('BadRequest') }),
    ...(security.length > 0 && { 401: response('Unauthorized') }),
    ...(path.includes('{') && { 404: response('NotFound') }),
    ...(requestBody && { 413: response('PayloadTooLarge'), 415: response('UnsupportedMediaType') }),
    429: response('RateLimited'),
    default: response('Error'),
  }
}

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
