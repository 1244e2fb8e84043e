/** The outbox and the loop that empties it: a real database, a real receiver, the hands of the clock in the test's hand. */
import { createSecretKey, randomBytes } from 'node:crypto'
import t, { test, type Test } from 'tap'
import { systemClock } from '../../app/clock.ts'
import {
  claimLease,
  closeGrace,
  createDeliveryLoop,
  pollEvery,
  staleAfter,
} from '../../actors/webhooks/delivery-loop.ts'
import { createLanes, lanesInAll, lanesOfQuick, lanesOfSlow, lanesOfUnknown } from '../../actors/webhooks/lanes.ts'
import { createWebhookSender } from '../../actors/webhooks/sender.ts'
import type { SubscribedType } from '../../model/events.ts'
import type { AccountId, CallId, NodeId, SubscriptionId } from '../../model/ids.ts'
import { claimDue, enqueueDeliveries, giveUpStale, type Claim, type OutboxEvent } from '../../store/deliveries.ts'
import { resendDelivery } from '../../store/delivery-log.ts'
import { recordAttempts, type AttemptRecord } from '../../store/delivery-verdicts.ts'
import { createSecretBox } from '../../store/secret-box.ts'
import { connect } from '../../store/sql.ts'
import { changeSubscription, createSubscription, deleteSubscription } from '../../store/subscriptions.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRandom } from '../fake/random.ts'
import { createTenant, newId } from '../scenes/tenant.ts'
import { openFakeWebhookReceiver } from '../fake/webhook-receiver.ts'
import { countPending } from '../scenes/count-pending.ts'

const ts = '2026-03-01T12:00:00.000Z'
const statusUpdate = (callId: CallId, status: 'queued' | 'ringing' | 'in_progress' | 'completed'): OutboxEvent => ({
  type: 'call.status_update',
  data: { callId, status, providerStatus: null, ts },
})
const transcript = (callId: CallId, turnIndex: number): OutboxEvent => ({
  type: 'call.transcript',
  data: {
    callId,
    turnIndex,
    role: 'user',
    text: `Grüß Gott ${turnIndex}`,
    isFinal: true,
    confidence: null,
    source: null,
    ts,
  },
})
const ended = (callId: CallId): OutboxEvent => ({
  type: 'call.ended',
  data: { callId, status: 'completed', accountId: 'a', workerId: 'w', recordingAvailable: false },
})

type Row = {
  id: string
  subscriptionId: SubscriptionId
  callId: CallId
  eventType: string
  body: string
  status: string
  attempts: number
  runAt: number
  claimedBy: string | null
  lastStatusCode: number | null
  lastError: string | null
}

const attemptOf = (over: Partial<AttemptRecord>, at: number): AttemptRecord => ({
  id: '' as AttemptRecord['id'],
  attempt: 1,
  at,
  durationMs: 7,
  statusCode: null,
  error: null,
  responseExcerpt: null,
  verdict: 'retry',
  runAt: over.verdict === undefined || over.verdict === 'retry' ? at : null,
  ...over,
})

const database = openTestDatabase(t)
const box = createSecretBox(createSecretKey(randomBytes(32)))

