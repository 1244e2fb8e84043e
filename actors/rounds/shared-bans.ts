/**
 * Owns that all processes have the same bans: each writes its own down, takes over what the others wrote, and lets go of what an operator
 * took away. Without the database each goes by its own.
 */
import type { Clock } from '../../model/clock.ts'
import type { Log } from '../../model/log.ts'
import type { Ban, FailureGuard } from '../../net/failure-guard.ts'
import { forgetBans, listBans, writeBans } from '../../store/bans.ts'
import type { Sql } from '../../store/sql.ts'
import { createRounds, type Rounds } from './rounds.ts'

/** Ms, the longest until a ban that was lifted is over, and one of another process holds. */
export const bansSharedEvery = 5_000
/** Above what the guards of several processes hold. */
const mostRows = 50_000
const forgottenAtOnce = 5_000
/** Ms. Whoever reads them passes over those that are over. */
const forgetEvery = 60_000

export function createSharedBans(deps: {
  readonly sql: Sql
  readonly clock: Clock
  readonly log: Log
  readonly guard: Pick<FailureGuard, 'bans' | 'adopt' | 'lift'>
}): Rounds {
  const { sql, clock, log, guard } = deps
  /** What the table held when it was read or written last, as far as it may still run. */
  let shared = new Map<string, Ban>()
  let forgotAt = -Infinity

  async function look(): Promise<boolean> {
    const own = guard.bans().filter((ban) => shared.get(keyOf(ban))?.until !== ban.until)
    await writeBans(sql, own)
    const rows = await listBans(sql, clock.now(), mostRows)
    const told = new Map(rows.map((ban) => [keyOf(ban), ban]))
    const written = [...shared.values(), ...own]
    // Where not all were read, what is missing may be there.
    if (rows.length < mostRows)
      for (const ban of written) if (ban.until > clock.now() && !told.has(keyOf(ban))) guard.lift(ban.group)
    for (const ban of rows) guard.adopt(ban)
    shared = told
    await forgetSome()
    return false
  }
  async function forgetSome(): Promise<void> {
    if (clock.now() - forgotAt < forgetEvery) return
    forgotAt = clock.now()
    await forgetBans(sql, clock.now(), forgottenAtOnce)
  }
  return createRounds({ clock, log, every: bansSharedEvery, look })
}

const keyOf = ({ group, isProven, covers }: Ban): string => `${isProven} ${covers} ${group}`
