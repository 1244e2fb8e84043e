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
