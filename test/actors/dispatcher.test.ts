/** Whose turn it is: places of accounts and workers on a real database, with several dispatchers. Calls end by the hand of the test. */
import t, { test, type Test } from 'tap'
import { createPhoneCallCreator } from '../../actors/call/birth/create-phone-call.ts'
import { createWebCallCreator } from '../../actors/call/birth/create-web-call.ts'
import { createDispatcher } from '../../actors/rounds/dispatcher.ts'
import type { CallId } from '../../model/ids.ts'
import { changeAccountConfig } from '../../store/accounts.ts'
import { countRunningCalls } from '../../store/call-capacity.ts'
import { claimJobs, type JobKind } from '../../store/jobs.ts'
import { createWorker } from '../../store/workers.ts'
import { connect, type Sql } from '../../store/sql.ts'
import { box } from '../scenes/call-node.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRandom } from '../fake/random.ts'
import { createScriptedEngine } from '../fake/scripted-engine.ts'
import { addTrunk, createCallingTenant } from '../scenes/telephony.ts'
import { createTenant, newId, type Tenant } from '../scenes/tenant.ts'

const opened = openTestDatabase(t)
const hour = 3_600_000

async function open(t: Test) {
  const { sql, server } = await opened
  await sql`delete from calls`
  const [clock, log] = [createHandClock(), createQuietLog()]
  let woken = 0
  let noteWaking = () => {}
  const wakeJobs = () => (woken++, noteWaking())
  const openDispatcher = (own: Sql = sql, room = () => Infinity) => {
    const dispatcher = createDispatcher({ sql: own, clock, log, newId, wakeJobs, room })
    t.teardown(() => dispatcher.close())
    return dispatcher
  }
  const engines = new Map([['embedded', createScriptedEngine()]] as const)
  const deps = { sql, clock, newId, box, engines, wakeDeliveries: () => {}, wakeDispatcher: () => {} }
  const createPhoneCall = createPhoneCallCreator(deps)
  return {
    sql,
    clock,
    log,
    openDispatcher,
    woken: () => woken,
    nextWaking: () => new Promise<void>((resolve) => (noteWaking = resolve)),
    connectAgain: () => {
      const own = connect({ server, applicationName: 'second node', maxConnections: 4 })
      t.teardown(() => own.end({ timeout: 1 }))
      return own
    },
    createWebCall: createWebCallCreator(deps),
    place: async ({ accountId, workerId }: Tenant, scheduledAt?: string): Promise<CallId> =>
      (await createPhoneCall(accountId, { workerId, scheduledAt }, null)).id as CallId,
  }
}
type Stage = Awaited<ReturnType<typeof open>>

/** Ends calls as their last step would. */
async function end(sql: Sql, calls: readonly CallId[], outcome = 'completed'): Promise<void> {
  await sql`
    update calls set outcome = ${outcome}, progress = ${outcome}, finished = true
    where id = any(${[...calls]}) and outcome is null`
}

async function anotherWorker(sql: Sql, { accountId, workerId }: Tenant, workerLimit: number | null): Promise<Tenant> {
  const made = { accountId, name: 'Bob', language: 'en', maxConcurrentCalls: workerLimit, newId, now: Date.now() }
  const { id } = await createWorker(sql, made)
  await addTrunk(sql, { accountId, workerId: id })
  await sql`
    insert into document_workers (account_id, document_id, worker_id)
    select account_id, document_id, ${id} from document_workers where worker_id = ${workerId}`
  return { accountId, workerId: id }
}

const grantedOf = async ({ sql }: Stage): Promise<CallId[]> =>
  (
    await sql<{ id: CallId }[]>`select id from calls where slot_granted_at is not null and outcome is null order by id`
  ).map(({ id }) => id)

