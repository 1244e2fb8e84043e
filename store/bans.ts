/** Owns the rows of addresses that are banned for a while, by which all processes and the operator know of them. */
import type { Ban } from '../net/failure-guard.ts'
import type { Sql } from './sql.ts'

/** One that another process has written keeps the later end. */
export async function writeBans(sql: Sql, bans: readonly Ban[]): Promise<void> {
  if (bans.length === 0) return
  await sql`
    insert into bans (address, is_proven, covers, failure, since, until)
    select "group", "isProven", covers, failure, to_timestamp(since / 1000.0), to_timestamp(until / 1000.0)
    from jsonb_to_recordset(${sql.json(bans)}) as given ("group" text, "isProven" boolean, covers text, failure text,
      since bigint, until bigint)
    on conflict (address, is_proven, covers) do update set until = greatest(bans.until, excluded.until), failure = excluded.failure,
      since = excluded.since`
}

/** Those that run, the newest first. */
export function listBans(sql: Sql, now: number, limit: number): Promise<Ban[]> {
  return sql<Ban[]>`
    select address as "group", is_proven, covers, failure, since, until from bans
    where until > ${now} order by since desc, address, is_proven, covers limit ${limit}`
}

/** Whatever they cover, by proof and without. How many there were. */
export async function liftBans(sql: Sql, group: string | null): Promise<number> {
  const { count } = await sql`delete from bans where ${group === null ? sql`true` : sql`address = ${group}`}`
  return count
}

/** Deletes up to `limit` that are over. Several may do this at once. */
export async function forgetBans(sql: Sql, now: number, limit: number): Promise<number> {
  const { count } = await sql`
    delete from bans where (address, is_proven, covers) in (
      select address, is_proven, covers from bans where until <= ${now} order by until limit ${limit} for update skip locked)`
  return count
}
