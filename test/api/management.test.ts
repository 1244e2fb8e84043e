/** docs/contract/rest.md "Management": workers, keys, trunks and the calls they refused, persons, documents. */
import { test } from 'tap'
import { parseWorkerRequestAnswer } from '../../model/events.ts'
import { assignNumber } from '../../store/account-numbers.ts'
import { changeAccountConfig } from '../../store/accounts.ts'
import { noteRealm } from '../../store/trunk-realms.ts'
import { createAsk, insertCall, newId, openSeededApi, start } from '../scenes/seeded-api.ts'

type Answer = Awaited<ReturnType<ReturnType<typeof createAsk>>>
type Seeded = Awaited<ReturnType<typeof openSeededApi>>

/** Status, type and paths of a refusal. */
const refusalIn = ({ status, json }: Answer): unknown[] => [
  status,
  json.type,
  ...(json.issues ?? []).map((issue: { path: string }) => issue.path),
]
const idsIn = ({ json }: Answer): string[] => (json.data ?? json).map(({ id }: { id: string }) => id)

/** Asks below the own account. */
function verbsOf({ ask, own }: Seeded) {
  const at = (path: string) => `/v1/accounts/${own.id}/${path}`
  return {
    get: (path: string) => ask(at(path)),
    post: (path: string, json: unknown) => ask(at(path), { method: 'POST', json }),
    patch: (path: string, json: unknown) => ask(at(path), { method: 'PATCH', json }),
    remove: (path: string) => ask(at(path), { method: 'DELETE' }),
  }
}