test('free places go to those that wait longest: since their dial time, or else their creation', async (t) => {
  const stage = await open(t)
  const { sql, clock } = stage
  const tenant = await createCallingTenant(sql, { maxConcurrentCalls: 2 })
  const colleague = await anotherWorker(sql, tenant, null)
  const late = await stage.place(colleague, new Date(clock.now() + 2 * hour).toISOString())
  const early = await stage.place(tenant, new Date(clock.now() + hour).toISOString())
  clock.advance(90 * 60_000)
  const between = await stage.place(tenant)
  const same = await stage.place(tenant)
  clock.advance(hour)
  const dispatcher = stage.openDispatcher()
  await dispatcher.idle()
  t.same(await grantedOf(stage), [early, between].toSorted())
  t.match(
    await sql`select call_id, run_at from jobs where kind = 'dial' order by call_id`,
    [early, between].toSorted().map((callId) => ({ callId, runAt: clock.now() })),
    'with the place comes the job that dials',
  )
  t.equal(stage.woken(), 1)
  await dispatcher.idle()
  t.equal(stage.woken(), 1, 'nothing to give, nobody woken')
  await end(sql, [early])
  await dispatcher.idle()
  t.same(await grantedOf(stage), [between, same].toSorted(), 'of the same moment the first')
  await end(sql, [between, same])
  await dispatcher.idle()
  t.same(await grantedOf(stage), [late])
})

test('a worker at its limit holds up nobody else, nor does an account', async (t) => {
  const stage = await open(t)
  const { sql } = stage
  const shy = await createCallingTenant(sql, { workerLimit: 1 })
  const free = await anotherWorker(sql, shy, null)
  const none = await anotherWorker(sql, shy, 0)
  const other = await createCallingTenant(sql, { maxConcurrentCalls: 1 })
  const calls: CallId[] = []
  for (const tenant of [other, other, none, shy, shy, free, free]) calls.push(await stage.place(tenant))
  await stage.openDispatcher().idle()
  t.same(await grantedOf(stage), [calls[0], calls[3], calls[5], calls[6]])
})

test('a call that is canceled just when its turn comes leaves the place to the next', async (t) => {
  const stage = await open(t)
  const { sql } = stage
  const tenant = await createCallingTenant(sql, { maxConcurrentCalls: 1 })
  const [first, second] = [await stage.place(tenant), await stage.place(tenant)]
  const dispatcher = stage.openDispatcher()
  const dispatched = await sql.begin(async (tx) => {
    await tx`update calls set outcome = 'canceled', progress = 'canceled', finished = true where id = ${first}`
    const idle = dispatcher.idle()
    for (let waiting = false; !waiting;) {
      const [row] = await sql<{ waiting: boolean }[]>`
        select exists (select from pg_locks where not granted and locktype = 'transactionid') as waiting`
      waiting = row?.waiting ?? true
    }
    return { idle }
  })
  await dispatched.idle
  t.same(await grantedOf(stage), [second])
  t.same(await sql`select call_id from jobs where kind = 'dial'`, [{ callId: second }])
})

test('what cannot be decided for one account does not stop another', async (t) => {
  const stage = await open(t)
  const [broken, sound] = [await createCallingTenant(stage.sql), await createCallingTenant(stage.sql)]
  await stage.sql`update accounts set config = '{"maxConcurrentCalls": "many"}' where id = ${broken.accountId}`
  await stage.place(broken)
  const call = await stage.place(sound)
  await stage.openDispatcher().idle()
  t.same(await grantedOf(stage), [call])
  t.match(stage.log.lines, [{ level: 'error', fields: { accountId: broken.accountId } }])
})

test('a web call takes a place from its creation, a phone call once it is dialed or came in; one that is over takes none', async (t) => {
  const stage = await open(t)
  const { sql } = stage
  const tenant = await createCallingTenant(sql, { maxConcurrentCalls: 3 })
  const { accountId, workerId } = tenant
  const running = () => sql.begin((tx) => countRunningCalls(tx, accountId, workerId))
  const queued = await stage.place(tenant)
  await stage.place(tenant, new Date(stage.clock.now() + hour).toISOString())
  t.match(await running(), { limit: 3, running: 0 })
  const web = await stage.createWebCall(accountId, { workerId })
  t.match(await running(), { running: 1, runningOfWorker: 1 })
  await sql`
    insert into calls (id, account_id, worker_id, session_id, direction, transport, progress, snapshot)
    values (${newId()}, ${accountId}, ${workerId}, 's', 'inbound', 'sip_trunk', 'ringing', '{}')`
  t.match(await running(), { running: 2 })
  await stage.openDispatcher().idle()
  t.same(await grantedOf(stage), [queued])
  t.match(await running(), { running: 3 })
  await t.rejects(stage.createWebCall(accountId, { workerId }), /account has 3 calls running/)
  await end(sql, [web.callId])
  t.match(await running(), { running: 2 })
})

