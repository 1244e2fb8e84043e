/** Owns the routes of the account itself. docs/contract/rest.md "Keys and accounts". */
import { createRoute } from '@hono/zod-openapi'
import { Account, toAccount } from '../model/account.ts'
import { findAccount } from '../store/accounts.ts'
import type { Api, ApiDeps } from './deps.ts'
import { existing } from './existing.ts'
import { answerOf, named, needs, security } from './openapi.ts'

const accountExample: Account = {
  id: '01980a5e-7c1b-7d2e-9f10-2b3c4d5e6f70',
  name: 'Acme',
  slug: 'acme',
  createdAt: '2026-01-01T12:00:00.000Z',
  updatedAt: '2026-01-01T12:00:00.000Z',
}

const getCurrent = createRoute({
  method: 'get',
  path: '/v1/accounts/current',
  security,
  tags: ['Accounts'],
  operationId: 'getCurrentAccount',
  ...needs('read'),
  summary: 'Get the account of the key',
  responses: answerOf(named('Account', Account), 'The account the key belongs to.', accountExample),
})

export function addAccountRoutes(app: Api, { sql }: ApiDeps): void {
  app.openapi(getCurrent, async (c) => {
    return c.json(toAccount(existing(await findAccount(sql, c.get('accountId')))), 200)
  })
}
