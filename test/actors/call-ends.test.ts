/** How the end of a call is told: by whom and why, up to when its media lasted, in one write, and the same for whoever replays its log. */
import top, { test, type Test } from 'tap'
import type { CallBirth, CallFact, Effect } from '../../actors/call/call-event.ts'
import { createInboundCall } from '../scenes/inbound-call.ts'
import { createLegSightings } from '../../actors/call/life/leg-sightings.ts'
import { replay } from '../../actors/call/machine/replay.ts'
import { beginCall, step, type Step } from '../../actors/call/machine/step.ts'
import type { CallId } from '../../model/ids.ts'
import type { Json } from '../../model/json.ts'
import { toPhoneCall } from '../../model/phone-call.ts'
import { claimCall, findCallFacts, listCallEvents } from '../../store/call-steps.ts'
import { findCall } from '../../store/calls.ts'
import { createSubscription } from '../../store/subscriptions.ts'
import { noteCarrier } from '../../store/telephony.ts'
import { createTrunks } from '../../store/trunks.ts'
import { createCutBus } from '../fake/cut-bus.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createScriptedEdge, createScriptedPhone, type ScriptedPhone } from '../fake/scripted-phone.ts'
import { box, openCallNode, openShared, type CallNode, type Shared } from '../scenes/call-node.ts'
import { until } from '../scenes/in-time.ts'
import { addTrunk, createCallingTenant } from '../scenes/telephony.ts'
import { newId } from '../scenes/tenant.ts'

const phone: CallBirth = { direction: 'inbound', transport: 'sip_trunk', scheduledAt: null, rules: 2 }
const placed: CallBirth = { ...phone, direction: 'outbound' }
const web: CallBirth = { ...phone, transport: 'webrtc' }
const here: CallFact = { type: 'client_connected' }
const hook: CallFact = {
  type: 'worker_request_answered',
  config: null,
  instructions: null,
  tools: null,
  metadata: null,
}
const connected: CallFact = { type: 'leg_connected', providerStatus: '200 OK' }
const closed: CallFact = { type: 'leg_closed', recordedMs: 1000, silentFor: 0 }
const talking = [here, hook, connected]

/** Facts ten seconds apart, the connection at 30 s. */
function run(birth: CallBirth, facts: readonly CallFact[]): Step[] {
  const steps = [beginCall(birth, 0)]
  for (const [index, fact] of facts.entries())
    steps.push(step(steps.at(-1)?.state.persisted ?? null, fact, (index + 1) * 10_000))
  return steps
}
const storedOf = (steps: readonly Step[]) =>
  steps.flatMap(({ effects }) => effects).filter((effect) => effect.type === 'store_outcome')
const lost = (end: Partial<Extract<CallFact, { type: 'leg_disconnected' }>>): CallFact => ({
  type: 'leg_disconnected',
  cause: 'media_lost',
  details: '',
  ...end,
})

test('lost media, a killed process and a lost SIP server are no end of the talk: failed with the reason, ended with the last media', async (t) => {
  const ways: [CallFact, object][] = [
    [lost({ silentFor: 8_000 }), { status: 'failed', reason: 'media_lost' }],
    [lost({ cause: 'failed', silentFor: 8_000 }), { status: 'failed', reason: 'internal_error' }],
    [lost({ cause: 'failed', endedBy: 'network', silentFor: 8_000 }), { status: 'failed', reason: 'media_lost' }],
    [lost({ endedBy: 'caller', silentFor: 8_000 }), { status: 'completed' }],
    [lost({ cause: 'hung_up', silentFor: 0 }), { status: 'completed' }],
  ]
  for (const birth of [phone, web])
    for (const [fact, outcome] of ways) {
      const [stored, ...more] = storedOf(run(birth, [...talking, fact, closed]))
      const silentFor = (fact as { silentFor: number }).silentFor
      t.match(stored, { outcome, answeredAt: 30_000, endedAt: 40_000 - silentFor }, JSON.stringify(fact))
      t.same(more, [])
    }
})

