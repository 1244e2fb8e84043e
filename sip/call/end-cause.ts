/**
 * Owns the cause of an end as the other side told it: the Q.850 cause of its Reason header (RFC 3326), else the SIP status, as
 * `Q.850 16` and `SIP 486`; and whose doing a refused INVITE is.
 */
import type { LineEnd } from '../../model/rtp-transport.ts'
import { reasonsOf } from '../server/message/numbered-fields.ts'
import type { MessageIn } from '../stack-types.ts'
import type { FinalAnswer } from './outcome-of-answer.ts'

/** Of a BYE or CANCEL; null: it has no Reason that can be read. */
export function endCauseOf(message: MessageIn | undefined): string | null {
  const value = message?.get('reason')
  if (value === undefined) return null
  const reasons = reasonsOf({ headers: [{ name: 'Reason', value }] }).filter(({ cause }) => cause !== null)
  const [first] = reasons
  const told = reasons.find(({ protocol }) => isQ850(protocol)) ?? first
  if (!told) return null
  return `${isQ850(told.protocol) ? 'Q.850' : told.protocol.toUpperCase()} ${told.cause}`.slice(0, 100)
}

const isQ850 = (protocol: string): boolean => protocol.toUpperCase() === 'Q.850'

/** Busy, declined, unwanted: a person said so, or their telephone. RFC 3261 §21.4.19, §21.6; RFC 8197. */
const byCallee: ReadonlySet<number> = new Set([486, 600, 603, 607])

/** Of a call that nobody answered. `isOurs`: we gave it up. */
export function endOfRefusal({ status, cause }: FinalAnswer, isOurs: boolean): LineEnd {
  const endCause = cause === null ? `SIP ${status}` : `Q.850 ${cause}`
  if (isOurs) return { endedBy: 'service', endCause }
  return { endedBy: byCallee.has(status) || cause === 17 || cause === 21 ? 'caller' : 'network', endCause }
}
