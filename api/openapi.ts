/** Owns the words of the OpenAPI document: named schemas, the answers every route has, the document itself (3.1, at /openapi.json). */
import { z } from '@hono/zod-openapi'
import { Json } from '../model/json.ts'
import { ErrorBody } from '../model/problem.ts'
import type { Api, ApiDeps } from './deps.ts'

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
export const answerOf = <Schema extends z.ZodType>(schema: Schema, description: string) => ({
  200: { description, content: { 'application/json': { schema } } },
})

export const bodyOf = <Schema extends z.ZodType>(schema: Schema) => ({
  required: true,
  content: { 'application/json': { schema } },
})

export function addOpenApi(app: Api, { publicUrl }: ApiDeps): void {
  describeJson()
  const error = app.openAPIRegistry.register('Error', named('Error', ErrorBody))
  app.openAPIRegistry.registerComponent('responses', 'Error', {
    description: 'Any error; `type` is stable.',
    content: { 'application/json': { schema: error as never } },
  })
  app.openAPIRegistry.registerComponent('securitySchemes', keyScheme, {
    type: 'apiKey',
    in: 'header',
    name: 'x-api-key',
  })
  let text: string | null = null
  app.get('/openapi.json', (c) => {
    text ??= JSON.stringify(documentOf(app, publicUrl ?? '/'))
    return c.body(text, 200, { 'content-type': 'application/json', 'cache-control': 'no-cache' })
  })
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
  const operations = Object.values(document.paths ?? {}).flatMap((path) => [path.get, path.post])
  for (const operation of operations)
    if (operation) operation.responses = { ...operation.responses, default: { $ref: '#/components/responses/Error' } }
  return document
}

/** The library would follow this recursive schema for ever. */
function describeJson(): void {
  z.ZodType.prototype.openapi.call(Json, {
    type: ['object', 'array', 'string', 'number', 'boolean', 'null'] as never,
  })
}
