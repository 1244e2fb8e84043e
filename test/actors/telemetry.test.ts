/** What the service tells of itself: every first user of the port tells what it should, once, and nothing that is not declared. */
import { createSecretKey, randomBytes } from 'node:crypto'
import top, { test, type Test } from 'tap'
import { createCallsTelling } from '../../actors/call/life/call-telling.ts'
import { beginCall, step } from '../../actors/call/machine/step.ts'
import { createSessionKeeper } from '../../actors/conversation/session-keeper.ts'
import { askHook } from '../../actors/webhooks/ask-hook.ts'
import type { SendRequest, SendResult } from '../../actors/webhooks/sender.ts'
import type { EngineConfig, VoiceEngine } from '../../model/voice-engine.ts'
import { createLocalBus } from '../../actors/bus/local-bus.ts'
import { observedBus } from '../../actors/bus/observed-bus.ts'
import { createTurnTiming } from '../../actors/conversation/turn-timing.ts'
import { createScheduler } from '../../actors/rounds/scheduler.ts'
import { createDeliveryLoop } from '../../actors/webhooks/delivery-loop.ts'
import { createWebhookSender } from '../../actors/webhooks/sender.ts'
import { systemClock } from '../../app/clock.ts'
import { BusNoResponders, BusTimeout, subjectsOf } from '../../model/bus.ts'
import { dialSubject } from '../../model/dial.ts'
import type { CallId } from '../../model/ids.ts'
import { counters, histograms, noTelemetry, spans } from '../../model/telemetry.ts'
import { enqueueDeliveries } from '../../store/deliveries.ts'
import { insertJob } from '../../store/jobs.ts'
import { createSecretBox } from '../../store/secret-box.ts'
import type { Sql } from '../../store/sql.ts'
import { createSubscription } from '../../store/subscriptions.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRecordedTelemetry } from '../fake/recorded-telemetry.ts'
import { openFakeWebhookReceiver } from '../fake/webhook-receiver.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { createTenant, newId, type Tenant } from '../scenes/tenant.ts'

const database = openTestDatabase(top)

async function createCall(sql: Sql, { accountId, workerId }: Tenant): Promise<CallId> {
  const id = newId<'call'>()
  await sql`
    insert into calls (id, account_id, worker_id, session_id, direction, transport, progress, snapshot)
    values (${id}, ${accountId}, ${workerId}, ${id}, 'outbound', 'sip_trunk', 'scheduled', '{}')`
  return id
}

test('names are dotted words, no name stands for two things, and no label has more values than an exporter keeps', (t) => {
  const declared = [...Object.entries(counters), ...Object.entries(histograms), ...Object.entries(spans)]
  t.equal(new Set(declared.map(([name]) => name)).size, declared.length)
  for (const [name, { description, labels }] of declared) {
    t.match(name, /^[a-z]+(\.[a-z_]+)+$/)
    t.ok(description.length > 10)
    for (const [label, values] of Object.entries(labels)) {
      t.match(label, /^[a-z]+$/)
      t.ok(values.length > 0 && values.length <= 24 && new Set(values).size === values.length)
    }
  }
  t.end()
})

test('what nobody listens to keeps nothing: every span is one and the same', (t) => {
  const first = noTelemetry.span('job.run', { kind: 'dial' })
  t.equal(noTelemetry.span('delivery.attempt', { event: 'call.ended' }), first)
  t.equal(noTelemetry.isOn, false)
  t.end()
})

test('an answer that was heard is told stage by stage, one that was not heard is not told', (t) => {
  const clock = createHandClock()
  const telemetry = createRecordedTelemetry()
  const timing = createTurnTiming({ clock, engine: { name: 'embedded' }, telemetry })
  const answer = (itemId: string, stages: readonly (() => void)[]) => {
    timing.stopped(200)
    for (const stage of [...stages, () => timing.audio(itemId), () => timing.sounding()]) {
      clock.advance(50)
      stage()
    }
  }
  answer('a', [() => timing.recognised(), () => timing.decided()])
  t.same(telemetry.observed, [], 'nothing while it is on its way')
  const latency = timing.take('a')
  timing.take('a')
  const told = telemetry.observed.map(({ name, labels, value }) => [name, labels, value])
  t.same(
    told,
    Object.entries(latency ?? {}).map(([stage, ms]) => ['turn.latency', { stage, engine: 'embedded' }, ms]),
  )
  t.same(telemetry.values('turn.latency', { stage: 'firstPacket' }), [400])

  answer('b', [])
  timing.forget('b')
  t.equal(timing.take('b'), null)
  t.equal(telemetry.observed.length, 5)

  const ofNobody = createTurnTiming({ clock, engine: { name: 'Ada Lovelace +49301234' }, telemetry })
  ofNobody.stopped(0)
  ofNobody.audio('c')
  ofNobody.take('c')
  t.same(telemetry.observed.at(-1)?.labels, { stage: 'firstAudio', engine: 'other' })
  t.equal(telemetry.observed.length, 8, 'a stage that was not seen is not told')
  t.end()
})

