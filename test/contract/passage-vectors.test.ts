/**
 * The rules of the PassageVectors port, over both: in memory, and by pgvector where the server of TEST_DATABASE_URL has it. Both are held to one sum
 * over what was written, so that a search finds the same whichever of them does it.
 */
import { t as root, test, type Test } from 'tap'
import { createIngestion } from '../../actors/documents/ingestion.ts'
import { lexicalEmbedder } from '../../actors/documents/lexical-embedder.ts'
import type { Vector } from '../../model/knowledge.ts'
import { createDatabaseVectors, storeVectors } from '../../store/database-vectors.ts'
import { changeDocument, createDocument, deleteDocument, writeDocument } from '../../store/documents.ts'
import { createKnowledge } from '../../store/knowledge.ts'
import { openDatabase } from '../../store/open-database.ts'
import { createPassageVectors, type PassageVectors, type Whose } from '../../store/passage-vectors.ts'
import { insertPassages, nextRevision } from '../../store/passages.ts'
import { settleVectorSearch } from '../../store/settle-vector-search.ts'
import { connect, type Sql } from '../../store/sql.ts'
import { createTimelySql } from '../../store/timely-sql.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createInlineReader } from '../fake/inline-reader.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRandom } from '../fake/random.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { createTenant, newId, type Tenant } from '../scenes/tenant.ts'

const embedder = { name: 'test-1', floor: 0.1 }
const log = createQuietLog()
const withoutServer = 'no server with pgvector 0.7: TEST_DATABASE_URL names one'

const opened = openTestDatabase(root)
const settled = opened.then(async ({ server }) => {
  const own = connect({ server, applicationName: 'test', maxConnections: 1 })
  const found = await settleVectorSearch(own)
  await own.end()
  return found.schema
})

const open = async (t: Test) => {
  const { server } = await opened
  const sql = createTimelySql({ server, applicationName: 'test', maxConnections: 4, limit: 5_000, log })
  t.teardown(() => sql.end())
  return sql
}
const inMemory =
  (sql: Sql, name = embedder.name) =>
  () =>
    createPassageVectors({ sql, embedder: { ...embedder, name }, maxBytes: 16_000_000 })

/** `written` has what a search needs stored, as the ingestion does. */
type Kind = {
  create(sql: Sql, embedder?: string): PassageVectors
  written(sql: Sql, revision: number): Promise<void>
}
const memory: Kind = { create: (sql, name) => inMemory(sql, name)(), written: async () => {} }
const byPgvector = (schema: string): Kind => ({
  create: (sql, name = embedder.name) =>
    createDatabaseVectors({ sql, embedder: { ...embedder, name }, schema, inMemory: refused, log }),
  written: (sql, revision) => storeVectors(sql, schema, revision),
})
/** Nothing is found in memory, so that nothing else than the extension can have found what is. */
const refused = (): PassageVectors => ({ nearest: async () => [{ revision: -1, place: -1 }], size: () => 0 })

function rules(rule: string, check: (t: Test, sql: Sql, kind: Kind) => Promise<void>): void {
  void test(`memory: ${rule}`, async (t) => check(t, await open(t), memory))
  pgvector(`pgvector: ${rule}`, async (t, sql, schema) => check(t, sql, byPgvector(schema)))
}
function pgvector(title: string, check: (t: Test, sql: Sql, schema: string) => Promise<void>): void {
  void test(title, async (t) => {
    const schema = await settled
    if (schema === null) return void t.pass('pgvector', { skip: withoutServer })
    return check(t, await open(t), schema)
  })
}

const random = createRandom(7)
const randomVector = (parts: number): Vector => Int8Array.from({ length: parts }, () => random.below(255) - 127)