test('workers', async (t) => {
  const seeded = await openSeededApi(t)
  const { ask, other, own, hands, sql } = seeded
  const { get, post, patch, remove } = verbsOf(seeded)
  const configOf = async (id: string) => (await get(`workers/${id}/config`)).json

  await t.test('a worker needs a name and a language, and is active', async (t) => {
    const { status, json } = await post('workers', { name: 'Reception', language: 'de-DE' })
    t.equal(status, 200)
    t.same(json, { id: json.id, accountId: own.id, name: 'Reception', language: 'de-DE', isActive: true })
    t.same((await get(`workers/${json.id}`)).json, json)
  })

  await t.test('a worker has all of its fields from the start', async (t) => {
    const fields = {
      name: 'Sales',
      language: 'zh-Hans-CN',
      type: { id: 'sales', name: 'Sales agent' },
      inboundPhoneNumber: '+4930111111',
      outboundPhoneNumber: '+4930222222',
      isActive: false,
      maxConcurrentCalls: 3,
    }
    const { json } = await post('workers', { ...fields, config: { voiceId: 'rms', ringTimeout: 10 } })
    t.match(json, fields)
    t.match(await configOf(json.id), { voiceId: 'rms', ringTimeout: 10, firstSpeechTimeout: 4, language: 'zh-Hans-CN' })
  })

  await t.test('a change leaves alone what it does not name, and null takes away what may be absent', async (t) => {
    const { json: before } = await post('workers', {
      name: 'W',
      language: 'en',
      maxConcurrentCalls: 2,
      type: { id: 'a', name: 'A' },
    })
    t.same((await patch(`workers/${before.id}`, {})).json, before)
    hands.turn(1000)
    const number = { inboundPhoneNumber: '+4930333333' }
    t.same((await patch(`workers/${before.id}`, number)).json, { ...before, ...number })
    const { type: _, maxConcurrentCalls: __, ...bare } = before
    const nulls = { type: null, maxConcurrentCalls: null, inboundPhoneNumber: null, outboundPhoneNumber: null }
    t.same((await patch(`workers/${before.id}`, nulls)).json, bare)
    t.match((await patch(`workers/${before.id}`, { isActive: false })).json, { isActive: false, name: 'W' })
    const [row] = await sql<{ updatedAt: number }[]>`select updated_at from workers where id = ${before.id}`
    t.equal(row?.updatedAt, start + 1000)
    const always = { name: null, language: null, isActive: null, config: null }
    t.same(
      (await patch(`workers/${before.id}`, always)).json,
      { ...bare, isActive: false },
      'what is always there stays',
    )
  })

  await t.test('a number takes calls for one account, and is claimed by the first', async (t) => {
    const theirs = {
      method: 'POST',
      key: other.key,
      json: { name: 'E', language: 'en', inboundPhoneNumber: '+4930444444' },
    }
    t.match(await ask(`/v1/accounts/${other.id}/workers`, theirs), { status: 200 })
    const { json } = await post('workers', { name: 'W', language: 'en' })
    for (const field of ['inboundPhoneNumber', 'outboundPhoneNumber'])
      t.match(await patch(`workers/${json.id}`, { [field]: '+4930444444' }), {
        status: 409,
        json: { type: 'CONFLICT' },
      })
    t.match(await post('workers', theirs.json), { status: 409 })
    t.match(await post('workers', { ...theirs.json, inboundPhoneNumber: '+4930555555' }), { status: 200 })
    const strict = createAsk({ ...seeded.deps, mayClaimNumbers: false }, own.key)
    const claim = (inboundPhoneNumber: string) =>
      strict(`/v1/accounts/${own.id}/workers/${json.id}`, { method: 'PATCH', json: { inboundPhoneNumber } })
    t.same(refusalIn(await claim('+4930666666')), [400, 'VALIDATION_FAILED', 'inboundPhoneNumber'])
    await assignNumber(sql, { accountId: own.id, number: '+4930666666', move: false })
    t.match(await claim('+4930666666'), { status: 200 })
  })

  await t.test('config is merged key by key of its top level, and null takes a key away', async (t) => {
    const nextActions = [{ key: 'a', name: 'A' }]
    const { json } = await post('workers', {
      name: 'W',
      language: 'en',
      config: { voiceId: 'rms', ringTimeout: 10, nextActions },
    })
    await patch(`workers/${json.id}`, { config: { ringTimeout: 20, nextActions: [{ key: 'b', name: 'B' }] } })
    t.match(await configOf(json.id), { voiceId: 'rms', ringTimeout: 20, nextActions: [{ key: 'b', name: 'B' }] })
    await patch(`workers/${json.id}`, {
      config: { ringTimeout: null, voiceId: null, llmTemperature: 0.5, emailEnabled: null },
    })
    const config = await configOf(json.id)
    t.match(config, { ringTimeout: 30, llmTemperature: 0.5 }, 'the default stands again')
    t.notOk('voiceId' in config || 'emailEnabled' in config)
    const [row] = await sql`select config from workers where id = ${json.id}`
    t.same(row, { config: { llmTemperature: 0.5, nextActions: [{ key: 'b', name: 'B' }] } }, 'no null is stored')
  })

  await t.test('changes of config at once are all kept', async (t) => {
    const { json } = await post('workers', { name: 'W', language: 'en' })
    const changes = [
      { voiceId: 'v' },
      { ringTimeout: 9 },
      { llmTemperature: 1 },
      { emailEnabled: true },
      { testModeEnabled: true },
    ]
    await Promise.all(changes.map((config) => patch(`workers/${json.id}`, { config })))
    t.match(await configOf(json.id), Object.assign({}, ...changes))
  })

  await t.test('what cannot be is refused with its path', async (t) => {
    const [drink, callBack] = [
      { key: 'drink', name: 'Drink', type: 'string' },
      { key: 'call_back', name: 'Call back' },
    ]
    for (const [path, change] of [
      ['config.voice', { config: { voice: 'x' } }],
      ['config.ringTimeout', { config: { ringTimeout: 0 } }],
      ['config.dimensions.0.key', { config: { dimensions: [{ key: 'A', name: 'A', type: 'string' }] } }],
      ['config.dimensions.1.key', { config: { dimensions: [drink, { ...drink, type: 'boolean' }] } }],
      ['config.nextActions.1.key', { config: { nextActions: [callBack, callBack] } }],
      ['config.dimensions.0.options', { config: { dimensions: [{ ...drink, type: 'enum' }] } }],
      ['config.dimensions.0.options', { config: { dimensions: [{ ...drink, type: 'enum', options: [] }] } }],
      ['inboundPhoneNumber', { inboundPhoneNumber: '030 123' }],
      ['type.name', { type: { id: 'a' } }],
      ['maxConcurrentCalls', { maxConcurrentCalls: -1 }],
      ['id', { id: newId() }],
    ] as const) {
      const refusal = [400, 'VALIDATION_FAILED', path]
      t.same(refusalIn(await patch(`workers/${own.worker.id}`, change)), refusal)
      t.same(refusalIn(await post('workers', { name: 'W', language: 'en', ...change })), refusal)
    }
    for (const language of [
      '',
      'english please',
      'en_US',
      'e',
      'en-',
      'en-a',
      'en-US-US',
      'en-x',
      `en-x-${'abcdefgh-'.repeat(4)}a`,
      'en\n',
    ])
      t.same(
        refusalIn(await post('workers', { name: 'W', language })),
        [400, 'VALIDATION_FAILED', 'language'],
        language,
      )
    for (const language of [
      'en',
      'de-CH',
      'sr-Latn-RS',
      'es-419',
      'sl-rozaj-biske',
      'de-CH-1996',
      'en-US-u-ca-gregory',
      'zh-yue-HK',
      'de-x-formal',
    ])
      t.equal((await post('workers', { name: 'W', language })).status, 200, language)
    t.same(refusalIn(await post('workers', {})), [400, 'VALIDATION_FAILED', 'name', 'language'])
  })

  await t.test('what could be stored before is read on, and stands in no way of other changes', async (t) => {
    const { json } = await post('workers', { name: 'W', language: 'en' })
    const dimensions = [
      { key: 'drink', name: 'Drink', type: 'enum' },
      { key: 'drink', name: 'Drink', type: 'string' },
    ]
    await sql`update workers set config = ${sql.json({ dimensions })} where id = ${json.id}`
    t.equal((await patch(`workers/${json.id}`, { name: 'V', config: { ringTimeout: 10 } })).status, 200)
    t.match(await configOf(json.id), { ringTimeout: 10, dimensions })
    t.ok(parseWorkerRequestAnswer({ config: { dimensions } }).success, 'a receiver may send back what it knows')
  })

  await t.test('a foreign worker is neither changed nor deleted', async (t) => {
    for (const id of [other.worker.id, newId(), 'nobody'])
      for (const answer of [await patch(`workers/${id}`, { name: 'Not' }), await remove(`workers/${id}`)])
        t.same(refusalIn(answer), [404, 'NOT_FOUND'])
    t.same(await sql`select name from workers where id = ${other.worker.id}`, [{ name: 'other worker' }])
  })
})

