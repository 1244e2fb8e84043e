/**
 * Owns the clients that registered themselves. Anybody may register, so there are so many at most: the oldest that nobody uses make room.
 * docs/contract/mcp.md "Clients".
 */
import type { Json } from '../model/json.ts'
import type { Sql, Transaction } from './sql.ts'

export type ClientMetadata = { readonly [name: string]: Json }

export const maxClients = 10_000
/** Ms. A client that nobody has approved for so long registers anew. */
const unusedFor = 90 * 24 * 3_600_000

/** False: there is no room, because so many are in use. */
export function registerClient(
  sql: Sql,
  { id, metadata, now, most = maxClients }: { id: string; metadata: ClientMetadata; now: number; most?: number },
): Promise<boolean> {
  return sql.begin(async (tx) => {
    // Of registrations at one moment each counts the others.
    await tx`select pg_advisory_xact_lock(hashtext('oauth_clients'))`
    await removeUnused(tx, { most: most - 1, now })
    const { count } = await tx`
      insert into oauth_clients (id, metadata, created_at)
      select ${id}, ${tx.json(metadata)}, ${now}::timestamptz where (select count(*) from oauth_clients) < ${most}`
    return count > 0
  })
}

async function removeUnused(tx: Transaction, { most, now }: { most: number; now: number }): Promise<void> {
  await tx`
    delete from oauth_clients where id in (
      select id from oauth_clients
      where not exists (select from oauth_grants where client_id = oauth_clients.id and expires_at > ${now})
      order by coalesce(used_at, created_at), id
      limit greatest(0, (select count(*) from oauth_clients) - ${most}))`
}

export async function findClient(sql: Sql, id: string): Promise<ClientMetadata | null> {
  const [row] = await sql<{ metadata: ClientMetadata }[]>`select metadata from oauth_clients where id = ${id}`
  return row?.metadata ?? null
}

/** Deletes up to `limit` that nobody has used for long. Several may do this at once. */
export async function forgetClients(sql: Sql, now: number, limit: number): Promise<number> {
  const { count } = await sql`
    delete from oauth_clients where id in (
      select id from oauth_clients
      where coalesce(used_at, created_at) <= ${now - unusedFor}
        and not exists (select from oauth_grants where client_id = oauth_clients.id and expires_at > ${now})
      order by coalesce(used_at, created_at) limit ${limit} for update skip locked)`
  return count
}