test('who ended a call is told: caller, agent, service or network', async (t) => {
  const machine: CallFact = { type: 'voicemail_detected', signs: ['phrase', 'beep'] }
  const ways: [CallBirth, readonly CallFact[], string][] = [
    [phone, [...talking, lost({ cause: 'hung_up' })], 'caller'],
    [phone, [...talking, { type: 'agent_finished', nextAction: null }], 'agent'],
    [phone, [...talking, { type: 'transferred', providerStatus: '200 OK' }], 'agent'],
    [phone, [...talking, { type: 'hang_up_requested', by: 'agent' }], 'agent'],
    [phone, [...talking, { type: 'hang_up_requested', by: 'service' }], 'service'],
    [phone, [...talking, { type: 'deadline_passed', deadline: 'duration' }], 'service'],
    [phone, [...talking, { type: 'engine_failed', details: '', hasSpoken: true }], 'service'],
    [phone, [...talking, lost({})], 'network'],
    [phone, [here, lost({ cause: 'hung_up' })], 'caller'],
    [placed, [{ type: 'slot_granted' }, hook, connected, machine], 'agent'],
    [web, [{ type: 'token_expired' }], 'service'],
    [{ ...placed, scheduledAt: 99_000_000 }, [{ type: 'cancel_requested' }], 'service'],
  ]
  for (const [birth, facts, by] of ways) {
    const [stored] = storedOf(run(birth, [...facts, closed]))
    t.match(stored, { endedBy: by }, JSON.stringify(facts.at(-1)))
  }
})

test('an end that the agent or the service decided is when the leg was closed, and never before the answer or after its discovery', async (t) => {
  const asked: CallFact = { type: 'hang_up_requested', by: 'service' }
  const at = (facts: readonly CallFact[]) => storedOf(run(phone, [...talking, ...facts]))[0]?.endedAt
  t.equal(at([asked, { ...closed, silentFor: 4_000 } as CallFact]), 46_000, 'the recording took 4 s to be written')
  t.equal(at([asked, { ...closed, silentFor: 60_000 } as CallFact]), 40_000, 'a leg that was gone before')
  t.equal(at([asked, { type: 'deadline_passed', deadline: 'close' }]), 40_000, 'a leg that never answered')
  t.equal(at([lost({ silentFor: 3_600_000 }), closed]), 30_000)
})

test('a call that was not answered has its outcome in the step that decides its end', async (t) => {
  const dialing: CallFact[] = [{ type: 'slot_granted' }, hook]
  const busy: CallFact = {
    type: 'dial_failed',
    outcome: { status: 'busy' },
    providerStatus: '486',
    endCause: 'SIP 486',
  }
  const ways: [CallBirth, readonly CallFact[]][] = [
    [placed, [...dialing, busy]],
    [placed, [...dialing, { type: 'deadline_passed', deadline: 'ring' }]],
    [phone, [here, lost({ cause: 'hung_up' })]],
    [phone, [here, { type: 'worker_request_failed', required: true, details: '' }]],
    [web, [here, { type: 'deadline_passed', deadline: 'connect' }]],
  ]
  for (const [birth, facts] of ways) {
    const steps = run(birth, [...facts, closed])
    const names = steps.map(({ effects }) => effects.map(({ type }) => type))
    t.same(names.at(-2), ['announce_status', 'store_outcome', 'wind_up'], JSON.stringify(facts.at(-1)))
    t.same(names.at(-1), ['announce_ended'])
    t.equal(storedOf(steps)[0]?.endedAt, facts.length * 10_000)
  }
})

test('a leg process that dies while a phone is dialed fails the call; one that dies before our answer has kept nobody', async (t) => {
  const dead = lost({ cause: 'failed', silentFor: 9_000 })
  t.match(storedOf(run(phone, [here, hook, dead, closed])), [{ outcome: { status: 'canceled' }, endedBy: 'service' }])
  t.match(storedOf(run(placed, [{ type: 'slot_granted' }, hook, dead, closed])), [
    { outcome: { reason: 'internal_error' }, endedBy: 'service' },
  ])
})

