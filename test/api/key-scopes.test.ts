/**
 * docs/contract/rest.md "Keys and accounts": every operation of the OpenAPI document needs one scope of its key, whatever other scopes it has, and a
 * key manages no key above itself.
 */
import { OpenAPIHono } from '@hono/zod-openapi'
import { test } from 'tap'
import type { ApiEnv } from '../../api/deps.ts'
import { guardRoutes } from '../../api/guarded-routes.ts'
import { keyScopes, type KeyScope } from '../../model/api-key.ts'
import type { AccountId, ApiKeyId } from '../../model/ids.ts'
import { createAudit } from '../../store/audit.ts'
import { createApiKey } from '../../store/api-keys.ts'
import type { Operation } from '../scenes/api-operations.ts'
import { newId, start } from '../scenes/seeded-api.ts'
import { goodRequestOf, openWholeApi, pathOf } from '../scenes/whole-api.ts'

/** By hand, whatever the code says: what reads and what is a call's; all else configures. */
const reading =
  'getCurrentAccount getRetention listWorkers getWorker getWorkerConfiguration listOutboundCallScripts listWorkerTools getPhoneCall getPhoneCallTranscript ' +
  'getPhoneCallAudioUrl getPhoneCallAudioPeaks getPhoneCallDiagnostics getPhoneCallCapture checkPhoneCallReplay listPhoneCalls listWebhookSubscriptions getWebhookSubscription listWebhookDeliveries ' +
  'getWebhookDelivery listPersons getPerson listDocuments getDocument listDocumentVersions getDocumentVersion searchKnowledge listTrunks getTrunk getTrunkState listCallRefusals listUsers listInvitations ' +
  'getAccountLimits listSimulations getSimulation'
const calling =
  'createPhoneCall createWebCall cancelPhoneCall hangUpPhoneCall processPhoneCall pausePhoneCallRecording resumePhoneCallRecording capturePhoneCall callWorkerTool keepSimulation'
const scopeOf = (id: string): KeyScope => {
  if (reading.split(' ').includes(id)) return 'read'
  return calling.split(' ').includes(id) ? 'calls' : 'manage'
}
const sets: KeyScope[][] = [
  ['read'],
  ['calls'],
  ['manage'],
  ['read', 'calls'],
  ['read', 'manage'],
  ['calls', 'manage'],
  ['read', 'calls', 'manage'],
]
const isDestructive = ({ method, id }: Operation): boolean =>
  method === 'delete' || ['erasePerson', 'cancelPhoneCall'].includes(id)

