/** What must not be lost or held up: facts when the database hesitates, jobs beside jobs that hang, calls of nodes that die or whose clocks differ. */
import top, { test } from 'tap'
import { createInboundCall } from '../scenes/inbound-call.ts'
import { createScheduler, type Work } from '../../actors/rounds/scheduler.ts'
import { BusNoResponders, type Bus } from '../../model/bus.ts'
import type { CallId } from '../../model/ids.ts'
import type { WorkerConfig } from '../../model/worker.ts'
import { claimCall } from '../../store/call-steps.ts'
import { findCall } from '../../store/calls.ts'
import { insertJobs, type JobKind } from '../../store/jobs.ts'
import type { Sql } from '../../store/sql.ts'
import { createSubscription } from '../../store/subscriptions.ts'
import { blockedQueries } from '../scenes/blocked-queries.ts'
import { box, openCallNode, openShared, type CallNode, type Shared } from '../scenes/call-node.ts'
import { createCutBus } from '../fake/cut-bus.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createScriptedEngine } from '../fake/scripted-engine.ts'
import { createScriptedEdge, createScriptedPhone } from '../fake/scripted-phone.ts'
import { addTrunk, createCallingTenant } from '../scenes/telephony.ts'
import { newId } from '../scenes/tenant.ts'

const hour = 3_600_000

const ownerOf = async (sql: Sql, callId: CallId) =>
  (await sql<{ owner: string | null }[]>`select owner from calls where id = ${callId}`)[0]?.owner

/** The lease of a node that died; the database's clock measures it. */
const expireLease = ({ sql }: Shared, { nodeId }: CallNode) =>
  sql`update nodes set lease_until = now() - interval '1 s' where id = ${nodeId}`

async function placeLater({ sql, clock }: Shared, node: CallNode, ahead = hour) {
  const { accountId, workerId } = await createCallingTenant(sql)
  const scheduledAt = new Date(clock.now() + ahead).toISOString()
  const call = await node.createPhoneCall(accountId, { workerId, phoneNumber: '+4930200', scheduledAt }, null)
  return { accountId, workerId, callId: call.id as CallId }
}

/** The clock goes on until the work is done: whatever waits for a time gets it. */
async function whileTimePasses<Value>({ clock }: Shared, work: Promise<Value>): Promise<Value> {
  let over = false
  void work.finally(() => (over = true)).catch(() => {})
  while (!over) {
    clock.advance(100)
    await new Promise(setImmediate)
  }
  return work
}

