/**
 * Owns how a migration makes indexes of tables that are large already: when the rest of its file is committed, one by one, while everybody goes on
 * writing. What is left to make stands in the database, so that whoever starts next goes on where a process has ended. Named indexes only; a unique
 * one is made with its file.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Sql, Transaction } from './sql.ts'

/** As migrations are written: at the beginning of a line, up to the first semicolon. */
const ofIndexes = /^(?:create index (?<made>\w+) on (?<table>\w+)\b[^;]*|drop index (?<dropped>\w+));/gm
/** Smaller ones take no time that anybody would notice. */
const largeFrom = 16 * 1024 * 1024
const lockKey = 7_275_540
const lookEvery = 200
const progressEvery = 5_000

/** What is being made, and how far it is: shares of the table that is read. */
export type IndexNews = { readonly statement: string; readonly done: number | null }

export async function createIndexList(tx: Sql | Transaction): Promise<void> {
  await tx`
    create table if not exists migration_indexes (
      place integer generated always as identity primary key,
      name text not null,
      statement text not null
    )`
}

/** Writes down what is to be made or dropped later; gives what is left of the file. */
export async function putIndexesOff(tx: Sql | Transaction, text: string): Promise<string> {
  let left = text
  for (const [statement, ...found] of text.matchAll(ofIndexes)) {
    const [made, table, dropped] = found
    if (!(await isOfLargeTable(tx, table ?? null, dropped ?? null))) continue
    const plain = statement.slice(0, -1)
    const later = made
      ? plain.replace('create index', 'create index concurrently')
      : `drop index concurrently if exists ${dropped}`
    await tx`insert into migration_indexes (name, statement) values (${made ?? dropped ?? ''}, ${later})`
    left = left.replace(statement, '')
  }
  return left
}

async function isOfLargeTable(tx: Sql | Transaction, table: string | null, index: string | null): Promise<boolean> {
  const [row] = await tx<{ isLarge: boolean | null }[]>`
    select pg_relation_size(coalesce(to_regclass(${table}), (
      select indrelid::regclass from pg_index where indexrelid = to_regclass(${index})))) > ${largeFrom} as is_large`
  return row?.isLarge ?? false
}

/** Resolves when nothing is left to make, whichever process makes it. Nobody waits for it within a transaction: it waits for all of them. */
export async function makeIndexes(sql: Sql, told: (news: IndexNews) => void): Promise<void> {
  const isLeft = async () => (await sql`select from migration_indexes limit 1`).length > 0
  while (await isLeft()) if (!(await makeAll(sql, told))) await pause(lookEvery)
}

/** False: another process is at it. Where it fails the connection is left as it is: its pool is ended, and the lock with it. */
async function makeAll(sql: Sql, told: (news: IndexNews) => void): Promise<boolean> {
  const own = await sql.reserve()
  const [lock] = await own<{ isOurs: boolean }[]>`select pg_try_advisory_lock(${lockKey}) as is_ours`
  if (lock?.isOurs) {
    await own`set statement_timeout = 0`
    const rows = await own<Row[]>`select place, name, statement from migration_indexes order by place`
    for (const row of rows) await makeOne(own, sql, row, told)
    await own`select pg_advisory_unlock(${lockKey})`
    await own`reset statement_timeout`
  }
  own.release()
  return lock?.isOurs ?? false
}

type Row = { readonly place: number; readonly name: string; readonly statement: string }

async function makeOne(
  own: Sql,
  sql: Sql,
  { place, name, statement }: Row,
  told: (news: IndexNews) => void,
): Promise<void> {
  const [former] = await own<{ indisvalid: boolean }[]>`
    select indisvalid from pg_index where indexrelid = to_regclass(${name})`
  // Of one that was broken off something is left, which nothing uses.
  if (former?.indisvalid === false) await own.unsafe(`drop index concurrently if exists ${name}`)
  if (former?.indisvalid !== true || statement.startsWith('drop')) {
    told({ statement, done: null })
    const over = new AbortController()
    const telling = tellProgress(sql, statement, told, over.signal)
    await own.unsafe(statement).finally(() => over.abort())
    await telling
  }
  await own`delete from migration_indexes where place = ${place}`
}

async function tellProgress(
  sql: Sql,
  statement: string,
  told: (news: IndexNews) => void,
  signal: AbortSignal,
): Promise<void> {
  const wait = () =>
    pause(progressEvery, true, { signal }).catch(() => {
      // The index is made.
      return false
    })
  while (await wait()) {
    const [row] = await sql<{ done: number | null }[]>`
      select blocks_done::float8 / nullif(blocks_total, 0) as done from pg_stat_progress_create_index
      where datname = current_database() limit 1`
    told({ statement, done: row?.done ?? null })
  }
}
