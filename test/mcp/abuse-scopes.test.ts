/**
 * docs/contract/mcp.md "Scopes": no token reaches further than its scopes and its worker, whatever tool it names. Every tool that the server lists, under
 * every set of scopes.
 */
import { test } from 'tap'
import { withValue } from '../api/wrong-bodies.ts'
import type { McpScope } from '../../model/mcp-access.ts'
import { createWorker } from '../../store/workers.ts'
import { openMcpTenants, shownOf } from '../scenes/mcp-tenants.ts'
import { newId, start } from '../scenes/seeded-api.ts'
import { argumentsOf, idPlacesOf } from '../scenes/tool-arguments.ts'

/** Of the scope `admin`: docs/contract/mcp.md "Scopes". */
const ofAdmin = [
  'list_workers',
  'get_worker_details',
  'update_worker_settings',
  'list_documents',
  'get_document',
  'create_document',
  'update_document',
].map((name) => `account_admin__${name}`)

test('no token reaches further than its scopes', async (t) => {
  const mcp = await openMcpTenants(t)
  const { tools, own, sql, send, grant, callAs, stored } = mcp
  const workerId = mcp.own.ids['worker_id'] as never
  const tokenFor = (scopes: readonly McpScope[]) => grant({ accountId: own.accountId, scopes, workerId })
  const before = await stored()

  for (const scopes of [[], ['user'], ['admin'], ['admin', 'user']] as const) {
    const token = tokenFor(scopes)
    const listed = (await send('tools/list', {}, { token })).json.result.tools as { name: string }[]
    const expected = tools
      .map(({ name }) => name)
      .filter((name) => scopes.includes('admin' as never) && ofAdmin.includes(name))
    t.same(
      listed.map(({ name }) => name).filter((name) => name.startsWith('account_admin__')),
      expected,
      `[${scopes.join()}] sees its tools, in the order of all`,
    )
    for (const { name } of tools.filter((tool) => !expected.includes(tool.name))) {
      const answer = await send('tools/call', { name, arguments: {} }, { token })
      t.equal(answer.status, 403, `${name} with [${scopes.join()}]`)
      const challenge = answer.headers.get('www-authenticate') ?? ''
      t.match(challenge, 'error="insufficient_scope"')
      t.match(challenge, /scope="[^"]*account_admin/, 'it says what to ask for')
    }
  }

  const made = { accountId: own.accountId, newId, now: start }
  const { id: elsewhere } = await createWorker(sql, { ...made, name: 'Elsewhere', language: 'en' })
  const bound = { ...own, token: tokenFor(['admin']) }
  for (const { name, inputSchema } of tools.filter((tool) => ofAdmin.includes(tool.name))) {
    const good = argumentsOf(inputSchema, own.ids)
    for (const place of idPlacesOf(good).filter((path) => path.includes('worker_id'))) {
      const absent = newId()
      const toOther = await callAs(bound, name, withValue(good, place, elsewhere))
      t.equal(
        shownOf(toOther, elsewhere),
        shownOf(await callAs(bound, name, withValue(good, place, absent)), absent),
        name,
      )
    }
  }
  t.match(JSON.stringify((await callAs(bound, 'account_admin__list_workers', {})).structuredContent), String(workerId))
  t.notMatch((await callAs(bound, 'account_admin__list_workers', {})).text, 'Elsewhere')
  await sql`delete from workers where id = ${elsewhere}`
  t.same(await stored(), before, 'nothing was changed')
})