/** An account of its own in the one database of this file, a receiver, a clock, and loops on demand. */
async function open(t: Test) {
  const { sql, server } = await database
  // Deliveries of the tests before are nobody's business here.
  await sql`delete from deliveries`
  const clock = createHandClock()
  const log = createQuietLog()
  const receiver = await openFakeWebhookReceiver(t)
  const sender = createWebhookSender({ allowHosts: ['127.0.0.1'], log, clock: { ...systemClock, now: clock.now } })
  t.teardown(() => sender.close())
  const tenant = await createTenant(sql, { slug: newId() })

  return {
    ...tenant,
    sql,
    clock,
    log,
    receiver,
    openLoop: (own = sql) => {
      const nodeId = newId<'node'>()
      const loop = createDeliveryLoop({ sql: own, box, sender, clock, nodeId, log, random: () => 0.5 })
      t.teardown(() => loop.close())
      return Object.assign(loop, { nodeId })
    },
    connectAgain: () => {
      const own = connect({ server, applicationName: 'second node', maxConnections: 4 })
      t.teardown(() => own.end({ timeout: 1 }))
      return own
    },
    subscribe: async (
      path: string,
      eventType: SubscribedType = '*',
      over: { workerId?: string; enabled?: boolean } = {},
    ) => {
      const request = { eventType, url: receiver.url(path), ...over }
      const now = clock.now()
      const made = await createSubscription(sql, box, { accountId: tenant.accountId, request, newId, now })
      receiver.trust(path, made.signingSecret ?? '')
      return made.id as SubscriptionId
    },
    call: async (): Promise<CallId> => {
      const [id, { accountId, workerId }] = [newId<'call'>(), tenant]
      await sql`
        insert into calls (id, account_id, worker_id, session_id, direction, transport, progress, snapshot)
        values (${id}, ${accountId}, ${workerId}, ${id}, 'outbound', 'webrtc', 'queued', '{}')`
      return id
    },
    enqueue: (callId: CallId, ...events: OutboxEvent[]) =>
      sql.begin((tx) => enqueueDeliveries(tx, { ...tenant, callId, events, now: clock.now(), newId })),
    rows: () => sql<Row[]>`
      select d.*, a.status_code as last_status_code, a.error as last_error from deliveries d left join lateral (
        select * from delivery_attempts where delivery_id = d.id order by attempt desc limit 1) a on true
      order by seq`,
    record: (over: Partial<AttemptRecord>, staleBefore = 0) =>
      recordAttempts(sql, [attemptOf(over, clock.now())], { now: clock.now(), staleBefore }),
    claim: (nodeId: NodeId, over: { limit?: number; perSubscription?: number; rooms?: Claim['rooms'] } = {}) =>
      claimDue(sql, {
        nodeId,
        now: clock.now(),
        limit: 10,
        lease: claimLease,
        perSubscription: 10,
        rooms: new Map(),
        ...over,
      }),
    /** Until nothing is due; what waits for a retry is left. */
    drain: async () => {
      while ((await countPending(sql, { callId: null, now: clock.now() })).due > 0) continue
    },
  }
}

test('an event is written once for each enabled subscription that matches it, body to the letter, in order', async (t) => {
  const { subscribe, call, enqueue, rows, workerId, sql, accountId } = await open(t)
  const other = await createTenant(sql, { slug: newId() })
  const all = await subscribe('/all')
  const endings = await subscribe('/ended', 'call.ended', { workerId })
  await subscribe('/hook', 'call.worker_request')
  await subscribe('/disabled', '*', { enabled: false })
  await t.rejects(subscribe('/foreign', '*', { workerId: other.workerId }), /does not exist/)
  const callId = await call()
  await enqueue(callId, transcript(callId, 0), ended(callId))
  const written = await rows()
  t.equal(written[0]?.eventType, 'call.transcript')
  t.strictSame(
    new Set(written.map((row) => `${row.eventType} ${row.subscriptionId}`)),
    new Set([`call.transcript ${all}`, `call.ended ${endings}`, `call.ended ${all}`]),
  )
  t.equal(written.length, 3)
  const first = transcript(callId, 0)
  t.equal(written[0]?.body, JSON.stringify({ type: first.type, data: first.data }))
  await changeSubscription(sql, box, { accountId, id: all, change: { enabled: false }, now: 1 })
  await enqueue(callId, transcript(callId, 1))
  t.equal((await rows()).length, 3, 'nobody is left who takes it')
})

test('what a node writes whose clock is ten minutes ahead is due at once for the others', async (t) => {
  const { sql, accountId, workerId, subscribe, call } = await open(t)
  await subscribe('/all')
  const callId = await call()
  const [now, events] = [Date.now(), [transcript(callId, 0)]]
  await sql.begin((tx) => enqueueDeliveries(tx, { accountId, workerId, callId, events, now: now + 600_000, newId }))
  const claim = { nodeId: newId<'node'>(), limit: 10, lease: claimLease, perSubscription: 10, rooms: new Map() }
  t.equal((await claimDue(sql, { ...claim, now: now + 5_000 })).length, 1)
})

