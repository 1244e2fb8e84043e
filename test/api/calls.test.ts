/** docs/contract/rest.md "Phone calls" and "Cancel and hang up": placing, listing and ending calls over REST. */
import { test } from 'tap'
import { createPerson } from '../../store/persons.ts'
import { createAsk, insertCall, newId, start } from '../scenes/seeded-api.ts'
import { openWholeApi } from '../scenes/whole-api.ts'

const id = (name: string, ids: Readonly<Record<string, string>>): string => ids[name] ?? ''

test('placing and ending a call', async (t) => {
  const { ask, own, sql, deps } = await openWholeApi(t)
  const account = `/v1/accounts/${id('accountId', own.ids)}`
  const calls = `${account}/phone-calls`
  const workerId = id('workerId', own.ids)
  const post = (path: string, json: unknown, headers: Record<string, string> = {}) =>
    ask(path, { method: 'POST', json, headers })
  const tomorrow = '2026-01-02T12:00:00.000Z'

  await t.test('workerId alone is enough: the call is queued, to be made at once', async (t) => {
    const answer = await post(calls, { workerId })
    t.equal(answer.status, 200)
    t.match(answer.json, { status: 'queued', direction: 'outbound', postProcessingStatus: 'none', workerId })
    t.same((await ask(`${calls}/${answer.json.id}`)).json, answer.json, 'and reads the same afterwards')
  })

  await t.test('every field of the request is on the call', async (t) => {
    const customer = { type: 'lead', firstName: 'Ada', externalId: 'crm-7', linkedInUrl: 'https://li.example/ada' }
    const json = { workerId, phoneNumber: '+4930123456', customer, context: 'Likes tea.', scheduledAt: tomorrow }
    const answer = await post(calls, { ...json, callScriptFileNames: ['script.txt'] })
    t.equal(answer.status, 200)
    t.match(answer.json, { status: 'scheduled', toNumber: '+4930123456', scheduledAt: tomorrow, customer })
    const [row] = await sql`select context, cardinality(script_ids) as scripts from calls where id = ${answer.json.id}`
    t.same(row, { context: 'Likes tea.', scripts: 1 })
  })

  await t.test('a dial time is any ISO 8601 time with a time zone; no script named means all of them', async (t) => {
    for (const scheduledAt of ['2026-01-02T13:00+01', '2026-01-02T13:00:00+0100', '2026-01-02T12:00Z', tomorrow]) {
      const answer = await post(calls, { workerId, scheduledAt, callScriptFileNames: [] })
      t.match(answer.json, { status: 'scheduled', scheduledAt: tomorrow }, scheduledAt)
    }
    const wrong = ['2026-01-02T12:00:00', '2026-01-02', 'tomorrow', '2026-02-30T12:00:00Z', '2026-01-02T25:00:00Z', '']
    for (const scheduledAt of wrong) {
      const { json } = await post(calls, { workerId, scheduledAt })
      t.match(json, { type: 'VALIDATION_FAILED', issues: [{ path: 'scheduledAt', message: /time/ }] }, scheduledAt)
      t.equal(json.issues.length, 1)
    }
  })

  await t.test('what the account lacks is a 400 with its type', async (t) => {
    await sql`update trunks set is_active = false where account_id = ${id('accountId', own.ids)}`
    t.match((await post(calls, { workerId })).json, { statusCode: 400, type: 'TELEPHONY_INTEGRATION_NOT_SETUP' })
    await sql`update trunks set is_active = true where account_id = ${id('accountId', own.ids)}`
    const missing = await post(calls, { workerId, callScriptFileNames: ['script.txt', 'none.txt'] })
    t.match(missing.json, {
      type: 'VALIDATION_FAILED',
      issues: [{ path: 'callScriptFileNames.1', message: /none\.txt/ }],
    })
  })

  await t.test('a scheduled call can be canceled once, and no body is asked for or looked at', async (t) => {
    const { json: call } = await post(calls, { workerId, scheduledAt: tomorrow })
    t.equal((await ask(`${calls}/${call.id}/hangup`, { method: 'POST' })).json.type, 'CONFLICT', 'it does not run')
    const headers = { 'content-type': 'text/plain' }
    const canceled = await ask(`${calls}/${call.id}/cancel`, { method: 'POST', body: '{ no JSON', headers })
    t.equal(canceled.status, 200)
    const ended = { status: 'completed', outcome: 'canceled', failedReason: 'cancelled_by_account_admin' }
    t.match(canceled.json, { id: call.id, ...ended })
    const again = await ask(`${calls}/${call.id}/cancel`, { method: 'POST' })
    t.match({ status: again.status, ...again.json }, { status: 409, type: 'CONFLICT' })
  })

  await t.test('the same Idempotency-Key and body give the same answer and one call', async (t) => {
    const json = { workerId, context: 'once' }
    const headers = { 'idempotency-key': 'order-7' }
    const [first, second, third] = await Promise.all([1, 2, 3].map(() => post(calls, json, headers)))
    t.equal(first?.status, 200)
    t.same([second?.json, third?.json], [first?.json, first?.json])
    const [row] = await sql`select count(*)::int as made from calls where context = 'once'`
    t.equal(row?.['made'], 1)
    t.not((await post(calls, json)).json.id, first?.json.id, 'without the key it is another call')
  })

  await t.test('the same key with another body, or for a web call, is 409', async (t) => {
    const headers = { 'idempotency-key': 'order-7' }
    for (const [path, json] of [
      [calls, { workerId, context: 'twice' }],
      [`${account}/web-calls`, { workerId, context: 'once' }],
    ] as const) {
      const answer = await post(path, json, headers)
      t.match({ status: answer.status, ...answer.json }, { status: 409, type: 'IDEMPOTENCY_KEY_REUSED' })
    }
    const web = await post(`${account}/web-calls`, { workerId }, { 'idempotency-key': 'visit-1' })
    const again = await post(`${account}/web-calls`, { workerId }, { 'idempotency-key': 'visit-1' })
    t.equal(again.status, 200)
    t.same(again.json, web.json, 'the same session and token')
  })

  await t.test('a key is of its account, and a refused request leaves it free', async (t) => {
    const headers = { 'idempotency-key': 'order-8' }
    const refused = { workerId, callScriptFileNames: ['none.txt'] }
    t.equal((await post(calls, refused, headers)).status, 400)
    t.equal((await post(calls, { workerId }, headers)).status, 200)
    const askOther = createAsk(deps, own.key)
    t.equal((await askOther(calls, { method: 'POST', json: { workerId }, headers })).status, 200, 'after a restart too')
  })
})

