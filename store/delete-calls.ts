/**
 * Owns what goes with a call that is deleted: its row with its log, turns, sessions, jobs and deliveries, the refusals that name it, what a
 * repeated request would still be told of it, and its recording, which is written down here to be removed. docs/contract/rest.md "Deletion".
 */
import type { AccountId, CallId } from '../model/ids.ts'
import { Problem } from '../model/problem.ts'
import { rewriteAnswers, type RewriteAnswers } from './idempotency.ts'
import { orderRecordingRemovals } from './recording-removals.ts'
import type { Sql, Transaction } from './sql.ts'

/** Nothing of it is still to be done but deliveries. */
export const isOver = (sql: Sql | Transaction) => sql`finished and post_processing_status <> 'in_progress'`

type Deletion = {
  readonly accountId: AccountId
  readonly callId: CallId
  readonly answers: RewriteAnswers
  readonly now: number
}

/** False: the account has no such call. Throws Problem CONFLICT while it is not over. */
export function deleteCall(sql: Sql, { accountId, callId, answers, now }: Deletion): Promise<boolean> {
  return sql.begin(async (tx) => {
    const [call] = await tx<{ isOver: boolean }[]>`
      select ${isOver(tx)} as is_over from calls where account_id = ${accountId} and id = ${callId} for update`
    if (!call) return false
    if (!call.isOver)
      throw new Problem('CONFLICT', 'The call is not over: hang it up, cancel it, or wait until it is processed.')
    await rewriteAnswers(tx, { accountId, callIds: [callId], ...answers })
    await deleteRows(tx, { accountId, callIds: [callId], now })
    return true
  })
}

/** Of calls that are locked and over. */
export async function deleteRows(
  tx: Transaction,
  { accountId, callIds, now }: { accountId: AccountId; callIds: readonly CallId[]; now: number },
): Promise<void> {
  const ids = [...callIds]
  await orderRecordingRemovals(tx, { accountId, callIds, now })
  await tx`delete from call_refusals where account_id = ${accountId} and call_id = any(${ids}::text[])`
  // In the order in which attempts lock them.
  await tx`select from deliveries where call_id = any(${ids}::text[]) order by id for update`
  await tx`delete from calls where account_id = ${accountId} and id = any(${ids}::text[])`
}
