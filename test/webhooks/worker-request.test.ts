/** Subscriptions, and the sync hook that changes a call before it starts. */
import { createSecretKey, randomBytes } from 'node:crypto'
import t, { test, type Test } from 'tap'
import { signingSecretPlace } from '../../store/subscription-secrets.ts'
import { systemClock } from '../../app/clock.ts'
import { createWebhookSender } from '../../actors/webhooks/sender.ts'
import { createAskWorkerRequest } from '../../actors/webhooks/worker-request.ts'
import type { WorkerRequestData } from '../../model/events.ts'
import type { AccountId, CallId, SubscriptionId } from '../../model/ids.ts'
import { Problem } from '../../model/problem.ts'
import { SubscriptionRequest, WebhookSubscription } from '../../model/webhook.ts'
import { createSecretBox } from '../../store/secret-box.ts'
import type { Sql } from '../../store/sql.ts'
import {
  changeSubscription,
  createSubscription,
  deleteSubscription,
  findMatchingOfCalls,
  listSubscriptions,
} from '../../store/subscriptions.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createTenant, newId } from '../scenes/tenant.ts'
import { openFakeWebhookReceiver } from '../fake/webhook-receiver.ts'

const disable = (sql: Sql, accountId: AccountId, id: string) =>
  changeSubscription(sql, box, { accountId, id: id as SubscriptionId, change: { enabled: false }, now: start })

const database = openTestDatabase(t)
const box = createSecretBox(createSecretKey(randomBytes(32)))
const start = Date.parse('2026-03-01T12:00:00.000Z')

async function open(t: Test) {
  const { sql } = await database
  const tenant = await createTenant(sql, { slug: newId() })
  const receiver = await openFakeWebhookReceiver(t)
  const log = createQuietLog()
  const sender = createWebhookSender({ allowHosts: ['127.0.0.1'], log, clock: { ...systemClock, now: () => start } })
  t.teardown(() => sender.close())
  let now = start
  const callId = newId<'call'>()
  const row = { id: callId, ...tenant, sessionId: 's', direction: 'outbound', transport: 'webrtc', progress: 'queued' }
  await sql`insert into calls ${sql({ ...row, snapshot: sql.json({}) })}`
  const askAbout = createAskWorkerRequest({ sql, box, sender, log, now: () => start, clock: systemClock, newId })
  const data: WorkerRequestData = {
    callId,
    ...tenant,
    direction: 'outbound',
    transport: 'webrtc',
    metadata: undefined,
  }
  return {
    ...tenant,
    sql,
    receiver,
    log,
    data,
    ask: (over: Partial<WorkerRequestData> = {}) => askAbout(callId, () => Promise.resolve({ ...data, ...over })),
    askAbout,
    matching: async () => (await findMatchingOfCalls(sql, [callId], 'call.worker_request')).get(callId) ?? [],
    /** Each a second younger than the one before. */
    subscribe: async (path: string, over: Partial<SubscriptionRequest> = {}) => {
      const request = SubscriptionRequest.parse({ eventType: 'call.worker_request', url: receiver.url(path), ...over })
      now += 1000
      const made = await createSubscription(sql, box, { accountId: tenant.accountId, request, newId, now })
      receiver.trust(path, made.signingSecret ?? '')
      return made
    },
  }
}

test('a created subscription shows its secret once, and the database never', async (t) => {
  const { subscribe, sql, accountId, receiver } = await open(t)
  const made = await subscribe('/hook', { headers: { 'X-Tenant': 'a' }, required: true })
  t.match(made.signingSecret, /^whsec_[A-Za-z0-9_-]{43}$/)
  t.strictSame(WebhookSubscription.parse(made), {
    id: made.id,
    accountId,
    workerId: null,
    eventType: 'call.worker_request',
    deliveryMode: 'sync',
    url: receiver.url('/hook'),
    signingSecret: made.signingSecret,
    headers: { 'X-Tenant': 'a' },
    timeoutMs: 5000,
    enabled: true,
    required: true,
    createdAt: '2026-03-01T12:00:01.000Z',
    updatedAt: '2026-03-01T12:00:01.000Z',
  })
  t.strictSame(await listSubscriptions(sql, accountId, null, box), [{ ...made, signingSecret: null }])
  const [row] = await sql<
    { signingSecret: string }[]
  >`select signing_secret from webhook_subscriptions where id = ${made.id}`
  t.notMatch(row?.signingSecret, made.signingSecret?.slice(6) ?? '')
  const place = signingSecretPlace({ accountId, id: made.id as SubscriptionId })
  t.equal(box.open(row?.signingSecret ?? '', place), made.signingSecret)
})

