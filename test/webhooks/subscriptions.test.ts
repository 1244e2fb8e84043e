/** Subscriptions as the API uses them: changes, the test event, the log of deliveries and sending again; when one is switched off; what is forgotten. */
import { createSecretKey, randomBytes } from 'node:crypto'
import t, { test, type Test } from 'tap'
import { signingSecretPlace } from '../../store/subscription-secrets.ts'
import { systemClock } from '../../app/clock.ts'
import { toIso } from '../../model/clock.ts'
import { createRetention, retentionEvery } from '../../actors/rounds/retention.ts'
import { createDeliveryLoop, pollEvery } from '../../actors/webhooks/delivery-loop.ts'
import { failingLimit } from '../../actors/webhooks/record-attempts.ts'
import { headersOf, sendSigned, signatureOf, standardSignatureOf, toSigningKey } from '../../actors/webhooks/sign.ts'
import { createWebhookSender } from '../../actors/webhooks/sender.ts'
import { createSubscriptions } from '../../actors/webhooks/subscriptions.ts'
import {
  EndedData,
  StatusUpdateData,
  TranscriptData,
  WorkerRequestData,
  type SubscribedType,
} from '../../model/events.ts'
import { toId, type CallId, type DeliveryId, type SubscriptionId } from '../../model/ids.ts'
import { Problem } from '../../model/problem.ts'
import { Delivery, DeliveryPage, DeliveryQuery, type SubscriptionRequest } from '../../model/webhook.ts'
import { enqueueDeliveries, type OutboxEvent } from '../../store/deliveries.ts'
import { resealSecrets } from '../../store/reseal-secrets.ts'
import { createSecretBox } from '../../store/secret-box.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createTenant, newId } from '../scenes/tenant.ts'
import { openFakeWebhookReceiver } from '../fake/webhook-receiver.ts'
import { countPending } from '../scenes/count-pending.ts'

const keep = { deliveries: 30 * 24 * 3_600_000 }

const database = openTestDatabase(t)
const box = createSecretBox(createSecretKey(randomBytes(32)))
const day = 24 * 3_600_000

const ended = (callId: CallId): OutboxEvent => ({
  type: 'call.ended',
  data: { callId, status: 'completed', accountId: 'a', workerId: 'w', recordingAvailable: false },
})
const transcript = (callId: CallId): OutboxEvent => ({ type: 'call.tool_call', data: { callId } })

async function open(t: Test) {
  const { sql } = await database
  await sql`delete from deliveries`
  const clock = createHandClock()
  const log = createQuietLog()
  const receiver = await openFakeWebhookReceiver(t)
  const sender = createWebhookSender({ allowHosts: ['127.0.0.1'], log, clock: { ...systemClock, now: clock.now } })
  t.teardown(() => sender.close())
  const tenant = await createTenant(sql, { slug: newId() })
  const { accountId } = tenant
  const nodeId = newId<'node'>()
  const loop = createDeliveryLoop({ sql, box, sender, clock, nodeId, log, random: () => 0.5 })
  t.teardown(() => loop.close())
  let woken = 0
  const wakeDeliveries = () => {
    woken += 1
    loop.wake()
  }
  const subscriptions = createSubscriptions({ sql, box, sender, clock, newId, log, wakeDeliveries })
  const problemOf = (work: Promise<unknown>) =>
    work.then(
      () => null,
      (error: unknown) => (error instanceof Problem ? { type: error.type, issues: error.issues } : error),
    )
  return {
    ...tenant,
    sql,
    clock,
    log,
    receiver,
    loop,
    subscriptions,
    problemOf,
    woken: () => woken,
    subscribe: async (path: string, eventType: SubscribedType = '*', over: Partial<SubscriptionRequest> = {}) => {
      const made = await subscriptions.create(accountId, { eventType, url: receiver.url(path), ...over })
      receiver.trust(path, made.signingSecret ?? '')
      return made.id as SubscriptionId
    },
    /** A call with these events, in the outbox. */
    callWith: async (...events: ((callId: CallId) => OutboxEvent)[]): Promise<CallId> => {
      const callId = newId<'call'>()
      await sql`
        insert into calls (id, account_id, worker_id, session_id, direction, transport, progress, snapshot)
        values (${callId}, ${accountId}, ${tenant.workerId}, ${callId}, 'outbound', 'webrtc', 'queued', '{}')`
      const batch = { ...tenant, callId, events: events.map((of) => of(callId)), now: clock.now(), newId }
      await sql.begin((tx) => enqueueDeliveries(tx, batch))
      return callId
    },
    list: async (id: SubscriptionId, query: Record<string, unknown> = {}) => {
      const page = await subscriptions.listDeliveries(accountId, id, DeliveryQuery.parse(query))
      return DeliveryPage.parse(page)
    },
    drain: async () => {
      while ((await countPending(sql, { callId: null, now: clock.now() })).due > 0) continue
    },
    standing: async (id: SubscriptionId) => {
      const [row] = await sql<{ enabled: boolean; failingSince: number | null; disabledReason: string | null }[]>`
        select enabled, failing_since, disabled_reason from webhook_subscriptions where id = ${id}`
      return { ...row }
    },
  }
}

