/** Steps of calls while the database is away: kept on the disk, written once and in their order when it is back, by this process or the next one. */
import { mkdir, rmdir } from 'node:fs/promises'
import path from 'node:path'
import t, { test, type Test } from 'tap'
import { lastingClock } from '../fake/lasting-clock.ts'
import { createKeptSteps } from '../../actors/node/kept-steps.ts'
import { createStepPatience } from '../../actors/node/step-patience.ts'
import type { Clock } from '../../model/clock.ts'
import { claimCall } from '../../store/call-steps.ts'
import { createJournalFolder } from '../../store/journal-folder.ts'
import { createStepWriter } from '../../store/step-groups.ts'
import { createTimelySql } from '../../store/timely-sql.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRandom } from '../fake/random.ts'
import { runCommand } from '../../tools/admin/run-command.ts'
import { openTestDatabase, type TestDatabase } from '../scenes/database.ts'
import { createFolder } from '../scenes/folder.ts'
import { answersAgain, freezePostgres, killPostgres } from '../scenes/frozen-postgres.ts'
import { inTime, until } from '../scenes/in-time.ts'
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
const connections = 4
const name = 'kept steps'

/** One process on the database and a folder. */
type Over = {
  readonly limit?: number
  readonly clock?: Clock
  /** Ms that a statement may take. */
  readonly statement?: number
  /** The disk takes no step before. */
  readonly disk?: Promise<void>
}
function openProcess(
  t: Test,
  { server }: TestDatabase,
  dataDir: string,
  { clock = lastingClock, statement = 1_000, disk, ...over }: Over = {},
) {
  const log = createQuietLog()
  const sql = createTimelySql({
    server,
    applicationName: 'parley test',
    maxConnections: connections,
    limit: statement,
    log,
  })
  const writer = createStepWriter({ sql, newId })
  let tries = 0
  const folder = path.join(dataDir, 'steps')
  const made = createJournalFolder({ folder, nodeId: newId<'node'>(), limit: 10_000_000, reserve: 0, log, ...over })
  const slow = { ...made.own, append: async (text: string) => (await disk, made.own.append(text)) }
  const journal = disk ? { ...made, own: slow } : made
  const fenced: string[] = []
  const steps = createKeptSteps({
    sql,
    clock,
    log,
    writer: { write: (step) => writer.write(step).finally(() => tries++) },
    journal,
    writeBirth: async () => undefined,
    bringFound: async () => new Set(),
    fenced: (callId) => void fenced.push(callId),
    written: () => {},
  })
  const close = async () => {
    await steps.close()
    await sql.end({ timeout: 1 })
  }
  t.teardown(close)
  return {
    ...steps,
    /** At writing into the database, that came to an end. */
    tries: () => tries,
    log,
    sql,
    journal,
    fenced,
    close,
    told: (text: string) => log.lines.filter(({ message }) => message === text),
  }
}

async function runAdmin({ sql, server }: TestDatabase, dataDir: string, words: readonly string[]): Promise<string[]> {
  const lines: string[] = []
  const print = (line: string) => void lines.push(line)
  const home = { server, dataDir, recordingsDir: dataDir, appSecret: null, hasStorage: false }
  const openBox = () => Promise.reject(new Error('nothing is sealed'))
  await runCommand(words, { print, onDatabase: (use) => use({ sql, home, openBox, print }) })
  return lines
}

