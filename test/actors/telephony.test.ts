/** The telephone edge's port: whose call is this, may it come in or out, who looks after a trunk, and what is told of refusals. */
import t, { test } from 'tap'
import { createRetention } from '../../actors/rounds/retention.ts'
import { costlyDestinations, destinationRefusalOf } from '../../model/destination.ts'
import type { AccountId, CallId, TrunkId, WorkerId, NodeId } from '../../model/ids.ts'
import { CallRefusalQuery, type Refusal } from '../../model/telephony.ts'
import { changeAccountConfig } from '../../store/accounts.ts'
import { listAllRefusals, listRefusals } from '../../store/call-refusals.ts'
import { findWayOut } from '../../store/telephony.ts'
import { findTrunkState } from '../../store/trunk-states.ts'
import { changeWorker, createWorker } from '../../store/workers.ts'
import { connect, type Sql } from '../../store/sql.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { openNetwork } from '../scenes/postgres-network.ts'
import { createHandClock, type HandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRandom } from '../fake/random.ts'
import { addTrunk, clearBox, openTelephony } from '../scenes/telephony.ts'
import { createTenant, newId, type Tenant } from '../scenes/tenant.ts'

const keep = { deliveries: 30 * 24 * 3_600_000 }

const opened = openTestDatabase(t)
const minute = 60_000
const noGateways = { gateways: [] }

function createNode(sql: Sql, clock: HandClock = createHandClock()) {
  const log = createQuietLog()
  const begun: CallId[] = []
  let woken = 0
  const telephony = openTelephony(
    { sql, clock },
    {
      log,
      router: { route: async (callId) => (begun.push(callId), true) },
      wakeDeliveries: () => void (woken += 1),
    },
  )
  return { telephony, clock, log, begun, woken: () => woken }
}

let numbers = 4_930_000_000
async function createCalled(sql: Sql, maxConcurrentCalls?: number) {
  const tenant = await createTenant(sql, {
    slug: newId(),
    ...(maxConcurrentCalls !== undefined && { maxConcurrentCalls }),
  })
  const number = `+${(numbers += 1)}`
  await sql`update workers set inbound_phone_number = ${number} where id = ${tenant.workerId}`
  return { ...tenant, number }
}

async function insertCall(sql: Sql, { accountId, workerId }: Tenant, columns: Record<string, string | number | null>) {
  const id = newId<'call'>()
  const plain = { direction: 'outbound', transport: 'sip_trunk', progress: 'in_progress', createdAt: 1_000 }
  const row = { id, accountId, workerId, sessionId: 's', snapshot: sql.json({}), ...plain, ...columns }
  await sql`insert into calls ${sql(row)}`
  return id
}

test('calls that arrive in the moment in which the connection is lost are routed like any other', async (t) => {
  const { sql, server } = await opened
  const network = await openNetwork(t, server)
  const cut = connect({ server: network.server, applicationName: 'parley test', maxConnections: 3 })
  t.teardown(() => cut.end({ timeout: 1 }))
  const called = await createCalled(sql)
  await addTrunk(sql, called, { allowedAddresses: ['203.0.113.0/24'] })
  await cut`select 1`
  const left = network.cutAt('cross join lateral', 1)
  const { telephony } = createNode(cut)
  const arrivals = Array.from({ length: 20 }, (_, index) =>
    telephony.route({ address: `203.0.113.${index}`, called: [called.number], calling: null }),
  )
  for (const route of await Promise.all(arrivals)) t.match(route, { workerId: called.workerId })
  t.equal(left(), 0, 'it was lost')
})

