/** Steps of many calls in one transaction: what one of them meets is its own matter, and together they write what they would write one by one. */
import net from 'node:net'
import t, { test, type Test } from 'tap'
import { toId, type CallId } from '../../model/ids.ts'
import { claimCall } from '../../store/call-steps.ts'
import { databaseUnreachable } from '../../store/database-unreachable.ts'
import { connect, type DatabaseServer, type Sql } from '../../store/sql.ts'
import { createStepWriter } from '../../store/step-groups.ts'
import type { CallStep } from '../../store/write-steps.ts'
import { createRandom } from '../fake/random.ts'
import { blockedQueries } from '../scenes/blocked-queries.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { newId } from '../scenes/tenant.ts'
import {
  nodeId,
  openCalls,
  openTenant,
  randomEffects,
  rowsOf,
  says,
  stepOf,
  type Actor,
} from '../scenes/written-steps.ts'

const database = openTestDatabase(t)
for (const seed of [1, 2, 3])
  test(`steps of many calls in groups leave the rows that they leave one by one (seed ${seed})`, async (t) => {
    const { sql } = await database
    const tenants = [await openTenant(sql, ['*', 'call.ended'], 2), await openTenant(sql, ['call.transcript'])]
    const ids = Array.from({ length: 50 }, () => newId<'call'>()).toSorted()
    const run = async (writeAll: (write: (() => Promise<unknown>)[]) => Promise<void>) => {
      await sql`delete from calls`
      const actors = await openCalls(sql, ids, (index) => tenants[index % 2]!)
      const random = createRandom(seed)
      const writer = createStepWriter({ sql, newId })
      for (let round = 0; round < 8; round++) {
        const steps = actors
          .filter(() => random.below(3) > 0)
          .map((actor) => {
            const step = stepOf(actor, randomEffects(random, actor), { finished: round === 7 && random.below(2) === 0 })
            actor.version++
            return () => writer.write(step).then((result) => t.equal(result, 'written'))
          })
        await writeAll(steps)
      }
      return rowsOf(sql)
    }
    const together = await run(async (steps) => void (await Promise.all(steps.map((step) => step()))))
    const alone = await run(async (steps) => {
      for (const step of steps) await step()
    })
    t.ok(together.deliveries.length > 100 && together.turns.length > 20 && together.jobs.length > 5)
    t.same(together, alone)
  })

/** The same connection; counts statements that read for steps and that write them, and transactions. */
function counted(sql: Sql) {
  let [read, written, begun] = [0, 0, 0]
  const begin = (...given: unknown[]) => (begun++, Reflect.apply(sql.begin, sql, given) as Promise<unknown>)
  const proxy = new Proxy(sql, {
    get: (_: Sql, key: string) => (key === 'begin' ? begin : (Reflect.get(sql, key) as unknown)),
    apply(_, of, given: [readonly string[]]) {
      if (given[0].some((text) => text.includes('as row_version'))) read++
      if (given[0].some((text) => text.includes('insert into call_events'))) written++
      return Reflect.apply(sql as never, of, given) as unknown
    },
  } as ProxyHandler<Sql>)
  return { sql: proxy, read: () => read, written: () => written, begun: () => begun }
}

const idsFor = (count: number): CallId[] => Array.from({ length: count }, () => newId<'call'>())
const versionsOf = async (sql: Sql, actors: readonly Actor[]) => {
  const rows = await sql<{ id: CallId; version: number }[]>`
    select id, version from calls where id = any(${actors.map(({ callId }) => callId)}::text[])`
  return actors.map(({ callId }) => rows.find(({ id }) => id === callId)?.version)
}

test('forty steps are one statement, and a step that finds nothing under way goes at once', async (t) => {
  const { sql } = await database
  const tenant = await openTenant(sql, ['*'])
  const actors = await openCalls(sql, idsFor(100), () => tenant)
  const connection = counted(sql)
  const writer = createStepWriter({ sql: connection.sql, newId })
  const results = await Promise.all(actors.map((actor) => writer.write(stepOf(actor, [says(actor, 'yes')]))))
  t.equal(connection.written(), 3)
  t.equal(connection.begun(), 0, 'which is a transaction by itself')
  t.ok(results.every((result) => result === 'written'))
  const [first] = actors as [Actor, ...Actor[]]
  first.version++
  const idle = createStepWriter({ sql: connection.sql, newId })
  const alone = idle.write(stepOf(first, [says(first, 'and')]))
  await new Promise(setImmediate)
  await new Promise(setImmediate)
  t.equal(connection.read(), 4)
  t.equal(await alone, 'written')
})

