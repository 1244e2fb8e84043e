/** Owns the routes of API keys. docs/contract/rest.md "Keys and accounts". */
import { createRoute, z } from '@hono/zod-openapi'
import { ApiKey, ApiKeyRequest, expiryOf, toApiKey, type ApiKeyFacts } from '../model/api-key.ts'
import { createApiKey, findApiKey, listApiKeys, revokeApiKey } from '../store/api-keys.ts'
import { idOf, notFound, ownAccountOnly } from './authenticate.ts'
import type { Api, ApiDeps } from './deps.ts'
import { answerOf, bodyOf, named, noContentOf, refusing, security } from './openapi.ts'
import { readJson } from './read-json.ts'

const path = '/v1/accounts/{accountId}/api-keys'
const shared = { security, tags: ['API keys'], middleware: [ownAccountOnly] }
const withBody = { ...shared, middleware: [ownAccountOnly, readJson] }
const params = z.object({ accountId: z.string() })
const namedKey = named('ApiKey', ApiKey)

const list = createRoute({
  ...shared,
  method: 'get',
  path,
  operationId: 'listApiKeys',
  summary: 'List the API keys of the account',
  request: { params },
  responses: answerOf(z.array(namedKey), 'All keys of the account, revoked ones too. None shows the key itself.'),
})

const create = createRoute({
  ...withBody,
  method: 'post',
  path,
  operationId: 'createApiKey',
  summary: 'Create an API key',
  ...refusing('CONFLICT'),
  request: {
    params,
    body: bodyOf(named('ApiKeyRequest', ApiKeyRequest), { name: 'Billing', expiresAt: '2030-01-01T00:00:00Z' }),
  },
  responses: answerOf(namedKey, 'The key in plaintext, shown this once.'),
})

const revoke = createRoute({
  ...shared,
  method: 'delete',
  path: `${path}/{keyId}`,
  operationId: 'revokeApiKey',
  summary: 'Revoke an API key',
  description: 'At once and for good. A key may revoke itself.',
  request: { params: z.object({ accountId: z.string(), keyId: z.string() }) },
  responses: noContentOf('It is revoked.'),
})

export function addKeyRoutes(app: Api, { sql, clock, newId }: ApiDeps): void {
  app.openapi(list, async (c) => c.json((await listApiKeys(sql, c.get('accountId'))).map(toApiKey), 200))
  app.openapi(create, async (c) => {
    const [accountId, now] = [c.get('accountId'), clock.now()]
    const { name, expiresAt } = c.req.valid('json')
    const { id, key } = await createApiKey(sql, { accountId, name, expiresAt: expiryOf(expiresAt, now), newId, now })
    return c.json({ ...toApiKey((await findApiKey(sql, accountId, id)) as ApiKeyFacts), key }, 200)
  })
  app.openapi(revoke, async (c) => {
    const keyId = idOf<'api_key'>(c.req.valid('param').keyId)
    if (!(await revokeApiKey(sql, c.get('accountId'), keyId, clock.now()))) throw notFound()
    return c.body(null, 204)
  })
}
