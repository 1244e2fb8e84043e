/**
 * Owns what happens to an answered call after its end: is there a recording, what did the talk establish, what is to be done next. The first time it
 * is a fact of the call, whose end is announced after it; asked for again (process-again.ts), its results are replaced and nothing is announced.
 */
import type { CallWarning } from '../../model/call.ts'
import { ExtractionError } from '../../model/extraction.ts'
import type { Log } from '../../model/log.ts'
import { inSpokenOrder } from '../../model/spoken-order.ts'
import type { RecordingLack, RecordingStore } from '../../model/recording-store.ts'
import type { CallFactsRow } from '../../store/call-rows.ts'
import { findCallFacts, findCallsOver, findUnfinished, type CallOver as StoredCall } from '../../store/call-steps.ts'
import { keepCallWords } from '../../store/call-words.ts'
import { findCallScript, findPinnedScript } from '../../store/documents.ts'
import type { Job } from '../../store/jobs.ts'
import { placeNotes } from '../../store/noted-values.ts'
import { createOneQuery, type Lookup } from '../../store/one-query.ts'
import { addExtractionUsage } from '../../store/call-usage.ts'
import { replaceAnalysis } from '../../store/process-again.ts'
import type { Sql } from '../../store/sql.ts'
import { listFoundTurns } from '../../store/transcripts.ts'
import type { CallId } from '../../model/ids.ts'
import { extractionEngine, type EngineUsage } from '../../model/usage.ts'
import type { CallFact } from '../call/call-event.ts'
import { configOf } from '../call/engine-choice.ts'
import { recordingKeyOf } from '../call/record-effects.ts'
import { stateOf, type CallState } from '../call/machine/step.ts'
import { retryDelays, type Work } from '../rounds/scheduler.ts'
import type { CallRouter } from '../node/call-router.ts'
import { analyse, analyseWithout, type Analysis, type Extractors, type TalkOver } from './analysis.ts'
import { playableMsOf } from './playable.ts'

/** Tried once and three times more; then the call's end is announced with what there is. */
const maxAttempts = retryDelays.length + 1

type Deps = {
  readonly sql: Sql
  readonly router: CallRouter
  readonly recordings: RecordingStore
  readonly extractors: Extractors
  readonly log: Log
}

type CallOver = { readonly call: StoredCall; readonly state: CallState }

/** Of calls that ended at about the same time, together. */
type Reads = {
  /** Null for a call that was deleted meanwhile. */
  readonly over: Lookup<CallId, CallOver>
  readonly unfinished: Lookup<CallId, true>
}

export function createPostProcessing(deps: Deps): Work {
  const { sql, router } = deps
  const reads = createReads(sql)
  return async (job) => {
    const over = await reads.over(job.callId)
    if (over === null || isDone(over)) return
    const processed = await attempt(deps, job, over)
    if (over.state.finished) return replace(sql, job, processed)
    const taken = await router.route(job.callId, factOf(processed), over.call.owner === null)
    // Taken may mean kept on the disk of a node: another one that takes the call before it is written knows nothing of it.
    const why = taken ? 'the database does not know yet that the call has the fact' : 'nobody answers for the call'
    if (await reads.unfinished(job.callId)) throw new Error(why)
  }
}

function createReads(sql: Sql): Reads {
  const keyOf = (callId: CallId): string => callId
  const findCall = createOneQuery({ keyOf, query: (callIds: readonly CallId[]) => findCallsOver(sql, callIds) })
  return {
    async over(callId) {
      const call = await findCall(callId)
      return call === null || call.snapshot === null ? null : { call, state: stateOf(call.snapshot) }
    },
    unfinished: createOneQuery<CallId, true>({ keyOf, query: (callIds) => findUnfinished(sql, callIds) }),
  }
}

const noneFound: ReadonlySet<number> = new Set()

/** An earlier run finished the work and died before its job was deleted. */
const isDone = ({ call, state }: CallOver): boolean => state.finished && call.postProcessingStatus !== 'in_progress'

/** `failure`: why there is no more of it; null when all was done. Without `analysis` not even the talk could be read. */
type Processed = {
  readonly failure: string | null
  readonly recordedMs: number | null
  /** Of what its recording lacks. */
  readonly warning: CallWarning | null
  readonly analysis: Analysis | null
}

/** Throws to be tried again, and at the last attempt no more. */
async function attempt(deps: Deps, job: Job, over: CallOver): Promise<Processed> {
  const isLast = job.attempts >= maxAttempts
  try {
    const recorded = await recordedOf(deps, over).catch((error: unknown) => {
      if (!isLast) throw error
      // Where recordings are kept cannot be asked: the leg has told how much there is.
      return { recordedMs: over.state.context.recordedMs, warning: null }
    })
    const talk = await readTalk(deps.sql, over)
    await keepWords(deps, talk)
    const analysis = await analyseCounted(deps, talk).catch((error: unknown) => {
      if (!isLast || !(error instanceof ExtractionError)) throw error
      return analyseWithout(talk, deps.extractors, error.message)
    })
    const failed = analysis.warnings.find(({ type }) => type === 'EXTRACTION_FAILED')
    return { failure: failed?.message ?? null, ...recorded, analysis }
  } catch (error) {
    if (!isLast) throw error
    return {
      failure: error instanceof Error ? error.message : String(error),
      recordedMs: null,
      warning: null,
      analysis: null,
    }
  }
}

