/**
 * Owns the births of inbound phone calls: their rows and their first steps, in the transaction of whoever let them in. The node owns it from the
 * first moment, so that the call of a node that dies before it begins is found as an orphan and ended.
 */
import type { CallWarning } from '../../../model/call.ts'
import type { AccountId, CallId, NewId, NodeId, SubscriptionId } from '../../../model/ids.ts'
import type { InboundCall } from '../../../model/telephony.ts'
import { addressGroupOf } from '../../../net/addresses.ts'
import type { Claim } from '../../../store/call-steps.ts'
import type { Transaction } from '../../../store/sql.ts'
import { findKnownPersons, type KnownPerson } from './known-person.ts'
import { writeBirths } from './write-birth.ts'

export type InboundBirth = InboundCall & {
  /** Given before; absent: it gets new ones. */
  readonly ids?: { readonly callId: CallId; readonly sessionId: string }
  readonly warnings?: readonly CallWarning[]
  /** Who calls; absent: they are looked for. */
  readonly known?: KnownPerson
  readonly nodeId: NodeId
  /** Ms since the epoch. */
  readonly now: number
  readonly newId: NewId
}

export type InboundBirths = {
  /** The node claims its calls with their births. Otherwise their actors have yet to do so. */
  readonly claims: boolean
  /** Who is told that it rings, held by the transaction. */
  takersOf(birth: InboundBirth): readonly SubscriptionId[]
}

export type BornCall = { readonly callId: CallId; readonly claim: Claim }

/**
 * All of one account; in their order. Deliveries are written: the caller wakes them after the commit. A call begins with the fact
 * `client_connected`.
 */
export async function createInboundCalls(
  tx: Transaction,
  births: readonly InboundBirth[],
  { claims, takersOf }: InboundBirths,
): Promise<BornCall[]> {
  const [accountId] = births.map(({ route }) => route.trunk.accountId)
  if (accountId === undefined) return []
  const known = await personsOf(tx, accountId, births)
  const born = births.map((one, index) => {
    const { route, fromNumber, isVerified = false, address, sip, nodeId, now, newId } = one
    const call = {
      id: one.ids?.callId ?? newId<'call'>(),
      accountId,
      workerId: route.workerId,
      sessionId: one.ids?.sessionId ?? newId(),
      fromNumber,
      toNumber: route.toNumber,
      ...known[index]!,
      context: null,
      scriptIds: [],
      metadata: null,
      request: {},
      externalTools: [],
      trunkId: route.trunk.id,
      arrivedFrom: addressGroupOf(address),
      sip: sip ?? null,
      callerVerified: isVerified,
      owner: nodeId,
      ...(claims && { epoch: 1 }),
      ...(one.warnings && { warnings: one.warnings }),
    }
    const birth = { direction: 'inbound', transport: 'sip_trunk', scheduledAt: null } as const
    return { birth, call, now, newId, takers: takersOf(one) }
  })
  const written = await writeBirths(tx, born)
  return written.map((claim, index) => ({ callId: born[index]!.call.id, claim }))
}

async function personsOf(
  tx: Transaction,
  accountId: AccountId,
  births: readonly InboundBirth[],
): Promise<readonly KnownPerson[]> {
  const known = births.flatMap((birth) => birth.known ?? [])
  const numbers = births.map(({ fromNumber }) => fromNumber)
  return known.length === births.length ? known : findKnownPersons(tx, accountId, numbers)
}
