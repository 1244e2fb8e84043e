/** Calls on a real database: what is committed, who owns a call, what survives the death of a node. Engine and leg are scripted. */
import { randomBytes } from 'node:crypto'
import top, { test } from 'tap'
import { toolSecretPlace } from '../../store/tool-calls.ts'
import { hashOfToken } from '../../store/token.ts'
import { replay } from '../../actors/call/machine/replay.ts'
import { createCallRouter } from '../../actors/node/call-router.ts'
import { BusNoResponders, type Bus } from '../../model/bus.ts'
import type { LegQuality } from '../../model/call-quality.ts'
import type { CallId } from '../../model/ids.ts'
import type { LegReply } from '../../model/leg.ts'
import { toPhoneCall } from '../../model/phone-call.ts'
import { Problem } from '../../model/problem.ts'
import type { WebCallRequest } from '../../model/web-call.ts'
import { findCall } from '../../store/calls.ts'
import { claimCall, listCallEvents } from '../../store/call-steps.ts'
import { renewLease } from '../../store/nodes.ts'
import { createSubscription } from '../../store/subscriptions.ts'
import { insertJob } from '../../store/jobs.ts'
import { takeToken } from '../../store/web-sessions.ts'
import { listTurns } from '../../store/transcripts.ts'
import { blockedQueries } from '../scenes/blocked-queries.ts'
import { until } from '../scenes/in-time.ts'
import { box, listen, openCallNode, openShared, status, type CallNode, type Shared } from '../scenes/call-node.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createScriptedLeg, type ScriptedLeg } from '../fake/scripted-leg.ts'
import { createTenant, newId, type Tenant } from '../scenes/tenant.ts'

async function beginCall(shared: Shared, node: CallNode, request: Partial<WebCallRequest> = {}) {
  const tenant = await createTenant(shared.sql, { slug: newId() })
  const created = await node.createWebCall(tenant.accountId, { workerId: tenant.workerId, ...request })
  const leg = createScriptedLeg(shared.bus, created.callId)
  const browser = listen(shared.bus, created.callId)
  return { ...tenant, ...created, leg, browser }
}

/** The lease of a node that stopped renewing it has run out; the database's clock measures it. */
const expireLease = ({ sql }: Shared, { nodeId }: CallNode) =>
  sql`update nodes set lease_until = now() - interval '1 s' where id = ${nodeId}`

test('a web call lives in the database from its creation to its end, and its log replays', async (t) => {
  const shared = await openShared(t)
  const node = await openCallNode(shared)
  t.teardown(() => node.close())
  const call = await beginCall(shared, node, { metadata: { ticket: 7 } })
  t.match(await findCall(shared.sql, call.accountId, call.callId), { progress: 'scheduled', direction: 'inbound' })

  t.notOk((await node.admission.admit(call.token, null)) instanceof Problem)
  call.leg.event({ type: 'connected', providerStatus: 'connected' })
  await call.browser.until(status('in_progress'))
  while (node.engine.configs.length === 0) await shared.bus.flush()
  node.engine.say('a', 'Hello', 5)
  await shared.bus.flush()
  call.leg.play(5)
  await call.browser.until((message) => message.type === 'transcript' && message.isFinal)
  node.engine.emit({ type: 'finished', nextAction: null })
  await call.browser.until(status('completed'))
  await node.scheduler.idle()

  t.match(await findCall(shared.sql, call.accountId, call.callId), {
    progress: 'completed',
    postProcessingStatus: 'completed',
  })
  t.match(await listTurns(shared.sql, call.accountId, call.callId), [{ role: 'agent', text: 'Hello', turnIndex: 0 }])
  t.same(
    call.leg.commands.map((command) => command.type).filter((type) => type !== 'says'),
    ['start', 'close'],
  )
  const events = await listCallEvents(shared.sql, call.callId)
  t.same(replay(events).differences, [])
  t.equal(node.switchboard.running(), 0, 'no actor is left in memory')
  t.equal(shared.clock.pending(), 4, 'heartbeat, takeover, scheduler and dispatcher wait, no deadline of the call does')
})

