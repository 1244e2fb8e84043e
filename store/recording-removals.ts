/**
 * Owns which recordings are still to be removed: written in the transaction that takes them from their calls, and struck out when the store has
 * removed them. A process that dies between the two, or a storage that is away, leaves nothing behind.
 */
import type { AccountId, CallId } from '../model/ids.ts'
import type { Sql, Transaction } from './sql.ts'

/** Of all of these calls: of one whose processing failed there is a recording that its row does not tell of. */
export async function orderRecordingRemovals(
  tx: Transaction,
  { accountId, callIds, now }: { accountId: AccountId; callIds: readonly CallId[]; now: number },
): Promise<void> {
  await tx`
    insert into recording_removals (key, ordered_at)
    select account_id || '/' || id || '.wav', ${now}::timestamptz from calls
    where account_id = ${accountId} and id = any(${[...callIds]}::text[])
      and (recording_key is not null or started_at is not null)
    on conflict do nothing`
}

/** Those that were asked for longest ago first. */
export async function listRecordingRemovals(sql: Sql, limit: number): Promise<string[]> {
  const rows = await sql<{ key: string }[]>`
    select key from recording_removals order by ordered_at, key limit ${limit}`
  return rows.map(({ key }) => key)
}

export async function finishRecordingRemoval(sql: Sql, key: string): Promise<void> {
  await sql`delete from recording_removals where key = ${key}`
}

/** Behind all others: the storage of this one is away. */
export async function postponeRecordingRemoval(sql: Sql, key: string, now: number): Promise<void> {
  await sql`update recording_removals set ordered_at = ${now} where key = ${key}`
}