test('listing calls', async (t) => {
  const { ask, own, other, sql } = await openWholeApi(t)
  const accountId = id('accountId', own.ids) as Parameters<typeof insertCall>[1]
  const workerId = id('workerId', own.ids) as Parameters<typeof insertCall>[2]
  const path = `/v1/accounts/${accountId}/phone-calls`
  const ended = { progress: 'busy', outcome: 'busy' }
  await sql`delete from calls`
  const made: string[] = []
  for (const [index, columns] of [
    { progress: 'scheduled' },
    { progress: 'queued', direction: 'outbound', transport: 'sip_trunk' },
    { progress: 'ringing' },
    { progress: 'completed', outcome: 'completed' },
    ended,
  ].entries())
    made.push(await insertCall(sql, accountId, workerId, { ...columns, createdAt: start + index * 60_000 }))
  const idsOf = async (query: string) =>
    (await ask(`${path}?${query}`)).json.data.map((call: { id: string }) => call.id)
  const only = (...indexes: number[]) => indexes.map((index) => made[index])

  await t.test('is newest first, in pages that lead from one to the next', async (t) => {
    t.same(await idsOf(''), made.toReversed())
    const first = (await ask(`${path}?limit=2`)).json
    t.same(Object.keys(first), ['data', 'nextCursor'])
    const second = (await ask(`${path}?limit=2&cursor=${first.nextCursor}`)).json
    const third = (await ask(`${path}?limit=2&cursor=${second.nextCursor}`)).json
    const seen = [...first.data, ...second.data, ...third.data].map((call: { id: string }) => call.id)
    t.same(seen, made.toReversed())
    t.equal(third.nextCursor, null)
    t.same(await idsOf(`limit=2&cursor=${first.data[1].id}`), only(2, 1), 'a cursor of before')
  })

  await t.test('goes on where a page ended when the last call of that page has been deleted', async (t) => {
    const removed = await insertCall(sql, accountId, workerId, { ...ended, createdAt: start + 150_000 })
    const page = (await ask(`${path}?limit=3`)).json
    t.same([page.data[2].id, page.data.length], [removed, 3])
    await sql`delete from calls where id = ${removed}`
    t.same(await idsOf(`limit=3&cursor=${page.nextCursor}`), only(2, 1, 0))
    t.same(await idsOf(`status=queued&cursor=${page.nextCursor}`), only(1))
    const foreign = id('phoneCallId', other.ids)
    t.same(await idsOf(`cursor=${foreign}_${start + 90_000}`), only(1, 0), 'a place says nothing of another account')
    for (const cursor of [
      `${foreign}_`,
      `${foreign}_x`,
      `${foreign}_-1`,
      `${foreign}_1e3`,
      `${foreign}_${'9'.repeat(16)}`,
    ])
      t.equal((await ask(`${path}?cursor=${cursor}`)).status, 400, cursor)
  })

  await t.test('shows the same of a call as the call itself', async (t) => {
    for (const call of (await ask(path)).json.data) t.same((await ask(`${path}/${call.id}`)).json, call)
  })

  await t.test('filters by status or outcome, direction, worker and time', async (t) => {
    t.same(await idsOf('status=queued'), only(1))
    t.same(await idsOf('status=in_progress'), only(2))
    t.same(await idsOf('status=completed'), only(4, 3))
    t.same(await idsOf('status=busy'), only(4))
    t.same(await idsOf('status=failed'), [])
    t.same(await idsOf('direction=outbound'), only(1))
    t.equal((await idsOf(`workerId=${workerId}`)).length, 5)
    t.same(await idsOf(`workerId=${id('workerId', other.ids)}`), [])
    t.same(await idsOf('workerId=none'), [])
    t.same(await idsOf('from=2026-01-01T12:03:00Z'), only(4, 3))
    t.same(await idsOf('from=2026-01-01T13:03:00+01:00'), only(4, 3), 'a plus sign that nobody escaped')
    t.same(await idsOf('to=2026-01-01T13:01:00%2B01:00'), only(0), 'times have zones')
    t.same(await idsOf('from=2026-01-01T12:01:00Z&to=2026-01-01T12:02:00Z&direction=outbound&status=queued'), only(1))
  })
})