test('how well sound got through is stored with the call as its leg tells it; a leg that died tells nothing, and the call ends all the same', async (t) => {
  const shared = await openShared(t)
  const node = await openCallNode(shared)
  t.teardown(() => node.close())
  const quality: LegQuality = {
    codec: 'opus',
    packetMs: 20,
    received: { packets: 1_000, lost: 12, jitterMs: 1.0625 },
    sent: null,
    roundTripMs: null,
    concealedMs: 140,
    lateFrames: 3,
  }
  const endOf = async (endLeg: (leg: ScriptedLeg) => void) => {
    const call = await beginCall(shared, node)
    const request = { eventType: 'call.ended', url: 'https://example.com/hook' } as const
    await createSubscription(shared.sql, box, { accountId: call.accountId, request, newId, now: shared.clock.now() })
    await node.admission.admit(call.token, null)
    call.leg.event({ type: 'connected', providerStatus: 'connected' })
    await call.browser.until(status('in_progress'))
    endLeg(call.leg)
    call.leg.event({ type: 'disconnected', cause: 'hung_up', details: 'bye' })
    await call.browser.until(status('completed'))
    await node.scheduler.idle()
    t.same(replay(await listCallEvents(shared.sql, call.callId)).differences, [])
    const ended = await shared.sql<{ body: string }[]>`select body from deliveries where call_id = ${call.callId}`
    t.equal(ended.length, 1)
    t.notOk(ended[0]?.body.includes('quality'), 'call.ended is as the contract has it')
    return findCall(shared.sql, call.accountId, call.callId)
  }
  const told = await endOf((leg) => leg.answer('close', { type: 'closed', recordedMs: null, quality }))
  t.match(told, { outcome: 'completed', quality })
  const untold = await endOf((leg) => leg.close())
  t.match(untold, { outcome: 'completed', quality: null })
})

test('a call whose recording met a full disk has the warning that it is incomplete, and ends as any other', async (t) => {
  const shared = await openShared(t)
  const node = await openCallNode(shared)
  t.teardown(() => node.close())
  const endOf = async (reply: LegReply) => {
    const call = await beginCall(shared, node)
    await node.admission.admit(call.token, null)
    call.leg.event({ type: 'connected', providerStatus: 'connected' })
    await call.browser.until(status('in_progress'))
    call.leg.answer('close', reply)
    call.leg.event({ type: 'disconnected', cause: 'hung_up', details: 'bye' })
    await call.browser.until(status('completed'))
    await node.scheduler.idle()
    t.same(replay(await listCallEvents(shared.sql, call.callId)).differences, [])
    const found = await findCall(shared.sql, call.accountId, call.callId)
    return found && toPhoneCall(found)
  }
  const cut = await endOf({ type: 'closed', recordedMs: 1_000, recordingIncomplete: true })
  t.match(cut, { outcome: 'completed', warnings: [{ type: 'RECORDING_INCOMPLETE', message: String }] })
  t.notOk('warnings' in ((await endOf({ type: 'closed', recordedMs: 1_000 })) ?? {}))
})

test('a token works once, for the allowed origin, and until it expires', async (t) => {
  const shared = await openShared(t)
  const node = await openCallNode(shared)
  t.teardown(() => node.close())
  const call = await beginCall(shared, node, { allowedOrigins: ['https://app.example.com'] })
  const problemOf = async (token: string, origin: string | null) => {
    const answer = await node.admission.admit(token, origin)
    return answer instanceof Problem ? answer.type : null
  }
  t.equal(await problemOf('nonsense', null), 'UNAUTHORIZED')
  t.equal(await problemOf(call.token, 'https://evil.example.com'), 'ORIGIN_NOT_ALLOWED')
  t.equal(await problemOf(call.token, null), 'ORIGIN_NOT_ALLOWED')
  const both = await Promise.all([
    problemOf(call.token, 'https://app.example.com'),
    problemOf(call.token, 'https://app.example.com'),
  ])
  t.same(new Set(both), new Set(['UNAUTHORIZED', null]), 'of two at once one gets in')

  const tenants = await beginCall(shared, node, { allowedOrigins: ['https://*.example.com'] })
  for (const origin of ['https://a.b.example.com', 'https://example.com', 'https://evil-example.com'])
    t.equal(await problemOf(tenants.token, origin), 'ORIGIN_NOT_ALLOWED', origin)
  t.equal(await problemOf(tenants.token, 'https://shop.example.com'), null, 'one label more')

  const canceled = await beginCall(shared, node)
  t.ok(await node.switchboard.route(canceled.callId, { type: 'cancel_requested' }))
  t.equal(await problemOf(canceled.token, null), 'UNAUTHORIZED', 'its call is over')

  const late = await beginCall(shared, node)
  shared.clock.advance(125_001)
  t.equal(await problemOf(late.token, null), 'UNAUTHORIZED')
  await node.scheduler.idle()
  t.match(await findCall(shared.sql, late.accountId, late.callId), {
    outcome: 'failed',
    failedReason: 'webrtc_client_never_connected',
  })
})