test('web calls obey the limit of their worker too', async (t) => {
  const stage = await open(t)
  const first = await createTenant(stage.sql, { slug: newId() })
  await stage.sql`update workers set max_concurrent_calls = 1 where id = ${first.workerId}`
  const second = await anotherWorker(stage.sql, first, null)
  await stage.createWebCall(first.accountId, { workerId: first.workerId })
  await t.rejects(stage.createWebCall(first.accountId, { workerId: first.workerId }), /worker has 1 calls running/)
  await t.resolves(stage.createWebCall(first.accountId, { workerId: second.workerId }))
})

test('a dispatcher looks by itself once a second', async (t) => {
  const stage = await open(t)
  const call = await stage.place(await createCallingTenant(stage.sql))
  stage.openDispatcher()
  const waking = stage.nextWaking()
  stage.clock.advance(1_000)
  await waking
  t.same(await grantedOf(stage), [call])
})

test('of more than one transaction gives away, all get their places', async (t) => {
  const stage = await open(t)
  const tenant = await createCallingTenant(stage.sql, { maxConcurrentCalls: 1_000 })
  for (let call = 0; call < 130; call++) await stage.place(tenant)
  await stage.openDispatcher().idle()
  t.equal((await grantedOf(stage)).length, 130)
})

/** Beginnings of calls, by a trunk or an account, that stand closer together than `window` allows `most` of them. */
function tooClose(beginnings: readonly number[], window: number, most: number): number[] {
  const sorted = beginnings.toSorted((a, b) => a - b)
  return sorted.filter((at, index) => at - (sorted[index - most] ?? -Infinity) < window)
}

/** One timer at a time, each followed by all that it set off. */
async function pass(stage: Stage, dispatchers: readonly ReturnType<Stage['openDispatcher']>[], ms: number) {
  for (let passed = 0; passed < ms; passed += 50) {
    stage.clock.advance(50)
    await Promise.all(dispatchers.map((dispatcher) => dispatcher.idle()))
  }
}

const grantTimesOf = ({ sql }: Stage, column: 'account_id' | 'trunk_id', id: string) =>
  sql<{ id: CallId; at: number }[]>`
    select id, slot_granted_at as at from calls where ${sql(column)} = ${id} and slot_granted_at is not null
    order by slot_granted_at, id`

test('an account begins no more calls in any second than it may; the others wait their turn, in order', async (t) => {
  const stage = await open(t)
  const tenant = await createCallingTenant(stage.sql, { maxConcurrentCalls: 100 })
  await changeAccountConfig(stage.sql, tenant.accountId, { maxCallsPerSecond: 3 }, 1)
  const slow = await createCallingTenant(stage.sql)
  await changeAccountConfig(stage.sql, slow.accountId, { maxCallsPerSecond: 0.5 }, 1)
  const calls: CallId[] = []
  for (let call = 0; call < 20; call++) calls.push(await stage.place(tenant))
  for (let call = 0; call < 3; call++) await stage.place(slow)
  const two = [stage.openDispatcher(), stage.openDispatcher(stage.connectAgain())]
  await Promise.all(two.map((dispatcher) => dispatcher.idle()))
  t.equal((await grantTimesOf(stage, 'account_id', tenant.accountId)).length, 3, 'of two nodes together')
  await pass(stage, two, 6_500)
  const granted = await grantTimesOf(stage, 'account_id', tenant.accountId)
  t.same(
    granted.map(({ id }) => id),
    calls,
    'all of them, in the order they came',
  )
  const times = granted.map(({ at }) => at)
  t.same(tooClose(times, 1_000, 3), [])
  t.ok((times.at(-1) ?? 0) - (times[0] ?? 0) <= 6_100, 'and none later than need be')
  const slowTimes = (await grantTimesOf(stage, 'account_id', slow.accountId)).map(({ at }) => at)
  t.equal(slowTimes.length, 3)
  t.same(tooClose(slowTimes, 2_000, 1), [], 'one every two seconds')
})

