/** The tools of the account, and the list of tools itself. docs/contract/mcp.md "Account", "Tools". */
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import type { UserId } from '../../model/ids.ts'
import { addMember } from '../../store/memberships.ts'
import { createUser } from '../../store/users.ts'
import { ofWorker, openMcp } from '../scenes/mcp.ts'
import { newId, start } from '../scenes/seeded-api.ts'

const secrets = {
  SMTP_URL: 'smtps://robot:hunter2@mail.example',
  EMAIL_FROM: 'robot@example.com',
  OPENAI_API_KEY: 'sk-secret-1234567890',
}

void test('tools of the account', async (t) => {
  const { done, send, grant, own, other, deps, ask, sql } = await openMcp(t, { settings: secrets })
  const theirs = { token: grant({ accountId: other.id }) }

  await t.test('get_account_info tells the account and its webhooks, and no secret', async (t) => {
    t.match(await done('get_account_info'), {
      account_id: own.id,
      slug: 'own',
      webhooks: { configured: false, subscriptions: [] },
    })
    const request = {
      eventType: 'call.ended',
      url: 'https://hooks.example/secret-path',
      headers: { 'x-auth': 'hunter2' },
    } as const
    const { signingSecret } = await deps.subscriptions.create(own.id, request)
    const told = await done('get_account_info')
    t.match(told.webhooks, {
      configured: true,
      subscriptions: [{ event_type: 'call.ended', enabled: true, worker_id: null }],
    })
    t.notMatch(JSON.stringify(told), /hunter2|secret-path|whsec_/)
    t.ok(signingSecret)
    t.equal((await done('get_account_info', {}, theirs)).webhooks.configured, false)
  })

  await t.test('it tells who belongs to the account, and who of them asks', async (t) => {
    const people = []
    for (const email of ['ada@example.com', 'bob@example.com'])
      people.push(await createUser(sql, { email, name: null, passwordHash: 'scrypt$hunter2', newId, now: start }))
    const [userId = '' as never] = people
    for (const [index, role] of (['owner', 'viewer'] as const).entries())
      await addMember(sql, { accountId: own.id, userId: people[index] as UserId, role, now: start + index })
    const told = await done('get_account_info', {}, { token: grant({ userId }) })
    t.match(told.memberships, [
      { email: 'ada@example.com', role: 'owner', is_you: true },
      { email: 'bob@example.com', role: 'viewer', is_you: false },
    ])
    t.notMatch(JSON.stringify(told), /hunter2/)
    t.same((await done('get_account_info', {}, theirs)).memberships, [])
  })

  await t.test('get_telephony_status tells of each worker what it can do on the phone', async (t) => {
    const bare = {
      worker_id: own.worker.id,
      has_outbound_number: false,
      has_inbound_number: false,
      telephony_provider: null,
    }
    t.match((await done('get_telephony_status')).workers, [bare])
    await done('update_worker_settings', { worker_id: own.worker.id, outbound_phone_number: '+4930123456' })
    const trunk = {
      name: 'Out',
      direction: 'outbound',
      gateways: [{ host: '203.0.113.5' }],
      password: 'hunter2',
      workerIds: [own.worker.id],
    }
    const { status } = await ask(`/v1/accounts/${own.id}/trunks`, { method: 'POST', json: trunk })
    t.equal(status, 200)
    t.match((await done('get_telephony_status')).workers, [
      {
        has_outbound_number: true,
        has_inbound_number: false,
        telephony_provider: 'sip_trunk',
        can_dial_out: true,
        can_take_calls: false,
      },
    ])
    t.equal((await done('get_telephony_status', {}, theirs)).workers[0].telephony_provider, null)
  })

  await t.test('list_integrations tells whether each type is configured, and never with what', async (t) => {
    const told = await done('list_integrations')
    const configured = Object.fromEntries(
      told.integrations.map((one: { type: string; configured: boolean }) => [one.type, one.configured]),
    )
    t.same(configured, {
      sip_trunk: true,
      webhooks: true,
      voice_provider_a: true,
      voice_provider_b: false,
      cascade: false,
      embedded: true,
      smtp: true,
      embeddings: false,
      extraction: false,
      recordings_bucket: false,
    })
    t.notMatch(JSON.stringify(told), /hunter2|sk-secret|mail\.example|203\.0/)
    t.equal((await done('list_integrations', {}, theirs)).integrations[0].configured, false)
  })

  await t.test('tools/list is the same every time, in the order of the contract, by scope', async (t) => {
    const listed = async (token: string) =>
      (await send('tools/list', {}, { token })).json.result.tools.map(({ name }: { name: string }) =>
        name.replace('account_admin__', ''),
      )
    const all = await listed(grant())
    t.same(await listed(grant()), all)
    const page = readFileSync(new URL('../../docs/contract/mcp.md', import.meta.url), 'utf8')
    const section = page.slice(page.indexOf('## Tools'), page.indexOf('## Workers'))
    const documented = [...section.matchAll(/`(\w+)`/g)].map(([, name]) => name).filter((name) => all.includes(name))
    t.same(all, documented)
    t.same(await listed(grant(ofWorker(own.worker.id))), [
      'list_workers',
      'get_worker_details',
      'update_worker_settings',
      'list_documents',
      'get_document',
      'create_document',
      'update_document',
    ])
    t.same(await listed(grant({ scopes: ['admin', 'account_admin'], workerId: own.worker.id })), all)
    t.same(await listed(grant({ scopes: [] })), [])
  })

  await t.test('every tool describes what it takes and answers, and how it behaves', async (t) => {
    const { tools } = (await send('tools/list')).json.result
    for (const { name, title, description, inputSchema, outputSchema, annotations } of tools) {
      t.ok(title && description, name)
      t.match(inputSchema, { type: 'object', additionalProperties: false }, name)
      t.equal(outputSchema.type, 'object', name)
      t.same(
        Object.keys(annotations).sort(),
        ['destructiveHint', 'idempotentHint', 'openWorldHint', 'readOnlyHint', 'title'],
        name,
      )
      for (const argument of Object.keys(inputSchema.properties)) t.match(argument, /^[a-z][a-z_]*$/, name)
    }
  })
})
