/** Rows of trunks: sealed passwords, settings that go together, whose calls go their way. */
import { createSecretKey, randomBytes } from 'node:crypto'
import { test } from 'tap'
import { passwordPlace } from '../../store/trunks.ts'
import { isNetwork } from '../../net/networks.ts'
import { TrunkChange, TrunkRequest, trunkStateOf } from '../../model/trunk.ts'
import { createSecretBox } from '../../store/secret-box.ts'
import { noteCarrier } from '../../store/telephony.ts'
import { writeTrunkState } from '../../store/trunk-states.ts'
import { createTrunks } from '../../store/trunks.ts'
import { createWorker } from '../../store/workers.ts'
import { blockedQueries } from '../scenes/blocked-queries.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { refusalOf } from '../scenes/refusal.ts'
import { createTenant, newId } from '../scenes/tenant.ts'

test('trunks', async (t) => {
  const { sql } = await openTestDatabase(t)
  const box = createSecretBox(createSecretKey(randomBytes(32)))
  const clock = createHandClock()
  const trunks = createTrunks({ sql, box, clock, newId })
  const { accountId, workerId } = await createTenant(sql)
  const other = await createTenant(sql, { slug: 'other' })
  const passwordOf = async (id: string) => {
    const [row] = await sql<{ password: string | null; row: string }[]>`
      select password, trunks::text as row from trunks where id = ${id}`
    return { sealed: row?.password ?? null, row: row?.row ?? '' }
  }

  await t.test('a trunk is a name; both directions and active without a word', async (t) => {
    const trunk = await trunks.create(accountId, { name: 'Plain' })
    const { id, ...told } = trunk
    const time = new Date(clock.now()).toISOString()
    const defaults = { direction: 'both', isActive: true, passwordSet: false, workerIds: [] }
    t.same(told, { accountId, name: 'Plain', ...defaults, createdAt: time, updatedAt: time })
    t.same(await trunks.find(accountId, id as never), trunk)
  })

  await t.test('passwords are sealed, kept when absent, replaced, and taken away by null; none is told', async (t) => {
    const secret = 'correct horse battery'
    const { id, ...told } = await trunks.create(accountId, { name: 'Carrier', username: 'u', password: secret })
    const trunkId = id as Parameters<typeof trunks.find>[1]
    t.notMatch(JSON.stringify(told), secret)
    t.equal(told.passwordSet, true)
    const first = await passwordOf(id)
    const place = passwordPlace({ accountId, id: trunkId })
    t.equal(box.open(first.sealed ?? '', place), secret)
    t.notMatch(first.row, secret)
    t.match(await trunks.change(accountId, trunkId, { name: 'Renamed', password: undefined }), { passwordSet: true })
    t.equal((await passwordOf(id)).sealed, first.sealed)
    t.match(await trunks.change(accountId, trunkId, { password: 'second' }), { passwordSet: true, name: 'Renamed' })
    t.equal(box.open((await passwordOf(id)).sealed ?? '', place), 'second')
    t.match(await trunks.change(accountId, trunkId, { password: null }), { passwordSet: false, username: 'u' })
    t.equal((await passwordOf(id)).sealed, null)
    t.notMatch(JSON.stringify(await trunks.list(accountId)), /"password"|second/)
  })

  await t.test('registering needs a username and a gateway, whichever change takes one away', async (t) => {
    const gateways = [{ host: 'sip.example.com', port: 5061, transport: 'tls' as const }]
    const lonely = ['VALIDATION_FAILED', 'register']
    for (const settings of [{}, { username: 'u' }, { gateways }, { gateways: [], username: 'u' }])
      t.same(await refusalOf(trunks.create(accountId, { name: 'x', register: true, ...settings })), lonely)
    const { id } = await trunks.create(accountId, { name: 'Registered', register: true, gateways, username: 'u' })
    const change = (change: TrunkChange) => trunks.change(accountId, id as never, change)
    t.same(await refusalOf(change({ username: null })), lonely)
    t.same(await refusalOf(change({ gateways: [], name: 'Not' })), lonely)
    t.match(await trunks.find(accountId, id as never), { name: 'Registered', username: 'u', gateways })
    const quiet = await change({ register: false, username: null })
    t.notOk(quiet && 'username' in quiet, 'a null is not stored')
    t.same(quiet?.gateways, gateways, 'and the other settings stay')
  })

  await t.test('who is to show or to prove something needs a username, and a password', async (t) => {
    const create = (settings: object) => trunks.create(accountId, { name: 'x', ...settings })
    t.same(await refusalOf(create({ callerId: 'username' })), ['VALIDATION_FAILED', 'callerId'])
    for (const settings of [{}, { username: 'u' }, { password: 'p' }])
      t.same(await refusalOf(create({ authenticateInbound: true, ...settings })), [
        'VALIDATION_FAILED',
        'authenticateInbound',
      ])
    const both = { callerId: 'username', authenticateInbound: true, username: 'u', password: 'p', domain: 'x.example' }
    const { id } = await create(both)
    t.match(await trunks.find(accountId, id as never), { callerId: 'username', authenticateInbound: true })
    const change = (change: TrunkChange) => trunks.change(accountId, id as never, change)
    t.same(await refusalOf(change({ password: null })), ['VALIDATION_FAILED', 'authenticateInbound'])
    t.same(await refusalOf(change({ username: null })), ['VALIDATION_FAILED', 'callerId', 'authenticateInbound'])
    t.match(await change({ name: 'y' }), { passwordSet: true }, 'a password that is not named is there')
    t.match(await change({ password: null, authenticateInbound: false }), { passwordSet: false })
  })

  await t.test('addresses that may deliver follow the settings', async (t) => {
    const allowedAddresses = ['203.0.113.7/24', '2001:db8::/32', '::ffff:198.51.100.0/120', '::1', '203.0.113.7/24']
    const gateways = [{ host: '192.0.2.1', port: 5080 }, { host: '[2001:db8::5]' }, { host: 'sip.example.com' }]
    const { id } = await trunks.create(accountId, { name: 'Addressed', allowedAddresses, gateways })
    const addresses = async () =>
      (await sql<{ network: string }[]>`select network::text from trunk_addresses where trunk_id = ${id}`)
        .map(({ network }) => network)
        .toSorted()
    const hosts = ['192.0.2.1/32', '2001:db8::5/128']
    t.same(await addresses(), [...hosts, '198.51.100.0/24', '2001:db8::/32', '203.0.113.0/24', '::1/128'].toSorted())
    await trunks.change(accountId, id as never, { allowedAddresses: [] })
    t.same(await addresses(), hosts)
    await trunks.change(accountId, id as never, { name: 'z' })
    t.same(await addresses(), hosts)
    await trunks.remove(accountId, id as never)
    t.same(await addresses(), [])
  })

  await t.test('whatever is taken for an address or a network, the database takes too', async (t) => {
    const taken = [
      '0.0.0.0/0',
      '::/0',
      '1.2.3.4/32',
      '::1.2.3.4',
      '::ffff:1.2.3.4',
      '2001:DB8::a',
      'fe80::/10',
      '1::',
      '::ffff:0:0/95',
    ]
    for (const address of taken) {
      t.ok(isNetwork(address), address)
      t.ok(await trunks.create(accountId, { name: address, allowedAddresses: [address] }))
    }
    for (const address of ['fe80::1%eth0', '1.2.3.4/033', '01.2.3.4', '::/129', '1.2.3.4/'])
      t.notOk(isNetwork(address), address)
  })

  await t.test(
    'an account opens its trunk to no network that is wider than a carrier, the operator to any',
    async (t) => {
      const wide = [
        '0.0.0.0/0',
        '10.0.0.0/15',
        '::/0',
        '2001:db8::/47',
        '::ffff:0:0/96',
        '64:ff9b::/96',
        '::ffff:1.0.0.0/111',
      ]
      const narrow = [
        '10.0.0.0/16',
        '2001:db8::/48',
        '::ffff:1.0.0.0/112',
        '192.0.2.1',
        '2001:db8::1',
        'sip.example.com',
      ]
      const create = (allowedAddresses: string[]) =>
        trunks.create(accountId, { name: 'x', allowedAddresses }, 'account')
      for (const network of wide)
        t.same(await refusalOf(create(['192.0.2.1', network])), ['VALIDATION_FAILED', 'allowedAddresses.1'], network)
      const { id } = await create(narrow)
      const change = (change: TrunkChange) => trunks.change(accountId, id as never, change, 'account')
      t.same(await refusalOf(change({ allowedAddresses: wide })), [
        'VALIDATION_FAILED',
        ...wide.map((_, index) => `allowedAddresses.${index}`),
      ])
      t.match(await trunks.find(accountId, id as never), { allowedAddresses: narrow }, 'and nothing was changed')
      await trunks.change(accountId, id as never, { allowedAddresses: ['10.0.0.0/8'] })
      t.match(await change({ name: 'y', allowedAddresses: ['192.0.2.1', '10.0.0.1/8'] }), { name: 'y' }, 'it may stay')
      t.match(await change({ allowedAddresses: [] }), { allowedAddresses: [] })
      t.match(
        await refusalOf(change({ allowedAddresses: ['10.0.0.0/8'] })),
        ['VALIDATION_FAILED'],
        'and does not come back',
      )
    },
  )

  await t.test('workers are replaced whole, once each, and must be of the account', async (t) => {
    const second = await createWorker(sql, { accountId, name: 'Second', language: 'en', newId, now: 1 })
    const foreign = { name: 'x', workerIds: [workerId, other.workerId] }
    t.same(await refusalOf(trunks.create(accountId, foreign)), ['VALIDATION_FAILED', 'workerIds.1'])
    const { id, workerIds } = await trunks.create(accountId, { name: 'x', workerIds: [workerId, workerId] })
    t.same(workerIds, [workerId])
    const change = (change: TrunkChange) => trunks.change(accountId, id as never, change)
    t.same((await change({ workerIds: [second.id] }))?.workerIds, [second.id])
    t.same((await change({ name: 'y' }))?.workerIds, [second.id])
    t.same(await refusalOf(change({ name: 'z', workerIds: [other.workerId] })), ['VALIDATION_FAILED', 'workerIds.0'])
    t.match(await change({ workerIds: [] }), { name: 'y', workerIds: [] })
  })

  await t.test('more changes at once than there are connections do not wait for each other in a ring', async (t) => {
    const { id } = await trunks.create(accountId, { name: 'Busy' })
    const settings = Array.from({ length: 25 }, (_, index): TrunkChange =>
      index % 2 === 0 ? { numberPrefix: '00', workerIds: [workerId] } : { realm: 'r', workerIds: [workerId] },
    )
    await Promise.all(settings.map((change) => trunks.change(accountId, id as never, change)))
    t.match(await trunks.find(accountId, id as never), { numberPrefix: '00', realm: 'r', workerIds: [workerId] })
  })

  await t.test('of two changes at once each sees what the other left', async (t) => {
    const { id } = await trunks.create(accountId, { name: 'Raced' })
    const locked = Promise.withResolvers<void>()
    const release = Promise.withResolvers<void>()
    const holding = sql.begin(async (tx) => {
      await tx`select from trunks where id = ${id} for update`
      locked.resolve()
      await release.promise
    })
    await locked.promise
    const changes = [{ numberPrefix: '00' }, { realm: 'r' }].map((change) =>
      trunks.change(accountId, id as never, change),
    )
    await blockedQueries(sql, 2)
    release.resolve()
    await Promise.all([holding, ...changes])
    t.match(await trunks.find(accountId, id as never), { numberPrefix: '00', realm: 'r' })
  })

  await t.test(
    'a trunk is deleted while a call of it writes its last steps, and neither waits for the other in a ring',
    async (t) => {
      const { id } = await trunks.create(accountId, { name: 'Ending' })
      const callId = newId<'call'>()
      await sql`
      insert into calls (id, account_id, worker_id, session_id, direction, transport, progress, snapshot, trunk_id)
      values (${callId}, ${accountId}, ${workerId}, 's', 'inbound', 'sip_trunk', 'in_progress', '{}', ${id})`
      await sql`
      insert into call_refusals (id, account_id, trunk_id, direction, reason, details, first_at, last_at)
      values (${newId()}, ${accountId}, ${id}, 'inbound', 'malformed', '', now(), now())`
      const [held, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      // As the step that ends a call: its row is written more than once in one transaction.
      const ending = sql.begin(async (tx) => {
        await tx`update calls set version = version + 1 where id = ${callId}`
        held.resolve()
        await release.promise
        await tx`update calls set progress = 'completed' where id = ${callId}`
        await tx`update calls set outcome = 'completed' where id = ${callId}`
        await tx`update call_refusals set count = count + 1 where trunk_id = ${id}`
      })
      await held.promise
      const removing = trunks.remove(accountId, id as never)
      await blockedQueries(sql, 1)
      release.resolve()
      await ending
      t.equal(await removing, true)
      t.match(await sql`select outcome, trunk_id from calls where id = ${callId}`, [
        { outcome: 'completed', trunkId: null },
      ])
      t.match(await sql`select trunk_id from call_refusals where account_id = ${accountId}`, [{ trunkId: null }])
      await noteCarrier(sql, callId, id as never)
      t.match(
        await sql`select trunk_id from calls where id = ${callId}`,
        [{ trunkId: null }],
        'nothing to be linked to',
      )
    },
  )

  await t.test('what a registrar says of itself is stored, control characters or not', async (t) => {
    const { id } = await trunks.create(accountId, { name: 'Told' })
    const nodeId = newId<'node'>()
    await sql`
      insert into trunk_states (trunk_id, account_id, keeper, kept_until)
      values (${id}, ${accountId}, ${nodeId}, now() + interval '1 h')`
    const state = { registered: false, registration: 'Forb\0idden \ud800', gateways: [] } as never
    await writeTrunkState(sql, { nodeId, trunkId: id as never, state, now: clock.now() })
    t.match(await sql`select state from trunk_states where trunk_id = ${id}`, [
      { state: { registration: /^Forbidden/ } },
    ])
  })

  await t.test('another account neither sees, changes nor removes it', async (t) => {
    const { id } = await trunks.create(accountId, { name: 'Own' })
    const trunkId = id as never
    t.equal(await trunks.find(other.accountId, trunkId), null)
    t.equal(await trunks.change(other.accountId, trunkId, { name: 'Not', workerIds: ['nobody'] }), null)
    t.equal(await trunks.remove(other.accountId, trunkId), false)
    t.same(await trunks.list(other.accountId), [])
    t.match(await trunks.find(accountId, trunkId), { name: 'Own' })
    t.equal(await trunks.remove(accountId, trunkId), true)
    t.equal(await trunks.remove(accountId, trunkId), false)
  })
})

test('what cannot be a trunk is refused with its path', (t) => {
  const name = 'x'
  for (const [path, request] of [
    ['name', {}],
    ['name', { name: '' }],
    ['direction', { name, direction: 'sideways' }],
    ['gateways.0.host', { name, gateways: [{ host: 'sip example' }] }],
    ['gateways.0.port', { name, gateways: [{ host: 'a', port: 0 }] }],
    ['gateways.0.transport', { name, gateways: [{ host: 'a', transport: 'sctp' }] }],
    ['allowedAddresses.0', { name, allowedAddresses: ['203.0.113.0/33'] }],
    ['allowedAddresses.1', { name, allowedAddresses: ['2001:db8::/32', 'carrier example'] }],
    ['codecs.0', { name, codecs: ['G729'] }],
    ['headers.Via', { name, headers: { Via: 'x' } }],
    ['headers.f', { name, headers: { f: 'x' } }],
    ['headers.X-Note', { name, headers: { 'X-Note': 'a\r\nVia: b' } }],
    ['numberPrefix', { name, numberPrefix: '00 49' }],
    ['maxConcurrentCalls', { name, maxConcurrentCalls: 1.5 }],
    ['password', { name, password: '' }],
  ] as const) {
    const { success, error } = TrunkRequest.safeParse(request)
    t.equal(success, false, JSON.stringify(request))
    t.same(
      error?.issues.map((issue) => issue.path.join('.')),
      [path],
    )
  }
  t.ok(
    TrunkRequest.safeParse({ name, headers: { 'X-Note': 'a' }, allowedAddresses: ['203.0.113.0/24', '::1'] }).success,
  )
  t.end()
})

test('the state of a trunk stands to its settings of now', (t) => {
  const gateway = (host: string, port: number | null, reachable: boolean | null) => ({
    host,
    port,
    reachable,
    details: reachable === null ? null : '200 OK',
    checkedAt: null,
  })
  const told = {
    registration: 'registered' as const,
    registrationDetails: '200 OK',
    registeredUntil: '2026-11-21T12:00:00.000Z',
    gateways: [gateway('a', null, true), gateway('b', 5080, false), gateway('gone', null, true)],
    updatedAt: '2026-11-21T11:00:00.000Z',
  }
  const settings = {
    register: true,
    username: 'u',
    gateways: [{ host: 'b', port: 5080 }, { host: 'a' }, { host: 'new' }],
  }
  const gateways = [gateway('b', 5080, false), gateway('a', null, true), gateway('new', null, null)]
  t.same(trunkStateOf(settings, told), { ...told, gateways })
  const plain = { registration: 'none', registrationDetails: null, registeredUntil: null }
  t.same(trunkStateOf({ ...settings, register: false }, told), { ...told, ...plain, gateways })
  t.same(trunkStateOf({}, null), { ...plain, gateways: [], updatedAt: null })
  t.end()
})