test('API keys', async (t) => {
  const seeded = await openSeededApi(t)
  const { ask, own, other, deps, lines, hands, sql } = seeded
  const { get, post, remove } = verbsOf(seeded)
  const statusWith = async (key: string, asking = ask) => (await asking('/v1/accounts/current', { key })).status

  await t.test('a key is shown once, when it is made', async (t) => {
    const { status, json } = await post('api-keys', { name: 'Billing', expiresAt: '2026-06-01T02:00:00+02:00' })
    t.equal(status, 200)
    const { key, ...told } = json
    t.match(key, /^vk_[0-9A-Za-z]{43}$/)
    t.same(told, {
      id: json.id,
      name: 'Billing',
      prefix: key.slice(0, 11),
      scopes: ['read', 'calls', 'manage'],
      createdAt: new Date(start).toISOString(),
      expiresAt: '2026-06-01T00:00:00.000Z',
    })
    t.equal(await statusWith(key), 200)
    const list = await get('api-keys')
    t.notMatch(list.text, key)
    t.notMatch(list.text, /"key"/)
    t.same(idsIn(list), [own.keyId, json.id])
    t.notMatch(JSON.stringify(lines), key.slice(11), 'no log line tells it')
    const [row] = await sql`select count(*) from api_keys where api_keys::text like ${`%${key}%`}`
    t.same(row, { count: 0 }, 'nor does the database')
  })

  await t.test('a key that would never work is refused', async (t) => {
    for (const expiresAt of [
      '2025-12-31T00:00:00Z',
      new Date(start).toISOString(),
      '9999-12-31T23:59:59-12:00',
      'tomorrow',
    ])
      t.same(refusalIn(await post('api-keys', { name: 'x', expiresAt })), [400, 'VALIDATION_FAILED', 'expiresAt'])
    for (const json of [{}, { name: '' }, { name: 'x'.repeat(201) }])
      t.same(refusalIn(await post('api-keys', json)), [400, 'VALIDATION_FAILED', 'name'])
    t.same(refusalIn(await post('api-keys', { name: 'x', key: 'vk_mine' })), [400, 'VALIDATION_FAILED', 'key'])
  })

  await t.test('a revoked key is dead at once, on every process, for good', async (t) => {
    const { json } = await post('api-keys', { name: 'Short' })
    const elsewhere = createAsk(deps, json.key)
    t.equal(await statusWith(json.key), 200)
    t.equal(await statusWith(json.key, elsewhere), 200)
    hands.turn(5)
    const { status, text } = await remove(`api-keys/${json.id}`)
    t.same([status, text], [204, ''])
    t.equal(await statusWith(json.key, elsewhere), 401)
    t.equal(await statusWith(json.key), 401)
    hands.turn(1000)
    t.equal((await remove(`api-keys/${json.id}`)).status, 204, 'once more is no mistake')
    const told = (await get('api-keys')).json.find(({ id }: { id: string }) => id === json.id)
    t.equal(told.revokedAt, new Date(start + 5).toISOString(), 'it stays revoked since the first time')
  })

  await t.test('a foreign or unknown key is 404 and lives on', async (t) => {
    for (const id of [other.keyId, newId(), 'nobody'])
      t.same(refusalIn(await remove(`api-keys/${id}`)), [404, 'NOT_FOUND'])
    t.equal(await statusWith(other.key), 200)
  })

  await t.test('a key may revoke itself', async (t) => {
    t.equal((await remove(`api-keys/${own.keyId}`)).status, 204)
    t.same(refusalIn(await remove(`api-keys/${own.keyId}`)), [401, 'UNAUTHORIZED'])
  })
})

