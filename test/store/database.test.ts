/** The database as the rest of the program sees it: values, migrations, and the one way to open it. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import t from 'tap'
import type { Json } from '../../model/json.ts'
import type { Log } from '../../model/log.ts'
import { awaitServer } from '../../store/await-server.ts'
import { migrate } from '../../store/migrate.ts'
import { observedSql } from '../../store/observed-sql.ts'
import { openDatabase } from '../../store/open-database.ts'
import { connect, type DatabaseServer, type Sql } from '../../store/sql.ts'
import { createRecordedTelemetry } from '../fake/recorded-telemetry.ts'
import { openTestDatabase } from '../scenes/database.ts'

const log: Log = { debug() {}, info() {}, warn() {}, error() {}, with: () => log }
const database = await openTestDatabase(t)
const { sql, server, dataDir, databaseUrl } = database

/** mulberry32: the same numbers in every run. */
function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

async function only<T>(rows: PromiseLike<readonly T[]>): Promise<T> {
  const [row] = await rows
  if (row === undefined) throw new Error('no row')
  return row
}

await t.test('columns are camelCase on this side, and keys inside of JSON stay as they are', async (t) => {
  const row = { workerId: 'w', requestBody: sql.json({ first_name: 'A', lastName: 'B' }) }
  await sql.begin(async (tx) => {
    await tx`create temporary table written (worker_id text, request_body jsonb) on commit drop`
    await tx`insert into written ${tx(row)}`
    t.strictSame(
      { ...(await only(tx`select * from written`)) },
      { workerId: 'w', requestBody: { first_name: 'A', lastName: 'B' } },
    )
  })
})

await t.test('times go in and come out as milliseconds, alone and in lists', async (t) => {
  const random = createRandom(1)
  const first = Date.parse('0001-01-01T00:00:00Z')
  const times = Array.from({ length: 200 }, () => Math.round(first + random() * 3e14))
  const boundaries = [0, -1, 1, 951_782_399_999, Date.parse('9999-12-31T23:59:59.999Z'), Infinity, -Infinity]
  for (const time of [...boundaries, ...times])
    t.equal((await only(sql<{ at: number }[]>`select ${time}::timestamptz as at`)).at, time)
  t.strictSame((await only(sql<{ all: number[] }[]>`select ${times}::timestamptz[] as all`)).all, times)
})

await t.test('a time needs no cast where the column gives the type', async (t) => {
  await sql`insert into nodes ${sql({ id: 'n1', leaseUntil: 5000 })}`
  await sql`insert into nodes (id, lease_until) values ${sql([
    ['n2', 6000],
    ['n3', 7000],
  ])}`
  const found = await sql`select id, lease_until from nodes where lease_until < ${6500} order by id`
  t.strictSame(
    found.map((row) => ({ ...row })),
    [
      { id: 'n1', leaseUntil: 5000 },
      { id: 'n2', leaseUntil: 6000 },
    ],
  )
  const updated =
    await sql`update nodes set ${sql({ leaseUntil: 9000 })} where id = any(${['n1', 'n2']}) returning lease_until`
  t.strictSame(
    updated.map((row) => row['leaseUntil']),
    [9000, 9000],
  )
})

await t.test('microseconds are cut off, whatever the zone of the server', async (t) => {
  const { at } = await only(sql<{ at: number }[]>`select '2026-01-01 05:30:00.123999+05:30'::timestamptz as at`)
  t.equal(at, Date.parse('2026-01-01T00:00:00.123Z'))
})

await t.test('what is no time is refused, and the connection stays usable', async (t) => {
  const one = connect({ server, applicationName: 'parley test', maxConnections: 1 })
  t.teardown(() => one.end({ timeout: 1 }))
  await t.rejects(one`select ${'2026-01-01'}::timestamptz`, /milliseconds/)
  await t.rejects(one`select ${NaN}::timestamptz`)
  await t.rejects(one`select '0044-03-15 BC'::timestamptz`, /years/)
  await t.rejects(one`select 9007199254740992::int8 from generate_series(1, 3)`, /int8/)
  t.equal((await only(one`select 1 as one`))['one'], 1)
})

