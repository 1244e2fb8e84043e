/** Owns which day it is in a call. */
import type { EngineConfig } from '../../model/voice-engine.ts'
import { contextOf } from './fill-in.ts'

/** The day that the caller calls today: where the call's context names a `timeZone` (IANA) there, else in UTC. */
export function todayOf(now: number, { context }: Pick<EngineConfig, 'context'>): string {
  const values = contextOf(context)
  const named = typeof values === 'object' && values !== null && 'timeZone' in values ? values['timeZone'] : null
  return typeof named === 'string' ? dayIn(named, now) : dayInUtc(now)
}

function dayIn(timeZone: string, now: number): string {
  try {
    // The calendar of this locale writes days as 2027-05-03.
    return new Intl.DateTimeFormat('sv-SE', { timeZone }).format(now)
  } catch {
    return dayInUtc(now) // No such zone.
  }
}

/** Most calls name no zone, and the calendar of a locale takes longer to make than most that a call needs. */
const dayInUtc = (now: number): string => new Date(now).toISOString().slice(0, 10)
