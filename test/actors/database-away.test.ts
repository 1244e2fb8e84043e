/** A call whose database is away for ten minutes: it goes on, ends, and is found afterwards as if nothing had been. */
import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { test, type Test } from 'tap'
import type { CallId } from '../../model/ids.ts'
import type { Sql } from '../../store/sql.ts'
import { createSubscription } from '../../store/subscriptions.ts'
import { box, openCallNode, openShared, type CallNode, type Shared } from '../scenes/call-node.ts'
import { createCutBus } from '../fake/cut-bus.ts'
import { createCutDatabase } from '../fake/cut-database.ts'
import { createScriptedPhone } from '../fake/scripted-phone.ts'
import { createFolder } from '../scenes/folder.ts'
import { createAdmission } from '../../actors/call/birth/admission.ts'
import { keptBirthOf } from '../../actors/call/birth/kept-birth.ts'
import { createInboundCall } from '../scenes/inbound-call.ts'
import { until } from '../scenes/in-time.ts'
import { addTrunk, createCallingTenant } from '../scenes/telephony.ts'
import { createTenant, newId } from '../scenes/tenant.ts'

async function talk(shared: Shared, node: CallNode) {
  const { sql, bus, clock } = shared
  const tenant = await createCallingTenant(sql)
  const request = { eventType: '*', url: 'https://example.com/hook' } as const
  await createSubscription(sql, box, { accountId: tenant.accountId, request, newId, now: clock.now() })
  const trunk = { id: await addTrunk(sql, tenant), accountId: tenant.accountId, name: '', settings: {}, password: null }
  const route = { trunk, workerId: tenant.workerId, toNumber: '+4930100', mustAuthenticate: false }
  const birth = { route, fromNumber: null, address: '192.0.2.1', nodeId: node.nodeId, now: clock.now(), newId }
  const callId = await sql.begin((tx) => createInboundCall(tx, birth))
  const phone = createScriptedPhone(bus, callId)
  await node.switchboard.route(callId, { type: 'client_connected' })
  await phone.next('answer')
  phone.event({ type: 'connected', providerStatus: '200 OK' })
  await phone.next('start')
  return { ...tenant, callId, phone }
}

const says = (node: CallNode, callId: CallId, text: string, from: number) =>
  node.switchboard.route(callId, {
    type: 'turn_committed',
    turn: { role: 'user', text, from, to: from + 400, confidence: 1, source: 'scripted', latency: null },
  })

const turnsOf = async ({ sql }: Shared, callId: CallId) =>
  (await sql<{ text: string }[]>`select text from transcript_turns where call_id = ${callId} order by turn_index`).map(
    ({ text }) => text,
  )

/** More than a mailbox holds. */
const turns = 1_050
const tenMinutes = 600_000
const hungUp = { type: 'disconnected', cause: 'hung_up', details: 'BYE' } as const

test('a call talks on while the database is away for ten minutes, ends, and nothing of it is missing or twice', async (t) => {
  const shared = await openShared(t)
  const database = createCutDatabase(shared.sql)
  const node = await openCallNode({ ...shared, sql: database.sql }, undefined, { dataDir: await createFolder(t) })
  t.teardown(() => node.close())
  const { callId, phone } = await talk(shared, node)
  await says(node, callId, 'turn 0', 0)
  database.cut()
  for (let turn = 1; turn < turns; turn++) {
    await says(node, callId, `turn ${turn}`, turn * 500)
    shared.clock.advance(tenMinutes / turns)
  }
  phone.event(hungUp)
  await phone.next('close')
  await until(() => node.switchboard.running() === 0)
  t.same(await turnsOf(shared, callId), ['turn 0'], 'nothing of it has reached the database')
  database.mend()
  const call = await until(async () => {
    shared.clock.advance(1_000)
    const [row] = await shared.sql`select outcome, finished from calls where id = ${callId}`
    return row?.['finished'] === true && row
  })
  t.match(call, { outcome: 'completed' })
  t.same(
    await turnsOf(shared, callId),
    Array.from({ length: turns }, (_, turn) => `turn ${turn}`),
  )
  const log = await shared.sql<{ seq: number; epoch: number; type: string }[]>`
    select seq, epoch, event->>'type' as type from call_events where call_id = ${callId} order by seq`
  t.same(
    log.map(({ seq }) => seq),
    log.map((_, index) => index + Number(log[0]?.seq)),
  )
  t.same(new Set(log.flatMap(({ type, epoch }) => (epoch === 1 ? [] : [type]))), new Set(['created', 'post_processed']))
  const ended = await shared.sql`select from deliveries where call_id = ${callId} and event_type = 'call.ended'`
  t.equal(ended.count, 1)
})

