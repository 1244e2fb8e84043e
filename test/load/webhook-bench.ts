/**
 * Owns `npm run bench webhooks`: how many deliveries a second go out, how long after the commit, what a hanging endpoint does to the others, and
 * how long a claim takes over a long queue. The loop is in this process, Postgres (with its syncs to disk) and the receiver in others.
 */
import { fork } from 'node:child_process'
import { createSecretKey, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import process from 'node:process'
import { setTimeout as pause } from 'node:timers/promises'
import { createDeliveryLoop } from '../../actors/webhooks/delivery-loop.ts'
import { createWebhookSender } from '../../actors/webhooks/sender.ts'
import { systemClock } from '../../app/clock.ts'
import { createLog } from '../../app/log.ts'
import type { AccountId, CallId, SubscriptionId, WorkerId } from '../../model/ids.ts'
import { claimDue, enqueueDeliveries, releaseDeliveries, type OutboxEvent } from '../../store/deliveries.ts'
import { openDatabase } from '../../store/open-database.ts'
import { createSecretBox } from '../../store/secret-box.ts'
import { connect, type Sql, type Transaction } from '../../store/sql.ts'
import { createSubscription } from '../../store/subscriptions.ts'
import { createTenant, newId, type Tenant } from '../scenes/tenant.ts'
import type { Received } from './process-receiving-webhooks.ts'
import { printTable, quantile } from './table.ts'

const deliveriesPerRow = 10_000
const eventsPerCall = 10
const pacedPerSecond = 100
const pacedSeconds = 5
const pacedRounds = 4
const pacedEndpoints = 10
const queued = 30_000
const idleEndpoints = 300
const claims = 30

const log = createLog('error')
const box = createSecretBox(createSecretKey(randomBytes(32)))

type Bench = {
  readonly sql: Sql
  readonly receiver: { readonly url: string; ask(question: 'look' | 'take'): Promise<Received> }
  openLoop(): { wake(): void; close(): Promise<void> }
  postgresCpuMs(): Promise<number>
  /** Of deliveries, on a connection without the transactions of the service. */
  vacuum(): Promise<void>
  close(): Promise<void>
}

type Lane = { readonly accountId: AccountId; readonly workerId: WorkerId; readonly callId: CallId }

export async function benchWebhooks(given: readonly string[]): Promise<void> {
  const counts = given.length > 0 ? given.map(Number) : [1, 10, 100]
  const bench = await open()
  try {
    await throughput(bench, 10)
    const rows = []
    for (const count of counts) rows.push(await throughput(bench, count))
    printTable(rows)
    const [quiet, disturbed]: [number[], number[]] = [[], []]
    // In turns, so that what else the machine does falls on both.
    for (let round = 0; round < pacedRounds; round += 1) {
      quiet.push(...(await paced(bench, '/one-more')))
      disturbed.push(...(await paced(bench, '/hang')))
    }
    const toCells = (name: string, delays: readonly number[]) => ({
      [`${pacedPerSecond} events/s, commit to arrival`]: name,
      'p50 ms': quantile(delays, 0.5).toFixed(1),
      'p95 ms': quantile(delays, 0.95).toFixed(1),
      'p99 ms': quantile(delays, 0.99).toFixed(1),
    })
    printTable([toCells('all healthy', quiet), toCells('one more hangs', disturbed)])
    printTable(await claimTimes(bench))
  } finally {
    await bench.close()
  }
}

/** `count` subscriptions of one account get every event. */
async function throughput(bench: Bench, count: number) {
  const { sql, receiver } = bench
  const tenant = await createTenant(sql, { slug: newId() })
  for (let index = 0; index < count; index += 1) await subscribe(bench, tenant.accountId, `/${index}`)
  await fillQueue(sql, tenant, deliveriesPerRow / eventsPerCall / count, eventsPerCall)
  const before = await costs(bench)
  const began = performance.now()
  const loop = bench.openLoop()
  while ((await receiver.ask('look')).count < deliveriesPerRow) await pause(20)
  const seconds = (performance.now() - began) / 1000
  await loop.close()
  const after = await costs(bench)
  await receiver.ask('take')
  const each = (name: keyof typeof before) => ((after[name] - before[name]) / deliveriesPerRow).toFixed(3)
  const [left] = await sql<
    { count: number }[]
  >`select count(*)::int as count from deliveries where status <> 'delivered'`
  await sql`delete from deliveries`
  return {
    subscriptions: String(count),
    'deliveries/s': (deliveriesPerRow / seconds).toFixed(0),
    'CPU ms each': each('own'),
    'of Postgres': each('postgres'),
    'of the receiver': each('receiver'),
    left: String(left?.count),
  }
}

async function costs(bench: Bench) {
  const { user, system } = process.cpuUsage()
  const receiver = (await bench.receiver.ask('look')).cpuMs
  return { own: (user + system) / 1000, postgres: await bench.postgresCpuMs(), receiver }
}

/** Delays from the commit to the arrival, ms, at healthy endpoints: each has an account of its own, the events go round. One more gets a tenth as many. */
async function paced(bench: Bench, oneMore: string): Promise<number[]> {
  const { sql, receiver } = bench
  const lanes: Lane[] = []
  for (let index = 0; index < pacedEndpoints; index += 1) lanes.push(await laneTo(bench, `/${index}`))
  const extra = await laneTo(bench, oneMore)
  const loop = bench.openLoop()
  const committed = new Map<number, number>()
  const began = performance.now()
  for (let index = 0; index < pacedPerSecond * pacedSeconds; index += 1) {
    await pause(Math.max(0, began + (index * 1000) / pacedPerSecond - performance.now()))
    const lane = lanes[index % lanes.length] as Lane
    // A new call now and then, as it is in life; one lane alone would wait for itself.
    const own = index % 7 === 0 ? await insertCall(sql, lane) : lane
    lanes[index % lanes.length] = own
    void enqueue(sql, own, [transcript(own.callId, index)]).then(() => {
      committed.set(index, performance.timeOrigin + performance.now())
      loop.wake()
    })
    if (index % 10 === 0) {
      const stuck = await insertCall(sql, extra)
      await enqueue(sql, stuck, [transcript(stuck.callId, -1)])
      loop.wake()
    }
  }
  const expected = pacedPerSecond * pacedSeconds * (oneMore === '/hang' ? 1 : 1.1)
  while ((await receiver.ask('look')).count < expected) await pause(20)
  await loop.close()
  const { arrivals } = await receiver.ask('take')
  const bodies = await sql<{ id: string; body: string }[]>`select id, body from deliveries`
  const turns = new Map(bodies.map(({ id, body }) => [id, JSON.parse(body).data.turnIndex as number]))
  await sql`delete from deliveries`
  return arrivals.flatMap(([id, at]) => {
    const since = committed.get(turns.get(id) ?? -1)
    return since === undefined ? [] : [at - since]
  })
}

/** One subscription has the whole queue: as long as it has room, and when it is full and only a little of another is due behind it. */
async function claimTimes(bench: Bench) {
  const { sql } = bench
  const rows = []
  for (const perLane of [1, 100]) {
    const busy = await createTenant(sql, { slug: newId() })
    const id = await subscribe(bench, busy.accountId, '/busy')
    await fillQueue(sql, busy, queued / perLane, perLane)
    const other = await laneTo(bench, '/other')
    await enqueue(sql, other, eventsOf(other.callId, 1))
    await sql`analyze deliveries`
    const free = await timesOfClaims(sql, new Map())
    const full = await timesOfClaims(sql, new Map([[id, 0]]))
    rows.push(cellsOf(`${perLane} to a lane, room for 64`, free), cellsOf(`${perLane} to a lane, no room`, full))
    await sql`delete from deliveries`
    await bench.vacuum()
  }
  const tenant = await createTenant(sql, { slug: newId() })
  for (let index = 0; index < idleEndpoints; index += 1) await subscribe(bench, tenant.accountId, `/idle/${index}`)
  const lane = await insertCall(sql, tenant)
  await enqueue(sql, lane, eventsOf(lane.callId, queued / idleEndpoints))
  await sql`update deliveries set run_at = now() + interval '1 hour'`
  await sql`analyze deliveries`
  rows.push(cellsOf(`of ${idleEndpoints} subscriptions that wait for a retry`, await timesOfClaims(sql, new Map())))
  return rows
}

const cellsOf = (name: string, times: readonly number[]) => ({
  [`a claim with ${queued} pending`]: name,
  'p50 ms': quantile(times, 0.5).toFixed(1),
  'p95 ms': quantile(times, 0.95).toFixed(1),
})

/** As if every process of the service had been away: everything is due. */
async function fillQueue(sql: Sql, tenant: Tenant, lanes: number, perLane: number): Promise<void> {
  // Each transaction has the deadline of any other.
  for (let from = 0; from < lanes; from += lanesAtOnce)
    await sql.begin(async (tx) => {
      for (let index = from; index < Math.min(lanes, from + lanesAtOnce); index += 1) {
        const lane = await insertCall(tx, tenant)
        await enqueueDeliveries(tx, { ...lane, events: eventsOf(lane.callId, perLane), now: Date.now(), newId })
      }
    })
}

const lanesAtOnce = 1_000

async function timesOfClaims(sql: Sql, rooms: ReadonlyMap<SubscriptionId, number>): Promise<number[]> {
  const times = []
  const nodeId = newId<'node'>()
  for (let index = 0; index < claims; index += 1) {
    const began = performance.now()
    await claimDue(sql, { nodeId, now: Date.now(), limit: 512, lease: 60_000, perSubscription: 64, rooms })
    times.push(performance.now() - began)
    await releaseDeliveries(sql, [nodeId as never])
  }
  return times
}

async function open(): Promise<Bench> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'parley-bench-'))
  const {
    sql,
    server,
    close: closeDatabase,
  } = await openDatabase({
    databaseUrl: null,
    dataDir,
    log,
    // It fills and empties a table in one statement, as the service never does.
    databaseTimeout: 60_000,
  })
  const child = fork(path.join(import.meta.dirname, 'process-receiving-webhooks.ts'))
  const [url] = (await once(child, 'message')) as [string]
  return {
    sql,
    receiver: {
      url,
      async ask(question) {
        child.send(question)
        const [received] = (await once(child, 'message')) as [Received]
        return received
      },
    },
    openLoop() {
      const sender = createWebhookSender({ allowHosts: ['127.0.0.1'], log, clock: systemClock })
      const deps = { sql, box, sender, clock: systemClock, nodeId: newId<'node'>(), log, random: Math.random }
      const loop = createDeliveryLoop(deps)
      loop.start()
      const closeBoth = async () => {
        // What hangs at the end of a row is cut at once.
        await Promise.all([loop.close(), pause(200).then(() => sender.close())])
      }
      return { wake: () => loop.wake(), close: closeBoth }
    },
    postgresCpuMs: () => cpuOfChildren(process.pid),
    async vacuum() {
      const own = connect({ server, applicationName: 'parley bench', maxConnections: 1 })
      await own`vacuum deliveries`
      await own.end()
    },
    async close() {
      const exit = once(child, 'exit')
      child.send('close')
      await exit
      await closeDatabase()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

const ticksPerSecond = 100

/** Of every process below this one that is called postgres, those that have ended included, ms. */
async function cpuOfChildren(root: number): Promise<number> {
  const processes = await Promise.all(
    (await readdir('/proc'))
      .filter((name) => /^\d+$/.test(name))
      .map((name) => readFile(`/proc/${name}/stat`, 'utf8').then(statOf, () => null)),
  )
  const below = new Set([root])
  let grown = true
  while (grown) {
    const children = processes.filter((stat) => stat && below.has(stat.parent) && !below.has(stat.id))
    for (const stat of children) if (stat) below.add(stat.id)
    grown = children.length > 0
  }
  const postgres = processes.filter((stat) => stat && below.has(stat.id) && stat.name.startsWith('postgres'))
  return postgres.reduce((sum, stat) => sum + ((stat?.ticks ?? 0) * 1000) / ticksPerSecond, 0)
}

/** proc(5): after the name come state, ppid and, from the 14th, utime, stime, cutime, cstime. */
function statOf(text: string) {
  const name = text.slice(text.indexOf('(') + 1, text.lastIndexOf(')'))
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  const ticks = (fields[11] ?? 0) + (fields[12] ?? 0)
  return { id: Number.parseInt(text, 10), parent: fields[1] ?? 0, name, ticks }
}

async function subscribe(bench: Bench, accountId: AccountId, at: string): Promise<SubscriptionId> {
  const request = { eventType: '*', url: `${bench.receiver.url}${at}` } as const
  return (await createSubscription(bench.sql, box, { accountId, request, newId, now: Date.now() })).id as SubscriptionId
}

async function laneTo(bench: Bench, at: string): Promise<Lane> {
  const tenant = await createTenant(bench.sql, { slug: newId() })
  await subscribe(bench, tenant.accountId, at)
  return insertCall(bench.sql, tenant)
}

async function insertCall(sql: Sql | Transaction, tenant: Tenant): Promise<Lane> {
  const id = newId<'call'>()
  await sql`
    insert into calls (id, account_id, worker_id, session_id, direction, transport, progress, snapshot)
    values (${id}, ${tenant.accountId}, ${tenant.workerId}, ${id}, 'inbound', 'webrtc', 'in_progress', '{}')`
  return { accountId: tenant.accountId, workerId: tenant.workerId, callId: id }
}

const enqueue = (sql: Sql, lane: Lane, events: readonly OutboxEvent[]): Promise<void> =>
  sql.begin((tx) => enqueueDeliveries(tx, { ...lane, events, now: Date.now(), newId })) as Promise<void>

const eventsOf = (callId: CallId, count: number): OutboxEvent[] =>
  Array.from({ length: count }, (_, index) => transcript(callId, index))

const transcript = (callId: CallId, turnIndex: number): OutboxEvent => ({
  type: 'call.transcript',
  data: {
    callId,
    turnIndex,
    role: 'user',
    text: 'Good morning, I would like to move my appointment to the end of next week, please.',
    isFinal: true,
    confidence: 0.9,
    source: 'embedded',
    ts: new Date().toISOString(),
  },
})
