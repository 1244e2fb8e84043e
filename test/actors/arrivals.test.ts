/** How inbound phone calls come in: many in one transaction, each written with its claim, and with few statements. */
import t, { test, type Test } from 'tap'
import { subjectsOf } from '../../model/bus.ts'
import type { CallId } from '../../model/ids.ts'
import type { Json } from '../../model/json.ts'
import { maxMemoryBytes, type VoiceEngine } from '../../model/voice-engine.ts'
import type { InboundRoute } from '../../model/telephony.ts'
import type { Sql, Transaction } from '../../store/sql.ts'
import { createSubscription } from '../../store/subscriptions.ts'
import { box, openCallNode, openShared } from '../scenes/call-node.ts'
import { createScriptedPhone, type PhoneReplies } from '../fake/scripted-phone.ts'
import { until } from '../scenes/in-time.ts'
import { createCallingTenant, addTrunk, openTelephony } from '../scenes/telephony.ts'
import { newId } from '../scenes/tenant.ts'

const opened = openShared(t)

/** The same database; `statements` and `transactions` are what was asked since. */
function counted(sql: Sql) {
  const counts = { statements: 0, transactions: 0 }
  const watched = (of: Sql | Transaction) => {
    const ask = (...given: readonly unknown[]): unknown => {
      const made = (of as unknown as (...given: readonly unknown[]) => unknown)(...given)
      if (made instanceof Promise) {
        const query = made as unknown as { handler(of: unknown): void }
        const { handler } = query
        query.handler = (asked) => {
          counts.statements++
          handler(asked)
        }
      }
      return made
    }
    return Object.assign(ask, of)
  }
  const begin = (work: (tx: Transaction) => unknown) => {
    counts.transactions++
    return sql.begin((tx) => work(watched(tx) as unknown as Transaction))
  }
  return { sql: Object.assign(watched(sql), { begin }) as unknown as Sql, counts }
}

async function openArrivals(limit = 100) {
  const shared = await opened
  const node = await openCallNode(shared)
  const { sql, counts } = counted(shared.sql)
  const tenant = await createCallingTenant(shared.sql, { maxConcurrentCalls: limit })
  const trunk = { id: await addTrunk(shared.sql, tenant), accountId: tenant.accountId, name: 'Carrier', settings: {} }
  const route: InboundRoute = {
    trunk: { ...trunk, password: null },
    workerId: tenant.workerId,
    toNumber: '+4930100',
    mustAuthenticate: false,
  }
  const { born, route: tell } = node.switchboard
  const told: number[] = []
  const telephony = openTelephony(
    { sql, clock: shared.clock },
    { nodeId: node.nodeId, router: { route: tell, born }, wakeDeliveries: (written) => void told.push(written) },
  )
  const arrive = (toNumber = '+4930100', callId = 'c') =>
    telephony.receive({
      route: { ...route, toNumber },
      fromNumber: '+4940111',
      address: '198.18.3.1',
      sip: { callId, requestUri: 'sip:us', to: 'sip:us', called: toNumber, trusted: false, headers: {} },
    })
  return { ...shared, node, tenant, telephony, counts, told, arrive }
}

function close(t: Test, { node }: Awaited<ReturnType<typeof openArrivals>>): void {
  t.teardown(() => node.close())
}

test('calls of one account that arrive together are let in by one transaction, one after the other', async (t) => {
  const arrivals = await openArrivals(3)
  close(t, arrivals)
  const { arrive, counts, sql, tenant } = arrivals
  const received = await Promise.all([arrive(), arrive(), arrive(), arrive(), arrive()])
  t.same(
    received.map((one) => ('reason' in one ? one.reason : 'in')),
    ['in', 'in', 'in', 'account_at_capacity', 'account_at_capacity'],
  )
  t.match(received[4], { sipStatus: 486, details: /has 3 calls running/ }, 'each counts those before it')
  t.equal(counts.transactions, 1)
  t.ok(counts.statements <= 6 + 2 * 3, `${counts.statements} statements: six of all, two of each that came in`)
  const rows = await sql`select progress, snapshot from calls where account_id = ${tenant.accountId}`
  t.match(rows, [{ progress: 'ringing' }, { progress: 'ringing' }, { progress: 'ringing' }])
})

