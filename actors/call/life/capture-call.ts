/**
 * Owns how the packets of a running call come to be captured, whoever asks. Nothing of it is a fact of the call: its leg alone does it, and goes on with it
 * whoever its actor is. docs/contract/rest.md "Captures".
 */
import type { Bus } from '../../../model/bus.ts'
import { BusNoResponders, BusTimeout, subjectsOf } from '../../../model/bus.ts'
import { fromBytes, toBytes } from '../../../model/bus-json.ts'
import { callStatusOf } from '../../../model/call.ts'
import { captureKeyOf, CaptureReply, type CaptureCall, type CaptureOrder } from '../../../model/call-capture.ts'
import { toIso, type Clock } from '../../../model/clock.ts'
import type { CallId } from '../../../model/ids.ts'
import { notFound, Problem } from '../../../model/problem.ts'
import { findAccount } from '../../../store/accounts.ts'
import { findCallFacts } from '../../../store/call-steps.ts'
import type { Sql } from '../../../store/sql.ts'

type Deps = { readonly sql: Sql; readonly bus: Pick<Bus, 'request'>; readonly clock: Pick<Clock, 'now'> }

/** Ms for a leg to answer. */
const patience = 5_000

export function createCaptureCall({ sql, bus, clock }: Deps): CaptureCall {
  return async (accountId, callId, { rtp, minutes }) => {
    const call = await findCallFacts(sql, callId)
    if (call?.accountId !== accountId) throw notFound()
    const { outcome, progress, startedAt } = call
    if (outcome !== null || callStatusOf(progress) === 'completed') throw new Problem('CONFLICT', 'The call is over.')
    if (startedAt === null) throw new Problem('CONFLICT', 'The call is not answered yet: it has no sound.')
    if (rtp === 'sound' && (await findAccount(sql, accountId))?.config.captureSound !== true) throw notPermitted()
    const reply = await orderCapture(bus, callId, { key: captureKeyOf(accountId, callId), rtp, ms: minutes * 60_000 })
    if (reply.type === 'refused') throw new Problem('CONFLICT', reply.details)
    return { callId, rtp: reply.rtp, until: toIso(Math.round(clock.now() + reply.leftMs)) }
  }
}

const notPermitted = () =>
  new Problem(
    'INSUFFICIENT_SCOPE',
    'Sound may not be captured: the account lacks the permission capture-sound, which the operator gives. Headers may be.',
  )

/** To the leg of the call. Throws Problem SERVICE_UNAVAILABLE when it does not answer. */
export async function orderCapture(
  bus: Pick<Bus, 'request'>,
  callId: CallId,
  order: CaptureOrder,
): Promise<CaptureReply> {
  try {
    const { legCapture } = subjectsOf(callId)
    return CaptureReply.parse(fromBytes(await bus.request(legCapture, toBytes(order), { timeout: patience })))
  } catch (cause) {
    if (!(cause instanceof BusTimeout) && !(cause instanceof BusNoResponders)) throw cause
    const problem = new Problem(
      'SERVICE_UNAVAILABLE',
      'The sound of the call cannot be reached now; try again in a moment.',
    )
    throw Object.assign(problem, { cause })
  }
}