test('the log of a call of before ends as it did: replayed, and taken over in the middle', async (t) => {
  const { rules: _, ...before } = phone
  const facts: CallFact[] = [...talking, lost({}), { type: 'leg_closed', recordedMs: 1000 }]
  const ended: Effect[] = [
    { type: 'announce_status', status: 'completed', providerStatus: '200 OK' },
    { type: 'store_outcome', outcome: { status: 'completed' }, answeredAt: 30_000, endedAt: 50_000 },
    { type: 'schedule_post_processing' },
  ]
  const steps = run(before, facts)
  t.same(steps.at(-1)?.effects, ended)
  const json = <Value>(value: Value) => JSON.parse(JSON.stringify(value)) as Json
  const log = steps.map(({ effects, ignored }, seq) => {
    const event = seq === 0 ? { type: 'created', ...before } : facts[seq - 1]
    return { seq, at: seq * 10_000, event: json(event), effects: json(effects), ignored }
  })
  t.same(replay(log).differences, [])
  const renewed = lost({ endedBy: 'network', silentFor: 8_000 })
  t.same(step(steps.at(3)?.state.persisted ?? null, renewed, 40_000).state.context.outcome, { status: 'completed' })
})

test('a leg that is found gone ended when it was last seen', async (t) => {
  const clock = createHandClock()
  const gone: CallFact = { type: 'leg_closed', recordedMs: null }
  const taken = createLegSightings(clock, 7_000)
  t.same(taken.aged(gone), { ...gone, silentFor: 7_000 }, 'the former actor was last alive then')
  taken.seen()
  clock.advance(15_000)
  t.same(taken.aged(gone), { ...gone, silentFor: 15_000 })
  const told = lost({ silentFor: 2 })
  t.equal(taken.aged(told), told, 'who knows better is believed')
})

const opened = openShared(top)

async function arrive({ sql, bus, clock }: Shared, { nodeId }: CallNode) {
  const tenant = await createCallingTenant(sql)
  const request = { eventType: '*', url: 'https://example.com/hook' } as const
  await createSubscription(sql, box, { accountId: tenant.accountId, request, newId, now: clock.now() })
  const trunk = { id: await addTrunk(sql, tenant), accountId: tenant.accountId, name: '', settings: {}, password: null }
  const route = { trunk, workerId: tenant.workerId, toNumber: '+4930100', mustAuthenticate: false }
  const birth = { route, address: '127.0.0.1', fromNumber: null, nodeId, now: clock.now(), newId }
  const callId = await sql.begin((tx) => createInboundCall(tx, birth))
  return { ...tenant, callId, phone: createScriptedPhone(bus, callId) }
}

async function untilOver({ sql }: Shared, node: CallNode, callId: CallId): Promise<void> {
  for (;;) {
    const [row] = await sql<{ finished: boolean }[]>`select finished from calls where id = ${callId}`
    if (row?.finished) return
    await node.scheduler.idle()
  }
}

/** For a leg that is gone to come back. */
const untilWaiting = ({ sql }: Shared, callId: CallId) =>
  until(async () => {
    const events = await sql`select from call_events where call_id = ${callId} and event->>'type' = 'leg_disconnected'`
    return events.count > 0
  })

const endedEventOf = async ({ sql }: Shared, callId: CallId) => {
  const [row] = await sql<{ body: string }[]>`
    select body from deliveries where call_id = ${callId} and event_type = 'call.ended'`
  return (JSON.parse(row?.body ?? '{}') as { data?: unknown }).data
}

async function openNode(t: Test, shared: Shared): Promise<CallNode> {
  const node = await openCallNode(shared)
  t.teardown(() => node.close())
  return node
}