test('the tools of a worker', async (t) => {
  const { ask, own, sql } = await openWholeApi(t)
  const tools = `/v1/accounts/${id('accountId', own.ids)}/workers/${id('workerId', own.ids)}/mcp/tools`
  const namesOf = async (query: string) =>
    (await ask(`${tools}${query}`)).json.tools.map(({ capabilityKey }: { capabilityKey: string }) => capabilityKey)
  const phoneNumber = '+4930987654'
  const accountId = id('accountId', own.ids) as Parameters<typeof createPerson>[1]['accountId']
  const request = { type: 'lead', firstName: 'Ada', lastName: 'L', phoneNumber } as const
  await createPerson(sql, { accountId, request, newId, now: start })

  await t.test(
    'are listed for an identified caller only with a number, however its plus sign is written',
    async (t) => {
      const without = await namesOf('')
      const identified = await namesOf(`?customerPhone=${encodeURIComponent(phoneNumber)}`)
      t.notOk(without.includes('person.get_caller'))
      t.ok(identified.includes('person.get_caller'))
      t.same(await namesOf(`?customerPhone=${phoneNumber}`), identified)
      t.same(
        (await ask(`${tools}?customerPhone=4930987654`)).json.issues.map(({ path }: { path: string }) => path),
        ['customerPhone'],
      )
    },
  )

  await t.test('answer in a result, and refuse what is no tool with 400 INVALID_TOOL', async (t) => {
    const call = (json: object) => ask(`${tools}/call`, { method: 'POST', json: { arguments: {}, ...json } })
    const unidentified = await call({ provider: 'person', toolName: 'get_caller' })
    t.equal(unidentified.status, 200)
    t.match(unidentified.json, { result: { status: 'error', error: { code: 'CALLER_IDENTITY_REQUIRED' } } })
    const found = await call({ provider: 'person', toolName: 'get_caller', customerPhone: phoneNumber })
    t.match(found.json, { result: { status: 'success' } })
    for (const json of [
      { provider: 'person', toolName: 'none' },
      { provider: 'none', toolName: 'get_caller' },
    ]) {
      const refused = await call(json)
      t.match({ status: refused.status, ...refused.json }, { status: 400, type: 'INVALID_TOOL' })
    }
  })
})

