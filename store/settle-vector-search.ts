/** Owns that vectors of passages are compared in the database where its server has pgvector: looked at whenever the database is opened. */
import type { Sql, Transaction } from './sql.ts'

export type VectorSearch = {
  /** Where the types of the extension are; null: vectors are compared in memory. */
  readonly schema: string | null
  /** Why a server that has the extension does not give it, for people. */
  readonly lacking: string | null
}

/** What follows is in no migration: it exists where the extension does, and goes with it. */
export async function settleVectorSearch(sql: Sql): Promise<VectorSearch> {
  const offered = await sql`select from pg_available_extensions where name = 'vector'`
  if (offered.length === 0) return { schema: null, lacking: null }
  try {
    return await sql.begin(async (tx) => {
      // The lock of migrations: of two processes that start at once one does it.
      await tx`select pg_advisory_xact_lock(7275539)`
      return settle(tx)
    })
  } catch (error) {
    return { schema: null, lacking: error instanceof Error ? error.message : String(error) }
  }
}

async function settle(tx: Transaction): Promise<VectorSearch> {
  await tx`create extension if not exists vector`
  const [found] = await tx<{ schema: string }[]>`
    select nspname as schema from pg_extension join pg_namespace on pg_namespace.oid = extnamespace
    where extname = 'vector' and exists (select from pg_type where typname = 'halfvec' and typnamespace = extnamespace)`
  if (!found) return { schema: null, lacking: 'pgvector 0.7 or newer is needed' }
  // Without the column: the extension was dropped since, and took it along.
  const [former] = await tx`
    select from pg_class where oid = to_regclass('passage_halfvecs') and not exists (
      select from pg_attribute where attrelid = pg_class.oid and attname = 'embedding' and not attisdropped)`
  if (former) await tx`drop table passage_halfvecs`
  // A row goes with its passage. The one of place 0 is written last: where it is, the revision is whole. Vectors stay in the table itself, to be read in a row.
  await tx`
    create table if not exists passage_halfvecs (
      revision bigint not null,
      place integer not null,
      parts integer not null,
      embedding ${tx(found.schema)}.halfvec,
      primary key (revision, place),
      foreign key (revision, place) references passages on delete cascade
    ) with (toast_tuple_target = 8160)`
  return { schema: found.schema, lacking: null }
}
