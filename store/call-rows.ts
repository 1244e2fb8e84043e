/** Owns the shapes of a call's row as its actor reads and writes it. Times are ms since the epoch. */
import type { Direction, ProgressStatus, Transport } from '../model/call.ts'
import type { Customer } from '../model/customer.ts'
import type { AccountId, CallId, DocumentId, NodeId, PersonId, TrunkId, WorkerId } from '../model/ids.ts'
import type { Json, JsonObject } from '../model/json.ts'
import type { PhoneCallFacts } from '../model/phone-call.ts'
import type { WorkerConfig } from '../model/worker.ts'

/** What is asked for one call alone, on top of its worker: by who created it, or by call.worker_request. */
export type CallOverrides = {
  readonly instructions?: string | undefined
  readonly locale?: string | undefined
  readonly config?: WorkerConfig | undefined
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
  /** The node that runs the call from its creation on; none unless named. */
  readonly owner?: NodeId
}

type Told = Omit<PhoneCallFacts, 'postProcessingStatus' | 'dimensions' | 'nextAction' | 'trunkId'>

/** What answers tell of a call, and what its actor needs besides. */
export type CallFactsRow = Told & {
  readonly context: string | null
  readonly metadata: JsonObject | null
  readonly request: CallOverrides
  readonly hookAnswer: CallOverrides
  readonly scriptIds: readonly DocumentId[]
  readonly recordedMs: number | null
  readonly recordingKey: string | null
  readonly nextAction: { readonly key: string; readonly name: string; readonly data?: JsonObject } | null
  /** Of the worker. */
  readonly language: string
  readonly workerConfig: WorkerConfig
}