test('a subscription is scoped to a worker of its own account, and seen and deleted by that account only', async (t) => {
  const { subscribe, sql, accountId, workerId } = await open(t)
  const other = await createTenant(sql, { slug: newId() })
  for (const foreign of [other.workerId, newId(), 'nonsense']) {
    const error: unknown = await subscribe('/hook', { workerId: foreign }).catch((thrown: unknown) => thrown)
    t.ok(error instanceof Problem)
    t.match(error, { type: 'VALIDATION_FAILED', issues: [{ path: 'workerId' }] })
  }
  const scoped = await subscribe('/scoped', { workerId, eventType: '*' })
  const wide = await subscribe('/wide', { eventType: 'call.ended' })
  const idsOf = async (worker: string | null) =>
    (await listSubscriptions(sql, accountId, worker, box)).map(({ id }) => id)
  t.strictSame(await idsOf(null), [scoped.id, wide.id])
  t.strictSame(await idsOf(workerId), [scoped.id], 'account-wide ones are excluded')
  t.strictSame(await idsOf(other.workerId), [])
  t.equal((await listSubscriptions(sql, other.accountId, null, box)).length, 0)
  t.equal(await deleteSubscription(sql, other.accountId, wide.id as SubscriptionId), false)
  t.equal(await deleteSubscription(sql, accountId, wide.id as SubscriptionId), true)
  t.strictSame(await idsOf(null), [scoped.id])
})

test('worker-scoped subscriptions are asked before account-wide ones, older before younger, disabled ones never', async (t) => {
  const { subscribe, sql, accountId, workerId, receiver, ask, matching } = await open(t)
  const wide = await subscribe('/wide')
  await subscribe('/other-type', { eventType: 'call.ended' })
  await subscribe('/off', { workerId, enabled: false })
  const scoped = await subscribe('/scoped', { workerId, eventType: '*' })
  const younger = await subscribe('/younger', { workerId })
  t.strictSame(
    (await matching()).map(({ id }) => id as string),
    [scoped.id, younger.id, wide.id],
  )
  t.match(await ask(), { kind: 'answered' })
  t.strictSame(
    receiver.deliveries.map(({ path }) => path),
    ['/scoped'],
    'only the first is asked',
  )
  await disable(sql, newId<'account'>(), scoped.id)
  t.equal((await matching()).length, 3, 'not by another account')
  await disable(sql, accountId, scoped.id)
  t.strictSame(
    (await matching()).map(({ id }) => id as string),
    [younger.id, wide.id],
  )
})

test('without a subscription nobody is asked', async (t) => {
  const { subscribe, askAbout, ask, data } = await open(t)
  await subscribe('/ended', { eventType: 'call.ended' })
  t.strictSame(await ask(), { kind: 'none' })
  const unasked = () => Promise.reject(new Error('nobody wants to know'))
  t.strictSame(await askAbout(data.callId as CallId, unasked), { kind: 'none' }, 'nor is the call read')
})

test('the answer of call.worker_request is validated and given back', async (t) => {
  const { subscribe, receiver, ask, data, accountId } = await open(t)
  await subscribe('/hook', { headers: { Authorization: 'Bearer x' } })
  const answer = {
    config: { voiceId: 'alloy', ringTimeout: 12, dimensions: [{ key: 'mood', name: 'Mood', type: 'string' as const }] },
    instructions: 'Sei höflich.',
    tools: [{ name: 'lookup', description: 'd', deliveryUrl: 'https://example.com/t', signingSecret: 'secret-text' }],
    metadata: { order: 7 },
  }
  receiver.script('/hook', [
    { status: 201, body: JSON.stringify({ ...answer, unknown: true }) },
    { status: 204 },
    { status: 200, body: 'null' },
  ])
  t.strictSame(await ask({ metadata: { lead: 'x' } }), { kind: 'answered', answer })
  for (const body of ['none', 'null'])
    t.strictSame(
      await ask(),
      { kind: 'answered', answer: {} },
      `all of its fields are optional, so is the body: ${body}`,
    )
  const echo = { config: { language: 'de-AT', voiceId: null, workerId: 'w', accountId: 'a', volume: 11 }, tools: null }
  receiver.script('/hook', [{ status: 200, body: JSON.stringify(echo) }])
  const echoed = { kind: 'answered', answer: { config: { language: 'de-AT' } } }
  t.strictSame(await ask(), echoed, 'who sends back the configuration it knows changes what can be changed')
  const [first, second] = receiver.deliveries
  t.match(first?.headers, {
    'x-service-event': 'call.worker_request',
    'x-service-delivery': 'sync',
    'x-service-account-id': accountId,
    'x-service-attempt': '1',
    'x-service-timestamp': '2026-03-01T12:00:00.000Z',
    authorization: 'Bearer x',
  })
  t.equal(first?.body, JSON.stringify({ type: 'call.worker_request', data: { ...data, metadata: { lead: 'x' } } }))
  t.notMatch(second?.body, /metadata/, 'metadata is absent if there is none')
  t.not(first?.eventId, second?.eventId, 'every request has an event id of its own')
})

