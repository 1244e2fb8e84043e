/**
 * Owns the traces of calls as OpenTelemetry has them: one trace for each call, a span for each piece of work that is told to the port
 * (model/telemetry.ts). Ids follow from the call's (model/trace-context.ts), so that several processes, and one that takes a call over, tell of
 * one trace without a word between them. Work that belongs to no call is in no trace.
 */
import { randomBytes } from 'node:crypto'
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, trace, type Attributes } from '@opentelemetry/api'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { TracerProvider, type SpanExporter } from '@opentelemetry/sdk-trace'
import type { Clock } from '../../model/clock.ts'
import type { Log, LogFields } from '../../model/log.ts'
import { noTelemetry, type Telemetry } from '../../model/telemetry.ts'
import { parseTraceparent, traceOfCall, traceparentOf, type TraceContext } from '../../model/trace-context.ts'
import { createRecent } from '../../net/recent.ts'
import { createSpanQueue } from './span-queue.ts'

export type Traces = {
  readonly telemetry: Telemetry
  /** Delivers what is left, for a few seconds. Idempotent. */
  close(): Promise<void>
}

type Deps = {
  readonly exporter: SpanExporter
  readonly clock: Clock
  readonly log: Log
  readonly count: (result: 'exported' | 'failed' | 'dropped', spans: number) => void
  /** What the process is to those who read traces. */
  readonly resource: Readonly<Record<string, string>>
  /** Of calls that nobody has asked for by a trace, the part that is told of. */
  readonly ratio: number
  /** What is personal is told too. */
  readonly tellsPersonal: boolean
}

/** Calls of which it is known whether somebody else's trace asked for them. */
const mostKnown = 20_000
const mostText = 1_000

/** By other names than the distributions of the same work have. */
const names: Readonly<Partial<Record<string, string>>> = { 'call.length': 'call', 'turn.answer': 'turn' }
const ofCaller = 'call.length'
/** Sent to somebody else. */
const outgoing: readonly string[] = ['hook.ask', 'delivery.attempt']

export function createTraces(deps: Deps): Traces {
  const queue = createSpanQueue(deps)
  const next = { traceId: '', spanId: '' }
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ ...deps.resource }),
    spanProcessors: [queue],
    spanLimits: { attributeValueLengthLimit: mostText },
    idGenerator: { generateTraceId: () => next.traceId, generateSpanId: () => next.spanId },
  })
  const tracer = provider.getTracer('parley')
  const asked = createRecent<TraceContext | 'nobody'>(mostKnown)
  const askedBy = (callId: string): TraceContext | null => {
    const known = asked.get(callId)
    return known === undefined || known === 'nobody' ? null : known
  }

  const telemetry: Telemetry = {
    ...noTelemetry,
    isOn: true,
    follows: (callId) => asked.get(callId) !== undefined,
    follow: (callId, traceparent) => asked.set(callId, parseTraceparent(traceparent) ?? 'nobody'),
    span(name, labels, about = {}, began = deps.clock.now()) {
      const { callId, within, personal, ...ids } = about
      if (typeof callId !== 'string') return noTelemetry.span(name, labels)
      const caller = askedBy(callId)
      const ofCall = traceOfCall(callId, caller, deps.ratio)
      const isWhole = name === ofCaller
      const parent = isWhole ? caller : (parseTraceparent(textOf(within)) ?? ofCall)
      if (!ofCall.isSampled) return { ...noTelemetry.span(name, labels), traceparent: traceparentOf(ofCall) }
      next.traceId = ofCall.traceId
      next.spanId = isWhole ? ofCall.spanId : randomBytes(8).toString('hex')
      const attributes = attributesOf({
        'call.id': callId,
        ...labels,
        ...ids,
        ...(deps.tellsPersonal && (personal as LogFields | undefined)),
      })
      const context = parent ? trace.setSpanContext(ROOT_CONTEXT, toSpanContext(parent)) : ROOT_CONTEXT
      const span = tracer.startSpan(
        names[name] ?? name,
        { startTime: new Date(began), attributes, kind: kindOf(name) },
        context,
      )
      const own = { traceId: next.traceId, spanId: next.spanId, isSampled: true }
      return {
        traceparent: traceparentOf(own),
        end(result, ended = deps.clock.now()) {
          if (result === 'failed') span.setStatus({ code: SpanStatusCode.ERROR })
          span.end(new Date(Math.max(began, ended)))
        },
      }
    },
  }
  let closed: Promise<void> | null = null
  return { telemetry, close: () => (closed ??= provider.shutdown()) }
}

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null)

const kindOf = (name: string): SpanKind => {
  if (name === ofCaller) return SpanKind.SERVER
  return outgoing.includes(name) ? SpanKind.CLIENT : SpanKind.INTERNAL
}

const toSpanContext = ({ traceId, spanId, isSampled }: TraceContext) => ({
  traceId,
  spanId,
  traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
  isRemote: true,
})

const attributesOf = (fields: Readonly<Record<string, unknown>>): Attributes =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, value]) =>
      typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
        ? [[`parley.${name}`, value]]
        : [],
    ),
  )
