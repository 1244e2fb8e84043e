/** Several accounts on one service: whose a telephone number is, and that nobody gets the calls of another. */
import t, { test } from 'tap'
import type { AccountId } from '../../model/ids.ts'
import { assignNumber, listNumbers, releaseNumber } from '../../store/account-numbers.ts'
import { listAllRefusals } from '../../store/call-refusals.ts'
import { migrate } from '../../store/migrate.ts'
import { connect, type Sql } from '../../store/sql.ts'
import { createTrunks } from '../../store/trunks.ts'
import { changeWorker, createWorker } from '../../store/workers.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { countSentStatements } from '../load/sent-statements.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { refusalOf } from '../scenes/refusal.ts'
import { addTrunk, clearBox, openTelephony } from '../scenes/telephony.ts'
import { createTenant, newId, type Tenant } from '../scenes/tenant.ts'

const sent = countSentStatements()
const opened = openTestDatabase(t)
const noGateways = { gateways: [] }
/** Of one carrier that serves many. */
const carrier = '198.51.100.7'

let numbers = 4_930_100_000
const nextNumber = (): string => `+${(numbers += 1)}`

async function openScene() {
  const { sql } = await opened
  await sql`delete from accounts`
  const clock = createHandClock()
  const telephony = openTelephony({ sql, clock })
  return {
    sql,
    trunks: createTrunks({ sql, box: clearBox, clock, newId }),
    /** With a number on the operator's word, or its own. */
    async tenant({ number = nextNumber(), rule = 'assign' as 'assign' | 'claim' } = {}) {
      const tenant = await createTenant(sql, { slug: newId() })
      await changeWorker(sql, { ...tenant, change: { inboundPhoneNumber: number }, numberRule: rule, now: 1 })
      return { ...tenant, number }
    },
    route: (dialed: readonly string[], { diverted = [] as string[], address = carrier } = {}) =>
      telephony.route({ address, called: [...dialed, ...diverted], dialed, calling: null }),
  }
}

const older = (sql: Sql, trunkId: string) => sql`update trunks set created_at = to_timestamp(5) where id = ${trunkId}`

test('of accounts that take one number at the same moment exactly one gets it', async (t) => {
  const { sql, route } = await openScene()
  const tenants = await Promise.all(Array.from({ length: 8 }, () => createTenant(sql, { slug: newId() })))
  for (let round = 0; round < 10; round++) {
    const number = nextNumber()
    const named = { name: 'Ada', language: 'en', inboundPhoneNumber: number, newId, now: 1 }
    const take = ({ accountId, workerId }: Tenant, index: number) =>
      index % 2 === 0
        ? createWorker(sql, { ...named, accountId, numberRule: 'claim' })
        : changeWorker(sql, {
            accountId,
            workerId,
            change: { inboundPhoneNumber: number },
            numberRule: 'claim',
            now: 1,
          })
    const refusals = await Promise.all(tenants.map((tenant, index) => refusalOf(take(tenant, index))))
    t.equal(refusals.filter((refusal) => refusal === null).length, 1, 'one has it')
    t.same(
      refusals.filter((refusal) => refusal !== null),
      Array.from({ length: 7 }, () => ['CONFLICT']),
      'the others are told',
    )
    const rows = await sql`select distinct account_id from workers where inbound_phone_number = ${number}`
    t.equal(rows.length, 1)
    t.match(await route([number]), { sipStatus: 403 })
  }
})

test('whoever writes the table, no two accounts have a number', async (t) => {
  const { sql, tenant } = await openScene()
  const [owner, thief] = [await tenant(), await tenant()]
  const write = sql`update workers set inbound_phone_number = ${owner.number} where id = ${thief.workerId}`
  await t.rejects(write, /workers_number/)
})

