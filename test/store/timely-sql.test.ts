/** Deadlines on a real database that is really frozen (SIGSTOP), swallowed by the network, busy or slow: who waits is told in time, and what was not done then is never done. */
import t, { test, type Test } from 'tap'
import { databaseUnreachable } from '../../store/database-unreachable.ts'
import { inTime } from '../../store/in-time.ts'
import { connect, type Sql } from '../../store/sql.ts'
import { createTimelySql } from '../../store/timely-sql.ts'
import { countSentStatements } from '../load/sent-statements.ts'
import { createRecordedLog } from '../scenes/seeded-api.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { answersAgain, freezePostgres, killPostgres } from '../scenes/frozen-postgres.ts'
import { until } from '../scenes/in-time.ts'
import { openNetwork } from '../scenes/postgres-network.ts'

const limit = 1_000
const name = 'timely'
const sent = countSentStatements()

const database = await openTestDatabase(t)
await database.sql`create table things (id integer primary key)`

async function open(t: Test, maxConnections = 2) {
  const { sql: other, server, dataDir } = database
  await other`delete from things`
  const { log, lines } = createRecordedLog()
  const sql = createTimelySql({ server, applicationName: name, maxConnections, limit, log })
  t.teardown(() => sql.end({ timeout: 0 }))
  /** Every connection is there, and knows its statements. */
  const warmUp = () =>
    Promise.all(Array.from({ length: maxConnections }, () => sql.begin((tx) => tx`select pg_sleep(0.02)`)))
  await warmUp()
  return { sql, other, server, dataDir, lines, ids: () => idsOf(other), quiet: () => allIdle(other) }
}

const idsOf = async (sql: Sql) => (await sql<{ id: number }[]>`select id from things order by id`).map(({ id }) => id)

/** Nothing that the tested connections have sent is still to be read: each is idle, or gone. */
const allIdle = (sql: Sql) =>
  until(async () => {
    const rows =
      await sql`select state from pg_stat_activity where application_name = ${name} and state is distinct from 'idle'`
    return rows.length === 0
  })

const late = { code: 'QUERY_DEADLINE' }

async function took(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await work()
  return performance.now() - began
}

test('a statement in the socket of a frozen server is not carried out when the server goes on', async (t) => {
  const { sql, other, server, dataDir, ids, quiet } = await open(t)
  const bare = connect({ server, applicationName: name, maxConnections: 1 })
  t.teardown(() => bare.end({ timeout: 0 }))
  await bare`select 1`
  const goOn = freezePostgres(dataDir)
  t.teardown(goOn)
  const hazard = bare`insert into things values (1)`.execute()
  const ms = await took(async () => {
    const writes = [2, 3, 4, 5].map((id) => t.rejects(sql`insert into things values (${id})`, late))
    const whole = sql.begin(async (tx) => {
      await tx`insert into things values (6)`
      await tx`insert into things values (7)`
    })
    await Promise.all([...writes, t.rejects(whole, late), t.rejects(sql`select 1`, late)])
  })
  t.ok(ms >= limit - 5 && ms < limit + 1_000, `told after ${Math.round(ms)} ms`)
  goOn()
  await hazard
  await quiet()
  t.same(await ids(), [1], 'only what has no deadline was carried out, long after it was sent')
  await sql`insert into things values (8)`
  t.same(await ids(), [1, 8], 'and the same connections go on')
  t.equal(
    (await other`select count(*) as number from pg_stat_activity where application_name = ${name}`)[0]?.['number'],
    3,
  )
})

/** A statement that is a transaction by itself, with its deadline in it. */
const insertInTime = (sql: Sql, id: number) => sql`insert into things select ${id}::int where ${inTime(sql)}`

/** The clock of the server is known from here on. */
async function knowClock(sql: Sql): Promise<void> {
  await until(async () => (await sql`select ${inTime(sql)} as in_time`).statement.string.includes('clock_timestamp'))
}