test('one that the database cannot store is refused alone', async (t) => {
  const arrivals = await openArrivals()
  close(t, arrivals)
  const { arrive } = arrivals
  const [first, bad, last] = await Promise.allSettled([arrive(), arrive('+4930100', 'a\u0000b'), arrive()])
  t.match([first, last], [{ value: { callId: String } }, { value: { callId: String } }])
  t.match(bad, { status: 'rejected' })
})

test('an inbound call is its node’s from its birth: it begins without being looked for and claimed', async (t) => {
  const arrivals = await openArrivals()
  close(t, arrivals)
  const { arrive, telephony, sql, bus, counts, node } = arrivals
  const { callId } = (await arrive()) as { callId: CallId }
  const [row] = await sql<{ owner: string; epoch: number; version: number }[]>`
    select owner, epoch, version from calls where id = ${callId}`
  t.same(row, { owner: node.nodeId, epoch: 1, version: 0 })
  const phone = createScriptedPhone(bus, callId)
  const before = counts.statements
  t.equal(await telephony.begin(callId), true)
  t.equal(counts.statements, before, 'the telephony of the edge asks nothing')
  t.match(await phone.next('answer'), { epoch: 1 })
  t.match((await sql`select version from calls where id = ${callId}`)[0], { version: 1 }, 'by its first step')
  phone.event({ type: 'connected', providerStatus: '200 OK' })
  t.match(await phone.next('start'), { epoch: 1 })
  const log = await sql<{ seq: number; epoch: number; event: { type: string } }[]>`
    select seq, epoch, event from call_events where call_id = ${callId} order by seq limit 2`
  t.match(log, [
    { seq: 0, epoch: 0, event: { type: 'created' } },
    { seq: 1, epoch: 1, event: { type: 'client_connected', isUnasked: true } },
  ])
})

for (const eventType of ['call.worker_request', '*'] as const)
  test(`who subscribed to ${eventType} is asked before the call is answered`, async (t) => {
    const arrivals = await openArrivals()
    close(t, arrivals)
    const { arrive, telephony, sql, tenant, clock } = arrivals
    const { accountId } = tenant
    const request = { eventType, url: 'https://example.com/hook' }
    await createSubscription(sql, box, { accountId, request, newId, now: clock.now() })
    const { callId } = (await arrive()) as { callId: CallId }
    await telephony.begin(callId)
    const log = await sql<{ event: object; effects: object[] }[]>`
      select event, effects from call_events where call_id = ${callId} and seq = 1`
    t.same(log, [{ event: { type: 'client_connected' }, effects: [{ type: 'ask_worker_request' }] }])
  })

test('a call whose node left it before it began is found, and not begun by its old claim', async (t) => {
  const arrivals = await openArrivals()
  close(t, arrivals)
  const { arrive, telephony, sql, node } = arrivals
  const { callId } = (await arrive()) as { callId: CallId }
  const other = newId<'node'>()
  await sql`insert into nodes (id, lease_until) values (${other}, 'infinity')`
  await sql`update calls set owner = ${other}, epoch = 2 where id = ${callId}`
  t.equal(await telephony.begin(callId), false)
  t.equal(node.switchboard.running(), 0)
  t.same((await sql`select version from calls where id = ${callId}`)[0], { version: 0 })
})

test('who subscribed is told that a call rings, by the transaction of its birth; where nobody did, nobody is woken', async (t) => {
  const arrivals = await openArrivals()
  close(t, arrivals)
  const { arrive, sql, tenant, told, clock } = arrivals
  await arrive()
  t.same(told, [0])
  for (const eventType of ['*', 'call.status_update', 'call.ended'] as const)
    await createSubscription(sql, box, {
      accountId: tenant.accountId,
      request: { eventType, url: 'https://example.com/hook' },
      newId,
      now: clock.now(),
    })
  const { callId } = (await arrive()) as { callId: CallId }
  t.same(told, [0, 2])
  const rows = await sql<{ eventType: string; body: string }[]>`
    select event_type, body from deliveries where call_id = ${callId} order by seq`
  t.match(
    rows.map(({ eventType, body }) => ({ eventType, ...(JSON.parse(body) as object) })),
    Array(2).fill({ eventType: 'call.status_update', type: 'call.status_update', data: { callId, status: 'ringing' } }),
  )
})