test('the dialed number decides before address and password, and before whoever passed the call on', async (t) => {
  const { sql, tenant, route } = await openScene()
  const [victim, thief] = [await tenant(), await tenant()]
  const line = await addTrunk(sql, victim, { ...noGateways, username: 'line', password: 'secret' })
  const bait = await addTrunk(sql, thief, { ...noGateways, allowedAddresses: ['198.51.0.0/16'] })
  await older(sql, bait)
  const diverted = [thief.number]
  const own = { trunk: { id: line, accountId: victim.accountId }, toNumber: victim.number, mustAuthenticate: true }
  t.match(await route([victim.number], { diverted }), own, 'a Diversion to the number of another account')
  t.match(await route([victim.number, thief.number]), own, 'of two numbers that were dialed the first')
  await sql`update trunks set is_active = false where id = ${line}`
  t.match(
    await route([victim.number], { diverted }),
    { sipStatus: 404, accountId: victim.accountId },
    'nor where the account cannot take it',
  )
  await sql`update workers set is_active = false where id = ${victim.workerId}`
  t.match(await route([victim.number], { diverted }), { accountId: victim.accountId })
  t.match(await route([thief.number], { diverted: [victim.number] }), { trunk: { id: bait } })
})

test('calls that arrive in the same moment are routed by one statement, each as if it had come alone', async (t) => {
  const { sql, trunks, tenant, route } = await openScene()
  const [one, other, claimed] = [await tenant(), await tenant(), await tenant({ rule: 'claim' })]
  const home = '198.51.100.70'
  await addTrunk(sql, one, { ...noGateways, allowedAddresses: [carrier] })
  await addTrunk(sql, other, { ...noGateways, username: 'line', password: 'secret' })
  await addTrunk(sql, claimed, { ...noGateways, allowedAddresses: [carrier, home] })
  const arrivals = [
    ...[one, other, claimed].flatMap(({ number }) =>
      [carrier, home, '192.0.2.99'].map((from) => [number, from] as const),
    ),
    ...(['+4999', 'line', 'desk', '" or true --', '{"a":1}'] as const).map((dialed) => [dialed, carrier] as const),
  ]
  await trunks.create(one.accountId, {
    name: 'PBX',
    allowedAddresses: [carrier],
    workerIds: [one.workerId],
    extensions: [{ user: 'desk' }],
  })
  const ask = ([dialed, address]: (typeof arrivals)[number]) => route([dialed], { address })
  const alone: Awaited<ReturnType<typeof ask>>[] = []
  for (const arrival of arrivals) alone.push(await ask(arrival))
  t.same(await Promise.all([...arrivals, ...arrivals].map(ask)), [...alone, ...alone])
  t.match(alone, [{ workerId: one.workerId }, { sipStatus: 404, accountId: one.accountId }])
  const accountOf = (answer: (typeof alone)[number]) => ('trunk' in answer ? answer.trunk.accountId : answer.accountId)
  const whose = [...Array.from({ length: 3 }, () => other.accountId), null, claimed.accountId, claimed.accountId]
  t.same(alone.slice(3, 9).map(accountOf), whose, 'a claim does not count where calls of others come from')
  t.match(alone.at(-3), { workerId: one.workerId, toNumber: 'desk' })
  const before = sent.count()
  await Promise.all(
    Array.from({ length: 30 }, (_, index) => ask(index % 2 === 0 ? [one.number, carrier] : [other.number, home])),
  )
  t.equal(sent.count() - before, 1)
})

test('when the database is away every arrival is told to come again, and none waits', async (t) => {
  const { server } = await opened
  const sql = connect({ server, applicationName: 'parley test', maxConnections: 2 })
  await sql.end({ timeout: 1 })
  const telephony = openTelephony({ sql, clock: createHandClock() })
  const asked = Array.from({ length: 5 }, (_, index) => {
    const called = [`+49301${index}`]
    return telephony.route({ address: carrier, called, dialed: called, calling: null })
  })
  for (const refused of await Promise.all(asked))
    t.match(refused, { reason: 'database_away', sipStatus: 503, retryAfterSeconds: 10, accountId: null })
})

