/**
 * Owns that no leg outlives its call: every few seconds the database is asked which calls of this process's legs are still alive, and the legs
 * of the others are closed. A leg is told by its actor, as a rule; this is for the word that got lost, on the bus or with its actor.
 */
import type { Clock } from '../../model/clock.ts'
import type { CallId } from '../../model/ids.ts'
import type { Log } from '../../model/log.ts'
import { listAlive, listUnstored } from '../../store/call-steps.ts'
import type { Sql } from '../../store/sql.ts'
import { createRounds, type Rounds } from './rounds.ts'

const lookEvery = 5_000
/** Looks; of a call that is not there its birth may still wait on the disk of a node. */
const [looks, looksOfUnstored] = [2, 24]

export type Legs = {
  all(): readonly CallId[]
  /** Nothing when there is none. */
  close(callId: CallId, reason: string): void
}

export function createLegSweep(
  { sql, clock, log }: { readonly sql: Sql; readonly clock: Clock; readonly log: Log },
  legs: Legs,
): Rounds {
  // A leg that is there at two looks has had the time to hear it from its actor.
  let seen = new Map<CallId, number>()
  const look = async (): Promise<boolean> => {
    const asked = legs.all()
    const alive = new Set(asked.length > 0 ? await listAlive(sql, asked) : [])
    const over = asked.filter((callId) => !alive.has(callId))
    const unstored = new Set(over.length > 0 ? await listUnstored(sql, over) : [])
    seen = new Map(over.map((callId) => [callId, (seen.get(callId) ?? 0) + 1]))
    for (const [callId, times] of seen) {
      if (times < (unstored.has(callId) ? looksOfUnstored : looks)) continue
      log.warn('a leg outlived its call and is closed', { callId })
      legs.close(callId, 'canceled')
    }
    return false
  }
  return createRounds({ clock, log, every: lookEvery, look })
}
