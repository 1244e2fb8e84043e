/** Owns the rows of the signaling of calls: SIP, and sockets of browsers. They go with what is said: by erasure, and by the retention of transcripts. */
import { toIso } from '../model/clock.ts'
import type { AccountId, CallId } from '../model/ids.ts'
import type { Json } from '../model/json.ts'
import type { LadderEntry, MessageLadder } from '../model/message-ladder.ts'
import { inTime } from './in-time.ts'
import type { Sql, Transaction } from './sql.ts'

/** Of one call, whose browser may have come from one process to another. */
const mostOfCall = 300

/** Behind those that a call has. Nothing of one that is not there any more, or whose log has been removed. */
export async function writeLadders(sql: Sql, ladders: readonly (readonly [CallId, MessageLadder])[]): Promise<void> {
  const rows = ladders.flatMap(([callId, { entries, leftOut }]) =>
    entries.map((entry, at) => ({ ...entry, callId, at: toIso(entry.at), leftOut: at === 0 ? leftOut : 0 })),
  )
  await sql`
    with calls_there as materialized (
      select id, account_id from calls
      where id = any(${ladders.map(([callId]) => callId)}::text[]) and erased_at is null and log_removed_at is null
      order by id for key share
    ), numbered as (
      select r.*, row_number() over (partition by "callId" order by place)
        + coalesce((select max(m.seq) from call_messages m where m.call_id = "callId"), -1) as seq
      from jsonb_array_elements(${sql.json(rows as unknown as Json)}) with ordinality as given (message, place),
        lateral jsonb_to_record(message) as r("callId" text, at timestamptz, direction text, protocol text, local text, remote text,
          text text, "leftOut" integer)
    )
    insert into call_messages (call_id, account_id, seq, at, direction, protocol, local, remote, text, left_out)
    select id, account_id, seq, at, direction, protocol, local, remote, text, "leftOut"
    from numbered join calls_there on id = "callId" where seq < ${mostOfCall} and ${inTime(sql)}
    on conflict do nothing`
}

export type MessageRow = LadderEntry & { readonly leftOut: number }

export function listMessages(sql: Sql, accountId: AccountId, callId: CallId): Promise<MessageRow[]> {
  return sql<MessageRow[]>`
    select at, direction, protocol, local, remote, text, left_out from call_messages
    where account_id = ${accountId} and call_id = ${callId} order by at, seq`
}

export async function removeMessages(tx: Transaction, callIds: readonly CallId[]): Promise<void> {
  await tx`delete from call_messages where call_id = any(${[...callIds]}::text[])`
}
