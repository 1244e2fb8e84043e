/** What large tables cost: how many rows a query reads, not how long that takes; and that what takes long keeps nobody waiting. */
import t, { test } from 'tap'
import type { CallId, DeliveryId } from '../../model/ids.ts'
import { PersonQuery } from '../../model/person.ts'
import { PhoneCallQuery } from '../../model/phone-call.ts'
import { CallRefusalQuery } from '../../model/telephony.ts'
import { DeliveryQuery } from '../../model/webhook.ts'
import { listNumberOwners } from '../../store/account-numbers.ts'
import { listAccountsWithWaitingCalls } from '../../store/call-capacity.ts'
import { readArrivalRoom } from '../../store/arrival-room.ts'
import { listCalls } from '../../store/calls.ts'
import { claimDue, enqueueDeliveries, giveUpStale, staleAtOnce } from '../../store/deliveries.ts'
import { findDueWork } from '../../store/due-work.ts'
import { listDeliveries } from '../../store/delivery-log.ts'
import { listInboundCandidates, listUnreachableWorkers } from '../../store/inbound-routes.ts'
import { claimJobs } from '../../store/jobs.ts'
import { deletePerson, listPersons } from '../../store/persons.ts'
import type { Sql, Transaction } from '../../store/sql.ts'
import { createSubscription, deleteSubscription } from '../../store/subscriptions.ts'
import { listRefusals } from '../../store/call-refusals.ts'
import { findRouteFacts } from '../../store/route-facts.ts'
import { listOutboundTrunks, talkedSince } from '../../store/telephony.ts'
import { createTrunks } from '../../store/trunks.ts'
import { releaseClaims } from '../../store/nodes.ts'
import { toId, type NodeId, type SubscriptionId, type TrunkId, type WorkerId } from '../../model/ids.ts'
import { box } from '../scenes/call-node.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { createTenant, newId } from '../scenes/tenant.ts'

const many = 30_000
const few = 1_000
const opened = fill()
const filledTelephony = opened.then(fillTelephony)

async function fill() {
  const { sql } = await openTestDatabase(t)
  const now = Date.now()
  const [busy, other] = [await createTenant(sql, { slug: 'busy' }), await createTenant(sql, { slug: 'other' })]
  const quiet = await createTenant(sql, { slug: 'quiet' })
  await sql`insert into workers (id, account_id, name, language) select 'w' || n, ${quiet.accountId}, 'W', 'en' from generate_series(1, 3000) n`
  const request = { eventType: '*', url: 'https://example.com/hook' } as const
  const made = await createSubscription(sql, box, { accountId: busy.accountId, request, newId, now })
  const subscriptionId = toId<'subscription'>(made.id) as SubscriptionId
  await sql`
    insert into calls (id, account_id, worker_id, session_id, direction, transport, progress, outcome, snapshot, finished, created_at, person_id)
    select gen_random_uuid()::text, ${busy.accountId}, ${busy.workerId}, 's', 'outbound', 'sip_trunk', 'completed', 'completed', '{}', true,
      to_timestamp(n * 60), 'eva' from generate_series(1, ${many}::int) n`
  await sql`
    insert into calls (id, account_id, worker_id, session_id, direction, transport, progress, snapshot, created_at)
    select gen_random_uuid()::text, ${other.accountId}, ${other.workerId}, 's', 'outbound', 'sip_trunk', 'queued', '{}', to_timestamp(n * 60)
    from generate_series(1, ${many}::int) n`
  await sql`
    insert into deliveries (id, account_id, subscription_id, call_id, event_type, body, event_at, status)
    select gen_random_uuid()::text, account_id, ${subscriptionId}, id, 'call.status_update', '{}', now(), 'delivered'
    from calls where account_id = ${busy.accountId}`
  await sql`
    insert into jobs (id, account_id, call_id, kind, run_at)
    select 'j' || id, account_id, id, 'dial_time', now() from calls where account_id = ${other.accountId}`
  await sql`
    insert into persons (id, account_id, type, first_name, last_name, email)
    select 'p' || n, ${busy.accountId}, 'lead', 'Eva', 'M', 'e' || n || '@example.com' from generate_series(1, ${many}::int) n`
  await sql`analyze`
  return { sql, now, busy, other, subscriptionId }
}

