/**
 * Owns the port by which the service tells of itself in numbers, and every name that it tells: for who watches it, never for decisions.
 *
 * - What is told has a name below, with its unit, its labels and the values of each label, so that what an exporter keeps is bounded.
 * - Personal data (numbers, names, what was said) has no place in a label. A span may carry it under `personal` only, as a log line does
 *   (log.ts), where a deployment can drop it; secrets go nowhere. Ids go into spans and never into labels.
 * - Telling returns at once and never throws. What happens many times a second (frames, packets, slots of the ticker, messages) is counted
 *   by its owner in plain numbers and told at intervals or at the end.
 */
import { LegQuality } from './call-quality.ts'
import { Direction, TurnLatency } from './call.ts'
import { EventType } from './events.ts'
import { loadReasons } from './load-gate.ts'
import type { LogFields } from './log.ts'
import { FailedReason, TerminalStatus } from './outcome.ts'
import { RefusalReason } from './telephony.ts'
import { LlmProvider } from './worker.ts'

type Instrument = {
  /** For people. */
  readonly description: string
  readonly unit:
    'ms' | 'bytes' | 'fraction' | 'score' | 'one' | 'attempts' | 'calls' | 'frames' | 'packets' | 'messages' | 'slots'
  /** Every label with all of its values. */
  readonly labels: Readonly<Record<string, readonly string[]>>
}

const event = EventType.options
const line = ['web', 'phone'] as const
const direction = ['received', 'sent'] as const
/** What stands for a value that is none of a label's own. */
const other = 'other'
export const callKinds = ['web', 'inbound', 'outbound'] as const
export type CallKind = (typeof callKinds)[number]
const engine = [...LlmProvider.options, other] as const
const hook = ['call.worker_request', 'call.tool_call'] as const
const pool = ['calls', 'requests'] as const
/** `ending`: the talk is over, or there was none; what follows from it is under way. */
const callState = ['scheduled', 'queued', 'ringing', 'in_progress', 'ending'] as const
const jobKind = ['expire_token', 'post_process', 'dial_time', 'dial'] as const
const statuses = '200 201 202 204 206 304 400 401 403 404 405 409 413 415 416 429 500 503'.split(' ')

/** Only ever grow. */
export const counters = {
  'call.ended': {
    description: 'Calls that ended here, by how',
    unit: 'calls',
    labels: { kind: callKinds, outcome: TerminalStatus.options },
  },
  'call.failed': {
    description: 'Of calls that ended failed or canceled, the reason',
    unit: 'calls',
    labels: { kind: callKinds, reason: [...FailedReason.options, 'none'] },
  },
  'call.refused': {
    description: 'Telephone calls that were let neither in nor out, by the rule',
    unit: 'calls',
    labels: { direction: Direction.options, reason: RefusalReason.options },
  },
  'engine.sessions': {
    description:
      'Sessions of voice engines: opened, not to be opened, died while the call went on; lost: a talk for which none could be had any more',
    unit: 'calls',
    labels: { engine, result: ['opened', 'failed', 'died', 'lost'] },
  },
  'hook.failures': {
    description: 'Hooks without a good answer, by what was wrong; answer: it came and is none',
    unit: 'calls',
    labels: { hook, reason: ['timeout', 'refused', 'transport', 'too_large', 'answer'] },
  },
  'delivery.attempts': {
    description: 'Attempts at webhook deliveries, by what they led to',
    unit: 'attempts',
    labels: { event, verdict: ['delivered', 'retry', 'exhausted'] },
  },
  'leg.late_frames': {
    description: 'Frames of the agent that were sent more than 10 ms late, told at the end of a leg',
    unit: 'frames',
    labels: { line },
  },
  'leg.stranger_packets': {
    description: 'Packets to a leg that came from elsewhere than its peer and were dropped, told at the end of a leg',
    unit: 'packets',
    labels: { line },
  },
  'ticker.skipped': {
    description: 'Slots of the media ticker that were left out because the thread was too far behind',
    unit: 'slots',
    labels: {},
  },
  'load.refused': {
    description: 'Calls that were refused because the node had no room for them, by what was short',
    unit: 'calls',
    labels: { beginning: ['web_session', 'web_call', 'phone_call'], reason: loadReasons },
  },
  'trace.spans': {
    description: 'Spans of traces, by what became of them; dropped: too many waited',
    unit: 'one',
    labels: { result: ['exported', 'failed', 'dropped'] },
  },
  'bus.dropped': {
    description: 'Messages that were not sent because too many waited, or because the connection was lost',
    unit: 'messages',
    labels: {},
  },
} as const satisfies Readonly<Record<string, Instrument>>

