/** Phone calls on a real database, between the actor and a telephone edge without SIP: how they are placed, taken, passed on and ended. */
import t, { test } from 'tap'
import { createInboundCall } from '../scenes/inbound-call.ts'
import { replay } from '../../actors/call/machine/replay.ts'
import { createLegSweep } from '../../actors/rounds/leg-sweep.ts'
import type { CallId, TrunkId } from '../../model/ids.ts'
import type { RefusedArrival } from '../../model/telephony.ts'
import type { WorkerConfig } from '../../model/worker.ts'
import { listCallEvents } from '../../store/call-steps.ts'
import { findCall } from '../../store/calls.ts'
import { createSubscription } from '../../store/subscriptions.ts'
import { takeDial } from '../../store/telephony.ts'
import { box, openCallNode, openShared, type CallNode } from '../scenes/call-node.ts'
import { createScriptedEdge, createScriptedPhone, type PhoneReplies } from '../fake/scripted-phone.ts'
import { EngineRefusal, type VoiceEngine } from '../../model/voice-engine.ts'
import { changeAccountConfig } from '../../store/accounts.ts'
import { createScriptedEngine } from '../fake/scripted-engine.ts'
import { addTrunk, createCallingTenant } from '../scenes/telephony.ts'
import { newId, type Tenant } from '../scenes/tenant.ts'

const opened = openShared(t)

type Given = Parameters<typeof openCallNode>
type Options = { hook?: Given[1]; node?: Given[2]; edge?: Parameters<typeof createScriptedEdge>[1] | null }

async function open(
  t: { teardown(close: () => Promise<void>): unknown },
  { hook, node: over, edge: kind = {} }: Options = {},
) {
  const shared = await opened
  const node = await openCallNode(shared, hook, over)
  const edge = kind && createScriptedEdge(shared.bus, kind)
  t.teardown(async () => {
    await node.close()
    edge?.close()
    await shared.sql`delete from calls where not finished`
  })
  const tenant = await createCallingTenant(shared.sql)
  const request = { eventType: '*', url: 'https://example.com/hook' } as const
  await createSubscription(shared.sql, box, { accountId: tenant.accountId, request, newId, now: shared.clock.now() })
  return { ...shared, node, edge, tenant }
}
type Stage = Awaited<ReturnType<typeof open>>

const configure = ({ sql, tenant }: Stage, config: WorkerConfig) =>
  sql`update workers set config = ${sql.json(config as never)} where id = ${tenant.workerId}`

async function place(node: CallNode, { accountId, workerId }: Tenant): Promise<CallId> {
  return (await node.createPhoneCall(accountId, { workerId, phoneNumber: '+4930200' }, null)).id as CallId
}

/** Each look is a round of the node's own: nothing is waited for but its work. */
async function finished({ sql, node }: Stage, callId: CallId) {
  for (;;) {
    const [row] = await sql<{ finished: boolean; providerStatus: string | null }[]>`
      select finished, provider_status from calls where id = ${callId}`
    if (row?.finished) return row
    await node.scheduler.idle()
  }
}

async function toldOf({ sql }: Stage, callId: CallId) {
  const rows = await sql<{ body: string }[]>`select body from deliveries where call_id = ${callId} order by seq`
  const events = rows.map(({ body }) => JSON.parse(body) as { type: string; data: Record<string, unknown> })
  return events.map(({ type, data }) => `${type.slice('call.'.length)} ${String(data['status'])}`)
}

/** An inbound call with its leg, before it begins. */
async function ring(
  stage: Stage,
  { fromNumber = '+4930555' as string | null, isVerified = false, replies = {} as PhoneReplies } = {},
) {
  const { sql, bus, clock, node, tenant } = stage
  const { accountId, workerId } = tenant
  const trunkId: TrunkId = await addTrunk(sql, tenant)
  const trunk = { id: trunkId, accountId, name: 'Carrier', settings: {}, password: null }
  const route = { trunk, workerId, toNumber: '+4930100', mustAuthenticate: false }
  const said = { callId: 'c', requestUri: 'sip:+4930100@us', to: 'sip:+4930100@us', called: '+4930100' }
  const sip = { ...said, trusted: isVerified, headers: {} }
  const birth = {
    route,
    fromNumber,
    isVerified,
    sip,
    address: '192.0.2.1',
    nodeId: node.nodeId,
    now: clock.now(),
    newId,
  }
  const callId = await sql.begin((tx) => createInboundCall(tx, birth))
  const phone = createScriptedPhone(bus, callId, replies)
  return { callId, phone, trunkId, begin: () => node.switchboard.route(callId, { type: 'client_connected' }) }
}