async function add(sql: Sql, tenant: Tenant, vectors: readonly Vector[], by = embedder.name) {
  const { accountId, workerId } = tenant
  const row = {
    accountId,
    title: 'A',
    fileName: 'a.txt',
    content: 'x',
    status: 'completed',
    workerIds: [workerId],
  } as const
  const documentId = await createDocument(sql, { ...row, newId, now: Date.now() })
  return { documentId, revision: await revise(sql, tenant, documentId, vectors, by) }
}
async function revise(
  sql: Sql,
  { accountId }: Tenant,
  documentId: DocumentId,
  vectors: readonly Vector[],
  by = embedder.name,
) {
  const revision = await nextRevision(sql)
  const passages = vectors.map((_, place) => ({ heading: '', text: `Passage ${place}` }))
  const shared = { accountId, documentId, revision, title: 'A', dictionary: 'simple' }
  await insertPassages(sql, { ...shared, place: 0, passages, vectors })
  await sql`
    update documents set revision = ${revision}, passage_count = ${vectors.length}, dictionary = 'simple', embedder = ${by} where id = ${documentId}`
  return revision
}
type DocumentId = Awaited<ReturnType<typeof createDocument>>

const now = (print = 'now') => Promise.resolve({ print, isMeant: true })
const nearest = (vectors: PassageVectors, whose: Whose, vector: Vector, limit = 50) =>
  vectors.nearest(whose, now(`${random.next()}`), vector, limit)

function cosine(one: Vector, other: Vector): number {
  const dot = (left: Vector, right: Vector) => left.reduce((sum, part, at) => sum + part * (right[at] ?? 0), 0)
  return dot(one, other) / Math.sqrt(dot(one, one) * dot(other, other))
}

rules('finds the nearest of all documents, the nearest first, and none below the floor', async (t, sql, kind) => {
  const tenant = await createTenant(sql, { slug: newId() })
  const written = new Map<number, readonly Vector[]>()
  for (const count of [1, 450, 30]) {
    const own = Array.from({ length: count }, () => randomVector(64))
    const { revision } = await add(sql, tenant, own)
    await kind.written(sql, revision)
    written.set(revision, own)
  }
  const vectors = kind.create(sql)
  for (const limit of [1, 7, 50, 200]) {
    const question = randomVector(64)
    const scores = [...written.values()].flatMap((own) => own.map((vector) => cosine(question, vector)))
    const expected = scores
      .toSorted((one, other) => other - one)
      .filter((score) => score >= embedder.floor)
      .slice(0, limit)
    const found = await nearest(vectors, tenant, question, limit)
    const foundScores = found.map(({ revision, place }) => cosine(question, written.get(revision)![place]!))
    t.equal(found.length, expected.length)
    t.ok(expected.length < 200, 'the floor leaves some out')
    t.ok(foundScores.every((score, at) => Math.abs(score - expected[at]!) < 1e-5))
  }
})

rules('puts those that are as near in the order of newer documents, then of their text', async (t, sql, kind) => {
  const tenant = await createTenant(sql, { slug: newId() })
  const vector = randomVector(32)
  const one = await add(sql, tenant, [vector, randomVector(32), vector])
  const other = await add(sql, tenant, [vector.map((part) => -part), vector])
  for (const { revision } of [one, other]) await kind.written(sql, revision)
  const found = await nearest(kind.create(sql), tenant, vector, 3)
  t.same(found, [
    { revision: other.revision, place: 1 },
    { revision: one.revision, place: 0 },
    { revision: one.revision, place: 2 },
  ])
})

rules('finds the worker’s own, active, in their newest form, and no scripts', async (t, sql, kind) => {
  const [tenant, stranger] = [await createTenant(sql, { slug: newId() }), await createTenant(sql, { slug: newId() })]
  const vector = randomVector(32)
  const [own, off, script, gone, foreign] = [
    await add(sql, tenant, [vector]),
    await add(sql, tenant, [vector]),
    await add(sql, tenant, [vector]),
    await add(sql, tenant, [vector]),
    await add(sql, stranger, [vector]),
  ]
  for (const { revision } of [own, off, script, gone, foreign]) await kind.written(sql, revision)
  const vectors = kind.create(sql)
  t.equal((await nearest(vectors, tenant, vector)).length, 4)
  const { accountId } = tenant
  await changeDocument(sql, { accountId, documentId: off.documentId, change: { isActive: false }, now: Date.now() })
  await sql`update documents set tag_keys = array['inbound_call_script'] where id = ${script.documentId}`
  await deleteDocument(sql, accountId, gone.documentId)
  const newest = await revise(sql, tenant, own.documentId, [randomVector(32), vector])
  await kind.written(sql, newest)
  t.same((await nearest(vectors, tenant, vector)).slice(0, 1), [{ revision: newest, place: 1 }])
  t.ok((await nearest(vectors, tenant, vector)).every(({ revision }) => revision === newest))
  t.same(await nearest(vectors, { accountId, workerId: stranger.workerId }, vector), [])
  t.same(await nearest(vectors, stranger, vector), [{ revision: foreign.revision, place: 0 }])
})

