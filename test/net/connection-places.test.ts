/** Who keeps a connection when there are too many, how memory for strangers is shared, and how the files of a process are. */
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'tap'
import { connectionsWithin, openFilesLimit } from '../../app/descriptors.ts'
import { createUwsPlaces } from '../../gateway/listener/uws-places.ts'
import { createByteBudget } from '../../net/byte-budget.ts'
import { createConnectionPlaces, type PlaceLimits } from '../../net/connection-places.ts'
import { createRandom } from '../fake/random.ts'

const limits: PlaceLimits = { maxConnections: 6, maxConnectionsPerAddress: 3, isExempt: (address) => address === '::1' }

function open(changes: Partial<PlaceLimits> = {}) {
  const places = createConnectionPlaces({ ...limits, ...changes })
  const cut: string[] = []
  const take = (address: string, name = address) => places.take(address, () => cut.push(name))
  return { places, cut, take }
}

test('an address over its number loses the connection of its own that waits for longest', (t) => {
  const { places, cut, take } = open()
  for (const name of ['first', 'second', 'third', 'fourth']) t.ok(take('192.0.2.1', name))
  t.same(cut, ['first'])
  t.ok(take('192.0.2.2'))
  t.same([places.held(), places.cut(), places.refused()], [4, 1, 0])
  t.end()
})

test('an IPv6 network of 64 bits is one address, and exempt ones have no number of their own', (t) => {
  const { cut, take } = open({ maxConnections: 100 })
  for (const host of ['1', '2', '3', '4']) take(`2001:db8::${host}`)
  t.same(cut, ['2001:db8::1'])
  for (let count = 0; count < 50; count += 1) t.ok(take('::1'))
  t.equal(cut.length, 1)
  t.end()
})

test('strangers go before those that proved a key, and who has something to do stays', (t) => {
  const { cut, take, places } = open({ maxConnections: 3 })
  const proven = take('192.0.2.1', 'proven')
  proven?.prove()
  const busy = take('192.0.2.2', 'busy')
  busy?.begin()
  busy?.begin()
  busy?.rest()
  take('192.0.2.3', 'stranger')
  take('192.0.2.4', 'newcomer')
  t.same(cut, ['stranger'])
  take('192.0.2.5', 'newest')?.begin()
  t.same(cut, ['stranger', 'newcomer'])
  take('192.0.2.6', 'last')?.begin()
  t.same(cut, ['stranger', 'newcomer', 'proven'])
  t.equal(take('192.0.2.7'), null)
  t.equal(places.takeOwn(), null)
  t.equal(places.refused(), 1)
  busy?.rest()
  t.ok(places.takeOwn(), 'one that waits again goes')
  t.equal(cut.at(-1), 'busy')
  t.end()
})

test('whatever happens to connections, no more are held than may be, and in the end none', (t) => {
  for (let seed = 1; seed <= 200; seed += 1) {
    const random = createRandom(seed)
    const places = createConnectionPlaces(limits)
    const open = new Set<{ address: string; place: NonNullable<ReturnType<typeof places.take>>; tasks: number }>()
    for (let step = 0; step < 200; step += 1) {
      const action = random.pick(['take', 'take', 'begin', 'rest', 'prove', 'give'] as const)
      const one = open.size > 0 ? random.pick([...open]) : null
      if (action === 'take') {
        const address = random.pick(['192.0.2.1', '192.0.2.2', '192.0.2.3', '::1'])
        const held = { address, tasks: 0, place: null as never }
        const place = places.take(address, () => open.delete(held))
        if (place) open.add(Object.assign(held, { place }))
      } else if (one && action === 'begin') {
        one.tasks += 1
        one.place.begin()
      } else if (one && action === 'rest' && one.tasks > 0) {
        one.tasks -= 1
        one.place.rest()
      } else if (one && action === 'prove') one.place.prove()
      else if (one && action === 'give') {
        open.delete(one)
        one.place.give()
        one.place.give()
      }
      const ofOne = [...open].filter(({ address }) => address === '192.0.2.1').length
      if (places.held() !== open.size || open.size > 6 || ofOne > 3) t.fail(`seed ${seed}, step ${step}`)
    }
    for (const { place } of open) place.give()
    if (places.held() !== 0) t.fail(`seed ${seed} leaves ${places.held()}`)
  }
  t.pass()
  t.end()
})

