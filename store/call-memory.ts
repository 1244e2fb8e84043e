/** Owns reading what an engine remembers of a call from the call's log. */
import type { Json } from '../model/json.ts'
import type { JsonPatch } from '../model/json-patch.ts'
import type { CallId } from '../model/ids.ts'
import type { Sql } from './sql.ts'

/** Of one turn: all that is remembered after it, or what has changed of it, or neither. */
export type MemoryTurn = { readonly memory?: Json; readonly memoryChange?: JsonPatch }

/** Of the turns since the step `since` that the call took notice of, in their order. */
export async function listMemoryTurns(sql: Sql, callId: CallId, since: number): Promise<MemoryTurn[]> {
  const rows = await sql<{ told: MemoryTurn }[]>`
    select event - 'turn' as told from call_events
    where call_id = ${callId} and seq >= ${since} and not ignored and event->>'type' = 'turn_committed' order by seq`
  return rows.map(({ told }) => told)
}
