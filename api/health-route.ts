/** Owns the answer to load balancers: alive while the database answers in time. */
import { createRoute, z } from '@hono/zod-openapi'
import { deadline } from '../model/deadline.ts'
import { Problem } from '../model/problem.ts'
import type { Api, RimDeps } from './deps.ts'
import { answerOf, named } from './openapi.ts'

const answerWithin = 2_000

const Health = z.object({
  status: z.literal('ok'),
  newCalls: z.enum(['limited', 'refused']).optional().openapi({
    description:
      'Of the process that answers: there while its running calls leave no room for all new ones (limited), or for any (refused).',
  }),
})

const get = createRoute({
  method: 'get',
  path: '/health',
  security: [],
  tags: ['Health'],
  operationId: 'getHealth',
  summary: 'Ask whether the service can work',
  responses: answerOf(named('Health', Health), 'It can; otherwise the answer is 503.'),
})

export function addHealthRoute(app: Api, { sql, callSql = sql, clock, newCalls = () => 'taken' }: RimDeps): void {
  app.openapi(get, async (c) => {
    await deadline(clock, answerWithin, callSql`select 1`, () => {
      throw new Problem('SERVICE_UNAVAILABLE', 'The database does not answer.')
    })
    const taken = newCalls()
    return c.json({ status: 'ok' as const, ...(taken !== 'taken' && { newCalls: taken }) }, 200)
  })
}