test('a dispatcher looks again when the next turn is due, and not before', async (t) => {
  const stage = await open(t)
  const tenant = await createCallingTenant(stage.sql)
  await changeAccountConfig(stage.sql, tenant.accountId, { maxCallsPerSecond: 1 }, 1)
  stage.clock.advance(400)
  for (let call = 0; call < 2; call++) await stage.place(tenant)
  const dispatcher = stage.openDispatcher()
  stage.clock.advance(600)
  await dispatcher.idle()
  const timers = stage.clock.pending()
  const waking = stage.nextWaking()
  stage.clock.advance(999)
  t.equal(stage.woken(), 1)
  stage.clock.advance(1)
  await waking
  t.equal((await grantedOf(stage)).length, 2)
  await dispatcher.idle()
  t.ok(stage.clock.pending() <= timers, 'nobody waits, no timer does')
  await dispatcher.close()
  t.equal(stage.clock.pending(), 0)
})

test('a call gets the first trunk of its worker that has room, and waits when none has; other workers go on', async (t) => {
  const stage = await open(t)
  const { sql, clock } = stage
  const tenant = await createCallingTenant(sql, { maxConcurrentCalls: 100 })
  const other = await anotherWorker(sql, tenant, null)
  await sql`delete from trunks where account_id = ${tenant.accountId}`
  const narrow = await addTrunk(sql, tenant, { name: 'narrow', maxConcurrentCalls: 2 })
  const paced = await addTrunk(sql, tenant, { name: 'paced', maxCallsPerSecond: 2 })
  const free = await addTrunk(sql, other, { name: 'free' })
  const calls: CallId[] = []
  for (let call = 0; call < 7; call++) calls.push(await stage.place(tenant))
  const behind = await stage.place(other)
  const dispatcher = stage.openDispatcher()
  await dispatcher.idle()
  const trunksOf = async () =>
    (
      await sql<{ id: CallId; trunkId: string }[]>`select id, trunk_id from calls where slot_granted_at is not null`
    ).map(({ id, trunkId }) => [id, trunkId])
  const now = [...[0, 1].map((n) => [calls[n], narrow]), ...[2, 3].map((n) => [calls[n], paced]), [behind, free]]
  const sorted = (pairs: readonly unknown[][]) => pairs.map((pair) => pair.join(' ')).toSorted()
  t.same(sorted(await trunksOf()), sorted(now))
  await end(sql, [calls[0] as CallId])
  await dispatcher.idle()
  t.same(
    await sql`select trunk_id from calls where id = ${calls[4] as CallId}`,
    [{ trunkId: narrow }],
    'a place was freed',
  )
  clock.advance(1_000)
  await dispatcher.idle()
  t.same(
    (await grantTimesOf(stage, 'trunk_id', paced)).map(({ id }) => id),
    [2, 3, 5, 6].map((n) => calls[n]),
  )
  await sql`
    insert into calls (id, account_id, worker_id, session_id, direction, transport, progress, snapshot, created_at, trunk_id)
    values (${newId()}, ${tenant.accountId}, ${tenant.workerId}, 's', 'inbound', 'sip_trunk', 'ringing', '{}', ${clock.now() + 1000}, ${paced})`
  const [next, after] = [await stage.place(tenant), await stage.place(tenant)]
  clock.advance(1_000)
  await dispatcher.idle()
  t.same(
    (await trunksOf()).filter(([id]) => id === next),
    [[next, paced]],
  )
  t.same(
    (await trunksOf()).filter(([id]) => id === after),
    [],
    'calls that come in take turns of the trunk too',
  )
})