rules('compares with vectors of the same embedder and size, and with none that is all zero', async (t, sql, kind) => {
  const tenant = await createTenant(sql, { slug: newId() })
  const vector = randomVector(3_000)
  const own = await add(sql, tenant, [new Int8Array(3_000), vector])
  const shorter = await add(sql, tenant, [vector.slice(0, 8)])
  const later = await add(sql, tenant, [vector], 'test-2')
  for (const { revision } of [own, shorter, later]) await kind.written(sql, revision)
  const vectors = kind.create(sql)
  t.same(await nearest(vectors, tenant, vector), [{ revision: own.revision, place: 1 }])
  t.same(await nearest(vectors, tenant, vector.slice(0, 8)), [{ revision: shorter.revision, place: 0 }])
  t.same(await nearest(vectors, tenant, new Int8Array(3_000)), [])
  t.same(await nearest(kind.create(sql, 'test-2'), tenant, vector), [{ revision: later.revision, place: 0 }])
})

rules('finds nothing for a question without a meaning', async (t, sql, kind) => {
  const tenant = await createTenant(sql, { slug: newId() })
  const vector = randomVector(32)
  const { revision } = await add(sql, tenant, [vector])
  await kind.written(sql, revision)
  t.same(await kind.create(sql).nearest(tenant, Promise.resolve({ print: '', isMeant: false }), vector, 5), [])
})

pgvector(
  'what a process without pgvector has written is found at once, and stored for the searches that follow',
  async (t, sql, schema) => {
    const tenant = await createTenant(sql, { slug: newId() })
    const own = Array.from({ length: 401 }, () => randomVector(32))
    const stored = await add(sql, tenant, own.slice(0, 3))
    await storeVectors(sql, schema, stored.revision)
    const { revision, documentId } = await add(sql, tenant, own)
    let searches = 0
    const counted = (): PassageVectors => {
      const within = inMemory(sql)()
      return { ...within, nearest: (...given) => ((searches += 1), within.nearest(...given)) }
    }
    const vectors = createDatabaseVectors({ sql, embedder, schema, inMemory: counted, log })
    t.same((await nearest(vectors, tenant, own[400]!, 1))[0], { revision, place: 400 })
    t.equal(searches, 1)
    const left = async () => (await sql`select place from passage_halfvecs where revision = ${revision}`).length
    for (let looks = 0; looks < 1_000 && ((await left()) < 401 || vectors.size() > 0);) looks += 1
    t.same((await nearest(vectors, tenant, own[400]!, 1))[0], { revision, place: 400 })
    t.equal(searches, 1, 'no more in memory')
    await deleteDocument(sql, tenant.accountId, documentId)
    t.equal(await left(), 0, 'what is stored goes with its passage')
  },
)

pgvector('a vector that is too long for pgvector is compared in memory', async (t, sql, schema) => {
  const tenant = await createTenant(sql, { slug: newId() })
  const vector = randomVector(16_384)
  const { revision } = await add(sql, tenant, [vector])
  await t.rejects(storeVectors(sql, schema, revision), { code: '54000' })
  const vectors = createDatabaseVectors({ sql, embedder, schema, inMemory: inMemory(sql), log })
  t.same(await nearest(vectors, tenant, vector), [{ revision, place: 0 }])
})