/** Distributions. */
export const histograms = {
  'turn.latency': {
    description: 'From the end of the speech of a caller to a stage of the answer to it',
    unit: 'ms',
    labels: { stage: TurnLatency.keyof().options, engine },
  },
  'turn.barge_in': {
    description: 'From being told that the caller speaks over the agent to the leg having fallen silent',
    unit: 'ms',
    labels: { engine },
  },
  'engine.opening': { description: 'From asking an engine for a session to having it', unit: 'ms', labels: { engine } },
  'call.step': {
    description: 'From a fact of a call to its being written, or to giving it up',
    unit: 'ms',
    labels: { result: ['written', 'fenced', 'refused', 'unreachable'] },
  },
  'api.request': {
    description: 'From a request of REST to its answer',
    unit: 'ms',
    labels: { method: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', other], status: [...statuses, other] },
  },
  'leg.loss': {
    description: 'Part of the packets of a leg that got lost, 0 to 1',
    unit: 'fraction',
    labels: { line, direction },
  },
  'leg.jitter': {
    description: 'Interarrival jitter (RFC 3550) at the end of a leg',
    unit: 'ms',
    labels: { line, direction },
  },
  'leg.round_trip': { description: 'Round trip of RTCP at the end of a leg', unit: 'ms', labels: { line } },
  'leg.concealed': {
    description: 'Sound of a leg that was guessed in place of lost packets',
    unit: 'ms',
    labels: { line },
  },
  'leg.mos': {
    description: 'Estimated mean opinion score of a leg (ITU-T G.107), 1 to 4.5',
    unit: 'score',
    labels: { line, codec: LegQuality.shape.codec.options },
  },
  'delivery.latency': {
    description: 'From the event of a call to the first attempt to deliver it',
    unit: 'ms',
    labels: { event },
  },
  'job.wait': {
    description: 'From the time a job was due to the time it was begun',
    unit: 'ms',
    labels: { kind: jobKind },
  },
  'ticker.lateness': {
    description: 'How late the slots of the media ticker were run',
    unit: 'ms',
    labels: {},
  },
  'db.connection_wait': {
    description: 'From asking for a transaction to its beginning, the round trip of BEGIN included',
    unit: 'ms',
    labels: {},
  },
  'db.query': {
    description: 'From sending or queueing a query to its answer',
    unit: 'ms',
    labels: { within: ['pool', 'transaction'], result: ['ok', 'failed'] },
  },
  'bus.request': {
    description: 'From a request on the bus to its answer, or to giving it up',
    unit: 'ms',
    labels: {
      kind: ['leg_command', 'fact', 'dial', other],
      result: ['answered', 'timeout', 'no_responders', 'failed'],
    },
  },
} as const satisfies Readonly<Record<string, Instrument>>

/** Pieces of work; the duration of each is a distribution with the same labels, and how it ended. */
export const spans = {
  'call.length': {
    description: 'A call from the first that was done for it to its end; failed: its outcome is',
    unit: 'ms',
    labels: { kind: callKinds },
  },
  'call.set_up': {
    description: 'From the first that was done for a call to its answer, the ringing of those that we call included',
    unit: 'ms',
    labels: { kind: callKinds },
  },
  'turn.answer': {
    description: 'From the end of the speech of a caller to the last stage of the answer that was seen',
    unit: 'ms',
    labels: { engine },
  },
  'turn.stage': {
    description: 'From the stage of an answer before it to this one',
    unit: 'ms',
    labels: { stage: TurnLatency.keyof().options },
  },
  'hook.ask': { description: 'One hook that is answered on the line', unit: 'ms', labels: { hook } },
  'tool.run': {
    description: 'One tool that an engine called',
    unit: 'ms',
    labels: { provider: ['call', 'knowledge_base', 'email', 'person', 'external', other] },
  },
  'delivery.attempt': { description: 'One attempt at a webhook delivery', unit: 'ms', labels: { event } },
  'job.run': {
    description: 'One run of a job',
    unit: 'ms',
    labels: { kind: jobKind },
  },
} as const satisfies Readonly<Record<string, Instrument>>

/** What is so at the moment at which somebody looks. */
export const gauges = {
  'calls.running': {
    description: 'Calls that have an actor in this process, by their state; ending: the talk is over',
    unit: 'calls',
    labels: { kind: callKinds, state: callState },
  },
  'steps.waiting': {
    description: 'Steps of calls that are not in the database yet: in memory, and kept on the disk while it is away',
    unit: 'calls',
    labels: { where: ['memory', 'disk'] },
  },
  'jobs.due': {
    description: 'Jobs of all processes that are due, or under way; of each kind 10,000 at most are counted',
    unit: 'one',
    labels: { kind: jobKind },
  },
  'deliveries.waiting': {
    description: 'Webhook deliveries of all processes that are not over; 10,000 at most are counted',
    unit: 'one',
    labels: {},
  },
  'db.up': {
    description: 'Whether the database answered this scrape in half a second: 1, else 0',
    unit: 'one',
    labels: {},
  },
  'db.queries': {
    description: 'Queries under way or waiting for a connection, of calls (10 connections) and of REST (6)',
    unit: 'one',
    labels: { pool },
  },
  'calls.legs': { description: 'Calls whose sound goes through this process', unit: 'calls', labels: {} },
  'load.new_calls': {
    description: 'What becomes of new calls at the moment: 1 for that, 0 for the others',
    unit: 'one',
    labels: { state: ['taken', 'limited', 'refused'] },
  },
} as const satisfies Readonly<Record<string, Instrument>>

export type Gauge = keyof typeof gauges

export type Reading<Name extends Gauge> = {
  readonly labels: LabelsOf<(typeof gauges)[Name]>
  readonly value: number
}

/** Who has a gauge says once how it is read, and is asked whenever somebody looks. Of a reading that fails nothing is told. */
export type Gauges = {
  watch<Name extends Gauge>(name: Name, read: () => readonly Reading<Name>[] | Promise<readonly Reading<Name>[]>): void
}

export const noGauges: Gauges = { watch: () => undefined }

type Counters = typeof counters
type Histograms = typeof histograms
type Spans = typeof spans

/** One value for every label. */
type LabelsOf<Of extends Pick<Instrument, 'labels'>> = {
  readonly [Label in keyof Of['labels']]: Of['labels'][Label][number]
}

export type Telemetry = {
  /** False: nobody listens, and what costs something to gather need not be gathered. */
  readonly isOn: boolean
  /** `by` is 1 unless given. */
  count<Name extends keyof Counters>(name: Name, labels: LabelsOf<Counters[Name]>, by?: number): void
  /** `value` is in the unit of the name; `times` is 1 unless given. */
  observe<Name extends keyof Histograms>(
    name: Name,
    value: number,
    labels: LabelsOf<Histograms[Name]>,
    times?: number,
  ): void
  /**
   * Begins a piece of work; `about` tells which one: by `callId` of which call, by `within` (a traceparent) as part of which other one. `began`: ms
   * since the epoch, where it was before now.
   */
  span<Name extends keyof Spans>(name: Name, labels: LabelsOf<Spans[Name]>, about?: LogFields, began?: number): Span
  /** By which trace somebody asked for the call (a traceparent; null: nobody did), before any of its spans. Absent: nobody traces. */
  follow?(callId: string, traceparent: string | null): void
  /** That has been told of the call. */
  follows?(callId: string): boolean
}

export type Span = {
  /** For those who are asked for a part of the work (W3C Trace Context). Absent: nobody traces. */
  readonly traceparent?: string
  /** Called once. `failed`: the work did not do what it was for. `ended`: ms since the epoch, where it was before now. */
  end(result: 'ok' | 'failed', ended?: number): void
}

const unwatched: Span = { end: () => undefined }

export const noTelemetry: Telemetry = {
  isOn: false,
  count: () => undefined,
  observe: () => undefined,
  span: () => unwatched,
}

/** Of a text that may be anything, the value of a label that has `other` for what it does not know. */
export function labelOf<Value extends string>(values: readonly Value[], text: string): Value | 'other' {
  return values.find((value) => value === text) ?? other
}

export const engineLabel = (name: string): (typeof engine)[number] => labelOf(LlmProvider.options, name)
