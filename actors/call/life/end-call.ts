/**
 * Owns how a call is ended from outside: canceled while it waits, hung up while it runs. Which of the two it is, the call itself decides
 * when the request reaches it; the row tells the answer. docs/contract/rest.md "Cancel and hang up".
 */
import { callStatusOf } from '../../../model/call.ts'
import type { AccountId, CallId } from '../../../model/ids.ts'
import { toPhoneCall, type EndCall } from '../../../model/phone-call.ts'
import { notFound, Problem } from '../../../model/problem.ts'
import { findSnapshot } from '../../../store/call-steps.ts'
import type { CallRow } from '../../../store/call-rows.ts'
import { findCall } from '../../../store/calls.ts'
import type { Sql } from '../../../store/sql.ts'
import type { CallRouter } from '../../node/call-router.ts'
import { stateOf } from '../machine/step.ts'

type Deps = { readonly sql: Sql; readonly router: CallRouter }

const isOver = () => new Problem('CONFLICT', 'The call is over.')
const isRunning = () => new Problem('CONFLICT', 'The call is already running; hang it up instead.')
const isWaiting = () => new Problem('CONFLICT', 'The call is not running yet; cancel it instead.')
const isOutOfReach = () => new Problem('SERVICE_UNAVAILABLE', 'The call cannot be reached now; try again in a moment.')

export function createEndCall(deps: Deps): EndCall {
  const { sql, router } = deps
  return {
    async cancel(accountId, callId) {
      if (!(await isStillWaiting(deps, accountId, callId))) throw isRunning()
      const taken = await router.route(callId, { type: 'cancel_requested' })
      const call = await readCall(sql, accountId, callId)
      if (wasCanceled(call)) return toPhoneCall(call)
      if (hasEnded(call)) throw isOver()
      throw taken ? isRunning() : isOutOfReach()
    },
    async hangUp(accountId, callId) {
      if (await isStillWaiting(deps, accountId, callId)) throw isWaiting()
      const taken = await router.route(callId, { type: 'hang_up_requested', by: 'service' })
      const call = await readCall(sql, accountId, callId)
      if (!taken) throw hasEnded(call) ? isOver() : isOutOfReach()
      return toPhoneCall(call)
    },
  }
}

/** For its client, its dial time or its turn. Throws Problem for a call that is unknown or over. */
async function isStillWaiting({ sql }: Deps, accountId: AccountId, callId: CallId): Promise<boolean> {
  if (hasEnded(await readCall(sql, accountId, callId))) throw isOver()
  const { waitsIn } = stateOf(await findSnapshot(sql, callId))
  return waitsIn !== null && waitsIn !== 'processing'
}

async function readCall(sql: Sql, accountId: AccountId, callId: CallId): Promise<CallRow> {
  const call = await findCall(sql, accountId, callId)
  if (!call) throw notFound()
  return call
}

/** From the moment that nothing can change it any more, before its last words are written. */
const hasEnded = ({ progress, outcome }: CallRow): boolean => outcome !== null || callStatusOf(progress) === 'completed'

const wasCanceled = ({ outcome, failedReason }: CallRow): boolean =>
  outcome === 'canceled' && failedReason === 'cancelled_by_account_admin'