/** Rows that `work` reads of one table, often enough for Postgres to settle on a plan. */
async function rowsRead(sql: Sql, table: string, work: (sql: Sql) => Promise<unknown>): Promise<number> {
  const count = (tx: Transaction) => tx<{ read: number }[]>`
    select seq_tup_read + coalesce(idx_tup_fetch, 0) as read from pg_stat_xact_user_tables where relname = ${table}`
  return sql.begin(async (tx) => {
    let [before, read] = [0, 0]
    for (let round = 0; round < 7; round++) {
      await work(tx as unknown as Sql)
      const [row] = await count(tx)
      ;[read, before] = [(row?.read ?? 0) - before, row?.read ?? 0]
    }
    return read
  })
}

test('a page of calls reads a page of calls, whatever it is filtered by and however many there are', async (t) => {
  const { sql, busy } = await opened
  const minutes = (count: number) => new Date(count * 60_000).toISOString()
  const [middle] = await sql<{ id: CallId }[]>`
    select id from calls where account_id = ${busy.accountId} and created_at = to_timestamp(${(many / 2) * 60})`
  for (const query of [
    {},
    { cursor: middle?.id },
    { status: 'in_progress' },
    { status: 'queued' },
    { status: 'completed' },
    { status: 'busy' },
    { status: 'scheduled', cursor: middle?.id },
    { workerId: newId<'worker'>() },
    { direction: 'inbound' },
    { direction: 'outbound' },
    { direction: 'inbound', status: 'completed' },
    { direction: 'inbound', status: 'in_progress' },
    { workerId: busy.workerId },
    { workerId: busy.workerId, direction: 'inbound' },
    { workerId: busy.workerId, direction: 'outbound', cursor: middle?.id },
    { workerId: busy.workerId, status: 'queued' },
    { workerId: busy.workerId, status: 'busy' },
    { workerId: busy.workerId, status: 'completed' },
    { workerId: busy.workerId, status: 'completed', direction: 'inbound' },
    { workerId: newId<'worker'>(), status: 'completed', direction: 'outbound', to: minutes(many) },
    { from: minutes(100), to: minutes(150) },
    { to: minutes(10) },
  ]) {
    const read = await rowsRead(sql, 'calls', (tx) => listCalls(tx, busy.accountId, PhoneCallQuery.parse(query)))
    t.ok(read < few, `${JSON.stringify(query)} read ${read}`)
  }
})

test('persons by a tag that few have, or nobody, are found without reading the others', async (t) => {
  const { sql, busy } = await opened
  await sql`
    update persons set tags = case when id = 'p70' then array['rare', 'VIP'] else array['common'] end where account_id = ${busy.accountId}`
  await sql`analyze persons`
  const tagged = (tx: Sql, query: object) => listPersons(tx, busy.accountId, PersonQuery.parse(query))
  for (const [tag, ids] of [
    ['rare', ['p70']],
    ['VIP', ['p70']],
    ['vip', []],
    ['none', []],
  ] as const) {
    t.same(
      (await tagged(sql, { tag })).map(({ id }) => id),
      ids,
    )
    const read = await rowsRead(sql, 'persons', (tx) => tagged(tx, { tag }))
    t.ok(read < 5_000, `${tag} read ${read}`)
  }
  t.same(
    (await tagged(sql, { tag: 'rare', query: 'eva' })).map(({ id }) => id),
    ['p70'],
  )
  t.same(await tagged(sql, { tag: 'rare', query: 'zzyzx' }), [])
  t.equal((await tagged(sql, { tag: 'common', limit: 20 })).length, 21)
})