test('a statement that carries its deadline is one message, and is not carried out when a frozen server reads it too late', async (t) => {
  const { sql, dataDir, ids, quiet } = await open(t)
  await knowClock(sql)
  const before = sent.count()
  await insertInTime(sql, 1)
  t.equal(sent.count() - before, 1)
  await insertInTime(sql, 2)
  const goOn = freezePostgres(dataDir)
  t.teardown(goOn)
  await Promise.all([3, 4, 5, 6].map((id) => t.rejects(insertInTime(sql, id), late)))
  goOn()
  await quiet()
  t.same(await ids(), [1, 2])
  await until(() =>
    insertInTime(sql, 7).then(
      () => true,
      () => false,
    ),
  )
  t.same(await ids(), [1, 2, 7])
})

test('a statement under whose work the server was frozen for longer than it has is broken off when the server goes on', async (t) => {
  const { sql, other, dataDir, ids, quiet } = await open(t)
  await knowClock(sql)
  const slow = sql`insert into things select case when ${inTime(sql)} then (select 1 from pg_sleep(0.5)) end`.execute()
  await until(async () => {
    const sleeping =
      await other`select from pg_stat_activity where application_name = ${name} and wait_event = 'PgSleep'`
    return sleeping.count > 0
  })
  const goOn = freezePostgres(dataDir)
  t.teardown(goOn)
  await t.rejects(slow, late)
  goOn()
  await quiet()
  t.same(await ids(), [])
})

test('a deadline told by the clock of another server, or of one that was started since, passes nothing', async (t) => {
  const { sql, dataDir, server, ids } = await open(t)
  t.teardown(() => answersAgain(server))
  await knowClock(sql)
  const kept = [1, 2].map((id) => sql`insert into things select ${id}::int where ${inTime(sql)}`)
  killPostgres(dataDir)
  await answersAgain(server)
  await until(() =>
    sql`select 1`.then(
      () => true,
      () => false,
    ),
  )
  for (const statement of kept) await t.rejects(statement)
  t.same(await ids(), [])
  await until(() =>
    insertInTime(sql, 3).then(
      () => true,
      () => false,
    ),
  )
  t.same(await ids(), [3])
})

test('a COMMIT that a frozen server finds in its socket too late is a rollback', async (t) => {
  const { sql, dataDir, ids, quiet } = await open(t)
  let goOn = () => {}
  const transaction = sql.begin(async (tx) => {
    await tx`insert into things values (1)`
    goOn = freezePostgres(dataDir)
  })
  await t.rejects(transaction, late)
  goOn()
  await quiet()
  t.same(await ids(), [])
  await sql.begin((tx) => tx`insert into things values (2)`)
  t.same(await ids(), [2])
})

test('a short pause of the server costs nothing but its time', async (t) => {
  const { sql, dataDir, ids } = await open(t)
  const goOn = freezePostgres(dataDir)
  const written = Promise.all([
    sql`insert into things values (1)`,
    sql.begin((tx) => [tx`insert into things values (2)`, tx`insert into things values (3)`]),
    sql`select 1`,
  ])
  setTimeout(goOn, limit / 4)
  await written
  t.same(await ids(), [1, 2, 3])
})

test('connections on which a server stays silent are given up, and new ones work as soon as it answers', async (t) => {
  const { sql, server, dataDir, ids, lines } = await open(t)
  const goOn = freezePostgres(dataDir)
  t.teardown(goOn)
  await t.rejects(sql`insert into things values (1)`, late)
  await until(() => lines.find(({ message }) => /gives no answer/.test(message)))
  const began = performance.now()
  await t.rejects(sql`insert into things values (2)`, late)
  t.ok(performance.now() - began < limit + 1_000)
  goOn()
  await answersAgain(server)
  await until(() =>
    sql`insert into things values (3)`.then(
      () => true,
      () => false,
    ),
  )
  t.same(await ids(), [3])
  t.equal(lines.filter(({ level }) => level === 'error').length, 1, 'and said so once')
})

test('what a network delivers after the deadline changes nothing', async (t) => {
  const { other, server, ids, quiet } = await open(t)
  const network = await openNetwork(t, server)
  const { log } = createRecordedLog()
  const sql = createTimelySql({ server: network.server, applicationName: name, maxConnections: 1, limit, log })
  t.teardown(() => sql.end({ timeout: 0 }))
  await sql`insert into things values (1)`
  network.swallow()
  await t.rejects(sql`insert into things values (2)`, late)
  network.deliver()
  await quiet()
  t.same(await ids(), [1])
  await sql`insert into things values (3)`
  t.same(await idsOf(other), [1, 3])
})

