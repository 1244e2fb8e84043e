/**
 * Owns the durable half of a step: every effect that must not be lost becomes rows, in the step's own transaction, together with the
 * webhook deliveries it causes. Nothing here leaves the database.
 */
import { toIso } from '../../model/clock.ts'
import type { CallEvent, EndedData } from '../../model/events.ts'
import type { CallId, NewId } from '../../model/ids.ts'
import type { Json } from '../../model/json.ts'
import { withoutNulls } from '../../model/without-nulls.ts'
import { durationOf, toTranscriptSegment } from '../../model/phone-call.ts'
import {
  insertTurn,
  storeAnalysis,
  storeDisclosure,
  storeHookAnswer,
  storeOutcome,
  storeProcessingStatus,
  storeRecordingState,
  storeStatus,
  storeWarning,
} from '../../store/call-effects.ts'
import type { CallFactsRow } from '../../store/call-rows.ts'
import { findCallFacts } from '../../store/call-steps.ts'
import { enqueueDeliveries } from '../../store/deliveries.ts'
import { insertJob } from '../../store/jobs.ts'
import type { Transaction } from '../../store/sql.ts'
import { listTurns, type TurnRow } from '../../store/transcripts.ts'
import type { Effect } from './call-event.ts'
import { configOf } from './engine-choice.ts'

type Deps = { readonly tx: Transaction; readonly callId: CallId; readonly now: number; readonly newId: NewId }

export async function recordEffects(deps: Deps, effects: readonly Effect[]): Promise<void> {
  for (const effect of effects) await recordEffect(deps, effect)
}

export const recordingKeyOf = (call: { readonly accountId: string; readonly id: string }): string =>
  `${call.accountId}/${call.id}.wav`

async function recordEffect(deps: Deps, effect: Effect): Promise<void> {
  const { tx, callId } = deps
  switch (effect.type) {
    case 'announce_status':
      await storeStatus(tx, callId, { ...effect, now: deps.now })
      return announce(deps, (call) => statusUpdateOf(call, effect, deps.now))
    case 'store_worker_request': {
      const { config, locale, instructions } = effect
      const answer = withoutNulls({ config, locale, instructions })
      return storeHookAnswer(tx, callId, answer, effect.tools, effect.metadata)
    }
    case 'store_turn':
      await insertTurn(tx, await callOf(deps), effect.index, effect.turn)
      return announce(deps, (call) => transcriptOf(call, effect, deps.now))
    case 'show_turn':
      return showTurn(deps, effect)
    case 'store_warning':
      return storeWarning(tx, callId, effect.warning)
    case 'store_recording_state':
      return storeRecordingState(tx, callId, effect.state)
    case 'store_disclosure':
      return storeDisclosure(tx, callId, { playedMs: effect.playedMs, completed: effect.completed })
    case 'store_outcome':
      return storeOutcome(tx, callId, effect)
    case 'schedule_post_processing':
      return schedulePostProcessing(deps)
    case 'store_analysis': {
      const recordingKey = effect.recordedMs === null ? null : recordingKeyOf(await callOf(deps))
      await storeAnalysis(tx, callId, { ...effect, recordingKey })
      return storeProcessingStatus(tx, callId, 'completed')
    }
    case 'fail_post_processing':
      return storeProcessingStatus(tx, callId, 'failed')
    case 'announce_ended': {
      const { accountId, startedAt } = await callOf(deps)
      const turns = startedAt === null ? [] : await listTurns(tx, accountId, callId)
      return announce(deps, (call) => endedOf(call, turns))
    }
    case 'ask_worker_request':
    case 'dial':
    case 'answer':
    case 'redirect':
    case 'look_for_leg':
    case 'start_conversation':
    case 'run_tool':
    case 'cancel_tool':
    case 'record':
    case 'disclose':
    case 'leave_message':
    case 'wind_up':
      return
  }
}

async function schedulePostProcessing(deps: Deps): Promise<void> {
  const { tx, callId, newId, now: runAt } = deps
  const { accountId } = await callOf(deps)
  await storeProcessingStatus(tx, callId, 'in_progress')
  await insertJob(tx, { id: newId(), accountId, callId, kind: 'post_process', runAt })
}

async function callOf({ tx, callId }: Deps): Promise<CallFactsRow> {
  const call = await findCallFacts(tx, callId)
  if (!call) throw new Error('the call of a step has no row')
  return call
}

/** The event tells the row as this transaction has it by now. */
async function announce(deps: Deps, eventOf: (call: CallFactsRow) => CallEvent): Promise<void> {
  const { tx, callId, now, newId } = deps
  const call = await callOf(deps)
  const { accountId, workerId } = call
  await enqueueDeliveries(tx, { accountId, workerId, callId, events: [eventOf(call)], now, newId })
}

export function statusUpdateOf(
  call: Pick<CallFactsRow, 'id' | 'metadata'>,
  effect: Extract<Effect, { type: 'announce_status' }>,
  now: number,
): CallEvent {
  const { status, providerStatus } = effect
  return {
    type: 'call.status_update',
    data: { callId: call.id, status, providerStatus, ts: toIso(now), ...metadataOf(call) },
  }
}

/** Only where the worker's configuration asks for turns that may still change. */
async function showTurn(deps: Deps, effect: Extract<Effect, { type: 'show_turn' }>): Promise<void> {
  if (configOf(await callOf(deps)).transcriptEvents !== 'interim') return
  await announce(deps, (call) => transcriptOf(call, effect, deps.now))
}

type TurnEffect = Extract<Effect, { type: 'store_turn' | 'show_turn' }>

function transcriptOf(call: CallFactsRow, effect: TurnEffect, now: number): CallEvent {
  const { role, text, confidence, source } = effect.turn
  const data = {
    callId: call.id,
    turnIndex: effect.index,
    role,
    text,
    isFinal: effect.type === 'store_turn',
    confidence,
    source,
    ts: toIso(now),
  }
  return { type: 'call.transcript', data: { ...data, ...metadataOf(call) } }
}

/** What a call that never connected has not got is left out. docs/contract/webhooks.md "call.ended". */
function endedOf(call: CallFactsRow, turns: readonly TurnRow[]): CallEvent {
  const { status, failedReason } = { status: call.outcome ?? 'completed', failedReason: call.failedReason }
  const answered = call.startedAt !== null
  const data: EndedData = {
    callId: call.id,
    status,
    ...(status === 'failed' && failedReason && { failedReason }),
    accountId: call.accountId,
    workerId: call.workerId,
    direction: call.direction,
    fromNumber: call.fromNumber,
    toNumber: call.toNumber,
    duration: durationOf(call),
    scheduledAt: isoOrNull(call.scheduledAt),
    startedAt: isoOrNull(call.startedAt),
    endedAt: isoOrNull(call.endedAt),
    endedBy: call.endedBy,
    endCause: call.endCause,
    ...(answered && { transcript: turns.map(toTranscriptSegment) as Json }),
    recordingAvailable: call.recordedMs !== null,
    ...(call.nextAction && call.nextAction.key !== 'undetermined' && { nextAction: call.nextAction }),
    personId: call.personId,
    ...metadataOf(call),
  }
  return { type: 'call.ended', data }
}

const metadataOf = (call: Pick<CallFactsRow, 'metadata'>) => (call.metadata === null ? {} : { metadata: call.metadata })
const isoOrNull = (ms: number | null): string | null => (ms === null ? null : toIso(ms))