const ended = async ({ sql, tenant }: Stage, callId: CallId) => findCall(sql, tenant.accountId, callId)
const hungUp = { type: 'disconnected', cause: 'hung_up', details: 'BYE' } as const
const noKey = async () => ({ kind: 'answered', answer: { config: { llmProvider: 'cascade' } } }) as const

test('an outbound call is asked of an edge with its numbers and ring timeout, rings, is answered, and ends', async (t) => {
  const stage = await open(t)
  await configure(stage, { ringTimeout: 12 })
  const callId = await place(stage.node, stage.tenant)
  const phone = await stage.edge!.phone(callId)
  t.match(stage.edge!.requests, [
    { callId, ...stage.tenant, fromNumber: '+4930100', toNumber: '+4930200', ringTimeout: 12_000, epoch: 1 },
  ])
  phone.event({ type: 'ringing', providerStatus: '180 Ringing' })
  phone.event({ type: 'connected', providerStatus: '200 OK' })
  t.match(await phone.next('start'), { epoch: 1, recording: { mode: 'mixed' } })
  phone.event(hungUp)
  t.match(await phone.next('close'), { reason: 'completed' })
  await finished(stage, callId)
  t.same(await toldOf(stage, callId), [
    'status_update queued',
    'status_update ringing',
    'status_update in_progress',
    'status_update completed',
    'ended completed',
  ])
  t.equal(stage.edge!.requests.length, 1)
})

test('a call that nobody answers ends as its edge tells, with the last SIP line', async (t) => {
  const stage = await open(t)
  const callId = await place(stage.node, stage.tenant)
  const phone = await stage.edge!.phone(callId)
  phone.event({ type: 'dial_failed', outcome: { status: 'busy' }, providerStatus: '486 Busy Here' })
  await phone.next('close')
  t.match(await finished(stage, callId), { providerStatus: '486 Busy Here' })
  t.match(await ended(stage, callId), { outcome: 'busy', failedReason: null, postProcessingStatus: 'none' })
})

test('without an edge, or one that takes no calls, a call fails with sip_call_failed and says why', async (t) => {
  const refusing = await open(t, { edge: { reply: { type: 'refused', details: 'the edge is stopping' } } })
  const refused = await place(refusing.node, refusing.tenant)
  t.match(await finished(refusing, refused), { providerStatus: 'the edge is stopping' })
  t.match(await ended(refusing, refused), { outcome: 'failed', failedReason: 'sip_call_failed' })
  refusing.edge!.close()
  const alone = await place(refusing.node, refusing.tenant)
  t.match(await finished(refusing, alone), { providerStatus: /no telephone edge/ })
  t.match(await ended(refusing, alone), { outcome: 'failed', failedReason: 'sip_call_failed' })
})

test('nobody is called when the voice provider of the call is not set up: voice_session_unavailable', async (t) => {
  const stage = await open(t, { hook: noKey })
  const callId = await place(stage.node, stage.tenant)
  await finished(stage, callId)
  t.match(await ended(stage, callId), { outcome: 'failed', failedReason: 'voice_session_unavailable' })
  t.same(stage.edge!.requests, [])
})

test('nobody is called when no voice session can be opened', async (t) => {
  const stage = await open(t, { node: { engine: createScriptedEngine({ failsToOpen: 'the script has errors' }) } })
  const callId = await place(stage.node, stage.tenant)
  await finished(stage, callId)
  t.match(await ended(stage, callId), { outcome: 'failed', failedReason: 'voice_session_unavailable' })
  t.same(stage.edge!.requests, [])
  t.ok(stage.node.log.lines.some(({ message }) => message.includes('no voice session can be opened')))
})

test('a provider that is busy for a moment costs no call that nobody waits for', async (t) => {
  const engine = createScriptedEngine()
  let asked = 0
  const busy = new EngineRefusal('it answered 429', true)
  const provider = {
    ...engine,
    open: (...given: Parameters<typeof engine.open>) => (asked++ < 2 ? Promise.reject(busy) : engine.open(...given)),
  }
  const stage = await open(t, { node: { provider } })
  const callId = await place(stage.node, stage.tenant)
  await pass(stage, () => stage.edge!.requests.length > 0)
  t.equal(asked, 3)
  t.match(stage.edge!.requests, [{ callId }])
})

