/**
 * Owns comparing the vectors of passages in the database, by pgvector: each one of the worker's current documents, so that what is found is what memory
 * finds. A document that is not stored so yet (it is of before, or of a process that did not know of the extension) is stored at the first search that
 * needs it, and until then all of the worker's are compared in memory.
 */
import type { Embedder } from '../model/knowledge.ts'
import type { Log } from '../model/log.ts'
import { knownDocuments } from './known-documents.ts'
import type { PassageVectors, Place, Whose } from './passage-vectors.ts'
import type { Sql } from './sql.ts'

type Deps = {
  readonly sql: Sql
  readonly embedder: Pick<Embedder, 'name' | 'floor'>
  /** Of the extension. */
  readonly schema: string
  readonly inMemory: () => PassageVectors
  readonly log: Log
}

/** What `halfvec` holds; a whole number of a byte is exact in it. */
const maxParts = 16_000
/** Passages that one statement stores, and documents that one search has stored. */
const rowsAtOnce = 200
const documentsAtOnce = 1_000
/** What is missing, or not as it was: the extension has been dropped or replaced. */
const isGone = (error: unknown): boolean =>
  /^(?:42...|3F000|0A000|58P01|XX000)$/.test(String((error as { code?: unknown } | null)?.code))

export function createDatabaseVectors({ sql, embedder, schema, inMemory, log }: Deps): PassageVectors {
  let memory = inMemory()
  let isUsable = true
  let storing: Promise<void> | null = null

  const store = async (revisions: readonly number[]): Promise<void> => {
    try {
      for (const revision of revisions) await storeVectors(sql, schema, revision)
      // What it loaded for this is not needed any more.
      memory = inMemory()
    } catch (error) {
      log.warn('vectors could not be stored for pgvector, and are compared in memory', { error })
    }
  }
  const find = async (whose: Whose, vector: Int8Array, limit: number): Promise<Found | null> => {
    if (!isUsable || vector.length > maxParts) return null
    try {
      return await findNearest(sql, { schema, whose, embedder, vector, limit })
    } catch (error) {
      if (!isGone(error)) throw error
      isUsable = false
      log.warn('pgvector cannot be used any more; vectors are compared in memory until the next start', { error })
      return null
    }
  }
  return {
    async nearest(whose, current, vector, limit) {
      const [{ isMeant }, found] = await Promise.all([current, find(whose, vector, limit)])
      if (!isMeant) return []
      if (found?.lacking.length === 0) return found.places
      if (found) storing ??= store(found.lacking).finally(() => (storing = null))
      return memory.nearest(whose, current, vector, limit)
    },
    size: () => memory.size(),
  }
}

type Found = { readonly places: Place[]; readonly lacking: readonly number[] }
type FoundRow = { readonly places: [number, number][]; readonly lacking: number[] }

/** Documents that are not stored: `lacking`, and then no places. `offset 0` has each document looked up by its key, whatever Postgres believes of how many there are. */
async function findNearest(
  sql: Sql,
  asked: {
    readonly schema: string
    readonly whose: Whose
    readonly embedder: Pick<Embedder, 'name' | 'floor'>
    readonly vector: Int8Array
    readonly limit: number
  },
): Promise<Found> {
  const { whose, embedder, vector, limit } = asked
  const schema = sql(asked.schema)
  const [, [row]] = await sql.begin((tx) => [
    // To compile the statement takes longer than it saves.
    tx`set local jit = off`,
    tx<FoundRow[]>`
      with wanted as materialized (
        select revision, exists (select from passage_halfvecs as kept where kept.revision = known.revision and place = 0) as is_stored
        from (${knownDocuments(sql, whose)}) as known where embedder = ${embedder.name} and passage_count > 0
      ), nearest as (
        select revision, place, distance from wanted, lateral (
          select place, ${schema}.cosine_distance(embedding, (select ${`[${vector.join()}]`}::${schema}.halfvec)) as distance
          from passage_halfvecs as kept
          where kept.revision = wanted.revision and parts = ${vector.length} and not exists (select from wanted where not is_stored)
          offset 0) as compared
        order by distance, revision desc, place limit ${limit}
      )
      select (select coalesce(jsonb_agg(revision), '[]') from (select revision from wanted where not is_stored limit ${documentsAtOnce}) as first) as lacking,
        (select coalesce(jsonb_agg(jsonb_build_array(revision, place) order by distance, revision desc, place), '[]')
          from nearest where distance <= 1 - ${embedder.floor}::float8) as places`,
  ])
  const places = (row?.places ?? []).map(([revision, place]) => ({ revision, place }))
  return { places, lacking: row?.lacking ?? [] }
}

/** From the last passage to the first. Waits for nobody who deletes them meanwhile: then it throws, and they are asked for again if they are still there. */
export async function storeVectors(sql: Sql, schema: string, revision: number): Promise<void> {
  for (let below: number | null = 2 ** 31 - 1; below !== null;) {
    const [row]: { least: number | null }[] = await sql<{ least: number | null }[]>`
      with piece as materialized (
        select place, vector from passages where revision = ${revision} and place < ${below}
        order by place desc limit ${rowsAtOnce} for key share nowait
      ), written as (
        insert into passage_halfvecs (revision, place, parts, embedding)
        select ${revision}::bigint, place, coalesce(length(vector), 0), (
          select array_agg((get_byte(vector, at) # 128) - 128 order by at) from generate_series(0, length(vector) - 1) as at)::${sql(schema)}.halfvec
        from piece on conflict do nothing
      )
      select min(place) as least from piece`
    below = row?.least ?? null
  }
}
