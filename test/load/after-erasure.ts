/**
 * Owns `npm run bench after erasure`: how long the erasure of a person with 1,000 calls takes among the calls of others, and what it costs the steps of
 * calls that run meanwhile. Erasure and steps share one process, Postgres syncs to disk.
 */
import { createSecretKey, randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createErasures } from '../../actors/privacy/erase-person.ts'
import { systemClock } from '../../app/clock.ts'
import { createLog } from '../../app/log.ts'
import type { CallId, NodeId, PersonId } from '../../model/ids.ts'
import { claimCall } from '../../store/call-steps.ts'
import { createStepWriter } from '../../store/step-groups.ts'
import { openDatabase } from '../../store/open-database.ts'
import { createPerson } from '../../store/persons.ts'
import { createRecordingFolder } from '../../store/recording-folder.ts'
import { createSecretBox } from '../../store/secret-box.ts'
import { clusterPathsOf, superuser } from '../../store/postgres-cluster.ts'
import { connect, type Sql } from '../../store/sql.ts'
import { createTenant, newId, type Tenant } from '../scenes/tenant.ts'
import { printTable, quantile } from './table.ts'

const ownCalls = 1_000
const othersCalls = 9_000
const eventsPerCall = 100
const turnsPerCall = 20
const running = 50
/** Ms between two steps of a running call. */
const stepEvery = 200

const log = createLog('error')

export async function benchErasure(): Promise<void> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'parley-bench-'))
  const { sql, close } = await openDatabase({ databaseUrl: null, dataDir, log })
  try {
    const tenant = await createTenant(sql)
    const { accountId } = tenant
    const request = { type: 'lead', firstName: 'Zdeňka', lastName: 'Quirke', phoneNumber: '+4930901820777' } as const
    const person = await createPerson(sql, { accountId, request, newId, now: Date.now() })
    await insertCalls(sql, tenant, ownCalls, person.id)
    await insertCalls(sql, tenant, othersCalls, null)
    await settle(dataDir)
    const recordings = createRecordingFolder({ folder: path.join(dataDir, 'recordings'), clock: systemClock, log })
    const box = createSecretBox(createSecretKey(randomBytes(32)))
    const erasures = createErasures({ sql, box, recordings, clock: systemClock, log, newId, patience: 3_600_000 })
    const steps = await openSteps(sql, tenant)
    const before = await steps.during(() => pause(5_000))
    const began = performance.now()
    const during = await steps.during(async () => {
      const erasure = await erasures.erasePerson(accountId, person.id)
      console.log(JSON.stringify(erasure?.erased))
    })
    const seconds = (performance.now() - began) / 1_000
    await erasures.close()
    printTable([
      { 'steps of running calls': 'alone', ...cellsOf(before) },
      { 'steps of running calls': 'while a person is erased', ...cellsOf(during) },
    ])
    console.log(
      `erased in ${seconds.toFixed(1)} s: ${ownCalls} calls among ${othersCalls} of others, ${eventsPerCall} log entries each`,
    )
  } finally {
    await close()
    await rm(dataDir, { recursive: true, force: true })
  }
}

/** What the seed leaves to be done would be done while calls are measured, and is nothing that an erasure costs. */
async function settle(dataDir: string): Promise<void> {
  const { socket } = await clusterPathsOf(dataDir)
  const server = { socket, user: superuser, database: 'postgres' }
  const sql = connect({ server, applicationName: 'bench', maxConnections: 1 })
  await sql`vacuum analyze`
  await sql`checkpoint`
  await sql.end()
}

const cellsOf = ({ steps, loop }: Measured) => ({
  steps: String(steps.length),
  'p50 ms': quantile(steps, 0.5).toFixed(1),
  'p99 ms': quantile(steps, 0.99).toFixed(1),
  'max ms': Math.max(...steps).toFixed(1),
  'event loop p99 ms': quantile(loop, 0.99).toFixed(1),
  'event loop max ms': Math.max(...loop).toFixed(1),
})