test('a client that took its token and never reached its call does not leave the call waiting for ever', async (t) => {
  const shared = await openShared(t)
  const node = await openCallNode(shared)
  t.teardown(() => node.close())
  const call = await beginCall(shared, node)
  t.ok(await takeToken(shared.sql, hashOfToken(call.token), randomBytes(32), shared.clock.now()))
  shared.clock.advance(125_001)
  await node.scheduler.idle()
  t.match(await findCall(shared.sql, call.accountId, call.callId), {
    outcome: 'failed',
    failedReason: 'webrtc_client_never_connected',
  })
})

test('a call that the former actor left before it heard of the media is found connected', async (t) => {
  const shared = await openShared(t)
  const dying = await openCallNode(shared)
  const call = await beginCall(shared, dying)
  await dying.admission.admit(call.token, null)
  const answers = () =>
    shared.sql`select from call_events where call_id = ${call.callId} and event->>'type' = 'worker_request_answered'`
  while ((await answers()).count === 0) await shared.bus.flush()
  await expireLease(shared, dying)
  const successor = await openCallNode({ ...shared, clock: createHandClock(shared.clock.now() + 60_000) })
  t.teardown(() => successor.close())
  await call.browser.until(status('in_progress'))
  while (successor.engine.configs.length === 0) await shared.bus.flush()
  t.match(
    call.leg.commands.map(({ type }) => type),
    ['ping', 'start'],
  )
  t.same(successor.asked, [], 'the worker request had its answer and is not asked twice')
  await dying.die()
})

test('a job of a call that is over is done, not tried for ever', async (t) => {
  const shared = await openShared(t)
  const node = await openCallNode(shared)
  t.teardown(() => node.close())
  const call = await beginCall(shared, node)
  shared.clock.advance(125_001)
  await node.scheduler.idle()
  for (const kind of ['expire_token', 'post_process'] as const)
    await shared.sql.begin((tx) => insertJob(tx, { ...call, id: newId(), kind, runAt: 0 }))
  await node.scheduler.idle()
  t.same(await shared.sql`select kind from jobs`, [])
})

test('a resume token is replaced at every use, and the old one is void once the new one has been used', async (t) => {
  const shared = await openShared(t)
  const node = await openCallNode(shared)
  t.teardown(() => node.close())
  const call = await beginCall(shared, node)
  const first = await node.admission.admit(call.token, null)
  if (first instanceof Problem) return t.fail('was not admitted')
  const lost = await node.admission.resume(first.resumeToken, null)
  const second = await node.admission.resume(first.resumeToken, null)
  if (!('resumeToken' in lost) || !('resumeToken' in second)) return t.fail('could not resume')
  t.not(second.resumeToken, first.resumeToken)
  t.ok((await node.admission.resume(lost.resumeToken, null)) instanceof Problem, 'a token nobody read is replaced too')
  const third = await node.admission.resume(second.resumeToken, null)
  t.notOk(third instanceof Problem)
  t.ok((await node.admission.resume(first.resumeToken, null)) instanceof Problem)
  t.equal(second.sessionId, call.sessionId)
  if (!('resumeToken' in third)) return t.fail('could not resume')
  const end = (ago: number) =>
    shared.sql`update calls set outcome = 'failed', ended_at = ${shared.clock.now() - ago} where id = ${call.callId}`
  await end(20_000)
  t.same(await node.admission.resume(third.resumeToken, null), { ended: 'failed' }, 'whose call is over hears how')
  t.match(await node.admission.resume(first.resumeToken, null), { type: 'UNAUTHORIZED' })
  await end(120_000)
  t.match(await node.admission.resume(third.resumeToken, null), { type: 'UNAUTHORIZED' }, 'for a while')
})