/** A process whose steps are kept on its disk: the database is away. */
async function keepSteps(t: Test, texts: readonly string[]) {
  const shared = await openShared(t)
  const database = createCutDatabase(shared.sql)
  const dataDir = await createFolder(t)
  const bus = createCutBus(shared.bus)
  const dying = await openCallNode({ ...shared, bus, sql: database.sql }, undefined, { dataDir })
  const { callId, phone } = await talk(shared, dying)
  database.cut()
  for (const [index, text] of texts.entries()) await says(dying, callId, text, 500 * index)
  /** Others may go on with its calls. */
  const die = async () => {
    bus.cut()
    await dying.die()
    await shared.sql`update nodes set lease_until = now() - interval '1 s' where id = ${dying.nodeId}`
  }
  return { shared, dataDir, callId, phone, die }
}

test('a process that dies while the database is away is followed by one that goes on where the call was', async (t) => {
  const { shared, dataDir, callId, phone, die } = await keepSteps(t, ['one', 'two', 'three'])
  await die()
  const successor = await openCallNode(shared, undefined, { dataDir })
  t.match(await phone.next('start'), { epoch: 2 })
  t.same(await turnsOf(shared, callId), ['one', 'two', 'three'])
  t.same(
    successor.engine.configs.at(-1)?.history.map(({ text }) => text),
    ['one', 'two', 'three'],
  )
  phone.event(hungUp)
  await until(() => successor.switchboard.running() === 0)
  await successor.close()
})

test('what was kept of a call is in what a talk is begun anew with, though the database is back and does not have it yet', async (t) => {
  const shared = await openShared(t)
  const database = createCutDatabase(shared.sql)
  const node = await openCallNode({ ...shared, sql: database.sql }, undefined, { dataDir: await createFolder(t) })
  t.teardown(() => node.close())
  const { callId, phone } = await talk(shared, node)
  database.cut()
  for (const text of ['one', 'two']) await says(node, callId, text, 1_000)
  database.mend()
  await node.switchboard.route(callId, { type: 'taken_over' })
  t.same(await turnsOf(shared, callId), [], 'the clock stands still, and so do those who write them')
  await until(() => {
    shared.clock.advance(100)
    return node.engine.configs.length === 2
  })
  t.same(
    node.engine.configs[1]?.history.map(({ text }) => text),
    ['one', 'two'],
  )
  phone.event(hungUp)
  await until(() => node.switchboard.running() === 0)
})

/** A process that dies while the database is away, beside one on the same folder. */
async function dieBeside(t: Test) {
  const { die, ...left } = await keepSteps(t, ['one', 'two'])
  const neighbour = await openCallNode(left.shared, undefined, { dataDir: left.dataDir })
  t.teardown(() => neighbour.close())
  await die()
  return { ...left, neighbour }
}

test('a process takes no call of a dead neighbour on its disk before the steps that this one has left there are written', async (t) => {
  const { shared, callId, phone, neighbour } = await dieBeside(t)
  await until(() => {
    shared.clock.advance(100)
    return neighbour.switchboard.running() === 1
  })
  t.match(await phone.next('start'), { epoch: 2 })
  t.same(await turnsOf(shared, callId), ['one', 'two'])
  t.same(
    neighbour.engine.configs.at(-1)?.history.map(({ text }) => text),
    ['one', 'two'],
  )
  phone.event(hungUp)
  await until(() => neighbour.switchboard.running() === 0)
})

test('turns of a former process that are found when somebody has gone on with its call are written behind what that one has heard', async (t) => {
  const { shared, callId, phone, neighbour } = await dieBeside(t)
  t.ok(await says(neighbour, callId, 'three', 2_000))
  t.match(await phone.next('start'), { epoch: 2 })
  await until(async () => {
    shared.clock.advance(100)
    return (await turnsOf(shared, callId)).length === 3
  })
  t.ok(await says(neighbour, callId, 'four', 3_000))
  await until(async () => (await turnsOf(shared, callId)).length === 4)
  t.same(await turnsOf(shared, callId), ['three', 'one', 'two', 'four'])
  t.notOk(neighbour.log.lines.some(({ message }) => message === 'steps of a call were put aside'))
  const [row] = await shared.sql`select owner, epoch from calls where id = ${callId}`
  t.match(row, { owner: neighbour.nodeId, epoch: 2 }, 'by the same actor')
  phone.event(hungUp)
  await until(() => neighbour.switchboard.running() === 0)
})

