/** Owns looking up by which trace a call was asked for, as its first event tells. */
import type { CallId } from '../model/ids.ts'
import type { Sql } from './sql.ts'

/** Null: by none, or there is no such call any more. */
export async function findCallTraces(
  sql: Sql,
  callIds: readonly CallId[],
): Promise<ReadonlyMap<CallId, string | null>> {
  const rows = await sql<{ callId: CallId; trace: string | null }[]>`
    select call_id, event->>'trace' as trace from call_events where call_id = any(${[...callIds]}::text[]) and seq = 0`
  return new Map(rows.map(({ callId, trace }) => [callId, trace]))
}