test('a budget of bytes: an address has its part, small ones have room of their own, and all of it comes back', (t) => {
  const kib = 1024
  const budget = createByteBudget({ maxBytes: 1000 * kib, isExempt: (address) => address === '::1' })
  const greedy = budget.open('192.0.2.1')
  t.ok(greedy.hold(375 * kib))
  t.notOk(greedy.hold(376 * kib), 'three eighths')
  t.notOk(budget.open('192.0.2.1').hold(20 * kib), 'the address, not the connection')
  t.ok(budget.open('192.0.2.1').hold(16 * kib), 'small')
  const second = budget.open('192.0.2.2')
  t.ok(second.hold(300 * kib))
  t.notOk(budget.open('::1').hold(200 * kib), 'a quarter is for small ones')
  t.ok(budget.open('192.0.2.3').hold(16 * kib))
  const held = budget.held()
  t.ok(second.hold(100 * kib), 'it may hold less')
  second.release()
  second.release()
  t.equal(budget.held(), held - 300 * kib)
  greedy.release()
  t.ok(budget.open('192.0.2.1').hold(300 * kib))
  t.end()
})

test('where the driver does not tell which connection has closed', async (t) => {
  let now = 0
  const openUws = () => createUwsPlaces({ maxConnectionsPerAddress: 10, isExempt: () => false }, () => now)
  const address = '192.0.2.1'

  await t.test('silent ones are counted exactly, for as long as the library lets them live', async (t) => {
    const places = openUws()
    const silent = Array.from({ length: 10 }, () => places.open(address))
    t.equal(places.open(address), null)
    t.ok(places.open('192.0.2.2'))
    silent[3]?.closed()
    t.ok(places.open(address))
    t.equal(places.open(address), null)
    now += 36_000
    t.ok(places.open(address), 'the library has closed the others')
  })

  await t.test('a client that opens a connection for each request is never turned away', async (t) => {
    const places = openUws()
    for (let count = 0; count < 500; count += 1) {
      t.ok(places.open(address))
      places.ask(address).over(true)
      places.closedUnseen()
    }
  })

  await t.test('requests of one connection take no place away from silent ones', async (t) => {
    const places = openUws()
    for (let count = 0; count < 10; count += 1) places.open(address)
    places.ask(address).over(true)
    for (let count = 0; count < 100; count += 1) places.ask(address).over(true)
    t.ok(places.open(address), 'the one that asked is not silent any more')
    t.equal(places.open(address), null)
  })

  await t.test('many that rest are closed after their answers', async (t) => {
    const places = openUws()
    const crowded = Array.from({ length: 8 }, () => {
      places.open(address)
      const asked = places.ask(address)
      return asked
    })
    t.equal(crowded[0]?.isCrowded(), false)
    for (const asked of crowded.slice(0, 5)) asked.over(true)
    t.equal(crowded[7]?.isCrowded(), true)
    now += 36_000
    t.equal(crowded[7]?.isCrowded(), false)
  })
})

test('strangers have a part of the files that the process may open; calls and the database have the rest', async (t) => {
  const wished = { http: 10_000, sip: 2_000 }
  t.same(connectionsWithin(1_024, wished), { http: 512, sip: 128 })
  t.same(connectionsWithin(1_048_576, wished), wished)
  t.same(connectionsWithin(null, wished), wished)
  const file = path.join(t.testdir(), 'limits')
  writeFileSync(
    file,
    'Limit   Soft Limit   Hard Limit   Units\nMax open files            4096                 8192       files\n',
  )
  t.equal(openFilesLimit(file), 4_096)
  t.equal(openFilesLimit(path.join(t.testdir(), 'nothing')), null)
})
