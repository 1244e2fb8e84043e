/**
 * Owns how long a step of a call waits for the database before it is kept on the disk as well: callers hear each step that waits. A database that answers
 * late as a rule is waited for longer, since a second copy of every step is work that such a machine does not have to spare.
 */
import type { Clock } from '../../model/clock.ts'
import type { Effect } from '../call/call-event.ts'
import type { KeptStep } from '../call/call-step.ts'

/**
 * Ms after which the database counts as away, if it has not written a step. Longer than a disk under load takes, shorter than a caller waits for an answer
 * without wondering.
 */
export const longestPatience = 1_000
const shortestPatience = 250
/** So many times as long as steps took lately, of which each of them is an eighth. */
const timesAsLong = 4
const share = 1 / 8

/**
 * What another actor might do again, had it taken the call meanwhile, or has told the caller that it may not have been done: a step that asks for it waits
 * until there can be no doubt.
 */
const once: readonly Effect['type'][] = ['run_tool', 'announce_tool_call', 'dial', 'redirect']

export function createStepPatience({ now }: Pick<Clock, 'now'>) {
  let usual = 0
  return {
    /** Ms. */
    of({ logged }: Pick<KeptStep, 'logged'>): number {
      const asksOnce = (logged.effects as readonly Effect[]).some(({ type }) => once.includes(type))
      return asksOnce ? longestPatience : Math.min(longestPatience, Math.max(shortestPatience, usual * timesAsLong))
    },
    /** The same work, and how long it takes is kept in mind. */
    async measured<Value>(work: Promise<Value>): Promise<Value> {
      const began = now()
      return work.finally(() => {
        // A clock that is set is no measure.
        const took = Math.min(longestPatience, Math.max(0, now() - began))
        usual += (took - usual) * share
      })
    },
  }
}
