/**
 * Owns the replay check of one call for who asks from outside: its log goes through the machine again, a part at a time, so that neither a log of
 * hours nor many who ask take memory or time from calls that run.
 */
import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../../model/clock.ts'
import type { CallId } from '../../model/ids.ts'
import type { Log } from '../../model/log.ts'
import { Problem } from '../../model/problem.ts'
import { mostDifferences, type CheckReplay, type ReplayCheck } from '../../model/replay-check.ts'
import { findCall } from '../../store/calls.ts'
import { listEventsFrom } from '../../store/call-steps.ts'
import type { Sql } from '../../store/sql.ts'
import { beginReplay, effectsOf, type LoggedFact } from './machine/replay.ts'

/** Checks under way in this process. */
const mostAtOnce = 2
/** Ms that one may take. */
const longest = 10_000
/** Steps that are read at a time, and that are taken at a time. */
const pageSize = 200
const stretch = 10

type Deps = { readonly sql: Sql; readonly clock: Clock; readonly log: Log }

export function createReplayCheck(deps: Deps): CheckReplay {
  let running = 0
  return async (accountId, callId) => {
    if (running >= mostAtOnce)
      throw new Problem('RATE_LIMITED', 'Other logs are being replayed. Try again in a few seconds.', null, {
        retryAfterSeconds: 5,
      })
    running++
    try {
      if (!(await findCall(deps.sql, accountId, callId))) return null
      return await check(deps, callId)
    } finally {
      running--
    }
  }
}

async function check({ sql, clock, log }: Deps, callId: CallId): Promise<ReplayCheck> {
  const until = clock.now() + longest
  const tally = createTally()
  for (let from = 0; ;) {
    const page = await listEventsFrom(sql, callId, { from, limit: pageSize })
    for (const [place, logged] of page.entries()) {
      if (clock.now() >= until) return tally.told('unfinished')
      try {
        tally.take(logged)
      } catch (error) {
        log.warn('the log of a call cannot be replayed', { callId, seq: logged.seq, error })
        tally.differ(logged)
        return tally.told('same')
      }
      if (place % stretch === stretch - 1) await setImmediate()
    }
    const last = page.at(-1)
    if (!last || page.length < pageSize) return tally.told(from === 0 && !last ? 'no_log' : 'same')
    from = last.seq + 1
  }
}

function createTally() {
  let replaying: ReturnType<typeof beginReplay> | null = null
  const counts = { facts: 0, ignored: 0, effects: 0, different: 0 }
  const differences: ReplayCheck['differences'] = []
  const differ = ({ seq, event }: LoggedFact): void => {
    counts.different++
    const fact = (event as { readonly type?: string }).type ?? ''
    if (differences.length < mostDifferences) differences.push({ seq, fact })
  }
  return {
    differ,
    take(logged: LoggedFact): void {
      counts.facts++
      counts.effects += effectsOf(logged)
      if (logged.ignored) counts.ignored++
      const found = replaying ? replaying.take(logged) : (replaying = beginReplay(logged)).begun
      if (found.length > 0) differ(logged)
    },
    told: (verdict: Exclude<ReplayCheck['verdict'], 'different'>): ReplayCheck => ({
      verdict: counts.different > 0 ? 'different' : verdict,
      ...counts,
      differences,
    }),
  }
}