test('route: who may deliver a call', async (t) => {
  const { sql } = await opened
  const { telephony } = createNode(sql)
  const from = (address: string, ...called: string[]) => telephony.route({ address, called, calling: null })

  await t.test(
    'networks and addresses that are allowed, and gateways that are addresses, come in without a word',
    async (t) => {
      const called = await createCalled(sql)
      const trunkId = await addTrunk(sql, called, {
        allowedAddresses: ['203.0.113.0/24', '2001:db8::/32', '::ffff:198.51.100.7'],
        gateways: [{ host: '192.0.2.9' }, { host: '[2001:db9::5]' }, { host: 'sip.carrier.example' }],
        username: 'u',
        password: 'secret',
      })
      const route = { workerId: called.workerId, toNumber: called.number, mustAuthenticate: false }
      const allowed = [
        '203.0.113.255',
        '2001:db8::77',
        '198.51.100.7',
        '::ffff:203.0.113.4',
        '192.0.2.9',
        '2001:db9::5',
      ]
      for (const address of allowed) {
        const found = await from(address, '+4930999', called.number)
        t.match(found, { ...route, trunk: { id: trunkId, accountId: called.accountId, password: 'secret' } }, address)
      }
      for (const address of ['203.0.114.1', '2001:dba::1', '192.0.2.10'])
        t.match(await from(address, called.number), { reason: 'unknown_source', sipStatus: 403 }, address)
      await sql`update trunks set config = config || '{"authenticateInbound": true}' where id = ${trunkId}`
      t.match(await from('203.0.113.9', called.number), { mustAuthenticate: true })
    },
  )

  await t.test(
    'without allowed addresses the password is asked of anybody; without either nobody comes in',
    async (t) => {
      const called = await createCalled(sql)
      const trunkId = await addTrunk(sql, called, { ...noGateways, username: 'u', password: 'p' })
      t.match(await from('192.0.2.77', called.number), { trunk: { id: trunkId }, mustAuthenticate: true })
      await sql`update trunks set password = null where id = ${trunkId}`
      t.match(await from('192.0.2.77', called.number), { reason: 'unknown_source', trunkId })
    },
  )

  await t.test(
    'of several that match: address before password, the better number, then the oldest trunk',
    async (t) => {
      const first = await createCalled(sql)
      const named = { accountId: first.accountId, name: 'Bob', language: 'en', inboundPhoneNumber: first.number }
      const second = { ...first, workerId: (await createWorker(sql, { ...named, newId, now: 1 })).id as WorkerId }
      const network = { ...noGateways, allowedAddresses: ['198.18.0.0/24'] }
      await addTrunk(sql, first, { ...noGateways, username: 'u', password: 'p' })
      t.match(await from('198.18.0.1', first.number), { workerId: first.workerId, mustAuthenticate: true })
      const young = await addTrunk(sql, second, network)
      t.match(await from('198.18.0.1', first.number), { trunk: { id: young }, mustAuthenticate: false })
      const old = await addTrunk(sql, first, network)
      await sql`update trunks set created_at = to_timestamp(5) where id = ${old}`
      t.match(await from('198.18.0.1', first.number), { trunk: { id: old } })
      const direct = await createCalled(sql)
      const own = await addTrunk(sql, direct, network)
      t.match(await from('198.18.0.1', direct.number, first.number), { trunk: { id: own }, toNumber: direct.number })
    },
  )

  await t.test('only active trunks that take calls in and have the worker count', async (t) => {
    const called = await createCalled(sql)
    const network = { ...noGateways, allowedAddresses: ['198.18.1.0/24'] }
    await addTrunk(sql, called, { ...network, direction: 'outbound' })
    await addTrunk(sql, called, { ...network, isActive: false })
    await addTrunk(sql, called, { ...network, workerIds: [] })
    t.match(await from('198.18.1.1', called.number), { reason: 'unknown_number' })
    await addTrunk(sql, called, { ...network, direction: 'inbound' })
    t.match(await from('198.18.1.1', called.number), { workerId: called.workerId })
  })
})

test('a number that takes calls for one account cannot be taken by another, whatever carrier they share', async (t) => {
  const { sql } = await opened
  const [owner, thief] = [await createCalled(sql), await createCalled(sql)]
  const [own, change] = [{ inboundPhoneNumber: thief.number }, { inboundPhoneNumber: owner.number }]
  await t.rejects(changeWorker(sql, { ...thief, change, now: 1 }), /takes calls for another account/)
  const fresh = { accountId: thief.accountId, name: 'Eve', language: 'en', newId, now: 1 }
  await t.rejects(createWorker(sql, { ...fresh, ...change }), /takes calls for another account/)
  await t.resolves(createWorker(sql, { ...fresh, ...own }), 'workers of one account may share theirs')
  t.ok(await changeWorker(sql, { ...owner, change: { ...change, name: 'Ada' }, now: 1 }), 'it stays what it is')
})

