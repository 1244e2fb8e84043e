/** Owns the rows of the SIP messages of calls. They go with what is said: by erasure, and by the retention of transcripts. */
import { toIso } from '../model/clock.ts'
import type { AccountId, CallId } from '../model/ids.ts'
import type { Json } from '../model/json.ts'
import type { SipLadder, SipLadderEntry } from '../model/sip-ladder.ts'
import type { Sql, Transaction } from './sql.ts'

/** Once for a call; nothing of one that is not there any more, or whose log has been removed. */
export async function writeLadders(sql: Sql, ladders: readonly (readonly [CallId, SipLadder])[]): Promise<void> {
  const rows = ladders.flatMap(([callId, { entries, leftOut }]) =>
    entries.map((entry, seq) => ({ ...entry, callId, seq, at: toIso(entry.at), leftOut: seq === 0 ? leftOut : 0 })),
  )
  await sql`
    with calls_there as materialized (
      select id, account_id from calls
      where id = any(${ladders.map(([callId]) => callId)}::text[]) and erased_at is null and log_removed_at is null
      order by id for key share
    )
    insert into call_messages (call_id, account_id, seq, at, direction, protocol, local, remote, text, left_out)
    select id, account_id, seq, at, direction, protocol, local, remote, text, "leftOut"
    from jsonb_to_recordset(${sql.json(rows as unknown as Json)}) as r("callId" text, seq integer, at timestamptz, direction text,
      protocol text, local text, remote text, text text, "leftOut" integer) join calls_there on id = "callId"
    on conflict do nothing`
}

export type MessageRow = SipLadderEntry & { readonly leftOut: number }

export function listMessages(sql: Sql, accountId: AccountId, callId: CallId): Promise<MessageRow[]> {
  return sql<MessageRow[]>`
    select at, direction, protocol, local, remote, text, left_out from call_messages
    where account_id = ${accountId} and call_id = ${callId} order by seq`
}

export async function removeMessages(tx: Transaction, callIds: readonly CallId[]): Promise<void> {
  await tx`delete from call_messages where call_id = any(${[...callIds]}::text[])`
}
