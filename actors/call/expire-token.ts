/** Owns the end of a web call that nobody joined: its token is taken away, and the call is told if it still waits. */
import type { Clock } from '../../model/clock.ts'
import type { Sql } from '../../store/sql.ts'
import { expireToken } from '../../store/web-sessions.ts'
import type { Work } from '../scheduler.ts'
import { findSnapshot } from '../../store/call-steps.ts'
import { stateOf } from './step.ts'
import type { Switchboard } from '../switchboard.ts'

export function expireTokenWork(deps: {
  readonly sql: Sql
  readonly clock: Clock
  readonly switchboard: Switchboard
}): Work {
  return async (job) => {
    await expireToken(deps.sql, job.callId, deps.clock.now())
    // The call decides, not the token: one that was taken by a client whose arrival got lost must end all the same.
    const snapshot = await findSnapshot(deps.sql, job.callId)
    if (snapshot === null || stateOf(snapshot).waitsIn !== 'waitingForClient') return
    if (!(await deps.switchboard.deliver(job.callId, { type: 'token_expired' })))
      throw new Error('nobody answers for the call')
  }
}