test('the answer of call.worker_request changes the call: config, instructions, metadata, tools with sealed secrets', async (t) => {
  const shared = await openShared(t)
  const tool = {
    name: 'book',
    description: '',
    deliveryUrl: 'https://example.com/tool',
    signingSecret: 'top-secret-1',
  }
  const node = await openCallNode(shared, async () => ({
    kind: 'answered',
    answer: {
      config: { voiceId: 'slt', language: 'de-AT' },
      instructions: 'Be brief.',
      metadata: { from: 'hook' },
      tools: [tool],
    },
  }))
  t.teardown(() => node.close())
  const call = await beginCall(shared, node, { metadata: { from: 'creation' }, voiceId: 'rms' })
  await node.admission.admit(call.token, null)
  call.leg.event({ type: 'connected', providerStatus: 'connected' })
  await call.browser.until(status('in_progress'))
  while (node.engine.configs.length === 0) await shared.bus.flush()
  t.match(node.asked, [
    { callId: call.callId, direction: 'inbound', transport: 'webrtc', metadata: { from: 'creation' } },
  ])
  t.match(node.engine.configs, [{ instructions: 'Be brief.', language: 'de-AT', worker: { voiceId: 'slt' } }])
  const [row] = await shared.sql<{ metadata: unknown; externalTools: { name: string; signingSecret: string }[] }[]>`
    select metadata, external_tools from calls where id = ${call.callId}`
  t.same(row?.metadata, { from: 'hook' })
  const [bound] = row?.externalTools ?? []
  const place = toolSecretPlace({ ...call, name: bound?.name ?? '' })
  t.equal(box.open(bound?.signingSecret ?? '', place), 'top-secret-1')
  const everything = JSON.stringify(await listCallEvents(shared.sql, call.callId))
  t.notOk(everything.includes('top-secret-1'), 'no secret in the log of the call')
})

test('a node that died loses its calls to another, which goes on with the conversation; the dead one is fenced', async (t) => {
  const shared = await openShared(t)
  const dying = await openCallNode(shared)
  const call = await beginCall(shared, dying)
  await dying.admission.admit(call.token, null)
  call.leg.event({ type: 'connected', providerStatus: 'connected' })
  await call.browser.until(status('in_progress'))
  while (dying.engine.configs.length === 0) await shared.bus.flush()
  dying.engine.emit({ type: 'memory', memory: { step: 4 } })
  dying.engine.emit({ type: 'user_text', text: 'yes', isFinal: true, confidence: 1, from: 0, to: 500 })
  await call.browser.until((message) => message.type === 'transcript' && message.isFinal)

  // The node hangs for longer than its lease.
  const elsewhere = createHandClock(shared.clock.now() + 60_000)
  await expireLease(shared, dying)
  const successor = await openCallNode({ ...shared, clock: elsewhere })
  t.teardown(() => successor.close())
  while (successor.engine.configs.length === 0) await shared.bus.flush()
  t.match(successor.engine.configs, [{ memory: { step: 4 } }])
  t.match(
    call.leg.commands.map((command) => [command.type, command.epoch]),
    [
      ['start', 1],
      ['start', 2],
    ],
  )

  dying.engine.emit({ type: 'user_text', text: 'from the grave', isFinal: true, confidence: 1, from: 0, to: 500 })
  await dying.switchboard.route(call.callId, { type: 'noted', key: 'a', value: 1 }).catch(() => false)
  const turns = await listTurns(shared.sql, call.accountId, call.callId)
  t.same(
    turns.map((turn) => turn.text),
    ['yes'],
    'what the fenced actor wants to write changes nothing',
  )
  await dying.die()
})

test('a call whose leg went down with its process ends when it is taken over', async (t) => {
  const shared = await openShared(t)
  const dying = await openCallNode(shared)
  const call = await beginCall(shared, dying)
  await dying.admission.admit(call.token, null)
  call.leg.event({ type: 'connected', providerStatus: 'connected' })
  await call.browser.until(status('in_progress'))
  call.leg.close()
  await expireLease(shared, dying)
  const clock = createHandClock(shared.clock.now() + 60_000)
  const successor = await openCallNode({ ...shared, clock })
  t.teardown(() => successor.close())
  const facts = () =>
    shared.sql`select from call_events where call_id = ${call.callId} and event->>'type' = 'leg_disconnected'`
  await until(async () => (await facts()).count > 0)
  // So long the browser may come back by another process. The wait for it begins after the fact was stored.
  await until(() => {
    clock.advance(1_000)
    return call.browser.messages.some(status('failed'))
  })
  await successor.scheduler.idle()
  t.match(await findCall(shared.sql, call.accountId, call.callId), {
    outcome: 'failed',
    failedReason: 'internal_error',
    postProcessingStatus: 'completed',
  })
  await dying.die()
})