test('engine and hook are told whether the number of a caller proves who calls', async (t) => {
  for (const isVerified of [false, true])
    await t.test(`proved: ${isVerified}`, async (t) => {
      const stage = await open(t)
      const { sql, tenant, node } = stage
      await sql`
        insert into persons (id, account_id, type, first_name, last_name, phone_number)
        values (${newId()}, ${tenant.accountId}, 'customer', 'Eva', 'Muster', '+4930555')`
      const { phone, begin } = await ring(stage, { isVerified })
      const identity = isVerified ? 'verified' : 'unverified'
      await begin()
      await phone.next('answer')
      t.match(node.asked, [{ customer: { name: 'Eva Muster' }, sip: { called: '+4930100', identity } }])
      t.match(node.engine.configs.at(-1), { caller: identity, customer: { firstName: 'Eva' } })
    })
  await t.test('whom the account calls is whom it named', async (t) => {
    const stage = await open(t)
    const callId = await place(stage.node, stage.tenant)
    await stage.edge!.phone(callId)
    t.match(stage.node.engine.configs.at(-1), { caller: null })
  })
})

test('hanging up on a call that rings cancels it on its line', async (t) => {
  const stage = await open(t)
  const callId = await place(stage.node, stage.tenant)
  const phone = await stage.edge!.phone(callId)
  await stage.node.endCall.hangUp(stage.tenant.accountId, callId)
  t.match(await phone.next('close'), { reason: 'canceled' })
  await finished(stage, callId)
  t.match(await ended(stage, callId), { outcome: 'canceled', failedReason: null })
})

test('an inbound call rings, asks for its worker, is answered and talks; its person and trunk are on it', async (t) => {
  const stage = await open(t)
  const { sql, tenant, node } = stage
  const personId = newId<'person'>()
  await sql`
    insert into persons (id, account_id, type, first_name, last_name, phone_number)
    values (${personId}, ${tenant.accountId}, 'customer', 'Eva', 'Muster', '+4930555')`
  const { callId, phone, trunkId, begin } = await ring(stage)
  const [row] = await sql`select owner, epoch, trunk_id, person_id, progress from calls where id = ${callId}`
  t.match(row, { owner: node.nodeId, epoch: 0, trunkId, personId, progress: 'ringing' })
  t.match(await ended(stage, callId), {
    direction: 'inbound',
    fromNumber: '+4930555',
    toNumber: '+4930100',
    customer: { firstName: 'Eva' },
  })
  t.ok(await begin())
  await phone.next('answer')
  t.match(node.asked, [
    { direction: 'inbound', transport: 'sip_trunk', customer: { number: '+4930555', name: 'Eva Muster', personId } },
  ])
  phone.event({ type: 'connected', providerStatus: '200 OK' })
  await phone.next('start')
  t.same(await toldOf(stage, callId), ['status_update ringing', 'status_update in_progress'])
  phone.event(hungUp)
  await finished(stage, callId)
  t.match(await ended(stage, callId), { outcome: 'completed' })
  const facts = (await listCallEvents(sql, callId)).map(({ event }) => (event as { type: string }).type)
  t.notOk(facts.includes('taken_over'), 'its first actor takes nothing over')
})

test('a caller who hangs up before the answer, or withheld the number, is a call all the same', async (t) => {
  const gate = Promise.withResolvers<void>()
  const stage = await open(t, { hook: () => gate.promise.then(() => ({ kind: 'none' })) })
  const { callId, phone, begin } = await ring(stage, { fromNumber: null })
  await begin()
  phone.event({ type: 'disconnected', cause: 'hung_up', details: 'CANCEL' })
  await finished(stage, callId)
  t.match(await ended(stage, callId), { outcome: 'canceled', fromNumber: null, startedAt: null })
  t.notOk(phone.commands.some(({ type }) => type === 'answer'))
  gate.resolve()
})

test('a leg that was gone by the time of the answer cancels the call', async (t) => {
  const stage = await open(t)
  const { callId, phone, begin } = await ring(stage)
  phone.close()
  await begin()
  await finished(stage, callId)
  t.match(await ended(stage, callId), { outcome: 'canceled' })
})

test('an inbound call whose required worker request fails is turned away unanswered', async (t) => {
  const stage = await open(t, { hook: async () => ({ kind: 'failed', required: true, details: 'timeout' }) })
  const { callId, phone, begin } = await ring(stage)
  await begin()
  t.match(await phone.next('close'), { reason: 'failed' })
  await finished(stage, callId)
  t.match(await ended(stage, callId), { outcome: 'failed', failedReason: 'worker_request_required_failed' })
  t.notOk(phone.commands.some(({ type }) => type === 'answer'))
})

