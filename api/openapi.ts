/** Owns the words that routes describe themselves with, and the OpenAPI document at /openapi.json. */
import { z } from '@hono/zod-openapi'
import type { KeyScope } from '../model/api-key.ts'
import { nullAsAbsent } from '../model/null-as-absent.ts'
import { ErrorBody } from '../model/problem.ts'
import { createReadyResponse } from '../net/http/ready-response.ts'
import type { Api, ApiDeps } from './deps.ts'
import {
  auditedMark,
  completeDocument,
  ownersMark,
  requiredScope,
  standardHeaders,
  type Refusal,
} from './openapi-document.ts'

const keyScheme = 'apiKey'
export const security = [{ [keyScheme]: [] }]

/**
 * A schema under a name in the document. Through the prototype: the library extends only schemas made after it was loaded, and those of
 * model were made before.
 */
export function named<Schema extends z.ZodType>(name: string, schema: Schema, told: object = {}): Schema {
  return z.ZodType.prototype.openapi.call(schema, name, told) as Schema
}

/** What a route answers when all is well. */
export const answerOf = <Schema extends z.ZodType>(schema: Schema, description: string, example?: unknown) => ({
  200: { description, content: { 'application/json': { schema, ...(example !== undefined && { example }) } } },
})

export const noContentOf = (description: string) => ({ 204: { description } })

/** The types of errors that a route may answer besides those that follow from its shape. With a status where it is not the usual one. */
export const refusing = (...types: readonly Refusal[]) => ({ 'x-refusals': types })

/** The one scope that a key must have for it: every route with `security` says so. The document has it, and the 403 that follows from it. */
export const needs = (scope: KeyScope) => ({ [requiredScope]: scope })

/** Of people who are signed in, owners alone may. */
export const ownersOnly = { [ownersMark]: true } as const

/** What only reads, and is to be found in the audit log. */
export const audited = { [auditedMark]: true } as const

/** In it null reads as absent; see nullAsAbsent. */
export const bodyOf = <Schema extends z.ZodType>(schema: Schema, example?: unknown) => ({
  required: true,
  content: {
    'application/json': {
      schema: z.preprocess((given) => nullAsAbsent(schema, given), schema),
      ...(example !== undefined && { example }),
    },
  },
})

export function addOpenApi(app: Api, { publicUrl }: ApiDeps): void {
  registerComponents(app)
  let document: Uint8Array<ArrayBuffer> | null = null
  app.get('/openapi.json', () => {
    document ??= new TextEncoder().encode(JSON.stringify(documentOf(app, publicUrl ?? '/')))
    return createReadyResponse(document, 200, { 'content-type': 'application/json', 'cache-control': 'no-cache' })
  })
}

function registerComponents({ openAPIRegistry: registry }: Api): void {
  registry.register('Error', named('Error', ErrorBody))
  for (const [name, header] of Object.entries(standardHeaders)) registry.registerComponent('headers', name, header)
  registry.registerComponent('securitySchemes', keyScheme, { type: 'apiKey', in: 'header', name: 'x-api-key' })
}

/** Markdown. */
const introduction = [
  'Voice agents on the phone and in the browser: workers that listen and speak, calls that are placed, scheduled and reported on, events that are delivered.',
  'Every request carries `x-api-key`; a key reaches its own account only, and what belongs to another answers like what does not exist (404).',
  'Every operation needs one scope of its key, `x-required-scope`: `read`, `calls` or `manage`. None implies another; a key without it gets 403 `INSUFFICIENT_SCOPE`.',
  'Every error has one shape: `type` is stable, `issues` names each wrong field, `requestId` finds it in the log. `RateLimit` tells what is left; 429 and 503 say `Retry-After`.',
  'Creating a call takes an `Idempotency-Key`: the same key and body within 24 hours give the same answer. Times are ISO 8601.',
  'In a body null reads as absent where a field may be left out; where its type names null, null takes the value away.',
].join('\n\n')

function documentOf(app: Api, url: string) {
  const document = app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: 'Parley',
      version: '1',
      description: introduction,
    },
    servers: [{ url }],
  })
  return completeDocument(document)
}
