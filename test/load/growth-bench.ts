/**
 * Owns `npm run bench growth [calls …] [keep=<folder>]`: fills accounts of these sizes and prints how long everything takes that must not grow with them. With `keep` the
 * filled database stays there, and is measured again.
 */
import { createSecretKey, randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { v7 as uuid } from 'uuid'
import { createLog } from '../../app/log.ts'
import type { NewId, NodeId } from '../../model/ids.ts'
import { PersonQuery } from '../../model/person.ts'
import { PhoneCallQuery } from '../../model/phone-call.ts'
import { DeliveryQuery } from '../../model/webhook.ts'
import { listCalls } from '../../store/calls.ts'
import { claimDue, enqueueDeliveries, giveUpStale } from '../../store/deliveries.ts'
import { forgetDeliveries, listDeliveries } from '../../store/delivery-log.ts'
import { recordAttempts } from '../../store/delivery-verdicts.ts'
import { listDocuments } from '../../store/documents.ts'
import { claimJobs } from '../../store/jobs.ts'
import { releaseClaims } from '../../store/nodes.ts'
import { startEmbeddedPostgres } from '../../store/embedded-postgres.ts'
import { migrate } from '../../store/migrate.ts'
import { listPersons } from '../../store/persons.ts'
import { createSecretBox } from '../../store/secret-box.ts'
import { connect, type Sql } from '../../store/sql.ts'
import { fillGrown, type Grown } from './growth-fill.ts'
import { measureRemovals } from './growth-removals.ts'
import { printTable, quantile } from './table.ts'

const newId = (() => uuid()) as NewId
const defaultSizes = [10_000, 100_000]
const keepWord = 'keep='
const box = createSecretBox(createSecretKey(randomBytes(32)))

export async function benchGrowth(given: readonly string[]): Promise<void> {
  const sizes = given.map(Number).filter((size) => size > 0)
  const kept = given.find((word) => word.startsWith(keepWord))?.slice(keepWord.length) ?? null
  for (const size of sizes.length > 0 ? sizes : defaultSizes) await measureSize(size, kept)
}

async function measureSize(calls: number, kept: string | null): Promise<void> {
  await using closing = new AsyncDisposableStack()
  const dataDir = kept === null ? await mkdtemp(path.join(tmpdir(), 'parley-bench-')) : path.join(kept, String(calls))
  if (kept === null) closing.defer(() => rm(dataDir, { recursive: true, force: true }))
  else await mkdir(dataDir, { recursive: true })
  const postgres = await startEmbeddedPostgres({ dataDir, log: createLog('warn') })
  closing.defer(() => postgres.close())
  const options = {
    server: postgres.server,
    applicationName: 'parley bench',
    maxConnections: 8,
    statementTimeout: 900_000,
  }
  const sql = connect(options)
  closing.defer(() => sql.end({ timeout: 1 }))
  await migrate(sql)
  const began = performance.now()
  const grown = await filled(dataDir, () => fillGrown(sql, box, calls, newId))
  const [weight] = await sql<{ mb: number }[]>`select pg_database_size(current_database()) / 1000000 as mb`
  console.log(
    `\n${calls} calls, ${calls / 2} deliveries that wait, ${calls / 5} persons: ${weight?.mb} MB, filled in ${seconds(began)} s`,
  )
  const rows = []
  for (const [what, work] of Object.entries(questionsOf(sql, grown))) rows.push(await timed(what, work))
  printTable(rows)
  printTable(await measureRemovals({ sql, grown, newId }))
}

/** A database that was kept is not filled again; what it holds stands beside it. What removals took the last time is gone. */
async function filled(dataDir: string, fill: () => Promise<Grown>): Promise<Grown> {
  const file = path.join(dataDir, 'grown.json')
  const former = await readFile(file, 'utf8').catch(() => null)
  if (former !== null) return JSON.parse(former) as Grown
  const grown = await fill()
  await writeFile(file, JSON.stringify(grown))
  return grown
}

const seconds = (began: number): string => ((performance.now() - began) / 1000).toFixed(1)

/** In the order in which they are asked: claims at first find a queue of which nothing is known. */
function questionsOf(sql: Sql, grown: Grown): Record<string, () => Promise<unknown>> {
  const { accountId, workerId, waiting, finished, quiet, running, calls } = grown
  const [some = newId<'call'>()] = running
  const calling = (query: object) => () => listCalls(sql, accountId, PhoneCallQuery.parse(query))
  const persons = (query: object) => () => listPersons(sql, accountId, PersonQuery.parse(query))
  const deliveries = (id: typeof waiting, query: object) => () =>
    listDeliveries(sql, accountId, id, DeliveryQuery.parse(query))
  const claim = (perSubscription: number) => async () => {
    const now = Date.now()
    const bounds = { limit: 64, lease: 60_000, perSubscription, rooms: new Map() }
    const claimed = await claimDue(sql, { nodeId: newId<'node'>(), now, ...bounds })
    return { claimed, now }
  }
  const deliver = async () => {
    const { claimed, now } = await claim(16)()
    const facts = {
      at: now,
      durationMs: 5,
      statusCode: 200,
      error: null,
      responseExcerpt: 'ok',
      verdict: 'delivered',
      runAt: null,
    } as const
    await recordAttempts(
      sql,
      claimed.map(({ id, attempt }) => ({ id, attempt, ...facts })),
      { now, staleBefore: 0 },
    )
  }
  const step = async () => {
    const data = { callId: some, status: 'in_progress', providerStatus: null, ts: '' } as const
    const events = [{ type: 'call.status_update', data }] as const
    await sql.begin((tx) =>
      enqueueDeliveries(tx, { accountId, workerId, callId: some, events, now: Date.now(), newId }),
    )
  }
  return {
    'a claim': claim(16),
    'a claim and its verdicts': deliver,
    'events of a step': step,
    'stale news, nothing to give up': () => giveUpStale(sql, { before: Date.now() - 3_600_000, now: Date.now() }),
    'claims of a dead node': () => releaseClaims(sql, [newId<'node'>() as NodeId]),
    'jobs that are due': () => claimJobs(sql, newId<'node'>(), Date.now(), 60_000, 16),
    'deliveries of a call': deliveries(finished, { callId: newId<'call'>() }),
    'pending deliveries': deliveries(waiting, { status: 'pending' }),
    'pending deliveries, none': deliveries(quiet, { status: 'pending' }),
    'pending deliveries where all are done': deliveries(finished, { status: 'pending' }),
    calls: calling({}),
    'calls: worker, direction, status; none': calling({ workerId, direction: 'inbound', status: 'busy' }),
    'calls: worker, status; none': calling({ workerId, status: 'in_progress', direction: 'outbound' }),
    'calls: another worker, direction': calling({ workerId: newId<'worker'>(), direction: 'inbound' }),
    'calls: worker, other direction, queued': calling({ workerId, direction: 'outbound', status: 'queued' }),
    'calls: a word that all have': calling({ q: 'common' }),
    'calls: a word of a thousandth': calling({ q: 'thousandth7' }),
    'calls: two words': calling({ q: 'common hundredth7' }),
    'calls: a word that all have, status; none': calling({ q: 'common', status: 'busy' }),
    'calls: a word of none': calling({ q: 'nobody' }),
    persons: persons({}),
    'persons: a name': persons({ query: `last${Math.floor(calls / 7)}` }),
    'persons: two words': persons({ query: 'first7 last7' }),
    'persons: nobody': persons({ query: 'zzyzx' }),
    'persons: a rare tag': persons({ tag: 'rare' }),
    'persons: a common tag': persons({ tag: 'common' }),
    'persons: a tag of nobody': persons({ tag: 'none' }),
    documents: () => listDocuments(sql, accountId, {} as never),
    'documents: a tag': () => listDocuments(sql, accountId, { tagKey: 'rare' } as never),
    'old deliveries, 1,000 forgotten': () => forgetDeliveries(sql, Date.now() - 30 * 24 * 3_600_000, 1_000),
  }
}

const rounds = 15

async function timed(what: string, work: () => Promise<unknown>): Promise<Record<string, string>> {
  const took: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    const before = performance.now()
    await work()
    took.push(performance.now() - before)
    // One that takes seconds is told after fewer.
    if (took.reduce((sum, ms) => sum + ms, 0) > 10_000) break
  }
  const ms = (value: number | undefined): string => (value ?? Number.NaN).toFixed(1)
  return { what, first: ms(took[0]), 'p50 ms': ms(quantile(took, 0.5)), most: ms(Math.max(...took)) }
}
