/**
 * Two nodes of the service on one database and one NATS server: what a client does over one of them holds on the other at once, and they share
 * the work without doing any of it twice.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { startParley, type Parley } from '../../app/parley.ts'
import { createApiKey } from '../../store/api-keys.ts'
import type { Sql } from '../../store/sql.ts'
import { configOn } from '../scenes/config-on.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { natsServerPaths, startNatsServer } from '../peers/nats-server.ts'
import { createQuietLog, type QuietLog } from '../fake/quiet-log.ts'
import { createScriptedEngine } from '../fake/scripted-engine.ts'
import { createCallingTenant } from '../scenes/telephony.ts'
import { newId } from '../scenes/tenant.ts'
import { needsTool } from '../peers/tools.ts'
import { openFakeWebhookReceiver } from '../fake/webhook-receiver.ts'
import { until } from '../scenes/in-time.ts'

type Fields = Readonly<Record<string, unknown>>
type Answer = { readonly status: number; readonly body: Fields }
type Node = { readonly service: Parley; readonly log: QuietLog }
type Place = { readonly t: Test; readonly nodes: readonly [Node, Node]; readonly sql: Sql }
type Ask = (node: Node, method: string, path: string, body?: unknown, headers?: Fields) => Promise<Answer>

const hookAnswer = { status: 200, body: '{}' } as const

test('two nodes of the service on one database and one bus', { timeout: 100_000 }, async (t) => {
  const program = needsTool(t, 'nats-server', natsServerPaths)
  if (!program) return
  const { nodes, sql } = await openNodes(t, program)
  const flow = (sentence: string, run: (place: Place) => Promise<void>) =>
    t.test(sentence, (inner) => run({ t: inner as Test, nodes, sql }))

  await flow('a key that is revoked over one node is good for nothing on the other', revokesKeys)
  await flow('one Idempotency-Key sent to both at the same moment makes one call and gives one answer', answersOnce)
  await flow('a call is canceled, or hung up, over the node that it is not on', endsCallsOfTheOther)
  await flow('every event of many calls is sent once, in the order of its lane, call.ended last', deliversOnce)
  await flow('the last places of an account are given away once, whoever asks which node', givesPlacesOnce)
  await flow('both place the calls of one queue, in its order and never more than the worker may have', sharesQueue)
  await flow('when one is stopped in order the other places what waits: nothing lost, nothing twice', leavesQueue)

  const errors = nodes.flatMap(({ log }) => log.lines.filter(({ level }) => level === 'error'))
  t.same(errors, [], 'neither had anything to complain about')
})

async function openNodes(t: Test, program: string): Promise<Pick<Place, 'nodes' | 'sql'>> {
  const nats = await startNatsServer(program)
  t.teardown(() => nats.close())
  const database = await openTestDatabase(t)
  const config = configOn(database, {
    NATS_URL: nats.url,
    WEBHOOK_ALLOW_HOSTS: '127.0.0.1',
    SHUTDOWN_GRACE_SECONDS: '10',
  })
  const open = async (): Promise<Node> => {
    const log = createQuietLog()
    const service = await startParley({
      config,
      log,
      engines: new Map([['embedded', createScriptedEngine()]] as const),
      seed: async () => null,
    })
    t.teardown(() => service.close())
    return { service, log }
  }
  return { nodes: [await open(), await open()], sql: database.sql }
}

/** A tenant with a key, asked for over either node, and its receiver. What a key may do is done by HTTP. */
async function openAccount({ t, nodes, sql }: Place, limits: Parameters<typeof createCallingTenant>[1] = {}) {
  const { accountId, workerId } = await createCallingTenant(sql, limits)
  const { key } = await createApiKey(sql, { accountId, name: 'First key', newId, now: Date.now() })
  const receiver = await openFakeWebhookReceiver(t)
  t.teardown(() => receiver.release())
  const at = `/v1/accounts/${accountId}`
  const ask = clientOf(key)
  let placed = 0

  const subscribe = async (path: string, eventType: string): Promise<void> => {
    const request = { eventType, url: receiver.url(path), timeoutMs: 10_000 }
    const { body } = await ask(nodes[0], 'POST', `${at}/webhook-subscriptions`, request)
    receiver.trust(path, String(body['signingSecret']))
  }
  /** Over one node after the other, unless told which. */
  const placeCall = async (more: Fields = { phoneNumber: '+4930123456' }, node?: Node): Promise<string> => {
    const over = node ?? (nodes[placed++ % 2] as Node)
    const { status, body } = await ask(over, 'POST', `${at}/phone-calls`, { workerId, ...more })
    if (status !== 200) throw new Error(`a call was refused: ${JSON.stringify(body)}`)
    return String(body['id'])
  }
  /** The calls that the next `count` events of a type tell of, sorted. */
  const callsOfNext = async (count: number, type: string, path?: string): Promise<string[]> => {
    const calls: string[] = []
    while (calls.length < count) calls.push(callOf(await receiver.next(type, path)))
    return calls.sort()
  }
  const countOf = (type: string): number => receiver.deliveries.filter((delivery) => delivery.type === type).length
  return { accountId, workerId, at, ask, receiver, subscribe, placeCall, callsOfNext, countOf }
}
type Account = Awaited<ReturnType<typeof openAccount>>

