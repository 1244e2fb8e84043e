/**
 * Owns how a trunk is examined: what its settings say together, and what is asked of the telephone edge, which asks its gateways. Each check tells what was
 * wanted, what was there and what mends it.
 */
import { z } from 'zod'
import type { AccountId, TrunkId } from './ids.ts'
import type { Trunk } from './trunk.ts'

export const TrunkCheck = z.object({
  name: z.string(),
  verdict: z.enum(['passed', 'warned', 'failed']),
  expected: z.string(),
  got: z.string(),
  mend: z.string().nullable(),
})
export type TrunkCheck = Readonly<z.infer<typeof TrunkCheck>>

/** Asked of one edge: TrunkAsked, answered by TrunkChecks. */
export const examineSubject = 'sip.examine'
/** Ms in which an edge answers, whatever the gateways do. */
export const examinedWithin = 25_000

export const TrunkAsked = z.object({
  accountId: z.string().transform((id) => id as AccountId),
  trunkId: z.string().transform((id) => id as TrunkId),
})
/** Null: the edge cannot look, and its log tells why. */
export const TrunkChecks = z.object({ checks: z.array(TrunkCheck).nullable() })

type Numbered = {
  readonly name: string
  readonly inboundPhoneNumber: string | null
  readonly outboundPhoneNumber: string | null
}

/** Of the workers of the trunk. */
export function settingChecksOf(trunk: Trunk, workers: readonly Numbered[]): readonly TrunkCheck[] {
  const numbers = (field: 'inboundPhoneNumber' | 'outboundPhoneNumber'): string =>
    workers.flatMap((worker) => worker[field] ?? []).join(', ')
  const admission = [...(trunk.allowedAddresses ?? []), ...(trunk.passwordSet && trunk.username ? ['by password'] : [])]
  const gateways = trunk.gateways ?? []
  return [
    judged('is switched on', trunk.isActive ? 'yes' : '', 'set isActive'),
    judged('has workers', workers.map(({ name }) => name).join(', '), 'name them in workerIds'),
    ...(trunk.direction === 'outbound'
      ? []
      : [
          judged(
            'workers with an inbound number',
            numbers('inboundPhoneNumber'),
            'set inboundPhoneNumber of the worker',
          ),
          judged('who may deliver calls', admission.join(', '), 'name the carrier’s addresses in allowedAddresses'),
        ]),
    ...(trunk.direction === 'inbound'
      ? []
      : [
          judged(
            'workers with an outbound number',
            numbers('outboundPhoneNumber'),
            'set outboundPhoneNumber of the worker',
          ),
          judged('has gateways', gateways.map(({ host }) => host).join(', '), 'name the carrier’s hosts in gateways'),
        ]),
  ]
}

const judged = (name: string, got: string, mend: string): TrunkCheck =>
  got === ''
    ? { name, verdict: 'failed', expected: 'at least one', got: 'no', mend }
    : { name, verdict: 'passed', expected: 'at least one', got, mend: null }