test('a job tells how long it waited, and each run how it ended', async (t) => {
  const { sql } = await database
  const clock = createHandClock()
  const telemetry = createRecordedTelemetry()
  const tenant = await createTenant(sql, { slug: newId() })
  const callId = await createCall(sql, tenant)
  const jobId = newId()
  await sql.begin((tx) =>
    insertJob(tx, { id: jobId, accountId: tenant.accountId, callId, kind: 'dial', runAt: clock.now() - 700 }),
  )
  let failures = 1
  const work = async () => {
    clock.advance(30)
    if (failures-- > 0) throw new Error('not yet')
  }
  const scheduler = createScheduler({
    sql,
    clock,
    nodeId: newId<'node'>(),
    log: createQuietLog(),
    telemetry,
    work: { expire_token: work, post_process: work, dial_time: work, dial: work },
  })
  await scheduler.idle()
  clock.advance(5_000)
  await scheduler.idle()
  await scheduler.close()
  const [first = 0, second = 0] = telemetry.values('job.wait', { kind: 'dial' })
  t.equal(first, 700)
  t.ok(second > 0 && second < 5_000, 'from the time of the retry')
  t.match(telemetry.spans, [
    { name: 'job.run', labels: { kind: 'dial' }, about: { jobId, callId }, result: 'failed' },
    { name: 'job.run', labels: { kind: 'dial' }, about: { jobId, callId }, result: 'ok' },
  ])
})

test('a delivery tells how long it waited before it was sent, and each attempt what it led to', async (t) => {
  const { sql } = await database
  const clock = createHandClock()
  const log = createQuietLog()
  const telemetry = createRecordedTelemetry()
  const receiver = await openFakeWebhookReceiver(t)
  const tenant = await createTenant(sql, { slug: newId() })
  const callId = await createCall(sql, tenant)
  const box = createSecretBox(createSecretKey(randomBytes(32)))
  const request = { eventType: '*', url: receiver.url('/hook') } as const
  const { signingSecret } = await createSubscription(sql, box, { ...tenant, request, newId, now: clock.now() })
  receiver.trust('/hook', signingSecret ?? '')
  receiver.script('/hook', [{ status: 500 }, { status: 200 }])
  const data = { callId, status: 'queued', providerStatus: null, ts: '2026-03-01T12:00:00.000Z' } as const
  const events = [{ type: 'call.status_update', data }] as const
  await sql.begin((tx) => enqueueDeliveries(tx, { ...tenant, callId, events, now: clock.now(), newId }))
  clock.advance(420)
  const sender = createWebhookSender({ allowHosts: ['127.0.0.1'], log, clock })
  const nodeId = newId<'node'>()
  const loop = createDeliveryLoop({ sql, box, sender, clock, nodeId, log, telemetry, random: () => 0.5 })
  t.teardown(async () => {
    await loop.close()
    await sender.close()
  })
  loop.start()
  await loop.idle()
  clock.advance(60_000)
  await loop.idle()
  const event = 'call.status_update'
  t.same(telemetry.values('delivery.latency'), [420], 'of the first attempt only')
  t.same(
    telemetry.counted.map(({ name, labels, by }) => [name, labels, by]),
    [
      ['delivery.attempts', { event, verdict: 'retry' }, 1],
      ['delivery.attempts', { event, verdict: 'delivered' }, 1],
    ],
  )
  t.match(telemetry.spans, [
    { name: 'delivery.attempt', labels: { event }, about: { callId, attempt: 1 }, result: 'failed' },
    { name: 'delivery.attempt', labels: { event }, about: { callId, attempt: 2 }, result: 'ok' },
  ])
  t.notMatch(JSON.stringify(telemetry.spans), receiver.url(''), 'where it was sent is the business of the account')
})

function openBus(t: Pick<Test, 'teardown'>) {
  const telemetry = createRecordedTelemetry()
  const log = createQuietLog()
  let now = 0
  const bus = observedBus(createLocalBus({ log, clock: systemClock, telemetry }), { telemetry, now: () => (now += 3) })
  t.teardown(() => bus.close())
  return { bus, telemetry }
}

test('a request on the bus tells what it was, how long it took and what it led to', async (t) => {
  const { bus, telemetry } = openBus(t)
  const { legCommand } = subjectsOf(newId<'call'>())
  const nothing = new Uint8Array()
  const ask = (subject: string) => bus.request(subject, nothing, { timeout: 20 })
  bus.subscribe(legCommand, (message) => message.respond(nothing))
  bus.subscribe(dialSubject, () => {})
  await ask(legCommand)
  await t.rejects(ask(dialSubject), BusTimeout)
  await t.rejects(ask('call.x.fact'), BusNoResponders)
  await t.rejects(ask('not a subject'), TypeError)
  t.same(
    telemetry.observed.map(({ name, labels, value }) => [name, labels, value]),
    [
      ['bus.request', { kind: 'leg_command', result: 'answered' }, 3],
      ['bus.request', { kind: 'dial', result: 'timeout' }, 3],
      ['bus.request', { kind: 'fact', result: 'no_responders' }, 3],
      ['bus.request', { kind: 'other', result: 'failed' }, 3],
    ],
  )
})