test('persons by e-mail, and deliveries of a rare status, are found without reading the others', async (t) => {
  const { sql, busy, subscriptionId } = await opened
  const persons = await rowsRead(sql, 'persons', (tx) =>
    listPersons(tx, busy.accountId, PersonQuery.parse({ email: 'E77@example.com' })),
  )
  t.ok(persons < few, `persons: ${persons}`)
  for (const status of ['pending', 'exhausted']) {
    const read = await rowsRead(sql, 'deliveries', (tx) =>
      listDeliveries(tx, busy.accountId, subscriptionId, DeliveryQuery.parse({ status })),
    )
    t.ok(read < few, `${status}: ${read}`)
  }
})

test('pending deliveries of a subscription that has none are not looked for among all others', async (t) => {
  const { sql, busy, now } = await opened
  const request = { eventType: '*', url: 'https://example.com/hook' } as const
  const subscribe = async () =>
    (await createSubscription(sql, box, { accountId: busy.accountId, request, newId, now })).id as SubscriptionId
  const [waiting, finished] = [await subscribe(), await subscribe()]
  await sql`
    insert into deliveries (id, account_id, subscription_id, call_id, event_type, body, event_at, run_at, status)
    select gen_random_uuid()::text, account_id, s.id, calls.id, 'call.transcript', '{}', now(), to_timestamp(0), s.status
    from calls, (values (${waiting}::text, 'pending'), (${finished}::text, 'delivered')) s (id, status) where account_id = ${busy.accountId}`
  await sql`analyze deliveries`
  for (const [what, query, few] of [
    [finished, { status: 'pending' }, 10],
    [finished, {}, 100],
    [waiting, { status: 'pending' }, 100],
    [waiting, { status: 'exhausted' }, 10],
    [waiting, { callId: newId<'call'>() }, 10],
  ] as const) {
    const read = await rowsRead(sql, 'deliveries', (tx) =>
      listDeliveries(tx, busy.accountId, what, DeliveryQuery.parse(query)),
    )
    t.ok(read < few, `${what === waiting ? 'waiting' : 'finished'} ${JSON.stringify(query)} read ${read}`)
  }
  const nodes = ['a', 'b', 'c'].map(() => newId<'node'>() as NodeId)
  const [dead, , alive] = nodes
  for (const nodeId of nodes) {
    const bounds = { limit: 8, lease: 60_000, perSubscription: 8, rooms: new Map() }
    t.equal((await claimDue(sql, { nodeId, now, ...bounds })).length, 8)
  }
  const read = await rowsRead(sql, 'deliveries', (tx) => releaseClaims(tx, [newId<'node'>() as NodeId]))
  t.ok(read < 3 * few, `nothing to release: ${read}`)
  await releaseClaims(sql, [dead as NodeId])
  const held = await sql<{ claimedBy: string }[]>`
    select distinct claimed_by from deliveries where claimed_by is not null and status = 'pending'`
  t.notOk(held.some(({ claimedBy }) => claimedBy === dead))
  t.ok(held.some(({ claimedBy }) => claimedBy === alive))
  for (const id of [waiting, finished]) await deleteSubscription(sql, busy.accountId, id)
})

test('what is looked for every second costs nothing where nobody waits, and little behind a long queue', async (t) => {
  const { sql, other } = await opened
  t.same(await listAccountsWithWaitingCalls(sql, Date.now()), [other.accountId])
  const workers = await rowsRead(sql, 'workers', (tx) => listAccountsWithWaitingCalls(tx, Date.now()))
  const calls = await rowsRead(sql, 'calls', (tx) => listAccountsWithWaitingCalls(tx, Date.now()))
  t.ok(workers + calls < few, `workers: ${workers}, calls: ${calls}`)
  const due = await rowsRead(sql, 'jobs', (tx) => findDueWork(tx, Date.now() + 60_000))
  t.ok(due < few, `jobs whose being due is asked for: ${due}`)
  const left = { nodeId: newId<'node'>(), passedOver: [], knownDeaths: [] }
  const behind = await rowsRead(sql, 'calls', (tx) => findDueWork(tx, Date.now() + 60_000, left))
  t.ok(behind < few, `calls that wait for a place, and that dead nodes may have left: ${behind}`)
  const jobs = await rowsRead(sql, 'jobs', (tx) => claimJobs(tx, newId<'node'>(), Date.now() + 60_000, 60_000, 16))
  t.ok(jobs < few, `jobs: ${jobs}`)
})

