/** Owns how a call's row is read for answers. Who writes it is the call's actor: call-steps.ts, call-effects.ts. */
import { callStatusOf, ProgressStatus } from '../model/call.ts'
import { toId, type AccountId, type CallId } from '../model/ids.ts'
import { msOf } from '../model/instant.ts'
import { cursorOf } from '../model/paging.ts'
import type { PhoneCallQuery } from '../model/phone-call.ts'
import { answerColumns, type CallRow, type DatedCall } from './call-rows.ts'
import type { Sql, Transaction } from './sql.ts'

export async function findCall(sql: Sql | Transaction, accountId: AccountId, callId: CallId): Promise<CallRow | null> {
  const [row] = await sql<CallRow[]>`
    select ${answerColumns(sql)} from calls where account_id = ${accountId} and id = ${callId}`
  return row ?? null
}

/**
 * Newest first; one more than the limit when there is more. Only the filters that are asked for stand in the query, so that each finds its
 * index. The cursor is a call of the account; any other one is followed by nothing.
 */
export async function listCalls(sql: Sql, accountId: AccountId, query: PhoneCallQuery): Promise<DatedCall[]> {
  const { status, direction, from, to, limit } = query
  const workerId = query.workerId === undefined ? null : toId<'worker'>(query.workerId)
  if (query.workerId !== undefined && workerId === null) return []
  const { progress, outcome } = endingOf(status)
  const cursor = cursorOf<'call'>(query)
  const none = sql``
  const after =
    cursor &&
    sql`and (created_at, id) < ((select created_at from calls where account_id = ${accountId} and id = ${cursor}), ${cursor})`
  const page = (ending: typeof none) => sql<DatedCall[]>`
    select ${answerColumns(sql)}, created_at from calls
    where account_id = ${accountId} ${after ?? none} ${ending}
      ${direction === undefined ? none : sql`and direction = ${direction}`}
      ${workerId === null ? none : sql`and worker_id = ${workerId}`}
      ${from === undefined ? none : sql`and created_at >= ${msOf(from)}`}
      ${to === undefined ? none : sql`and created_at < ${msOf(to)}`}
    order by created_at desc, id desc limit ${limit + 1}`
  if (outcome !== null) return page(sql`and progress = ${outcome} and outcome = ${outcome}`)
  if (progress === null) return page(none)
  // A page of each, and of those one: all at once, the planner would rather read every call of the account.
  return sql<DatedCall[]>`
    select ${answerColumns(sql)}, created_at from unnest(${progress}::text[]) as wanted (state)
    cross join lateral (${page(sql`and progress = wanted.state`)}) calls
    order by created_at desc, id desc limit ${limit + 1}`
}

/** A status of the resource stands for all that reads like it; any other is how the call ended. */
function endingOf(status: PhoneCallQuery['status']): { progress: ProgressStatus[] | null; outcome: string | null } {
  if (status === undefined) return { progress: null, outcome: null }
  const progress = ProgressStatus.options.filter((option) => callStatusOf(option) === status)
  return progress.length > 0 ? { progress, outcome: null } : { progress: null, outcome: status }
}
