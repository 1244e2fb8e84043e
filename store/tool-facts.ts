/** Owns what the tools of a worker are offered by, read in one statement for all who ask in the same moment. */
import type { AccountId, CallId, WorkerId } from '../model/ids.ts'
import type { WorkerConfig } from '../model/worker.ts'
import { knownDocumentsOf } from './known-documents.ts'
import type { Sql } from './sql.ts'
import { carriesCalls } from './telephony.ts'
import { callAtHandColumns, type CallAtHand } from './tool-calls.ts'

export type ToolQuestion = {
  readonly accountId: AccountId
  readonly workerId: WorkerId
  /** Null: for no call. */
  readonly callId: CallId | null
}

export type ToolFacts = {
  readonly worker: { readonly id: WorkerId; readonly language: string; readonly config: WorkerConfig }
  readonly accountConfig: WorkerConfig
  /** Null, too, for one of another worker. */
  readonly call: CallAtHand | null
  /** The person that the call is linked to is there. */
  readonly isLinked: boolean
  /** The worker has some that can be searched. */
  readonly hasDocuments: boolean
  /** Over a trunk of the worker: whatever that carries can be passed on. */
  readonly canPassOn: boolean
}

type Row = CallAtHand &
  Pick<ToolFacts, 'isLinked' | 'hasDocuments' | 'canPassOn' | 'accountConfig'> & {
    readonly askedWorker: WorkerId
    readonly workerLanguage: string
    readonly workerConfig: WorkerConfig
  }

export const keyOfToolQuestion = ({ accountId, workerId, callId }: ToolQuestion): string =>
  `${accountId} ${workerId} ${callId ?? ''}`

/** By the keys of the questions; of a worker that the account has not got there is nothing. */
export async function findToolFacts(
  sql: Sql,
  questions: readonly ToolQuestion[],
): Promise<ReadonlyMap<string, ToolFacts>> {
  const [accounts, workers] = [questions.map(({ accountId }) => accountId), questions.map(({ workerId }) => workerId)]
  const asked = { accountId: sql`asked.account`, workerId: sql`asked.worker` }
  const rows = await sql<(Row & { readonly place: number })[]>`
    select asked.place::int as place, workers.id as asked_worker, workers.language as worker_language, workers.config as worker_config,
      accounts.config as account_config, ${callAtHandColumns(sql)},
      exists (select from persons where persons.account_id = calls.account_id and persons.id = calls.person_id) as is_linked,
      exists (${knownDocumentsOf(sql, asked)}) as has_documents, ${carriesCalls(sql, asked)} as can_pass_on
    from unnest(${accounts}::text[], ${workers}::text[], ${questions.map(({ callId }) => callId ?? '')}::text[]) with ordinality
      as asked(account, worker, call, place)
    join workers on workers.account_id = asked.account and workers.id = asked.worker and workers.deleted_at is null
    join accounts on accounts.id = asked.account
    left join calls on calls.id = asked.call and calls.account_id = asked.account and calls.worker_id = asked.worker`
  return new Map(
    rows.map(({ place, ...row }) => [keyOfToolQuestion(questions[place - 1] as ToolQuestion), factsOf(row)]),
  )
}

function factsOf(row: Row): ToolFacts {
  const { askedWorker, workerLanguage, workerConfig, accountConfig, isLinked, hasDocuments, canPassOn, ...call } = row
  const worker = { id: askedWorker, language: workerLanguage, config: workerConfig }
  return { worker, accountConfig, call: call.id === null ? null : call, isLinked, hasDocuments, canPassOn }
}