/** Ten thousand accounts of telephony in one: a worker with its number, its trunk and its address each, one of them with a long past. */
async function fillTelephony() {
  const { sql, busy } = await opened
  const { accountId } = await createTenant(sql, { slug: 'telephony' })
  await sql`
    insert into workers (id, account_id, name, language, inbound_phone_number)
    select 'tw' || n, ${accountId}, 'W', 'en', '+49' || (3000000 + n) from generate_series(1, 10000) n`
  await sql`
    insert into trunks (id, account_id, name, direction, config)
    select 't' || n, ${accountId}, 'T', 'both',
      jsonb_build_object('gateways', '[{"host": "sip.example"}]'::jsonb, 'maxConcurrentCalls', 30, 'maxCallsPerSecond', 5,
        'allowedAddresses', jsonb_build_array('10.' || n / 256 || '.' || n % 256 || '.0/28'))
    from generate_series(1, 10000) n`
  await sql`insert into trunk_workers (account_id, trunk_id, worker_id) select account_id, id, 'tw' || substr(id, 2) from trunks where account_id = ${accountId}`
  await sql`
    insert into trunk_addresses (account_id, trunk_id, network)
    select account_id, id, (config->'allowedAddresses'->>0)::inet from trunks where account_id = ${accountId}`
  await sql`
    insert into calls (id, account_id, worker_id, session_id, direction, transport, progress, outcome, snapshot, finished, created_at,
      slot_granted_at, started_at, ended_at, trunk_id)
    select gen_random_uuid()::text, ${accountId}, 'tw7', 's', 'outbound', 'sip_trunk', 'completed', 'completed', '{}', true,
      to_timestamp(n * 60), to_timestamp(n * 60), to_timestamp(n * 60), to_timestamp(n * 60 + 30), 't7' from generate_series(1, ${many}::int) n`
  await sql`
    insert into call_refusals (id, account_id, direction, reason, details, first_at, last_at)
    select gen_random_uuid()::text, case n % 3 when 0 then null when 1 then ${busy.accountId}::text else ${accountId}::text end, 'inbound', 'unknown_source', 'x',
      to_timestamp(n), to_timestamp(n) from generate_series(1, ${many}::int) n`
  await sql`analyze`
  return { sql, accountId }
}

