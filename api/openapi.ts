/** Owns the words that routes describe themselves with, and the OpenAPI document at /openapi.json. */
import { z } from '@hono/zod-openapi'
import { ErrorBody } from '../model/problem.ts'
import type { Api, ApiDeps } from './deps.ts'
import { completeDocument, errorResponses, standardHeaders } from './openapi-document.ts'

const keyScheme = 'apiKey'
export const security = [{ [keyScheme]: [] }]

/**
 * A schema under a name in the document. Through the prototype: the library extends only schemas made after it was loaded, and those of
 * model were made before.
 */
export function named<Schema extends z.ZodType>(name: string, schema: Schema): Schema {
  return z.ZodType.prototype.openapi.call(schema, name) as Schema
}

/** What a route answers when all is well. */
export const answerOf = <Schema extends z.ZodType>(schema: Schema, description: string, example?: unknown) => ({
  200: { description, content: { 'application/json': { schema, ...(example !== undefined && { example }) } } },
})

export const noContentOf = (description: string) => ({ 204: { description } })

/** Beside answerOf, where the state of a resource may forbid what is asked. The other errors follow from the shape of a route. */
export const conflict = { 409: { $ref: '#/components/responses/Conflict' } } as const

export const bodyOf = <Schema extends z.ZodType>(schema: Schema, example?: unknown) => ({
  required: true,
  content: { 'application/json': { schema, ...(example !== undefined && { example }) } },
})

export function addOpenApi(app: Api, { publicUrl }: ApiDeps): void {
  registerComponents(app)
  let text: string | null = null
  app.get('/openapi.json', (c) => {
    text ??= JSON.stringify(documentOf(app, publicUrl ?? '/'))
    return c.body(text, 200, { 'content-type': 'application/json', 'cache-control': 'no-cache' })
  })
}

function registerComponents({ openAPIRegistry: registry }: Api): void {
  registry.register('Error', named('Error', ErrorBody))
  for (const [name, response] of Object.entries(errorResponses)) registry.registerComponent('responses', name, response)
  for (const [name, header] of Object.entries(standardHeaders)) registry.registerComponent('headers', name, header)
  registry.registerComponent('securitySchemes', keyScheme, { type: 'apiKey', in: 'header', name: 'x-api-key' })
}

function documentOf(app: Api, url: string) {
  const document = app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: 'Voice-agent calls',
      version: '1',
      description: 'Places calls, creates web calls, reports on them.',
    },
    servers: [{ url }],
  })
  return completeDocument(document)
}
