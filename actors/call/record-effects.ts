/**
 * Owns the durable half of a step: every effect that must not be lost becomes rows, and the webhook events that tell of it. Pure: whoever
 * writes the step reads the facts and writes the rows, in one transaction.
 */
import { toIso } from '../../model/clock.ts'
import type { Turn } from '../../model/call.ts'
import type { CallEvent, EndedData, EventType } from '../../model/events.ts'
import type { Json } from '../../model/json.ts'
import { failedReasonOf } from '../../model/outcome.ts'
import { withoutNulls } from '../../model/without-nulls.ts'
import { durationOf, toTranscriptSegment } from '../../model/phone-call.ts'
import { extractionWarnings } from '../../store/call-effects.ts'
import type { CallRow } from '../../store/call-rows.ts'
import type { CallChange, StepFacts, StepReads, StepRows } from '../../store/step-rows.ts'
import type { TurnRow } from '../../store/transcripts.ts'
import type { Effect } from './call-event.ts'
import { configOf } from './engine-choice.ts'

/** What the rows of these effects are made from. */
export function readsOf(effects: readonly Effect[]): StepReads {
  const types = new Set(effects.map(({ type }) => type))
  const eventTypes = [...types].flatMap((type) => announcedBy[type] ?? [])
  return { eventTypes, turns: types.has('announce_ended'), config: types.has('show_turn') }
}

const announcedBy: Readonly<Partial<Record<Effect['type'], EventType>>> = {
  announce_status: 'call.status_update',
  store_turn: 'call.transcript',
  show_turn: 'call.transcript',
  announce_ended: 'call.ended',
  announce_tool_call: 'call.tool_call',
}

/** `before`: as it was before the step. Each effect finds the call as those in front of it have left it. */
export function recordEffects(before: StepFacts, effects: readonly Effect[], now: number): StepRows {
  let rows: StepRows = { change: {}, turns: [], turnsEndAt: null, events: [], jobs: [] }
  let facts = before
  for (const effect of effects) {
    const added = rowsOf(facts, effect, now)
    facts = factsAfter(facts, added)
    rows = rowsAfter(rows, added)
  }
  return rows
}

function factsAfter({ call, turns, config }: StepFacts, { change, turn, turnsEndAt = null }: Added): StepFacts {
  const said = turn ? [...turns, { ...turn.turn, turnIndex: turn.index }] : turns
  return {
    call: { ...call, ...change },
    turns: said.map((one) => endedAt(one, turnsEndAt)),
    config: config && { ...config, hookAnswer: change?.hookAnswer ?? config.hookAnswer },
  }
}

function rowsAfter(rows: StepRows, { change, turn, turnsEndAt = null, event, job }: Added): StepRows {
  const turns = turn ? [...rows.turns, turn] : rows.turns
  return {
    change: { ...rows.change, ...change },
    turns: turns.map(({ index, turn: said }) => ({ index, turn: endedAt(said, turnsEndAt) })),
    turnsEndAt: turnsEndAt ?? rows.turnsEndAt,
    events: event ? [...rows.events, event] : rows.events,
    jobs: job ? [...rows.jobs, job] : rows.jobs,
  }
}

export const recordingKeyOf = (call: { readonly accountId: string; readonly id: string }): string =>
  `${call.accountId}/${call.id}.wav`

/** What one effect adds. */
type Added = {
  readonly change?: CallChange
  readonly turn?: StepRows['turns'][number]
  readonly turnsEndAt?: number | null
  readonly event?: CallEvent
  readonly job?: StepRows['jobs'][number]
}

function rowsOf(facts: StepFacts, effect: Effect, now: number): Added {
  const { call } = facts
  switch (effect.type) {
    case 'announce_status':
      return { change: statusChange(call, effect, now), event: statusUpdateOf(call, effect, now) }
    case 'store_worker_request':
      return { change: hookAnswerOf(effect) }
    case 'store_turn':
      return { turn: effect, ...(!effect.isLate && { event: transcriptOf(call, effect, now) }) }
    case 'show_turn':
      return showsTurns(facts) ? { event: transcriptOf(call, effect, now) } : {}
    case 'store_warning':
      return { change: { warnings: [...call.warnings, effect.warning] } }
    case 'store_recording_state':
      return { change: { recordingState: effect.state } }
    case 'store_disclosure':
      return { change: { disclosure: { playedMs: effect.playedMs, completed: effect.completed } } }
    case 'store_outcome':
      return { change: outcomeOf(effect) }
    case 'schedule_post_processing':
      return { change: { postProcessingStatus: 'in_progress' }, job: { kind: 'post_process', runAt: now } }
    case 'store_analysis':
      return { change: analysisOf(call, effect), turnsEndAt: turnsEndOf(call, effect) }
    case 'fail_post_processing':
      return { change: { postProcessingStatus: 'failed' } }
    case 'announce_ended':
      return { event: endedOf(call, facts.turns) }
    case 'announce_tool_call':
      return { event: toolCallOf(call, effect) }
    case 'ask_worker_request':
    case 'dial':
    case 'answer':
    case 'redirect':
    case 'look_for_leg':
    case 'rejoin_leg':
    case 'start_conversation':
    case 'run_tool':
    case 'cancel_tool':
    case 'record':
    case 'disclose':
    case 'leave_message':
    case 'supervise':
    case 'step_aside':
    case 'whisper':
    case 'wind_up':
      return {}
  }
}