test('a Diversion chooses among the numbers of one account, and never the account', async (t) => {
  const { sql, tenant, route } = await openScene()
  const [one, other] = [await tenant(), await tenant()]
  await addTrunk(sql, one, { ...noGateways, allowedAddresses: [carrier] })
  t.match(await route(['trunk-4711'], { diverted: [one.number] }), { workerId: one.workerId }, 'of one alone')
  await addTrunk(sql, other, { ...noGateways, allowedAddresses: [carrier] })
  for (const diverted of [[one.number], [other.number]])
    t.match(await route(['trunk-4711'], { diverted }), { sipStatus: 404, accountId: null, trunkId: null })
})

test('the name of a line that two accounts have at one address is nobody’s', async (t) => {
  const { sql, trunks, tenant, route } = await openScene()
  const [victim, thief] = [await tenant(), await tenant()]
  const line = { name: 'Line', allowedAddresses: [carrier], username: 'line7' }
  await trunks.create(victim.accountId, { ...line, workerIds: [victim.workerId] })
  t.match(await route(['line7']), { workerId: victim.workerId })
  const bait = await trunks.create(thief.accountId, { ...line, workerIds: [thief.workerId] })
  await older(sql, bait.id)
  const nobodys = { reason: 'unknown_number', sipStatus: 404, accountId: null, details: /several accounts allow/ }
  t.match(await route(['line7']), nobodys)
  await sql`update workers set is_active = false where id = ${victim.workerId}`
  t.match(await route(['line7']), nobodys, 'nor while one of them sleeps')
  await sql`update trunks set created_at = to_timestamp(9) where account_id = ${victim.accountId}`
  for (let count = 0; count < 12; count++)
    await trunks.create(thief.accountId, { ...line, name: `Bait ${count}`, workerIds: [thief.workerId] })
  t.match(await route(['line7']), nobodys, 'nor is one hidden behind many of the other')
})

test('a number as within a country is not read as that of another account', async (t) => {
  const { trunks, tenant, route } = await openScene()
  const victim = await tenant({ number: '+4930123456' })
  const thief = await tenant({ number: '+3930123456' })
  const at = { name: 'Carrier', allowedAddresses: [carrier] }
  const own = { ...at, workerIds: [victim.workerId], numberFormat: { countryCode: '49' } }
  await trunks.create(victim.accountId, own)
  t.match(await route(['030123456']), { workerId: victim.workerId, toNumber: '+4930123456' })
  const bait = { ...at, workerIds: [thief.workerId], numberFormat: { countryCode: '39' } }
  await trunks.create(thief.accountId, bait)
  t.match(await route(['030123456']), { sipStatus: 404, accountId: null })
  t.match(await route(['+4930123456']), { workerId: victim.workerId })
})

test('a claim counts where nobody else’s calls come from; elsewhere the operator’s word', async (t) => {
  const { sql, tenant, route } = await openScene()
  const squatter = await tenant({ rule: 'claim' })
  const trunk = { ...noGateways, allowedAddresses: [carrier, '127.0.0.1'] }
  await addTrunk(sql, squatter, trunk)
  const { number, accountId } = squatter
  t.match(await route([number]), { workerId: squatter.workerId }, 'a carrier of its own')
  const other = await tenant()
  await addTrunk(sql, other, trunk)
  const refused = { sipStatus: 404, accountId: null, trunkId: null, details: `number assign ${accountId} ${number}` }
  t.match(await route([number]), refused, 'a carrier of two: the call may be anybody’s, and nobody is told of it')
  t.match(await route([number], { address: '127.0.0.1' }), { workerId: squatter.workerId }, 'this machine')
  t.match(await route([other.number]), { workerId: other.workerId })
  t.same(await assignNumber(sql, { accountId, number, move: false }), { from: null, workers: [] })
  t.match(await route([number]), { workerId: squatter.workerId })
})

