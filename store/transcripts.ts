/** Owns how the turns of a call are read. Who writes them is the call's actor: call-effects.ts. */
import type { Turn } from '../model/call.ts'
import type { AccountId, CallId } from '../model/ids.ts'
import type { Sql, Transaction } from './sql.ts'

export type TurnRow = Turn & { readonly turnIndex: number }

/** Of many calls, in the order they were committed. */
export const listTurnsOf = (tx: Sql | Transaction, callIds: readonly CallId[]) => tx<
  (TurnRow & { readonly callId: CallId })[]
>`
  select call_id, ${columns(tx)} from transcript_turns where call_id = any(${[...callIds]}::text[])
  order by call_id, turn_index`

/** In the order they were committed, from the turn of that number on. Empty also for a call of another account. */
export function listTurns(
  sql: Sql | Transaction,
  accountId: AccountId,
  callId: CallId,
  fromTurn = 0,
): Promise<TurnRow[]> {
  return sql<TurnRow[]>`
    select ${columns(sql)} from transcript_turns
    where account_id = ${accountId} and call_id = ${callId} and turn_index >= ${fromTurn} order by turn_index`
}

/** A column of a query over `calls`: the turns of each, in the order they were committed. */
export const turnsColumn = (sql: Sql | Transaction) => sql`
  (select coalesce(json_agg(turn order by turn."turnIndex"), '[]') from (
    select ${columns(sql)} from transcript_turns where call_id = calls.id) as turn)`

/** The numbers of those that a former actor had kept, and that were found later. */
export async function listFoundTurns(sql: Sql | Transaction, callId: CallId): Promise<ReadonlySet<number>> {
  const rows = await sql<{ index: number }[]>`
    select (effect->>'index')::int as index from call_events cross join lateral jsonb_array_elements(effects) as effect
    where call_id = ${callId} and event->>'type' = 'turn_found' and effect->>'type' = 'store_turn'`
  return new Set(rows.map(({ index }) => index))
}

const columns = (sql: Sql | Transaction) =>
  sql`turn_index as "turnIndex", role, text, from_ms as "from", to_ms as "to", confidence, source, latency`