test('route: a refusal says to the account which rule failed, and to a stranger nothing', async (t) => {
  const { sql } = await opened
  const { telephony } = createNode(sql)
  const from = (address: string, ...called: string[]) => telephony.route({ address, called, calling: null })
  const called = await createCalled(sql)
  const trunkId = await addTrunk(sql, called, { ...noGateways, name: 'Main', allowedAddresses: ['198.18.2.1'] })
  const lonely = await createCalled(sql)

  const stranger = await from('100.64.9.9', called.number)
  t.match(stranger, { reason: 'unknown_source', sipStatus: 403, accountId: called.accountId, trunkId })
  t.match(stranger, {
    details: /worker “Ada” allows 100\.64\.9\.9;.*add it to allowedAddresses of the trunk “Main”/,
  })
  t.match(await from('100.64.9.9', '+4930404'), { reason: 'unknown_source', sipStatus: 403, accountId: null })
  for (const address of ['100.64.9.9', 'fe80::9%eth0', '', 'nowhere'])
    t.match(await from(address), { reason: 'unknown_source', sipStatus: 403, accountId: null }, address)
  t.match(await from('100.64.9.9', lonely.number), { sipStatus: 403, accountId: lonely.accountId })

  const known = await from('198.18.2.1', '+4930404')
  t.match(known, { reason: 'unknown_number', sipStatus: 404, accountId: called.accountId, trunkId })
  t.match(known, { details: /No worker has the number \(\+4930404\); set it as inboundPhoneNumber/ })
  const elsewhere = await from('198.18.2.1', lonely.number)
  t.match(elsewhere, { sipStatus: 404, accountId: lonely.accountId, details: /no active trunk that takes calls in/ })
  const second = await createWorker(sql, {
    accountId: called.accountId,
    name: 'Bob',
    language: 'en',
    inboundPhoneNumber: '+4930777',
    newId,
    now: 1,
  })
  t.match(await from('198.18.2.1', '+4930777'), {
    reason: 'unknown_number',
    details: /“Bob”.*add the worker to workerIds of the trunk “Main”/,
  })
  await changeWorker(sql, {
    accountId: called.accountId,
    workerId: second.id as never,
    change: { inboundPhoneNumber: null },
    now: 2,
  })
  await addTrunk(sql, lonely, { ...noGateways, allowedAddresses: ['198.18.2.0/24'] })
  t.match(await from('198.18.2.1', '+4930404'), { sipStatus: 404, accountId: null, trunkId: null }, 'a carrier of two')

  await sql`update workers set is_active = false where id = ${called.workerId}`
  t.match(await from('198.18.2.1', called.number), { reason: 'worker_inactive', sipStatus: 480, trunkId })
  t.match(await from('100.64.9.9', called.number), { sipStatus: 403 }, 'which a stranger does not learn')
})

test('receive: places are taken one after the other, and the call is born on its trunk', async (t) => {
  const { sql } = await opened
  const { telephony, clock, begun, woken } = createNode(sql)
  const called = await createCalled(sql, 3)
  const network = { ...noGateways, allowedAddresses: ['198.18.3.1'] }
  const trunkId = await addTrunk(sql, called, { ...network, maxConcurrentCalls: 2, maxCallsPerSecond: 2 })
  const arrive = async () => {
    const route = await telephony.route({ address: '198.18.3.1', called: [called.number], calling: null })
    if ('reason' in route) throw new Error(route.details)
    return telephony.receive({ route, fromNumber: '+4940111', address: '198.18.3.1' })
  }
  const idOf = (received: Awaited<ReturnType<typeof arrive>>) =>
    'callId' in received ? received.callId : ('' as CallId)
  const end = (callId: CallId) => sql`update calls set outcome = 'completed', finished = true where id = ${callId}`
  const settle = (limits: object) =>
    sql`update trunks set config = config || ${sql.json(limits as never)} where id = ${trunkId}`

  const arrived = await Promise.all([arrive(), arrive(), arrive()])
  const in_ = arrived.map(idOf).filter((id) => id !== '')
  t.equal(in_.length, 2, 'of three at once two')
  t.match(
    arrived.filter((one) => 'reason' in one),
    [{ reason: 'trunk_at_capacity', sipStatus: 486, trunkId }],
  )
  t.match(
    await sql`select direction, transport, from_number, to_number, trunk_id, outcome from calls where id = any(${in_})`,
    [
      { direction: 'inbound', transport: 'sip_trunk', fromNumber: '+4940111', toNumber: called.number, trunkId },
      { trunkId },
    ],
  )
  t.equal(woken(), 2)
  t.equal(await telephony.begin(in_[0] as CallId), true)
  t.same(begun, [in_[0]])

  await end(in_[0] as CallId)
  t.match(await arrive(), { reason: 'too_many_calls_per_second', sipStatus: 503 }, 'a place, but two in this second')
  clock.advance(1_000)
  t.match(await arrive(), { callId: String })
  await settle({ maxConcurrentCalls: 10, maxCallsPerSecond: 1000 })
  t.match(await arrive(), { callId: String })
  t.match(await arrive(), { reason: 'account_at_capacity', sipStatus: 486, details: /3 calls running/ })
  await changeAccountConfig(sql, called.accountId, { maxConcurrentCalls: null }, 1)
  await sql`update workers set max_concurrent_calls = 3 where id = ${called.workerId}`
  t.match(await arrive(), { reason: 'worker_at_capacity', sipStatus: 486, details: /“Ada” has 3 calls running/ })
  await sql`update workers set is_active = false, max_concurrent_calls = null where id = ${called.workerId}`
  const late = { trunk: { id: trunkId, accountId: called.accountId, name: 'x', settings: {}, password: null } } as const
  const route = { ...late, workerId: called.workerId, toNumber: called.number, mustAuthenticate: false }
  const call = { route, fromNumber: null, address: '198.18.3.1' }
  t.match(await telephony.receive(call), { reason: 'worker_inactive', sipStatus: 480 })
})