test('a change sets what it names and leaves the rest', async (t) => {
  const { subscribe, subscriptions, accountId, receiver, clock } = await open(t)
  const id = await subscribe('/hook', 'call.worker_request', { headers: { 'X-A': '1' }, timeoutMs: 700 })
  const before = await subscriptions.find(accountId, id)
  clock.advance(1000)
  const changed = await subscriptions.change(accountId, id, { required: true, enabled: false })
  t.strictSame(changed, { ...before, required: true, enabled: false, updatedAt: new Date(clock.now()).toISOString() })
  t.equal(changed?.signingSecret, null, 'the secret is not shown again')
  const url = receiver.url('/other')
  t.match(await subscriptions.change(accountId, id, { url, headers: {}, timeoutMs: 900 }), {
    url,
    headers: {},
    timeoutMs: 900,
    required: true,
    enabled: false,
  })
  const kept = await subscriptions.find(accountId, id)
  clock.advance(1000)
  t.strictSame(await subscriptions.change(accountId, id, {}), kept, 'nothing is named, nothing changes')
  t.match(await subscriptions.change(accountId, id, { timeoutMs: 1.5 }), { timeoutMs: 1.5 })
  const other = newId<'account'>()
  t.equal(await subscriptions.find(other, id), null)
  t.equal(await subscriptions.change(other, id, { enabled: true }), null)
  t.equal(await subscriptions.test(other, id), null)
  t.equal(await subscriptions.listDeliveries(other, id, DeliveryQuery.parse({})), null)
  t.equal(await subscriptions.remove(other, id), false)
  t.equal(await subscriptions.remove(accountId, id), true)
  t.equal(await subscriptions.remove(accountId, id), false)
  t.equal(await subscriptions.find(accountId, id), null)
})

test('required can be set for call.worker_request and * only', async (t) => {
  const { subscribe, subscriptions, accountId, problemOf } = await open(t)
  for (const eventType of ['call.tool_call', 'call.transcript', 'call.status_update', 'call.ended'] as const) {
    const id = await subscribe('/x', eventType)
    const problem = await problemOf(subscriptions.change(accountId, id, { required: true }))
    t.match(problem, { type: 'VALIDATION_FAILED', issues: [{ path: 'required' }] }, eventType)
    t.match(await subscriptions.change(accountId, id, { required: false }), { required: false })
  }
  for (const eventType of ['call.worker_request', '*'] as const) {
    const id = await subscribe('/x', eventType)
    t.match(await subscriptions.change(accountId, id, { required: true }), { required: true }, eventType)
  }
})

test('a new secret signs from the next delivery on', async (t) => {
  const { subscribe, subscriptions, accountId, receiver, callWith, loop, drain, sql } = await open(t)
  const id = await subscribe('/all')
  loop.start()
  await callWith(ended)
  loop.wake()
  await receiver.next('call.ended')
  await drain()
  t.match(await subscriptions.change(accountId, id, { signingSecret: 'my-own-signing-secret' }), {
    signingSecret: null,
  })
  receiver.trust('/all', 'my-own-signing-secret')
  await callWith(ended)
  loop.wake()
  await receiver.next('call.ended')
  t.strictSame(receiver.counts(), { verified: 2, refused: 0 })
  const [row] = await sql<
    { sealed: string }[]
  >`select signing_secret as sealed from webhook_subscriptions where id = ${id}`
  t.notMatch(row?.sealed, 'my-own-signing-secret')
  t.equal(box.open(row?.sealed ?? '', signingSecretPlace({ accountId, id })), 'my-own-signing-secret')
})

