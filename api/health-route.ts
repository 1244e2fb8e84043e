/** Owns the answer to load balancers: alive while the database answers in time. */
import { createRoute, z } from '@hono/zod-openapi'
import { deadline } from '../model/deadline.ts'
import { Problem } from '../model/problem.ts'
import type { Api, ApiDeps } from './deps.ts'
import { answerOf, named } from './openapi.ts'

const answerWithin = 2_000

const get = createRoute({
  method: 'get',
  path: '/health',
  security: [],
  tags: ['Health'],
  operationId: 'getHealth',
  summary: 'Ask whether the service can work',
  responses: answerOf(named('Health', z.object({ status: z.literal('ok') })), 'It can; otherwise the answer is 503.'),
})

export function addHealthRoute(app: Api, { sql, clock }: ApiDeps): void {
  app.openapi(get, async (c) => {
    await deadline(clock, answerWithin, sql`select 1`, () => {
      throw new Problem('SERVICE_UNAVAILABLE', 'The database does not answer.')
    })
    return c.json({ status: 'ok' as const }, 200)
  })
}
