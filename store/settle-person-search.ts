/** Owns that the search of persons has the extensions and indexes it can have: looked at whenever the database is opened. */
import type { Sql } from './sql.ts'

/** What the database does not give, for people; null: nothing is missing. An index of many persons takes as long as it needs. */
export async function settlePersonSearch(sql: Sql): Promise<string | null> {
  return sql.begin(async (tx) => {
    await tx.unsafe('set local statement_timeout = 0').simple()
    const [row] = await tx<{ lacking: string | null }[]>`select settle_person_search() as lacking`
    return row?.lacking ?? null
  })
}