const redirect = { serviceDownRedirectEnabled: true, serviceDownRedirectNumber: '+49 30 (999) 1' } as const

test('a caller whom nobody here can talk to is sent to serviceDownRedirectNumber before the answer', async (t) => {
  const stage = await open(t, { hook: noKey })
  await configure(stage, redirect)
  const { callId, phone, begin } = await ring(stage)
  await begin()
  t.match(await phone.next('transfer'), { to: '+49309991' })
  t.notOk(phone.commands.some(({ type }) => type === 'answer'))
  phone.event({ type: 'transferred', providerStatus: '302 Moved Temporarily' })
  t.match(await finished(stage, callId), { providerStatus: '302 Moved Temporarily' })
  t.match(await ended(stage, callId), { outcome: 'failed', failedReason: 'voice_session_unavailable', startedAt: null })
})

/** Opens `opens` sessions, then `fails`; `closed` counts those that were. */
function createDyingEngine(opens: number) {
  const healthy = createScriptedEngine()
  let asked = 0
  const engine: VoiceEngine = {
    ...healthy,
    open: (...given) => (asked++ < opens ? healthy.open(...given) : Promise.reject(new Error('it answered 500'))),
  }
  return { engine, asked: () => asked }
}

/** Opens nothing until it is told to. */
function createSlowEngine() {
  const healthy = createScriptedEngine()
  const { promise: gate, resolve: open } = Promise.withResolvers<void>()
  const { promise: asked, resolve: isAsked } = Promise.withResolvers<void>()
  const engine: VoiceEngine = {
    ...healthy,
    async open(...given) {
      isAsked()
      await gate
      return healthy.open(...given)
    },
  }
  return { engine, asked, open, told: healthy.told }
}

const isAnswer = ({ type }: { readonly type: string }): boolean => type === 'answer'

test('a voice session is tried while a call rings: one that cannot be opened sends the caller on before the answer', async (t) => {
  const stage = await open(t, { node: { engine: createScriptedEngine({ failsToOpen: 'no key' }) } })
  await configure(stage, redirect)
  const { callId, phone, begin } = await ring(stage)
  await begin()
  t.match(await phone.next('transfer'), { to: '+49309991' })
  t.notOk(phone.commands.some(isAnswer), 'nothing was answered')
  phone.event({ type: 'transferred', providerStatus: '302 Moved Temporarily' })
  t.match(await finished(stage, callId), { providerStatus: '302 Moved Temporarily' })
  t.match(await ended(stage, callId), {
    outcome: 'failed',
    failedReason: 'voice_session_unavailable',
    startedAt: null,
    endedBy: 'service',
  })
})

test('an engine that does not answer within 8 s sends the caller on, and what it opens later is closed', async (t) => {
  const slow = createSlowEngine()
  const stage = await open(t, { node: { provider: slow.engine } })
  await configure(stage, redirect)
  const { callId, phone, begin } = await ring(stage)
  await begin()
  await slow.asked
  stage.clock.advance(7_900)
  await stage.sql`select 1`
  t.notOk(phone.commands.some(({ type }) => type === 'transfer'))
  stage.clock.advance(200)
  await phone.next('transfer')
  phone.event({ type: 'transferred', providerStatus: '302 Moved Temporarily' })
  await finished(stage, callId)
  t.notOk(phone.commands.some(isAnswer))
  slow.open()
  await stage.sql`select 1`
  t.same(slow.told, ['close'])
})

test('a caller who hangs up while the engine is tried is canceled, never answered and never sent on', async (t) => {
  const slow = createSlowEngine()
  const stage = await open(t, { node: { provider: slow.engine } })
  await configure(stage, redirect)
  const { callId, phone, begin } = await ring(stage)
  await begin()
  await slow.asked
  phone.event({ ...hungUp, details: 'CANCEL', endCause: 'SIP 200' })
  await phone.next('close')
  await finished(stage, callId)
  stage.clock.advance(8_000)
  slow.open()
  await stage.sql`select 1`
  t.notOk(phone.commands.some(({ type }) => type === 'answer' || type === 'transfer'))
  t.match(await ended(stage, callId), { outcome: 'canceled', endedBy: 'caller', endCause: 'SIP 200' })
})