test('receive: a call that other nodes are to run is written as the one’s that is chosen, and refused where nobody runs any', async (t) => {
  const { sql } = await opened
  let chosen: NodeId | null = newId<'node'>()
  const router = { route: async () => true, birthplace: () => chosen }
  const telephony = openTelephony({ sql, clock: createHandClock() }, { router })
  t.teardown(() => telephony.close())
  const called = await createCalled(sql)
  const id = await addTrunk(sql, called, noGateways)
  const trunk = { id, accountId: called.accountId, name: 'Carrier', settings: {}, password: null } as const
  const route = { trunk, workerId: called.workerId, toNumber: called.number, mustAuthenticate: false }
  const arrive = () => telephony.receive({ route, fromNumber: null, address: '198.18.7.1' })
  const received = await arrive()
  const callId = 'callId' in received ? received.callId : ''
  const rows = await sql`select owner, epoch from calls where id = ${callId}`
  t.same([...rows], [{ owner: chosen, epoch: 0 }], 'it has yet to claim it')
  chosen = null
  t.match(await arrive(), { reason: 'node_overloaded', sipStatus: 503, retryAfterSeconds: 5, trunkId: id })
  t.equal((await sql`select from calls where account_id = ${called.accountId}`).count, 1)
})

test('receive: calls that nobody acknowledges leave places to others, of each address and each trunk', async (t) => {
  const { sql } = await opened
  const { telephony } = createNode(sql)
  const called = await createCalled(sql, 100)
  const allowedAddresses = ['198.18.5.0/24', '2001:db8:5::/48']
  const [one, other] = [
    await addTrunk(sql, called, { name: 'one', ...noGateways, allowedAddresses }),
    await addTrunk(sql, called, { name: 'other', ...noGateways, allowedAddresses }),
  ]
  const arrive = (trunkId: TrunkId, address: string) => {
    const trunk = { id: trunkId, accountId: called.accountId, name: 'Carrier', settings: {}, password: null } as const
    const route = { trunk, workerId: called.workerId, toNumber: called.number, mustAuthenticate: false }
    return telephony.receive({ route, fromNumber: null, address })
  }
  const taken: CallId[] = []
  for (let count = 0; count < 100; count += 1) {
    const received = await arrive(count % 2 === 0 ? one : other, '198.18.5.1')
    if ('callId' in received) taken.push(received.callId)
  }
  t.equal(taken.length, 75, 'of one address, whichever trunk they say')
  t.match(await arrive(one, '198.18.5.1'), {
    reason: 'too_many_unacknowledged',
    sipStatus: 503,
    details: /75 calls from 198\.18\.5\.1 ring or wait for their ACK/,
    trunkId: one,
  })
  t.match(await arrive(one, '198.18.5.2'), { callId: String }, 'another address has room')
  await sql`update calls set progress = 'in_progress' where id = ${taken[0] ?? ''}`
  t.match(await arrive(one, '198.18.5.1'), { callId: String }, 'the ACK gives its place back')
  await sql`update calls set outcome = 'failed', finished = true where id = ${taken[1] ?? ''}`
  t.match(await arrive(one, '198.18.5.1'), { callId: String }, 'and so does the end')
  t.match(await arrive(one, '198.18.5.1'), { reason: 'too_many_unacknowledged' })

  await sql`update calls set outcome = 'failed', finished = true where account_id = ${called.accountId}`
  for (let count = 0; count < 76; count += 1) {
    const received = await arrive(one, `198.18.5.${10 + count}`)
    t.equal('callId' in received, count < 75, `call ${count} of one trunk, each from an address of its own`)
  }
  t.match(await arrive(other, '198.18.5.99'), { callId: String }, 'another trunk has room')
  await sql`update calls set outcome = 'failed', finished = true where account_id = ${called.accountId}`
  for (let count = 0; count < 75; count += 1) await arrive(count % 2 === 0 ? one : other, `2001:db8:5:1::${count}`)
  t.match(await arrive(one, '2001:db8:5:1::ffff'), { reason: 'too_many_unacknowledged' }, 'a /64 is one address')
})