test('trunks', async (t) => {
  const seeded = await openSeededApi(t)
  const { own, other, ask, lines, sql } = seeded
  const { get, post, patch, remove } = verbsOf(seeded)
  const secret = 'hunter2-and-more'

  await t.test('a trunk is made, read, listed, changed and deleted, and its password never told', async (t) => {
    const settings = {
      gateways: [{ host: 'sip.carrier.example', port: 5061, transport: 'tls' }, { host: '192.0.2.1' }],
      allowedAddresses: ['203.0.113.0/24', '2001:db8::1'],
      username: 'parley',
      realm: 'carrier.example',
      register: true,
      codecs: ['opus', 'PCMA'],
      headers: { 'X-Account': 'acme' },
      numberPrefix: '00',
      maxConcurrentCalls: 10,
      maxCallsPerSecond: 0.5,
    }
    const created = await post('trunks', { name: 'Carrier', ...settings, password: secret, workerIds: [own.worker.id] })
    const told = { name: 'Carrier', direction: 'both', isActive: true, passwordSet: true, workerIds: [own.worker.id] }
    const { id, createdAt, updatedAt, ...rest } = created.json
    t.same(rest, { accountId: own.id, ...told, ...settings })
    t.same([createdAt, updatedAt], [new Date(start).toISOString(), createdAt])
    const read = await get(`trunks/${id}`)
    t.same(read.json, created.json)
    const list = await get('trunks')
    t.same(list.json, [created.json])
    const changed = await patch(`trunks/${id}`, {
      direction: 'outbound',
      realm: null,
      maxConcurrentCalls: null,
      password: `${secret}2`,
    })
    const { realm: _, maxConcurrentCalls: __, ...kept } = created.json
    t.same(changed.json, { ...kept, direction: 'outbound' })
    const refused = await patch(`trunks/${id}`, { password: `${secret}3`, direction: 'sideways' })
    t.equal(refused.status, 400)
    for (const { text } of [created, read, list, changed, refused]) t.notMatch(text, secret)
    t.notMatch(JSON.stringify(lines), secret)
    t.equal((await remove(`trunks/${id}`)).status, 204)
    for (const answer of [await get(`trunks/${id}`), await patch(`trunks/${id}`, {}), await remove(`trunks/${id}`)])
      t.same(refusalIn(answer), [404, 'NOT_FOUND'])
  })

  await t.test('what cannot be is refused with its path', async (t) => {
    for (const [path, change] of [
      ['register', { register: true }],
      ['register', { register: true, username: 'u' }],
      ['workerIds.1', { workerIds: [own.worker.id, other.worker.id] }],
      ['workerIds.0', { workerIds: ['nobody'] }],
      ['gateways.0.port', { gateways: [{ host: 'a', port: 70_000 }] }],
      ['passwordSet', { passwordSet: true }],
      ['config', { config: {} }],
    ] as const) {
      const { json } = await post('trunks', { name: 'x' })
      const refusal = [400, 'VALIDATION_FAILED', path]
      t.same(refusalIn(await post('trunks', { name: 'x', ...change })), refusal)
      t.same(refusalIn(await patch(`trunks/${json.id}`, change)), refusal)
      t.same((await get(`trunks/${json.id}`)).json, json)
    }
    t.same(refusalIn(await patch('trunks/x', { name: 7 })), [400, 'VALIDATION_FAILED', 'name'])
    const issues = (await post('trunks', { name: 'x', workerIds: Array(1000).fill('nobody') })).json.issues
    t.equal(issues.length, 50, 'an answer names fifty at most')
  })

  await t.test('null takes away every setting that may be absent, and reads as absent in a creation', async (t) => {
    const bare = (await post('trunks', { name: 'x' })).json
    const given = {
      domain: 'a.example',
      codecs: ['PCMA'],
      gateways: [{ host: 'b.example', port: null }],
      qualify: false,
    }
    const { json } = await post('trunks', { name: 'x', ...given, transferTo: null, headers: null, workerIds: null })
    t.match(json, { domain: 'a.example', gateways: [{ host: 'b.example' }], workerIds: [] })
    const nulls = {
      domain: null,
      codecs: null,
      gateways: null,
      qualify: null,
      callerId: null,
      name: null,
      isActive: null,
    }
    const { id: _, ...rest } = bare
    const { id: __, ...changed } = (await patch(`trunks/${json.id}`, nulls)).json
    t.same(changed, rest)
    await remove(`trunks/${json.id}`)
    await remove(`trunks/${bare.id}`)
  })

  await t.test('settings that do not go together are refused, in creation and in change', async (t) => {
    const { json } = await post('trunks', { name: 'x', username: 'u', callerId: 'username' })
    t.equal(json.callerId, 'username')
    t.same(refusalIn(await post('trunks', { name: 'x', callerId: 'username' })), [400, 'VALIDATION_FAILED', 'callerId'])
    t.same(refusalIn(await patch(`trunks/${json.id}`, { username: null })), [400, 'VALIDATION_FAILED', 'callerId'])
    const proving = { authenticateInbound: true, username: 'u' }
    t.same(refusalIn(await post('trunks', { name: 'x', ...proving })), [
      400,
      'VALIDATION_FAILED',
      'authenticateInbound',
    ])
    t.equal((await post('trunks', { name: 'x', ...proving, password: secret })).status, 200)
    t.same(refusalIn(await post('trunks', { name: 'x', domain: 'a b' })), [400, 'VALIDATION_FAILED', 'domain'])
  })

  await t.test(
    'a password by which calls come in has eight characters; one of before goes on, and is no way around it',
    async (t) => {
      const short = [400, 'VALIDATION_FAILED', 'password']
      t.same(refusalIn(await post('trunks', { name: 'x', username: 'u', password: 'seven77' })), short)
      t.same(refusalIn(await post('trunks', { name: 'x', password: 's' })), short)
      const { json } = await post('trunks', { name: 'x', username: 'u', password: 'eight888' })
      t.same(refusalIn(await patch(`trunks/${json.id}`, { password: 'seven77' })), short)
      const carrier = { name: 'x', direction: 'outbound', username: 'u', password: '1234' }
      const outbound = await post('trunks', carrier)
      t.equal(outbound.status, 200, 'what a carrier gave us is as it is')
      t.same(refusalIn(await patch(`trunks/${outbound.json.id}`, { direction: 'both' })), short)
      t.equal((await patch(`trunks/${outbound.json.id}`, { direction: 'both', password: 'eight888' })).status, 200)
      const { id } = outbound.json
      // As an earlier version stored it.
      await seeded.deps.trunks.change(own.id, id, { password: 'old' })
      t.equal((await patch(`trunks/${id}`, { name: 'of before' })).status, 200)
      t.equal((await patch(`trunks/${id}`, { direction: 'inbound' })).status, 200)
    },
  )

  await t.test(
    'to whom a password is proved stands in the state, until the realm is named or taken away',
    async (t) => {
      const { json } = await post('trunks', { name: 'x', username: 'u', password: secret })
      const news = { host: 'sip.carrier.example', proved: ['carrier'], refused: null }
      const realms = async () => (await get(`trunks/${json.id}/state`)).json.realms
      await noteRealm(sql, json.id, news, start)
      await noteRealm(sql, json.id, { ...news, proved: ['thief'], refused: 'why not' }, start)
      t.same(
        await realms(),
        [{ host: 'sip.carrier.example', realms: ['carrier'], refused: 'why not' }],
        'the first stays',
      )
      await patch(`trunks/${json.id}`, { name: 'y' })
      t.equal((await realms()).length, 1)
      await patch(`trunks/${json.id}`, { realm: 'moved' })
      t.equal(await realms(), undefined)
    },
  )

  await t.test('the state of a trunk is there before anybody looked after it, and then as was reported', async (t) => {
    const gateways = [{ host: 'a.example', port: 5061 }]
    const { json } = await post('trunks', { name: 'Kept', gateways, username: 'u', register: true })
    const unknown = { host: 'a.example', port: 5061, reachable: null, details: null, checkedAt: null }
    t.same((await get(`trunks/${json.id}/state`)).json, {
      registration: 'none',
      registrationDetails: null,
      registeredUntil: null,
      gateways: [unknown],
      updatedAt: null,
    })
    const seen = { ...unknown, reachable: true, details: '200 OK', checkedAt: new Date(start).toISOString() }
    const state = {
      registration: 'failed',
      registrationDetails: '403 Forbidden',
      registeredUntil: null,
      gateways: [seen],
    }
    await sql`
      insert into trunk_states (trunk_id, account_id, state, updated_at)
      values (${json.id}, ${own.id}, ${sql.json(state)}, ${start})`
    t.same((await get(`trunks/${json.id}/state`)).json, { ...state, updatedAt: new Date(start).toISOString() })
    const foreign = await ask(`/v1/accounts/${other.id}/trunks/${json.id}/state`, { key: other.key })
    t.same(refusalIn(foreign), [404, 'NOT_FOUND'])
  })

  await t.test("another account's trunk answers 404 and stays as it is", async (t) => {
    const { json } = await post('trunks', { name: 'Own' })
    const path = `/v1/accounts/${other.id}/trunks/${json.id}`
    for (const method of ['GET', 'PATCH', 'DELETE'])
      t.same(
        refusalIn(await ask(path, { method, key: other.key, json: method === 'PATCH' ? { name: 'Not' } : undefined })),
        [404, 'NOT_FOUND'],
      )
    t.same(await sql`select name from trunks where id = ${json.id}`, [{ name: 'Own' }])
  })
})

