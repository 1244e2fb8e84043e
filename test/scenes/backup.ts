/** Owns homes of the service for tests of backups: what is in one is told as a text for each table and file, to be compared with another. */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import type { Test } from 'tap'
import { listSequences, listTables, quoted } from '../../store/backup/known-tables.ts'
import { makeBackup, type Home, type Progress } from '../../store/backup/make-backup.ts'
import { openDatabase } from '../../store/open-database.ts'
import { connect, type DatabaseServer, type Sql } from '../../store/sql.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createFolder } from './folder.ts'
import { openWholeApi } from './whole-api.ts'

export const homeOf = (dataDir: string, server: DatabaseServer, appSecret: string | null = null): Home => ({
  server,
  dataDir,
  recordingsDir: path.join(dataDir, 'recordings'),
  appSecret,
  hasStorage: false,
})

/** A home with one of everything in two accounts, and where its backup is to be. */
export async function openSource(t: Test, appSecret: string | null = null) {
  const { sql, database, own } = await openWholeApi(t)
  const folder = await createFolder(t)
  const home = homeOf(database.dataDir, database.server, appSecret)
  const file = path.join(folder, 'backup.tar.zst')
  const make = (progress: Progress = silent) => makeBackup(home, file, Date.now(), progress)
  return { sql, own, home, folder, file, make, target: path.join(folder, 'target') }
}

export const silent: Progress = () => undefined

/** One connection. */
export function connectTo(t: Pick<Test, 'teardown'>, server: DatabaseServer): Sql {
  const sql = connect({ server, applicationName: 'test', maxConnections: 1 })
  t.teardown(() => sql.end({ timeout: 1 }))
  return sql
}

/** What the commands note of themselves is no part of a comparison. */
export async function comparable(sql: Sql): Promise<Record<string, string>> {
  const { audit_entries: _, ...contents } = await contentsOf(sql)
  return contents
}

/** Every row of every table, and what the sequences have given. */
async function contentsOf(sql: Sql): Promise<Record<string, string>> {
  const contents: Record<string, string> = {}
  for (const { name } of await listTables(sql)) {
    const [row] = await sql.unsafe<{ rows: number; hash: string }[]>(
      `select count(*)::int as rows, coalesce(md5(string_agg(row::text, e'\\n' order by row::text)), '') as hash from ${quoted(name)} as row`,
    )
    contents[name] = `${row?.rows} rows, ${row?.hash}`
  }
  for (const { name, value } of await listSequences(sql)) contents[name] = `${value}`
  return contents
}

/** Constraints, indexes and triggers, as Postgres writes them. */
export async function schemaOf(sql: Sql): Promise<string[]> {
  const rows = await sql<{ text: string }[]>`
    select conrelid::regclass::text || ' ' || conname || ' ' || pg_get_constraintdef(oid) as text from pg_constraint
    where connamespace = current_schema()::regnamespace
    union all select indexdef from pg_indexes where schemaname = current_schema()
    union all select pg_get_triggerdef(oid) || ' ' || tgenabled::text from pg_trigger where not tgisinternal
    order by 1`
  return rows.map(({ text }) => text)
}

/** Every file below a folder, by its path there. */
export async function filesIn(folder: string): Promise<Record<string, string>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])
  const files = entries.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name))
  const hash = async (file: string) =>
    createHash('sha256')
      .update(await readFile(file))
      .digest('hex')
  return Object.fromEntries(
    await Promise.all(files.toSorted().map(async (file) => [path.relative(folder, file), await hash(file)] as const)),
  )
}

/** The database of a home, opened as the service does. */
export async function openHome(t: Pick<Test, 'teardown'>, dataDir: string) {
  const database = await openDatabase({ databaseUrl: null, dataDir, mustExist: true, log: createQuietLog() })
  t.teardown(() => database.close())
  return database
}

/** The archive with its tar changed, as a text of one byte a letter, and compressed again. */
export const repacked = (archive: Uint8Array, change: (tar: string) => string): Buffer =>
  zstdCompressSync(Buffer.from(change(zstdDecompressSync(archive).toString('latin1')), 'latin1'))