test('a call that begins while the database is away talks by what was known of its worker, and is there when its process has died and another follows', async (t) => {
  const shared = await openShared(t)
  const tenant = await createCallingTenant(shared.sql)
  const trunkId = await addTrunk(shared.sql, tenant)
  const database = createCutDatabase(shared.sql)
  const dataDir = await createFolder(t)
  const bus = createCutBus(shared.bus)
  const node = await openCallNode({ ...shared, bus, sql: database.sql }, undefined, { dataDir })
  database.cut()
  const [{ accountId, workerId }, callId] = [tenant, newId<'call'>()]
  const trunk = { id: trunkId, accountId, name: '', settings: {}, password: 'secret of the trunk' }
  const route = { trunk, workerId, toNumber: '+4930100', mustAuthenticate: false }
  const warnings = [{ type: 'DATABASE_WAS_AWAY', message: 'It was.' }] as const
  const ids = { callId, sessionId: newId(), nodeId: node.nodeId, now: shared.clock.now(), warnings }
  const birth = keptBirthOf({ route, fromNumber: '+4930200', address: '192.0.2.1' }, ids)
  const worker = { language: 'en', config: {} }
  await node.switchboard.bear({ birth, worker, script: 'As it was known.', hook: null, late: Promise.resolve() })
  const phone = createScriptedPhone(bus, callId)
  t.ok(await node.switchboard.route(callId, { type: 'client_connected' }))
  await phone.next('answer')
  phone.event({ type: 'connected', providerStatus: '200 OK' })
  await phone.next('start')
  t.match(node.engine.configs.at(-1), { script: 'As it was known.', tools: [], customer: null })
  await says(node, callId, 'one', 1_000)
  const [journal] = (await readdir(path.join(dataDir, 'steps'))).filter((name) => name.endsWith('.journal'))
  t.notMatch(await readFile(path.join(dataDir, 'steps', journal!), 'utf8'), 'secret of the trunk')
  t.equal((await shared.sql`select from calls where id = ${callId}`).count, 0)

  bus.cut()
  await node.die()
  await shared.sql`update nodes set lease_until = now() - interval '1 s' where id = ${node.nodeId}`
  const follower = createScriptedPhone(shared.bus, callId)
  const successor = await openCallNode(shared, undefined, { dataDir })
  t.match(await follower.next('start'), { epoch: 2 })
  t.same(await turnsOf(shared, callId), ['one'])
  const [row] = await shared.sql`select from_number, trunk_id, warnings from calls where id = ${callId}`
  t.match(row, { fromNumber: '+4930200', trunkId, warnings })
  const first = await shared.sql`select event from call_events where call_id = ${callId} and seq = 0`
  t.match(first[0], { event: { type: 'created' } })
  follower.event(hungUp)
  await until(() => successor.switchboard.running() === 0)
  await successor.close()
})

test('a browser whose joining the database broke off joins with the same token when it is back, and nobody else does', async (t) => {
  const shared = await openShared(t)
  const node = await openCallNode(shared)
  t.teardown(() => node.close())
  const { accountId, workerId } = await createTenant(shared.sql, { slug: newId() })
  const away = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
  for (const goesAway of ['behind its token', 'with the answer'] as const) {
    const { callId, token } = await node.createWebCall(accountId, { workerId })
    let tries = 0
    const lost = async (work: () => Promise<unknown>) => {
      const value = await work()
      if (tries++ === 0) throw away
      return value
    }
    const route = node.switchboard.route
    const router = { route: (...given: Parameters<typeof route>) => lost(() => route(...given)) as Promise<boolean> }
    const apply = (sql: Sql, self: unknown, given: unknown[]): unknown => {
      const isTaken = /update web_sessions set token_used_at/.test(
        String((given[0] as readonly string[] | undefined)?.[0]),
      )
      const asked = (): Promise<unknown> => Promise.resolve(Reflect.apply(sql, self, given))
      return isTaken ? lost(asked) : Reflect.apply(sql, self, given)
    }
    const sql = new Proxy(shared.sql, { apply } as ProxyHandler<Sql>)
    const admission = createAdmission({
      ...shared,
      ...(goesAway === 'with the answer' ? { sql, router: node.switchboard } : { router }),
    })
    await t.rejects(admission.admit(token, null), { code: 'ECONNREFUSED' }, goesAway)
    t.match(await node.admission.admit(token, null), { type: 'UNAUTHORIZED' }, 'of another process')
    t.match(await admission.admit(token, null), { callId }, goesAway)
    t.match(await admission.admit(token, null), { type: 'UNAUTHORIZED' }, 'once')
  }
})