test('for a day after a change whoever knows the new secret or the former one takes what comes', async (t) => {
  const { subscriptions, accountId, receiver, callWith, loop, drain, clock } = await open(t)
  loop.start()
  const before = await subscriptions.create(accountId, { eventType: 'call.ended', url: receiver.url('/old') })
  const [oldSecret, newSecret] = [before.signingSecret ?? '', 'my-own-signing-secret']
  const id = before.id as SubscriptionId
  receiver.trust('/old', oldSecret)
  await subscriptions.change(accountId, id, { signingSecret: newSecret })
  const send = async () => {
    await callWith(ended)
    loop.wake()
    const { headers, body, attempt } = await receiver.next('call.ended')
    await drain()
    t.equal(attempt, 1)
    const [one, other] = [toSigningKey(newSecret), toSigningKey(oldSecret)]
    const standard = (key: typeof one) =>
      standardSignatureOf(key, String(headers['webhook-id']), Number(headers['webhook-timestamp']), body)
    return {
      hex: headers['x-service-signature'] === signatureOf(one, body) ? 'new' : 'former',
      standard: String(headers['webhook-signature'])
        .split(' ')
        .map((given) => [one, other].findIndex((key) => standard(key) === given)),
    }
  }
  t.same(await send(), { hex: 'former', standard: [1] }, 'who knows the former one alone refuses first, then takes it')
  t.same(receiver.counts(), { verified: 1, refused: 1 })
  receiver.trust('/old', newSecret)
  t.same(await send(), { hex: 'new', standard: [0, 1] }, 'X-Service-Signature is of the new one, the other has both')
  t.same(receiver.counts(), { verified: 2, refused: 1 })
  t.match(await subscriptions.test(accountId, id), { delivered: true })
  await receiver.next('call.ended')
  await subscriptions.change(accountId, id, { signingSecret: newSecret })
  t.same((await send()).standard, [0, 1], 'the same secret again ends nothing')
  clock.advance(day)
  t.same(await send(), { hex: 'new', standard: [0] })
  await subscriptions.change(accountId, id, { signingSecret: 'another-signing-secret' })
  await subscriptions.change(accountId, id, { signingSecret: 'the-last-signing-secret' })
  t.match(await subscriptions.test(accountId, id), { delivered: false, statusCode: 401 }, 'of three the first is over')
})

test('a receiver that compares the whole of webhook-signature takes what comes, whichever secret it knows', async (t) => {
  const keys = [toSigningKey('the new one'), toSigningKey('the former one')] as const
  const event = { type: 'call.ended', eventId: 'e', eventAt: 0, delivery: 'async', accountId: 'a', attempt: 1 } as const
  const outgoing = { ...event, sentAt: 0, body: '{}', customHeaders: {} }
  for (const known of keys) {
    let requests = 0
    const result = await sendSigned(keys, async (by) => {
      requests += 1
      const headers = headersOf(outgoing, ...by)
      const good =
        headers['webhook-signature'] === standardSignatureOf(known, 'e', 0, '{}') &&
        headers['X-Service-Signature'] === signatureOf(known, '{}')
      return { kind: 'answered', status: good ? 200 : 401 }
    })
    t.same(result, { kind: 'answered', status: 200 })
    t.ok(requests <= 3)
  }
  let asked = 0
  await sendSigned([keys[0]], async () => ({ kind: 'answered', status: 401, asked: (asked += 1) }))
  t.equal(asked, 1, 'with one secret there is one request')
})