test('a step that the database broke off is committed all the same', async (t) => {
  const shared = await openShared(t)
  const { sql, clock } = shared
  const node = await openCallNode(shared)
  t.teardown(() => node.close())
  const call = await placeLater(shared, node)
  const request = { eventType: '*', url: 'https://example.com/hook' } as const
  await createSubscription(sql, box, { accountId: call.accountId, request, newId, now: clock.now() })
  const [held, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const holding = sql.begin(async (tx) => {
    await tx`select from webhook_subscriptions where account_id = ${call.accountId} for update`
    held.resolve()
    await release.promise
  })
  await held.promise
  const canceling = node.endCall.cancel(call.accountId, call.callId)
  await blockedQueries(sql, 1)
  // As it does to end a deadlock, or a statement that takes too long.
  await sql`
    select pg_cancel_backend(pid) from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`
  release.resolve()
  await holding
  t.match(await whileTimePasses(shared, canceling), { outcome: 'canceled' })
  t.match(await findCall(sql, call.accountId, call.callId), { outcome: 'canceled' })
})

/** A database that refuses so many transactions and statements that write steps, from `break` on, as it does while it is away. */
function createRefusingDatabase(sql: Sql, times: number) {
  let left = 0
  const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
  const unlessRefused = (ask: () => unknown): unknown => (left-- > 0 ? Promise.reject(refused) : ask())
  const begin = (...given: unknown[]) => unlessRefused(() => Reflect.apply(sql.begin, sql, given))
  const get = (_: Sql, key: string) => (key === 'begin' ? begin : (Reflect.get(sql, key) as unknown))
  const apply = (_: Sql, self: unknown, given: unknown[]): unknown => {
    const ask = (): unknown => Reflect.apply(sql as unknown as (...all: unknown[]) => unknown, self, given)
    const writesSteps = Array.isArray(given[0]) && String(given[0].join('')).includes('insert into call_events')
    return writesSteps ? unlessRefused(ask) : ask()
  }
  return {
    sql: new Proxy(sql, { get, apply } as ProxyHandler<Sql>),
    break: () => void (left = times),
    left: () => Math.max(0, left),
  }
}

test('a step that the database refuses for a quarter of a minute is committed by the same actor', async (t) => {
  const shared = await openShared(t)
  const database = createRefusingDatabase(shared.sql, 7)
  const node = await openCallNode({ ...shared, sql: database.sql })
  t.teardown(() => node.close())
  const { accountId, callId } = await placeLater(shared, node)
  database.break()
  t.match(await whileTimePasses(shared, node.endCall.cancel(accountId, callId)), { outcome: 'canceled' })
  t.equal(database.left(), 0)
  t.match(await shared.sql`select epoch from calls where id = ${callId}`, [{ epoch: 1 }])
})

/** A scheduler whose jobs of some calls hang until they are let go. */
function openScheduler({ sql, clock }: Shared, hanging: ReadonlySet<CallId>) {
  const gate = Promise.withResolvers<void>()
  const done: CallId[] = []
  let notice = () => {}
  const work: Work = async ({ callId }) => {
    if (hanging.has(callId)) await gate.promise
    done.push(callId)
    notice()
  }
  const scheduler = createScheduler({
    sql,
    clock,
    nodeId: newId<'node'>(),
    log: createQuietLog(),
    work: { expire_token: work, post_process: work, dial_time: work, dial: work },
  })
  return {
    ...scheduler,
    done,
    release: () => gate.resolve(),
    async until(callId: CallId): Promise<void> {
      while (!done.includes(callId)) await new Promise<void>((resolve) => (notice = resolve))
    },
  }
}

async function callsWithJobs({ sql }: Shared, count: number, kind: JobKind, runAt: number): Promise<CallId[]> {
  const { accountId, workerId } = await createCallingTenant(sql)
  const ids = Array.from({ length: count }, () => newId<'call'>())
  await sql`
    insert into calls (id, account_id, worker_id, session_id, direction, transport, progress, snapshot)
    select unnest(${ids}::text[]), ${accountId}, ${workerId}, 's', 'outbound', 'sip_trunk', 'scheduled', '{}'`
  await sql.begin((tx) =>
    insertJobs(
      tx,
      ids.map((callId) => ({ id: newId(), accountId, callId, kind, runAt })),
    ),
  )
  return ids
}

test('a job that hangs holds up no other, and closing waits for it', async (t) => {
  const shared = await openShared(t)
  const { sql, clock } = shared
  const hanging = await callsWithJobs(shared, 2, 'post_process', 0)
  const scheduler = openScheduler(shared, new Set(hanging))
  scheduler.wake()
  const [first] = await callsWithJobs(shared, 1, 'dial', clock.now())
  clock.advance(1_000)
  await scheduler.until(first as CallId)
  const [second] = await callsWithJobs(shared, 1, 'dial', clock.now())
  clock.advance(1_000)
  await scheduler.until(second as CallId)
  t.same(scheduler.done, [first, second])
  let closed = false
  const closing = scheduler.close().then(() => (closed = true))
  await sql`select 1`
  t.equal(closed, false)
  scheduler.release()
  await closing
  t.same(new Set(scheduler.done), new Set([...hanging, first, second]))
  t.same(await sql`select from jobs`, [], 'each was finished')
})

test('more jobs than are done at once are all done, each once', async (t) => {
  const shared = await openShared(t)
  const calls = await callsWithJobs(shared, 100, 'post_process', 0)
  const scheduler = openScheduler(shared, new Set())
  t.teardown(() => scheduler.close())
  await scheduler.idle()
  t.same(new Set(scheduler.done), new Set(calls))
  t.equal(scheduler.done.length, calls.length)
  t.same(await shared.sql`select from jobs`, [])
})

test('calls that were scheduled for one moment, however many, hold up no other work', async (t) => {
  const shared = await openShared(t)
  const flood = await callsWithJobs(shared, 500, 'dial_time', 0)
  const [dial] = await callsWithJobs(shared, 1, 'dial', shared.clock.now())
  const scheduler = openScheduler(shared, new Set())
  t.teardown(() => scheduler.close())
  await scheduler.idle()
  t.ok(scheduler.done.indexOf(dial as CallId) < 32, `was number ${scheduler.done.indexOf(dial as CallId)}`)
  t.equal(scheduler.done.length, flood.length + 1)
})

test('a call that only waits is given back by who takes it over, and a stop of the service leaves it alone', async (t) => {
  const shared = await openShared(t)
  const { sql } = shared
  const dying = await openCallNode(shared)
  const phone = await placeLater(shared, dying)
  const web = await dying.createWebCall(phone.accountId, { workerId: phone.workerId })
  // It died between taking the call for a fact and writing the step.
  for (const callId of [phone.callId, web.callId]) await claimCall(sql, callId, dying.nodeId)
  await dying.die()
  await expireLease(shared, dying)
  const successor = await openCallNode(shared)
  while (successor.switchboard.running() > 0) await sql`select 1`
  t.same([await ownerOf(sql, phone.callId), await ownerOf(sql, web.callId)], [null, null])
  await successor.close()
  t.match(await findCall(sql, phone.accountId, web.callId), { outcome: null })
})

test('all calls of a node that died are taken over in one look, however many', async (t) => {
  const shared = await openShared(t)
  const { sql } = shared
  const { accountId, workerId } = await createCallingTenant(sql, { maxConcurrentCalls: 1_000 })
  const dying = await openCallNode(shared, () => new Promise(() => {}))
  for (let call = 0; call < 120; call++) {
    const { id } = await dying.createPhoneCall(accountId, { workerId, phoneNumber: '+4930200' }, null)
    await dying.switchboard.route(id as CallId, { type: 'slot_granted' })
  }
  await dying.die()
  await expireLease(shared, dying)
  const successor = await openCallNode(shared, () => new Promise(() => {}))
  t.equal(successor.switchboard.running(), 120)
})

test('a fact for a call whose actor elsewhere is just leaving reaches the call', async (t) => {
  const shared = await openShared(t)
  const { sql } = shared
  const one = await openCallNode(shared)
  t.teardown(() => one.close())
  const call = await placeLater(shared, one)
  await claimCall(sql, call.callId, one.nodeId)
  // The other node's actor stops listening, its last step is committed right after.
  const leaving: Bus = {
    ...shared.bus,
    async request() {
      await sql`update calls set owner = null where id = ${call.callId}`
      throw new BusNoResponders('nobody listens')
    },
  }
  const two = await openCallNode({ ...shared, bus: leaving })
  t.teardown(() => two.close())
  t.match(await two.endCall.cancel(call.accountId, call.callId), { outcome: 'canceled' })
})

test('a node whose clock is behind keeps its calls', async (t) => {
  const shared = await openShared(t)
  const hook = () => new Promise<never>(() => {})
  const behind = await openCallNode({ ...shared, clock: createHandClock(shared.clock.now() - 20_000) }, hook)
  const call = await placeLater(shared, behind)
  await behind.switchboard.route(call.callId, { type: 'dial_time_reached' })
  await behind.switchboard.route(call.callId, { type: 'slot_granted' })
  const ahead = await openCallNode(shared, hook)
  t.equal(ahead.switchboard.running(), 0)
  t.equal(await ownerOf(shared.sql, call.callId), behind.nodeId)
  await ahead.close()
  await behind.die()
})

/** One database for the calls whose actors die: each test leaves none behind. */
const opened = openShared(top)

/** A node whose death is heard by nobody, and who hears nothing after it. */
async function openMortal(shared: Shared, ...given: ConfigOf) {
  const bus = createCutBus(shared.bus)
  const node = await openCallNode({ ...shared, bus }, ...given)
  return {
    ...node,
    async die(): Promise<void> {
      bus.cut()
      await node.die()
      await expireLease(shared, node)
    },
  }
}
type ConfigOf = Parameters<typeof openCallNode> extends [unknown, ...infer Rest] ? Rest : never

const outcomeOf = async ({ sql }: Shared, node: CallNode, callId: CallId) => {
  while (node.switchboard.running() > 0) await sql`select 1`
  const [row] = await sql`select outcome, failed_reason, provider_status from calls where id = ${callId}`
  return row
}

/** An inbound call of `node`, with its leg. */
async function arrive({ sql, bus, clock }: Shared, { nodeId }: CallNode, config: WorkerConfig = {}) {
  const tenant = await createCallingTenant(sql)
  await sql`update workers set config = ${sql.json(config as never)} where id = ${tenant.workerId}`
  const trunk = { id: await addTrunk(sql, tenant), accountId: tenant.accountId, name: '', settings: {}, password: null }
  const route = { trunk, workerId: tenant.workerId, toNumber: '+4930100', mustAuthenticate: false }
  const birth = { route, fromNumber: null, address: '192.0.2.1', nodeId, now: clock.now(), newId }
  const callId = await sql.begin((tx) => createInboundCall(tx, birth))
  return { callId, phone: createScriptedPhone(bus, callId) }
}
const begun = { type: 'client_connected' } as const
const answered = { type: 'connected', providerStatus: '200 OK' } as const
const left = { type: 'disconnected', cause: 'hung_up', details: '' } as const

for (const missed of [false, true])
  test(`an actor that dies while its call rings is followed by one that does not dial again (answered ${missed ? 'between them' : 'later'})`, async (t) => {
    const shared = await opened
    const edge = createScriptedEdge(shared.bus)
    const dying = await openMortal(shared)
    const { accountId, workerId } = await createCallingTenant(shared.sql)
    const placed = await dying.createPhoneCall(accountId, { workerId, phoneNumber: '+4930200' }, null)
    const callId = placed.id as CallId
    const phone = await edge.phone(callId)
    await dying.die()
    if (missed) phone.event(answered)
    const successor = await openCallNode(shared)
    t.match(await phone.next('ping'), { epoch: 2 })
    if (!missed) phone.event(answered)
    t.match(await phone.next('start'), { epoch: 2 })
    phone.event(left)
    t.match(await outcomeOf(shared, successor, callId), { outcome: 'completed' })
    t.equal(edge.requests.length, 1)
    await successor.close()
    edge.close()
  })

test('a call that ended as busy while nobody ran it has that outcome', async (t) => {
  const shared = await opened
  const edge = createScriptedEdge(shared.bus)
  const dying = await openMortal(shared)
  const { accountId, workerId } = await createCallingTenant(shared.sql)
  const placed = await dying.createPhoneCall(accountId, { workerId, phoneNumber: '+4930200' }, null)
  const phone = await edge.phone(placed.id as CallId)
  await dying.die()
  phone.event({ type: 'dial_failed', outcome: { status: 'busy' }, providerStatus: '486 Busy Here' })
  const successor = await openCallNode(shared)
  const end = await outcomeOf(shared, successor, placed.id as CallId)
  t.match(end, { outcome: 'busy', providerStatus: '486 Busy Here' })
  await successor.close()
  edge.close()
})

for (const missed of [false, true])
  test(`an actor that dies while it answers is followed by one that talks (media came ${missed ? 'between them' : 'later'})`, async (t) => {
    const shared = await opened
    const dying = await openMortal(shared)
    const { callId, phone } = await arrive(shared, dying)
    await dying.switchboard.route(callId, begun)
    await phone.next('answer')
    await dying.die()
    if (missed) phone.event(answered)
    const successor = await openCallNode(shared)
    if (!missed) {
      t.match(await phone.next('answer'), { epoch: 2 })
      phone.event(answered)
    }
    t.match(await phone.next('start'), { epoch: 2 })
    phone.event(left)
    t.match(await outcomeOf(shared, successor, callId), { outcome: 'completed' })
    await successor.close()
  })

for (const missed of [false, true])
  test(`an actor that dies while it redirects is followed by one that goes on (passed on ${missed ? 'between them' : 'later'})`, async (t) => {
    const shared = await opened
    const dying = await openMortal(shared, undefined, { engine: createScriptedEngine({ failsToOpen: 'no key' }) })
    const config = { serviceDownRedirectEnabled: true, serviceDownRedirectNumber: '+49309991' }
    const { callId, phone } = await arrive(shared, dying, config)
    await dying.switchboard.route(callId, begun)
    await phone.next('transfer')
    await dying.die()
    const transferred = { type: 'transferred', providerStatus: '200 OK' } as const
    if (missed) phone.event(transferred)
    const successor = await openCallNode(shared)
    if (!missed) {
      t.match(await phone.next('transfer'), { epoch: 2, to: '+49309991' })
      phone.event(transferred)
    }
    const end = await outcomeOf(shared, successor, callId)
    t.match(end, { outcome: 'failed', failedReason: 'voice_session_unavailable', providerStatus: '200 OK' })
    await successor.close()
  })

test('an inbound call whose node died before it began is found and ended', async (t) => {
  const shared = await opened
  const dying = await openMortal(shared)
  const { callId, phone } = await arrive(shared, dying)
  await dying.die()
  phone.close()
  const successor = await openCallNode(shared)
  shared.clock.advance(10_000)
  t.match(await outcomeOf(shared, successor, callId), { outcome: 'canceled' })
  await successor.close()
})