test('persons', async (t) => {
  const seeded = await openSeededApi(t)
  const { own, other, ask, sql } = seeded
  const { get, post, patch, remove } = verbsOf(seeded)
  const ada = { type: 'lead', firstName: 'Ada', lastName: 'Lovelace' }

  await t.test('a person is made, read, changed and deleted', async (t) => {
    const details = {
      externalId: 'crm-1',
      email: 'ada@example.com',
      phoneNumber: '+4930123456',
      companyName: 'Analytical Engines',
      language: 'en-GB',
      notes: 'Likes numbers.',
      tags: ['vip'],
      workerId: own.worker.id,
    }
    const { status, json } = await post('persons', { ...ada, ...details })
    t.equal(status, 200)
    const times = { createdAt: new Date(start).toISOString(), updatedAt: new Date(start).toISOString() }
    t.same(json, { id: json.id, accountId: own.id, ...ada, ...details, ...times })
    t.same((await get(`persons/${json.id}`)).json, json)
    t.same((await patch(`persons/${json.id}`, {})).json, json)
    const { email: _, workerId: __, ...kept } = json
    t.same((await patch(`persons/${json.id}`, { email: null, workerId: null, tags: [], type: 'customer' })).json, {
      ...kept,
      tags: [],
      type: 'customer',
    })
    const callId = await insertCall(sql, own.id, own.worker.id, { personId: json.id })
    t.equal((await remove(`persons/${json.id}`)).status, 204)
    t.same(await sql`select person_id from calls where id = ${callId}`, [{ personId: null }])
    for (const answer of [
      await get(`persons/${json.id}`),
      await patch(`persons/${json.id}`, {}),
      await remove(`persons/${json.id}`),
    ])
      t.same(refusalIn(answer), [404, 'NOT_FOUND'])
    t.equal((await get(`phone-calls/${callId}`)).status, 200, 'the call is kept')
  })

  await t.test('what cannot be is refused with its path', async (t) => {
    const { json } = await post('persons', ada)
    for (const [path, change] of [
      ['type', { type: 'friend' }],
      ['firstName', { firstName: '' }],
      ['email', { email: 'ada@' }],
      ['phoneNumber', { phoneNumber: '4930123456' }],
      ['language', { language: 'English, mostly' }],
      ['language', { language: 'en_US' }],
      ['tags.0', { tags: [''] }],
      ['notes', { notes: 'x'.repeat(20_001) }],
      ['workerId', { workerId: other.worker.id }],
      ['workerId', { workerId: newId() }],
      ['workerId', { workerId: 'nobody' }],
      ['accountId', { accountId: other.id }],
    ] as const) {
      const refusal = [400, 'VALIDATION_FAILED', path]
      t.same(refusalIn(await post('persons', { ...ada, ...change })), refusal)
      t.same(refusalIn(await patch(`persons/${json.id}`, change)), refusal)
    }
    t.same((await get(`persons/${json.id}`)).json, json)
    const always = { type: null, firstName: null, lastName: null, tags: null }
    const refusal = refusalIn(await post('persons', { ...ada, ...always }))
    t.same(refusal, [400, 'VALIDATION_FAILED', 'type', 'firstName', 'lastName'])
    t.same((await patch(`persons/${json.id}`, always)).json, json, 'a change leaves alone what is always there')
  })

  await t.test('an externalId that is taken is 409', async (t) => {
    t.equal((await post('persons', { ...ada, externalId: 'taken' })).status, 200)
    t.same(refusalIn(await post('persons', { ...ada, externalId: 'taken' })), [409, 'CONFLICT', 'externalId'])
    const { json } = await post('persons', ada)
    t.same(refusalIn(await patch(`persons/${json.id}`, { externalId: 'taken' })), [409, 'CONFLICT', 'externalId'])
    const path = `/v1/accounts/${other.id}/persons`
    const elsewhere = await ask(path, { method: 'POST', key: other.key, json: { ...ada, externalId: 'taken' } })
    t.equal(elsewhere.status, 200, 'another account has its own')
  })

  await t.test("another account's person answers 404 and stays as it is", async (t) => {
    const { json } = await ask(`/v1/accounts/${other.id}/persons`, { method: 'POST', key: other.key, json: ada })
    for (const answer of [
      await get(`persons/${json.id}`),
      await patch(`persons/${json.id}`, { firstName: 'Not' }),
      await remove(`persons/${json.id}`),
      await get('persons/batch'),
    ])
      t.same(refusalIn(answer), [404, 'NOT_FOUND'])
    t.same(await sql`select first_name from persons where id = ${json.id}`, [{ firstName: 'Ada' }])
    t.notOk(idsIn(await get('persons?limit=100')).includes(json.id))
  })
})

