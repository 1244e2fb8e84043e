/** Owns the moment when queries wait for a lock, so that a test of a race decides who is where. */
import type { Sql } from '../../store/sql.ts'

/** Resolves when this many queries of the database wait for others. */
export async function blockedQueries(sql: Sql, count: number): Promise<void> {
  const waiting = async (): Promise<number> => {
    const [row] = await sql<{ waiting: number }[]>`
      select count(*) as waiting from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
    return row?.waiting ?? 0
  }
  while ((await waiting()) < count) await new Promise(setImmediate)
}

/** The connection whose query waits for a lock of such a kind (PostgreSQL 15, table 28.11); null: none does. `words` stand at the beginning of the query. */
export async function waitingFor(sql: Sql, kinds: readonly string[], words = ''): Promise<number | null> {
  const [row] = await sql<{ pid: number }[]>`
    select pid from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and wait_event = any(${[...kinds]}::text[])
      and strpos(query, ${words}) > 0 limit 1`
  return row?.pid ?? null
}

export async function isAsking(sql: Sql, pid: number, words: string): Promise<boolean> {
  const asking = await sql`
    select from pg_stat_activity where pid = ${pid} and state = 'active' and strpos(query, ${words}) > 0`
  return asking.count > 0
}