type Of<Type extends Effect['type']> = Extract<Effect, { type: Type }>

/** A call is in progress from the moment it is answered. */
function statusChange(call: CallRow, { status, providerStatus }: Of<'announce_status'>, now: number): CallChange {
  const answered = status === 'in_progress' && call.startedAt === null
  return { progress: status, providerStatus, ...(answered && { startedAt: now }) }
}

/** What the receiver did not name stays as it was. */
function hookAnswerOf(effect: Of<'store_worker_request'>): CallChange {
  const { config, locale, instructions, tools, metadata } = effect
  return {
    hookAnswer: withoutNulls({ config, locale, instructions }),
    ...(tools && { externalTools: tools }),
    ...(metadata && { metadata }),
  }
}

const outcomeOf = (ended: Of<'store_outcome'>): CallChange => ({
  outcome: ended.outcome.status,
  failedReason: failedReasonOf(ended.outcome),
  startedAt: ended.answeredAt,
  endedAt: ended.endedAt,
  endedBy: ended.endedBy ?? null,
  endCause: ended.endCause ?? null,
  quality: ended.quality ?? null,
  ...(ended.usage && { usage: ended.usage }),
})

function analysisOf(call: CallRow, analysis: Of<'store_analysis'>): CallChange {
  const { recordedMs, dimensions, nextAction, evidence = {}, summary = null, warnings = [] } = analysis
  const others = call.warnings.filter(({ type }) => !extractionWarnings.includes(type))
  return {
    recordingKey: recordedMs === null ? null : recordingKeyOf(call),
    recordedMs,
    dimensions,
    nextAction,
    evidence,
    summary,
    warnings: [...others, ...warnings],
    postProcessingStatus: 'completed',
  }
}

/** Nobody was heard behind the end of the recording. One that lacks sound is shorter than the talk, and shows nothing about it. */
const turnsEndOf = (call: CallRow, { recordedMs, warnings = [] }: Of<'store_analysis'>): number | null =>
  [...call.warnings, ...warnings].some(({ type }) => type === 'RECORDING_INCOMPLETE') ? null : recordedMs

const endedAt = <Of extends Turn>(turn: Of, end: number | null): Of =>
  end !== null && turn.to > end ? { ...turn, from: Math.min(turn.from, end), to: end } : turn

export function statusUpdateOf(
  call: Pick<CallRow, 'id' | 'metadata'>,
  effect: Of<'announce_status'>,
  now: number,
): CallEvent {
  const { status, providerStatus } = effect
  return {
    type: 'call.status_update',
    data: { callId: call.id, status, providerStatus, ts: toIso(now), ...metadataOf(call) },
  }
}

/** Only where the worker's configuration asks for turns that may still change. */
const showsTurns = ({ config }: StepFacts): boolean =>
  config !== null && configOf(config).transcriptEvents === 'interim'

function transcriptOf(call: CallRow, effect: Of<'store_turn' | 'show_turn'>, now: number): CallEvent {
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

function toolCallOf(call: CallRow, { toolCallId, name, arguments: given }: Of<'announce_tool_call'>): CallEvent {
  const { id: callId, accountId, workerId } = call
  const data = { callId, accountId, workerId, toolCallId, name, arguments: given, ...metadataOf(call) }
  return { type: 'call.tool_call', data }
}

/** What a call that never connected has not got is left out. docs/contract/webhooks.md "call.ended". */
function endedOf(call: CallRow, turns: readonly TurnRow[]): CallEvent {
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

const metadataOf = (call: Pick<CallRow, 'metadata'>) => (call.metadata === null ? {} : { metadata: call.metadata })
const isoOrNull = (ms: number | null): string | null => (ms === null ? null : toIso(ms))
