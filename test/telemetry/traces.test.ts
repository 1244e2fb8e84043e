/** Traces of calls, as a collector gets them: one for each call, whoever runs it; and that nobody waits for a collector. */
import { test, type Test } from 'tap'
import { systemClock } from '../../app/clock.ts'
import { readConfig } from '../../app/config.ts'
import { parseTraceparent, traceOfCall } from '../../model/trace-context.ts'
import { createOtlpExporter } from '../../telemetry/traces/otlp-exporter.ts'
import { createTraces } from '../../telemetry/traces/traces.ts'
import { openOtlpCollector } from '../fake/otlp-collector.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { until } from '../scenes/in-time.ts'
import { newId } from '../scenes/tenant.ts'

type Options = { readonly ratio?: number; readonly tellsPersonal?: boolean }

function open(t: Pick<Test, 'teardown'>, url: string, { ratio = 1, tellsPersonal = false }: Options = {}) {
  const counted = { exported: 0, failed: 0, dropped: 0 }
  const log = createQuietLog()
  const traces = createTraces({
    exporter: createOtlpExporter(url, { 'x-tenant': 'a' }),
    clock: systemClock,
    log,
    ratio,
    tellsPersonal,
    count: (result, spans) => void (counted[result] += spans),
    resource: { 'service.name': 'parley', 'service.version': '1' },
  })
  t.teardown(() => traces.close())
  return { ...traces, counted, log }
}

test('traceparent is read as the W3C has it, and what is none is nobody’s fault', (t) => {
  const [traceId, spanId] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7']
  t.same(parseTraceparent(`00-${traceId}-${spanId}-01`), { traceId, spanId, isSampled: true })
  t.same(parseTraceparent(`00-${traceId}-${spanId}-00`), { traceId, spanId, isSampled: false })
  t.match(parseTraceparent(`00-${traceId}-${spanId}-03`), { isSampled: true }, 'flags that came later')
  t.match(parseTraceparent(`cc-${traceId}-${spanId}-01-what-comes-later`), { traceId, spanId }, 'a later version')
  for (const header of [
    null,
    '',
    'x',
    `ff-${traceId}-${spanId}-01`,
    `00-${traceId}-${spanId}-01-more`,
    `00-${traceId.toUpperCase()}-${spanId}-01`,
    `00-${'0'.repeat(32)}-${spanId}-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId}-${spanId}`,
    `00-${traceId}-${spanId}-01\r\nx: y`,
    `cc-${traceId}-${spanId}-01-${'x'.repeat(10_000)}`,
  ])
    t.equal(parseTraceparent(header), null, String(header).slice(0, 80))
  t.end()
})

test('the part of the calls that is traced is about the one that is set, and the same for everybody', (t) => {
  const ids = Array.from({ length: 4_000 }, () => newId<'call'>())
  const sampled = ids.filter((id) => traceOfCall(id, null, 0.25).isSampled)
  t.ok(sampled.length > 800 && sampled.length < 1_200, `${sampled.length}`)
  t.equal(ids.filter((id) => traceOfCall(id, null, 0).isSampled).length, 0)
  t.ok(ids.every((id) => traceOfCall(id, null).isSampled))
  t.same(
    sampled.filter((id) => traceOfCall(id, null, 0.25).isSampled),
    sampled,
  )
  t.end()
})

test('several processes tell of one call in one trace, a take-over included', async (t) => {
  const collector = await openOtlpCollector(t)
  const [first, second] = [open(t, collector.url), open(t, collector.url)]
  const callId = newId<'call'>()
  const began = Date.now() - 60_000
  const hook = first.telemetry.span('hook.ask', { hook: 'call.worker_request' }, { callId, eventId: 'e1' })
  hook.end('failed')
  // The first process dies; the second knows nothing but the call.
  second.telemetry
    .span('call.length', { kind: 'inbound' }, { callId, outcome: 'completed' }, began)
    .end('ok', began + 50_000)
  const turn = second.telemetry.span('turn.answer', { engine: 'embedded' }, { callId }, began + 1_000)
  const within = turn.traceparent ?? ''
  second.telemetry.span('turn.stage', { stage: 'decided' }, { callId, within }, began + 1_000).end('ok', began + 1_300)
  turn.end('ok', began + 1_500)
  second.telemetry.span('job.run', { kind: 'dial' }, {}).end('ok')
  await Promise.all([first.close(), second.close()])

  t.equal(collector.spans.length, 4, 'and nothing of work that belongs to no call')
  const [asked, whole, answer, stage] = ['hook.ask', 'call', 'turn', 'turn.stage'].map((name) =>
    collector.spans.find((span) => span.name === name),
  )
  const traceId = callId.replaceAll('-', '')
  t.ok(collector.spans.every((span) => span.traceId === traceId))
  t.match(whole, { spanId: traceId.slice(16), attributes: { 'parley.call.id': callId, 'parley.outcome': 'completed' } })
  t.equal(whole?.parentSpanId, undefined)
  t.equal(whole?.startTimeUnixNano, `${began}000000`)
  t.equal(whole?.endTimeUnixNano, `${began + 50_000}000000`)
  t.match(asked, { parentSpanId: whole?.spanId, kind: 3, status: { code: 2 }, attributes: { 'parley.eventId': 'e1' } })
  t.equal(hook.traceparent, `00-${traceId}-${asked?.spanId}-01`)
  t.equal(answer?.parentSpanId, whole?.spanId)
  t.equal(stage?.parentSpanId, answer?.spanId)
  t.match(whole?.service ?? {}, { 'service.name': 'parley' })
  t.match(collector.headers[0], { 'x-tenant': 'a' })
  t.same([first.counted.exported, second.counted.exported], [1, 3])
})

