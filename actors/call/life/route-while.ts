/** Owns how a job gives a waiting call the fact it waits for. */
import type { CallId } from '../../../model/ids.ts'
import { findSnapshot } from '../../../store/call-steps.ts'
import type { Sql } from '../../../store/sql.ts'
import type { CallRouter } from '../../node/call-router.ts'
import type { CallFact } from '../call-event.ts'
import { stateOf, type CallState } from '../machine/step.ts'

/** Nothing for a call that waits for something else by now, or is over. Throws, to be tried again, when nobody answers for the call. */
export async function routeWhile(
  { sql, router }: { readonly sql: Sql; readonly router: CallRouter },
  callId: CallId,
  wait: NonNullable<CallState['waitsIn']>,
  fact: CallFact,
): Promise<void> {
  const snapshot = await findSnapshot(sql, callId)
  if (snapshot === null || stateOf(snapshot).waitsIn !== wait) return
  if (!(await router.route(callId, fact))) throw new Error('nobody answers for the call')
}
