/**
 * Owns `npm run bench steps`: what the steps of calls cost when so many calls a second are answered and end. Postgres, with its syncs to disk, is in
 * processes of its own. A call makes the six steps that a short one makes between its birth and call.ended, some ms after one another.
 */
import { createSecretKey, randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import process from 'node:process'
import { setTimeout as pause } from 'node:timers/promises'
import type { Effect } from '../../actors/call/call-event.ts'
import { readsOf, recordEffects } from '../../actors/call/record-effects.ts'
import { createLog } from '../../app/log.ts'
import type { CallId, NodeId } from '../../model/ids.ts'
import type { Json } from '../../model/json.ts'
import { claimCall } from '../../store/call-steps.ts'
import { observedSql } from '../../store/observed-sql.ts'
import { openDatabase } from '../../store/open-database.ts'
import { createSecretBox } from '../../store/secret-box.ts'
import type { Sql } from '../../store/sql.ts'
import { createStepWriter } from '../../store/step-groups.ts'
import { createSubscription } from '../../store/subscriptions.ts'
import type { Tenure } from '../../store/write-steps.ts'
import { createTenant, newId, type Tenant } from '../scenes/tenant.ts'
import { readPostgresCpu } from './postgres-cpu.ts'
import { printTable, quantile } from './table.ts'

const seconds = 6
const connections = 10
/** BEGIN, the guard of its deadline, COMMIT. */
const ofEachTransaction = 3
const betweenSteps = 30

type Bench = { readonly sql: Sql; readonly tenant: Tenant; readonly nodeId: NodeId; readonly count: Count }
type Count = { queries: number; transactions: number }
type Call = { readonly id: CallId; readonly epoch: number; version: number }

export async function benchSteps(given: readonly string[]): Promise<void> {
  const rates = given.length > 0 ? given.map(Number) : [1, 20, 100, 200]
  const dataDir = await mkdtemp(path.join(tmpdir(), 'parley-bench-'))
  const database = await openDatabase({ databaseUrl: null, dataDir, log: createLog('error') })
  try {
    const count: Count = { queries: 0, transactions: 0 }
    const sql = countedSql(database.sql, count)
    const tenant = await createTenant(sql)
    const request = { eventType: '*', url: 'https://example.com/hook' } as const
    const box = createSecretBox(createSecretKey(randomBytes(32)))
    await createSubscription(sql, box, { accountId: tenant.accountId, request, newId, now: Date.now() })
    const nodeId = newId<'node'>()
    await sql`insert into nodes (id, lease_until) values (${nodeId}, 'infinity')`
    const bench = { sql, tenant, nodeId, count }
    await run(bench, 20, 2)
    const rows = []
    for (const rate of rates) rows.push(await run(bench, rate, seconds))
    printTable(rows)
  } finally {
    await database.close()
    await rm(dataDir, { recursive: true })
  }
}

function countedSql(sql: Sql, count: Count): Sql {
  return observedSql(sql, {
    isOn: true,
    add: () => {},
    observe: (name: string) => {
      if (name === 'db.query') count.queries++
      if (name === 'db.connection_wait') count.transactions++
    },
  } as never)
}

async function run(bench: Bench, rate: number, forSeconds: number) {
  const { sql, count } = bench
  const calls = await openCalls(bench, rate * forSeconds)
  const write = openWriter(bench)
  const took: number[] = []
  const before = { ...count, ...(await readServer(sql)), ...readCpu(), postgres: await readPostgresCpu(sql) }
  const at = { ...count }
  const began = performance.now()
  await Promise.all(
    calls.map(async (call, index) => {
      await pause((index / rate + Math.random() / rate) * 1000)
      for (const effects of effectsOfCall(Date.now())) {
        const asked = performance.now()
        await write(call, effects)
        took.push(performance.now() - asked)
        await pause(Math.random() * betweenSteps)
      }
    }),
  )
  const lasted = (performance.now() - began) / 1000
  const done = { ...count }
  const after = { ...(await readServer(sql)), ...readCpu(), postgres: await readPostgresCpu(sql) }
  const perCall = (value: number, digits = 1): string => (value / calls.length).toFixed(digits)
  const transactions = done.transactions - at.transactions
  return {
    'calls/s': String(rate),
    'steps/s': (took.length / lasted).toFixed(0),
    'steps of a transaction': (took.length / transactions).toFixed(1),
    'statements per call': perCall(done.queries - at.queries + ofEachTransaction * transactions),
    commits: perCall(after.commits - before.commits, 2),
    fsyncs: perCall(after.syncs - before.syncs, 2),
    'WAL KB': perCall((after.walBytes - before.walBytes) / 1000),
    'CPU ms': perCall(after.cpu - before.cpu, 2),
    'and of Postgres': perCall(after.postgres - before.postgres, 2),
    'a step p50/p95 ms': `${quantile(took, 0.5).toFixed(1)} / ${quantile(took, 0.95).toFixed(1)}`,
  }
}

const readCpu = () => {
  const { user, system } = process.cpuUsage()
  return { cpu: (user + system) / 1000 }
}

/** Connections tell what they did with a statement of theirs, once asked to. */
async function readServer(sql: Sql) {
  await Promise.all(Array.from({ length: connections }, () => sql`select pg_stat_force_next_flush(), pg_sleep(0.1)`))
  await Promise.all(Array.from({ length: connections }, () => sql`select pg_sleep(0.1)`))
  const [row] = await sql<{ commits: number; walBytes: number; syncs: number }[]>`
    select (select xact_commit from pg_stat_database where datname = current_database()) as commits,
      (select wal_bytes from pg_stat_wal)::float8 as wal_bytes,
      (select sum(fsyncs) from pg_stat_io where object = 'wal')::float8 as syncs`
  return row ?? { commits: 0, walBytes: 0, syncs: 0 }
}

async function openCalls({ sql, tenant, nodeId }: Bench, count: number): Promise<Call[]> {
  const rows = Array.from({ length: count }, () => ({
    id: newId<'call'>(),
    ...tenant,
    sessionId: 's',
    direction: 'inbound',
    transport: 'sip_trunk',
    progress: 'ringing',
    fromNumber: '+4930100',
    toNumber: '+4930200',
    metadata: sql.json({ externalCallId: 'a-4711' }),
    snapshot: sql.json({}),
  }))
  const calls: Call[] = []
  for (let at = 0; at < rows.length; at += 500) {
    const part = rows.slice(at, at + 500)
    await sql`insert into calls ${sql(part)}`
    const claims = await Promise.all(part.map(({ id }) => claimCall(sql, id, nodeId)))
    calls.push(...part.map(({ id }, index) => ({ id, epoch: claims[index]?.epoch ?? 0, version: 0 })))
  }
  return calls
}

const effectsOfCall = (now: number): readonly Effect[][] => [
  [
    { type: 'store_worker_request', config: null, locale: null, instructions: null, tools: null, metadata: null },
    { type: 'answer' },
  ],
  [
    { type: 'announce_status', status: 'in_progress', providerStatus: '200' },
    { type: 'start_conversation', turns: 0, memory: null, answeredAt: now },
  ],
  [{ type: 'store_recording_state', state: 'off' }],
  [{ type: 'wind_up', reason: 'completed' }],
  [
    { type: 'announce_status', status: 'completed', providerStatus: '200' },
    {
      type: 'store_outcome',
      outcome: { status: 'completed' },
      answeredAt: now,
      endedAt: now + 1,
      endedBy: 'caller',
      endCause: null,
    },
    { type: 'schedule_post_processing' },
  ],
  [
    {
      type: 'store_analysis',
      recordedMs: null,
      dimensions: {},
      nextAction: null,
      evidence: {},
      summary: null,
      warnings: [],
    },
    { type: 'announce_ended' },
  ],
]

/** About as large as those of calls. */
const snapshot = {
  status: 'active',
  value: { talking: 'open' },
  context: { notes: {}, filler: 'x'.repeat(600) },
  children: {},
}

function openWriter({ sql, tenant, nodeId }: Bench) {
  const writer = createStepWriter({ sql, newId })
  return async (call: Call, effects: readonly Effect[]): Promise<void> => {
    const now = Date.now()
    const tenure: Tenure = {
      callId: call.id,
      accountId: tenant.accountId,
      nodeId,
      epoch: call.epoch,
      version: call.version,
    }
    const written = await writer.write({
      tenure,
      next: { snapshot, dormant: false, finished: effects.at(-1)?.type === 'announce_ended' },
      logged: { event: { type: 'noted', key: 'k', value: 'v' }, effects: effects as Json, ignored: false, at: now },
      reads: readsOf(effects),
      rowsOf: (facts) => recordEffects(facts, effects, now),
    })
    if (written !== 'written') throw new Error('a step was fenced')
    call.version++
  }
}