test('the wait for a connection counts, and what waited too long is not done when its turn comes', async (t) => {
  const { sql, ids, quiet } = await open(t, 1)
  const held = Promise.withResolvers<void>()
  const holding = sql.begin(async (tx) => {
    await tx`insert into things values (1)`
    await held.promise
  })
  const waiting = [sql`insert into things values (2)`, sql.begin((tx) => tx`insert into things values (3)`)]
  await Promise.all([t.rejects(holding, late), ...waiting.map((one) => t.rejects(one, late))])
  held.resolve()
  await quiet()
  await sql`insert into things values (4)`
  t.same(await ids(), [4])
})

test('a statement that takes too long is canceled on the server, a lock that is not free too, and both may pass', async (t) => {
  const { sql, other, ids, quiet } = await open(t)
  const slow = await sql`select pg_sleep(30)`.catch((error: unknown) => error)
  t.ok(databaseUnreachable(slow), String(slow))
  await other.begin(async (tx) => {
    await tx`lock table things`
    const refused = await sql`insert into things values (1)`.catch((error: unknown) => error)
    t.ok(databaseUnreachable(refused), String(refused))
  })
  await quiet()
  t.same(await ids(), [])
})

test('an answer that came while this thread stood still is an answer', async (t) => {
  const { sql } = await open(t)
  const asked = sql`select 1 as one`.execute()
  // What is on its way to the server goes out first.
  await new Promise(setImmediate)
  await new Promise(setImmediate)
  const until = performance.now() + 2 * limit
  while (performance.now() < until);
  t.equal((await asked)[0]?.['one'], 1)
})

test('errors of a statement are its own, whatever stands around it, and leave the connection usable', async (t) => {
  const { sql, ids } = await open(t, 1)
  await sql`insert into things values (1)`
  await t.rejects(sql`insert into things values (1)`, { code: '23505' })
  await t.rejects(sql`insert into things values (${'x'})`, { code: '22P02' })
  await t.rejects(sql`update things set nonsense = 1`, { code: '42703' })
  await t.rejects(
    sql.begin(async (tx) => {
      await tx`insert into things values (2)`
      await tx`insert into things values (1)`
    }),
    { code: '23505' },
  )
  await t.rejects(
    sql.begin(async (tx) => {
      await tx`insert into things values (2)`
      throw new Error('no')
    }),
    /no/,
  )
  t.equal((await sql`delete from things where id = 1`).count, 1)
  t.same((await sql`with made as (insert into things values (5) returning id) select id from made`)[0], { id: 5 })
  t.same(await ids(), [5])
})

test('a server that is killed under transactions breaks them off whole, and the process goes on', async (t) => {
  const { sql, ids, dataDir, server } = await open(t)
  t.teardown(() => answersAgain(server))
  const done: number[] = []
  let isOver = false
  const transact = async (id: number): Promise<void> => {
    await sql.begin(async (tx) => {
      await tx`insert into things values (${id})`
      await tx`select pg_sleep(0.002)`
      await tx`insert into things values (${-id})`
    })
    done.push(id)
  }
  let next = 1
  const failures: unknown[] = []
  const work = async (): Promise<void> => {
    while (!isOver) await transact(next++).catch((error: unknown) => failures.push(error))
  }
  const working = [work(), work(), work(), work()]
  await until(() => done.length > 5)
  killPostgres(dataDir)
  await until(() => failures.length > 0)
  await answersAgain(server)
  const before = done.length
  await until(() => done.length > before + 5)
  isOver = true
  await Promise.all(working)
  t.ok(failures.every(databaseUnreachable), String(failures.find((error) => !databaseUnreachable(error))))
  const expected = [...done.map((id) => -id), ...done].toSorted((a, b) => a - b)
  t.same(await ids(), expected)
})

test('after the end nothing is asked', async (t) => {
  const { sql } = await open(t)
  await Promise.all([sql.end({ timeout: 1 }), sql.end({ timeout: 1 })])
  for (const asked of [sql`select 1`, sql`insert into things values (1)`, sql.begin((tx) => tx`select 1`)])
    await t.rejects(asked, { code: 'CONNECTION_ENDED' })
})