test("an arriving call finds its worker and its trunk among ten thousand, and so does one that is nobody's", async (t) => {
  const { sql, accountId } = await filledTelephony
  const total = async (work: (sql: Sql) => Promise<unknown>): Promise<number> => {
    let read = 0
    for (const table of ['workers', 'trunks', 'trunk_workers', 'trunk_addresses', 'account_numbers'])
      read += await rowsRead(sql, table, work)
    return read
  }
  const [address, number] = ['10.0.7.9', '+493000007']
  const facts = (tx: Sql, from: string, ...called: string[]) =>
    findRouteFacts(tx, [{ address: from, isOwnMachine: false, called, dialed: called }])
  await sql`
    insert into account_numbers (number, account_id, assigned_at) values (${number}, ${accountId}, now())
    on conflict (number) do update set assigned_at = now()`
  t.match(await facts(sql, address, number), [
    {
      accountId,
      sources: [{ trunkId: 't7' }],
      candidates: [{ workerId: 'tw7', rule: 'address', trunk: { id: 't7' } }],
    },
  ])
  t.match(await listInboundCandidates(sql, { called: [number], address, accountId }), [
    { workerId: 'tw7', rule: 'address', trunk: { id: 't7' } },
  ])
  for (const [what, work] of Object.entries({
    known: (tx: Sql) => listInboundCandidates(tx, { called: [number], address, accountId }),
    'an unknown address': (tx: Sql) => listInboundCandidates(tx, { called: [number], address: '192.0.2.1', accountId }),
    'an unknown number': (tx: Sql) => listInboundCandidates(tx, { called: ['+1'], address, accountId }),
    'an extension': (tx: Sql) => listInboundCandidates(tx, { called: ['1001'], address, accountId: null }),
    'whose number': (tx: Sql) => listNumberOwners(tx, ['+1', number], { address, isOwnMachine: false }),
    'a number without a trunk': (tx: Sql) => listUnreachableWorkers(tx, accountId, ['+1', number]),
    'all of it': (tx: Sql) => facts(tx, address, number),
    "all of what is nobody's": (tx: Sql) => facts(tx, '192.0.2.1', '+1', '1001'),
    'ways out': (tx: Sql) =>
      listOutboundTrunks(tx, { accountId, workerId: 'tw7' as WorkerId, callId: newId<'call'>(), now: Date.now() }),
  })) {
    const read = await total(work)
    t.ok(read < 100, `${what} read ${read}`)
  }
})

test('a trunk and an account with a long past cost what they carry now', async (t) => {
  const { sql, accountId } = await filledTelephony
  const at = (many - 1) * 60_000
  const calls = (work: (sql: Sql) => Promise<unknown>) => rowsRead(sql, 'calls', work)
  const arriving = { workerIds: ['tw7' as WorkerId], trunkIds: ['t7' as TrunkId], arrivedFrom: ['192.0.2.1'], now: at }
  const room = await calls((tx) =>
    readArrivalRoom(tx as unknown as Transaction, accountId, { ...arriving, toldType: 'call.status_update' }),
  )
  t.ok(room < 10, `the room for a call that arrives: ${room}`)
  const talked = await calls((tx) => talkedSince(tx, accountId, at - 3_600_000, at))
  t.ok(talked < few, `the minutes of an hour: ${talked}`)
  const refusals = await rowsRead(sql, 'call_refusals', (tx) => listRefusals(tx, accountId, CallRefusalQuery.parse({})))
  t.ok(refusals < few, `a page of refusals: ${refusals}`)
})

test('a trunk with a long past is removed, and its calls stay', async (t) => {
  const { sql, accountId } = await filledTelephony
  const trunks = createTrunks({ sql, box, clock: { now: Date.now, after: () => () => {} }, newId })
  t.equal(await trunks.remove(newId<'account'>(), 't7' as TrunkId), false)
  t.match(await sql`select count(*)::int as count from calls where trunk_id = 't7'`, [{ count: many }])
  t.equal(await trunks.remove(accountId, 't7' as TrunkId), true)
  t.match(await sql`select count(*)::int as count, count(trunk_id)::int as linked from calls where worker_id = 'tw7'`, [
    { count: many, linked: 0 },
  ])
})