test('steps that come one by one behind a crowd go together', async (t) => {
  const { sql } = await database
  const tenant = await openTenant(sql, [])
  const actors = await openCalls(sql, idsFor(35), () => tenant)
  const connection = counted(sql)
  const writer = createStepWriter({ sql: connection.sql, newId })
  const write = (actor: Actor) => writer.write(stepOf(actor, [says(actor, 'yes')]))
  await Promise.all(actors.slice(0, 5).map(write))
  t.equal(connection.written(), 1)
  const writes = []
  for (const actor of actors.slice(5)) {
    writes.push(write(actor))
    await new Promise(setImmediate)
  }
  t.ok((await Promise.all(writes)).every((result) => result === 'written'))
  t.ok(connection.written() <= 4, `${connection.written()} groups`)
})

test('a fenced step in the midst of a group writes nothing, and stops nobody else', async (t) => {
  const { sql } = await database
  const tenant = await openTenant(sql, ['*'])
  const actors = await openCalls(sql, idsFor(12), () => tenant)
  const [stale, taken, gone] = actors.slice(3) as [Actor, Actor, Actor]
  await claimCall(sql, taken.callId, nodeId)
  await sql`update calls set version = version + 3 where id = ${stale.callId}`
  await sql`update calls set owner = ${newId()} where id = ${gone.callId}`
  const writer = createStepWriter({ sql, newId })
  const results = await Promise.all(
    actors.map((actor) => writer.write(stepOf(actor, [says(actor, 'yes'), { type: 'schedule_post_processing' }]))),
  )
  const fenced = [stale, taken, gone]
  t.same(
    results,
    actors.map((actor) => (fenced.includes(actor) ? 'fenced' : 'written')),
  )
  for (const table of ['call_events', 'transcript_turns', 'deliveries', 'jobs']) {
    const wrote = await sql<{ callId: CallId }[]>`
      select distinct call_id from ${sql(table)} where call_id = any(${actors.map(({ callId }) => callId)}::text[])`
    const expected = actors.filter((actor) => !fenced.includes(actor)).map(({ callId }) => callId)
    t.same(wrote.map(({ callId }) => callId).toSorted(), expected.toSorted(), table)
  }
})

const poisons: Readonly<Record<string, (step: CallStep) => CallStep>> = {
  'a text that Postgres cannot store': (step) => ({ ...step, logged: { ...step.logged, event: { text: 'a\0b' } } }),
  'a value that a constraint refuses': (step) => {
    const [said] = step.rowsOf({ call: { warnings: [] } as never, turns: [], config: null }).turns
    const turns = [{ index: 0, turn: { ...said!.turn, role: 'nobody' as 'user' } }]
    return { ...step, rowsOf: (facts) => ({ ...step.rowsOf(facts), turns }) }
  },
  'rows that cannot be made': (step) => ({
    ...step,
    rowsOf: () => {
      throw new TypeError('no such thing')
    },
  }),
}

for (const [poison, spoiled] of Object.entries(poisons))
  test(`of forty steps one has ${poison}: it alone is refused`, async (t) => {
    const { sql } = await database
    const tenant = await openTenant(sql, ['*'])
    const actors = await openCalls(sql, idsFor(40), () => tenant)
    const writer = createStepWriter({ sql, newId })
    const results = await Promise.allSettled(
      actors.map((actor, index) => {
        const step = stepOf(actor, [says(actor, 'yes')])
        return writer.write(index === 17 ? spoiled(step) : step)
      }),
    )
    const refused = results.flatMap((result, index) =>
      result.status === 'rejected' ? [{ index, error: result.reason as unknown }] : [],
    )
    t.same(
      refused.map(({ index }) => index),
      [17],
    )
    t.notOk(databaseUnreachable(refused[0]?.error), 'for good')
    t.same(
      await versionsOf(sql, actors),
      actors.map((_, index) => (index === 17 ? 0 : 1)),
    )
    const said = await sql`select from deliveries where call_id = any(${actors.map(({ callId }) => callId)}::text[])`
    t.equal(said.count, 39)
  })

