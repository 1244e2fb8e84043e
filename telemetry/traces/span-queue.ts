/**
 * Owns the spans that wait to be delivered: a bounded queue, one batch on its way at a time, and whoever tells one never waits. What does not fit, and
 * a batch that could not be delivered, is lost and counted.
 */
import type { ReadableSpan, SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace'
import type { Cancel, Clock } from '../../model/clock.ts'
import { deadline, goOn } from '../../model/deadline.ts'
import type { Log } from '../../model/log.ts'

type Deps = {
  readonly exporter: Pick<SpanExporter, 'export' | 'shutdown'>
  readonly clock: Clock
  readonly log: Log
  readonly count: (result: 'exported' | 'failed' | 'dropped', spans: number) => void
}

const mostWaiting = 4_096
const mostTogether = 512
/** Ms. */
const every = 2_000
/** Ms that a batch may take; the exporter tries again within its own time. */
const exportWithin = 10_000
/** Ms for what is left when the process ends. */
const leaveWithin = 2_000
/** Ms for the exporter to let go. */
const endWithin = 500

export function createSpanQueue({ exporter, clock, log, count }: Deps): SpanProcessor {
  const waiting: ReadableSpan[] = []
  let underWay: Promise<void> | null = null
  let cancel: Cancel | null = null
  let isFailing = false
  let isClosed = false

  const send = async (): Promise<void> => {
    const batch = waiting.splice(0, mostTogether)
    const error = await deadline(clock, exportWithin, exported(exporter, batch), () => new Error('no answer in time'))
    count(error ? 'failed' : 'exported', batch.length)
    if (error && !isFailing) log.warn('spans of traces cannot be delivered and are lost', { error })
    if (!error && isFailing) log.warn('spans of traces are delivered again')
    isFailing = error !== null
  }
  const goOnSending = (): void => {
    cancel?.()
    cancel = null
    underWay ??= send().finally(() => {
      underWay = null
      if (waiting.length >= mostTogether) goOnSending()
      else if (waiting.length > 0) later()
    })
  }
  const later = (): void => {
    if (!isClosed) cancel ??= clock.after(every, goOnSending)
  }
  const flush = async (): Promise<void> => {
    while (waiting.length > 0 || underWay) {
      if (!underWay) goOnSending()
      await underWay
      if (isFailing) return
    }
  }
  return {
    onStart: () => undefined,
    onEnd(span) {
      if (isClosed || waiting.length >= mostWaiting) return count('dropped', 1)
      waiting.push(span)
      if (waiting.length >= mostTogether) goOnSending()
      else later()
    },
    forceFlush: flush,
    async shutdown() {
      if (isClosed) return
      isClosed = true
      cancel?.()
      await deadline(clock, leaveWithin, flush(), goOn)
      if (waiting.length > 0) count('dropped', waiting.splice(0).length)
      await deadline(clock, endWithin, exporter.shutdown().catch(goOn), goOn)
    },
  }
}

/** Null: it has arrived. Never rejects. */
function exported(exporter: Pick<SpanExporter, 'export'>, batch: ReadableSpan[]): Promise<Error | null> {
  const { promise, resolve } = Promise.withResolvers<Error | null>()
  try {
    exporter.export(batch, ({ code, error }) => resolve(code === 0 ? null : (error ?? new Error('it was refused'))))
  } catch (error) {
    resolve(error instanceof Error ? error : new Error(String(error)))
  }
  return promise
}
