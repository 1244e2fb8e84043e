/** Owns the end of a web call that nobody joined: its token is taken away, and the call is told if it still waits. */
import type { Clock } from '../../../model/clock.ts'
import type { Sql } from '../../../store/sql.ts'
import { expireToken } from '../../../store/web-sessions.ts'
import type { Work } from '../../rounds/scheduler.ts'
import type { CallRouter } from '../../node/call-router.ts'
import { routeWhile } from '../life/route-while.ts'

export function expireTokenWork(deps: { readonly sql: Sql; readonly clock: Clock; readonly router: CallRouter }): Work {
  return async ({ callId }) => {
    await expireToken(deps.sql, callId, deps.clock.now())
    // The call decides, not the token: a call whose client took the token and was lost must end as well.
    await routeWhile(deps, callId, 'waitingForClient', { type: 'token_expired' })
  }
}
