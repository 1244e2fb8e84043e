/** Owns how the values that a call's engine noted are read from its log, with their places in the talk. Who writes the log is the call's actor. */
import type { CallId } from '../model/ids.ts'
import type { Json, JsonObject } from '../model/json.ts'
import type { Sql } from './sql.ts'

/** `after`: the last turn that was stored by then; null before the first, and where the log does not tell. */
export type NotedValue = { readonly value: Json; readonly after: number | null }

type Row = { readonly type: string; readonly key: string | null; readonly value: Json; readonly stored: number | null }

/**
 * The places of `notes`, which are what counts in the end. A value that the log has no note of was among the words of a caller who was not heard to
 * their end: it belongs to the turn that they became.
 */
export async function placeNotes(
  sql: Sql,
  callId: CallId,
  notes: JsonObject,
): Promise<ReadonlyMap<string, NotedValue>> {
  const rows = await sql<Row[]>`
    select event->>'type' as type, event->>'key' as key, event->'value' as value,
      (select max((effect->>'index')::int) from jsonb_array_elements(effects) as effect
        where effect->>'type' = 'store_turn') as stored
    from call_events
    where call_id = ${callId} and not ignored and (event->>'type' = 'noted' or effects @> '[{"type": "store_turn"}]')
    order by seq`
  const noted = new Map<string, NotedValue>()
  let last: number | null = null
  let cut: number | null = null
  for (const { type, key, value, stored } of rows) {
    last = stored ?? last
    if (type === 'noted' && key !== null) noted.set(key, { value, after: last })
    else if (type !== 'turn_committed' && type !== 'turn_found') cut = last
  }
  return new Map(
    Object.entries(notes).map(([key, value]): [string, NotedValue] => {
      const told = noted.get(key)
      const isTold = told !== undefined && JSON.stringify(told.value) === JSON.stringify(value)
      return [key, isTold ? told : { value, after: cut }]
    }),
  )
}
