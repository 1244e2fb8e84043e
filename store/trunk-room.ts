/**
 * Owns how many calls a trunk may take now: those that it carries (maxConcurrentCalls), and those that began on it lately
 * (maxCallsPerSecond). A call counts from the moment that it got the trunk. Whoever gives room away holds the row of the account.
 */
import type { CallId } from '../model/ids.ts'
import type { Sql, Transaction } from './sql.ts'

export type Pace = {
  /** Ms that are looked at, and how many calls may begin in them: never more, in whichever window one looks. */
  readonly window: number
  readonly calls: number
}

const longestWindow = 3_600_000

/** Five a second are five in one second; one every two seconds is one in two. */
export function paceOf(perSecond: number): Pace {
  if (perSecond <= 0) return { window: 1_000, calls: 0 }
  if (perSecond < 1) return { window: Math.min(Math.ceil(1_000 / perSecond), longestWindow), calls: 1 }
  return { window: 1_000, calls: Math.floor(perSecond) }
}

/** How many may begin now, and when the next may if that is none. `lately` are the last beginnings, the latest first. */
export function turnsOf(pace: Pace, lately: readonly number[], now: number): { count: number; nextAt: number | null } {
  const recent = lately.filter((at) => at > now - pace.window)
  const count = Math.max(0, pace.calls - recent.length)
  const gate = recent[pace.calls - 1]
  return { count, nextAt: count > 0 || gate === undefined ? null : gate + pace.window }
}

export type TrunkRoom = {
  readonly maxConcurrentCalls: number | null
  readonly maxCallsPerSecond: number | null
  readonly carried: number
  /** Beginnings, the latest first, as many as the pace allows at most; empty without one. */
  readonly lately: readonly number[]
}

/** How many calls the trunk may take now; `nextAt`: when the pace gives the next, if it gives none now. */
export function roomOf(room: TrunkRoom, now: number): { count: number; nextAt: number | null } {
  const places = (room.maxConcurrentCalls ?? Infinity) - room.carried
  if (places <= 0) return { count: 0, nextAt: null }
  if (room.maxCallsPerSecond === null) return { count: places, nextAt: null }
  const turns = turnsOf(paceOf(room.maxCallsPerSecond), room.lately, now)
  return { count: Math.min(places, turns.count), nextAt: turns.nextAt }
}

export const hasRoom = (room: TrunkRoom, now: number): boolean => roomOf(room, now).count > 0

/** What makes a TrunkRoom, of the table `trunks`; `except` is a call that is not to stand in its own way. */
export const trunkRoomColumns = (sql: Sql | Transaction, now: number, except: CallId | null = null) => sql`
  (config->>'maxConcurrentCalls')::int as max_concurrent_calls,
  (config->>'maxCallsPerSecond')::float8 as max_calls_per_second,
  case when config->>'maxConcurrentCalls' is null then 0 else (
    select count(*)::int from calls
    where trunk_id = trunks.id and outcome is null and calls.id is distinct from ${except}) end as carried,
  case when config->>'maxCallsPerSecond' is null then '{}' else array(
    select (extract(epoch from coalesce(slot_granted_at, created_at)) * 1000)::float8 from calls
    where trunk_id = trunks.id and calls.id is distinct from ${except}
      and coalesce(slot_granted_at, created_at) > ${now}::timestamptz
        - least(3600, 1 / greatest(0.0001, least(1, (config->>'maxCallsPerSecond')::float8))) * interval '1 s'
    order by coalesce(slot_granted_at, created_at) desc
    limit greatest(1, floor((config->>'maxCallsPerSecond')::float8))::int) end as lately`
