/** Owns what a step of a call reads of the database, and the rows that come of it. Times are ms since the epoch. */
import type { Turn } from '../model/call.ts'
import type { CallEvent, EventType } from '../model/events.ts'
import type { CallUsage } from '../model/usage.ts'
import type { JsonObject } from '../model/json.ts'
import type { CallFactsRow, CallOverrides, CallRow } from './call-rows.ts'
import type { JobKind } from './jobs.ts'
import type { TurnRow } from './transcripts.ts'

/** What of the database a step needs besides the row of its call. */
export type StepReads = {
  /** That it may announce. */
  readonly eventTypes: readonly EventType[]
  readonly turns: boolean
  readonly config: boolean
}

/** The call as it was before the step. */
export type StepFacts = {
  readonly call: CallRow
  /** Empty unless they were asked for. */
  readonly turns: readonly TurnRow[]
  /** Null unless it was asked for. */
  readonly config: Pick<CallFactsRow, 'workerConfig' | 'request' | 'hookAnswer'> | null
}

type ChangedFacts = Pick<
  CallRow,
  | 'progress'
  | 'outcome'
  | 'failedReason'
  | 'providerStatus'
  | 'postProcessingStatus'
  | 'metadata'
  | 'nextAction'
  | 'dimensions'
  | 'evidence'
  | 'summary'
  | 'startedAt'
  | 'endedAt'
  | 'endedBy'
  | 'endCause'
  | 'recordingKey'
  | 'recordedMs'
  | 'quality'
  | 'warnings'
  | 'recordingState'
  | 'disclosure'
>

/** What is not named stays as it is. `externalTools` carry sealed secrets. */
export type CallChange = Partial<
  ChangedFacts & {
    readonly hookAnswer: CallOverrides
    readonly externalTools: readonly JsonObject[]
    readonly usage: CallUsage
  }
>

/** All that a step writes besides the snapshot and the log. */
export type StepRows = {
  readonly change: CallChange
  readonly turns: readonly { readonly index: number; readonly turn: Turn }[]
  /** Nobody was heard behind it: turns end there. Null: they stay as they are. */
  readonly turnsEndAt: number | null
  /** Announced in this order. */
  readonly events: readonly CallEvent[]
  readonly jobs: readonly { readonly kind: JobKind; readonly runAt: number }[]
}
