/**
 * Owns what happens to an answered call after its end: is there a recording, which of the worker's dimensions did the talk establish, what is
 * to be done next. The engine noted the values while it talked; here they are held against the worker's configuration.
 */
import type { Json, JsonObject } from '../../model/json.ts'
import type { RecordingReader, RecordingStore } from '../../model/recording-store.ts'
import type { Dimension, EffectiveConfig } from '../../model/worker.ts'
import { findCallFacts, findSnapshot } from '../../store/call-steps.ts'
import type { Sql } from '../../store/sql.ts'
import type { CallFact, NextActionTaken } from '../call/call-event.ts'
import { configOf } from '../call/engine-choice.ts'
import { recordingKeyOf } from '../call/record-effects.ts'
import { stateOf } from '../call/machine/step.ts'
import { wavHeaderBytes, wavLengthOf } from '../../media/recording/wav.ts'
import { retryDelays, type Work } from '../rounds/scheduler.ts'
import type { CallRouter } from '../node/call-router.ts'

/** Tried once and three times more; then the call's end is announced without it. */
const maxAttempts = retryDelays.length + 1

export function createPostProcessing(deps: {
  readonly sql: Sql
  readonly router: CallRouter
  readonly recordings: RecordingStore
}): Work {
  return async (job) => {
    // An earlier run finished the work and died before its job was deleted.
    if (await isOver(deps.sql, job)) return
    const fact = await analyse(deps, job).catch((error: unknown): CallFact => {
      if (job.attempts < maxAttempts) throw error
      return { type: 'post_processing_failed', details: error instanceof Error ? error.message : String(error) }
    })
    const taken = await deps.router.route(job.callId, fact)
    if (!taken && !(await isOver(deps.sql, job))) throw new Error('nobody answers for the call')
  }
}

async function isOver(sql: Sql, { callId }: Parameters<Work>[0]): Promise<boolean> {
  const snapshot = await findSnapshot(sql, callId)
  return snapshot === null || stateOf(snapshot).finished
}

async function analyse(
  { sql, recordings }: { sql: Sql; recordings: RecordingStore },
  job: Parameters<Work>[0],
): Promise<CallFact> {
  const call = await findCallFacts(sql, job.callId)
  const snapshot = await findSnapshot(sql, job.callId)
  if (!call || snapshot === null) throw new Error('a call to process has no row')
  const { notes, nextAction, recordedMs } = stateOf(snapshot).context
  const config = configOf(call)
  const recording = await recordings.read(recordingKeyOf(call))
  return {
    type: 'post_processed',
    recordedMs: recording && (recordedMs ?? (await lengthOf(recording))),
    dimensions: dimensionsOf(config.dimensions ?? [], notes),
    nextAction: nextActionOf(config, nextAction),
  }
}

/** Read from the file itself, for a leg whose process was killed before it told. Null when there is no sound in it. */
async function lengthOf(recording: RecordingReader): Promise<number | null> {
  const head = await new Response(recording.stream(0, wavHeaderBytes - 1)).arrayBuffer()
  return wavLengthOf(new Uint8Array(head), recording.size)
}

/** Values that fit the type of their dimension; a noted value that does not fit is left out. */
export function dimensionsOf(dimensions: readonly Dimension[], notes: JsonObject): JsonObject {
  const fitting = dimensions.flatMap((dimension) => {
    const value = valueOf(dimension, notes[dimension.key] ?? null)
    return value === null ? [] : [[dimension.key, value] as const]
  })
  return Object.fromEntries(fitting)
}

function valueOf(dimension: Dimension, noted: Json): Json {
  const text = typeof noted === 'string' ? noted.trim() : null
  switch (dimension.type) {
    case 'string':
      return text ?? (noted === null || typeof noted === 'object' ? null : String(noted))
    case 'number':
      return Number.isFinite(Number(noted)) && noted !== null && text !== '' ? Number(noted) : null
    case 'boolean':
      if (typeof noted === 'boolean') return noted
      return text === null || !/^(yes|no|true|false)$/i.test(text) ? null : /^(yes|true)$/i.test(text)
    case 'enum':
      return dimension.options?.find((option) => option.toLowerCase() === text?.toLowerCase()) ?? null
    case 'date':
      return text !== null && !Number.isNaN(Date.parse(text)) ? text : null
  }
}

/** Null: the worker has no next actions. A talk that chose none leaves it `undetermined`. */
export function nextActionOf(config: EffectiveConfig, chosen: string | null): NextActionTaken | null {
  if (!config.nextActions?.length) return null
  const action = config.nextActions.find(({ key }) => key === chosen)
  return action ? { key: action.key, name: action.name } : { key: 'undetermined', name: 'Undetermined' }
}