test('an engine that is down and no number to go to: the call is turned away unanswered', async (t) => {
  const stage = await open(t, { node: { engine: createScriptedEngine({ failsToOpen: 'no key' }) } })
  const { callId, phone, begin } = await ring(stage)
  await begin()
  t.match(await phone.next('close'), { reason: 'failed' }, 'the edge answers 503')
  await finished(stage, callId)
  t.notOk(phone.commands.some(isAnswer))
  t.match(await ended(stage, callId), { outcome: 'failed', failedReason: 'voice_session_unavailable', startedAt: null })
})

test('an engine that dies right after its trial sends the caller on after the answer', async (t) => {
  const dying = createScriptedEngine()
  const stage = await open(t, { node: { provider: dying } })
  await configure(stage, redirect)
  const { callId, phone, begin } = await ring(stage)
  await begin()
  await phone.next('answer')
  dying.emit({ type: 'failed', details: 'it is down', isRetryable: false })
  phone.event({ type: 'connected', providerStatus: '200 OK' })
  t.match(await phone.next('transfer'), { to: '+49309991' })
  phone.event({ type: 'transfer_failed', providerStatus: '603 Decline' })
  await phone.next('close')
  await finished(stage, callId)
  t.match(await ended(stage, callId), { outcome: 'failed', failedReason: 'voice_session_unavailable' })
})

test('where the account allows it the embedded engine answers in place of one that is down, which is not asked again', async (t) => {
  const down = createDyingEngine(0)
  const stage = await open(t, { node: { provider: down.engine } })
  await configure(stage, redirect)
  await changeAccountConfig(stage.sql, stage.tenant.accountId, { embeddedFallback: true }, Date.now())
  const { callId, phone, begin } = await ring(stage)
  await begin()
  await phone.next('answer')
  phone.event({ type: 'connected', providerStatus: '200 OK' })
  await phone.next('start')
  phone.event(hungUp)
  await finished(stage, callId)
  t.equal(down.asked(), 1)
  t.match(await ended(stage, callId), { outcome: 'completed' })
  t.same(replay(await listCallEvents(stage.sql, callId)).differences, [])
})

test('nobody is redirected where it is switched off, to what is no number, or to a number that is not allowed', async (t) => {
  const refusal = { reason: 'destination_not_allowed' } as RefusedArrival
  const asked: string[] = []
  const refusalOf = async (_: unknown, number: string) => (asked.push(number), refusal)
  const stage = await open(t, { hook: noKey, node: { refusalOf } })
  for (const config of [
    {},
    { ...redirect, serviceDownRedirectEnabled: false },
    { ...redirect, serviceDownRedirectNumber: '0900 1' },
    redirect,
  ]) {
    await configure(stage, config)
    const { callId, phone, begin } = await ring(stage)
    await begin()
    t.match(await phone.next('close'), { reason: 'failed' })
    t.notOk(phone.commands.some(({ type }) => type === 'transfer'))
    await finished(stage, callId)
    t.match(await ended(stage, callId), { outcome: 'failed', failedReason: 'voice_session_unavailable' })
  }
  t.same(asked, ['+49309991'])
})

test('an edge that refuses the transfer, and a leg that is gone, end the call all the same', async (t) => {
  const stage = await open(t, { hook: noKey })
  await configure(stage, redirect)
  const refused = await ring(stage, { replies: { transfer: { type: 'refused', details: '420 Bad Extension' } } })
  const gone = await ring(stage)
  gone.phone.close()
  for (const { callId, begin } of [refused, gone]) {
    await begin()
    await finished(stage, callId)
    t.match(await ended(stage, callId), { outcome: 'failed', failedReason: 'voice_session_unavailable' })
  }
})

/** Time passes in seconds, each with a round of the node's own, until it is so. */
async function pass({ clock, node }: Stage, isSo: () => boolean | Promise<boolean>): Promise<number> {
  for (let seconds = 0; ; seconds++) {
    if (await isSo()) return seconds
    clock.advance(1_000)
    await node.scheduler.idle()
  }
}

const progressIs = (stage: Stage, callId: CallId, wanted: string) => async () =>
  (await ended(stage, callId))?.progress === wanted