test('waysOut: the chosen trunk first, then as they were made, those left out that have no room', async (t) => {
  const { sql } = await opened
  const { telephony } = createNode(sql)
  const tenant = await createTenant(sql, { slug: newId() })
  const callId = await insertCall(sql, tenant, {})
  const ways = async (id = callId) => {
    const found = await telephony.waysOut(tenant.accountId, tenant.workerId, id)
    return 'reason' in found ? found : (found as readonly { name: string }[]).map(({ name }) => name)
  }
  t.match(await ways(), { reason: 'no_trunk', accountId: tenant.accountId })
  t.match(await findWayOut(sql, tenant.accountId, tenant.workerId), { trunks: 0, carrying: 0 })
  await addTrunk(sql, tenant, { name: 'in', direction: 'inbound', ...noGateways })
  await addTrunk(sql, tenant, { name: 'bare', ...noGateways })
  await addTrunk(sql, tenant, { name: 'off', isActive: false })
  await addTrunk(sql, tenant, { name: 'other', workerIds: [] })
  t.match(await ways(), { reason: 'no_trunk' })
  const shown = { trunks: 3, ofWorker: 2, dialing: 0 }
  t.match(await findWayOut(sql, tenant.accountId, tenant.workerId), { ...shown, carrying: 0 }, 'nothing can carry')
  await addTrunk(sql, tenant, { name: 'takes', direction: 'inbound', ...noGateways, allowedAddresses: ['198.18.4.1'] })
  t.match(await findWayOut(sql, tenant.accountId, tenant.workerId), { ofWorker: 3, dialing: 0, carrying: 1 })

  const first = await addTrunk(sql, tenant, { name: 'first', maxConcurrentCalls: 1 })
  const second = await addTrunk(sql, tenant, { name: 'second', direction: 'outbound', password: 'p' })
  t.same(await ways(), ['first', 'second'])
  const carried = await insertCall(sql, tenant, { trunkId: first })
  t.same(await ways(), ['second'])
  t.same(await ways(carried), ['first', 'second'], 'its own trunk is not full for a call')
  await telephony.carriedBy(callId, second)
  t.match(await sql`select trunk_id from calls where id = ${callId}`, [{ trunkId: second }])
  t.same(await ways(), ['second'])
  await sql`update calls set outcome = 'completed' where id = ${carried}`
  t.same(await ways(), ['second', 'first'])
  await sql`update trunks set config = config || '{"maxConcurrentCalls": 0}' where account_id = ${tenant.accountId}`
  t.match(await ways(newId<'call'>()), { reason: 'trunk_at_capacity', details: /“first”, “second”/ })

  const stranger = await createTenant(sql, { slug: newId() })
  await telephony.carriedBy(callId, await addTrunk(sql, stranger))
  t.match(await sql`select trunk_id from calls where id = ${callId}`, [{ trunkId: second }], "never another account's")

  await sql`update trunks set config = config - 'maxConcurrentCalls' where account_id = ${tenant.accountId}`
  const number = '+493055512345'
  await sql`update calls set from_number = ${number} where id = ${callId}`
  t.same(await ways(), ['second', 'first'], "a number that is nobody's")
  await sql`insert into account_numbers (number, account_id, assigned_at) values (${number}, ${stranger.accountId}, now())`
  t.match(await ways(), { reason: 'number_of_another_account', accountId: tenant.accountId }, 'it changed hands')
  await sql`update account_numbers set account_id = ${tenant.accountId} where number = ${number}`
  t.same(await ways(), ['second', 'first'], 'its own')
})

