/** Owns the route that replays the log of one call. docs/contract/rest.md "Replay". */
import { notFound } from '../model/problem.ts'
import { createRoute, z } from '@hono/zod-openapi'
import { ReplayCheck } from '../model/replay-check.ts'
import { idOf } from './authenticate.ts'
import type { Api, ApiDeps } from './deps.ts'
import { answerOf, named, needs, security } from './openapi.ts'

const check = createRoute({
  method: 'get',
  path: '/v1/accounts/{accountId}/phone-calls/{phoneCallId}/replay',
  security,
  tags: ['Phone calls'],
  operationId: 'checkPhoneCallReplay',
  ...needs('read'),
  summary: 'Check that the log of a call replays alike',
  description:
    'The log of the call, as far as it has come, goes through the state machine once more: the same facts at the same times have to do the same again. Nothing is done by it. Two checks at a time in one process, else 429; one takes 10 seconds at most.',
  request: { params: z.object({ accountId: z.string(), phoneCallId: z.string() }) },
  responses: answerOf(named('ReplayCheck', ReplayCheck), 'What came of it.'),
})

export function addReplayRoutes(app: Api, { checkReplay }: ApiDeps): void {
  app.openapi(check, async (c) => {
    const found = await checkReplay(c.get('accountId'), idOf<'call'>(c.req.valid('param').phoneCallId))
    if (!found) throw notFound()
    return c.json(found, 200)
  })
}
