/** Owns that a call is captured from its answer on, where an operator has asked for that in advance. No fact of the call: it goes on without. */
import type { CallFactsRow } from '../../../store/call-rows.ts'
import { captureKeyOf } from '../../../model/call-capture.ts'
import { takeStandingCapture } from '../../../store/standing-captures.ts'
import { orderCapture } from './capture-call.ts'
import type { PerformerDeps } from './performer-deps.ts'

type Deps = Pick<PerformerDeps, 'sql' | 'bus' | 'clock' | 'log'>

/** May be repeated, by who takes the call over before anything was said. Never rejects. */
export async function beginStandingCapture({ sql, bus, clock, log }: Deps, call: CallFactsRow): Promise<void> {
  if (!call.isCaptureWanted) return
  const { accountId, workerId, id: callId } = call
  try {
    const taken = await takeStandingCapture(sql, { accountId, workerId, callId, now: clock.now() })
    if (!taken) return
    const { rtp, minutes } = taken
    const reply = await orderCapture(bus, callId, { key: captureKeyOf(accountId, callId), rtp, ms: minutes * 60_000 })
    if (reply.type === 'refused') log.warn('a call that was to be captured is not', { details: reply.details })
    else log.info('a call is captured from its answer on', { rtp })
  } catch (error) {
    log.warn('a call that was to be captured is not', { error })
  }
}
