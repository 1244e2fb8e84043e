/** Owns how a call's row is read for answers. Who writes it is the call's actor: call-steps.ts, call-effects.ts. */
import { callStatusOf, ProgressStatus } from '../model/call.ts'
import { toId, type AccountId, type CallId } from '../model/ids.ts'
import { cursorOf } from '../model/paging.ts'
import type { PhoneCallFacts, PhoneCallQuery } from '../model/phone-call.ts'
import type { Sql, Transaction } from './sql.ts'

export type CallRow = PhoneCallFacts & {
  /** Null until the recording is complete, and for ever when there is none. */
  readonly recordingKey: string | null
  readonly recordedMs: number | null
}

const columns = (sql: Sql | Transaction) => sql`
  id, account_id, worker_id, direction, transport, progress, outcome, failed_reason, provider_status, post_processing_status,
  from_number, to_number, person_id, customer, next_action, dimensions, scheduled_at, started_at, ended_at, recording_key,
  recorded_ms`

export async function findCall(sql: Sql | Transaction, accountId: AccountId, callId: CallId): Promise<CallRow | null> {
  const [row] = await sql<CallRow[]>`
    select ${columns(sql)} from calls where account_id = ${accountId} and id = ${callId}`
  return row ?? null
}

/** Newest first; one more than the limit when there is more. */
export async function listCalls(sql: Sql, accountId: AccountId, query: PhoneCallQuery): Promise<CallRow[]> {
  const { status, direction = null, from, to, limit } = query
  const workerId = query.workerId === undefined ? null : toId<'worker'>(query.workerId)
  if (query.workerId !== undefined && workerId === null) return []
  const { progress, outcome } = endingOf(status)
  const [since, until, cursor] = [timeOf(from), timeOf(to), cursorOf<'call'>(query)]
  return sql<CallRow[]>`
    select ${columns(sql)} from calls
    where account_id = ${accountId}
      and (${cursor}::text is null or id < ${cursor})
      and (${progress}::text[] is null or progress = any(${progress}))
      and (${outcome}::text is null or outcome = ${outcome})
      and (${direction}::text is null or direction = ${direction})
      and (${workerId}::text is null or worker_id = ${workerId})
      and (${since}::timestamptz is null or created_at >= ${since})
      and (${until}::timestamptz is null or created_at < ${until})
    order by id desc limit ${limit + 1}`
}

/** A status of the resource stands for all that reads like it; any other is how the call ended. */
function endingOf(status: PhoneCallQuery['status']): { progress: ProgressStatus[] | null; outcome: string | null } {
  if (status === undefined) return { progress: null, outcome: null }
  const progress = ProgressStatus.options.filter((option) => callStatusOf(option) === status)
  return progress.length > 0 ? { progress, outcome: null } : { progress: null, outcome: status }
}

const timeOf = (iso: string | undefined): number | null => (iso === undefined ? null : Date.parse(iso))