test('a call of a live node gets its facts over the bus from any other node', async (t) => {
  const shared = await openShared(t)
  const [one, two] = [await openCallNode(shared), await openCallNode(shared)]
  t.teardown(async () => {
    await one.close()
    await two.close()
  })
  for (const seemedNobodys of [false, true]) {
    const call = await beginCall(shared, one)
    await one.admission.admit(call.token, null)
    t.ok(await two.switchboard.route(call.callId, { type: 'hang_up_requested' }, seemedNobodys))
    await call.browser.until(status('canceled'))
    t.match(await ownership(shared, call.callId), { epoch: 1 }, 'it is not taken')
  }
  t.notOk(await two.switchboard.route(newId<'call'>(), { type: 'hang_up_requested' }), 'an unknown call takes nothing')
})

const ownership = async ({ sql }: Shared, callId: CallId) =>
  (await sql<{ owner: string | null; epoch: number }[]>`select owner, epoch from calls where id = ${callId}`)[0]

const factsOf = async ({ sql }: Shared, callId: CallId) =>
  (await listCallEvents(sql, callId)).map(({ event }) => (event as { type: string }).type)

/** Of a process that runs no actors: it has none, and nothing to make one of. */
const openRouter = ({ sql, bus }: Shared) =>
  createCallRouter({ sql, bus, nodeId: newId<'node'>(), owned: { find: () => null, own: async () => null } })

/** One database for the calls of these tests: each leaves none that another node would take over. */
const opened = openShared(top)

test('a process that runs no actors hands facts over, and never owns a call', async (t) => {
  const shared = await opened
  const node = await openCallNode(shared)
  t.teardown(() => node.close())
  const { route } = openRouter(shared)
  const call = await beginCall(shared, node)
  t.notOk(await route(call.callId, { type: 'hang_up_requested' }), 'nobody has it')
  t.match(await ownership(shared, call.callId), { owner: null, epoch: 0 })
  await node.admission.admit(call.token, null)
  t.ok(await route(call.callId, { type: 'hang_up_requested' }))
  await call.browser.until(status('canceled'))
  t.equal((await ownership(shared, call.callId))?.epoch, 1)
})