test('subscriptions and their deliveries', async (t) => {
  const { ask, own, sql } = await openWholeApi(t)
  const path = `/v1/accounts/${id('accountId', own.ids)}/webhook-subscriptions/${id('subscriptionId', own.ids)}`

  await t.test(
    'a worker may be named in any case of its letters, a timeout be any number of milliseconds',
    async (t) => {
      const json = { eventType: '*', url: 'https://hooks.example', timeoutMs: 1500.4 }
      const workerId = id('workerId', own.ids)
      const target = path.slice(0, path.lastIndexOf('/'))
      const answer = await ask(target, { method: 'POST', json: { ...json, workerId: workerId.toUpperCase() } })
      t.match({ status: answer.status, ...answer.json }, { status: 200, workerId, timeoutMs: 1500.4 })
    },
  )

  await t.test('an account has 500 of them at most', async (t) => {
    const accountId = id('accountId', own.ids)
    await sql`
      insert into webhook_subscriptions (id, account_id, event_type, url, signing_secret, timeout_ms, enabled)
      select 'full-' || n, ${accountId}, '*', 'https://hooks.example', '', 1000, false from generate_series(1, 500) n`
    const json = { eventType: '*', url: 'https://hooks.example' }
    const answer = await ask(path.slice(0, path.lastIndexOf('/')), { method: 'POST', json })
    t.match({ status: answer.status, ...answer.json }, { status: 409, type: 'CONFLICT', details: /500/ })
    await sql`delete from webhook_subscriptions where id like 'full-%'`
  })

  await t.test('a change is told by every later answer, without the secret', async (t) => {
    const before = (await ask(path)).json
    const json = { enabled: false, timeoutMs: 700, signingSecret: 'a new secret of theirs' }
    const changed = await ask(path, { method: 'PATCH', json })
    t.equal(changed.status, 200)
    t.same(
      { ...changed.json, updatedAt: '' },
      { ...before, enabled: false, timeoutMs: 700, signingSecret: null, updatedAt: '' },
    )
    t.same((await ask(path)).json, changed.json)
    t.same((await ask(path, { method: 'PATCH', json: {} })).json.timeoutMs, 700, 'what is not named stays')
  })

  await t.test('a secret is any line of text; what is none is refused and the old one stays', async (t) => {
    const stored = async () =>
      (await sql`select signing_secret from webhook_subscriptions where id = ${id('subscriptionId', own.ids)}`)[0]
    const before = await stored()
    for (const signingSecret of ['', 'x'.repeat(501), 'a secret\nof two lines', 7]) {
      const answer = await ask(path, { method: 'PATCH', json: { signingSecret } })
      t.match(
        [answer.status, answer.json.issues],
        [400, [{ path: 'signingSecret' }]],
        String(signingSecret).slice(0, 20),
      )
    }
    t.same(await stored(), before)
    t.equal((await ask(path, { method: 'PATCH', json: { signingSecret: 'rotated' } })).status, 200)
    t.notSame(await stored(), before)
  })

  await t.test('the log of deliveries tells of each, and what is exhausted can be sent again once', async (t) => {
    const log = (await ask(`${path}/deliveries?status=exhausted&callId=${id('phoneCallId', own.ids)}`)).json
    t.same(
      log.data.map((delivery: { id: string }) => delivery.id),
      [id('deliveryId', own.ids)],
    )
    t.same((await ask(`${path}/deliveries?status=pending`)).json, { data: [], nextCursor: null })
    t.same((await ask(`${path}/deliveries?callId=none`)).json.data, [])
    const resend = () => ask(`${path}/deliveries/${id('deliveryId', own.ids)}/resend`, { method: 'POST' })
    t.match((await resend()).json, { id: id('deliveryId', own.ids), status: 'pending' })
    t.equal((await resend()).status, 409)
    t.equal((await ask(`${path}/deliveries/${id('deliveryId', own.ids)}`)).json.status, 'pending')
  })

  await t.test('a deleted one is 204 without a body, then 404, and its deliveries are gone', async (t) => {
    const removed = await ask(path, { method: 'DELETE', body: 'of no use' })
    t.same([removed.status, removed.text, removed.headers.get('content-type')], [204, '', null])
    for (const method of ['GET', 'DELETE', 'HEAD']) t.equal((await ask(path, { method })).status, 404, method)
    t.same(await sql`select id from deliveries where subscription_id = ${id('subscriptionId', own.ids)}`, [])
  })
})