test('messages that a full bus drops are told, all of a turn together; those that arrive are not', async (t) => {
  const { bus, telemetry } = openBus(t)
  bus.subscribe('a', () => {})
  for (let count = 0; count < 100; count++) bus.publish('a', new Uint8Array(1))
  await bus.flush()
  t.same(telemetry.counted, [])
  for (let count = 0; count < 70_000; count++) bus.publish('a', new Uint8Array(1))
  await bus.flush()
  t.same(telemetry.counted, [{ name: 'bus.dropped', labels: {}, by: 70_000 - 65_536 }])
})

test('how a call ended is told once, with its reason, and it is among those that run until its actor is gone', (t) => {
  const telemetry = createRecordedTelemetry()
  const calls = createCallsTelling({ telemetry })
  const birth = { direction: 'inbound', transport: 'webrtc', scheduledAt: null, rules: 2 } as const
  const born = beginCall(birth, 1_000)
  const telling = calls.begin(newId<'call'>(), born.state)
  t.same(calls.running(), [{ labels: { kind: 'web', state: 'scheduled' }, value: 1 }])
  const expired = step(born.state.persisted, { type: 'token_expired' }, 5_000)
  telling.stepped(expired, 5_000)
  t.same(
    telemetry.counted.map(({ name, labels }) => [name, labels]),
    [
      ['call.ended', { kind: 'web', outcome: 'failed' }],
      ['call.failed', { kind: 'web', reason: 'webrtc_client_never_connected' }],
    ],
  )
  t.match(telemetry.spans, [{ name: 'call.length', result: 'failed', about: { outcome: 'failed' } }])
  t.equal(telemetry.spans.length, 1, 'nobody answered: there is no set-up to tell of')
  t.match(calls.running(), [{ labels: { kind: 'web', state: 'ending' }, value: 1 }])
  telling.end()
  telling.end()
  t.same(calls.running(), [])
  t.same(createCallsTelling({}).running(), [])
  t.end()
})

test('an engine of which no session can be had is counted as failed and then as lost, by a name of ours', async (t) => {
  const telemetry = createRecordedTelemetry()
  const lost: string[] = []
  const engine = { name: 'a model of +49301234', open: async () => Promise.reject(new Error('it is down')) }
  const keeper = createSessionKeeper({
    engine: engine as unknown as VoiceEngine,
    isReplaceable: true,
    clock: createHandClock(),
    log: createQuietLog(),
    telemetry,
    config: {} as EngineConfig,
    known: () => ({ history: [], owesReply: false, memory: null }),
    isQuiet: () => true,
    take: () => undefined,
    opened: () => undefined,
    lost: (details) => void lost.push(details),
  })
  await keeper.open()
  t.equal(lost.length, 1)
  t.same(
    telemetry.counted.map(({ labels }) => labels),
    [
      { engine: 'other', result: 'failed' },
      { engine: 'other', result: 'lost' },
    ],
  )
  t.same(telemetry.observed, [], 'what was never had took no time')
  keeper.close()
})

test('a hook without a good answer is told with what was wrong, and each carries its id', async (t) => {
  const telemetry = createRecordedTelemetry()
  const sent: SendRequest[] = []
  const results: SendResult[] = [
    { kind: 'failed', reason: 'timeout', details: 'late' },
    { kind: 'answered', status: 500, body: '', retryAfter: null },
    { kind: 'answered', status: 200, body: '{}', retryAfter: null },
  ]
  const sender = {
    async send(request: SendRequest) {
      sent.push(request)
      return results[sent.length - 1]!
    },
  }
  const callId = newId<'call'>()
  const to = { url: 'https://example.com', secret: 's', headers: {}, timeout: 1_000, accountId: 'a', callId, data: {} }
  for (const _ of results)
    await askHook({ sender, now: Date.now, newId, telemetry }, { type: 'call.worker_request', ...to })
  t.same(
    telemetry.counted.map(({ labels }) => labels),
    [
      { hook: 'call.worker_request', reason: 'timeout' },
      { hook: 'call.worker_request', reason: 'answer' },
    ],
  )
  t.same(
    telemetry.spans.map(({ result, about }) => [result, about['callId'], about['eventId']]),
    sent.map(({ headers }, index) => [index === 2 ? 'ok' : 'failed', callId, headers['X-Request-Id']]),
  )
  t.same(
    sent.map(({ headers }) => headers['traceparent']),
    [undefined, undefined, undefined],
    'nobody traces',
  )
})
