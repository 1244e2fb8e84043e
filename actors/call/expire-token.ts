/** Owns the end of a web call that nobody joined: its token is taken away, and if that was still possible the call is told. */
import type { Clock } from '../../model/clock.ts'
import type { Sql } from '../../store/sql.ts'
import { expireToken } from '../../store/web-sessions.ts'
import type { Work } from '../scheduler.ts'
import type { Switchboard } from '../switchboard.ts'

export function expireTokenWork(deps: {
  readonly sql: Sql
  readonly clock: Clock
  readonly switchboard: Switchboard
}): Work {
  return async (job) => {
    if (!(await expireToken(deps.sql, job.callId, deps.clock.now()))) return
    await deps.switchboard.deliver(job.callId, { type: 'token_expired' })
  }
}