test('an end is read whole by whoever reads at whatever moment: status, outcome, end and duration appear together', async (t) => {
  const shared = await opened
  const { sql, clock } = shared
  const node = await openNode(t, shared)
  const edge = createScriptedEdge(shared.bus)
  t.teardown(() => edge.close())
  // What every commit leaves, and not only what a reader happens to see.
  await sql`create table half_written (call_id text, progress text)`
  await sql.unsafe(`
    create function note_half_written() returns trigger language plpgsql as $$ begin
      insert into half_written select id, progress from calls where id = new.id
        and progress not in ('scheduled', 'queued', 'ringing', 'in_progress')
        and (outcome is null or ended_at is null or ended_by is null or progress <> outcome);
      return null;
    end $$;
    create constraint trigger half_written after update on calls deferrable initially deferred
      for each row execute function note_half_written()`)
  t.teardown(() => sql`drop trigger half_written on calls`)

  const { accountId, workerId } = await createCallingTenant(sql)
  const place = async () => {
    const { id } = await node.createPhoneCall(accountId, { workerId, phoneNumber: '+4930200' }, null)
    return { callId: id as CallId, phone: await edge.phone(id as CallId) }
  }
  const busy = await place()
  busy.phone.event({ type: 'ringing', providerStatus: '180 Ringing' })
  while ((await findCall(sql, accountId, busy.callId))?.progress !== 'ringing') await sql`select 1`
  const ringing = toPhoneCall((await findCall(sql, accountId, busy.callId))!)
  t.match(ringing, { status: 'in_progress', progress: 'ringing', startedAt: undefined, outcome: undefined })
  t.notOk('endedBy' in ringing)
  busy.phone.event({
    type: 'dial_failed',
    outcome: { status: 'busy' },
    providerStatus: '486 Busy Here',
    endedBy: 'caller',
    endCause: 'Q.850 17',
  })
  await untilOver(shared, node, busy.callId)
  t.match(toPhoneCall((await findCall(sql, accountId, busy.callId))!), {
    status: 'completed',
    progress: 'busy',
    outcome: 'busy',
    endedBy: 'caller',
    endCause: 'Q.850 17',
  })
  const talk = await place()
  talk.phone.event({ type: 'connected', providerStatus: '200 OK' })
  await talk.phone.next('start')
  clock.advance(3_000)
  talk.phone.event({ type: 'disconnected', cause: 'hung_up', details: 'BYE', endCause: 'Q.850 16' })
  await untilOver(shared, node, talk.callId)
  const over = toPhoneCall((await findCall(sql, accountId, talk.callId))!)
  t.match(over, { outcome: 'completed', duration: 3, endedBy: 'caller', endCause: 'Q.850 16' })
  t.same(await sql`select call_id, progress from half_written`, [])
})

test('a call of 3 s whose media was lost then lasted 3 s: on the call, in call.ended and in its log', async (t) => {
  const shared = await opened
  const node = await openNode(t, shared)
  const { callId, accountId, phone } = await arrive(shared, node)
  await node.switchboard.route(callId, here as never)
  await phone.next('answer')
  phone.event({ type: 'connected', providerStatus: '200 OK' })
  await phone.next('start')
  shared.clock.advance(18_000)
  phone.event({ type: 'disconnected', cause: 'media_lost', details: 'packets stopped coming', silentFor: 15_000 })
  await untilOver(shared, node, callId)
  const end = { failedReason: 'media_lost', duration: 3, endedBy: 'network' }
  t.match(toPhoneCall((await findCall(shared.sql, accountId, callId))!), { outcome: 'failed', ...end })
  t.match(await endedEventOf(shared, callId), { status: 'failed', ...end, endCause: null })
  t.same(replay(await listCallEvents(shared.sql, callId)).differences, [])
})

test('a call whose process was killed ended when that process was last alive, however late it is found', async (t) => {
  const shared = await opened
  const { sql, clock } = shared
  const bus = createCutBus(shared.bus)
  const dying = await openCallNode({ ...shared, bus })
  const { callId, accountId, phone } = await arrive(shared, dying)
  await dying.switchboard.route(callId, here as never)
  await phone.next('answer')
  phone.event({ type: 'connected', providerStatus: '200 OK' })
  await phone.next('start')
  // It lives for 11 s, and nobody looks for another 30.
  clock.advance(41_000)
  // What it writes of itself while that time passes is written.
  await dying.switchboard.start()
  bus.cut()
  phone.close()
  await dying.die()
  await sql`update nodes set lease_until = clock_timestamp() - interval '25 s' where id = ${dying.nodeId}`
  const successor = await openNode(t, shared)
  // Its telephone could be asked over to another process, and nobody does.
  await untilWaiting(shared, callId)
  clock.advance(5_000)
  await untilOver(shared, successor, callId)
  const call = toPhoneCall((await findCall(sql, accountId, callId))!)
  t.match(call, { outcome: 'failed', failedReason: 'internal_error', endedBy: 'service' })
  t.ok(Math.abs((call.duration ?? 0) - 11) < 1.5, `${call.duration} s`)
})