test('nothing gets behind call.ended, and events of one call from several transactions keep one order', async (t) => {
  const { subscribe, call, enqueue, rows, sql, accountId, workerId } = await open(t)
  await subscribe('/all')
  const callId = await call()
  const [locked, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const ending = sql.begin(async (tx) => {
    await enqueueDeliveries(tx, { accountId, workerId, callId, events: [ended(callId)], now: 1, newId })
    locked.resolve()
    await release.promise
  })
  await locked.promise
  const late = enqueue(callId, transcript(callId, 1))
  release.resolve()
  await Promise.all([ending, late])
  await enqueue(callId, transcript(callId, 2), ended(callId))
  t.strictSame(
    (await rows()).map(({ eventType }) => eventType),
    ['call.ended'],
  )
  const other = await call()
  await enqueue(other, transcript(other, 0), ended(other), transcript(other, 1))
  t.equal((await rows()).filter((row) => row.callId === other).length, 2, 'nor in the same breath')
})

test('a subscription that is removed while an event is written for it harms nobody', async (t) => {
  const { subscribe, call, rows, sql, accountId, workerId } = await open(t)
  const id = await subscribe('/removed')
  await subscribe('/stays')
  const callId = await call()
  let removing: Promise<boolean> | undefined
  await sql.begin(async (tx) => {
    await enqueueDeliveries(tx, { accountId, workerId, callId, events: [transcript(callId, 0)], now: 1, newId })
    removing = deleteSubscription(sql, accountId, id)
    await enqueueDeliveries(tx, { accountId, workerId, callId, events: [ended(callId)], now: 1, newId })
  })
  t.equal(await removing, true)
  t.equal((await rows()).length, 2, 'its deliveries go with it')
})

test('what comes back of a delivery whose subscription has been removed is let go', async (t) => {
  const { subscribe, call, enqueue, rows, receiver, openLoop, sql, accountId, log, drain } = await open(t)
  const id = await subscribe('/removed')
  await subscribe('/stays')
  receiver.script('/removed', [{ status: 200, held: true }])
  const callId = await call()
  await enqueue(callId, ended(callId))
  openLoop().start()
  await receiver.next('call.ended', '/removed')
  t.equal(await deleteSubscription(sql, accountId, id), true)
  receiver.release()
  await drain()
  t.strictSame(
    (await rows()).map(({ status }) => status),
    ['delivered'],
  )
  t.strictSame(
    log.lines.filter(({ level }) => level === 'error'),
    [],
  )
})

test('call.ended is written once per call and subscription, whatever happens', async (t) => {
  const { subscribe, call, enqueue, rows, sql, accountId, workerId } = await open(t)
  await subscribe('/a')
  await subscribe('/b', 'call.ended')
  const callId = await call()
  await Promise.all([enqueue(callId, ended(callId)), enqueue(callId, ended(callId)), enqueue(callId, ended(callId))])
  await enqueue(callId, ended(callId))
  t.equal((await rows()).length, 2)
  const rolledBack = sql.begin(async (tx) => {
    const other = await call()
    await enqueueDeliveries(tx, { accountId, workerId, callId: other, events: [ended(other)], now: 1, newId })
    throw new Error('rolled back')
  })
  await t.rejects(rolledBack, /rolled back/)
  t.equal((await rows()).length, 2, 'and it lives and dies with the transaction of the call')
})

test('a delivery arrives signed, with its headers, and is recorded', async (t) => {
  const { subscribe, call, enqueue, rows, receiver, openLoop, accountId, clock, drain } = await open(t)
  await subscribe('/all')
  const callId = await call()
  const loop = openLoop()
  loop.start()
  await enqueue(callId, statusUpdate(callId, 'queued'))
  loop.wake()
  const { headers, data, eventId } = await receiver.next('call.status_update')
  await drain()
  t.match(data, { callId, status: 'queued' })
  const [row] = await rows()
  t.match(row, { id: eventId, status: 'delivered', attempts: 1, lastStatusCode: 200, claimedBy: null })
  t.match(headers, {
    'content-type': 'application/json',
    'x-service-event': 'call.status_update',
    'x-service-event-id': eventId,
    'x-service-timestamp': new Date(clock.now()).toISOString(),
    'x-service-delivery': 'async',
    'x-service-account-id': accountId,
    'x-service-attempt': '1',
    'webhook-id': eventId,
  })
})

test('deliveries are found by the poll when nobody wakes the loop', async (t) => {
  const { subscribe, call, enqueue, receiver, openLoop, clock, drain } = await open(t)
  await subscribe('/all')
  const callId = await call()
  const loop = openLoop()
  loop.start()
  await drain()
  await enqueue(callId, ended(callId))
  clock.advance(pollEvery)
  await receiver.next('call.ended')
})

test('the deliveries of one call to one subscription go in order, one at a time; a failing one holds up what stands behind it', async (t) => {
  const { subscribe, call, enqueue, rows, receiver, openLoop, clock, drain } = await open(t)
  await subscribe('/all')
  receiver.script('/all', [{ status: 500 }, { status: 500, headers: { 'retry-after': '20' } }])
  const callId = await call()
  await enqueue(callId, statusUpdate(callId, 'queued'), transcript(callId, 0), ended(callId))
  const loop = openLoop()
  loop.start()
  const first = await receiver.next()
  // The two behind it are due, and stay where they are.
  while ((await rows())[0]?.runAt === clock.now()) continue
  t.equal((await rows())[0]?.runAt, clock.now() + 2_000)
  clock.advance(2_000)
  const second = await receiver.next()
  t.equal(second.eventId, first.eventId, 'the event id stays the same over retries')
  t.strictSame([first.attempt, second.attempt], [1, 2])
  while ((await rows())[0]?.runAt === clock.now() || (await rows())[0]?.claimedBy) continue
  t.equal((await rows())[0]?.runAt, clock.now() + 20_000, 'Retry-After')
  t.equal(receiver.deliveries.length, 2)
  clock.advance(20_000)
  await receiver.next('call.ended')
  await drain()
  t.strictSame(
    receiver.deliveries.map(({ type }) => type),
    ['call.status_update', 'call.status_update', 'call.status_update', 'call.transcript', 'call.ended'],
  )
  t.strictSame(new Set((await rows()).map(({ status }) => status)), new Set(['delivered']))
})

test('two loops on one database send every delivery in order and never twice, also with failures', async (t) => {
  const { subscribe, call, enqueue, rows, receiver, openLoop, connectAgain, clock, sql } = await open(t)
  const seed = 20_260_301
  const random = createRandom(seed)
  let failures = 0
  for (const path of ['/a', '/b', '/c']) {
    await subscribe(path)
    const statuses = Array.from({ length: 60 }, () => (random.next() < 0.2 ? 500 : 200))
    failures += statuses.filter((status) => status === 500).length
    receiver.script(
      path,
      statuses.map((status) => ({ status })),
    )
  }
  const calls = await Promise.all(Array.from({ length: 10 }, call))
  const loops = [openLoop(), openLoop(connectAgain())]
  for (const loop of loops) loop.start()
  await Promise.all(
    calls.map(async (callId) => {
      for (let turn = 0; turn < 6; turn += 1) {
        await enqueue(callId, transcript(callId, turn))
        loops[turn % 2]?.wake()
      }
      await enqueue(callId, ended(callId))
    }),
  )
  for (let rounds = 0; rounds < 5_000; rounds += 1) {
    const { due, waiting } = await countPending(sql, { callId: null, now: clock.now() })
    if (due + waiting === 0) break
    // Time stands still while anything is under way, so that a slow machine lets no lease run out.
    if (due === 0) clock.advance(pollEvery)
    else loops[rounds % 2]?.wake()
  }
  const written = await rows()
  t.equal(written.length, 10 * 7 * 3)
  t.strictSame(new Set(written.map(({ status }) => status)), new Set(['delivered']), `seed ${seed}`)
  t.equal(receiver.deliveries.length, written.length + failures, 'one 200 for each')
  const attempts = receiver.deliveries.map(({ eventId, attempt }) => `${eventId} ${attempt}`)
  t.equal(new Set(attempts).size, attempts.length, 'no attempt twice')
  t.equal(receiver.overlaps(), 0, 'one at a time')
  for (const callId of calls)
    for (const path of ['/a', '/b', '/c']) {
      const lane = receiver.deliveries.filter(
        ({ data, path: to }) => to === path && (data as { callId: string }).callId === callId,
      )
      const order = [...new Set(lane.map(({ eventId }) => eventId))]
      t.strictSame(
        order
          .map((id) => lane.find(({ eventId }) => eventId === id)?.data)
          .map((data) => (data as { turnIndex?: number }).turnIndex ?? 'ended'),
        [0, 1, 2, 3, 4, 5, 'ended'],
      )
    }
})

test('what a dead node held is sent by another when the claim has run out, and the dead one can spoil nothing any more', async (t) => {
  const { subscribe, call, enqueue, rows, receiver, openLoop, clock, claim, record, drain } = await open(t)
  await subscribe('/all')
  const callId = await call()
  await enqueue(callId, transcript(callId, 0), ended(callId))
  const [dead] = await claim(newId<'node'>())
  t.equal(dead?.attempt, 1)
  t.equal((await claim(newId<'node'>())).length, 0, 'the lane is held')
  const loop = openLoop()
  loop.start()
  clock.advance(claimLease - 1)
  t.equal(receiver.deliveries.length, 0)
  clock.advance(pollEvery)
  const arrived = await receiver.next()
  t.match(arrived, { eventId: dead?.id, attempt: 2 })
  await receiver.next('call.ended')
  await drain()
  await record({ id: dead?.id as never, error: 'timeout' })
  t.strictSame(
    (await rows()).map(({ status }) => status),
    ['delivered', 'delivered'],
  )
})

test('a 2xx counts even when the claim has passed to another node', async (t) => {
  const { subscribe, call, enqueue, rows, clock, claim, record } = await open(t)
  await subscribe('/all')
  const callId = await call()
  await enqueue(callId, ended(callId))
  const [slow] = await claim(newId<'node'>())
  clock.advance(claimLease)
  const [again] = await claim(newId<'node'>())
  t.equal(again?.id, slow?.id)
  await record({ id: slow?.id as never, statusCode: 200, verdict: 'delivered' })
  await record({ id: slow?.id as never, attempt: 2, statusCode: 500 })
  t.match(
    (await rows())[0],
    { status: 'delivered', lastStatusCode: 500 },
    'the second attempt is in the log all the same',
  )
})

test('a batch that holds two attempts of one delivery, and comes twice, leaves one verdict and one line for each', async (t) => {
  const { subscribe, call, enqueue, rows, clock, claim, sql } = await open(t)
  await subscribe('/all')
  const [first, second] = [await call(), await call()]
  await enqueue(first, ended(first))
  await enqueue(second, ended(second))
  const claimed = await claim(newId<'node'>())
  clock.advance(claimLease)
  await claim(newId<'node'>())
  const [taken, lost] = claimed.map(({ id }) => id)
  const records = [
    attemptOf({ id: lost as never, attempt: 2, error: 'no' }, clock.now()),
    attemptOf({ id: taken as never, attempt: 2, error: 'no' }, clock.now()),
    attemptOf({ id: taken as never, attempt: 1, verdict: 'delivered', statusCode: 200 }, clock.now()),
    attemptOf({ id: newId<'delivery'>(), attempt: 1 }, clock.now()),
  ]
  for (let times = 0; times < 2; times += 1) await recordAttempts(sql, records, { now: clock.now(), staleBefore: 0 })
  const statuses = new Map((await rows()).map(({ id, status }) => [id, status]))
  t.strictSame([statuses.get(taken ?? ''), statuses.get(lost ?? '')], ['delivered', 'pending'])
  t.equal((await sql`select from delivery_attempts`).count, 3)
})

test('a claim takes no more of one subscription than its share, and passes over the ones that have enough', async (t) => {
  const { subscribe, call, enqueue, claim } = await open(t)
  const greedy = await subscribe('/greedy')
  for (let count = 0; count < 30; count += 1) {
    const callId = await call()
    await enqueue(callId, ended(callId))
  }
  const modest = await subscribe('/modest')
  const callId = await call()
  await enqueue(callId, ended(callId))
  const node = newId<'node'>()
  const full = await claim(node, { limit: 2, rooms: new Map([[greedy, 0]]) })
  t.strictSame(
    full.map(({ subscriptionId }) => subscriptionId),
    [modest],
    'behind a long queue',
  )
  const taken = await claim(node, { perSubscription: 3 })
  t.strictSame(
    taken.map(({ subscriptionId }) => subscriptionId),
    [greedy, greedy, greedy],
  )
  t.equal((await claim(node, { rooms: new Map([[greedy, 1]]) })).length, 1, 'or what it has room for')
  t.equal((await claim(node, { perSubscription: 50, limit: 7 })).length, 7, 'and no more than the limit in all')
})

test('what stands behind another of its lane is found by a claim once, and is due as soon as that one has ended, however it ended', async (t) => {
  const { subscribe, call, enqueue, rows, claim, record, clock, sql } = await open(t)
  await subscribe('/all')
  const callId = await call()
  const behind = async () => (await sql`select behind from deliveries order by seq`).map((row) => row['behind'])
  const node = newId<'node'>()
  await enqueue(callId, transcript(callId, 0), transcript(callId, 1), transcript(callId, 2), ended(callId))
  const [first, , third] = (await rows()).map(({ id }) => id) as AttemptRecord['id'][]
  t.strictSame(
    (await claim(node)).map(({ id }) => id),
    [first],
  )
  t.strictSame(await behind(), [false, true, true, true])
  await record({ id: first as never, runAt: clock.now() + 1_000 })
  t.strictSame(await claim(node), [], 'while it is to be tried again, the lane waits')
  t.strictSame(await behind(), [false, true, true, true])
  await record({ id: first as never, verdict: 'delivered' })
  t.strictSame(await behind(), [false, false, true, true])
  clock.advance(staleAfter + 1)
  t.equal(await giveUpStale(sql, { before: clock.now() - staleAfter, now: clock.now() }), 2)
  t.strictSame(
    await behind(),
    [false, false, false, false],
    'call.ended is the head now, and what has ended is behind nothing',
  )
  const { accountId, subscriptionId } = (
    await sql<{ accountId: AccountId; subscriptionId: SubscriptionId }[]>`
    select account_id, subscription_id from deliveries limit 1`
  )[0] as never
  t.equal(await resendDelivery(sql, { accountId, subscriptionId, id: third as never, now: clock.now() }), true)
  t.strictSame(
    (await claim(node)).map(({ id }) => id),
    [third],
    'one that is sent again is at its old place',
  )
  t.strictSame(await behind(), [false, false, false, true])
  await record({ id: third as never, verdict: 'exhausted' })
  t.equal((await claim(node))[0]?.eventType, 'call.ended')
})

test('a delivery ends in one transaction while another one looks at the lane or writes to it: nothing is left behind for ever', async (t) => {
  const { subscribe, call, enqueue, rows, claim, clock, sql, connectAgain, accountId, workerId } = await open(t)
  await subscribe('/all')
  const node = newId<'node'>()
  const delivered = (on: typeof sql, id: string | undefined) =>
    recordAttempts(on, [attemptOf({ id: id as never, verdict: 'delivered' }, clock.now())], {
      now: clock.now(),
      staleBefore: 0,
    })
  const callId = await call()
  await enqueue(callId, transcript(callId, 0), transcript(callId, 1))
  const [head, next] = await claim(node).then(rows)
  await sql`update deliveries set behind = false`
  const own = connectAgain()
  await own.begin(async (tx) => {
    await delivered(tx as never, head?.id)
    t.strictSame(await claim(node), [], 'the head is ending: who stands behind it is neither claimed nor marked')
    await enqueue(callId, transcript(callId, 2))
  })
  t.strictSame(
    (await claim(node)).map(({ id }) => id),
    [next?.id],
  )

  const writing = await call()
  await enqueue(writing, transcript(writing, 0))
  const [only] = await claim(node)
  await own.begin(async (tx) => {
    const events = [transcript(writing, 1)]
    await enqueueDeliveries(tx, { accountId, workerId, callId: writing, events, now: clock.now(), newId })
    await delivered(sql, only?.id)
  })
  t.strictSame(
    (await claim(node)).map((claimed) => claimed.callId),
    [writing],
    'what was written meanwhile',
  )

  const marking = await call()
  await enqueue(marking, transcript(marking, 0), transcript(marking, 1))
  let ending: Promise<void> | undefined
  let marked: { callId: CallId }[] = []
  await own.begin(async (tx) => {
    marked = await claimDue(tx as never, {
      nodeId: node,
      now: clock.now(),
      limit: 9,
      lease: 1,
      perSubscription: 9,
      rooms: new Map(),
    })
    ending = delivered(sql, (await rows()).find((row) => row.callId === marking)?.id)
    const waits = async () =>
      (await sql`select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`).length >
      0
    while (!(await waits())) continue
  })
  t.equal(marked.length, 1)
  await ending
  t.strictSame(
    (await claim(node)).map((claimed) => claimed.callId),
    [marking],
    'what was marked meanwhile',
  )
})

test('an endpoint that hangs does not delay another', async (t) => {
  const { subscribe, call, enqueue, rows, receiver, openLoop, clock, drain } = await open(t)
  const hanging = await subscribe('/hangs')
  const healthy = await subscribe('/healthy')
  receiver.script('/hangs', [{ wire: 'hang' }], { forever: true })
  const calls = await Promise.all(Array.from({ length: 40 }, call))
  for (const callId of calls) await enqueue(callId, transcript(callId, 0), ended(callId))
  const loop = openLoop()
  loop.start()
  await Promise.all(calls.map(() => receiver.next('call.ended', '/healthy')))
  const isDone = async () => (await rows()).every((row) => row.subscriptionId === hanging || row.status === 'delivered')
  while (!(await isDone())) continue
  const held = (await rows()).filter(({ claimedBy }) => claimedBy === loop.nodeId)
  t.ok(held.length === lanesOfUnknown, `${held.length} are held`)
  t.ok(held.every(({ subscriptionId }) => subscriptionId === hanging))
  t.equal((await rows()).filter(({ subscriptionId }) => subscriptionId === healthy).length, 80)

  const closing = loop.close()
  // The grace begins when the loop has stopped claiming.
  while (clock.pending() === 0) await new Promise(setImmediate)
  clock.advance(closeGrace)
  await closing
  const left = (await rows()).filter(({ subscriptionId }) => subscriptionId === hanging)
  t.ok(
    left.every(({ status, claimedBy }) => status === 'pending' && claimedBy === null),
    'and close releases what it held',
  )
  t.equal(clock.pending(), 0, 'no timer is left')

  receiver.script('/hangs', [{ status: 200 }], { forever: true })
  openLoop().start()
  await drain()
  t.ok(
    (await rows()).every(({ status }) => status === 'delivered'),
    'which another node sends at once',
  )
})

test('close lets an answer that is under way arrive and records it', async (t) => {
  const { subscribe, call, enqueue, rows, receiver, openLoop, clock } = await open(t)
  await subscribe('/all')
  receiver.script('/all', [{ status: 200, held: true }])
  const callId = await call()
  await enqueue(callId, transcript(callId, 0), ended(callId))
  const loop = openLoop()
  loop.start()
  await receiver.next()
  const closing = Promise.all([loop.close(), loop.close()])
  receiver.release()
  await closing
  t.strictSame(
    (await rows()).map(({ status }) => status),
    ['delivered', 'pending'],
    'and begins nothing new',
  )
  loop.wake()
  loop.start()
  clock.advance(10 * pollEvery)
  t.equal(clock.pending(), 0)
  t.equal(receiver.deliveries.length, 1)
})

test('410 disables the subscription at once, and nothing more is sent there', async (t) => {
  const { subscribe, call, enqueue, rows, receiver, openLoop, sql, drain } = await open(t)
  const id = await subscribe('/gone')
  receiver.script('/gone', [{ status: 410 }])
  const callId = await call()
  await enqueue(callId, transcript(callId, 0), ended(callId))
  openLoop().start()
  await drain()
  t.strictSame(
    (await rows()).map(({ status, lastStatusCode, lastError }) => [status, lastStatusCode, lastError]),
    [
      ['exhausted', 410, 'answered with status 410'],
      ['exhausted', null, 'the subscription is disabled'],
    ],
  )
  t.equal(receiver.deliveries.length, 1)
  t.strictSame(
    await sql`select enabled from webhook_subscriptions where id = ${id}`.then((found) => found[0]?.['enabled']),
    false,
  )
})

test('410 of an address that the subscription has no more switches nothing off: the new one is asked', async (t) => {
  const { subscribe, call, enqueue, rows, receiver, openLoop, sql, drain } = await open(t)
  const id = await subscribe('/moved')
  receiver.script('/moved', [{ status: 410, held: true }])
  const callId = await call()
  await enqueue(callId, ended(callId))
  openLoop().start()
  await receiver.next('call.ended', '/moved')
  await sql`update webhook_subscriptions set url = ${`${receiver.url('/moved')}#now`} where id = ${id}`
  receiver.release()
  await drain()
  const [moved] = await sql`select enabled, disabled_reason from webhook_subscriptions where id = ${id}`
  t.strictSame({ ...moved }, { enabled: true, disabledReason: null })
  t.match(await rows(), [{ status: 'delivered', attempts: 2 }])
})

test('a transcript is given up after four attempts, and the rest of the call follows in order', async (t) => {
  const { subscribe, call, enqueue, rows, receiver, openLoop, clock, drain, sql } = await open(t)
  await subscribe('/all')
  receiver.script('/all', Array(4).fill({ status: 503, body: 'busy\0' }))
  const callId = await call()
  await enqueue(callId, transcript(callId, 0), transcript(callId, 1))
  openLoop().start()
  for (const wait of [2_000, 4_000, 9_000]) {
    await receiver.next('call.transcript')
    await drain()
    clock.advance(wait - 1)
    await enqueue(callId, statusUpdate(callId, 'in_progress'))
    clock.advance(1 + pollEvery)
  }
  await receiver.next('call.transcript')
  await enqueue(callId, ended(callId))
  await receiver.next('call.ended')
  await drain()
  t.strictSame(
    (await rows()).map(({ eventType, status }) => `${eventType} ${status}`),
    [
      'call.transcript exhausted',
      'call.transcript delivered',
      'call.status_update delivered',
      'call.status_update delivered',
      'call.status_update delivered',
      'call.ended delivered',
    ],
  )
  t.match((await rows())[0], { attempts: 4, lastStatusCode: 503, lastError: 'answered with status 503' })
  const log = await sql<{ attempt: number; responseExcerpt: string }[]>`
    select attempt, response_excerpt from delivery_attempts where delivery_id = ${(await rows())[0]?.id ?? ''} order by attempt`
  t.strictSame(
    [...log],
    [1, 2, 3, 4].map((attempt) => ({ attempt, responseExcerpt: 'busy' })),
  )
})

test('a dead endpoint holds up call.ended for about a minute, not for a minute per event', async (t) => {
  const { subscribe, call, enqueue, rows, receiver, openLoop, clock, sql } = await open(t)
  await subscribe('/dead')
  receiver.script('/dead', [{ status: 500 }], { forever: true })
  const callId = await call()
  await enqueue(callId, ...Array.from({ length: 20 }, (_, turn) => transcript(callId, turn)), ended(callId))
  const began = clock.now()
  openLoop().start()
  const isTried = async () => ((await rows()).at(-1)?.attempts ?? 0) > 0
  while (!(await isTried())) {
    if ((await countPending(sql, { callId: null, now: clock.now() })).due === 0) clock.advance(pollEvery)
  }
  t.ok(clock.now() - began < 80_000, `after ${clock.now() - began} ms`)
  const statuses = (await rows()).slice(0, 20).map(({ status }) => status)
  t.strictSame(new Set(statuses), new Set(['exhausted']))
})

test('what grew too old behind a delivery that is given up goes with it, younger events and call.ended stay', async (t) => {
  const { subscribe, call, enqueue, rows, clock, claim, record } = await open(t)
  await subscribe('/slow')
  const [callId, other] = [await call(), await call()]
  await enqueue(callId, transcript(callId, 0), transcript(callId, 1))
  await enqueue(other, transcript(other, 0))
  clock.advance(1)
  const young = clock.now()
  await enqueue(callId, transcript(callId, 2), ended(callId))
  const head = (await claim(newId<'node'>())).find((claimed) => claimed.callId === callId)
  await record({ id: head?.id as never, statusCode: 500, error: 'no', verdict: 'exhausted' }, young)
  t.strictSame(
    (await rows()).map(({ status, attempts, lastError }) => [status, attempts, lastError]),
    [
      ['exhausted', 1, 'no'],
      ['exhausted', 0, null],
      ['pending', 1, null],
      ['pending', 0, null],
      ['pending', 0, null],
    ],
  )
})

test('the queue of an endpoint that never keeps up is ended, call.ended excepted', async (t) => {
  const { subscribe, call, enqueue, rows, clock, sql, claim } = await open(t)
  await subscribe('/slow')
  const callId = await call()
  await enqueue(callId, transcript(callId, 0), ended(callId))
  const other = await call()
  await enqueue(other, transcript(other, 0))
  const sweep = () => giveUpStale(sql, { before: clock.now() - staleAfter, now: clock.now() })
  clock.advance(staleAfter)
  t.equal(await sweep(), 0, 'not yet')
  clock.advance(1)
  const [held] = await claim(newId<'node'>(), { limit: 1 })
  t.equal(await sweep(), 1, 'what is being sent is left alone')
  const statusOf = new Map((await rows()).map((row) => [row.id, row.status]))
  t.equal(statusOf.get(held?.id ?? ''), 'pending')
  t.equal((await rows()).find(({ eventType }) => eventType === 'call.ended')?.status, 'pending')
})

test('a subscription whose endpoint was slow has few lanes until it answers quickly again, a quick one many while most are free', async (t) => {
  const lanes = createLanes()
  const [slow, quick, unknown] = [newId<'subscription'>(), newId<'subscription'>(), newId<'subscription'>()]
  const { promise, resolve } = Promise.withResolvers<void>()
  let ended = 0
  const begin = (id: SubscriptionId, count: number) => {
    for (let lane = 0; lane < count; lane += 1) lanes.run(id, promise, () => (ended += 1))
  }
  lanes.judge(slow, 10_000)
  begin(slow, lanesOfUnknown)
  begin(unknown, 1)
  lanes.judge(quick, 50)
  const rooms = () => [slow, quick, unknown].map((id) => lanes.rooms().get(id))
  t.strictSame(
    rooms(),
    [0, lanesOfQuick, lanesOfUnknown - 1],
    'more may be under way than its share when it slows down',
  )
  lanes.judge(slow, 50)
  t.strictSame(rooms(), [lanesOfQuick - lanesOfUnknown, lanesOfQuick, lanesOfUnknown - 1])
  begin(newId<'subscription'>(), lanesInAll / 2)
  t.strictSame(rooms(), [0, lanesOfUnknown, lanesOfUnknown - 1], 'what is left is for everybody')
  t.equal(lanes.room(), lanesInAll / 2 - lanesOfUnknown - 1)
  lanes.judge(unknown, 10_000)
  t.equal(rooms()[2], lanesOfSlow - 1)
  begin(unknown, lanesOfSlow - 1)
  t.equal(rooms()[2], 0)
  resolve()
  await lanes.idle()
  t.equal(ended, lanesInAll / 2 + lanesOfUnknown + lanesOfSlow)
  t.equal(lanes.room(), lanesInAll)
})
