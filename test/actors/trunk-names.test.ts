/** Names in allowedAddresses: who may deliver calls follows what they lead to. */
import { test } from 'tap'
import type { TrunkId } from '../../model/ids.ts'
import { createTrunks } from '../../store/trunks.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { clearBox, openTelephony } from '../scenes/telephony.ts'
import { createTenant, newId } from '../scenes/tenant.ts'

test('a name allows the addresses that it led to last, and for a day', async (t) => {
  const { sql } = await openTestDatabase(t)
  const clock = createHandClock(Date.now())
  const telephony = openTelephony({ sql, clock })
  const { accountId, workerId } = await createTenant(sql)
  const number = '+4930123456'
  await sql`update workers set inbound_phone_number = ${number} where id = ${workerId}`
  const trunks = createTrunks({ sql, box: clearBox, clock, newId })
  const allowedAddresses = ['carrier.test', '192.0.2.50']
  const { id } = await trunks.create(accountId, { name: 'Carrier', allowedAddresses, workerIds: [workerId] })
  const trunkId = id as TrunkId
  const comesIn = async (address: string) =>
    'trunk' in (await telephony.route({ address, called: [number], calling: null }))
  const found = (...addresses: string[]) => telephony.found(trunkId, { name: 'carrier.test', addresses })

  t.same(
    (await telephony.keep()).trunks.map((trunk) => trunk.id),
    [id],
    'somebody looks the name up',
  )
  t.notOk(await comesIn('192.0.2.1'))
  await found('192.0.2.1', '2001:db8::1', '192.0.2.50')
  for (const address of ['192.0.2.1', '2001:db8::1', '192.0.2.50']) t.ok(await comesIn(address), address)
  await found('192.0.2.2')
  t.notOk(await comesIn('192.0.2.1'), 'it moved')
  t.ok(await comesIn('192.0.2.2'))
  t.ok(await comesIn('192.0.2.50'), 'what the settings name stays')

  await trunks.change(accountId, trunkId, { name: 'Renamed' })
  t.ok(await comesIn('192.0.2.2'), 'another change keeps what is known of a name')
  await sql`update trunk_addresses set seen_at = now() - interval '25 hours' where name is not null`
  t.notOk(await comesIn('192.0.2.2'), 'nobody has seen it for a day')
  await found('192.0.2.2')
  t.ok(await comesIn('192.0.2.2'))

  await telephony.found(trunkId, { name: 'other.test', addresses: ['192.0.2.77'] })
  t.notOk(await comesIn('192.0.2.77'), 'a name that the trunk does not have allows nobody')
  await trunks.change(accountId, trunkId, { allowedAddresses: ['192.0.2.2'] })
  await found('192.0.2.3')
  t.notOk(await comesIn('192.0.2.3'))
  t.ok(await comesIn('192.0.2.2'), 'an address that was known by name counts as itself now')
  await telephony.close()
})
