/** Owns what a step writes besides its log: status, turns, outcome and analysis of a call. Called inside the step's transaction. */
import type { LegQuality } from '../model/call-quality.ts'
import type { EvidenceByKey } from '../model/extraction.ts'
import type { CallWarning, ProgressStatus, RecordingState, Turn } from '../model/call.ts'
import type { Disclosure } from '../model/disclosure.ts'
import type { AccountId, CallId } from '../model/ids.ts'
import type { JsonObject } from '../model/json.ts'
import { failedReasonOf, type EndedBy, type Outcome } from '../model/outcome.ts'
import type { CallOverrides } from './call-rows.ts'
import type { Transaction } from './sql.ts'

/** A call is in progress from the moment it is answered. */
export async function storeStatus(
  tx: Transaction,
  callId: CallId,
  change: { status: ProgressStatus; providerStatus: string | null; now: number },
): Promise<void> {
  const answeredAt = change.status === 'in_progress' ? change.now : null
  await tx`
    update calls set progress = ${change.status}, provider_status = ${change.providerStatus},
      started_at = coalesce(started_at, ${answeredAt}::timestamptz)
    where id = ${callId}`
}

/** What the receiver did not name stays as it was. `tools` carry sealed secrets. */
export async function storeHookAnswer(
  tx: Transaction,
  callId: CallId,
  answer: CallOverrides,
  tools: readonly JsonObject[] | null,
  metadata: JsonObject | null,
): Promise<void> {
  await tx`
    update calls set hook_answer = ${tx.json(answer as never)},
      external_tools = coalesce(${tools && tx.json(tools as never)}::jsonb, external_tools),
      metadata = coalesce(${metadata && tx.json(metadata as never)}::jsonb, metadata)
    where id = ${callId}`
}

export async function insertTurn(
  tx: Transaction,
  call: { readonly id: CallId; readonly accountId: AccountId },
  index: number,
  turn: Turn,
): Promise<void> {
  await tx`
    insert into transcript_turns (call_id, account_id, turn_index, role, text, from_ms, to_ms, confidence, source,
      latency)
    values (${call.id}, ${call.accountId}, ${index}, ${turn.role}, ${turn.text}, ${turn.from}, ${turn.to},
      ${turn.confidence}, ${turn.source}, 
      ${turn.latency ? tx.json(turn.latency) : null})`
}

export async function storeOutcome(
  tx: Transaction,
  callId: CallId,
  ended: {
    outcome: Outcome
    answeredAt: number | null
    endedAt: number
    endedBy?: EndedBy
    endCause?: string | null
    quality?: LegQuality
  },
): Promise<void> {
  await tx`
    update calls set outcome = ${ended.outcome.status}, failed_reason = ${failedReasonOf(ended.outcome)},
      started_at = ${ended.answeredAt}, ended_at = ${ended.endedAt},
      ended_by = ${ended.endedBy ?? null}, end_cause = ${ended.endCause ?? null},
      quality = ${ended.quality ? tx.json(ended.quality) : null}
    where id = ${callId}`
}

export async function storeWarning(tx: Transaction, callId: CallId, warning: CallWarning): Promise<void> {
  await tx`update calls set warnings = warnings || ${tx.json([warning])}::jsonb where id = ${callId}`
}

export async function storeRecordingState(tx: Transaction, callId: CallId, state: RecordingState): Promise<void> {
  await tx`update calls set recording_state = ${state} where id = ${callId}`
}

export async function storeDisclosure(tx: Transaction, callId: CallId, disclosure: Disclosure): Promise<void> {
  await tx`update calls set disclosure = ${tx.json(disclosure)} where id = ${callId}`
}

export async function storeProcessingStatus(
  tx: Transaction,
  callId: CallId,
  status: 'in_progress' | 'completed' | 'failed',
): Promise<void> {
  await tx`update calls set post_processing_status = ${status} where id = ${callId}`
}

/** What stands in it replaces what was found before; warnings always do, those of an extraction alone. */
export type Extraction = {
  readonly dimensions?: JsonObject
  readonly nextAction?: { readonly key: string; readonly name: string; readonly data?: JsonObject } | null
  readonly evidence?: EvidenceByKey
  readonly summary?: string | null
  readonly warnings?: readonly CallWarning[]
}

export async function storeAnalysis(
  tx: Transaction,
  callId: CallId,
  analysis: Extraction & { readonly recordingKey: string | null; readonly recordedMs: number | null },
): Promise<void> {
  await tx`
    update calls set recording_key = ${analysis.recordingKey}, recorded_ms = ${analysis.recordedMs}
    where id = ${callId}`
  await endTurnsWithRecording(tx, callId)
  await storeExtraction(tx, callId, analysis)
}

/** Nobody was heard behind the end of the recording. One that lacks sound is shorter than the talk, and shows nothing about it. */
export async function endTurnsWithRecording(tx: Transaction, callId: CallId): Promise<void> {
  await tx`
    update transcript_turns set from_ms = least(from_ms, recorded_ms), to_ms = recorded_ms from calls
    where calls.id = ${callId} and call_id = calls.id and to_ms > recorded_ms
      and not warnings @> '[{"type": "RECORDING_INCOMPLETE"}]'`
}

const extractionWarnings: readonly CallWarning['type'][] = [
  'EXTRACTION_FAILED',
  'EXTRACTION_INCOMPLETE',
  'NEXT_ACTION_INCOMPLETE',
]

export async function storeExtraction(tx: Transaction, callId: CallId, extraction: Extraction): Promise<void> {
  const { dimensions, nextAction = null, evidence = {}, summary = null, warnings = [] } = extraction
  const found =
    dimensions === undefined
      ? tx``
      : tx`dimensions = ${tx.json(dimensions as never)}, evidence = ${tx.json(evidence)}, summary = ${summary},
          next_action = ${nextAction && tx.json(nextAction as never)},`
  await tx`
    update calls set ${found} warnings = coalesce((
      select jsonb_agg(warning order by place) from jsonb_array_elements(warnings) with ordinality as told (warning, place)
      where warning->>'type' <> all(${[...extractionWarnings]}::text[])), '[]') || ${tx.json([...warnings])}::jsonb
    where id = ${callId}`
}