test('trunks are deleted while calls of them are carried, ring and end: every call ends, and nothing waits in a ring', async (t) => {
  const shared = await opened
  const { sql } = shared
  const node = await openNode(t, shared)
  const edge = createScriptedEdge(shared.bus)
  t.teardown(() => edge.close())
  const tenant = await createCallingTenant(sql, { maxConcurrentCalls: 1_000 })
  const { accountId, workerId } = tenant
  const trunks = createTrunks({ sql, box, clock: shared.clock, newId })
  const deadlocks = async () => {
    await sql`select pg_stat_clear_snapshot()`
    const [row] = await sql<{ deadlocks: number }[]>`
      select deadlocks::int from pg_stat_database where datname = current_database()`
    return row?.deadlocks ?? 0
  }
  const before = await deadlocks()
  for (let round = 0; round < 3; round++) {
    const trunkId = await addTrunk(sql, tenant)
    const calls: { callId: CallId; phone: ScriptedPhone }[] = []
    for (let count = 0; count < 12; count++) {
      const { id } = await node.createPhoneCall(accountId, { workerId, phoneNumber: '+4930200' }, null)
      calls.push({ callId: id as CallId, phone: await edge.phone(id as CallId) })
    }
    await Promise.all(calls.slice(6).map(({ callId }) => noteCarrier(sql, callId, trunkId)))
    const removing = trunks.remove(accountId, trunkId)
    for (const [index, { callId, phone }] of calls.entries()) {
      void noteCarrier(sql, callId, trunkId).catch(t.threw)
      phone.event({ type: 'ringing', providerStatus: '180 Ringing' })
      phone.event({ type: 'connected', providerStatus: '200 OK' })
      if (index % 2 === 0) phone.event({ type: 'disconnected', cause: 'hung_up', details: 'BYE' })
      else void node.endCall.hangUp(accountId, callId).catch(() => {})
    }
    t.equal(await removing, true)
    for (const { callId } of calls) await untilOver(shared, node, callId)
    t.same(await sql`select id from calls where trunk_id = ${trunkId}`, [])
  }
  t.equal(await deadlocks(), before)
})

test('a fact with text that no database takes is committed without it', async (t) => {
  const shared = await opened
  const node = await openNode(t, shared)
  const { callId, phone } = await arrive(shared, node)
  await node.switchboard.route(callId, here as never)
  await phone.next('answer')
  phone.event({ type: 'connected', providerStatus: '200 OK' })
  await phone.next('start')
  t.ok(await node.switchboard.route(callId, { type: 'noted', key: 'a\0b', value: ['x\0', { deep: '\ud800' }] }))
  const log = await listCallEvents(shared.sql, callId)
  t.match(log.at(-1), { event: { type: 'noted', key: 'ab', value: ['x', {}] }, ignored: false })
  await node.endCall.hangUp((await findCallFacts(shared.sql, callId))!.accountId, callId)
  await untilOver(shared, node, callId)
})

test('a node that left no lease was last alive when it wrote its last step', async (t) => {
  const shared = await opened
  const { sql } = shared
  const node = await openCallNode(shared)
  const { callId } = await arrive(shared, node)
  await node.die()
  await sql`delete from nodes where id = ${node.nodeId}`
  await sql`update call_events set at = clock_timestamp() - interval '60 s' where call_id = ${callId}`
  const claim = await claimCall(sql, callId, newId<'node'>())
  t.ok(Math.abs((claim?.leftFor ?? 0) - 60_000) < 5_000, `${claim?.leftFor} ms`)
  await sql`update calls set owner = null where id = ${callId}`
  t.equal((await claimCall(sql, callId, newId<'node'>()))?.leftFor, null, 'a call that nobody had')
  await sql`delete from calls where id = ${callId}`
})

test('a call of before its end was told has neither', async (t) => {
  const { sql } = await opened
  const { accountId, workerId } = await createCallingTenant(sql)
  const callId = newId<'call'>()
  await sql`
    insert into calls (id, account_id, worker_id, session_id, direction, transport, progress, outcome, ended_at, snapshot, finished)
    values (${callId}, ${accountId}, ${workerId}, 's', 'inbound', 'webrtc', 'completed', 'completed', now(), '{}', true)`
  const call = toPhoneCall((await findCall(sql, accountId, callId))!)
  t.notOk('endedBy' in call || 'endCause' in call)
})