/** What a step meets: nothing, a server that stands still, one that is killed, connections that are ended. */
async function cutAtRandom(
  { sql, server, dataDir }: TestDatabase,
  random: ReturnType<typeof createRandom>,
): Promise<void> {
  const kind = random.below(3)
  if (kind === 0) {
    const goOn = freezePostgres(dataDir)
    await new Promise((resolve) => setTimeout(resolve, 200 + random.below(3_000)))
    return goOn()
  }
  if (kind === 1) killPostgres(dataDir)
  else
    await sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = ${name}`.catch(() => {})
  await answersAgain(server)
}

const nextStep = (random: ReturnType<typeof createRandom>, actor: Actor) => {
  const step = stepOf(actor, randomEffects(random, actor))
  actor.version++
  return step
}

for (const seed of [11, 12, 13])
  test(`the rows of a run with cuts at random are those of the run without them (seed ${seed})`, async (t) => {
    const base = await database
    const { sql } = base
    const tenants = [await openTenant(sql, ['*', 'call.ended'], 2), await openTenant(sql, ['call.transcript'])]
    const ids = Array.from({ length: 8 }, () => newId<'call'>()).toSorted()
    const run = async (cuts: boolean) => {
      await until(() => sql`delete from calls`.catch(() => null))
      const actors = await openCalls(sql, ids, (index) => tenants[index % 2]!)
      const dataDir = await createFolder(t)
      const process = openProcess(t, base, dataDir)
      const [random, chance] = [createRandom(seed), createRandom(seed + 1_000)]
      // One after the other: a server that stands still cannot be killed and come back.
      let cutting: Promise<void> | null = null
      for (let round = 0; round < 10; round++) {
        const steps = actors.filter(() => random.below(3) > 0).map((actor) => nextStep(random, actor))
        if (cuts && chance.below(2) === 0) {
          await cutting
          cutting = cutAtRandom(base, chance)
        }
        const results = await inTime('steps', Promise.all(steps.map((step) => process.write(step))))
        t.ok(results.every((result) => result === 'written'))
      }
      await cutting
      await inTime(
        'the last step',
        until(() => process.ids().length === 0),
      )
      await process.close()
      return rowsOf(sql)
    }
    const quiet = await run(false)
    t.ok(quiet.deliveries.length > 20 && quiet.turns.length > 5)
    t.same(await run(true), quiet)
  })

const turnsOf = async ({ sql }: TestDatabase, { callId }: Actor): Promise<string[]> =>
  (await sql<{ text: string }[]>`select text from transcript_turns where call_id = ${callId} order by turn_index`).map(
    ({ text }) => text,
  )

const isNowKept = 'the database does not answer; steps of calls are kept on the disk'

test('while the server stands still each call waits a quarter of a second, after a second none does, and all is there when it goes on', async (t) => {
  const base = await database
  const [actor, other, third] = (await openCalls(base.sql, [newId(), newId(), newId()], () => tenant)) as [
    Actor,
    Actor,
    Actor,
  ]
  const clock = createHandClock()
  const process = openProcess(t, base, await createFolder(t), { clock, statement: 60_000 })
  const write = (one: Actor, text: string) => {
    const step = stepOf(one, [says(one, text)])
    one.version++
    return process.write(step)
  }
  await write(actor, 'one')
  const goOn = freezePostgres(base.dataDir)
  t.teardown(goOn)
  for (const [one, text] of [
    [actor, 'two'],
    [other, 'three'],
  ] as const) {
    const writing = write(one, text)
    clock.advance(249)
    t.notOk(process.keeps(one.callId), 'it may be there any moment')
    clock.advance(1)
    t.equal(await writing, 'written')
    t.ok(process.keeps(one.callId))
  }
  t.equal(await write(actor, 'four'), 'written', 'behind what lies on the disk')
  t.notOk(process.isAway())
  clock.advance(500)
  await until(() => process.isAway())
  t.equal(await write(third, 'five'), 'written')
  t.same(new Set(process.ids()), new Set([actor.callId, other.callId, third.callId]))
  goOn()
  await inTime(
    'the steps',
    until(() => {
      clock.advance(1_000)
      return process.ids().length === 0
    }),
  )
  t.same(await turnsOf(base, actor), ['one', 'two', 'four'])
  t.equal(process.told(isNowKept).length, 1)
})

/** One call of a process whose clock the test moves; the server stands still. */
async function freezeUnder(t: Test, over: Over = {}) {
  const base = await database
  const [actor] = (await openCalls(base.sql, [newId()], () => tenant)) as [Actor]
  const clock = createHandClock()
  const process = openProcess(t, base, await createFolder(t), { clock, statement: 60_000, ...over })
  const goOn = freezePostgres(base.dataDir)
  t.teardown(goOn)
  return { base, actor, clock, process, goOn }
}

test('a step that is written soon after it was kept is not written a second time, and nobody is told that the database is away', async (t) => {
  const { base, actor, clock, process, goOn } = await freezeUnder(t)
  const writing = process.write(stepOf(actor, [says(actor, 'one')]))
  clock.advance(250)
  t.equal(await writing, 'written')
  const settled = process.settled(actor.callId)
  goOn()
  await inTime('the step', settled)
  t.equal(process.tries(), 1)
  const log = await base.sql`select seq from call_events where call_id = ${actor.callId}`
  t.same([...log], [{ seq: 1 }])
  clock.advance(5_000)
  t.same([process.isAway(), process.told(isNowKept)], [false, []])
})

test('a step that the database writes before the disk does is written then, and the next one goes to the database', async (t) => {
  const disk = Promise.withResolvers<void>()
  const { base, actor, clock, process, goOn } = await freezeUnder(t, { disk: disk.promise })
  const write = (text: string) => {
    const step = stepOf(actor, [says(actor, text)])
    actor.version++
    return process.write(step)
  }
  const writing = write('one')
  clock.advance(250)
  await until(() => process.keeps(actor.callId))
  goOn()
  t.equal(await inTime('the step', writing), 'written')
  t.equal(await inTime('the step behind it', write('two')), 'written', 'it does not wait for the disk')
  t.equal(process.tries(), 2)
  const settled = process.settled(actor.callId)
  disk.resolve()
  await inTime('the disk', settled)
  t.same([process.tries(), process.count()], [2, 0])
  t.same(await turnsOf(base, actor), ['one', 'two'])
})

for (const effect of [
  { type: 'run_tool', id: 't1', name: 'book', arguments: {} },
  { type: 'announce_tool_call', toolCallId: 'c1', name: 'book', arguments: {} },
] as const)
  test(`a tool is run once there can be no doubt that the call is ours: ${effect.type} waits for a second`, async (t) => {
    const { actor, clock, process } = await freezeUnder(t)
    const writing = process.write(stepOf(actor, [effect]))
    clock.advance(999)
    t.notOk(process.keeps(actor.callId))
    clock.advance(1)
    t.equal(await writing, 'written')
    t.ok(process.keeps(actor.callId))
  })

test('who is used to a late database waits four times as long as it took, a second at most', async (t) => {
  const clock = createHandClock()
  const patience = createStepPatience(clock)
  const plain = { logged: { event: {}, effects: [], ignored: false, at: 0 } }
  t.equal(patience.of(plain), 250)
  const late = async (ms: number): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const work = patience.measured(promise)
    clock.advance(ms)
    resolve()
    await work
  }
  for (let count = 0; count < 50; count++) await late(100)
  t.ok(Math.abs(patience.of(plain) - 400) < 5, `${patience.of(plain)}`)
  // As a clock that is set.
  await late(600_000)
  t.ok(Math.abs(patience.of(plain) - 850) < 5, `${patience.of(plain)}`)
  for (let count = 0; count < 50; count++) await late(2_000)
  t.equal(patience.of(plain), 1_000)
  for (let count = 0; count < 50; count++) await late(5)
  t.equal(patience.of(plain), 250)
})

test('what a process kept and did not live to write is written by the next one before it begins; what was written is not written again', async (t) => {
  const base = await database
  const dataDir = await createFolder(t)
  const [actor] = (await openCalls(base.sql, [newId()], () => tenant)) as [Actor]
  const first = openProcess(t, base, dataDir)
  const goOn = freezePostgres(base.dataDir)
  t.teardown(goOn)
  const steps = ['one', 'two', 'three'].map((text) => {
    const step = stepOf(actor, [says(actor, text)])
    actor.version++
    return step
  })
  for (const step of steps) await first.write(step)
  // Its journal stays, and nobody listens beside it any more.
  await first.close()
  goOn()
  await answersAgain(base.server)
  // One of them had come in all the same.
  const writer = createStepWriter({ sql: base.sql, newId })
  t.equal(await writer.write(steps[0]!), 'written')
  const next = openProcess(t, base, dataDir)
  await inTime('what was left', next.start())
  t.same(next.ids(), [])
  const log = await base.sql`select seq, epoch from call_events where call_id = ${actor.callId} order by seq`
  t.same(
    [...log],
    [1, 2, 3].map((seq) => ({ seq, epoch: actor.epoch })),
  )
  const announced = await base.sql`select from deliveries where call_id = ${actor.callId}`
  t.equal(announced.count, 3)
  t.same(next.fenced, [])
})

test('a process that leaves while the database comes back writes what it keeps first, and leaves nothing for the next one', async (t) => {
  const base = await database
  const dataDir = await createFolder(t)
  const [actor] = (await openCalls(base.sql, [newId()], () => tenant)) as [Actor]
  const leaving = openProcess(t, base, dataDir)
  const goOn = freezePostgres(base.dataDir)
  t.teardown(goOn)
  for (const text of ['one', 'two']) {
    await leaving.write(stepOf(actor, [says(actor, text)]))
    actor.version++
  }
  const closed = leaving.close()
  goOn()
  await inTime('the leaving', closed)
  const log = await base.sql`select seq from call_events where call_id = ${actor.callId} order by seq`
  t.same([...log], [{ seq: 1 }, { seq: 2 }])
  const next = openProcess(t, base, dataDir)
  await inTime('what was left', next.start())
  t.same(next.told('steps of calls of a former process were found'), [])
})

test('steps of a call that somebody else has taken are put aside, those of others are written, and those of a deleted call are forgotten', async (t) => {
  const base = await database
  const dataDir = await createFolder(t)
  const actors = await openCalls(base.sql, [newId(), newId(), newId()], () => tenant)
  const [taken, kept, deleted] = actors as [Actor, Actor, Actor]
  const process = openProcess(t, base, dataDir)
  const goOn = freezePostgres(base.dataDir)
  t.teardown(goOn)
  for (const text of ['one', 'two'])
    for (const actor of actors) {
      await process.write(stepOf(actor, [says(actor, text)]))
      actor.version++
    }
  await process.close()
  goOn()
  await answersAgain(base.server)
  await claimCall(base.sql, taken.callId, nodeId)
  await base.sql`delete from calls where id = ${deleted.callId}`
  const next = openProcess(t, base, dataDir)
  await inTime('what was left', next.start())
  t.same(new Set(next.fenced), new Set([taken.callId, deleted.callId]))
  t.match(next.told('steps of a call were put aside'), [{ fields: { callId: taken.callId, steps: 2 } }])
  const turns = await base.sql<{ callId: string }[]>`
    select call_id from transcript_turns where call_id = any(${actors.map(({ callId }) => callId)}::text[])`
  t.same(
    turns.map(({ callId }) => callId),
    [kept.callId, kept.callId],
  )
  t.equal(await next.write(stepOf(taken, [])), 'fenced', 'whoever goes on there learns it')
  const admin = (...words: string[]) => runAdmin(base, dataDir, ['steps', ...words])
  t.match(await admin(), [`${taken.callId}  epoch ${taken.epoch}  2`, 'in '], 'an operator is told of it')
  t.same([await admin('forget'), await admin('forget')], [['forgotten'], ['nothing was put aside']])
  t.same(await admin(), ['nothing was put aside'])
})

test('a process begins although its disk does not take what it is to put aside, tries that seldom, and does it in the end', async (t) => {
  const base = await database
  const dataDir = await createFolder(t)
  const [actor] = (await openCalls(base.sql, [newId()], () => tenant)) as [Actor]
  const process = openProcess(t, base, dataDir)
  const goOn = freezePostgres(base.dataDir)
  t.teardown(goOn)
  await process.write(stepOf(actor, [says(actor, 'one')]))
  await process.close()
  goOn()
  await answersAgain(base.server)
  await claimCall(base.sql, actor.callId, nodeId)
  // As a disk that is full: nothing can be written there.
  const aside = path.join(dataDir, 'steps', 'unwritten.jsonl')
  await mkdir(aside)
  const next = openProcess(t, base, dataDir)
  const tries = () => next.told('kept steps of a call are not written').length
  await inTime('the beginning', next.start())
  t.same([next.ids(), tries()], [[actor.callId], 3], 'nothing of it is lost')
  await rmdir(aside)
  await inTime('the putting aside', next.settled(actor.callId))
  t.equal(tries(), 3)
  t.equal(next.told('steps of a call were put aside').length, 1)
})

test('an actor that goes on with a call which was taken meanwhile is told so when its steps are written', async (t) => {
  const base = await database
  const [actor] = (await openCalls(base.sql, [newId()], () => tenant)) as [Actor]
  const process = openProcess(t, base, await createFolder(t))
  const goOn = freezePostgres(base.dataDir)
  t.teardown(goOn)
  await process.write(stepOf(actor, [says(actor, 'in vain')]))
  const claiming = claimCall(base.sql, actor.callId, nodeId)
  goOn()
  const claim = await claiming
  await until(() => process.ids().length === 0)
  const [{ epoch } = { epoch: 0 }] = await base.sql<
    { epoch: number }[]
  >`select epoch from calls where id = ${actor.callId}`
  t.equal(epoch, claim?.epoch)
  const isWritten = (await base.sql`select from call_events where call_id = ${actor.callId}`).count === 1
  t.equal(process.fenced.includes(actor.callId), !isWritten, 'one of the two was first')
})

test('a journal that is full refuses steps as a database that is away does, and takes them when it is written', async (t) => {
  const base = await database
  const [actor] = (await openCalls(base.sql, [newId()], () => tenant)) as [Actor]
  const process = openProcess(t, base, await createFolder(t), { limit: 1_000 })
  const goOn = freezePostgres(base.dataDir)
  t.teardown(goOn)
  await process.write(stepOf(actor, [says(actor, 'one')]))
  actor.version++
  const next = stepOf(actor, [says(actor, 'x'.repeat(900))])
  await t.rejects(process.write(next), { code: '53100' })
  await t.rejects(process.write(next), { code: '53100' })
  t.equal(process.told('steps of calls cannot be kept on the disk').length, 1)
  goOn()
  await until(() => process.ids().length === 0)
  t.equal(await process.write(next), 'written')
})

const tenant = await openTenant((await database).sql, ['call.transcript'])
