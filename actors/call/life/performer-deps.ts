/** Owns what the effects of a call are carried out with, and whose call it is. */
import type { Bus } from '../../../model/bus.ts'
import type { Clock } from '../../../model/clock.ts'
import type { WorkerRequestAnswer, WorkerRequestData } from '../../../model/events.ts'
import type { CallId, NewId, NodeId } from '../../../model/ids.ts'
import type { Log } from '../../../model/log.ts'
import type { Telemetry } from '../../../model/telemetry.ts'
import type { Telephony } from '../../../model/telephony.ts'
import type { Toolbox } from '../../../model/tool.ts'
import type { CallFactsRow } from '../../../store/call-rows.ts'
import type { ScriptQuestion } from '../../../store/documents.ts'
import type { Lookup } from '../../../store/one-query.ts'
import type { SecretBox } from '../../../store/secret-box.ts'
import type { Sql } from '../../../store/sql.ts'
import type { CallFact } from '../call-event.ts'
import type { Engines } from '../engine-choice.ts'

export type WorkerRequestResult =
  | { readonly kind: 'none' }
  | { readonly kind: 'answered'; readonly answer: WorkerRequestAnswer }
  | { readonly kind: 'failed'; readonly required: boolean; readonly details: string }

export type PerformerDeps = {
  readonly sql: Sql
  /** Calls as they are when they are asked for; those that are asked for in the same moment are read together. */
  readonly findCall: Lookup<CallId, CallFactsRow>
  /** The same of the scripts of workers. */
  readonly findScript: Lookup<ScriptQuestion, string>
  /** Of the process; absent: legs need not know it. */
  readonly nodeId?: NodeId
  readonly bus: Bus
  readonly clock: Clock
  readonly newId: NewId
  readonly log: Log
  readonly telemetry?: Telemetry
  readonly box: SecretBox
  readonly engines: Engines
  /** The tools of workers, which engines may call. */
  readonly tools: Toolbox
  /** Asks for the question only when somebody is to be asked. */
  readonly askWorkerRequest: (
    callId: CallId,
    question: () => Promise<WorkerRequestData>,
  ) => Promise<WorkerRequestResult>
  /** Jobs have been committed: look at them. */
  readonly wakeJobs: () => void
  /** A call is over: its place is free. */
  readonly wakeDispatcher: () => void
  /** May callers of the account be passed on to this number? */
  readonly refusalOf: Telephony['refusalOf']
}

/** The call of one actor, and the way back to it. */
export type CallEnd = {
  readonly callId: CallId
  readonly epoch: number
  readonly post: (fact: CallFact) => void
  /** The same; settles when the fact was taken and what follows from it was begun. */
  readonly deliver: (fact: CallFact) => Promise<boolean>
  /** Something of the leg came. */
  readonly legSeen?: () => void
}
