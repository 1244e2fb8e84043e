/**
 * Owns how a call that is over is processed once more, for a worker that is configured otherwise since, or after a run that failed. Its end was
 * announced, and is not again. docs/contract/rest.md "Process again".
 */
import type { Clock } from '../../model/clock.ts'
import type { AccountId, CallId, NewId } from '../../model/ids.ts'
import { callStatusOf } from '../../model/call.ts'
import { toPhoneCall, type ProcessAgain } from '../../model/phone-call.ts'
import { notFound, Problem } from '../../model/problem.ts'
import type { CallRow } from '../../store/call-rows.ts'
import { findCall } from '../../store/calls.ts'
import { askAgain } from '../../store/process-again.ts'
import type { Sql } from '../../store/sql.ts'
import { listTurns } from '../../store/transcripts.ts'

type Deps = {
  readonly sql: Sql
  readonly clock: Pick<Clock, 'now'>
  readonly newId: NewId
  readonly wakeJobs: () => void
}

export function createProcessAgain({ sql, clock, newId, wakeJobs }: Deps): ProcessAgain {
  const read = async (accountId: AccountId, callId: CallId): Promise<CallRow> => {
    const call = await findCall(sql, accountId, callId)
    if (!call) throw notFound()
    return call
  }
  return async (accountId, callId) => {
    const call = await read(accountId, callId)
    const refusal = refusalOf(call)
    if (refusal !== null) throw new Problem('CONFLICT', refusal)
    // What was found in a transcript that is gone since is better than nothing.
    if (call.postProcessingStatus === 'completed' && (await listTurns(sql, accountId, callId)).length === 0)
      throw new Problem('CONFLICT', 'The call has no transcript.')
    const job = { id: newId(), accountId, callId, kind: 'post_process', runAt: clock.now() } as const
    if (!(await askAgain(sql, accountId, job))) throw new Problem('CONFLICT', isWorkedOn)
    wakeJobs()
    return toPhoneCall(await read(accountId, callId))
  }
}

const isWorkedOn = 'The call is being processed; ask again when it has been.'

function refusalOf({ progress, startedAt, postProcessingStatus }: CallRow): string | null {
  if (callStatusOf(progress) !== 'completed') return 'The call is not over.'
  if (startedAt === null) return 'The call was never answered: there is nothing to process.'
  return postProcessingStatus === 'in_progress' || postProcessingStatus === 'none' ? isWorkedOn : null
}