const connected = { type: 'connected', providerStatus: '200 OK' } as const

async function answered(t: Test, replies: PhoneReplies = {}, more: Partial<VoiceEngine> = {}) {
  const arrivals = await openArrivals()
  close(t, arrivals)
  Object.assign(arrivals.node.engine, more)
  const { callId } = (await arrivals.arrive()) as { callId: CallId }
  const phone = createScriptedPhone(arrivals.bus, callId, replies)
  await arrivals.telephony.begin(callId)
  await phone.next('answer')
  return { ...arrivals, callId, phone, engine: arrivals.node.engine }
}

test('the voice session that was tried before the answer is that of the talk: what it said meanwhile is heard then', async (t) => {
  const { bus, callId, phone, engine } = await answered(t)
  const heard = Promise.withResolvers<void>()
  const down = bus.subscribe(subjectsOf(callId).down, () => heard.resolve())
  t.teardown(() => down.close())
  engine.say('greeting', 'Good day.', 2)
  phone.event(connected)
  await phone.next('start')
  await heard.promise
  t.equal(engine.configs.length, 1)
  t.same(engine.told, [])
  phone.event({ type: 'disconnected', cause: 'hung_up', details: 'BYE' })
  await phone.next('close')
  t.equal(engine.configs.length, 1)
})

test('a caller who hangs up before the talk leaves no voice session behind', async (t) => {
  const { phone, engine, node } = await answered(t)
  phone.event({ type: 'disconnected', cause: 'hung_up', details: 'CANCEL' })
  await phone.next('close')
  t.same(engine.told, ['close'])
  await node.close()
  t.same(engine.told, ['close'], 'once')
})

test('what an engine that was tried before the answer remembers is shortened by it as ever', async (t) => {
  const { sql, callId, phone, engine } = await answered(t, {}, { shorten: () => ({ x: 'less' }) })
  phone.event(connected)
  await phone.next('start')
  const turn = () => sql<{ memory: Json }[]>`
    select event->'memory' as memory from call_events where call_id = ${callId} and event->>'type' = 'turn_committed'`
  engine.emit({ type: 'memory', memory: { x: 'y'.repeat(maxMemoryBytes) } })
  engine.emit({ type: 'user_text', text: 'Hello.', isFinal: true, confidence: 1, from: 0, to: 500 })
  const [stored] = await until(async () => ((await turn()).length > 0 ? turn() : undefined))
  t.same(stored?.memory, { x: 'less' })
  phone.event({ type: 'disconnected', cause: 'hung_up', details: 'BYE' })
  await phone.next('close')
})

test('a session that cannot be that of the talk is closed before it says anything', async (t) => {
  const pcmu = { encoding: 'pcmu', rateHz: 8000 } as const
  const pcm = { encoding: 'pcm16', rateHz: 16_000 } as const
  const { phone, engine } = await answered(t, {}, { hears: [pcm, pcmu], speaks: [pcm, pcmu] })
  t.same(engine.told, ['close'], 'while the call rings')
  phone.event(connected)
  await phone.next('start')
  await until(() => engine.configs[1])
  phone.event({ type: 'disconnected', cause: 'hung_up', details: 'BYE' })
  await phone.next('close')
})

test('a line of another format than was tried gets a session of its own, and the one that was tried is closed', async (t) => {
  const format = { encoding: 'pcmu', rateHz: 8000 } as const
  const { phone, engine } = await answered(t, { start: { type: 'started', hears: format, speaks: format } })
  phone.event(connected)
  await phone.next('start')
  phone.event({ type: 'disconnected', cause: 'hung_up', details: 'BYE' })
  await phone.next('close')
  t.match(
    engine.configs.map(({ formats }) => formats.hears.rateHz),
    [16_000, 8_000],
  )
  t.equal(engine.told[0], 'close')
})