test('a worker without any way out is not held up: its call fails where its creator hears of it', async (t) => {
  const stage = await open(t)
  const tenant = await createCallingTenant(stage.sql)
  const call = await stage.place(tenant)
  await stage.sql`update trunks set is_active = false where account_id = ${tenant.accountId}`
  await stage.openDispatcher().idle()
  t.same(await grantedOf(stage), [call])
})

type Row = {
  id: CallId
  accountId: string
  workerId: string
  state: 'early' | 'waiting' | 'running' | 'over'
  since: number
}

/** Every call with what it is at `now`, in one snapshot of the database. */
const look = (sql: Sql, now: number): Promise<Row[]> => sql<Row[]>`
  select id, account_id, worker_id, coalesce(scheduled_at, created_at) as since,
    case when outcome is not null then 'over' when slot_granted_at is not null or transport = 'webrtc' then 'running'
      when coalesce(scheduled_at, created_at) <= ${now} then 'waiting' else 'early' end as state
  from calls`

function overLimit(rows: readonly Row[], limits: ReadonlyMap<string, number>): string[] {
  const counts = new Map<string, number>()
  for (const row of rows.filter(({ state }) => state === 'running'))
    for (const key of [row.accountId, row.workerId]) counts.set(key, (counts.get(key) ?? 0) + 1)
  return [...counts].filter(([key, count]) => count > (limits.get(key) ?? Infinity)).map(([key]) => key)
}

const before = (a: Row, b: Row): boolean => a.since < b.since || (a.since === b.since && a.id < b.id)

