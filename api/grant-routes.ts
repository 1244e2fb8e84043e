/** Owns the routes of what users of the account have allowed applications. docs/contract/rest.md "Grants". */
import { notFound } from '../model/problem.ts'
import { createRoute, z } from '@hono/zod-openapi'
import { flawOf } from '../model/json.ts'
import { OAuthGrant, toOAuthGrant } from '../model/oauth-grant.ts'
import { listGrantsOfAccount, removeGrantOfAccount } from '../store/oauth-grants.ts'
import type { Api, ApiDeps } from './deps.ts'
import { answerOf, named, needs, noContentOf, ownersOnly, security } from './openapi.ts'

const path = '/v1/accounts/{accountId}/grants'
const shared = { security, tags: ['Users'] }

const list = createRoute({
  ...shared,
  method: 'get',
  path,
  operationId: 'listGrants',
  ...needs('manage'),
  summary: 'List what users of the account have allowed applications',
  request: { params: z.object({ accountId: z.string() }) },
  responses: answerOf(z.array(named('OAuthGrant', OAuthGrant)), 'Newest first, 200 at most.'),
})

const revoke = createRoute({
  ...shared,
  method: 'delete',
  path: `${path}/{grantId}`,
  operationId: 'revokeGrant',
  ...needs('manage'),
  ...ownersOnly,
  summary: 'Take back what a user of the account has allowed an application',
  description: 'Its tokens are good no more, at once. Each user may take back their own at /grants as well.',
  request: { params: z.object({ accountId: z.string(), grantId: z.string() }) },
  responses: noContentOf('It is taken back.'),
})

export function addGrantRoutes(app: Api, { sql, clock }: ApiDeps): void {
  app.openapi(list, async (c) => {
    const grants = await listGrantsOfAccount(sql, c.get('accountId'), clock.now())
    return c.json(grants.map(toOAuthGrant), 200)
  })
  app.openapi(revoke, async (c) => {
    const { grantId } = c.req.valid('param')
    if (flawOf(grantId) !== null || !(await removeGrantOfAccount(sql, c.get('accountId'), grantId))) throw notFound()
    return c.body(null, 204)
  })
}
