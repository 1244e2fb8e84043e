/** Owns what is read of the calls that run now, for who watches them: the call, what was said last, and how long the last answer took. */
import type { Speaker, TurnLatency } from '../model/call.ts'
import type { AccountId } from '../model/ids.ts'
import { answerColumns, type DatedCall } from './call-rows.ts'
import type { Sql } from './sql.ts'

export type RunningCall = DatedCall & {
  readonly turns: number
  readonly lastTurn: SaidLast | null
  /** Of the last answer of the agent that was measured. */
  readonly latency: TurnLatency | null
}

type SaidLast = {
  readonly speaker: Speaker
  readonly source: string | null
  readonly text: string
  readonly to: number
}

/** Characters of the last turn. */
const mostText = 240

/** Newest first, up to `limit`. By the index of states: 0037_lists.sql. */
export function listRunningCalls(sql: Sql, accountId: AccountId, limit: number): Promise<RunningCall[]> {
  const keys = ['queued', 'ringing', 'in_progress'].flatMap((progress) =>
    ['inbound', 'outbound'].map((direction) => `${accountId} ${progress} ${direction}`),
  )
  return sql<RunningCall[]>`
    select ${answerColumns(sql)}, created_at, coalesce(last.turn_index + 1, 0) as turns, last.turn as last_turn, measured.latency
    from calls
    left join lateral (
      select turn_index, jsonb_build_object('speaker', role, 'source', source, 'text', left(text, ${mostText}), 'to', to_ms) as turn
      from transcript_turns where account_id = calls.account_id and call_id = calls.id order by turn_index desc limit 1
    ) last on true
    left join lateral (
      select latency from transcript_turns
      where account_id = calls.account_id and call_id = calls.id and latency is not null order by turn_index desc limit 1
    ) measured on true
    where account_id || ' ' || progress || ' ' || direction = any(${keys}::text[])
    order by created_at desc, id desc limit ${limit}`
}
