/** Owns the two durable waits of an outbound call: for its dial time, and from its slot to its actor. Both may run more than once. */
import type { Sql } from '../../../store/sql.ts'
import type { Work } from '../../rounds/scheduler.ts'
import type { CallRouter } from '../../node/call-router.ts'
import { routeWhile } from '../life/route-while.ts'

type Deps = { readonly sql: Sql; readonly router: CallRouter }

/** A scheduled call takes its place in the queue. */
export function dialTimeWork(deps: Deps & { readonly wakeDispatcher: () => void }): Work {
  return async ({ callId }) => {
    await routeWhile(deps, callId, 'scheduled', { type: 'dial_time_reached' })
    deps.wakeDispatcher()
  }
}

/** The dispatcher gave a place to the call: it runs from here on. */
export function dialWork(deps: Deps): Work {
  return async ({ callId }) => {
    // An overdue call may get its place before its dial time was told.
    await routeWhile(deps, callId, 'scheduled', { type: 'dial_time_reached' })
    await routeWhile(deps, callId, 'queued', { type: 'slot_granted' })
  }
}
