/** One call through the whole service, as those see it who trace: the client that asked for it, the receiver of its hooks, the collector. */
import { test } from 'tap'
import { createHearingEngine } from '../fake/hearing-engine.ts'
import { openOtlpCollector } from '../fake/otlp-collector.ts'
import { until } from '../scenes/in-time.ts'
import { openLossyPhone } from '../scenes/lossy-line.ts'
import { openPhoneStage } from '../scenes/phone-stage.ts'

test('a call is one trace, from who asked for it to who hears of it', { timeout: 120_000 }, async (t) => {
  const collector = await openOtlpCollector(t)
  const settings = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, METRICS_PORT: '0', MEDIA_THREADS: '0' }
  const stage = await openPhoneStage(t, createHearingEngine({ tone: 440, seconds: 60 }), { settings })
  // Nobody listens at the gateway, so that the call that is placed fails at once.
  const gateways = [{ host: '127.0.0.1', port: 9, transport: 'tcp' as const }]
  const line = await stage.addLine({ trunk: { gateways } })
  const phone = await openLossyPhone(t, stage.log, { to: null, from: null, reports: true })

  const speaking = await phone.call(`sip:${line.number}@127.0.0.1:${stage.port}`)
  await line.status('in_progress')
  await speaking.hangUp()
  const { row } = await line.ended()
  const inbound = String(row['id']).replaceAll('-', '')
  const spansOf = (traceId: string) => collector.spans.filter((span) => span.traceId === traceId)
  const whole = await until(() => spansOf(inbound).find(({ name }) => name === 'call'))
  t.match(whole, { attributes: { 'parley.outcome': 'completed', 'parley.kind': 'inbound' } })
  await until(() =>
    spansOf(inbound).some(({ name, attributes }) => {
      return name === 'delivery.attempt' && attributes['parley.event'] === 'call.ended'
    }),
  )
  const names = new Set(spansOf(inbound).map(({ name }) => name))
  for (const name of ['call', 'call.set_up', 'job.run', 'delivery.attempt']) t.ok(names.has(name), name)
  for (const span of spansOf(inbound).filter(({ name }) => name !== 'call'))
    t.equal(span.parentSpanId, whole.spanId, span.name)

  const toldOf = (callId: unknown) =>
    stage.deliveries.filter(({ data }) => (data as Record<string, unknown>)['callId'] === callId)
  for (const { headers } of toldOf(row['id'])) t.equal(headers['x-request-id'], headers['x-service-event-id'])

  const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
  const traceparent = `00-${trace}-00f067aa0ba902b7-01`
  const wish = { workerId: line.workerId, phoneNumber: '+12025550199' }
  const { id } = await stage.rest('POST', '/phone-calls', wish, { traceparent, 'x-request-id': 'order-17' })
  await line.ended()
  const placed = await until(() => spansOf(trace).find(({ name }) => name === 'call'))
  t.match(placed, { parentSpanId: '00f067aa0ba902b7', attributes: { 'parley.call.id': id } })
  await until(() => spansOf(trace).some(({ name }) => name === 'delivery.attempt'))
  const sent = toldOf(id).map(({ headers }) => headers['traceparent'])
  for (const { headers } of toldOf(id)) t.equal(headers['x-request-id'], 'order-17')
  t.ok(sent.length > 0)
  for (const header of sent) t.match(header, new RegExp(`^00-${trace}-[0-9a-f]{16}-01$`))
  const spans = new Set(spansOf(trace).map(({ spanId }) => spanId))
  await until(() => sent.every((header) => spans.has(String(header).split('-')[2] ?? '')))
})
