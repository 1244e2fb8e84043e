/** Lists as Postgres takes and gives them, and that no connection asks for their types before it is of use. */
import t, { test } from 'tap'
import { connect } from '../../store/sql.ts'
import { createTimelySql } from '../../store/timely-sql.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { inTime, until } from '../scenes/in-time.ts'
import { openNetwork } from '../scenes/postgres-network.ts'
import { createQuietLog } from '../fake/quiet-log.ts'

const database = await openTestDatabase(t)

const lists: Readonly<Record<string, readonly unknown[]>> = {
  text: ['a,b', '"', '\\', '\\"', '{', '}', '{}', '', ' ', ' x ', 'NULL', 'null', null, 'ü\n\t', "'", '\\\\n', ','],
  varchar: ['x', null],
  uuid: ['01900000-0000-7000-8000-000000000001'],
  inet: ['192.0.2.1', '2001:db8::1'],
  smallint: [1, -1],
  int: [0, -1, 2_147_483_647, null],
  bigint: [Number.MAX_SAFE_INTEGER, -5, null],
  'double precision': [0.1, -1e300, Infinity, null],
  // The driver takes a list that begins with a boolean for one.
  boolean: [null, true, false],
  timestamptz: [0, 1_750_000_000_123, Infinity, null],
  jsonb: [{ a: ['"{},\\'] }, 'text', 5, true],
}

for (const [type, list] of Object.entries(lists))
  test(`a list of ${type} comes back as it went, empty and in lists too`, async (t) => {
    const { sql } = database
    const back = async (given: readonly unknown[]) => {
      const [row] = await sql<{ list: unknown; length: number }[]>`
        select given as list, cardinality(given) as length from (select ${given as never}::${sql.unsafe(type)}[] as given) as asked`
      return row
    }
    t.same(await back(list), { list, length: list.length })
    t.same(await back([]), { list: [], length: 0 })
    t.same(await back([list, list]), { list: [list, list], length: 2 * list.length })
  })

test('a list whose bounds are told is read without them, and what is a list as text already goes as it is', async (t) => {
  const { sql } = database
  t.match(await sql`select '[3:4]={5,6}'::int[] as list`, [{ list: [5, 6] }])
  t.match(await sql`select ${'{a,"b c"}' as never}::text[] as list`, [{ list: ['a', 'b c'] }])
})

test('a connection that is cut as soon as it stands fails its query, and nothing else', async (t) => {
  const network = await openNetwork(t, database.server)
  const log = createQuietLog()
  const sql = createTimelySql({ ...network, applicationName: 'cut', maxConnections: 1, limit: 2_000, log })
  t.teardown(() => sql.end({ timeout: 0 }))
  // What the driver would ask first of all, for itself.
  const left = network.cutAt('typcategory', 1)
  t.match(await sql`select ${['a']}::text[] as list`, [{ list: ['a'] }])
  t.equal(left(), 1)
  const cut = network.cutAt('select 2', 1)
  await t.rejects(sql`select 2`)
  t.equal(cut(), 0)
  await until(() => sql`select 3 as three`.catch(() => null))
})

test('a connection that was opened to be reserved is there for others, where another one was free sooner', async (t) => {
  const sql = connect({ server: database.server, applicationName: 'reserved', maxConnections: 2 })
  t.teardown(() => sql.end({ timeout: 0 }))
  await sql`select 1`
  // Its answer is here, and not read yet, when another one is asked for: it is free before that one is open.
  const busy = sql`select 2`.execute()
  await new Promise(setImmediate)
  for (const since = performance.now(); performance.now() - since < 50;) continue
  const [own] = await Promise.all([sql.reserve(), busy])
  const other = () => sql`select pg_backend_pid() as pid`
  const [mine] = await own`select pg_backend_pid() as pid`
  const [others] = await inTime('the other connection', other())
  t.not(others?.['pid'], mine?.['pid'])
  own.release()
})

test('a connection can be reserved though none is open yet', async (t) => {
  const sql = connect({ server: database.server, applicationName: 'reserved', maxConnections: 2 })
  t.teardown(() => sql.end({ timeout: 0 }))
  const both = await inTime('the connections', Promise.all([sql.reserve(), sql.reserve()]))
  for (const own of both) t.match(await own`select ${['a']}::text[] as list`, [{ list: ['a'] }])
  for (const own of both) own.release()
  t.match(await sql`select ${[7]}::int[] as list`, [{ list: [7] }])
})
