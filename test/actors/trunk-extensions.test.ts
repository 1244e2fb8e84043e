/** Calls that a PBX sends to the name of a line and not to a number: whose worker they are for. */
import t, { test } from 'tap'
import type { TrunkId, WorkerId } from '../../model/ids.ts'
import type { TrunkChange, TrunkRequest } from '../../model/trunk.ts'
import { migrate } from '../../store/migrate.ts'
import { createTrunks } from '../../store/trunks.ts'
import { createWorker } from '../../store/workers.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { refusalOf } from '../scenes/refusal.ts'
import { clearBox, openTelephony } from '../scenes/telephony.ts'
import { createTenant, newId, type Tenant } from '../scenes/tenant.ts'

/** Of all tests of this file: each begins with an empty one. */
const opened = openTestDatabase(t)

async function openScene() {
  const { sql } = await opened
  await sql`delete from accounts`
  const clock = createHandClock()
  const telephony = openTelephony({ sql, clock })
  const trunks = createTrunks({ sql, box: clearBox, clock, newId })
  const tenant = await createTenant(sql)
  const pbx = { name: 'PBX', allowedAddresses: ['192.0.2.10'], workerIds: [tenant.workerId] }
  return {
    sql,
    trunks,
    tenant,
    addTrunk: (request: Partial<TrunkRequest>, { accountId }: Tenant = tenant) =>
      trunks.create(accountId, { ...pbx, ...request }),
    change: (id: string, change: TrunkChange) => trunks.change(tenant.accountId, id as TrunkId, change),
    addWorker: async (name: string, number: string | null = null) => {
      const { accountId } = tenant
      const numbers = { inboundPhoneNumber: number, outboundPhoneNumber: null }
      const made = { accountId, name, language: 'en', config: {}, newId, now: Date.now() + 1_000, ...numbers }
      return (await createWorker(sql, made)).id as WorkerId
    },
    from: (address: string, ...called: string[]) => telephony.route({ address, called, calling: null }),
  }
}

test('a registered line is called by its username, and the call is for the worker of the trunk', async (t) => {
  const { addTrunk, from, tenant } = await openScene()
  const gateways = [{ host: '192.0.2.10' }]
  const trunk = await addTrunk({ username: '1002', register: true, gateways, allowedAddresses: [] })
  const route = { trunk: { id: trunk.id }, workerId: tenant.workerId, toNumber: '1002', mustAuthenticate: false }
  t.match(await from('192.0.2.10', '1002'), route)
  t.match(await from('192.0.2.10', '+4930555', '1002'), route, 'an unknown number in To is passed over')
})

test('extensions of a trunk lead to its workers, each to the one that is named', async (t) => {
  const { addTrunk, addWorker, change, from, tenant } = await openScene()
  const [sales, number] = [await addWorker('Sales'), '+4930123456']
  const named = await addWorker('Named', number)
  const workerIds = [tenant.workerId, sales, named]
  const extensions = [{ user: '1001' }, { user: 'sales', workerId: sales }]
  const trunk = await addTrunk({ workerIds, extensions })
  t.match(await from('192.0.2.10', 'sales'), { workerId: sales, toNumber: 'sales' })
  t.match(await from('192.0.2.10', '1001'), { workerId: tenant.workerId }, 'else the oldest')
  t.match(await from('192.0.2.10', number, 'sales'), { workerId: named, toNumber: number }, 'the better one counts')
  t.match(await from('192.0.2.10', '1003'), { reason: 'unknown_number', sipStatus: 404, details: /extensions/ })
  await change(trunk.id, { extensions: [{ user: '1003' }] })
  t.match(await from('192.0.2.10', '1003'), { workerId: tenant.workerId })
  t.match(await from('192.0.2.10', 'sales'), { sipStatus: 404 })
  await change(trunk.id, { isActive: false })
  t.match(await from('192.0.2.10', '1003'), { sipStatus: 403 })
})

test('a stranger who tries short names is told nothing, and asked for no password of a line', async (t) => {
  const { addTrunk, from } = await openScene()
  await addTrunk({ username: '1002', password: 'open sesame', allowedAddresses: [] })
  t.match(await from('198.51.100.9', '1002'), { reason: 'unknown_source', sipStatus: 403, accountId: null })
  await addTrunk({ username: 'u', password: 'open sesame', allowedAddresses: [], extensions: [{ user: 'desk' }] })
  t.match(
    await from('198.51.100.9', 'desk'),
    { mustAuthenticate: true },
    'one that is named as an extension may be proved',
  )
})

test('two accounts may have the same extension: the address tells them apart', async (t) => {
  const { addTrunk, from, sql, tenant } = await openScene()
  const other = await createTenant(sql, { slug: 'other' })
  await addTrunk({ extensions: [{ user: '1002' }] })
  await addTrunk(
    { extensions: [{ user: '1002' }], allowedAddresses: ['192.0.2.11'], workerIds: [other.workerId] },
    other,
  )
  t.match(await from('192.0.2.10', '1002'), { workerId: tenant.workerId })
  t.match(await from('192.0.2.11', '1002'), { workerId: other.workerId })
})

test('a number that a trunk writes as within its country finds its worker', async (t) => {
  const { addTrunk, addWorker, from } = await openScene()
  const workerIds = [await addWorker('Berlin', '+4930123456')]
  await addTrunk({ workerIds, numberFormat: { countryCode: '49' } })
  t.match(await from('192.0.2.10', '030123456'), { workerId: workerIds[0], toNumber: '+4930123456' })
  t.match(await from('192.0.2.11', '030123456'), { sipStatus: 403 })
  t.match(await from('192.0.2.10', '030999'), { sipStatus: 404 })
})

test('extensions that cannot be are refused with their path', async (t) => {
  const { addTrunk, addWorker, change, tenant } = await openScene()
  const stranger = await addWorker('Stranger')
  const refused = (extensions: TrunkRequest['extensions']) => refusalOf(addTrunk({ extensions }))
  t.same(await refused([{ user: 'a', workerId: stranger }]), ['VALIDATION_FAILED', 'extensions.0.workerId'])
  t.same(await refused([{ user: 'a' }, { user: 'a' }]), ['VALIDATION_FAILED', 'extensions.1.user'])
  const { id } = await addTrunk({ extensions: [{ user: 'a', workerId: tenant.workerId }] })
  t.same(await refusalOf(change(id, { workerIds: [] })), ['VALIDATION_FAILED', 'extensions.0.workerId'])
})

// Last, because it takes a table away for a moment.
test('lines of yesterday are called by their usernames too', async (t) => {
  const { addTrunk, from, sql, tenant } = await openScene()
  await addTrunk({ username: '1002' })
  await addTrunk({ name: 'Without a line' })
  await sql`drop table trunk_extensions`
  await sql`delete from migrations where name like '%trunk_extensions%'`
  t.match(await migrate(sql), [/trunk_extensions/])
  t.match(await from('192.0.2.10', '1002'), { workerId: tenant.workerId })
})