test('two nodes, calls that come, end and are canceled in any order: limits hold, order holds, and everybody gets a turn', async (t) => {
  const stage = await open(t)
  const { sql, clock } = stage
  const random = createRandom(20261121)
  const nodes = [stage.openDispatcher(), stage.openDispatcher(stage.connectAgain())]
  const limits = new Map<string, number>()
  const tenants: Tenant[] = []
  for (const [account, workers] of [
    [3, [1, null]],
    [5, [2, 3, 0]],
    [100, [4]],
  ] as const) {
    const first = await createCallingTenant(sql, { maxConcurrentCalls: account, workerLimit: workers[0] })
    const own = [first]
    for (const limit of workers.slice(1)) own.push(await anotherWorker(sql, first, limit))
    limits.set(first.accountId, account)
    own.forEach(({ workerId }, index) => void limits.set(workerId, workers[index] ?? Infinity))
    tenants.push(...own)
  }
  const [pacedAccount, pacedTrunk] = [tenants[5] as Tenant, tenants[2] as Tenant]
  await changeAccountConfig(sql, pacedAccount.accountId, { maxCallsPerSecond: 2 }, 1)
  await sql`
    update trunks set config = config || '{"maxCallsPerSecond": 2}'
    where id in (select trunk_id from trunk_workers where worker_id = ${pacedTrunk.workerId})`
  const paced = new Set<string>([pacedAccount.workerId, pacedTrunk.workerId])
  const neverDialed = new Set<string>(tenants.map(({ workerId }) => workerId).filter((id) => limits.get(id) === 0))

  const come = async (): Promise<void> => {
    const tenant = random.pick(tenants)
    const dialTime = new Date(clock.now() + random.below(2_000)).toISOString()
    if (random.below(5) > 0) await stage.place(tenant, random.pick([undefined, dialTime]))
    else await stage.createWebCall(tenant.accountId, tenant).catch(() => {})
  }
  const leave = async (rows: readonly Row[], state: Row['state'], outcome: string): Promise<void> => {
    const some = rows.filter((row) => row.state === state && random.below(3) === 0)
    for (const { id } of some) await end(sql, [id], outcome)
  }
  /** Both dispatchers at once, against whatever else goes on, and somebody who counts all the while. */
  const dispatch = async (...others: Promise<void>[]): Promise<void> => {
    let busy = true
    const work = Promise.all([...nodes.map((node) => node.idle()), ...others]).finally(() => (busy = false))
    while (busy) {
      const over = overLimit(await look(sql, clock.now()), limits)
      if (over.length > 0) t.fail('more calls run than may', { over })
    }
    await work
  }
  /** Whoever got a place waited longer than whoever of the same worker still waits; and nobody waits beside a free place. */
  const judge = (earlier: readonly Row[], rows: readonly Row[]): void => {
    const waited = new Set(earlier.filter(({ state }) => state === 'waiting').map(({ id }) => id))
    const granted = rows.filter(({ id, state }) => state === 'running' && waited.has(id))
    for (const left of rows.filter(({ id, state }) => state === 'waiting' && waited.has(id))) {
      const overtaking = granted.find((row) => row.workerId === left.workerId && before(left, row))
      if (overtaking) t.fail('a call was overtaken', { left, overtaking })
      const running = rows.filter(({ state }) => state === 'running')
      const full = [left.accountId, left.workerId].some(
        (key) =>
          running.filter((row) => row.accountId === key || row.workerId === key).length >= (limits.get(key) ?? 0),
      )
      if (!full && !paced.has(left.workerId)) t.fail('a call waits beside a free place', { left })
    }
  }

  for (let round = 0; round < 40; round++) {
    clock.advance(random.below(2) * 500)
    for (let call = random.below(8); call > 0; call--) await come()
    const rows = await look(sql, clock.now())
    await dispatch(leave(rows, 'running', 'completed'), leave(rows, 'waiting', 'canceled'), come())
    await dispatch()
    judge(rows, await look(sql, clock.now()))
  }
  clock.advance(2_000)
  for (let rounds = 0; ; rounds++) {
    const rows = await look(sql, clock.now())
    const waiting = rows.filter(({ state, workerId }) => state === 'waiting' && !neverDialed.has(workerId))
    if (waiting.length === 0) break
    if (rounds > rows.length) return t.fail('calls wait for ever', { waiting })
    await end(
      sql,
      rows.filter(({ state }) => state === 'running').map(({ id }) => id),
    )
    clock.advance(1_000)
    await dispatch()
    judge(rows, await look(sql, clock.now()))
  }
  const rows = await look(sql, clock.now())
  const granted = await sql`select from calls where slot_granted_at is not null`
  const jobs = await sql`select from jobs where kind = 'dial'`
  t.ok(granted.length > 50 && rows.some(({ state }) => state === 'over'))
  t.equal(jobs.length, granted.length, 'one job for each place')
  t.same(await sql`select from calls where slot_granted_at < scheduled_at`, [], 'nobody before the time')
  const timesOf = async (workerId: string) =>
    (
      await sql<{ at: number }[]>`
      select slot_granted_at as at from calls where worker_id = ${workerId} and slot_granted_at is not null`
    ).map(({ at }) => at)
  for (const workerId of paced) {
    const times = await timesOf(workerId)
    t.ok(times.length > 5)
    t.same(tooClose(times, 1_000, 2), [], 'nobody faster than the pace')
  }
  t.same(stage.log.lines, [], 'and no error on the way')
})

test('a node gives no more places than it has room for calls, and one without room leaves the queue to the others', async (t) => {
  const stage = await open(t)
  const { sql, clock } = stage
  const tenant = await createCallingTenant(sql, { maxConcurrentCalls: 10 })
  const placed = [await stage.place(tenant), await stage.place(tenant), await stage.place(tenant)]
  let room = 0
  const overloaded = stage.openDispatcher(sql, () => room)
  await overloaded.idle()
  t.same(await grantedOf(stage), [])
  room = 2
  await overloaded.idle()
  t.same(await grantedOf(stage), placed.slice(0, 2), 'in its order')
  await stage.openDispatcher().idle()
  t.same(await grantedOf(stage), placed)
  const claimed = (kinds?: JobKind[]) => claimJobs(sql, newId<'node'>(), clock.now(), 60_000, 16, kinds)
  t.same(
    await claimed(['expire_token', 'post_process', 'dial_time']),
    [],
    'nor does it dial what another has given a place',
  )
  t.same(
    (await claimed()).map(({ callId }) => callId),
    placed,
  )
})