/** The call is over all the same where they cannot be kept. */
async function keepWords({ sql, log }: Deps, { callId, turns }: TalkOver): Promise<void> {
  const texts = turns.map(({ text }) => text)
  await keepCallWords(sql, callId, texts).catch((error: unknown) =>
    log.warn('a call will not be found by its words', { callId, error }),
  )
}

/** What the model counted belongs to the call whatever becomes of its answer: a run that is tried again has been paid for as well. */
async function analyseCounted({ sql, extractors, log }: Deps, talk: TalkOver): Promise<Analysis> {
  const used: EngineUsage[] = []
  const counted = (model: string, units: EngineUsage['units']): void =>
    void used.push({ engine: extractionEngine, model, units })
  try {
    return await analyse(talk, extractors, counted)
  } finally {
    // What was found is worth more than what it cost.
    await addExtractionUsage(sql, talk.callId, used).catch((error: unknown) =>
      log.warn('what an extraction used could not be counted', { callId: talk.callId, error }),
    )
  }
}

function factOf({ failure, recordedMs, warning, analysis }: Processed): CallFact {
  if (analysis === null) return { type: 'post_processing_failed', details: failure ?? '' }
  const found = { recordedMs, ...analysis, warnings: [...analysis.warnings, ...(warning ? [warning] : [])] }
  if (failure !== null) return { type: 'post_processing_failed', details: failure, analysis: found }
  return { type: 'post_processed', ...found }
}

/** A run that failed replaces nothing: what an earlier one found stays. */
async function replace(sql: Sql, { callId }: Job, { failure, recordedMs, analysis }: Processed): Promise<void> {
  const key = (call: CallFactsRow): string | null => (recordedMs === null ? null : recordingKeyOf(call))
  const call = await findCallFacts(sql, callId)
  if (call === null) return
  const warnings = analysis?.warnings.filter(({ type }) => failure === null || type === 'EXTRACTION_FAILED') ?? []
  const found = failure === null ? analysis : null
  await replaceAnalysis(sql, callId, { found, warnings, recordedMs, recordingKey: key(call) })
}

/** `recordedMs` null: of a recording that cannot be played. Where its end is somewhere else, the leg has told how far it goes. */
async function recordedOf(
  { recordings }: Deps,
  { call, state }: CallOver,
): Promise<Pick<Processed, 'recordedMs' | 'warning'>> {
  const recording = await recordings.read(recordingKeyOf(call))
  if (!recording) return { recordedMs: null, warning: null }
  const { lacks = [] } = recording
  const isEndElsewhere = lacks.some(({ to }) => to === null)
  const recordedMs = isEndElsewhere ? state.context.recordedMs : await playableMsOf(recording)
  return { recordedMs, warning: call.warnings.some(({ type }) => type === incomplete) ? null : warningOf(lacks) }
}

const incomplete = 'RECORDING_INCOMPLETE'

/** What will be read as soon as it is shipped is not missing. */
function warningOf(lacks: readonly RecordingLack[]): CallWarning | null {
  const lost = lacks.filter(({ isComing }) => !isComing)
  if (lost.length === 0) return null
  const spans = lost.map(({ from, to }) => `${clockOf(from)} to ${to === null ? 'its end' : clockOf(to)}`).join(', ')
  return {
    type: incomplete,
    message: `The call went on by another process, and what the one before had recorded cannot be read: ${spans} is silent in the recording.`,
  }
}

const clockOf = (ms: number): string =>
  `${Math.floor(ms / 60_000)}:${String(Math.floor((ms % 60_000) / 1000)).padStart(2, '0')}`

async function readTalk(sql: Sql, { call, state }: CallOver): Promise<TalkOver> {
  const { id: callId, accountId, workerId, direction, context, language, request, hookAnswer, turns } = call
  const { notes, nextAction, answeredAt, found } = state.context
  const { dimensions = [], nextActions = [] } = configOf(call)
  // Says what the words of a talk mean.
  const pinned = async () => (call.scriptIds.length === 0 ? null : findPinnedScript(sql, accountId, call.scriptIds))
  const script = async () => (await pinned()) ?? findCallScript(sql, accountId, workerId, direction)
  return {
    callId,
    language: hookAnswer.locale ?? request.locale ?? language,
    answeredAt: answeredAt ?? call.startedAt ?? 0,
    context,
    turns: inSpokenOrder(turns, found ? await listFoundTurns(sql, callId) : noneFound).map(
      ({ turnIndex, role, text }) => ({ turn: turnIndex, role, text }),
    ),
    dimensions,
    nextActions,
    script: turns.length === 0 ? null : await script(),
    notes: Object.keys(notes).length === 0 ? new Map() : await placeNotes(sql, callId, notes),
    chosen: nextAction,
  }
}
