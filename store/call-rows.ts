/** Owns the shapes of a call's row, and which columns are read into them. Times are ms since the epoch. */
import type { CallWarning, Direction, ProgressStatus, Transport } from '../model/call.ts'
import type { Customer } from '../model/customer.ts'
import type { AccountId, CallId, DocumentId, NodeId, PersonId, TrunkId, WorkerId } from '../model/ids.ts'
import type { Json, JsonObject } from '../model/json.ts'
import type { PhoneCallFacts } from '../model/phone-call.ts'
import type { CallHeaders, SipFacts } from '../model/sip-facts.ts'
import type { WorkerConfig } from '../model/worker.ts'
import { linkColumns } from './removals.ts'
import { columnsOf, type Sql, type Transaction } from './sql.ts'

/** What is asked for one call alone, on top of its worker: by who created it, or by call.worker_request. */
export type CallOverrides = {
  readonly instructions?: string | undefined
  readonly locale?: string | undefined
  readonly config?: WorkerConfig | undefined
  /** On the INVITE of an outbound call. */
  readonly headers?: CallHeaders | undefined
}

export type CallBirthRow = {
  readonly id: CallId
  readonly accountId: AccountId
  readonly workerId: WorkerId
  readonly sessionId: string
  readonly direction: Direction
  readonly transport: Transport
  readonly progress: ProgressStatus
  readonly fromNumber: string | null
  readonly toNumber: string | null
  readonly personId: PersonId | null
  readonly customer: Customer | null
  readonly context: string | null
  readonly metadata: JsonObject | null
  readonly request: CallOverrides
  /** Secrets sealed. */
  readonly externalTools: readonly JsonObject[]
  /** Outbound call scripts that the creator pinned; empty: all of the worker. */
  readonly scriptIds: readonly DocumentId[]
  readonly scheduledAt: number | null
  /** By the application's clock: calls wait in the order of it. */
  readonly createdAt: number
  readonly snapshot: Json
  /** Of an inbound phone call. */
  readonly trunkId?: TrunkId | null
  /** Of an inbound phone call: as addressGroupOf says its address. */
  readonly arrivedFrom?: string
  readonly sip?: SipFacts | null
  /** Of an inbound phone call. */
  readonly callerVerified?: boolean
  /** Of how it began; none unless named. */
  readonly warnings?: readonly CallWarning[]
  /** Of the request of REST that placed it. */
  readonly requestId?: string | null
  /** The node that runs the call from its creation on; none unless named. */
  readonly owner?: NodeId
  /** Of the owner's actor, where its claim is known with the birth (1); 0: the actor has yet to claim the call. */
  readonly epoch?: number
}

/** What answers tell of a call. */
export type CallRow = PhoneCallFacts & {
  /** Null until the recording is complete, and for ever when there is none. */
  readonly recordingKey: string | null
  readonly recordedMs: number | null
  readonly nextAction: { readonly key: string; readonly name: string; readonly data?: JsonObject } | null
}

/** With when it was made, ms since the epoch. */
export type DatedCall = CallRow & { readonly createdAt: number }

/** A field that is not read here does not compile. */
const callFields: Readonly<Record<keyof CallRow, true>> = {
  id: true,
  accountId: true,
  workerId: true,
  direction: true,
  transport: true,
  progress: true,
  outcome: true,
  failedReason: true,
  providerStatus: true,
  postProcessingStatus: true,
  fromNumber: true,
  toNumber: true,
  personId: true,
  customer: true,
  metadata: true,
  nextAction: true,
  dimensions: true,
  evidence: true,
  summary: true,
  scheduledAt: true,
  startedAt: true,
  endedAt: true,
  endedBy: true,
  endCause: true,
  trunkId: true,
  recordingKey: true,
  recordedMs: true,
  quality: true,
  warnings: true,
  recordingState: true,
  disclosure: true,
}
const callColumnList = columnsOf('calls', Object.keys(callFields))

const unlinked = Object.keys(callFields).filter((field) => field !== 'personId' && field !== 'trunkId')
const unlinkedColumnList = columnsOf('calls', unlinked)

/** The same, as answers tell it: a link to what has been deleted is none, also while the walk through the calls has not come to this one. */
export const answerColumns = (sql: Sql | Transaction) => sql`${sql.unsafe(unlinkedColumnList)}, ${linkColumns(sql)}`

/** What makes a CallRow, of `calls`. */
export const callColumns = (sql: Sql | Transaction) => sql.unsafe(callColumnList)

/** Of the call's worker, with what the account says for all of its workers. */
export const workerConfigOf = (sql: Sql | Transaction) => sql`
  jsonb_strip_nulls(jsonb_build_object('recordingEnabled', accounts.config->'recordingEnabled')) || workers.config`

/** The same, and what the actor of the call needs besides. */
export type CallFactsRow = CallRow & {
  readonly context: string | null
  readonly request: CallOverrides
  readonly hookAnswer: CallOverrides
  readonly scriptIds: readonly DocumentId[]
  /** Of an inbound phone call; null too for calls of before it was kept. */
  readonly sip: SipFacts | null
  /** Null too for calls of before it was kept. */
  readonly callerVerified: boolean | null
  /** Of the worker. */
  readonly language: string
  /** With what the account says for all of its workers. */
  readonly workerConfig: WorkerConfig
  /** The operator has asked for captures of calls such as this. */
  readonly isCaptureWanted: boolean
}