const clientOf =
  (key: string): Ask =>
  async ({ service }, method, path, body, headers = {}) => {
    const answer = await fetch(new URL(path, service.url), {
      method,
      headers: { 'x-api-key': key, 'content-type': 'application/json', ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await answer.text()
    return { status: answer.status, body: text === '' ? {} : (JSON.parse(text) as Fields) }
  }

const isText = (value: unknown): boolean => typeof value === 'string'

const callOf = ({ data }: { readonly data: unknown }): string => String((data as Fields)['callId'])

/** Of the account: those that have a place and no outcome, and the node that each is on. */
const runningCalls = (sql: Sql, { accountId }: Account) => sql<{ id: string; owner: string | null }[]>`
  select id, owner from calls
  where account_id = ${accountId} and slot_granted_at is not null and outcome is null order by id`

const nothingPending = (sql: Sql, { accountId }: Account) =>
  until(async () => {
    const pending = await sql`select from deliveries where account_id = ${accountId} and status = 'pending' limit 1`
    return pending.count === 0
  })

async function revokesKeys(place: Place): Promise<void> {
  const { t, nodes } = place
  const { at, ask, placeCall } = await openAccount(place)
  const callId = await placeCall({ scheduledAt: inAnHour() })
  for (const [one, other] of [nodes, nodes.toReversed()] as [Node, Node][]) {
    const created = await ask(one, 'POST', `${at}/api-keys`, { name: 'Short' })
    const asShort = clientOf(String(created.body['key']))
    const paths = ['/v1/accounts/current', `${at}/phone-calls/${callId}`]
    const statuses = async (node: Node) =>
      Promise.all(paths.map(async (path) => (await asShort(node, 'GET', path)).status))
    t.same([...(await statuses(one)), ...(await statuses(other))], [200, 200, 200, 200])
    const revoked = await ask(one, 'DELETE', `${at}/api-keys/${String(created.body['id'])}`)
    t.equal(revoked.status, 204)
    t.same(await statuses(other), [401, 401], 'the very next request')
    t.same(await statuses(one), [401, 401])
  }
}

async function answersOnce(place: Place): Promise<void> {
  const { t, nodes } = place
  const { at, ask, workerId } = await openAccount(place)
  const keys = Array.from({ length: 8 }, (_, index) => `order-${index}`)
  const sendTo = (path: string, body: Fields) => (key: string) =>
    Promise.all([...nodes, ...nodes].map((node) => ask(node, 'POST', path, body, { 'idempotency-key': key })))
  const later = { workerId, phoneNumber: '+4930123456', scheduledAt: inAnHour() }
  const answers = await Promise.all(keys.map(sendTo(`${at}/phone-calls`, later)))
  for (const [first, ...others] of answers) {
    t.match(first, { status: 200, body: { status: 'scheduled' } })
    for (const other of others) t.same(other, first)
  }
  const list = await ask(nodes[1], 'GET', `${at}/phone-calls?limit=100`)
  const listed = (list.body['data'] as Fields[]).map(({ id }) => id)
  t.equal(listed.length, keys.length, 'one call for each key')
  t.same(new Set(listed), new Set(answers.map(([first]) => first?.body['id'])))

  const sessions = await sendTo(`${at}/web-calls`, { workerId })('visit')
  const told = sessions.map(({ body: { callId, sessionId, token, expiresAt } }) => [
    callId,
    sessionId,
    token,
    expiresAt,
  ])
  t.same(told[0]?.map(isText), [true, true, true, true])
  for (const session of told) t.same(session, told[0], 'where to signal differs, the sealed rest opens on both')
}

async function endsCallsOfTheOther(place: Place): Promise<void> {
  const { t, nodes, sql } = place
  const account = await openAccount(place)
  const { at, ask, receiver, placeCall } = account
  await account.subscribe('/hook', 'call.worker_request')
  await account.subscribe('/status', 'call.status_update')
  await account.subscribe('/ended', 'call.ended')
  receiver.script('/hook', [{ ...hookAnswer, held: true }], { forever: true })
  for (const [one, other] of [nodes, nodes.toReversed()] as [Node, Node][]) {
    const scheduled = await placeCall({ phoneNumber: '+4930123456', scheduledAt: inAnHour() }, one)
    const canceled = await ask(other, 'POST', `${at}/phone-calls/${scheduled}/cancel`)
    t.match(canceled, { status: 200, body: { outcome: 'canceled', failedReason: 'cancelled_by_account_admin' } })
    t.same((await ask(one, 'GET', `${at}/phone-calls/${scheduled}`)).body, canceled.body)
    t.equal((await ask(one, 'POST', `${at}/phone-calls/${scheduled}/cancel`)).status, 409)

    const running = await placeCall({ phoneNumber: '+4930123456' }, one)
    t.equal(callOf(await receiver.next('call.worker_request')), running)
    const [its, others] = one.service.running() === 1 ? [one, other] : [other, one]
    t.same([its.service.running(), others.service.running()], [1, 0])
    t.equal((await ask(others, 'POST', `${at}/phone-calls/${running}/hangup`)).status, 200, 'hung up over the other')
    const ended = await receiver.next('call.ended')
    t.match(ended.data, { callId: running, status: 'canceled', recordingAvailable: false })
    t.match((await ask(others, 'GET', `${at}/phone-calls/${running}`)).body, { outcome: 'canceled' })
    receiver.release()
  }
  await nothingPending(sql, account)
  t.equal(account.countOf('call.ended'), 2, 'a call that was canceled has none')
}

async function deliversOnce(place: Place): Promise<void> {
  const { t, nodes, sql } = place
  const account = await openAccount(place)
  const { receiver, accountId, placeCall } = account
  // The first that fits is asked: the question of a call is not in the way of its events.
  await account.subscribe('/hook', 'call.worker_request')
  const paths = ['/first', '/second'] as const
  for (const path of paths) {
    await account.subscribe(path, '*')
    receiver.script(path, [{ ...hookAnswer, held: true }], { forever: true })
  }
  // It takes its time: what must not overtake could.
  const answering = setInterval(() => receiver.release(), 100)
  t.teardown(() => clearInterval(answering))
  const calls: string[] = []
  // Half of them, over either node, have no number to call: the two ways to end fast.
  const numbers = [{ phoneNumber: '+4930123456' }, {}]
  while (calls.length < 150)
    calls.push(...(await Promise.all(Array.from({ length: 30 }, (_, index) => placeCall(numbers[(index >> 1) % 2])))))
  for (const path of paths)
    t.same(await account.callsOfNext(calls.length, 'call.ended', path), calls.toSorted(), `each ends once at ${path}`)
  await nothingPending(sql, account)

  const arrived = receiver.deliveries.filter(({ headers }) => headers['x-service-delivery'] === 'async')
  const written = await sql<{ lane: string; eventId: string; type: string; attempts: number }[]>`
    select d.call_id || ' ' || substring(s.url from '/[a-z]+$') as lane, d.id as event_id, d.event_type as type, d.attempts
    from deliveries d join webhook_subscriptions s on s.id = d.subscription_id
    where d.account_id = ${accountId} order by d.seq`
  const came = lanesOf(arrived.map((delivery) => ({ ...delivery, lane: `${callOf(delivery)} ${delivery.path}` })))
  t.equal(came.size, calls.length * paths.length)
  t.same(came, lanesOf(written), 'every lane arrived as it was written, nothing missing, nothing twice')
  t.ok(written.every(({ attempts }) => attempts === 1))
  t.equal(receiver.overlaps(), 0, 'no lane had two under way')
  const ends = arrived.filter(({ type }) => type === 'call.ended')
  const lasts = [...came.values()].map((lane) => lane.at(-1))
  t.same(new Set(lasts), new Set(ends.map(({ eventId }) => eventId)), 'call.ended is the last of each')
  const reasons = new Set(ends.map(({ data }) => String((data as Fields)['failedReason'])))
  t.same(reasons, new Set(['missing_phone_numbers', 'sip_call_failed']))

  const ids = new Set(arrived.map(({ eventId }) => eventId))
  const shares = nodes.map(({ log }) => attemptedBy(log).filter((id) => ids.has(id)).length)
  t.equal(ids.size, arrived.length, 'no event id came twice')
  t.equal((shares[0] ?? 0) + (shares[1] ?? 0), arrived.length, 'each was one attempt of one node')
  t.ok(Math.min(...shares) > 0, 'and both nodes sent')
}

/** The ids of the events of each lane, in order. */
function lanesOf(events: readonly { readonly lane: string; readonly eventId: string }[]): Map<string, string[]> {
  const lanes = Map.groupBy(events, ({ lane }) => lane)
  return new Map([...lanes].map(([lane, of]) => [lane, of.map(({ eventId }) => eventId)]))
}

const attemptedBy = ({ lines }: QuietLog): string[] =>
  lines
    .filter(({ message }) => message === 'webhook delivery attempted')
    .map(({ fields }) => String(fields['deliveryId']))

async function givesPlacesOnce(place: Place): Promise<void> {
  const { t, nodes } = place
  const { at, ask, workerId } = await openAccount(place, { maxConcurrentCalls: 5 })
  const askers = Array.from({ length: 12 }, () => nodes).flat()
  const answers = await Promise.all(askers.map((node) => ask(node, 'POST', `${at}/web-calls`, { workerId })))
  const refusals = answers.filter(({ status }) => status !== 200)
  t.equal(answers.length - refusals.length, 5)
  t.ok(refusals.every(({ body }) => body['type'] === 'WEB_CALL_CAPACITY_EXCEEDED'))
}

async function sharesQueue(place: Place): Promise<void> {
  const { t, sql } = place
  const [workerLimit, rounds] = [3, 8]
  const account = await openAccount(place, { workerLimit })
  const { receiver, placeCall } = account
  await account.subscribe('/hook', 'call.worker_request')
  await account.subscribe('/ended', 'call.ended')
  receiver.script('/hook', [{ ...hookAnswer, held: true }], { forever: true })
  const calls: string[] = []
  const placeCalls = async (count: number) => {
    for (let placed = 0; placed < count; placed++) calls.push(await placeCall())
  }
  const gauge = openGauge(t, async () => (await runningCalls(sql, account)).length)
  const owners = new Set<string | null>()

  await placeCalls(3 * workerLimit)
  for (let from = 0; from < calls.length; from += workerLimit) {
    const asked = await account.callsOfNext(workerLimit, 'call.worker_request')
    t.same(asked, calls.slice(from, from + workerLimit).toSorted(), 'those that were created next')
    // Which node is faster is nobody's promise: it goes on until both have had some.
    if (from < rounds * workerLimit || owners.size < 2) await placeCalls(workerLimit)
    const running = await runningCalls(sql, account)
    for (const { owner } of running) owners.add(owner)
    t.same(
      running.map(({ id }) => id),
      asked,
      'and nobody else has a place',
    )
    t.equal(account.countOf('call.worker_request'), from + workerLimit)
    receiver.release()
  }
  t.same(await account.callsOfNext(calls.length, 'call.ended'), calls.toSorted(), 'all got their turn')
  await nothingPending(sql, account)
  t.equal(await gauge.close(), workerLimit, 'the worker never had more at once')
  t.same([account.countOf('call.worker_request'), account.countOf('call.ended')], [calls.length, calls.length])
}

/** Reads a number again and again; closing it tells the highest that was seen. */
function openGauge(t: Test, read: () => Promise<number>) {
  let open = true
  const watch = async (): Promise<number> => {
    let highest = 0
    for (; open; await pause(1)) highest = Math.max(highest, await read())
    return highest
  }
  const watching = watch()
  const close = (): Promise<number> => {
    open = false
    return watching
  }
  t.teardown(close)
  return { close }
}

async function leavesQueue(place: Place): Promise<void> {
  const { t, nodes, sql } = place
  const account = await openAccount(place, { workerLimit: 1 })
  const { at, ask, receiver, placeCall, workerId } = account
  await account.subscribe('/hook', 'call.worker_request')
  await account.subscribe('/ended', 'call.ended')
  const held = { ...hookAnswer, held: true }
  receiver.script('/hook', [held, hookAnswer], { forever: true })
  const calls: string[] = []
  while (calls.length < 16) calls.push(await placeCall())
  await receiver.next('call.worker_request')
  // Nobody but the other one's own look finds the place that becomes free.
  const [leaving, staying] = nodes[0].service.running() > 0 ? nodes : [nodes[1], nodes[0]]
  t.same([leaving.service.running(), staying.service.running()], [1, 0], 'it leaves in the middle of a call')

  const left = leaving.service.close()
  const refused = await ask(leaving, 'POST', `${at}/phone-calls`, { workerId, phoneNumber: '+4930123456' })
  t.match(refused, { status: 503, body: { type: 'SERVICE_UNAVAILABLE' } })
  calls.push(await placeCall({ phoneNumber: '+4930123456' }, staying))
  receiver.release()
  await left
  t.equal(leaving.service.running(), 0)
  await t.rejects(ask(leaving, 'GET', '/health'), 'it is gone')
  const alive = await sql<{ id: string }[]>`select id from nodes`
  t.equal(alive.length, 1, 'its lease is given back')
  const orphans = await sql`
    select id from calls where account_id = ${account.accountId} and owner is not null and owner <> ${alive[0]?.id ?? ''}`
  t.same([...orphans], [], 'and so are its calls')

  t.same(await account.callsOfNext(calls.length, 'call.ended'), calls.toSorted(), 'every call ends')
  await nothingPending(sql, account)
  const ends = receiver.deliveries.filter(({ type }) => type === 'call.ended')
  t.ok(ends.every(({ data }) => (data as Fields)['failedReason'] === 'sip_call_failed'))
  t.same([ends.length, account.countOf('call.worker_request')], [calls.length, calls.length], 'each once')
  await until(async () => (await sql`select from jobs where account_id = ${account.accountId}`).count === 0)
  t.equal(staying.service.running(), 0)
}

function inAnHour(): string {
  return new Date(Date.now() + 3_600_000).toISOString()
}