test('lists of persons', async (t) => {
  const seeded = await openSeededApi(t)
  const { other, own } = seeded
  const { get, post } = verbsOf(seeded)
  const person = (firstName: string, more = {}) => ({ type: 'lead', firstName, lastName: 'Smith', ...more })

  await t.test('pages are the newest first, and what is added meanwhile moves nothing', async (t) => {
    const made = idsIn(await post('persons/batch', { persons: Array.from({ length: 7 }, (_, n) => person(`P${n}`)) }))
    const seen: string[] = []
    let cursor: string | null = null
    do {
      const page = await get(`persons?limit=3${cursor === null ? '' : `&cursor=${cursor}`}`)
      t.ok(page.json.data.length <= 3)
      seen.push(...idsIn(page))
      cursor = page.json.nextCursor
      await post('persons', person('Meanwhile'))
    } while (cursor !== null)
    t.same(seen, made.toReversed())
    t.same((await get('persons?limit=10')).json.nextCursor, null, 'a page that is just full is the last')
  })

  await t.test('every filter lets through what it says', async (t) => {
    const fields = {
      type: 'customer',
      email: 'Grace@Example.com',
      phoneNumber: '+4930999999',
      externalId: 'x 1',
      tags: ['navy'],
    }
    const { json } = await post(
      'persons',
      person('Grace', { ...fields, companyName: 'Cobol & Co', workerId: own.worker.id }),
    )
    for (const filter of [
      { type: 'customer' },
      { workerId: own.worker.id },
      { query: 'grace cobol' },
      { query: '30999' },
      { phoneNumber: '+4930999999' },
      { email: 'grace@example.com' },
      { externalId: 'x 1' },
      { tag: 'navy' },
    ])
      t.same(
        idsIn(await get(`persons?${new URLSearchParams(filter as never).toString()}`)),
        [json.id],
        JSON.stringify(filter),
      )
    for (const filter of [
      { workerId: other.worker.id },
      { workerId: newId() },
      { workerId: 'nobody' },
      { query: 'grace hopper' },
      { externalId: 'x' },
      { tag: "navy'--" },
      { type: 'phone_contact' },
      { type: 'lead', tag: 'navy' },
    ])
      t.same((await get(`persons?${new URLSearchParams(filter as never).toString()}`)).json, {
        data: [],
        nextCursor: null,
      })
  })

  await t.test('a query that means nothing is 400 with its name', async (t) => {
    for (const [path, query] of [
      ['limit', 'limit=0'],
      ['limit', 'limit=101'],
      ['limit', 'limit=1.5'],
      ['limit', 'limit=all'],
      ['cursor', 'cursor=x'],
      ['type', 'type=friend'],
      ['phoneNumber', 'phoneNumber=4930999999'],
      ['query', 'query=%00'],
      ['tag', 'tag=a%00'],
      ['workerId', 'workerId=%00'],
      ['externalId', `externalId=${'x'.repeat(501)}`],
    ] as const)
      t.same(refusalIn(await get(`persons?${query}`)), [400, 'VALIDATION_FAILED', path], query)
  })
})

test('batches of persons', async (t) => {
  const seeded = await openSeededApi(t)
  const { other, own, sql } = seeded
  const { post } = verbsOf(seeded)
  const person = (externalId?: string, more = {}) => ({
    type: 'lead',
    firstName: 'A',
    lastName: 'B',
    externalId,
    ...more,
  })
  const stored = async () => (await sql<{ count: number }[]>`select count(*) from persons`)[0]?.count

  await t.test('up to a hundred are made in one go, told in the order they were sent', async (t) => {
    const persons = Array.from({ length: 100 }, (_, n) =>
      person(`n${100 - n}`, { workerId: own.worker.id, tags: [`t${n}`] }),
    )
    const { status, json } = await post('persons/batch', { persons })
    t.equal(status, 200)
    t.same(
      json.map(({ externalId }: { externalId: string }) => externalId),
      persons.map(({ externalId }) => externalId),
    )
    t.equal(await stored(), 100)
  })

  await t.test('all or none: whatever is wrong with one, nothing is stored, and the answer names which', async (t) => {
    for (const [persons, ...refusal] of [
      [[person('a'), person('b', { email: 'no' })], 400, 'VALIDATION_FAILED', 'persons.1.email'],
      [[person('a'), person('b', { nickname: 'x' })], 400, 'VALIDATION_FAILED', 'persons.1.nickname'],
      [[person('a'), person('b', { workerId: other.worker.id })], 400, 'VALIDATION_FAILED', 'persons.1.workerId'],
      [[person('a'), person('b'), person('a')], 400, 'VALIDATION_FAILED', 'persons.2.externalId'],
      [[person('a'), person('n7'), person('n8')], 409, 'CONFLICT', 'persons.1.externalId', 'persons.2.externalId'],
      [[], 400, 'VALIDATION_FAILED', 'persons'],
      [Array.from({ length: 101 }, () => person()), 400, 'VALIDATION_FAILED', 'persons'],
    ] as const)
      t.same(refusalIn(await post('persons/batch', { persons })), refusal)
    t.same(refusalIn(await post('persons/batch', [person('a')])), [400, 'VALIDATION_FAILED', ''])
    t.equal(await stored(), 100)
  })
})

