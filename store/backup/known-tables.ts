/**
 * Owns which tables and sequences of the database are the service's: those that its migrations make. What else lies in the same database is somebody
 * else's, or is made anew when the database is opened (passage_halfvecs), and no backup has it.
 */
import { readMigrations } from '../migrate.ts'
import type { Sql } from '../sql.ts'
import type { TableOfArchive } from './archive.ts'

const making =
  /\bcreate (?:or replace )?(?:unlogged )?(table|function|sequence|type|view) (?:if not exists )?([a-z]\w*)/g

type Made = { readonly kind: string; readonly name: string }

/** Everything that some migration makes, in their order; a later one may have taken it away. */
async function listMade(): Promise<Made[]> {
  const texts = (await readMigrations()).map(({ text }) => text.replaceAll(/--.*$/gm, ''))
  return texts.flatMap((text) => [...text.matchAll(making)].map(([, kind = '', name = '']) => ({ kind, name })))
}

/** Those that are there, with the columns that are not computed. Partitions come with their table. */
export async function listTables(sql: Sql): Promise<TableOfArchive[]> {
  const names = (await listMade()).filter(({ kind }) => kind === 'table').map(({ name }) => name)
  const rows = await sql<TableOfArchive[]>`
    select relname::text as name, array(
      select attname::text from pg_attribute
      where attrelid = pg_class.oid and attnum > 0 and not attisdropped and attgenerated = '' order by attnum) as columns
    from pg_class
    where oid = any(select to_regclass(quote_ident(name)) from unnest(${names}::text[]) as name) and not relispartition
    order by relname`
  return [...rows]
}

/** Those by themselves, and those of columns, with the last value that was given. */
export async function listSequences(sql: Sql): Promise<{ name: string; value: string | null }[]> {
  const made = await listMade()
  const names = made.filter(({ kind }) => kind === 'sequence' || kind === 'table').map(({ name }) => name)
  const rows = await sql<{ name: string; value: string | null }[]>`
    with ours as (select to_regclass(quote_ident(name)) as id from unnest(${names}::text[]) as name)
    select relname::text as name, pg_sequence_last_value(oid)::text as value from pg_class
    where relkind = 'S' and (oid in (select id from ours) or exists (
      select from pg_depend where objid = pg_class.oid and deptype in ('a', 'i') and refobjid in (select id from ours)))
    order by relname`
  return [...rows]
}

/** Of a name in a statement. */
export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** With what is made when the database is opened. */
export async function dropEverything(sql: Sql): Promise<void> {
  const besides = ['passage_halfvecs', 'migration_indexes', 'migrations'].map((name) => ({ kind: 'table', name }))
  const made = [...besides, ...(await listMade())]
  for (const { kind, name } of made) await sql.unsafe(`drop ${kind} if exists ${quoted(name)} cascade`)
}
