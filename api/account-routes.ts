/** Owns the routes of the account itself. rest-api-and-webhooks.md, Accounts. */
import { createRoute } from '@hono/zod-openapi'
import { Account, toAccount } from '../model/account.ts'
import { findAccount } from '../store/accounts.ts'
import { notFound } from './authenticate.ts'
import type { Api, ApiDeps } from './deps.ts'
import { answerOf, named, security } from './openapi.ts'

const getCurrent = createRoute({
  method: 'get',
  path: '/v1/accounts/current',
  security,
  responses: answerOf(named('Account', Account), 'The account the key belongs to.'),
})

export function addAccountRoutes(app: Api, { sql }: ApiDeps): void {
  app.openapi(getCurrent, async (c) => {
    const account = await findAccount(sql, c.get('accountId'))
    if (!account) throw notFound()
    return c.json(toAccount(account), 200)
  })
}