test('a call that a trace asked for is a part of it, or of none if that one is not kept', async (t) => {
  const collector = await openOtlpCollector(t)
  const { telemetry, close } = open(t, collector.url, { ratio: 0 })
  const [kept, unkept] = [newId<'call'>(), newId<'call'>()]
  const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
  t.equal(telemetry.follows?.(kept), false)
  telemetry.follow?.(kept, `00-${trace}-00f067aa0ba902b7-01`)
  telemetry.follow?.(unkept, `00-${trace}-00f067aa0ba902b7-00`)
  t.equal(telemetry.follows?.(kept), true)
  telemetry.span('call.length', { kind: 'outbound' }, { callId: kept }).end('ok')
  telemetry.span('tool.run', { provider: 'external' }, { callId: kept }).end('ok')
  const silent = telemetry.span('tool.run', { provider: 'external' }, { callId: unkept })
  silent.end('ok')
  t.match(silent.traceparent, new RegExp(`^00-${trace}-[0-9a-f]{16}-00$`), 'whoever is asked is told so')
  await close()
  t.same(collector.spans.map(({ name, traceId }) => `${name} ${traceId}`).toSorted(), [
    `call ${trace}`,
    `tool.run ${trace}`,
  ])
  t.equal(collector.spans.find(({ name }) => name === 'call')?.parentSpanId, '00f067aa0ba902b7')
})

test('what is personal is told only where the operator wants to read it', async (t) => {
  const collector = await openOtlpCollector(t)
  for (const tellsPersonal of [false, true]) {
    const { telemetry, close } = open(t, collector.url, { tellsPersonal })
    const about = { callId: newId<'call'>(), tool: 'x', personal: { number: '+4930123456' } }
    telemetry.span('tool.run', { provider: 'other' }, about).end('ok')
    await close()
  }
  t.same(
    collector.spans.map(({ attributes }) => attributes['parley.number']),
    [undefined, '+4930123456'],
  )
  t.match(collector.spans[0]?.attributes ?? {}, { 'parley.tool': 'x' })
})

test('a collector that is away, refuses or never answers costs spans, which are counted, and nobody’s time', async (t) => {
  const collector = await openOtlpCollector(t)
  const { telemetry, counted, log } = open(t, collector.url)
  const tell = (count: number): void => {
    for (let nth = 0; nth < count; nth++)
      telemetry.span('job.run', { kind: 'dial' }, { callId: newId<'call'>() }).end('ok')
  }
  collector.answer(400)
  tell(600)
  await until(() => counted.failed >= 512)
  t.ok(log.lines.some(({ message }) => message.startsWith('spans of traces cannot be delivered')))
  collector.answer(null)
  tell(20_000)
  t.ok(counted.dropped > 10_000, 'more than the queue holds is dropped at once')
  t.equal(log.lines.filter(({ message }) => message.startsWith('spans of traces cannot')).length, 1, 'told once')
})

test('nobody listens at the collector’s address: the process ends all the same', async (t) => {
  const { telemetry, counted, close } = open(t, 'http://127.0.0.1:9')
  telemetry.span('job.run', { kind: 'dial' }, { callId: newId<'call'>() }).end('ok')
  await close()
  t.equal(counted.exported, 0)
  telemetry.span('job.run', { kind: 'dial' }, { callId: newId<'call'>() }).end('ok')
  t.ok(counted.dropped >= 1, 'what comes later is counted, too')
})

test('settings of traces: off without an address, headers as OpenTelemetry writes them', (t) => {
  t.equal(readConfig({}).traces, null)
  const OTEL_EXPORTER_OTLP_ENDPOINT = 'http://127.0.0.1:4318/'
  const settings = { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20x, x-tenant=1' }
  t.same(readConfig(settings).traces, {
    endpoint: 'http://127.0.0.1:4318',
    headers: { authorization: 'Bearer x', 'x-tenant': '1' },
    serviceName: 'parley',
    ratio: 1,
  })
  t.throws(() => readConfig({ OTEL_EXPORTER_OTLP_HEADERS: 'a=b' }), /OTEL_EXPORTER_OTLP_HEADERS needs/)
  for (const OTEL_EXPORTER_OTLP_HEADERS of ['x', 'a=%zz', 'a b=c', 'a=b c'])
    t.throws(() => readConfig({ ...settings, OTEL_EXPORTER_OTLP_HEADERS }), /OTEL_EXPORTER_OTLP_HEADERS/)
  t.throws(() => readConfig({ ...settings, OTEL_TRACES_SAMPLER_ARG: '2' }), /OTEL_TRACES_SAMPLER_ARG/)
  t.throws(() => readConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4317' }), /OTEL_EXPORTER_OTLP_ENDPOINT/)
  t.end()
})
