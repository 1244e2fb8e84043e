/** Owns the routes of API keys. docs/contract/rest.md "Keys and accounts". */
import { notFound } from '../model/problem.ts'
import { createRoute, z } from '@hono/zod-openapi'
import { ApiKey, ApiKeyRequest, expiryOf, missingScopes, toApiKey, type ApiKeyFacts } from '../model/api-key.ts'
import { createApiKey, findApiKey, listApiKeys, revokeApiKey } from '../store/api-keys.ts'
import { idOf } from './authenticate.ts'
import type { Api, ApiDeps } from './deps.ts'
import { existing } from './existing.ts'
import { requireWithin } from './guarded-routes.ts'
import { answerOf, bodyOf, named, needs, noContentOf, ownersOnly, refusing, security } from './openapi.ts'
import { readJson } from './read-json.ts'

const path = '/v1/accounts/{accountId}/api-keys'
const shared = { security, tags: ['API keys'] }
const withBody = { ...shared, middleware: [readJson] }
const params = z.object({ accountId: z.string() })
const namedKey = named('ApiKey', ApiKey)

const list = createRoute({
  ...shared,
  method: 'get',
  path,
  operationId: 'listApiKeys',
  ...needs('manage'),
  summary: 'List the API keys of the account',
  request: { params },
  responses: answerOf(
    z.array(namedKey),
    'The keys of the account, revoked ones too, but those with a scope that the asking key has not. None shows the key itself.',
  ),
})

const create = createRoute({
  ...withBody,
  method: 'post',
  path,
  operationId: 'createApiKey',
  ...needs('manage'),
  ...ownersOnly,
  summary: 'Create an API key',
  description: 'With scopes that the asking key has itself; without scopes it gets all of those.',
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
  ...needs('manage'),
  ...ownersOnly,
  summary: 'Revoke an API key',
  description:
    'At once and for good. A key may revoke itself, whatever its scopes; another one only where it has all scopes of that one.',
  request: { params: z.object({ accountId: z.string(), keyId: z.string() }) },
  responses: noContentOf('It is revoked.'),
})

export function addKeyRoutes(app: Api, { sql, clock, newId }: ApiDeps): void {
  app.openapi(list, async (c) => {
    const keys = await listApiKeys(sql, c.get('accountId'))
    const within = keys.filter(({ scopes }) => missingScopes(c.get('scopes'), scopes).length === 0)
    return c.json(within.map(toApiKey), 200)
  })
  app.openapi(create, async (c) => {
    const [accountId, now] = [c.get('accountId'), clock.now()]
    const { name, scopes = c.get('scopes'), expiresAt } = c.req.valid('json')
    requireWithin(c.get('scopes'), scopes)
    const wanted = { accountId, name, scopes, expiresAt: expiryOf(expiresAt, now) }
    const { id, key } = await createApiKey(sql, { ...wanted, newId, now })
    return c.json({ ...toApiKey((await findApiKey(sql, accountId, id)) as ApiKeyFacts), key }, 200)
  })
  app.openapi(revoke, async (c) => {
    const keyId = idOf<'api_key'>(c.req.valid('param').keyId)
    const { scopes } = existing(await findApiKey(sql, c.get('accountId'), keyId))
    if (keyId !== c.get('keyId')) requireWithin(c.get('scopes'), scopes)
    if (!(await revokeApiKey(sql, c.get('accountId'), keyId, clock.now()))) throw notFound()
    return c.body(null, 204)
  })
}