test('a subscription with a long history is removed without anybody waiting for it', async (t) => {
  const { sql, busy, subscriptionId, now } = await opened
  const [call] = await sql<{ id: CallId }[]>`select id from calls where account_id = ${busy.accountId} limit 1`
  const [gate, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const holding = sql.begin(async (tx) => {
    await tx`select from deliveries where subscription_id = ${subscriptionId} order by id desc limit 1 for update`
    held.resolve()
    await gate.promise
  })
  await held.promise
  const removing = deleteSubscription(sql, busy.accountId, subscriptionId)
  for (let left = many; left > many / 2;) {
    const [row] = await sql<{ left: number }[]>`
      select count(*)::int as left from deliveries where subscription_id = ${subscriptionId}`
    left = row?.left ?? 0
  }
  const events = [
    { type: 'call.status_update', data: { callId: call?.id ?? '', status: 'ringing', providerStatus: null, ts: '' } },
  ] as const
  await sql.begin((tx) => enqueueDeliveries(tx, { ...busy, callId: call?.id as CallId, events, now, newId }))
  gate.resolve()
  await holding
  t.equal(await removing, true)
  t.same(await sql`select from deliveries where subscription_id = ${subscriptionId}`, [])
  t.equal(await deleteSubscription(sql, busy.accountId, subscriptionId), false)
})

test('a person with many calls is deleted a part of them at a time, and all lose the link', async (t) => {
  const { sql, busy } = await opened
  await sql`
    insert into persons (id, account_id, type, first_name, last_name)
    values ('eva', ${busy.accountId}, 'lead', 'Eva', 'M')`
  t.equal(await deletePerson(sql, busy.accountId, 'eva' as never), true)
  t.same(await sql`select from calls where person_id = 'eva'`, [])
})

test('a queue of stale news ends in pieces; two who end it do not wait for each other', async (t) => {
  const { sql, busy, now } = await opened
  const request = { eventType: '*', url: 'https://example.com/hook' } as const
  const { id } = await createSubscription(sql, box, { accountId: busy.accountId, request, newId, now })
  await sql`
    insert into deliveries (id, account_id, subscription_id, call_id, event_type, body, event_at, run_at)
    select gen_random_uuid()::text, account_id, ${id as DeliveryId}, id, 'call.status_update', '{}', to_timestamp(0), to_timestamp(0)
    from calls where account_id = ${busy.accountId}`
  const bounds = { before: now, now }
  const both = await sql.begin(async (tx) => {
    const first = await giveUpStale(tx as unknown as Sql, bounds)
    return [first, await giveUpStale(sql, bounds)]
  })
  t.same(both, [staleAtOnce, staleAtOnce])
  t.equal(await giveUpStale(sql, bounds), many - 2 * staleAtOnce)
})

test('a claim reads what it claims, and not what waits behind it or for its time', async (t) => {
  const { sql, busy, now } = await opened
  const request = { eventType: '*', url: 'https://example.com/hook' } as const
  const { id } = await createSubscription(sql, box, { accountId: busy.accountId, request, newId, now })
  // The head of each lane waits for its next attempt; what stands behind it came before that time.
  await sql`
    insert into deliveries (id, account_id, subscription_id, call_id, event_type, body, event_at, run_at)
    select gen_random_uuid()::text, account_id, ${id as DeliveryId}, id, 'call.transcript', '{}', now(),
      case place when 1 then to_timestamp(${now / 1000 + 60}) else to_timestamp(0) end
    from (select id, account_id from calls where account_id = ${busy.accountId} limit ${many / 10}) lanes, generate_series(1, 10) place
    order by place`
  const claim = (tx: Sql, at: number) =>
    claimDue(tx, { nodeId: newId<'node'>(), now: at, limit: 64, lease: 1, perSubscription: 64, rooms: new Map() })
  const unmarked = () => sql`
    select from deliveries where subscription_id = ${id as DeliveryId} and not behind and run_at < to_timestamp(1)`
  while ((await unmarked()).length > 0) t.same(await claim(sql, now), [])
  // As autovacuum does it: had it looked at the table in the midst of all this, its plans would be of another table.
  await sql`analyze deliveries`
  const asked = await rowsRead(sql, 'deliveries', (tx) => findDueWork(tx, now))
  t.ok(asked < 100, `nor does who asks whether anything is due: ${asked}`)
  t.notOk((await findDueWork(sql, now)).has('deliveries'))
  t.ok((await findDueWork(sql, now + 60_000)).has('deliveries'))
  const waiting = await rowsRead(sql, 'deliveries', (tx) => claim(tx, now))
  t.ok(waiting < 100, `nothing is due: ${waiting}`)
  t.equal((await claim(sql, now + 120_000)).length, 64)
  const due = await rowsRead(sql, 'deliveries', (tx) => claim(tx, now + 120_000))
  t.ok(due < few, `all lanes are due: ${due}`)
})
