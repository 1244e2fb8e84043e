/** Owns how a job gives a waiting call the fact it waits for. */
import type { CallId } from '../../../model/ids.ts'
import { findSnapshot } from '../../../store/call-steps.ts'
import type { Sql } from '../../../store/sql.ts'
import type { CallRouter } from '../../node/call-router.ts'
import type { CallFact } from '../call-event.ts'
import { stateOf, type CallState } from '../machine/step.ts'

/**
 * Nothing for a call that waits for something else by now, or is over. Throws, to be tried again, when nobody answers for the call, or the database does not
 * know yet that it has the fact: one that is kept on the disk of a node is lost when another node takes the call before it is written.
 */
export async function routeWhile(
  { sql, router }: { readonly sql: Sql; readonly router: CallRouter },
  callId: CallId,
  wait: NonNullable<CallState['waitsIn']>,
  fact: CallFact,
): Promise<void> {
  const waits = async (): Promise<boolean> => {
    const snapshot = await findSnapshot(sql, callId)
    return snapshot !== null && stateOf(snapshot).waitsIn === wait
  }
  if (!(await waits())) return
  if (!(await router.route(callId, fact))) throw new Error('nobody answers for the call')
  if (await waits()) throw new Error('the database does not know yet that the call has the fact')
}
