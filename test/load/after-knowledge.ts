/**
 * Owns `npm run bench after knowledge`: how long a search takes in 1,000, 5,000 and 50,000 passages of a worker, one after another; where the server
 * (TEST_DATABASE_URL) has pgvector, with that too.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { lexicalEmbedder, lexicalVector } from '../../actors/documents/lexical-embedder.ts'
import type { AccountId } from '../../model/ids.ts'
import { storeVectors } from '../../store/database-vectors.ts'
import { createDocument } from '../../store/documents.ts'
import { createKnowledge } from '../../store/knowledge.ts'
import { insertPassages, nextRevision, settleIndex } from '../../store/passages.ts'
import { settleVectorSearch } from '../../store/settle-vector-search.ts'
import type { Sql } from '../../store/sql.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { createTenant, newId, type Tenant } from '../scenes/tenant.ts'
import { createProse } from './prose.ts'
import { printTable, quantile } from './table.ts'

const sizes = [1_000, 5_000, 50_000]
const perDocument = 200
const searches = 300
const warmUp = 20

export async function benchKnowledge(): Promise<void> {
  const closing = new AsyncDisposableStack()
  const { sql } = await openTestDatabase({ teardown: (close) => closing.defer(close) })
  const { schema } = await settleVectorSearch(sql)
  for (const size of sizes) {
    const tenant = await createTenant(sql, { slug: `of-${size}` })
    await fill(sql, tenant, size)
    if (schema !== null) await storeAll(sql, schema)
    for (const vectorSchema of new Set([null, schema])) await benchSearches(sql, tenant, size, vectorSchema)
  }
  await closing.disposeAsync()
}

async function storeAll(sql: Sql, schema: string): Promise<void> {
  const rows = await sql<{ revision: number }[]>`
    select distinct revision from passages where not exists (select from passage_halfvecs as kept where kept.revision = passages.revision)`
  for (const { revision } of rows) await storeVectors(sql, schema, revision)
  await sql`analyze passage_halfvecs`
}

async function benchSearches(sql: Sql, tenant: Tenant, size: number, vectorSchema: string | null): Promise<void> {
  const held = process.memoryUsage().arrayBuffers
  const deps = { sql, embedder: lexicalEmbedder, maxBytes: 128_000_000, vectorSchema, log: createQuietLog() }
  const knowledge = createKnowledge(deps)
  const { question } = createProse(11)
  const first = await timed(() => knowledge.search({ ...tenant, query: question(), limit: 5 }))
  for (let count = 0; count < warmUp; count += 1) await knowledge.search({ ...tenant, query: question(), limit: 5 })
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  const took: number[] = []
  for (let count = 0; count < searches; count += 1)
    took.push(await timed(() => knowledge.search({ ...tenant, query: question(), limit: 5 })))
  delay.disable()
  const row = {
    passages: String(size),
    vectors: vectorSchema === null ? 'memory' : 'pgvector',
    'p50 ms': quantile(took, 0.5).toFixed(1),
    'p95 ms': quantile(took, 0.95).toFixed(1),
    'max ms': Math.max(...took).toFixed(1),
    'first ms': first.toFixed(0),
    'buffers MB': ((process.memoryUsage().arrayBuffers - held) / 1e6).toFixed(0),
    'longest pause of the thread ms': (delay.max / 1e6).toFixed(1),
  }
  printTable([row])
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await work()
  return performance.now() - began
}

async function fill(sql: Sql, { accountId, workerId }: Tenant, size: number): Promise<void> {
  const prose = createProse(size)
  for (let count = 0; count < size; count += perDocument) await addDocument(sql, { accountId, workerId }, prose)
  await settleIndex(sql)
  await sql`analyze documents`
  await sql`analyze passages`
}

async function addDocument(
  sql: Sql,
  { accountId, workerId }: Tenant & { accountId: AccountId },
  { paragraph, question }: ReturnType<typeof createProse>,
): Promise<void> {
  const passages = Array.from({ length: perDocument }, () => ({ heading: '', text: paragraph() }))
  const title = question()
  const row = { accountId, title, fileName: 'a.txt', content: 'x', status: 'completed', workerIds: [workerId] } as const
  const documentId = await createDocument(sql, { ...row, newId, now: Date.now() })
  const revision = await nextRevision(sql)
  const vectors = passages.map(({ text }) => lexicalVector(`${title}\n${text}`))
  const dictionary = 'english'
  await insertPassages(sql, { accountId, documentId, revision, place: 0, title, dictionary, passages, vectors })
  await sql`
    update documents set revision = ${revision}, passage_count = ${perDocument}, dictionary = ${dictionary}, embedder = ${lexicalEmbedder.name}
    where id = ${documentId}`
}