/** Over, each with a log, turns and deliveries as a talk of some minutes leaves them. */
async function insertCalls(sql: Sql, { accountId, workerId }: Tenant, count: number, personId: PersonId | null) {
  const ids = Array.from({ length: count }, () => newId<'call'>())
  const text = 'I would like to know when you open tomorrow, and whether there is a table for four people at eight.'
  const event = {
    type: 'turn_committed',
    turn: { role: 'user', text, from: 0, to: 900, confidence: 0.5, source: 'e' },
    memory: { said: [text, text, text] },
  }
  const effects = [{ type: 'store_turn', index: 1, turn: event.turn }]
  const now = Date.now() - 86_400_000
  for (let at = 0; at < count; at += 500) {
    const some = ids.slice(at, at + 500)
    await sql`
      insert into calls (id, account_id, worker_id, session_id, direction, transport, progress, outcome, post_processing_status,
        person_id, customer, snapshot, finished, started_at, ended_at, created_at)
      select unnest(${some}::text[]), ${accountId}, ${workerId}, 's', 'inbound', 'webrtc', 'completed', 'completed', 'completed',
        ${personId}, ${sql.json({ type: 'lead', firstName: 'Zdeňka' })}, ${sql.json({ context: { memory: event.memory } })}, true,
        ${now}, ${now}, ${now}`
    await sql`
      insert into call_events (call_id, seq, account_id, epoch, at, event, effects, ignored)
      select id, seq, ${accountId}, 1, ${now}, ${sql.json(event)}, ${sql.json(effects)}, false
      from unnest(${some}::text[]) id, generate_series(0, ${eventsPerCall - 1}::int) seq`
    await sql`
      insert into transcript_turns (call_id, turn_index, account_id, role, text, from_ms, to_ms)
      select id, seq, ${accountId}, 'user', ${text}, 0, 900
      from unnest(${some}::text[]) id, generate_series(0, ${turnsPerCall - 1}::int) seq`
  }
}

type Measured = { readonly steps: number[]; readonly loop: number[] }

/** Running calls that each commit a turn every now and then; what a step takes, and how late the event loop is. */
async function openSteps(sql: Sql, { accountId, workerId }: Tenant) {
  const nodeId: NodeId = newId<'node'>()
  await sql`insert into nodes (id, lease_until) values (${nodeId}, 'infinity')`
  const calls = await Promise.all(
    Array.from({ length: running }, async () => {
      const id: CallId = newId<'call'>()
      await sql`
        insert into calls (id, account_id, worker_id, session_id, direction, transport, progress, snapshot, started_at)
        values (${id}, ${accountId}, ${workerId}, 's', 'inbound', 'webrtc', 'in_progress', '{}', now())`
      const claim = await claimCall(sql, id, nodeId)
      return { id, epoch: claim?.epoch ?? 0, version: claim?.version ?? 0 }
    }),
  )
  const writer = createStepWriter({ sql, newId })
  const step = async (call: (typeof calls)[number]): Promise<number> => {
    const began = performance.now()
    const tenure = { callId: call.id, accountId, nodeId, epoch: call.epoch, version: call.version }
    const turn = { role: 'user', text: 'yes', from: 0, to: 9, confidence: null, source: null } as const
    const logged = { event: { type: 'turn_committed', turn }, effects: [], ignored: false, at: Date.now() }
    const next = { snapshot: { version: call.version }, dormant: false, finished: false }
    const reads = { eventTypes: [], turns: false, config: false }
    const rows = { change: {}, turns: [{ index: call.version, turn }], turnsEndAt: null, events: [], jobs: [] }
    await writer.write({ tenure, next, logged, reads, rowsOf: () => rows })
    call.version += 1
    return performance.now() - began
  }
  return {
    async during(work: () => Promise<unknown>): Promise<Measured> {
      let isOver = false
      const measured: Measured = { steps: [], loop: [] }
      const talking = calls.map(async (call, index) => {
        await pause((index * stepEvery) / running)
        while (!isOver) {
          measured.steps.push(await step(call))
          await pause(stepEvery)
        }
      })
      const watching = (async () => {
        while (!isOver) {
          const began = performance.now()
          await pause(5)
          measured.loop.push(performance.now() - began - 5)
        }
      })()
      await work()
      isOver = true
      await Promise.all([...talking, watching])
      return measured
    },
  }
}