pgvector('a document is stored for pgvector before it is searched', async (t, sql, schema) => {
  const { accountId, workerId } = await createTenant(sql, { slug: newId() })
  const clock = createHandClock()
  const ingestion = createIngestion({
    sql,
    clock,
    log,
    nodeId: newId<'node'>(),
    newId,
    embedder: lexicalEmbedder,
    checkScript: async () => () => [],
    reader: createInlineReader(),
    storeVectors: (revision) => storeVectors(sql, schema, revision),
  })
  t.teardown(() => ingestion.close())
  const request = { title: 'A', text: 'Bookkeepingsoftware.', workerIds: [workerId] }
  await writeDocument(sql, { accountId, request, newId, now: clock.now() })
  await ingestion.idle()
  t.match(
    await sql`select parts from passage_halfvecs join documents using (revision) where account_id = ${accountId}`,
    [{ parts: 512 }],
  )
  const knowledge = createKnowledge({ sql, embedder: lexicalEmbedder, maxBytes: 1, vectorSchema: schema, log })
  // By its vector: no word is the same, and memory has no room for it.
  t.match(await knowledge.search({ accountId, workerId, query: 'bookkeepingsoft', limit: 5 }), [
    { text: 'Bookkeepingsoftware.' },
  ])
})

pgvector(
  'an extension that is dropped under a running service leaves the search in memory, and a start makes it anew',
  async (t) => {
    const { server, databaseUrl, dataDir } = await openTestDatabase(t)
    const sql = createTimelySql({ server, applicationName: 'test', maxConnections: 4, limit: 5_000, log })
    t.teardown(() => sql.end())
    const schema = (await settleVectorSearch(sql)).schema ?? ''
    const tenant = await createTenant(sql)
    const vector = randomVector(32)
    const { revision } = await add(sql, tenant, [vector])
    await storeVectors(sql, schema, revision)
    const vectors = createDatabaseVectors({ sql, embedder, schema, inMemory: inMemory(sql), log })
    const expected = [{ revision, place: 0 }]
    t.same(await nearest(vectors, tenant, vector), expected)
    await sql`drop extension vector cascade`
    t.same(await nearest(vectors, tenant, vector), expected)
    const again = await openDatabase({ databaseUrl, dataDir, log })
    t.teardown(() => again.close())
    t.equal(again.vectorSchema, schema)
    await storeVectors(again.sql, schema, revision)
    const anew = byPgvector(schema).create(again.sql)
    t.same(await nearest(anew, tenant, vector), expected)
  },
)

pgvector('a role that may not create the extension has the service started, and the operator told why', async (t) => {
  const { server } = await openTestDatabase(t)
  const sql = connect({ server, applicationName: 'test', maxConnections: 1 })
  t.teardown(() => sql.end())
  const role = `poor_${newId().slice(-12)}`
  await sql`create role ${sql(role)} login`
  try {
    await sql`set role ${sql(role)}`
    t.match(await settleVectorSearch(sql), { schema: null, lacking: /permission denied to create extension "vector"/ })
    await sql`reset role`
    await sql`create schema extensions`
    await sql`create extension vector schema extensions`
    await sql`grant usage on schema extensions to ${sql(role)}`
    await sql`grant usage, create on schema public to ${sql(role)}`
    await sql`grant references on passages to ${sql(role)}`
    await sql`set role ${sql(role)}`
    t.same(
      await settleVectorSearch(sql),
      { schema: 'extensions', lacking: null },
      'what an administrator creates is used from the next start on',
    )
    await sql`reset role`
    const tenant = await createTenant(sql)
    const vector = randomVector(32)
    const { revision } = await add(sql, tenant, [vector])
    await storeVectors(sql, 'extensions', revision)
    const vectors = byPgvector('extensions').create(sql)
    t.same(await nearest(vectors, tenant, vector), [{ revision, place: 0 }])
  } finally {
    await sql`reset role`
    await sql`drop owned by ${sql(role)}`
    await sql`drop role ${sql(role)}`
  }
})
