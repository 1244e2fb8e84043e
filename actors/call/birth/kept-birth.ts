/**
 * Owns the birth of an inbound phone call while the database is away: kept as text on the disk of the node, and written later as it would have been. Its
 * actor begins with what is known of it meanwhile. Who calls is looked for when it is written, so that the agent knows nobody.
 */
import type { CallWarning } from '../../../model/call.ts'
import type { AccountId, CallId, NewId, NodeId, TrunkId, WorkerId } from '../../../model/ids.ts'
import type { InboundCall } from '../../../model/telephony.ts'
import type { WorkerConfig } from '../../../model/worker.ts'
import { addressGroupOf } from '../../../net/addresses.ts'
import type { CallFactsRow } from '../../../store/call-rows.ts'
import type { Claim } from '../../../store/call-steps.ts'
import type { Sql } from '../../../store/sql.ts'
import { createInboundCalls } from './create-inbound-call.ts'
import { claimOfBirth, takersOfBirth, type Written } from './write-birth.ts'

/** JSON, and nothing secret. */
export type KeptBirth = Pick<InboundCall, 'fromNumber' | 'address' | 'isVerified' | 'sip'> & {
  readonly callId: CallId
  readonly sessionId: string
  readonly nodeId: NodeId
  readonly accountId: AccountId
  readonly workerId: WorkerId
  readonly trunkId: TrunkId
  readonly toNumber: string
  /** Ms since the epoch. */
  readonly now: number
  readonly warnings: readonly CallWarning[]
}

export function keptBirthOf(
  call: InboundCall,
  ids: Pick<KeptBirth, 'callId' | 'sessionId' | 'nodeId' | 'now' | 'warnings'>,
): KeptBirth {
  const { route, fromNumber, address, isVerified, sip } = call
  const { workerId, toNumber, trunk } = route
  const whose = { accountId: trunk.accountId, trunkId: trunk.id, workerId, toNumber }
  return { ...ids, ...whose, fromNumber, address, ...(isVerified !== undefined && { isVerified }), ...(sip && { sip }) }
}

/** As a step of a call is kept: whose it is stands in its tenure. */
export function textOfBirth(birth: KeptBirth): string {
  const { callId, accountId, nodeId } = birth
  return JSON.stringify({ tenure: { callId, accountId, nodeId, epoch: 1, version: -1 }, birth })
}

/** Null: it is a step. */
export const birthOfText = (text: string): KeptBirth | null =>
  (JSON.parse(text) as { readonly birth?: KeptBirth }).birth ?? null

/** Of how many deliveries; one that is there already is not written again. */
export function writeKeptBirth(sql: Sql, newId: NewId, birth: KeptBirth): Promise<number> {
  const { callId, sessionId, accountId, workerId, trunkId, toNumber, now, ...given } = birth
  const trunk = { id: trunkId, accountId, name: '', settings: {}, password: null }
  const route = { trunk, workerId, toNumber, mustAuthenticate: false }
  return sql.begin(async (tx): Promise<number> => {
    if ((await tx`select from calls where id = ${callId}`).count > 0) return 0
    const takers = await takersOfBirth(tx, { accountId, workerId })
    const born = { ...given, route, ids: { callId, sessionId }, now, newId }
    await createInboundCalls(tx, [born], { claims: true, takersOf: () => takers })
    return takers.length
  }) as Promise<number>
}

/** What its first actor begins with. */
export function bornOf(
  birth: KeptBirth,
  worker: { readonly language: string; readonly config: WorkerConfig },
  newId: NewId,
): { readonly claim: Claim; readonly facts: CallFactsRow } {
  const { callId: id, sessionId, accountId, workerId, trunkId, toNumber, fromNumber, now, address, sip = null } = birth
  const { warnings } = birth
  const kind = { direction: 'inbound', transport: 'sip_trunk', scheduledAt: null } as const
  const named = {
    id,
    accountId,
    workerId,
    trunkId,
    fromNumber,
    toNumber,
    personId: null,
    customer: null,
    metadata: null,
  }
  const asked = { context: null, request: {}, scriptIds: [] }
  const seen = { sip, callerVerified: birth.isVerified ?? false }
  const call = { ...named, ...asked, ...seen, sessionId, externalTools: [], owner: birth.nodeId, epoch: 1 }
  const written: Written = { birth: kind, call: { ...call, arrivedFrom: addressGroupOf(address) }, now, newId }
  const { language, config: workerConfig } = worker
  const facts = { ...untold, warnings, ...kind, ...named, ...asked, ...seen, language, workerConfig }
  return { claim: claimOfBirth(written), facts }
}

const untold = {
  progress: 'ringing',
  outcome: null,
  failedReason: null,
  providerStatus: null,
  postProcessingStatus: 'none',
  nextAction: null,
  dimensions: null,
  evidence: null,
  summary: null,
  startedAt: null,
  endedAt: null,
  endedBy: null,
  endCause: null,
  quality: null,
  recordingState: null,
  disclosure: null,
  recordingKey: null,
  recordedMs: null,
  hookAnswer: {},
  isCaptureWanted: false,
} as const satisfies Partial<CallFactsRow>