await t.test('whole numbers of eight bytes come as numbers', async (t) => {
  const row = await only(
    sql`select count(*) as number, ${Number.MAX_SAFE_INTEGER}::int8 as most, ${[1, -2]}::int8[] as list from nodes`,
  )
  t.strictSame({ ...row }, { number: 3, most: Number.MAX_SAFE_INTEGER, list: [1, -2] })
})

await t.test('JSON comes back as it went in', async (t) => {
  const random = createRandom(2)
  const texts = ['', 'a_b', 'snake_case_key', '"quoted"', 'back\\slash', 'ümläut 🎧', "it's", '{}', 'null', '\n\t']
  const text = () => texts[Math.floor(random() * texts.length)] ?? ''
  const leaf = (): Json => [null, true, false, text(), Math.round(random() * 1e6) / 8][Math.floor(random() * 5)] ?? null
  const value = (depth: number): Json => {
    if (depth === 0 || random() < 0.3) return leaf()
    const parts = Array.from({ length: Math.floor(random() * 4) }, () => value(depth - 1))
    return random() < 0.5 ? parts : Object.fromEntries(parts.map((part) => [text(), part]))
  }
  for (let round = 0; round < 100; round++) {
    const given = { value: value(4) }
    t.strictSame((await only(sql`select ${sql.json(given)}::jsonb as back`))['back'], given)
  }
})

await t.test('undefined is null', async (t) => {
  await sql`insert into nodes ${sql({ id: 'n4', leaseUntil: 1, startedAt: 2 })}`
  await t.rejects(sql`update nodes set ${sql({ startedAt: undefined })} where id = 'n4'`, /null value/)
  t.equal((await only(sql`select ${sql.json(null)}::jsonb as nothing`))['nothing'], null)
})

await t.test('a pool opens no more connections than it may', async (t) => {
  const two = connect({ server, applicationName: 'parley pool', maxConnections: 2 })
  t.teardown(() => two.end({ timeout: 1 }))
  const pids = await Promise.all(
    Array.from({ length: 12 }, () => only(two`select pg_backend_pid() as pid, pg_sleep(0.01)`)),
  )
  t.ok(new Set(pids.map((row) => row['pid'])).size <= 2)
  const { number } = await only(sql<{ number: number }[]>`
    select count(*) as number from pg_stat_activity where application_name = 'parley pool'`)
  t.ok(number >= 1 && number <= 2)
})

await t.test(
  'an observed database tells how long queries and waiting transactions took, and works as ever',
  async (t) => {
    const telemetry = createRecordedTelemetry()
    const one = observedSql(connect({ server, applicationName: 'parley test', maxConnections: 1 }), telemetry)
    t.teardown(() => one.end({ timeout: 1 }))
    const queries = () =>
      telemetry.observed.flatMap(({ name, labels }) =>
        name === 'db.query' ? [`${labels['within']} ${labels['result']}`] : [],
      )
    const where = one`where id = ${'n1'}`
    t.equal((await one`select id from nodes ${where}`).length, 1)
    t.same(queries(), ['pool ok'], 'a fragment is no query of its own')
    await t.rejects(one`select nonsense`, { code: '42703' })
    t.equal((await one.unsafe('select 1 as one'))[0]?.['one'], 1)

    const held = Promise.withResolvers<void>()
    const first = one.begin(async (tx) => {
      await held.promise
      await tx`insert into nodes ${tx({ id: 'told', leaseUntil: 1 })}`
      return (await tx`select ${tx.json({ a: 1 })}::jsonb as back`)[0]?.['back'] as Json
    })
    const second = one.begin((tx) => [tx`select 1`, tx`select 2`])
    await sql`select pg_sleep(0.02)`
    held.resolve()
    t.same(await first, { a: 1 })
    t.equal((await second).length, 2)
    await t.rejects(
      one.begin(async (tx) => {
        await tx`delete from nodes where id = 'told'`
        await tx`select nonsense`
      }),
      { code: '42703' },
    )
    t.equal((await one`delete from nodes where id = 'told'`).count, 1, 'what failed was rolled back')
    const inTransaction = [...Array(5).fill('transaction ok'), 'transaction failed']
    t.same(queries(), ['pool ok', 'pool failed', ...inTransaction, 'pool ok'])
    const [free = 0, waited = 0, ...rest] = telemetry.values('db.connection_wait')
    t.equal(rest.length, 1)
    t.ok(waited >= 15 && waited > free, 'the one connection was taken')
  },
)