test('a failed call.worker_request is asked once, and aborts the call only when it is required', async (t) => {
  const { subscribe, receiver, ask, sql, accountId, log } = await open(t)
  const failures = [
    [{ status: 500, body: '{}' }, /status 500/],
    [{ status: 302, headers: { location: receiver.url('/hook') } }, /status 302/],
    [{ status: 410 }, /status 410/],
    [{ wire: 'reset' }, /^transport/],
    [{ wire: 'garbage' }, /^transport/],
    [{ wire: 'hang' }, /^timeout/],
    [{ wire: 'stall' }, /^timeout/],
    [{ wire: 'huge' }, /^too_large/],
    [{ status: 200, body: 'ok' }, /no JSON/],
    [{ status: 200, body: '[]' }, /invalid/],
    [{ status: 200, body: '{"config":{"ringTimeout":"soon"}}' }, /invalid: config\.ringTimeout/],
    [{ status: 200, body: '{"tools":[{"name":"1"}]}' }, /invalid: tools\.0\./],
  ] as const
  for (const required of [false, true]) {
    const { id } = await subscribe('/hook', { required, timeoutMs: 200 })
    for (const [answer, details] of failures) {
      receiver.script('/hook', [answer])
      const before = receiver.deliveries.length
      const outcome = await ask()
      t.match(outcome, { kind: 'failed', required, details })
      t.equal(receiver.deliveries.length, before + 1, 'one attempt')
    }
    await disable(sql, accountId, id)
  }
  t.equal(log.lines.filter(({ message }) => message === 'call.worker_request failed').length, 2 * failures.length)
})

test('why an answer was refused can be stored in the log of the call, whatever its keys are', async (t) => {
  const { subscribe, receiver, ask, sql } = await open(t)
  await subscribe('/hook')
  const bodies = [
    '{"metadata":{"a\\u0000b":1}}',
    '{"metadata":{"\\ud83d":1}}',
    `{"config":{"dimensions":[{"key":"x","name":"X","type":"string","${'\u{1f600}'.repeat(50_000)}":1}]}}`,
  ]
  for (const body of bodies) {
    receiver.script('/hook', [{ status: 200, body }])
    const outcome = await ask()
    t.match(outcome, { kind: 'failed', details: /^the answer (cannot be stored|is invalid): / })
    await t.resolves(sql`select ${sql.json(outcome as never)}::jsonb`)
    t.ok(JSON.stringify(outcome).length < 1_000)
  }
})

test('a target that may not be reached fails like any other', async (t) => {
  const { subscribe, ask } = await open(t)
  await subscribe('/hook', { url: 'https://169.254.169.254/latest/meta-data', required: true })
  t.match(await ask(), { kind: 'failed', required: true, details: /^refused/ })
})

test('a secret that cannot be opened fails the request and sends nothing', async (t) => {
  const { subscribe, ask, sql, receiver, accountId } = await open(t)
  const { id } = await subscribe('/hook')
  const place = signingSecretPlace({ accountId, id: id as SubscriptionId })
  const foreign = createSecretBox(createSecretKey(randomBytes(32))).seal('whsec_x', place)
  await sql`update webhook_subscriptions set signing_secret = ${foreign} where id = ${id}`
  t.match(await ask(), { kind: 'failed', required: false, details: /secret/ })
  t.equal(receiver.counts().refused + receiver.deliveries.length, 0)
})
