/**
 * Owns that a process finds work that became due, and what dead nodes have left: once a second it asks the database for all of its rounds together, and wakes
 * those whose work waits. They need not look by themselves then, which would be a statement or a transaction each.
 */
import type { Cancel, Clock } from '../../model/clock.ts'
import type { Log } from '../../model/log.ts'
import { findDueWork, type DueWork, type LeftQuestion } from '../../store/due-work.ts'
import type { Sql } from '../../store/sql.ts'
import { createRounds } from './rounds.ts'

export type DueWatch = {
  /** `wake` is called once a second while there is work of these kinds that is due. */
  on(kinds: readonly DueWork[], wake: () => void): Cancel
  /** The same of what dead nodes have left behind: `question` is asked for each time. One at a time. */
  onLeft(question: () => LeftQuestion, wake: () => void): Cancel
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
  toldOr(watch && ((wake: () => void) => watch.on(kinds, wake)), pollEvery)

export const lookingForLeft = (
  watch: Pick<DueWatch, 'onLeft'> | undefined,
  question: () => LeftQuestion,
  pollEvery: number,
) => toldOr(watch && ((wake: () => void) => watch.onLeft(question, wake)), pollEvery)

const toldOr = (told: ((wake: () => void) => Cancel) | undefined, pollEvery: number) =>
  told ? { every: lookAllTheSame, told } : { every: pollEvery }

export function createDueWatch(deps: { readonly sql: Sql; readonly clock: Clock; readonly log: Log }): DueWatch {
  const { sql, clock, log } = deps
  const watching = new Set<{ readonly kinds: readonly DueWork[]; wake(): void }>()
  let left: (() => LeftQuestion) | null = null
  const look = async (): Promise<boolean> => {
    if (watching.size === 0) return false
    const due = await findDueWork(sql, clock.now(), left?.() ?? null)
    for (const { kinds, wake } of watching) if (kinds.some((kind) => due.has(kind))) wake()
    return false
  }
  const rounds = createRounds({ clock, log, every: askEvery, look })
  const on: DueWatch['on'] = (kinds, wake) => {
    const watcher = { kinds, wake }
    watching.add(watcher)
    return () => void watching.delete(watcher)
  }
  return {
    on,
    onLeft(question, wake) {
      left = question
      const cancel = on(['orphans'], wake)
      return () => {
        cancel()
        left = null
      }
    },
    idle: () => rounds.idle(),
    close: () => rounds.close(),
  }
}
