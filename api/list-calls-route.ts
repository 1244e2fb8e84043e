/** Owns the list of calls. docs/contract/rest.md "Phone calls" and "Lists". */
import { createRoute, z } from '@hono/zod-openapi'
import { toPage } from '../model/paging.ts'
import { PhoneCallPage, PhoneCallQuery, toPhoneCall } from '../model/phone-call.ts'
import { listCalls } from '../store/calls.ts'
import type { Api, ApiDeps } from './deps.ts'
import { answerOf, named, needs, security } from './openapi.ts'
import { spanWithPlus } from './with-plus.ts'

const list = createRoute({
  method: 'get',
  path: '/v1/accounts/{accountId}/phone-calls',
  security,
  tags: ['Phone calls'],
  operationId: 'listPhoneCalls',
  ...needs('read'),
  summary: 'List calls, newest first',
  description:
    'q is words of what was said in calls that are over: a call has all of them, whole. status takes the four statuses and the outcomes other than completed; from (inclusive) and to (exclusive) are times of the creation. The next page has the nextCursor of this one; null: there is none.',
  request: {
    params: z.object({ accountId: z.string() }),
    query: PhoneCallQuery.extend(spanWithPlus(PhoneCallQuery.shape)),
  },
  responses: answerOf(named('PhoneCallPage', PhoneCallPage), 'A page of calls.'),
})

export function addListCallsRoute(app: Api, { sql }: ApiDeps): void {
  app.openapi(list, async (c) => {
    const query = c.req.valid('query')
    const page = toPage(
      await listCalls(sql, c.get('accountId'), query),
      query.limit,
      toPhoneCall,
      ({ createdAt }) => createdAt,
    )
    return c.json({ ...page, data: [...page.data] }, 200)
  })
}
