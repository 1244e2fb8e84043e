/** Owns the route that erases a person. docs/contract/rest.md "Erasure of a person". */
import { createRoute, z } from '@hono/zod-openapi'
import { Erasure, nothingErased } from '../model/erasure.ts'
import { idOf } from './authenticate.ts'
import type { Api, ApiDeps } from './deps.ts'
import { existing } from './existing.ts'
import { answerOf, named, needs, refusing, security } from './openapi.ts'

const example: Erasure = {
  id: '01980a5e-7c1b-7d2e-9f10-2b3c4d5e6f70',
  status: 'completed',
  startedAt: '2026-01-01T12:00:00.000Z',
  completedAt: '2026-01-01T12:00:02.000Z',
  erased: { ...nothingErased, persons: 1, calls: 3, transcriptTurns: 41, events: 230, deliveries: 47, recordings: 3 },
  remaining: [{ table: 'documents', rows: 1 }],
}

const erase = createRoute({
  security,
  tags: ['Persons'],
  method: 'post',
  path: '/v1/accounts/{accountId}/persons/{personId}/erase',
  operationId: 'erasePerson',
  ...needs('manage'),
  summary: 'Erase a person everywhere',
  description:
    'Removes the person, and empties what calls, deliveries, kept answers and refusals tell of them; recordings go. 409 while a call of theirs is not over. Asked again it answers what was done; in_progress: it goes on by itself.',
  request: { params: z.object({ accountId: z.string(), personId: z.string() }) },
  ...refusing('CONFLICT'),
  responses: answerOf(named('Erasure', Erasure), 'What was done.', example),
})

export function addErasureRoutes(app: Api, { erasePerson }: ApiDeps): void {
  app.openapi(erase, async (c) => {
    const personId = idOf<'person'>(c.req.valid('param').personId)
    return c.json(existing(await erasePerson(c.get('accountId'), personId)), 200)
  })
}
