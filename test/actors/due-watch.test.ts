/** Who has durable work to do, or looks for what others have left, hears when there is some, from one question a second for all of them. */
import t, { test } from 'tap'
import { createDueWatch } from '../../actors/rounds/due-watch.ts'
import { createScheduler } from '../../actors/rounds/scheduler.ts'
import { insertJobs, type JobKind } from '../../store/jobs.ts'
import type { Sql } from '../../store/sql.ts'
import type { CallId, NodeId } from '../../model/ids.ts'
import { listDeadNodes, renewLease } from '../../store/nodes.ts'
import { claimRemoval, orderRemoval } from '../../store/removals.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { openCallNode, openShared } from '../scenes/call-node.ts'
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
  const add = async (kind: JobKind, runAt: number) => {
    await sql.begin((tx) =>
      insertJobs(tx, [{ id: newId(), accountId: tenant.accountId, callId: callId as never, kind, runAt }]),
    )
    return { callId: callId as CallId, tenant }
  }
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

/** A node that runs no calls, as the watch asks for it. */
const questionOf = (nodeId: NodeId) => ({ nodeId, passedOver: [] as CallId[], knownDeaths: [] as string[] })

test('calls that wait for a place, rows that are to go and calls of dead nodes are found by the same question', async (t) => {
  const { sql, clock, log, add } = await open()
  const { callId, tenant } = await add('dial', clock.now() + 3_600_000)
  const [own, other] = [newId<'node'>(), newId<'node'>()]
  const question = questionOf(own)
  const dueWatch = createDueWatch({ sql, clock, log })
  t.teardown(() => dueWatch.close())
  const found = new Set<string>()
  for (const kind of ['places', 'removals'] as const) dueWatch.on([kind], () => found.add(kind))
  dueWatch.onLeft(
    () => question,
    () => found.add('orphans'),
  )
  const look = async (): Promise<string[]> => {
    found.clear()
    await dueWatch.idle()
    return [...found]
  }
  await sql`update calls set created_at = to_timestamp(${clock.now() / 1_000 - 1}), scheduled_at = null where id = ${callId}`
  t.same(await look(), ['places'])
  await sql`update calls set scheduled_at = to_timestamp(${clock.now() / 1_000 + 60}) where id = ${callId}`
  t.same(await look(), [], 'its time has not come')
  clock.advance(60_000)
  t.same(await look(), ['places'])

  await sql`update calls set slot_granted_at = now(), owner = ${other} where id = ${callId}`
  await renewLease(sql, other, 60_000)
  t.same(await look(), [], 'its node lives')
  await sql`update nodes set lease_until = clock_timestamp() where id = ${other}`
  t.same(await look(), ['orphans'])
  const [dead] = await listDeadNodes(sql)
  question.knownDeaths.push(dead?.death ?? '')
  t.same(await look(), ['orphans'], 'its call')
  question.passedOver.push(callId)
  t.same(await look(), [], 'which the one that asks has, or cannot run')
  await renewLease(sql, other, 0)
  t.same(await look(), ['orphans'], 'a node that came back has died again')
  await sql`delete from nodes`
  question.passedOver.pop()
  await sql`update calls set owner = ${own} where id = ${callId}`
  t.same(await look(), ['orphans'], 'one that the node itself has lost')
  await sql`update calls set finished = true where id = ${callId}`
  t.same(await look(), [])

  const removal = { kind: 'trunk', accountId: tenant.accountId, subjectId: 'gone' } as const
  await sql.begin((tx) => orderRemoval(tx, removal))
  t.same(await look(), ['removals'])
  await claimRemoval(sql, clock.now(), 30_000)
  t.same(await look(), [], 'somebody works on it')
  clock.advance(30_000)
  t.same(await look(), ['removals'], 'who has died at it')
})

test('a node that is told takes over what a dead one has left, and asks for nothing while there is nothing', async (t) => {
  const shared = await openShared(t)
  const sent: string[] = []
  const dueWatch = createDueWatch({ ...shared, log: createQuietLog() })
  const node = await openCallNode({ ...shared, sql: counted(shared.sql, sent) }, undefined, { dueWatch })
  t.teardown(() => Promise.all([node.close(), dueWatch.close()]))
  await dueWatch.idle()
  sent.length = 0
  for (let second = 0; second < 10; second++) {
    shared.clock.advance(1_000)
    await dueWatch.idle()
  }
  t.same(
    sent.filter((text) => /\bfrom (?:calls|nodes)\b/.test(text)),
    [],
  )
  const { accountId, workerId } = await createTenant(shared.sql, { slug: newId() })
  const { callId } = await node.createWebCall(accountId, { workerId })
  await shared.sql`update calls set owner = ${newId<'node'>()} where id = ${callId}`
  await dueWatch.idle()
  const owner = async () =>
    (await shared.sql<{ owner: string }[]>`select owner from calls where id = ${callId}`)[0]?.owner
  while ((await owner()) !== node.nodeId) await new Promise((resolve) => setImmediate(resolve))
  t.equal(await owner(), node.nodeId)
})