test('headers of a subscription rest sealed, are sent and shown as they were given, and those of before are too', async (t) => {
  const { subscribe, subscriptions, accountId, receiver, callWith, loop, drain, sql } = await open(t)
  const id = await subscribe('/keyed', 'call.ended', { headers: { Authorization: 'Bearer topsecret' } })
  const rows = () =>
    sql`select to_jsonb(webhook_subscriptions)::text as row from webhook_subscriptions where id = ${id}`
  const send = async () => {
    await callWith(ended)
    loop.wake()
    const { headers } = await receiver.next('call.ended')
    await drain()
    return headers['authorization']
  }
  loop.start()
  t.notMatch(JSON.stringify(await rows()), 'topsecret')
  t.same((await subscriptions.find(accountId, id))?.headers, { Authorization: 'Bearer topsecret' })
  t.equal(await send(), 'Bearer topsecret')
  await subscriptions.change(accountId, id, { headers: { Authorization: 'Bearer changed' } })
  t.notMatch(JSON.stringify(await rows()), 'changed')
  t.equal(await send(), 'Bearer changed')
  await sql`update webhook_subscriptions set headers = '{"Authorization": "Bearer old"}', sealed_headers = null`
  t.equal(await send(), 'Bearer old')
  t.match(await subscriptions.list(accountId, null), [{ headers: { Authorization: 'Bearer old' } }])
  await resealSecrets({ sql, box })
  t.notMatch(JSON.stringify(await rows()), 'Bearer old')
  t.equal(await send(), 'Bearer old')
  const other = await subscribe('/other', 'call.ended')
  await sql`
    update webhook_subscriptions set sealed_headers = (select sealed_headers from webhook_subscriptions where id = ${id})
    where id = ${other}`
  await t.rejects(subscriptions.find(accountId, other), /another place/, 'they belong to their subscription')
})

test('targets that are refused by what they say are refused at once', async (t) => {
  const { subscribe, subscriptions, accountId, problemOf } = await open(t)
  const id = await subscribe('/ok')
  for (const url of [
    'https://10.0.0.1/',
    'https://169.254.169.254/latest',
    'https://[::1]/',
    'https://2130706434/',
    'http://8.8.8.8/',
    'https://user:password@example.com/',
  ]) {
    const refusal = { type: 'VALIDATION_FAILED', issues: [{ path: 'url' }] }
    t.match(await problemOf(subscriptions.create(accountId, { eventType: '*', url })), refusal, url)
    t.match(await problemOf(subscriptions.change(accountId, id, { url })), refusal, url)
  }
  t.match(await subscriptions.change(accountId, id, { url: 'https://not-resolved-yet.test/' }), { enabled: true })
})

test('the test event is synthetic, of the type of the subscription, signed, and leaves no trace', async (t) => {
  const { subscribe, subscriptions, accountId, workerId, receiver, sql } = await open(t)
  const expected = {
    'call.worker_request': ['call.worker_request', 'sync', WorkerRequestData],
    'call.tool_call': ['call.tool_call', 'sync', null],
    'call.transcript': ['call.transcript', 'async', TranscriptData],
    'call.status_update': ['call.status_update', 'async', StatusUpdateData],
    'call.ended': ['call.ended', 'async', EndedData],
    '*': ['call.status_update', 'async', StatusUpdateData],
  } as const
  for (const [eventType, [type, mode, schema]] of Object.entries(expected)) {
    const over = { workerId, enabled: false, headers: { Authorization: 'Bearer x' } }
    const id = await subscribe('/test', eventType as SubscribedType, over)
    t.strictSame(await subscriptions.test(accountId, id), { delivered: true, statusCode: 200 }, eventType)
    const { headers, data } = await receiver.next(type, '/test')
    t.match(headers, {
      'x-service-event': type,
      'x-service-delivery': mode,
      'x-service-attempt': '1',
      authorization: 'Bearer x',
    })
    t.ok(toId(headers['x-service-event-id'] as string))
    const { callId, metadata, ...rest } = data as { callId: string; metadata: unknown; workerId?: string }
    t.ok(toId(callId))
    t.strictSame(metadata, { test: true })
    if (rest.workerId !== undefined) t.equal(rest.workerId, workerId)
    if (schema) t.ok(schema.safeParse(data).success, `${eventType} has the shape of its kind`)
  }
  t.strictSame([...(await sql`select 1 from deliveries where account_id = ${accountId}`)], [])
})