test('documents', async (t) => {
  const seeded = await openSeededApi(t)
  const { own, other, ask, sql } = seeded
  const { get, post, patch, remove } = verbsOf(seeded)

  await t.test('a document is made, read, listed, changed and deleted', async (t) => {
    const { status, json } = await post('documents', { title: 'Opening hours', text: 'From nine to five.' })
    t.equal(status, 200)
    const times = { createdAt: new Date(start).toISOString(), updatedAt: new Date(start).toISOString() }
    t.same(json, {
      id: json.id,
      accountId: own.id,
      title: 'Opening hours',
      fileName: 'opening-hours.txt',
      type: 'txt',
      status: 'queued',
      isActive: true,
      tagKeys: [],
      workerIds: [],
      text: 'From nine to five.',
      ...times,
    })
    t.same((await get(`documents/${json.id}`)).json, json)
    const { text: _, ...listed } = json
    t.same((await get('documents')).json, [listed], 'lists leave the text out')
    const change = {
      text: 'Closed.',
      tagKeys: ['hours'],
      workerIds: [own.worker.id],
      fileName: 'Öffnung.txt',
      isActive: false,
    }
    t.same((await patch(`documents/${json.id}`, change)).json, { ...json, ...change })
    t.same((await patch(`documents/${json.id}`, {})).json, { ...json, ...change })
    t.same(idsIn(await get(`documents?workerId=${own.worker.id}&tagKey=hours`)), [json.id])
    for (const query of [`workerId=${other.worker.id}`, 'workerId=nobody', 'tagKey=none'])
      t.same((await get(`documents?${query}`)).json, [])
    t.equal((await remove(`documents/${json.id}`)).status, 204)
    for (const answer of [
      await get(`documents/${json.id}`),
      await patch(`documents/${json.id}`, {}),
      await remove(`documents/${json.id}`),
    ])
      t.same(refusalIn(answer), [404, 'NOT_FOUND'])
  })

  await t.test('a call script is a document: in use at once, gone with it', async (t) => {
    const script = { title: 'Survey', text: 'Ask.', tagKeys: ['outbound_call_script'], workerIds: [own.worker.id] }
    const scripts = async () => (await get(`workers/${own.worker.id}/documents/outbound-call-scripts`)).json
    const { json } = await post('documents', script)
    t.same(await scripts(), [{ id: json.id, fileName: 'survey.txt' }])
    const twin = await post('documents', { ...script, title: 'Newer', fileName: 'survey.txt' })
    t.equal(twin.status, 200, 'file names may repeat')
    t.same(
      (await scripts()).map(({ id }: { id: string }) => id),
      [twin.json.id, json.id],
      'the newest first',
    )
    await patch(`documents/${twin.json.id}`, { isActive: false })
    await remove(`documents/${json.id}`)
    t.same(await scripts(), [])
  })

  await t.test('what cannot be is refused with its path', async (t) => {
    const { json } = await post('documents', { title: 'x', text: '' })
    for (const [path, change] of [
      ['title', { title: '' }],
      ['text', { text: 7 }],
      ['text', { text: 'x'.repeat(500_001) }],
      ['fileName', { fileName: '../secret' }],
      ['tagKeys.0', { tagKeys: ['Not A Key'] }],
      ['workerIds.0', { workerIds: [other.worker.id] }],
      ['workerIds.1', { workerIds: [own.worker.id, 'nobody'] }],
      ['status', { status: 'queued' }],
      ['type', { type: 'pdf' }],
    ] as const) {
      const refusal = [400, 'VALIDATION_FAILED', path]
      t.same(refusalIn(await post('documents', { title: 'x', text: '', ...change })), refusal)
      t.same(refusalIn(await patch(`documents/${json.id}`, change)), refusal)
    }
    t.same((await get(`documents/${json.id}`)).json, json)
    t.same(refusalIn(await get('documents?tagKey=%00')), [400, 'VALIDATION_FAILED', 'tagKey'])
  })

  await t.test("another account's document answers 404 and stays as it is", async (t) => {
    const path = `/v1/accounts/${other.id}/documents`
    const { json } = await ask(path, { method: 'POST', key: other.key, json: { title: 'Theirs', text: 'x' } })
    for (const answer of [
      await get(`documents/${json.id}`),
      await patch(`documents/${json.id}`, { title: 'Not', workerIds: [other.worker.id] }),
      await remove(`documents/${json.id}`),
    ])
      t.same(refusalIn(answer), [404, 'NOT_FOUND'])
    t.same(await sql`select title from documents where id = ${json.id}`, [{ title: 'Theirs' }])
  })
})