test('what the bus lost of a leg is found out within seconds: ringing, the answer, the end', async (t) => {
  const stage = await open(t)
  const callId = await place(stage.node, stage.tenant)
  const phone = await stage.edge!.phone(callId)
  phone.event({ type: 'ringing', providerStatus: '180 Ringing' }, true)
  t.ok((await pass(stage, progressIs(stage, callId, 'ringing'))) < 30)
  phone.event({ type: 'connected', providerStatus: '200 OK' }, true)
  t.ok((await pass(stage, progressIs(stage, callId, 'in_progress'))) < 30)
  await phone.next('start')
  phone.event(hungUp, true)
  await pass(stage, async () => (await ended(stage, callId))?.outcome === 'completed')
  await finished(stage, callId)
  t.same(await toldOf(stage, callId), [
    'status_update queued',
    'status_update ringing',
    'status_update in_progress',
    'status_update completed',
    'ended completed',
  ])
})

test('a call whose leg is gone without a word ends within half a minute, whatever it was doing', async (t) => {
  const stage = await open(t)
  const dialed = await place(stage.node, stage.tenant)
  const ringing = await stage.edge!.phone(dialed)
  ringing.event({ type: 'ringing', providerStatus: '180 Ringing' })
  const talked = await place(stage.node, stage.tenant)
  const talking = await stage.edge!.phone(talked)
  talking.event({ type: 'connected', providerStatus: '200 OK' })
  await talking.next('start')
  const { callId: answered, phone, begin } = await ring(stage)
  await begin()
  await phone.next('answer')
  for (const leg of [ringing, talking, phone]) leg.close()
  const ends: [CallId, string][] = [
    [dialed, 'failed'],
    [talked, 'failed'],
    [answered, 'canceled'],
  ]
  const areOver = async () => (await Promise.all(ends.map(([id]) => ended(stage, id)))).every((call) => call?.outcome)
  t.ok((await pass(stage, areOver)) < 60)
  for (const [callId, outcome] of ends) t.match(await ended(stage, callId), { outcome })
})

test('an edge whose answer is lost has dialed all the same: the call goes on with its leg, and nobody is asked again', async (t) => {
  const stage = await open(t, { edge: { silent: true } })
  const callId = await place(stage.node, stage.tenant)
  const phone = await stage.edge!.phone(callId)
  phone.commands.length = 0
  // The answer is waited for first, and then the leg is asked.
  await pass(stage, () => phone.commands.some(({ type }) => type === 'ping'))
  phone.event({ type: 'connected', providerStatus: '200 OK' })
  await phone.next('start')
  t.equal(stage.edge!.requests.length, 1)
})

test('leave to call somebody is given once, and only by the word of the actor of now', async (t) => {
  const stage = await open(t)
  const { sql, clock } = stage
  const callId = await place(stage.node, stage.tenant)
  const phone = await stage.edge!.phone(callId)
  const ask = (epoch: number) => takeDial(sql, { callId, epoch, now: clock.now() })
  t.equal(await ask(0), 'passed_on', 'an actor of before')
  const answers = await Promise.all(Array.from({ length: 10 }, () => ask(1)))
  t.same(answers.toSorted(), ['may', ...Array<string>(9).fill('was_dialed')])
  await sql`update calls set dialed_at = null where id = ${callId}`
  phone.event({ type: 'dial_failed', outcome: { status: 'busy' }, providerStatus: '486' })
  await finished(stage, callId)
  t.equal(await ask(1), 'passed_on', 'a request that comes late')
})

test('a leg that outlived its call is closed; those of calls that run, or say their last words, are let alone', async (t) => {
  const stage = await open(t)
  const { sql, clock } = stage
  const over = await place(stage.node, stage.tenant)
  const phone = await stage.edge!.phone(over)
  phone.event({ type: 'dial_failed', outcome: { status: 'busy' }, providerStatus: '486' })
  await finished(stage, over)
  const alive = await place(stage.node, stage.tenant)
  await stage.edge!.phone(alive)
  const closed: CallId[] = []
  const legs = { all: () => [over, alive], close: (callId: CallId) => void closed.push(callId) }
  const legSweep = createLegSweep({ sql, clock, log: stage.node.log }, legs)
  t.teardown(() => legSweep.close())
  await legSweep.idle()
  t.same(closed, [], 'at the first look its actor may be about to close it')
  await legSweep.idle()
  t.same(closed, [over])
})

test('the log of every call of these tests replays to the same effects', async (t) => {
  const { sql } = await opened
  const calls = await sql<{ id: CallId }[]>`select id from calls where finished`
  t.ok(calls.length > 15)
  for (const { id } of calls) t.same(replay(await listCallEvents(sql, id)).differences, [])
})