test('a test that fails tells the status, and for sync hooks what was answered', async (t) => {
  const { subscribe, subscriptions, accountId, receiver } = await open(t)
  const hook = await subscribe('/hook', 'call.worker_request')
  const hasty = await subscribe('/hasty', 'call.worker_request', { timeoutMs: 150 })
  const tool = await subscribe('/tool', 'call.tool_call')
  const news = await subscribe('/news', 'call.ended')
  const testing = (id: SubscriptionId, path: string, answer: Parameters<typeof receiver.script>[1][number]) => {
    receiver.script(path, [answer])
    return subscriptions.test(accountId, id)
  }
  t.strictSame(await testing(hook, '/hook', { status: 500, body: '{"reason":"no such lead"}' }), {
    delivered: false,
    statusCode: 500,
    error: 'answered with status 500: {"reason":"no such lead"}',
  })
  const invalid = await testing(hook, '/hook', { status: 200, body: '{"config":{"ringTimeout":"soon"}}' })
  t.match(invalid, { delivered: false, statusCode: 200, error: /config\.ringTimeout.*: \{"config":\{"ringTimeout"/ })
  t.match(await testing(hook, '/hook', { status: 200, body: 'fine' }), { delivered: false, error: /no JSON: fine/ })
  const late = await testing(hasty, '/hasty', { wire: 'hang' })
  t.match(late, { delivered: false, error: 'timeout: no answer within 150 ms' })
  t.notOk('statusCode' in (late ?? {}))
  t.strictSame(await testing(tool, '/tool', { status: 200, body: '{"result":1}' }), {
    delivered: true,
    statusCode: 200,
  })
  t.match(await testing(tool, '/tool', { status: 404, body: 'x' }), {
    delivered: false,
    statusCode: 404,
    error: /404: x/,
  })
  t.strictSame(await testing(news, '/news', { status: 302, body: 'x' }), {
    delivered: false,
    statusCode: 302,
    error: 'answered with status 302',
  })
  t.match(await testing(news, '/news', { wire: 'reset' }), { delivered: false, error: /^transport/ })
})

test('a test with a secret that cannot be opened sends nothing and says so', async (t) => {
  const { subscribe, subscriptions, accountId, receiver, sql } = await open(t)
  const id = await subscribe('/hook', 'call.worker_request')
  const foreign = createSecretBox(createSecretKey(randomBytes(32))).seal(
    'whsec_x',
    signingSecretPlace({ accountId, id }),
  )
  await sql`update webhook_subscriptions set signing_secret = ${foreign} where id = ${id}`
  t.match(await subscriptions.test(accountId, id), { delivered: false, error: /secret/ })
  t.equal(receiver.counts().refused + receiver.deliveries.length, 0)
})

test('the log tells every attempt of a delivery', async (t) => {
  const { subscribe, subscriptions, accountId, receiver, callWith, loop, drain, clock, list } = await open(t)
  const id = await subscribe('/all')
  receiver.script('/all', [{ status: 503, body: 'é'.repeat(3000) }, { wire: 'reset' }, { status: 201, body: 'thanks' }])
  const began = clock.now()
  const callId = await callWith(ended)
  loop.start()
  await receiver.next('call.ended')
  await drain()
  const pending = (await list(id)).data[0]
  t.match(pending, { status: 'pending', deliveredAt: null, nextAttemptAt: new Date(began + 5_000).toISOString() })
  for (const wait of [5_000, 60_000]) {
    clock.advance(wait)
    await receiver.next('call.ended')
    await drain()
  }
  const at = (ms: number) => new Date(began + ms).toISOString()
  const delivery = (await list(id)).data[0] as Delivery
  t.match(delivery, {
    subscriptionId: id,
    callId,
    eventType: 'call.ended',
    status: 'delivered',
    eventAt: at(0),
    nextAttemptAt: null,
    deliveredAt: at(65_000),
    attempts: [
      { attempt: 1, at: at(0), statusCode: 503, error: 'answered with status 503', responseExcerpt: 'é'.repeat(1024) },
      { attempt: 2, at: at(5_000), statusCode: null, error: /^transport: /, responseExcerpt: null },
      { attempt: 3, at: at(65_000), statusCode: 201, error: null, responseExcerpt: 'thanks' },
    ],
  })
  t.equal(delivery.attempts.length, 3)
  t.strictSame(await subscriptions.findDelivery(accountId, id, delivery.id as DeliveryId), delivery)
  t.equal(await subscriptions.findDelivery(newId<'account'>(), id, delivery.id as DeliveryId), null)
  t.equal(await subscriptions.findDelivery(accountId, newId<'subscription'>(), delivery.id as DeliveryId), null)
})

test('deliveries are listed newest first, a page at a time, by status and call', async (t) => {
  const { subscribe, callWith, list, sql } = await open(t)
  const id = await subscribe('/all')
  await subscribe('/other')
  const calls = []
  for (let count = 0; count < 5; count += 1) calls.push(await callWith(ended))
  await sql`update deliveries set status = 'exhausted' where call_id = ${calls[2] ?? ''}`
  const callsOf = (page: DeliveryPageData) => page.data.map(({ callId }) => callId as CallId)
  const first = await list(id, { limit: '2' })
  const second = await list(id, { limit: '2', cursor: first.nextCursor })
  const third = await list(id, { limit: '2', cursor: second.nextCursor })
  t.strictSame([first, second, third].flatMap(callsOf), calls.toReversed())
  t.equal(third.nextCursor, null)
  t.strictSame(callsOf(await list(id, { status: 'exhausted' })), [calls[2]])
  t.strictSame(callsOf(await list(id, { status: 'pending', callId: calls[2] })), [])
  t.strictSame(callsOf(await list(id, { callId: calls[4] })), [calls[4]])
  t.strictSame(callsOf(await list(id, { callId: 'nonsense' })), [])
})
type DeliveryPageData = { readonly data: readonly Delivery[] }

test('an exhausted delivery is sent again under its old id; any other is refused', async (t) => {
  const { subscribe, subscriptions, accountId, receiver, callWith, loop, drain, list, problemOf, sql, woken, clock } =
    await open(t)
  const id = await subscribe('/all')
  await callWith(ended)
  const eventId = (await list(id)).data[0]?.id as DeliveryId
  const resend = () => subscriptions.resend(accountId, id, eventId)
  t.match(await problemOf(resend()), { type: 'CONFLICT' }, 'pending')
  await sql`update deliveries set status = 'exhausted', attempts = 10 where id = ${eventId}`
  t.equal(await subscriptions.resend(newId<'account'>(), id, eventId), null)
  t.equal(await subscriptions.resend(accountId, id, newId<'delivery'>()), null)
  loop.start()
  clock.advance(day)
  const now = new Date(clock.now()).toISOString()
  t.equal(woken(), 0)
  t.match(await resend(), { id: eventId, status: 'pending', nextAttemptAt: now })
  t.equal(woken(), 1)
  t.match(await receiver.next('call.ended'), { eventId, attempt: 11 })
  await drain()
  t.match(await problemOf(resend()), { type: 'CONFLICT' }, 'delivered')
  t.match((await list(id)).data[0], { status: 'delivered', attempts: [{ attempt: 11 }] })
})

test('what is sent again does not overtake a later delivery that is under way', async (t) => {
  const { subscribe, subscriptions, accountId, callWith, list, sql, clock } = await open(t)
  const id = await subscribe('/all')
  await callWith(transcript, ended)
  const eventId = (await list(id)).data.find(({ eventType }) => eventType === 'call.tool_call')?.id as DeliveryId
  const until = clock.now() + 40_000
  await sql`update deliveries set status = 'exhausted' where id = ${eventId}`
  await sql`update deliveries set claimed_by = 'n', claimed_until = ${until} where event_type = 'call.ended'`
  const resent = await subscriptions.resend(accountId, id, eventId)
  t.equal(resent?.nextAttemptAt, new Date(until).toISOString())
})

test('three days without one success switch a subscription off; enabling it forgets them', async (t) => {
  const { subscribe, subscriptions, accountId, receiver, callWith, loop, drain, clock, standing, log, list } =
    await open(t)
  const id = await subscribe('/dead')
  const healthy = await subscribe('/healthy')
  loop.start()
  const began = clock.now()
  const fail = async () => {
    receiver.script('/dead', [{ status: 500 }])
    await callWith(ended)
    loop.wake()
    await receiver.next('call.ended', '/dead')
    await drain()
  }
  await fail()
  t.strictSame(await standing(id), { enabled: true, failingSince: began, disabledReason: null })
  clock.advance(5_000)
  await receiver.next('call.ended', '/dead')
  await drain()
  t.strictSame(await standing(id), { enabled: true, failingSince: null, disabledReason: null }, 'a success clears it')

  await fail()
  const since = clock.now()
  receiver.script('/dead', [{ status: 500 }], { forever: true })
  while (clock.now() < since + failingLimit - pollEvery) {
    clock.advance(Math.min(3_600_000, since + failingLimit - pollEvery - clock.now()))
    await drain()
  }
  t.strictSame(
    await standing(id),
    { enabled: true, failingSince: since, disabledReason: null },
    'not a moment too soon',
  )
  clock.advance(pollEvery)
  const last = await callWith(ended)
  loop.wake()
  await drain()
  t.strictSame(await standing(id), { enabled: false, failingSince: since, disabledReason: 'failing' })
  t.match(
    await subscriptions.find(accountId, id),
    { enabled: false, failingSince: toIso(since), disabledReason: 'failing' },
    'and its owner can read why',
  )
  t.notOk('failingSince' in ((await subscriptions.find(accountId, healthy)) ?? {}), 'a healthy one has nothing to tell')
  t.match(
    log.lines.find(({ message }) => message === 'webhook subscription disabled'),
    { fields: { subscriptionId: id, reason: 'failing' } },
  )
  clock.advance(5_000)
  await drain()
  t.match((await list(id, { callId: last })).data[0], {
    status: 'exhausted',
    attempts: [{ statusCode: 500 }, { statusCode: null, error: 'the subscription is disabled' }],
  })
  t.strictSame(await standing(healthy), { enabled: true, failingSince: null, disabledReason: null })

  t.match(await subscriptions.change(accountId, id, { url: receiver.url('/dead') }), { enabled: false })
  t.match(await subscriptions.change(accountId, id, { enabled: true }), { enabled: true })
  t.strictSame(await standing(id), { enabled: true, failingSince: null, disabledReason: null })
  await fail()
  t.match(await standing(id), { enabled: true, failingSince: clock.now() }, 'the days count anew')
})

test('410 says gone, whatever else came at the same time', async (t) => {
  const { subscribe, receiver, callWith, loop, drain, standing } = await open(t)
  const id = await subscribe('/gone')
  receiver.script('/gone', [{ status: 410 }, { status: 500 }, { status: 500 }])
  for (let count = 0; count < 3; count += 1) await callWith(ended)
  loop.start()
  await drain()
  t.match(await standing(id), { enabled: false, disabledReason: 'gone' })
})

test('finished deliveries and their log are forgotten after 30 days, in batches; pending ones never', async (t) => {
  const { subscribe, callWith, clock, sql, log } = await open(t)
  await subscribe('/all')
  const [old, pending] = [await callWith(ended), await callWith(ended)]
  await sql`update deliveries set status = 'delivered' where call_id = ${old}`
  await sql`
    insert into delivery_attempts (delivery_id, attempt, at, duration_ms) select id, 1, ${clock.now()}, 1 from deliveries`
  // More than one batch.
  await sql`
    insert into deliveries (id, account_id, subscription_id, call_id, event_type, body, event_at, created_at, status)
    select id || n, account_id, subscription_id, call_id, 'call.transcript', body, event_at, created_at, 'exhausted'
    from deliveries, generate_series(1, 2500) n where call_id = ${old}`
  clock.advance(keep.deliveries)
  const young = await callWith(ended)
  await sql`update deliveries set status = 'exhausted' where call_id = ${young}`
  const retention = createRetention({ sql, clock, log, keep })
  t.teardown(() => retention.close())
  const count = async () => (await sql`select from deliveries`).count
  await retention.idle()
  t.equal(await count(), 2503, 'not before their time')
  clock.advance(retentionEvery)
  await retention.idle()
  const left = await sql<{ callId: CallId }[]>`select call_id from deliveries order by seq`
  t.strictSame(
    left.map(({ callId }) => callId),
    [pending, young],
  )
  t.equal((await sql`select from delivery_attempts`).count, 1)
  t.equal((await sql`select from calls where id = ${old}`).count, 1, 'the call stays')
  await Promise.all([retention.close(), retention.close()])
  t.equal(clock.pending(), 0, 'no timer is left')
})
