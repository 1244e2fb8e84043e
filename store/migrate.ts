/**
 * Owns the way to the current schema: numbered SQL files, applied once each, forwards only, one transaction per file; indexes of
 * large tables after it. Every process of the service may run this at the same moment; a lock in the database lets one do the work while the others wait.
 */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { Problem } from '../model/problem.ts'
import { createIndexList, makeIndexes, putIndexesOff, type IndexNews } from './migrate-indexes.ts'
import type { Sql, Transaction } from './sql.ts'

const migrationFolder = path.join(import.meta.dirname, 'migrations')
/** Any number, as long as it never changes. */
const lockKey = 7_275_539
const lockTimeout = '120s'

type Migration = { readonly name: string; readonly text: string; readonly sha256: string }

/** Names of the files applied now, in order. A file that was applied and has changed since is an error that names it. */
export async function migrate(
  sql: Sql,
  folder: string = migrationFolder,
  told: (news: IndexNews) => void = () => undefined,
): Promise<string[]> {
  const migrations = await readMigrations(folder)
  const isDone = await areApplied(sql, migrations)
  if (!isDone) await sql.begin(createBookkeeping)
  await makeIndexes(sql, told)
  if (isDone) return []
  const applied: string[] = []
  for (const migration of migrations) {
    if (!(await sql.begin((tx) => apply(tx, migration)))) continue
    applied.push(migration.name)
    await makeIndexes(sql, told)
  }
  return applied
}

/** Asked without the lock, so that processes which start together, or again and again, wait for nobody: one with as many files would take it as often. */
async function areApplied(sql: Sql, migrations: readonly Migration[]): Promise<boolean> {
  const [tables] = await sql<{ areThere: boolean }[]>`
    select to_regclass('migrations') is not null and to_regclass('migration_indexes') is not null as are_there`
  if (!tables?.areThere) return false
  const rows = await sql<Applied[]>`select name, sha256 from migrations`
  const applied = new Map(rows.map(({ name, sha256 }) => [name, sha256]))
  return migrations.every(({ name, sha256 }) => applied.get(name) === sha256)
}

type Applied = Pick<Migration, 'name' | 'sha256'>

/** In the transaction of the caller, on a database without tables of the service: the schema as it is when these have been applied, and no others. */
export async function migrateWithin(tx: Sql | Transaction, applied: readonly Applied[]): Promise<void> {
  const migrations = await knownMigrations(applied)
  await createBookkeeping(tx)
  for (const migration of migrations) await apply(tx, migration)
}

/** Throws Problem for one that this version does not have. */
export async function knownMigrations(applied: readonly Applied[]): Promise<Migration[]> {
  const known = new Map((await readMigrations()).map((migration) => [migration.name, migration]))
  return applied.map(({ name, sha256 }) => {
    const migration = known.get(name)
    if (migration?.sha256 === sha256) return migration
    const why = migration ? 'is another one here' : 'is not known here'
    throw new Problem('VALIDATION_FAILED', `it is of another version of the service: the migration ${name} ${why}`)
  })
}

/** Those that a newer version of the service has applied: this one does not have them. The database has tables of the service. */
export async function unknownMigrations(sql: Sql): Promise<string[]> {
  const names = (await readMigrations()).map(({ name }) => name)
  const rows = await sql<{ name: string }[]>`select name from migrations where name <> all(${names}) order by name`
  return rows.map(({ name }) => name)
}

/** In the order of their numbers. */
export async function readMigrations(folder: string = migrationFolder): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql')).toSorted()
  const numbers = new Set(names.map((name) => name.slice(0, 4)))
  const misnamed = names.find((name) => !/^\d{4}_[a-z0-9_]+\.sql$/.test(name))
  if (misnamed !== undefined) throw new Error(`migration ${misnamed} must be named like 0001_foundation.sql`)
  if (numbers.size !== names.length) throw new Error('two migrations have the same number')
  return Promise.all(names.map((name) => readMigration(folder, name)))
}

async function readMigration(folder: string, name: string): Promise<Migration> {
  const text = await readFile(path.join(folder, name), 'utf8')
  return { name, text, sha256: createHash('sha256').update(text).digest('hex') }
}

async function createBookkeeping(tx: Sql | Transaction): Promise<void> {
  await lock(tx)
  await tx`
    create table if not exists migrations (
      name text primary key,
      sha256 text not null,
      applied_at timestamptz not null default now()
    )`
  await createIndexList(tx)
}

/** False when it was there already. */
async function apply(tx: Sql | Transaction, { name, text, sha256 }: Migration): Promise<boolean> {
  await lock(tx)
  const [applied] = await tx<{ sha256: string }[]>`select sha256 from migrations where name = ${name}`
  if (applied?.sha256 === sha256) return false
  if (applied) throw new Error(`migration ${name} has changed since it was applied; write a new one instead`)
  await tx.unsafe(await putIndexesOff(tx, text)).simple()
  await tx`insert into migrations ${tx({ name, sha256 })}`
  return true
}

/** Until the transaction ends. A file may work for as long as it needs. */
async function lock(tx: Sql | Transaction): Promise<void> {
  await tx.unsafe(`set local lock_timeout = '${lockTimeout}'; set local statement_timeout = 0`).simple()
  await tx`select pg_advisory_xact_lock(${lockKey})`
}