const things = async (one: Sql) => (await one<{ id: number }[]>`select id from things order by id`).map(({ id }) => id)

const databaseNamed = (name: string): DatabaseServer =>
  'url' in server
    ? { url: Object.assign(new URL(server.url), { pathname: `/${name}` }).href }
    : { ...server, database: name }

/** A folder of migrations, and an empty database to run them in. */
async function arrange(t: Parameters<typeof openTestDatabase>[0], files: Record<string, string>) {
  const folder = await mkdtemp(path.join(tmpdir(), 'parley-migrations-'))
  const name = `empty_${path.basename(folder).slice(-6).toLowerCase()}_${process.pid}`
  await sql`create database ${sql(name)}`
  const empty = connect({ server: databaseNamed(name), applicationName: 'parley test', maxConnections: 2 })
  t.teardown(async () => {
    await rm(folder, { recursive: true })
    await empty.end({ timeout: 1 })
    await sql`drop database ${sql(name)} with (force)`
  })
  const write = (file: string, text: string) => writeFile(path.join(folder, file), text)
  for (const [file, text] of Object.entries(files)) await write(file, text)
  return { folder, write, sql: empty, server: databaseNamed(name) }
}

await t.test('migrations run once each, in order, however many processes start at the same moment', async (t) => {
  const { folder, server, sql } = await arrange(t, {
    '0002_second.sql': 'insert into things values (2); select pg_sleep(0.05)',
    '0001_first.sql': 'create table things (id integer); insert into things values (1);',
    '0010_tenth.sql': '-- nothing but a comment\ninsert into things select max(id) + 1 from things',
    'readme.md': 'not a migration',
  })
  const several = Array.from({ length: 5 }, () =>
    connect({ server, applicationName: 'parley test', maxConnections: 2 }),
  )
  const applied = await Promise.all(several.map((one) => migrate(one, folder)))
  await Promise.all(several.map((one) => one.end({ timeout: 1 })))
  t.strictSame(applied.flat().toSorted(), ['0001_first.sql', '0002_second.sql', '0010_tenth.sql'])
  t.strictSame(await things(sql), [1, 2, 3])
  await sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(7275539)`
    t.strictSame(await migrate(sql, folder), [], 'where all are applied nobody waits for whoever has the lock')
  })
})

await t.test(
  'indexes of a large table are made while it is written to, and by the next process where one has ended',
  async (t) => {
    const { folder, write, server, sql } = await arrange(t, {
      '0001_first.sql':
        "create table things (id integer, text text); create index things_id on things (id);\ninsert into things select n, repeat('x', 1000) from generate_series(1, 20000) n",
    })
    await migrate(sql, folder)
    await write(
      '0002_second.sql',
      'alter table things add column more integer;\ncreate index things_more on things (more);\ncreate index things_text on things (id)\n  where more is null;\ndrop index things_id;\n',
    )
    const [other, writer] = [1, 2].map(() =>
      connect({ server, applicationName: 'parley test', maxConnections: 2 }),
    ) as [Sql, Sql]
    t.teardown(() => Promise.all([other.end({ timeout: 1 }), writer.end({ timeout: 1 })]))
    const told: string[] = []
    t.strictSame(await migrate(sql, folder, ({ statement }) => told.push(statement)), ['0002_second.sql'])
    t.match(told, [/concurrently things_more/, /concurrently things_text/, /drop index concurrently/])
    const indexes = async () =>
      (
        await sql`select indexrelid::regclass::text as name from pg_index where indrelid = 'things'::regclass and indisvalid order by 1`
      ).map(({ name }) => name)
    t.strictSame(await indexes(), ['things_more', 'things_text'])

    await write('0003_third.sql', 'create index things_last on things (id);')
    const building = writer.begin(async (tx) => {
      await tx`insert into things values (0, 'z')`
      const ended = migrate(other, folder)
      ended.catch(() => undefined)
      const pid = async () =>
        (
          await sql<
            { pid: number }[]
          >`select pid from pg_stat_activity where query like 'create index concurrently things_last%'`
        )[0]?.pid
      // Begun, and waiting for this transaction: before, nothing of it would be left.
      const isBegun = async () => (await sql`select from pg_index where not indisvalid`).count > 0
      while (!(await isBegun())) continue
      await sql`insert into things values (1, 'written meanwhile')`
      await sql`select pg_cancel_backend(${(await pid()) ?? 0})`
      await t.rejects(ended)
      await other.end({ timeout: 0 })
    })
    await building
    t.equal((await sql`select from pg_index where not indisvalid`).length, 1, 'it was broken off')
    t.strictSame(await migrate(sql, folder), [], 'the file has been applied')
    t.strictSame(await indexes(), ['things_last', 'things_more', 'things_text'])
  },
)

await t.test('a migration that changed after it was applied is an error that names it', async (t) => {
  const { folder, write, sql } = await arrange(t, { '0001_first.sql': 'create table things (id integer)' })
  await migrate(sql, folder)
  await write('0001_first.sql', 'create table things (id integer, name text)')
  await t.rejects(migrate(sql, folder), /0001_first\.sql has changed/)
})

await t.test('a migration that fails leaves nothing of itself, and those before it stay', async (t) => {
  const { folder, write, sql } = await arrange(t, {
    '0001_first.sql': 'create table things (id integer)',
    '0002_second.sql': 'insert into things values (2); select 1/0;',
  })
  await t.rejects(migrate(sql, folder), /division by zero/)
  t.strictSame(await things(sql), [])
  await write('0002_second.sql', 'insert into things values (2)')
  t.strictSame(await migrate(sql, folder), ['0002_second.sql'])
  t.strictSame(await things(sql), [2])
  await write('0002_again.sql', 'select 1')
  await t.rejects(migrate(sql, folder), /same number/)
  await write('3_third.sql', 'select 1')
  await t.rejects(migrate(sql, folder), /3_third\.sql must be named/)
})

await t.test('the service opens the database at its current schema, and other processes may too', async (t) => {
  const opened = await Promise.all([1, 2].map(() => openDatabase({ databaseUrl, dataDir, log })))
  for (const one of opened) {
    t.equal(one.embedded, databaseUrl === null)
    t.equal((await only(one.sql`select count(*) as number from nodes`))['number'], 4)
    t.strictSame(await migrate(one.sql), [])
    await Promise.all([one.close(), one.close()])
    await t.rejects(one.sql`select 1`, { code: 'CONNECTION_ENDED' })
  }
})

await t.test('waiting for a server ends when it answers, cannot answer, or time is up', async (t) => {
  t.equal(await awaitServer({ server, timeout: 0 }), true)
  const nowhere = { socket: path.join(dataDir, 'nowhere'), user: 'postgres', database: 'postgres' }
  t.equal(await awaitServer({ server: nowhere, timeout: 60_000, possible: () => false }), false)
  await t.rejects(awaitServer({ server: nowhere, timeout: 0 }), /did not answer in time/)
  await t.rejects(awaitServer({ server: databaseNamed('no_such_database'), timeout: 60_000 }), {
    code: '3D000',
  })
  const leaving = AbortSignal.timeout(200)
  const told: string[] = []
  const waiting = ({ message }: Error) => void told.push(message)
  await t.rejects(awaitServer({ server: nowhere, timeout: 60_000, signal: leaving, waiting }), { name: 'AbortError' })
  t.match(told, [/nowhere/], 'and whoever waits is told once what for')
  t.equal(told.length, 1)
})
