/** Owns the routes of how long an account keeps what its calls leave. docs/contract/rest.md "Retention". */
import { createRoute, z } from '@hono/zod-openapi'
import { Retention, RetentionChange } from '../model/retention.ts'
import { changeRetention, findRetention } from '../store/retention.ts'
import type { Api, ApiDeps } from './deps.ts'
import { existing } from './existing.ts'
import { answerOf, bodyOf, named, needs, security } from './openapi.ts'
import { readJson } from './read-json.ts'

const path = '/v1/accounts/{accountId}/retention'
const params = z.object({ accountId: z.string() })
const shared = { security, tags: ['Accounts'], path }
const example: Retention = {
  recordingDays: 30,
  transcriptDays: 90,
  report: [{ day: '2026-01-01', recordings: 12, transcripts: 7, calls: 0 }],
}
const namedRetention = named('Retention', Retention)

const get = createRoute({
  ...shared,
  method: 'get',
  operationId: 'getRetention',
  ...needs('read'),
  summary: 'Get how long calls are kept, and what was removed',
  request: { params },
  responses: answerOf(namedRetention, 'Days, and what was removed on which day.', example),
})

const change = createRoute({
  ...shared,
  middleware: [readJson],
  method: 'patch',
  operationId: 'changeRetention',
  ...needs('manage'),
  summary: 'Change how long calls are kept',
  description: 'What is not named stays; null: for ever. What is older then is removed within minutes, and for good.',
  request: {
    params,
    body: bodyOf(named('RetentionChange', RetentionChange), { recordingDays: 30, callDays: null }),
  },
  responses: answerOf(namedRetention, 'As it is now.', example),
})

export function addRetentionRoutes(app: Api, { sql, clock }: ApiDeps): void {
  app.openapi(get, async (c) => c.json(existing(await findRetention(sql, c.get('accountId'))), 200))
  app.openapi(change, async (c) => {
    const changed = await changeRetention(sql, c.get('accountId'), c.req.valid('json'), clock.now())
    return c.json(existing(changed), 200)
  })
}