test('of two nodes that route to a call which nobody has one owns it, and both facts are taken', async (t) => {
  const shared = await opened
  const [one, two] = [await openCallNode(shared), await openCallNode(shared)]
  t.teardown(async () => {
    await one.close()
    await two.close()
  })
  const call = await beginCall(shared, one)
  const [held, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const holding = shared.sql.begin(async (tx) => {
    await tx`select from calls where id = ${call.callId} for update`
    held.resolve()
    await release.promise
  })
  await held.promise
  const routed = [
    one.switchboard.route(call.callId, { type: 'client_connected' }),
    two.switchboard.route(call.callId, { type: 'client_connected' }),
  ]
  await blockedQueries(shared.sql, 2)
  release.resolve()
  await holding
  t.same(await Promise.all(routed), [true, true])
  t.equal((await ownership(shared, call.callId))?.epoch, 1)
  t.equal(one.switchboard.running() + two.switchboard.running(), 1)
  const arrivals = (await factsOf(shared, call.callId)).filter((type) => type === 'client_connected')
  t.equal(arrivals.length, 2)
})

test('a fact whose owner dies before it is handed over is taken by who routes it, and the dead owner is fenced', async (t) => {
  const shared = await opened
  const dying = await openCallNode(shared)
  const call = await beginCall(shared, dying)
  await dying.admission.admit(call.token, null)
  const bus: Bus = {
    ...shared.bus,
    async request(...given) {
      if (!given[0].endsWith('.fact')) return shared.bus.request(...given)
      await expireLease(shared, dying)
      throw new BusNoResponders('nobody listens')
    },
  }
  const successor = await openCallNode({ ...shared, bus })
  t.teardown(() => successor.close())
  t.ok(await successor.switchboard.route(call.callId, { type: 'hang_up_requested' }))
  await call.browser.until(status('canceled'))
  t.equal((await ownership(shared, call.callId))?.epoch, 2)
  const facts = await factsOf(shared, call.callId)
  t.ok(facts.indexOf('taken_over') < facts.indexOf('hang_up_requested'))
  await dying.die()
})

test('an owner that is alive and does not listen keeps its call, and the fact is refused', async (t) => {
  const shared = await opened
  const node = await openCallNode(shared)
  t.teardown(() => node.close())
  const call = await beginCall(shared, node)
  const other = newId<'node'>()
  await renewLease(shared.sql, other, 60_000)
  await claimCall(shared.sql, call.callId, other)
  t.notOk(await node.switchboard.route(call.callId, { type: 'hang_up_requested' }))
  t.notOk(await node.switchboard.route(call.callId, { type: 'hang_up_requested' }, true))
  t.match(await ownership(shared, call.callId), { owner: other, epoch: 1 })
})

test('a node that is closed while a call of it cannot be opened hangs the others up and leaves', async (t) => {
  const shared = await openShared(t)
  const node = await openCallNode(shared)
  const call = await beginCall(shared, node)
  await node.admission.admit(call.token, null)
  call.leg.event({ type: 'connected', providerStatus: 'connected' })
  await call.browser.until(status('in_progress'))
  // Nobody else is there: the clock of the database, which moves by itself, measures leases, and another node would take the call from a slow test.
  const stuck = await beginCall(shared, node)
  const lock = await shared.sql.reserve()
  await lock`begin`
  await lock`select from calls where id = ${stuck.callId} for update`
  const routed = node.switchboard.route(stuck.callId, { type: 'client_connected' }).catch(() => false)
  await until(() => node.switchboard.running() === 2)
  let isClosed = false
  const closed = node.close().then(() => (isClosed = true))
  await call.browser.until(status('completed'))
  await until(() => {
    shared.clock.advance(1_000)
    return isClosed
  })
  await lock`rollback`
  lock.release()
  await Promise.all([closed, routed])
})

test('a call that is over is taken by nobody', async (t) => {
  const shared = await opened
  const node = await openCallNode(shared)
  t.teardown(() => node.close())
  const call = await beginCall(shared, node)
  shared.clock.advance(125_001)
  await node.scheduler.idle()
  const before = await ownership(shared, call.callId)
  t.notOk(await node.switchboard.route(call.callId, { type: 'hang_up_requested' }))
  t.match(before, { owner: null })
  t.same(await ownership(shared, call.callId), before)
})

test('deliveries are written in the transaction of the step that causes them, call.ended once and last', async (t) => {
  const shared = await openShared(t)
  const node = await openCallNode(shared)
  t.teardown(() => node.close())
  const tenant = await createTenant(shared.sql)
  const request = { eventType: '*', url: 'https://example.com/hook' } as const
  await createSubscription(shared.sql, box, { accountId: tenant.accountId, request, newId, now: shared.clock.now() })
  const call = await node.createWebCall(tenant.accountId, { workerId: tenant.workerId, metadata: { a: 1 } })
  shared.clock.advance(125_001)
  await node.scheduler.idle()
  const rows = await shared.sql<
    { body: string }[]
  >`select body from deliveries where call_id = ${call.callId} order by seq`
  const events = rows.map(({ body }) => JSON.parse(body) as { type: string; data: Record<string, unknown> })
  t.same(
    events.map(({ type, data }) => [type, data['status']]),
    [
      ['call.status_update', 'scheduled'],
      ['call.status_update', 'failed'],
      ['call.ended', 'failed'],
    ],
  )
  t.match(events.at(-1)?.data, {
    failedReason: 'webrtc_client_never_connected',
    recordingAvailable: false,
    metadata: { a: 1 },
  })
  t.notOk('transcript' in (events.at(-1)?.data ?? {}), 'a call that never connected has no transcript')
})

test('what a web call cannot have is refused with the field or the reason', async (t) => {
  const shared = await openShared(t)
  const node = await openCallNode(shared)
  t.teardown(() => node.close())
  const full = await createTenant(shared.sql, { slug: 'full', maxConcurrentCalls: 1 })
  const idle = await createTenant(shared.sql, { slug: 'idle', isActive: false })
  await node.createWebCall(full.accountId, { workerId: full.workerId })
  const refusal = (tenant: Tenant, workerId: string) =>
    node.createWebCall(tenant.accountId, { workerId }).catch((error: unknown) => error)
  t.match(await refusal(full, full.workerId), { type: 'WEB_CALL_CAPACITY_EXCEEDED' })
  t.match(await refusal(idle, idle.workerId), { type: 'WORKER_INACTIVE' })
  const unknown = { type: 'VALIDATION_FAILED', issues: [{ path: 'workerId' }] }
  t.match(await refusal(full, idle.workerId), unknown, "another account's worker")
  t.match(await refusal(full, 'x'), unknown)
})
