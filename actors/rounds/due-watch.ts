/**
 * Owns that a process finds work that became due: once a second it asks the database for all of its rounds together, and wakes those whose work waits.
 * They need not look by themselves then, which would be a transaction each.
 */
import type { Cancel, Clock } from '../../model/clock.ts'
import type { Log } from '../../model/log.ts'
import { findDueWork, type DueWork } from '../../store/due-work.ts'
import type { Sql } from '../../store/sql.ts'
import { createRounds } from './rounds.ts'

export type DueWatch = {
  /** `wake` is called once a second while there is work of these kinds that is due. */
  on(kinds: readonly DueWork[], wake: () => void): Cancel
  /** Asks now; resolves when everybody has been told. */
  idle(): Promise<void>
  /** Idempotent. */
  close(): Promise<void>
}

const askEvery = 1_000
/** Ms between two looks of rounds that are told: what nobody tells of, such as events that became too old, is found by them. */
const lookAllTheSame = 30_000

/** Of rounds: when they look. Those that nobody tells look every so often. */
export const lookingFor = (watch: Pick<DueWatch, 'on'> | undefined, kinds: readonly DueWork[], pollEvery: number) =>
  watch ? { every: lookAllTheSame, told: (wake: () => void) => watch.on(kinds, wake) } : { every: pollEvery }

export function createDueWatch(deps: { readonly sql: Sql; readonly clock: Clock; readonly log: Log }): DueWatch {
  const { sql, clock, log } = deps
  const watching = new Set<{ readonly kinds: readonly DueWork[]; wake(): void }>()
  const look = async (): Promise<boolean> => {
    if (watching.size === 0) return false
    const due = await findDueWork(sql, clock.now())
    for (const { kinds, wake } of watching) if (kinds.some((kind) => due.has(kind))) wake()
    return false
  }
  const rounds = createRounds({ clock, log, every: askEvery, look })
  return {
    on(kinds, wake) {
      const watcher = { kinds, wake }
      watching.add(watcher)
      return () => void watching.delete(watcher)
    },
    idle: () => rounds.idle(),
    close: () => rounds.close(),
  }
}
