/**
 * Owns that no leg outlives its call: every few seconds the database is asked which calls of this process's legs are still alive, and the legs
 * of the others are closed. A leg is told by its actor, as a rule; this is for the word that got lost, on the bus or with its actor.
 */
import type { Clock } from '../../model/clock.ts'
import type { CallId } from '../../model/ids.ts'
import type { Log } from '../../model/log.ts'
import { listAlive } from '../../store/call-steps.ts'
import type { Sql } from '../../store/sql.ts'
import { createRounds, type Rounds } from './rounds.ts'

const lookEvery = 5_000

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
  let suspects = new Set<CallId>()
  const look = async (): Promise<boolean> => {
    const asked = legs.all()
    const alive = new Set(asked.length > 0 ? await listAlive(sql, asked) : [])
    const over = asked.filter((callId) => !alive.has(callId))
    for (const callId of over.filter((one) => suspects.has(one))) {
      log.warn('a leg outlived its call and is closed', { callId })
      legs.close(callId, 'canceled')
    }
    suspects = new Set(over)
    return false
  }
  return createRounds({ clock, log, every: lookEvery, look })
}