test('key scopes', async (t) => {
  const { ask, document, operations, own, sql, deps } = await openWholeApi(t)
  const accountId = own.ids['accountId'] as AccountId
  const keyWith = (scopes?: readonly KeyScope[]) =>
    createApiKey(sql, { accountId, name: scopes?.join(' ') ?? 'all', scopes, newId, now: start })
  const keyed = operations.filter(({ open }) => !open)
  const keysPath = `/v1/accounts/${accountId}/api-keys`
  const create = (key: string, json: object) => ask(keysPath, { method: 'POST', key, json: { name: 'x', ...json } })
  const revoke = (key: string, id: string) => ask(`${keysPath}/${id}`, { method: 'DELETE', key })

  await t.test('every operation that asks for a key tells one scope, and which', (t) => {
    t.ok(keyed.length >= 55, `${keyed.length} operations`)
    t.same(
      keyed.map(({ id, described }) => [id, (described as never)['x-required-scope']]),
      keyed.map(({ id }) => [id, scopeOf(id)]),
    )
    t.same(
      [...reading.split(' '), ...calling.split(' ')].filter((id) => !keyed.some((operation) => operation.id === id)),
      [],
    )
    t.end()
  })

  await t.test('with every set of scopes every operation is done or 403, and nothing between', async (t) => {
    for (const scopes of sets) {
      const { key } = await keyWith(scopes)
      for (const operation of keyed) {
        // Who is made an owner can do everything: below, in a test of its own.
        if (['changeUser', 'createInvitation'].includes(operation.id) && !scopes.includes('read')) continue
        const needed = scopeOf(operation.id)
        const may = scopes.includes(needed)
        // What takes something away would be gone for the operations behind it: asked of nothing.
        const ids = may && isDestructive(operation) ? everythingElse(own.ids, accountId) : own.ids
        const request = goodRequestOf(document, operation, { ids: own.ids, key })
        const json = within(operation, scopes) ?? request.json
        const answer = await ask(pathOf(operation, ids), { ...request, json })
        const what = `${operation.id} with ${scopes.join(', ')}: ${answer.status}`
        if (may) {
          t.notMatch(answer.json?.type, /INSUFFICIENT_SCOPE/, what)
          t.ok(answer.status < 500, what)
          continue
        }
        t.match(answer.json, { statusCode: 403, type: 'INSUFFICIENT_SCOPE', localizedKey: 'errors.insufficientScope' })
        t.match(answer.json.details, new RegExp(`scope ${needed}; this key has ${scopes.join(', ')}`), what)
      }
    }
  })

  await t.test('what is refused for its scope has changed nothing', async (t) => {
    const { key } = await keyWith(['read'])
    const before = await ask(`/v1/accounts/${accountId}/workers/${own.ids['workerId']}`)
    const changed = await ask(`/v1/accounts/${accountId}/workers/${own.ids['workerId']}`, {
      method: 'PATCH',
      key,
      json: { name: 'taken over' },
    })
    t.equal(changed.status, 403)
    t.same((await ask(`/v1/accounts/${accountId}/workers/${own.ids['workerId']}`)).json, before.json)
  })

  await t.test('a key of before has all scopes', async (t) => {
    const { id } = await keyWith()
    await sql`alter table api_keys drop column scopes`
    const migration = await import('node:fs/promises').then((fs) =>
      fs.readFile(new URL('../../store/migrations/0032_key_scopes.sql', import.meta.url), 'utf8'),
    )
    await sql.unsafe(migration)
    const [row] = await sql<{ scopes: string[] }[]>`select scopes from api_keys where id = ${id}`
    t.same(row?.scopes, keyScopes)
  })

  await t.test('a created key has the scopes that were asked for, once each, else those of its maker', async (t) => {
    t.same((await create(own.key, {})).json.scopes, ['read', 'calls', 'manage'])
    t.same((await create(own.key, { scopes: ['calls', 'read', 'read'] })).json.scopes, ['read', 'calls'])
    const { key } = await keyWith(['calls', 'manage'])
    const made = await create(key, {})
    t.same(made.json.scopes, ['calls', 'manage'])
    t.equal((await ask(`/v1/accounts/${accountId}/workers`, { key: made.json.key })).status, 403)
    for (const scopes of [[], ['admin'], 'read', ['read', 'calls', 'manage', 'read']])
      t.match((await create(own.key, { scopes })).json, { statusCode: 400, issues: [{ path: /^scopes/ }] })
  })

  await t.test('no key makes, sees or revokes one above itself; each revokes itself', async (t) => {
    const { key, id } = await keyWith(['manage'])
    const above = await keyWith(['read', 'manage'])
    const reader = await keyWith(['read'])
    t.match((await create(key, { scopes: ['manage', 'read'] })).json, {
      type: 'INSUFFICIENT_SCOPE',
      details: /scope read/,
    })
    const shown = (await ask(keysPath, { key })).json as { id: ApiKeyId; scopes: string[] }[]
    t.ok(shown.some((given) => given.id === id))
    t.same([...new Set(shown.flatMap(({ scopes }) => scopes))], ['manage'])
    t.match((await revoke(key, above.id)).json, { statusCode: 403, type: 'INSUFFICIENT_SCOPE', details: /scope read/ })
    t.equal((await ask(`/v1/accounts/${accountId}/workers`, { key: above.key })).status, 200, 'it goes on')
    t.equal((await revoke(key, newId())).status, 404)
    t.equal((await revoke(reader.key, above.id)).status, 403)
    for (const own of [reader, { key, id }]) {
      t.equal((await revoke(own.key, own.id.toUpperCase())).status, 204)
      t.equal((await ask('/v1/accounts/current', { key: own.key })).status, 401)
    }
    const made = await create(above.key, { scopes: ['read'] })
    t.equal((await revoke(above.key, made.json.id)).status, 204)
  })

  await t.test('nobody becomes by a key what the key is not itself', async (t) => {
    const { key } = await keyWith(['read', 'manage'])
    const users = `/v1/accounts/${accountId}/users/${own.ids['userId']}`
    const email = 'thief@mail.example'
    for (const role of ['owner', 'operator']) {
      const invited = await ask(`/v1/accounts/${accountId}/invitations`, { method: 'POST', key, json: { email, role } })
      t.match(invited.json, { statusCode: 403, type: 'INSUFFICIENT_SCOPE', details: /scope calls/ })
      t.match((await ask(users, { method: 'PATCH', key, json: { role } })).json, { type: 'INSUFFICIENT_SCOPE' })
    }
    t.notMatch((await ask(`/v1/accounts/${accountId}/invitations`)).text, email)
  })

  await t.test('a route without a scope, or with one and no key, is not added', (t) => {
    const route = { method: 'get', path: '/v1/things', operationId: 'listThings', responses: {} } as const
    const security = [{ apiKey: [] }]
    const open = () => {
      const app = new OpenAPIHono<ApiEnv>()
      return { app, check: guardRoutes(app, deps, createAudit(deps)) }
    }
    const handler = (() => new Response()) as never
    t.throws(() => open().app.openapi({ ...route, security }, handler), /declares the scope/)
    t.throws(() => open().app.openapi({ ...route, 'x-required-scope': 'read' } as never, handler), /declares the scope/)
    const { app, check } = open()
    app.openapi({ ...route, security, 'x-required-scope': 'read' } as never, handler)
    t.doesNotThrow(check)
    app.get('/v1/accounts/:accountId/others', handler)
    t.throws(check, /others: a route that needs a key must declare its scope/)
    t.end()
  })
})

/** Bodies that give away nothing that the key has not. */
function within({ id }: Operation, scopes: readonly KeyScope[]): object | null {
  if (id === 'createApiKey') return { name: 'x', scopes }
  if (id === 'changeUser') return { role: 'viewer' }
  return id === 'createInvitation' ? { email: `${newId()}@mail.example`, role: 'viewer' } : null
}

/** Ids of the account that name nothing. */
const everythingElse = (ids: Readonly<Record<string, string>>, accountId: string): Record<string, string> => ({
  ...Object.fromEntries(Object.keys(ids).map((name) => [name, newId()])),
  accountId,
})