test('the operator gives numbers: over claims, and by moving what was assigned', async (t) => {
  const { sql, tenant } = await openScene()
  const squatter = await tenant({ rule: 'claim' })
  const owner = await createTenant(sql, { slug: newId() })
  const { number } = squatter
  const ownerOf = async () => (await listNumbers(sql, null)).find((one) => one.number === number)
  t.match(await ownerOf(), { accountId: squatter.accountId, assignedAt: null, workers: ['Ada'] })
  const lost = { from: squatter.accountId, workers: ['Ada'] }
  t.same(await assignNumber(sql, { accountId: owner.accountId, number, move: false }), lost)
  t.match(await ownerOf(), { accountId: owner.accountId, assignedAt: Number, workers: [] })
  const back = { accountId: squatter.accountId, number }
  t.same(await refusalOf(assignNumber(sql, { ...back, move: false })), ['CONFLICT'])
  t.same(await assignNumber(sql, { ...back, move: true }), { from: owner.accountId, workers: [] })
  t.same(await releaseNumber(sql, number), { from: squatter.accountId, workers: [] })
  t.equal(await releaseNumber(sql, number), null)
})

test('a claim ends with the last worker that has the number, what was assigned stays', async (t) => {
  const { sql, tenant } = await openScene()
  const claimed = await tenant({ rule: 'claim' })
  const assigned = await tenant()
  const second = { accountId: claimed.accountId, name: 'Bob', language: 'en', newId, now: 1 }
  await createWorker(sql, { ...second, inboundPhoneNumber: claimed.number, numberRule: 'claim' })
  const give = (tenant: Tenant, number: string | null) =>
    changeWorker(sql, { ...tenant, change: { inboundPhoneNumber: number }, numberRule: 'claim', now: 2 })
  const left = async (accountId: AccountId) => (await listNumbers(sql, accountId)).map(({ number }) => number)
  await give(claimed, null)
  t.same(await left(claimed.accountId), [claimed.number], 'Bob has it')
  await sql`delete from workers where account_id = ${claimed.accountId} and name = 'Bob'`
  t.same(await left(claimed.accountId), [])
  await give(claimed, assigned.number).catch(() => null)
  await give(assigned, null)
  t.same(await left(assigned.accountId), [assigned.number])
  t.same(await refusalOf(give(claimed, assigned.number)), ['CONFLICT'])
})

test('nobody shows the number of another account', async (t) => {
  const { sql, tenant } = await openScene()
  const [owner, thief] = [await tenant(), await tenant()]
  const change = { outboundPhoneNumber: owner.number }
  t.same(await refusalOf(changeWorker(sql, { ...thief, change, now: 1 })), ['CONFLICT'])
  t.ok(await changeWorker(sql, { ...owner, change, now: 1 }))
})

// Last, because it takes the table away for a moment.
test('numbers of yesterday: each keeps its account, and what two had stays with the older worker, which the other is told', async (t) => {
  const { sql, tenant, route } = await openScene()
  const [young, old, plain] = [await tenant(), await tenant(), await tenant()]
  await sql`drop trigger take_number on workers`
  await sql`drop trigger give_number_back on workers`
  await sql`drop function take_number, give_number_back`
  await sql`alter table workers drop constraint workers_number`
  await sql`drop table account_numbers`
  await sql`delete from migrations where name like '%account_numbers%'`
  await sql`update workers set inbound_phone_number = ${old.number} where id = ${young.workerId}`
  await sql`update workers set created_at = to_timestamp(5) where id = ${old.workerId}`
  await addTrunk(sql, old, { ...noGateways, allowedAddresses: [carrier] })
  await addTrunk(sql, young, { ...noGateways, allowedAddresses: [carrier] })
  t.match(await migrate(sql), [/account_numbers/])
  const owners = (await listNumbers(sql, null)).map(({ number, accountId }) => [number, accountId])
  t.same(owners, [
    [old.number, old.accountId],
    [plain.number, plain.accountId],
  ])
  t.match(await route([old.number]), { workerId: old.workerId })
  t.match(await listAllRefusals(sql, { accountId: young.accountId, limit: 10 }), [
    { reason: 'unknown_number', called: old.number, details: /stays with the one whose worker is the oldest/ },
  ])
})
