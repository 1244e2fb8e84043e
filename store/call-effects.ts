/** Owns how what was found in a call that is over replaces what was found before. What its steps write: write-steps.ts. */
import type { EvidenceByKey } from '../model/extraction.ts'
import type { CallWarning } from '../model/call.ts'
import type { CallId } from '../model/ids.ts'
import type { JsonObject } from '../model/json.ts'
import type { Transaction } from './sql.ts'

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

/** Nobody was heard behind the end of the recording. One that lacks sound is shorter than the talk, and shows nothing about it. */
export async function endTurnsWithRecording(tx: Transaction, callId: CallId): Promise<void> {
  await tx`
    update transcript_turns set from_ms = least(from_ms, recorded_ms), to_ms = recorded_ms from calls
    where calls.id = ${callId} and call_id = calls.id and to_ms > recorded_ms
      and not warnings @> '[{"type": "RECORDING_INCOMPLETE"}]'`
}

/** Told by an extraction, and by none but the newest. */
export const extractionWarnings: readonly CallWarning['type'][] = [
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
