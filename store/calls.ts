/** Owns how a call's row is read for answers. Who writes it is the call's actor: call-steps.ts, call-effects.ts. */
import type { AccountId, CallId } from '../model/ids.ts'
import type { PhoneCallFacts } from '../model/phone-call.ts'
import type { Sql, Transaction } from './sql.ts'

export type CallRow = PhoneCallFacts & {
  /** Null until the recording is complete, and for ever when there is none. */
  readonly recordingKey: string | null
  readonly recordedMs: number | null
}

export async function findCall(sql: Sql | Transaction, accountId: AccountId, callId: CallId): Promise<CallRow | null> {
  const [row] = await sql<CallRow[]>`
    select id, account_id, worker_id, direction, transport, progress, outcome, failed_reason, provider_status,
      post_processing_status, from_number, to_number, person_id, customer, next_action, dimensions, scheduled_at, started_at,
      ended_at, recording_key, recorded_ms
    from calls where account_id = ${accountId} and id = ${callId}`
  return row ?? null
}