test('refused calls', async (t) => {
  const seeded = await openSeededApi(t)
  const { own, other, ask, sql } = seeded
  const { get } = verbsOf(seeded)
  const rowOf = (accountId: string | null, minute: number, change: object = {}) => ({
    id: newId(),
    accountId,
    direction: 'inbound',
    reason: 'unknown_source',
    details: 'No trunk allows it.',
    sipStatus: 403,
    address: '203.0.113.9:5060',
    calling: null,
    called: '+4930404',
    firstAt: start + minute * 60_000,
    lastAt: start + minute * 60_000 + 500,
    count: 7,
    ...change,
  })
  const outbound = { direction: 'outbound', reason: 'daily_minutes_used_up', sipStatus: null, address: null }
  const rows = [rowOf(own.id, 0), rowOf(own.id, 1, outbound), rowOf(own.id, 2), rowOf(other.id, 3), rowOf(null, 4)]
  await sql`insert into call_refusals ${sql(rows as never)}`
  const ids = async (query = '') => (await get(`call-refusals${query}`)).json.data.map(({ id }: { id: string }) => id)
  const [first, second, third, foreign] = rows.map(({ id }) => id)

  const { json } = await get('call-refusals')
  t.equal(json.nextCursor, null)
  t.same(json.data[2], {
    id: first,
    direction: 'inbound',
    reason: 'unknown_source',
    details: 'No trunk allows it.',
    sipStatus: 403,
    trunkId: null,
    callId: null,
    address: '203.0.113.9:5060',
    calling: null,
    called: '+4930404',
    count: 7,
    firstAt: new Date(start).toISOString(),
    lastAt: new Date(start + 500).toISOString(),
  })
  t.same(await ids(), [third, second, first], "newest first, neither another's nor nobody's")
  t.same(await ids('?direction=outbound'), [second])
  t.same(await ids('?reason=daily_minutes_used_up'), [second])
  t.same(await ids('?reason=no_trunk'), [])
  const at = (minute: number) => encodeURIComponent(new Date(start + minute * 60_000).toISOString())
  t.same(await ids(`?from=${at(1)}&to=${at(2)}`), [second])
  const page = (await get('call-refusals?limit=2')).json
  t.same(await ids(`?limit=2&cursor=${page.nextCursor}`), [first])
  t.same(await ids(`?cursor=${foreign}`), [], "another account's cursor")
  await sql`delete from call_refusals where id = ${second ?? null}`
  t.same(await ids(`?limit=2&cursor=${page.nextCursor}`), [first], 'the row of the cursor has gone')
  const answer = await ask(`/v1/accounts/${other.id}/call-refusals`, { key: other.key })
  t.same(
    answer.json.data.map(({ id }: { id: string }) => id),
    [foreign],
  )
})

test('where an account may call', async (t) => {
  const seeded = await openSeededApi(t)
  const { own, sql, hands } = seeded
  const { post, get } = verbsOf(seeded)
  const workerId = own.worker.id
  await post('trunks', { name: 'Out', gateways: [{ host: '192.0.2.1' }], workerIds: [workerId] })
  const call = (body: object) => post('phone-calls', { workerId, ...body })
  const customer = (phoneNumber: string) => ({ customer: { type: 'lead', phoneNumber } })

  t.same(refusalIn(await call({ phoneNumber: '+8811234567' })), [400, 'CALL_SCRIPT_NOT_CONFIGURED'], 'in its order')
  const script = { title: 'S', fileName: 's.txt', text: 'say hello', workerIds: [workerId] }
  await post('documents', { ...script, tagKeys: ['outbound_call_script'] })
  t.same(refusalIn(await call({ phoneNumber: '+8811234567' })), [400, 'VALIDATION_FAILED', 'phoneNumber'])
  t.same(refusalIn(await call(customer('+19001234567'))), [400, 'VALIDATION_FAILED', 'customer.phoneNumber'])
  t.equal((await call({ phoneNumber: '+4930123456', ...customer('+19001234567') })).status, 200, 'that is not called')
  await changeAccountConfig(sql, own.id, { allowedDestinations: ['+49', '+881'] }, hands.clock.now())
  t.same(refusalIn(await call({ phoneNumber: '+4312345678' })), [400, 'VALIDATION_FAILED', 'phoneNumber'])
  t.equal((await call({ phoneNumber: '+8811234567' })).status, 200)
  t.equal((await call({})).status, 200, 'a call without a number fails later')
  t.equal(
    (await get('phone-calls')).json.data.filter(({ direction }: { direction: string }) => direction === 'outbound')
      .length,
    3,
  )
})

test('a phone call tells the trunk that carries it', async (t) => {
  const seeded = await openSeededApi(t)
  const { own, sql } = seeded
  const { get, post } = verbsOf(seeded)
  const trunkId = (await post('trunks', { name: 'Out' })).json.id
  const callId = await insertCall(sql, own.id, own.worker.id, { transport: 'sip_trunk', trunkId })
  t.equal((await get(`phone-calls/${callId}`)).json.trunkId, trunkId)
  t.match((await get('phone-calls')).json.data, [{ id: String }, { id: String }])
  t.ok((await get('phone-calls')).json.data.some((call: { trunkId?: string }) => call.trunkId === trunkId))
  t.notOk('trunkId' in (await get(`phone-calls/${own.callId}`)).json)
})
