/** Owns how post-processing of a call that is over is asked for again, and how its results replace those of before. Nothing is announced. */
import type { CallWarning } from '../model/call.ts'
import type { AccountId, CallId } from '../model/ids.ts'
import { renewJob, type NewJob } from './jobs.ts'
import { endTurnsWithRecording, storeExtraction, storeProcessingStatus, type Extraction } from './call-effects.ts'
import type { Sql } from './sql.ts'

/** False: the call is not there, not over, was never answered, or is being processed. */
export function askAgain(sql: Sql, accountId: AccountId, job: NewJob): Promise<boolean> {
  return sql.begin(async (tx) => {
    const asked = await tx`
      update calls set post_processing_status = 'in_progress'
      where account_id = ${accountId} and id = ${job.callId} and finished and started_at is not null
        and post_processing_status in ('completed', 'failed')`
    if (asked.count === 0) return false
    await renewJob(tx, job)
    return true
  })
}

type Again = {
  /** Null: it failed, and what was found before stays. */
  readonly found: Omit<Extraction, 'warnings'> | null
  readonly warnings: readonly CallWarning[]
  readonly recordingKey: string | null
  readonly recordedMs: number | null
}

/** A recording that the first run could not find is taken; one that it found stays as it is. */
export async function replaceAnalysis(sql: Sql, callId: CallId, again: Again): Promise<void> {
  const { found, warnings, recordingKey, recordedMs } = again
  await sql.begin(async (tx) => {
    const [call] = await tx`
      select from calls where id = ${callId} and post_processing_status = 'in_progress' for update`
    if (!call) return
    await storeExtraction(tx, callId, { ...found, warnings })
    if (recordingKey !== null) {
      await tx`
        update calls set recording_key = ${recordingKey}, recorded_ms = ${recordedMs}
        where id = ${callId} and recording_key is null`
      await endTurnsWithRecording(tx, callId)
    }
    await storeProcessingStatus(tx, callId, found === null ? 'failed' : 'completed')
  })
}