test('a password that does not open leaves its trunk out and nothing else', async (t) => {
  const { sql } = await opened
  const node = createNode(sql)
  const tenant = await createTenant(sql, { slug: newId() })
  const box = {
    ...clearBox,
    open: (sealed: string, place: string) => {
      if (sealed.includes('bad')) throw new Error('altered')
      return clearBox.open(sealed, place)
    },
  }
  const broken = openTelephony({ sql, clock: node.clock }, { log: node.log, box, refusalOf: async () => null })
  await addTrunk(sql, tenant, { name: 'bad', password: 'bad' })
  await addTrunk(sql, tenant, { name: 'good', password: 'good' })
  const ways = await broken.waysOut(tenant.accountId, tenant.workerId, newId<'call'>())
  t.match(ways, [{ name: 'good', password: 'good' }])
  t.match(node.log.lines, [{ level: 'error' }])
  t.notMatch(JSON.stringify(node.log.lines), /sealed/)
})

test('destinations: only beginnings that are allowed; costly ones only when they are named', (t) => {
  const refused = (number: string, allowed?: string[]) => destinationRefusalOf(allowed, number) !== null
  for (const [number, allowed, isRefused] of [
    ['+4930123456', undefined, false],
    ['+4930123456', ['+49'], false],
    ['+4930123456', ['+43', '+4930'], false],
    ['+4930123456', ['+43'], true],
    ['+4930123456', [], true],
    ['+88216123456', undefined, true],
    ['+88216123456', ['+8'], true],
    ['+88216123456', ['+88'], true],
    ['+88216123456', ['+882'], false],
    ['+88216123456', ['+88216'], false],
    ['+19005551234', ['+1'], true],
    ['+19005551234', ['+1', '+1900'], false],
    ['+12125551234', ['+1'], false],
    // The zero that people write in brackets: carriers leave it out.
    ['+4407012345678', undefined, true],
    ['+44007012345678', ['+44'], true],
    ['+490900123456', ['+49'], true],
    ['+44020123456', undefined, false],
    ['030123456', undefined, true],
    ['sip:+4930123456@x', ['+49'], true],
  ] as const)
    t.equal(refused(number, allowed && [...allowed]), isRefused, `${number} with ${allowed?.join() ?? 'nothing'}`)
  for (const prefix of costlyDestinations) t.ok(refused(`${prefix}1234567`), prefix)

  const random = createRandom(20261121)
  const digits = (count: number) => Array.from({ length: count }, () => random.below(10)).join('')
  for (let round = 0; round < 2_000; round++) {
    const prefix = random.pick([...costlyDestinations, `+${1 + random.below(9)}${digits(random.below(4))}`])
    const number = `${prefix}${digits(8)}`.slice(0, 16)
    const named = !refused(number, [prefix])
    if (!named && !costlyDestinations.some((costly) => number.startsWith(costly) && !prefix.startsWith(costly)))
      t.fail(`${number} is named by ${prefix}`)
    if (!refused(number) && refused(number, [`+${number.slice(1, 3)}`, prefix])) t.fail(`${number} is open to all`)
  }
  t.end()
})

test('refusalOf: the destinations of the account, and the minutes of the day', async (t) => {
  const { sql } = await opened
  const clock = createHandClock(Date.UTC(2026, 10, 21, 12))
  const { telephony } = createNode(sql, clock)
  const tenant = await createTenant(sql, { slug: newId() })
  const other = await createTenant(sql, { slug: newId() })
  const midnight = Date.UTC(2026, 10, 21)
  const ask = (number = '+4930123456') => telephony.refusalOf(tenant.accountId, number)
  const limits = (change: object) => changeAccountConfig(sql, tenant.accountId, change, 1)

  t.equal(await ask(), null)
  t.match(await ask('+8811234567'), {
    reason: 'destination_not_allowed',
    details: /\+881/,
    accountId: tenant.accountId,
  })
  await limits({ allowedDestinations: ['+49'] })
  t.match(await ask('+4312345678'), { reason: 'destination_not_allowed', details: /allowedDestinations/ })

  const talk = (columns: Record<string, string | number | null>, of: Tenant = tenant) => insertCall(sql, of, columns)
  await talk({ startedAt: midnight - 10 * minute, endedAt: midnight + 2 * minute })
  await talk({ startedAt: midnight - 30 * minute, endedAt: midnight - minute })
  await talk({ startedAt: midnight + 60 * minute, endedAt: midnight + 63 * minute })
  await talk({ startedAt: clock.now() - 4 * minute })
  await talk({ startedAt: clock.now() - 60 * minute, endedAt: clock.now(), direction: 'inbound' })
  await talk({ startedAt: clock.now() - 60 * minute, endedAt: clock.now() }, other)
  await talk({ endedAt: clock.now() })
  await limits({ dailyMinutes: 10 })
  t.equal(await ask(), null, '2 after midnight, 3, and 4 that run: 9 of 10')
  clock.advance(minute)
  t.match(await ask(), { reason: 'daily_minutes_used_up', details: /10 minutes/ }, 'and the running one goes on')
  t.match(await ask('+4312345678'), { reason: 'destination_not_allowed' })
  await limits({ dailyMinutes: 11 })
  t.equal(await ask(), null, 'a limit counts at once')
  await limits({ dailyMinutes: 0 })
  t.match(await ask(), { reason: 'daily_minutes_used_up' }, 'none at all')
  await limits({ dailyMinutes: null, allowedDestinations: null })
  t.equal(await ask('+4312345678'), null)
})

