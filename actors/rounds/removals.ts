/** Owns that what has been deleted goes with all of its rows: what a request had no time for, also where its process has ended since. */
import type { Clock } from '../../model/clock.ts'
import type { Log } from '../../model/log.ts'
import { claimRemoval, walkRemoval } from '../../store/removals.ts'
import type { Sql } from '../../store/sql.ts'
import { lookingFor, type DueWatch } from './due-watch.ts'
import { createRounds, type Rounds } from './rounds.ts'

export const removalsEvery = 5_000
/** Ms. One that takes longer is gone on with after others have had their turn. */
const atOnce = 2_000
/** Longer than a walk of that time, with a database that answers slowly. */
const lease = 30_000

export function createRemovals({
  sql,
  clock,
  log,
  dueWatch,
}: {
  readonly sql: Sql
  readonly clock: Clock
  readonly log: Log
  /** Absent: it looks by itself. */
  readonly dueWatch?: Pick<DueWatch, 'on'>
}): Rounds {
  async function look(): Promise<boolean> {
    const removal = await claimRemoval(sql, clock.now(), lease)
    if (!removal) return false
    await walkRemoval(sql, removal, atOnce, clock.now())
    return true
  }
  return createRounds({ clock, log, look, ...lookingFor(dueWatch, ['removals'], removalsEvery) })
}
