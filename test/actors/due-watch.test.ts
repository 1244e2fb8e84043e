/** Who has durable work to do hears when some is due, from one question a second for all of them. */
import t, { test } from 'tap'
import { createDueWatch } from '../../actors/rounds/due-watch.ts'
import { createScheduler } from '../../actors/rounds/scheduler.ts'
import { insertJobs, type JobKind } from '../../store/jobs.ts'
import type { Sql } from '../../store/sql.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { createTenant, newId } from '../scenes/tenant.ts'

const opened = openTestDatabase(t)

async function open() {
  const { sql } = await opened
  await sql`delete from jobs`
  const tenant = await createTenant(sql, { slug: newId() })
  const [callId] = (
    await sql<{ id: string }[]>`
      insert into calls (id, account_id, worker_id, session_id, direction, transport, progress, snapshot)
      values (${newId()}, ${tenant.accountId}, ${tenant.workerId}, 's', 'outbound', 'sip_trunk', 'queued', '{}') returning id`
  ).map(({ id }) => id)
  const add = (kind: JobKind, runAt: number) =>
    sql.begin((tx) =>
      insertJobs(tx, [{ id: newId(), accountId: tenant.accountId, callId: callId as never, kind, runAt }]),
    )
  return { sql, clock: createHandClock(), log: createQuietLog(), add }
}

/** Counts what is sent, by its first words. */
function counted(sql: Sql, sent: string[]): Sql {
  const ask = (first: TemplateStringsArray, ...rest: never[]): unknown => {
    if (Array.isArray(first) && 'raw' in first) sent.push(first.join('?'))
    return sql(first, ...rest)
  }
  return Object.assign(ask, sql) as unknown as Sql
}

test('a job of another process is done within a second of being due, and nothing is claimed while none is', async (t) => {
  const { sql, clock, log, add } = await open()
  const sent: string[] = []
  const dueWatch = createDueWatch({ sql, clock, log })
  const done = Promise.withResolvers<string>()
  const scheduler = createScheduler({
    sql: counted(sql, sent),
    clock,
    log,
    nodeId: newId<'node'>(),
    dueWatch,
    work: { dial: async ({ callId }) => done.resolve(callId) },
  })
  t.teardown(() => Promise.all([scheduler.close(), dueWatch.close()]))
  await add('dial', clock.now() + 5_500)
  // What is not this scheduler's wakes it not.
  await add('expire_token', clock.now())
  for (let second = 1; second <= 5; second++) {
    clock.advance(1_000)
    await dueWatch.idle()
  }
  t.same(
    sent.filter((text) => text.includes('update jobs')),
    [],
  )
  clock.advance(1_000)
  t.ok(await done.promise)
})

test('rounds that are told nothing look all the same after half a minute, and who is closed hears no more', async (t) => {
  const { sql, clock, log, add } = await open()
  const done = Promise.withResolvers<void>()
  const deaf = { on: () => () => {} }
  const scheduler = createScheduler({
    sql,
    clock,
    log,
    nodeId: newId<'node'>(),
    dueWatch: deaf,
    work: { dial: async () => done.resolve() },
  })
  await add('dial', clock.now())
  clock.advance(30_000)
  await done.promise
  await scheduler.close()

  const dueWatch = createDueWatch({ sql, clock, log })
  let woken = 0
  const stop = dueWatch.on(['dial'], () => woken++)
  await add('dial', clock.now())
  await dueWatch.idle()
  t.equal(woken, 1)
  stop()
  await dueWatch.idle()
  t.equal(woken, 1)
  await dueWatch.close()
  t.equal(clock.pending(), 0)
})