const refusal = (change: Partial<Refusal> = {}): Refusal => ({
  direction: 'inbound',
  reason: 'unknown_source',
  details: 'No trunk allows it.',
  sipStatus: 403,
  accountId: null,
  trunkId: null,
  callId: null,
  address: '203.0.113.9:5060',
  calling: 'sip:100@x',
  called: '+4930404',
  ...change,
})

test('refused calls: alike ones are one row with a count, in the log they are one line', async (t) => {
  const { sql } = await opened
  await sql`delete from call_refusals`
  const { telephony, clock, log } = createNode(sql)
  const tenant = await createTenant(sql, { slug: newId() })
  const trunkId = await addTrunk(sql, tenant)
  const own = { accountId: tenant.accountId, trunkId }
  for (let count = 0; count < 500; count++) telephony.refused(refusal({ ...own, address: `203.0.113.9:${count}` }))
  clock.advance(3_000)
  for (let count = 0; count < 500; count++) telephony.refused(refusal({ ...own, calling: `${count}` }))
  telephony.refused(refusal({ ...own, reason: 'trunk_at_capacity' }))
  await telephony.written()
  const list = (query: object = {}) => listRefusals(sql, tenant.accountId, CallRefusalQuery.parse(query))
  const { data } = await list()
  t.match(
    data.toSorted((a, b) => b.count - a.count),
    [
      { reason: 'unknown_source', count: 1_000, trunkId, address: '203.0.113.9:0', called: '+4930404' },
      { reason: 'trunk_at_capacity', count: 1 },
    ],
  )
  t.equal(Date.parse(data[0]?.lastAt ?? ''), clock.now())
  t.equal(log.lines.filter(({ message }) => message === 'a call was refused').length, 2)
  for (const { fields } of log.lines) t.notMatch(JSON.stringify({ ...fields, personal: null }), /203\.0\.113|4930404/)

  clock.advance(minute)
  telephony.refused(refusal(own))
  await telephony.written()
  t.match((await list()).data[0], { count: 1 }, 'the next minute is another row')
  t.equal((await list({ reason: 'trunk_at_capacity' })).data.length, 1)
  t.equal((await list({ direction: 'outbound' })).data.length, 0)
  t.equal((await list({ from: new Date(clock.now()).toISOString() })).data.length, 1)
  t.equal((await list({ to: new Date(clock.now()).toISOString() })).data.length, 2)
  const page = await list({ limit: 2 })
  const rest = await list({ limit: 2, cursor: page.nextCursor })
  t.same([...page.data, ...rest.data], (await list()).data)
  t.equal(rest.nextCursor, null)
})

test('refused calls: a scanner fills neither memory nor table, and what is broken is written all the same', async (t) => {
  const { sql } = await opened
  await sql`delete from call_refusals`
  const { telephony, clock, log } = createNode(sql)
  const gone = await createTenant(sql, { slug: newId() })
  const trunkId = await addTrunk(sql, gone)
  telephony.refused(refusal({ accountId: gone.accountId, called: 'of nobody now' }))
  telephony.refused(refusal({ trunkId, called: 'a\0b\ud83d' }))
  await sql`delete from trunks where id = ${trunkId}`
  await sql`delete from workers where account_id = ${gone.accountId}`
  await sql`delete from accounts where id = ${gone.accountId}`
  for (let count = 0; count < 5_000; count++)
    telephony.refused(refusal({ called: `${count}`, details: 'x'.repeat(9_999) }))
  await telephony.written()
  clock.advance(2 * minute)
  await telephony.written()
  for (let count = 0; count < 5; count++) telephony.refused(refusal({ called: `later ${count}` }))
  await telephony.written()
  const rows = await listAllRefusals(sql, { accountId: null, limit: 10_000 })
  t.equal(rows.length, 1_000)
  t.match(
    rows
      .slice(0, 5)
      .map(({ called }) => called ?? '')
      .toSorted(),
    [/later 0/, /later 1/, /later 2/, /later 3/, /later 4/],
  )
  t.ok(rows.every(({ details }) => details.length <= 500))
  t.equal(log.lines.filter(({ level }) => level === 'error').length, 0)
  t.ok(log.lines.some(({ fields }) => fields['dropped'] === 5_000 - 998))

  const retention = createRetention({ sql, clock, log, keep })
  await retention.idle()
  t.equal((await listAllRefusals(sql, { accountId: null, limit: 10 })).length, 10)
  clock.advance(31 * 24 * 60 * minute)
  await retention.idle()
  await retention.close()
  t.same(await listAllRefusals(sql, { accountId: null, limit: 10 }), [])
})

