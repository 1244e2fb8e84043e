/**
 * Owns the way of tables from an archive into a database, in one transaction: nothing of them is there before its commit. The schema is made by the
 * migrations that the archive's database had. Indexes and foreign keys are made when the rows are in, which is what makes millions of rows possible.
 */
import { migrateWithin } from '../migrate.ts'
import type { Sql } from '../sql.ts'
import type { Manifest, Part, TableOfArchive } from './archive.ts'
import { copyInto } from './copy-rows.ts'
import { dropEverything, listSequences, listTables, quoted } from './known-tables.ts'

export type Loading = {
  /** Of `tables/<table>/…`. */
  load(table: string, body: Part['body']): Promise<void>
  /** When all rows are in. */
  complete(): Promise<void>
  /** Resolves when it is true for ever. */
  commit(): Promise<void>
  /** After it: the planner knows the tables at once. */
  analyze(): Promise<void>
}

type Statements = { readonly before: readonly string[]; readonly after: readonly string[] }

/** `sql` has one connection, which is this work's alone; ended before `commit`, nothing has happened. `replace`: what the service has there goes. */
export async function beginLoading(
  sql: Sql,
  { migrations, tables, sequences }: Manifest,
  replace: boolean,
): Promise<Loading> {
  await sql.unsafe('begin')
  const [transaction] = await sql<{ id: string }[]>`select pg_current_xact_id()::text as id`
  if (replace) await dropEverything(sql)
  await migrateWithin(sql, migrations)
  await requireSame(sql, tables)
  const { before, after } = await aroundLoading(sql, tables)
  for (const statement of before) await sql.unsafe(statement)
  const columnsOf = new Map(tables.map(({ name, columns }) => [name, columns.map(quoted).join(', ')]))
  return {
    async load(table, body) {
      const columns = columnsOf.get(table)
      if (columns === undefined) throw new Error(`the archive has rows of ${table}, which is no table of it`)
      await copyInto(sql, `copy ${quoted(table)} (${columns}) from stdin`, body)
    },
    async complete() {
      await sql.unsafe("set local maintenance_work_mem = '256MB'")
      for (const statement of after) await sql.unsafe(statement)
      const here = new Set((await listSequences(sql)).map(({ name }) => name))
      for (const { name, value } of sequences)
        if (value !== null && here.has(name)) await sql`select setval(${quoted(name)}::regclass, ${value}::bigint)`
    },
    async commit() {
      // Its answer may be lost, and the driver would send it over another connection, where it says that all is well: what became of it is asked.
      await sql.unsafe('commit').catch(() => undefined)
      const [end] = await sql<{ status: string | null }[]>`
        select pg_xact_status(${transaction?.id ?? ''}::xid8) as status`
      if (end?.status !== 'committed') throw new Error('the connection to the database was lost')
    },
    async analyze() {
      for (const { name } of tables) await sql.unsafe(`analyze ${quoted(name)}`)
    },
  }
}

/** The same migrations make the same tables; whoever has changed them by hand is told. */
async function requireSame(sql: Sql, tables: readonly TableOfArchive[]): Promise<void> {
  const here = new Map((await listTables(sql)).map(({ name, columns }) => [name, columns.toSorted().join()]))
  const other = tables.find(({ name, columns }) => here.get(name) !== columns.toSorted().join())
  if (other) throw new Error(`the table ${other.name} of the archive is not as the migrations of this version make it`)
}

/** Constraints in front of the indexes that they stand on; behind the rows the other way round. */
async function aroundLoading(sql: Sql, tables: readonly TableOfArchive[]): Promise<Statements> {
  const names = tables.map(({ name }) => quoted(name))
  const foreignKeys = await sql<{ place: string; name: string; text: string }[]>`
    select conrelid::regclass::text as place, quote_ident(conname) as name, pg_get_constraintdef(oid) as text
    from pg_constraint where contype = 'f' and conparentid = 0 and conrelid = any(${names}::text[]::regclass[])
    order by conrelid, conname`
  const indexes = await sql<{ name: string; text: string }[]>`
    select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as text
    from pg_index join pg_class on pg_class.oid = indexrelid
    where indrelid = any(${names}::text[]::regclass[]) and relkind = 'i' and not relispartition
      and not exists (select from pg_constraint where conindid = indexrelid)
    order by indexrelid`
  return {
    before: [
      ...foreignKeys.map(({ place, name }) => `alter table ${place} drop constraint ${name}`),
      ...indexes.map(({ name }) => `drop index ${name}`),
      ...names.map((name) => `alter table ${name} disable trigger user`),
    ],
    after: [
      ...indexes.map(({ text }) => text),
      ...foreignKeys.map(({ place, name, text }) => `alter table ${place} add constraint ${name} ${text}`),
      ...names.map((name) => `alter table ${name} enable trigger user`),
    ],
  }
}