test('a call that somebody else has locked holds up no other one, and is written when it is free', async (t) => {
  const { sql } = await database
  const tenant = await openTenant(sql, ['*'])
  const actors = await openCalls(sql, idsFor(10), () => tenant)
  const locked = actors[4]!
  const [held, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const holding = sql.begin(async (tx) => {
    await tx`select from calls where id = ${locked.callId} for update`
    held.resolve()
    await release.promise
    await tx`update calls set person_id = ${newId()} where id = ${locked.callId}`
  })
  await held.promise
  const writer = createStepWriter({ sql, newId })
  const writes = actors.map((actor) => writer.write(stepOf(actor, [says(actor, 'yes'), { type: 'announce_ended' }])))
  await Promise.all(writes.filter((_, index) => index !== 4))
  t.same(await versionsOf(sql, [locked]), [0])
  release.resolve()
  await holding
  t.equal(await writes[4], 'written')
  const [ended] = await sql<{ body: string; personId: string }[]>`
    select body, person_id from deliveries join calls on calls.id = call_id where call_id = ${locked.callId} and event_type = 'call.ended'`
  const { data } = JSON.parse(ended!.body) as { data: { personId: string } }
  t.equal(data.personId, ended!.personId, 'its events tell the row as the other left it')
})

test('a subscription that somebody else has locked holds up the steps of other accounts only for a moment', async (t) => {
  const { sql } = await database
  const [slow, other] = [await openTenant(sql, ['*']), await openTenant(sql, ['*'])]
  const actors = await openCalls(sql, idsFor(10), (index) => (index === 4 ? slow : other))
  const [held, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const holding = sql.begin(async (tx) => {
    await tx`select from webhook_subscriptions where account_id = ${slow.accountId} for update`
    held.resolve()
    await release.promise
    await tx`delete from webhook_subscriptions where account_id = ${slow.accountId}`
  })
  await held.promise
  const writer = createStepWriter({ sql, newId })
  const writes = actors.map((actor) => writer.write(stepOf(actor, [says(actor, 'yes')])))
  await Promise.all(writes.filter((_, index) => index !== 4))
  await blockedQueries(sql, 1)
  release.resolve()
  await holding
  t.equal(await writes[4], 'written')
  t.equal(
    (await sql`select from deliveries where call_id = ${actors[4]!.callId}`).count,
    0,
    'it is told nothing any more',
  )
})

test('what somebody changes of a call between its reading and its writing is in its rows, and who takes it then fences the step', async (t) => {
  const { sql } = await database
  const [slow, other] = [await openTenant(sql, ['*']), await openTenant(sql, ['*'])]
  const actors = await openCalls(sql, idsFor(4), (index) => (index === 0 ? slow : other))
  const [, changed, taken] = actors as [Actor, Actor, Actor, Actor]
  const [held, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const holding = sql.begin(async (tx) => {
    await tx`select from webhook_subscriptions where account_id = ${slow.accountId} for update`
    held.resolve()
    await release.promise
  })
  await held.promise
  const writer = createStepWriter({ sql, newId })
  const writes = actors.map((actor) => writer.write(stepOf(actor, [says(actor, 'yes'), { type: 'announce_ended' }])))
  // The statement that writes has begun, and sees the calls as they are now.
  await blockedQueries(sql, 1)
  const personId = newId()
  await sql`update calls set person_id = ${personId} where id = ${changed.callId}`
  await claimCall(sql, taken.callId, nodeId)
  release.resolve()
  await holding
  t.same(await Promise.all(writes), ['written', 'written', 'fenced', 'written'])
  t.same(await versionsOf(sql, actors), [1, 1, 0, 1])
  const [ended] = await sql<{ body: string }[]>`
    select body from deliveries where call_id = ${changed.callId} and event_type = 'call.ended'`
  t.equal((JSON.parse(ended!.body) as { data: { personId: string } }).data.personId, personId)
  for (const table of ['call_events', 'transcript_turns', 'deliveries'])
    t.equal((await sql`select from ${sql(table)} where call_id = ${taken.callId}`).count, 0, table)
})

/** A way to the database that ends, both ways, instead of telling that steps were written, which it does behind their commit: `times` times. */
async function openForgetfulWay(t: Test, server: DatabaseServer, times: number) {
  const target =
    'socket' in server ? { path: server.socket } : { port: Number(new URL(server.url).port), host: '127.0.0.1' }
  let left = times
  const sockets = new Set<net.Socket>()
  const listener = net.createServer((near) => {
    const far = net.connect(target)
    for (const socket of [near, far]) sockets.add(socket.on('error', () => {}))
    near.on('data', (bytes) => void far.write(bytes)).on('close', () => far.destroy())
    far
      .on('close', () => near.destroy())
      .on('data', (bytes) => {
        if (left > 0 && /UPDATE \d+\0/.test(bytes.toString('latin1'))) {
          left--
          near.destroy()
        } else near.write(bytes)
      })
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  const { port } = listener.address() as net.AddressInfo
  const user = 'user' in server ? `${server.user}@` : ''
  const name = 'database' in server ? server.database : new URL(server.url).pathname.slice(1)
  const url = `postgres://${user}127.0.0.1:${port}/${name}`
  const sql = connect({ server: { url }, applicationName: 'parley test', maxConnections: 3 })
  t.teardown(async () => {
    await sql.end({ timeout: 1 })
    for (const socket of sockets) socket.destroy()
    listener.close()
  })
  return { sql, left: () => left }
}

test('steps whose connection is cut between their commit and the answer are written once, and told as written', async (t) => {
  const { sql, server } = await database
  const tenant = await openTenant(sql, ['*'])
  const actors = await openCalls(sql, idsFor(20), () => tenant)
  const way = await openForgetfulWay(t, server, 1)
  const writer = createStepWriter({ sql: way.sql, newId })
  const steps = actors.map((actor, index) =>
    stepOf(actor, [says(actor, 'yes')], { finished: index === 3, dormant: index === 5 }),
  )
  const first = await Promise.allSettled(steps.map((step) => writer.write(step)))
  t.equal(way.left(), 0)
  t.ok(first.every((result) => result.status === 'rejected' && databaseUnreachable(result.reason)))
  t.same(
    await versionsOf(sql, actors),
    actors.map(() => 1),
    'all were committed',
  )

  // What somebody took over meanwhile is fenced, although its step is there.
  await claimCall(sql, actors[7]!.callId, nodeId)
  const again = await Promise.all(steps.map((step) => writer.write(step)))
  t.same(
    again,
    actors.map((_, index) => (index === 7 ? 'fenced' : 'written')),
  )
  t.same(
    await versionsOf(sql, actors),
    actors.map(() => 1),
  )
  const ids = actors.map(({ callId }) => callId)
  for (const table of ['call_events', 'transcript_turns', 'deliveries'])
    t.equal((await sql`select from ${sql(table)} where call_id = any(${ids}::text[])`).count, 20, table)

  // Another step of the same version is not taken for it.
  const other = { ...steps[0]!, logged: { ...steps[0]!.logged, event: { type: 'noted', key: 'other', value: 1 } } }
  t.equal(await writer.write(other), 'fenced')
})

test('steps that no database answers are told so, with those that wait behind them; more than can wait are refused at once', async (t) => {
  const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
  const { promise, reject } = Promise.withResolvers<never>()
  promise.catch(() => {})
  const away = Object.assign(() => promise, { unsafe: () => promise }) as unknown as Sql
  const writer = createStepWriter({ sql: away, newId })
  const actor = {
    callId: toId<'call'>(newId())!,
    tenant: { accountId: newId<'account'>(), workerId: newId<'worker'>() },
    epoch: 1,
    version: 0,
    turns: 0,
  }
  const step = stepOf(actor, [])
  const waiting = Array.from({ length: 10_000 }, () => writer.write(step).catch((error: unknown) => error))
  const tooMany = await writer.write(step).catch((error: unknown) => error)
  t.ok(databaseUnreachable(tooMany), 'which passes')
  t.not(tooMany, refused)
  reject(refused)
  t.ok((await Promise.all(waiting)).every((error) => error === refused))
})