test('refused calls are not lost while the database is away, nor at the end', async (t) => {
  const { sql } = await opened
  await sql`delete from call_refusals`
  const { telephony, clock, log } = createNode(sql)
  await sql`alter table call_refusals rename to call_refusals_away`
  telephony.refused(refusal())
  await telephony.written()
  t.match(
    log.lines.filter(({ level }) => level === 'error'),
    [{ message: /could not be written/ }],
  )
  await sql`alter table call_refusals_away rename to call_refusals`
  telephony.refused(refusal())
  await telephony.close()
  await telephony.close()
  telephony.refused(refusal())
  t.match(await listAllRefusals(sql, { accountId: null, limit: 10 }), [{ count: 2 }])
  t.equal(clock.pending(), 0)
})

test('keep: each trunk that needs it has one node, for a minute at a time, and another soon after', async (t) => {
  const { sql } = await opened
  await sql`delete from trunks`
  const [one, two] = [createNode(sql), createNode(sql)]
  const tenant = await createTenant(sql, { slug: newId() })
  const needed: TrunkId[] = []
  const add = async (...options: Parameters<typeof addTrunk>[2][]) => {
    for (const option of options) needed.push(await addTrunk(sql, tenant, option))
  }
  await add(
    { name: 'plain' },
    { register: true, username: 'u', direction: 'inbound' },
    { register: true, qualify: false, username: 'u' },
  )
  for (const none of [{ ...noGateways }, { qualify: false }, { isActive: false }, { direction: 'inbound' }] as const)
    await addTrunk(sql, tenant, none)
  const keptBy = async ({ telephony }: typeof one) => (await telephony.keep()).trunks.map(({ id }) => id).toSorted()

  const [first, second] = await Promise.all([keptBy(one), keptBy(two)])
  t.same([...first, ...second].toSorted(), needed.toSorted(), 'together all, none twice')
  const [keeper, other] = first.length > 0 ? [one, two] : [two, one]
  t.same([...(await keptBy(keeper)), ...(await keptBy(other))].toSorted(), needed.toSorted(), 'asked again the same')
  const { until } = await keeper.telephony.keep()
  t.ok(until > keeper.clock.now() && until <= keeper.clock.now() + 60_000)

  await t.test('only its keeper reports how it does; the state stands to the settings', async (t) => {
    const [id] = (await keptBy(keeper)) as [TrunkId]
    const gateway = { host: '127.0.0.1', port: null, reachable: true, details: '200 OK', checkedAt: null }
    const state = {
      registration: 'none' as const,
      registrationDetails: null,
      registeredUntil: null,
      gateways: [gateway],
    }
    await other.telephony.report(id, { ...state, gateways: [] })
    t.match(await findTrunkState(sql, tenant.accountId, id), { state: null })
    await keeper.telephony.report(id, state)
    t.match(await findTrunkState(sql, tenant.accountId, id), { state: { ...state, updatedAt: String } })
    t.equal(await findTrunkState(sql, newId<'account'>() as AccountId, id), null)
  })

  await t.test('a turn that ran out is taken over, and a node that goes gives its turns away', async (t) => {
    await sql`update trunk_states set kept_until = clock_timestamp() - interval '1 ms' where keeper is not null`
    t.same(await keptBy(other), needed.toSorted())
    t.same(await keptBy(keeper), [], 'the former one has lost them')
    await other.telephony.close()
    t.same((await other.telephony.keep()).trunks, [])
    t.same(await keptBy(keeper), needed.toSorted())
    await keeper.telephony.close()
  })
})
