/** Owns the routes of what an account may. docs/contract/rest.md "Limits". */
import { createRoute, z } from '@hono/zod-openapi'
import { AccountLimits, AccountLimitsChange } from '../model/account-limits.ts'
import { changeAccountLimits, findAccountLimits } from '../store/account-limits.ts'
import type { Api, ApiDeps } from './deps.ts'
import { existing } from './existing.ts'
import { answerOf, bodyOf, named, needs, ownersOnly, security } from './openapi.ts'
import { readJson } from './read-json.ts'

const path = '/v1/accounts/{accountId}/limits'
const params = z.object({ accountId: z.string() })
const shared = { security, tags: ['Accounts'], path }
const namedLimits = named('AccountLimits', AccountLimits)

const get = createRoute({
  ...shared,
  method: 'get',
  operationId: 'getAccountLimits',
  ...needs('read'),
  summary: 'Get what the account may, and what of it is used',
  description: 'The operator of the deployment sets it, but for the confirmation of calls.',
  request: { params },
  responses: answerOf(namedLimits, 'As it is now.'),
})

const change = createRoute({
  ...shared,
  middleware: [readJson],
  method: 'patch',
  operationId: 'changeAccountLimits',
  ...needs('manage'),
  ...ownersOnly,
  summary: 'Change whether calls of MCP clients wait for a confirmation',
  request: {
    params,
    body: bodyOf(named('AccountLimitsChange', AccountLimitsChange), { requireConfirmationForOutboundCalls: true }),
  },
  responses: answerOf(namedLimits, 'As it is now.'),
})

export function addAccountLimitsRoutes(app: Api, { sql, clock }: ApiDeps): void {
  app.openapi(get, async (c) => c.json(existing(await findAccountLimits(sql, c.get('accountId'), clock.now())), 200))
  app.openapi(change, async (c) => {
    const changed = await changeAccountLimits(sql, c.get('accountId'), c.req.valid('json'), clock.now())
    return c.json(existing(changed), 200)
  })
}
