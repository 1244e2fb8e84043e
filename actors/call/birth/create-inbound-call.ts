/**
 * Owns the birth of an inbound phone call: its row and its first step, in the transaction of whoever let it in. The node owns it from the
 * first moment, so that the call of a node that dies before it begins is found as an orphan and ended.
 */
import type { CallId, NewId, NodeId, SubscriptionId } from '../../../model/ids.ts'
import type { InboundCall } from '../../../model/telephony.ts'
import { addressGroupOf } from '../../../net/addresses.ts'
import type { Claim } from '../../../store/call-steps.ts'
import type { Transaction } from '../../../store/sql.ts'
import { findKnownPerson } from './known-person.ts'
import { writeBirth } from './write-birth.ts'

export type InboundBirth = InboundCall & {
  readonly nodeId: NodeId
  /** Ms since the epoch. */
  readonly now: number
  readonly newId: NewId
  /** Who is told that it rings, held by the transaction; absent: they are looked for. */
  readonly takers?: readonly SubscriptionId[]
  /** The node claims the call with its birth. Absent: its actor has yet to do so. */
  readonly claimed?: (claim: Claim) => void
}

/** Deliveries are written: the caller wakes them after the commit. The call begins with the fact `client_connected`. */
export async function createInboundCall(
  tx: Transaction,
  { route, fromNumber, isVerified = false, address, sip, nodeId, now, newId, takers, claimed }: InboundBirth,
): Promise<CallId> {
  const { accountId, id: trunkId } = route.trunk
  const id: CallId = newId<'call'>()
  const call = {
    id,
    accountId,
    workerId: route.workerId,
    sessionId: newId(),
    fromNumber,
    toNumber: route.toNumber,
    ...(await findKnownPerson(tx, accountId, fromNumber)),
    context: null,
    scriptIds: [],
    metadata: null,
    request: {},
    externalTools: [],
    trunkId,
    arrivedFrom: addressGroupOf(address),
    sip: sip ?? null,
    callerVerified: isVerified,
    owner: nodeId,
    ...(claimed && { epoch: 1 }),
  }
  const birth = { direction: 'inbound', transport: 'sip_trunk', scheduledAt: null } as const
  const claim = await writeBirth(tx, { birth, call, now, newId, ...(takers && { takers }) })
  claimed?.(claim)
  return id
}
