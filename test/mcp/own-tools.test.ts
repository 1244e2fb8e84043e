/** The tools of a worker, for clients with the scope `user`. docs/contract/mcp.md "Tools of a worker". */
import { test } from 'tap'
import { insertCall, newId, start } from '../scenes/seeded-api.ts'
import { ofWorker, openMcp, type Sending } from '../scenes/mcp.ts'

void test('tools of a worker', async (t) => {
  const { send, grant, own, other, sql, ask, noted } = await openMcp(t)
  const user = { token: grant(ofWorker(own.worker.id, ['user'])) }
  const call = async (name: string, args: object = {}, options: Sending = user) =>
    (await send('tools/call', { name, arguments: args }, options)).json
  const listed = async (options: Sending) => (await send('tools/list', {}, options)).json.result.tools

  await t.test('they are those that REST lists for the worker', async (t) => {
    const { json } = await ask(`/v1/accounts/${own.id}/workers/${own.worker.id}/mcp/tools`)
    const expected = json.tools.map((tool: { provider: string; name: string }) => `${tool.provider}__${tool.name}`)
    t.ok(expected.length > 0)
    const tools = await listed(user)
    t.same(
      tools.map(({ name }: { name: string }) => name),
      expected,
    )
    for (const { name, inputSchema, outputSchema, annotations } of tools) {
      t.ok(inputSchema.properties.phone_call_id, name)
      t.equal(outputSchema.type, 'object')
      t.type(annotations.readOnlyHint, 'boolean')
    }
  })

  await t.test('with several scopes they stand behind the others', async (t) => {
    const both = await listed({ token: grant(ofWorker(own.worker.id, ['admin', 'user'])) })
    const names = both.map(({ name }: { name: string }) => name)
    t.equal(names[0], 'account_admin__list_workers')
    t.ok(names.indexOf('call__hang_up') > names.indexOf('account_admin__update_document'))
  })

  await t.test('what needs a call says so', async (t) => {
    const { result } = await call('call__hang_up')
    t.match(result, { isError: true, structuredContent: { code: 'CALL_NOT_ACTIVE' } })
    const who = await call('person__get_caller')
    t.match(who.result, { isError: true, structuredContent: { code: 'CALLER_IDENTITY_REQUIRED' } })
    const external = await call('external__book_table')
    t.match(external.result.structuredContent, {
      code: 'INVALID_TOOL',
      issues: [{ path: 'phone_call_id', message: 'is missing' }],
    })
  })

  await t.test('a call is one of the granted worker', async (t) => {
    const columns = { direction: 'outbound', transport: 'sip_trunk', toNumber: '+4930123456', startedAt: start }
    const mine = await insertCall(sql, own.id, own.worker.id, columns)
    const told = await call('person__get_caller', { phone_call_id: mine })
    t.match(told.result.structuredContent, { caller: { phoneNumber: '+4930123456' } })
    for (const phone_call_id of [other.callId, newId(), 'no id'])
      t.match((await call('person__get_caller', { phone_call_id })).result.structuredContent, {
        code: 'VALIDATION_FAILED',
        issues: [{ path: 'phone_call_id' }],
      })
    t.match((await call('call__hang_up', { phone_call_id: 7 })).result.structuredContent.issues, [
      { path: 'phone_call_id' },
    ])
  })

  await t.test('arguments are checked by the tool, and named as they were sent', async (t) => {
    const { structuredContent } = (await call('call__send_dtmf', { digits: 'hello', colour: 'red' })).result
    t.equal(structuredContent.code, 'INVALID_TOOL')
    t.ok(structuredContent.issues.some(({ path }: { path: string }) => path === 'digits'))
    const wrong = (await call('person__update_caller', { firstName: 7, favouriteColour: 'red' })).result
    t.same(
      wrong.structuredContent.issues.map(({ path }: { path: string }) => path),
      ['firstName', 'favouriteColour'],
    )
  })

  await t.test('a name that is no tool is an error of the protocol', async (t) => {
    for (const name of ['call__fly', 'rocket__launch', 'call__', '__x', 'search'])
      t.equal((await call(name)).error?.code, -32602, name)
  })

  await t.test('no other scope calls them, and no worker of another account has any', async (t) => {
    const { status, headers } = await send('tools/call', { name: 'call__hang_up' }, { token: grant() })
    t.equal(status, 403)
    t.match(headers.get('www-authenticate'), /scope="user"/)
    const stranger = { token: grant(ofWorker(other.worker.id, ['user'])) }
    t.same(await listed(stranger), [])
    t.equal((await call('call__hang_up', {}, stranger)).result.structuredContent.code, 'NOT_FOUND')
    t.same(await listed({ token: grant({ scopes: ['user'] }) }), [])
  })

  t.ok(
    noted.some(({ action, errorCode }) => action === 'call__hang_up' && errorCode === 'CALL_NOT_ACTIVE'),
    'they are noted',
  )
})
