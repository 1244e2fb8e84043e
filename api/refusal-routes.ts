/** Owns the list of calls that were not let in or out, and why. docs/contract/rest.md "Call refusals". */
import { createRoute, z } from '@hono/zod-openapi'
import { CallRefusalPage, CallRefusalQuery } from '../model/telephony.ts'
import { listRefusals } from '../store/call-refusals.ts'
import type { Api, ApiDeps } from './deps.ts'
import { answerOf, named, needs, security } from './openapi.ts'
import { spanWithPlus } from './with-plus.ts'

const list = createRoute({
  method: 'get',
  path: '/v1/accounts/{accountId}/call-refusals',
  security,
  tags: ['Trunks'],
  operationId: 'listCallRefusals',
  ...needs('read'),
  summary: 'List the calls that were refused, newest first',
  description:
    'Each says in details which rule refused it and how that is mended. Alike ones of a minute are one, with their count; from (inclusive) and to (exclusive) are times of the last of them. The newest 1,000 of 30 days are kept.',
  request: {
    params: z.object({ accountId: z.string() }),
    query: CallRefusalQuery.extend(spanWithPlus(CallRefusalQuery.shape)),
  },
  responses: answerOf(named('CallRefusalPage', CallRefusalPage), 'A page of refused calls.'),
})

export function addRefusalRoutes(app: Api, { sql }: ApiDeps): void {
  app.openapi(list, async (c) => c.json(await listRefusals(sql, c.get('accountId'), c.req.valid('query')), 200))
}
