/** What a call costs by the operator's table: docs/usage.md. */
import { readFile } from 'node:fs/promises'
import { test } from 'tap'
import { readConfig } from '../../app/config.ts'
import { PriceTable, pricedUsageOf, type PricedCall } from '../../model/price-table.ts'
import { addUsage, noUsage } from '../../model/usage.ts'

const engine = { engine: 'voice_provider_a', model: 'talker-1' }
const table = PriceTable.parse({
  currency: 'EUR',
  versions: [
    {
      version: 'autumn',
      validFrom: '2026-09-01T00:00:00Z',
      engines: [
        { ...engine, unit: 'audioIn', price: 32, per: 1_000_000 },
        { ...engine, unit: 'audioOut', price: 64, per: 1_000_000 },
      ],
      carriers: [
        { direction: 'outbound', perMinute: 0.1 },
        { direction: 'outbound', prefix: '+49', perMinute: 0.02, stepSeconds: 1 },
        { direction: 'outbound', prefix: '+4916', perMinute: 0.2 },
        { direction: 'outbound', trunkId: 'cheap', perMinute: 0.01 },
      ],
    },
    { version: 'summer', validFrom: '2026-06-01T00:00:00+02:00' },
  ],
})
const call: PricedCall = {
  createdAt: Date.UTC(2026, 9, 1),
  direction: 'outbound',
  toNumber: '+4930123456',
  trunkId: 'dear',
  carrierSeconds: 90,
}
const usage = { ...noUsage, speechInMs: 1500, engines: [{ ...engine, units: { audioIn: 500_000, audioOut: 250_000 } }] }

test('the version that was valid when the call was created has the prices', (t) => {
  const priced = pricedUsageOf(usage, call, table)
  t.match(priced, { priceVersion: 'autumn', currency: 'EUR', carrierPrice: 0.03, price: 32.03, speechInSeconds: 1.5 })
  t.match(priced.engines, [
    { unit: 'audioIn', amount: 500_000, price: 16 },
    { unit: 'audioOut', price: 16 },
  ])
  const summer = pricedUsageOf(usage, { ...call, createdAt: Date.UTC(2026, 6, 1) }, table)
  t.match(summer, { priceVersion: 'summer', price: null, carrierPrice: null })
  t.match(pricedUsageOf(usage, { ...call, createdAt: 0 }, table), { priceVersion: null, price: null, currency: null })
  t.end()
})

test('what no price is known of costs null, and so does the sum; what was not used costs nothing', (t) => {
  const other = addUsage(usage, { ...noUsage, engines: [{ ...engine, model: 'other', units: { textIn: 1 } }] })
  t.match(pricedUsageOf(other, call, table), { price: null, carrierPrice: 0.03 })
  t.equal(pricedUsageOf(usage, call, null).price, null, 'without a table')
  t.equal(pricedUsageOf(noUsage, { ...call, carrierSeconds: null }, table).price, 0, 'nothing was used at known prices')
  t.equal(pricedUsageOf(noUsage, { ...call, direction: 'inbound' }, table).price, null, 'minutes that no entry is for')
  t.end()
})

test('of carriers the most exact entry counts, in its steps', (t) => {
  const of = (change: Partial<PricedCall>) => pricedUsageOf(noUsage, { ...call, ...change }, table).carrierPrice
  t.equal(of({ carrierSeconds: 30 }), 0.01, 'second by second')
  t.equal(of({ toNumber: '+4916012345', carrierSeconds: 61 }), 0.4, 'two minutes')
  t.equal(of({ toNumber: '+15551234567' }), 0.2)
  t.equal(of({ trunkId: 'cheap' }), 0.02)
  t.equal(of({ toNumber: null }), null, 'the number has been erased')
  t.end()
})

test('a table that cannot be is named by the setting and the field', (t) => {
  const read = (table: unknown) => readConfig({ PRICE_TABLE: JSON.stringify(table) }).prices
  const version = { version: 'a', validFrom: '2026-01-01T00:00:00Z' }
  t.equal(readConfig({}).prices, null)
  t.match(read({ currency: 'EUR', versions: [version] }), { currency: 'EUR' })
  t.throws(() => readConfig({ PRICE_TABLE: '{' }), /PRICE_TABLE: must be JSON/)
  t.throws(() => read({ currency: 'Euro', versions: [version] }), /PRICE_TABLE: currency must be a currency/)
  t.throws(
    () => read({ currency: 'EUR', versions: [{ ...version, validFrom: 'soon' }] }),
    /versions\.0\.validFrom must be/,
  )
  t.throws(() => read({ currency: 'EUR', versions: [version, version] }), /different/)
  t.throws(
    () => read({ currency: 'EUR', versions: [{ ...version, carriers: [{ direction: 'outbound', perMinute: -1 }] }] }),
    /versions\.0\.carriers\.0\.perMinute/,
  )
  t.end()
})

test('the table to begin with can be read', async (t) => {
  const example = await readFile(new URL('../../deploy/prices.example.json', import.meta.url), 'utf8')
  t.match(readConfig({ PRICE_TABLE: example }).prices, { versions: [{ version: '2026-09' }] })
})
