/** Owns the deletion of a call by its account: rows first, in one transaction, then the recording that they named. docs/contract/rest.md "Deletion" */
import type { Clock } from '../../model/clock.ts'
import type { Log } from '../../model/log.ts'
import type { DeleteCall } from '../../model/phone-call.ts'
import type { RecordingStore } from '../../model/recording-store.ts'
import { deleteCall } from '../../store/delete-calls.ts'
import type { SecretBox } from '../../store/secret-box.ts'
import type { Sql } from '../../store/sql.ts'
import { blankedAnswer } from './blanked.ts'
import { createRecordingRemoval } from './recording-removal.ts'

export function createDeleteCall(deps: {
  readonly sql: Sql
  readonly box: SecretBox
  readonly recordings: RecordingStore
  readonly clock: Clock
  readonly log: Log
}): DeleteCall {
  const { sql, box, clock, log } = deps
  const removeRecordings = createRecordingRemoval(deps)
  return async (accountId, callId) => {
    const answers = { box, rewrite: blankedAnswer }
    if (!(await deleteCall(sql, { accountId, callId, answers, now: clock.now() }))) return false
    // The call is gone. What is left of its recording is ordered to go, whatever becomes of this try.
    await removeRecordings().catch((error: unknown) => log.warn('a recording is removed later', { callId, error }))
    return true
  }
}
