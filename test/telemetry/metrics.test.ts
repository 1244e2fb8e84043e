/** What Prometheus reads of a process: the text it gets, the bounds of what is kept, and that a scrape waits for nothing that is away. */
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { test, type Test } from 'tap'
import { counters, histograms, type Telemetry } from '../../model/telemetry.ts'
import { buckets } from '../../telemetry/metrics/buckets.ts'
import { metricNames, type MetricDescription } from '../../telemetry/metrics/metric-names.ts'
import { createMetrics } from '../../telemetry/metrics/metrics.ts'
import { processMetrics } from '../../telemetry/metrics/process-metrics.ts'
import { refusedMetric } from '../../telemetry/metrics/refused.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { parsePrometheus, totalOf } from '../scenes/prometheus-text.ts'

const allMetrics: readonly MetricDescription[] = [
  ...Object.values(metricNames).flatMap((kind) => Object.values<MetricDescription>(kind)),
  ...Object.values(processMetrics),
  refusedMetric,
]

const inbound = { kind: 'inbound', state: 'in_progress' } as const

function open(t: Pick<Test, 'teardown'>) {
  const clock = createHandClock()
  let now = 0
  const metrics = createMetrics({
    version: '1.2.3',
    roles: new Set(['api']),
    startedAt: 5_000,
    now: () => now,
    clock,
  })
  t.teardown(() => metrics.close())
  const { telemetry, gauges, scrape } = metrics
  return {
    metrics,
    clock,
    telemetry,
    gauges,
    scrape,
    read: async () => parsePrometheus(await scrape()),
    pass: (ms: number) => void (now += ms),
  }
}

test('what is told is read as Prometheus has it: in seconds and ratios, added up, with buckets', async (t) => {
  const { telemetry, read, pass } = open(t)
  telemetry.count('leg.late_frames', { line: 'web' }, 7)
  telemetry.count('leg.late_frames', { line: 'web' })
  telemetry.observe('turn.latency', 250, { stage: 'firstAudio', engine: 'embedded' })
  telemetry.observe('turn.latency', 60_000, { stage: 'firstAudio', engine: 'embedded' })
  telemetry.observe('ticker.lateness', 3, {}, 400)
  telemetry.observe('leg.loss', 0.03, { line: 'phone', direction: 'sent' })
  const span = telemetry.span('job.run', { kind: 'dial' })
  pass(1_500)
  span.end('failed')

  const families = await read()
  t.equal(totalOf(families, 'parley_leg_late_frames_total', { line: 'web' }), 8)
  const firstAudio = { stage: 'firstAudio', engine: 'embedded' }
  t.equal(totalOf(families, 'parley_turn_latency_seconds_sum', firstAudio), 60.25)
  t.equal(totalOf(families, 'parley_turn_latency_seconds_bucket', { ...firstAudio, le: '0.3' }), 1)
  t.equal(totalOf(families, 'parley_turn_latency_seconds_bucket', { ...firstAudio, le: '10' }), 1)
  t.equal(totalOf(families, 'parley_turn_latency_seconds_bucket', { ...firstAudio, le: '+Inf' }), 2)
  t.equal(totalOf(families, 'parley_ticker_lateness_seconds_count'), 400)
  t.equal(totalOf(families, 'parley_leg_loss_ratio_sum', { direction: 'sent' }), 0.03)
  t.equal(totalOf(families, 'parley_job_run_seconds_sum', { kind: 'dial', result: 'failed' }), 1.5)
  t.match(families.get('parley_build_info')?.samples, [{ labels: { version: '1.2.3' }, value: 1 }])
  t.equal(totalOf(families, 'parley_role', { role: 'api' }), 1)
  t.equal(totalOf(families, 'parley_role'), 1)
  t.equal(totalOf(families, 'process_start_time_seconds'), 5)
  t.ok(totalOf(families, 'process_resident_memory_bytes') > 1e7)
  t.ok(totalOf(families, 'process_cpu_seconds_total') > 0)
})

test('a counter is there before anything happened, so that the first of it is a rise', async (t) => {
  const families = await open(t).read()
  t.equal(families.get('parley_delivery_attempts_total')?.samples.length, 5 * 3)
  t.equal(totalOf(families, 'parley_delivery_attempts_total'), 0)
})

test('every scrape is well-formed, and all that is scraped is described', async (t) => {
  const { read, gauges } = open(t)
  gauges.watch('calls.running', () => [{ labels: inbound, value: 3 }])
  const described = new Map(allMetrics.map((metric) => [metric.name, metric]))
  t.equal(described.size, allMetrics.length, 'no name twice')
  for (const [name, { type, samples }] of await read()) {
    t.equal(described.get(name)?.type, type, name)
    const labels = new Set(samples.flatMap((sample) => Object.keys(sample.labels).filter((label) => label !== 'le')))
    for (const label of labels) t.ok(described.get(name)?.labels[label], `${name}: ${label}`)
  }
})

test('limits of buckets grow, and each distribution has some', (t) => {
  for (const [name, limits] of Object.entries(buckets)) {
    t.ok(limits.length >= 8 && limits.length <= 14, name)
    t.same(
      limits,
      [...new Set(limits)].toSorted((one, other) => one - other),
      name,
    )
  }
  t.end()
})

test('labels and values that are not declared add no series, throw nothing, and are counted', async (t) => {
  const { telemetry, scrape } = open(t)
  const before = (await scrape()).split('\n').length
  const tell = telemetry as unknown as {
    count(name: string, labels: object, by?: number): void
    observe(name: string, value: number, labels: object, times?: number): void
  } & Telemetry
  for (let nth = 0; nth < 5_000; nth++) {
    tell.count('leg.late_frames', { line: `+4930${nth}"\n} evil 1` })
    tell.count('bus.dropped', { [`key${nth}`]: 'x' })
    tell.observe('turn.latency', 1, { stage: 'firstAudio', engine: `model-${nth}` })
  }
  tell.count('leg.late_frames', { line: 'web', constructor: 'x' })
  tell.count('leg.late_frames', {})
  tell.count('bus.dropped', {}, Number.NaN)
  tell.count('bus.dropped', {}, -1)
  tell.observe('leg.mos', Number.POSITIVE_INFINITY, { line: 'web', codec: 'opus' })
  tell.observe('ticker.lateness', 1, {}, 1e9)
  const text = await scrape()
  t.equal(text.split('\n').length, before)
  t.notMatch(text, 'evil')
  t.equal(totalOf(parsePrometheus(text), 'parley_telemetry_refused_total'), 15_006)
})

test('all series that there can be are few enough to be read at once', (t) => {
  const seriesOf = ({ type, labels }: MetricDescription, name: string): number => {
    const sets = Object.values(labels).reduce((product, values) => product * values.length, 1)
    return type === 'histogram' ? sets * ((buckets as Record<string, readonly number[]>)[name]!.length + 3) : sets
  }
  const all = Object.values(metricNames).flatMap((kind) =>
    Object.entries<MetricDescription>(kind).map(([name, metric]) => seriesOf(metric, name)),
  )
  t.ok(all.reduce((sum, count) => sum + count, 0) < 10_000)
  t.ok(Object.keys(counters).length + Object.keys(histograms).length > 10)
  t.end()
})

test('what is read at the moment is left out when it fails or does not come, and all else is answered', async (t) => {
  const { gauges, read, clock, scrape } = open(t)
  let running = 4
  const never = Promise.withResolvers<never>()
  let asked = 0
  gauges.watch('calls.running', () => [{ labels: inbound, value: running }])
  gauges.watch('calls.legs', () => {
    throw new Error('away')
  })
  gauges.watch('load.new_calls', () => {
    asked++
    return never.promise
  })
  const first = scrape()
  const same = scrape()
  clock.advance(1_000)
  t.equal(await first, await same, 'two that ask at once get one answer')
  const families = parsePrometheus(await first)
  t.equal(totalOf(families, 'parley_calls_running'), 4)
  t.same(families.get('parley_calls_legs')?.samples, [])
  t.same(families.get('parley_load_new_calls')?.samples, [])

  running = 5
  t.equal(totalOf(await read(), 'parley_calls_running'), 5, 'and what hangs is waited for once')
  t.equal(asked, 1)
})

test('threads are told apart, whatever comes and goes', async (t) => {
  const { metrics, read } = open(t)
  metrics.watchLoops(() => [{ thread: 'media 0', active: 1_500, idle: 500 }])
  const families = await read()
  t.equal(totalOf(families, 'parley_event_loop_active_seconds_total', { thread: 'media 0' }), 1.5)
  t.equal(totalOf(families, 'parley_event_loop_idle_seconds_total', { thread: 'media 0' }), 0.5)
  t.ok(totalOf(families, 'parley_event_loop_active_seconds_total', { thread: 'main' }) > 0)
})

test('the page of the metrics has every one of them, with its kind and its labels, and no other', async (t) => {
  const page = await readFile(path.join(import.meta.dirname, '..', '..', 'docs', 'observability.md'), 'utf8')
  const rows = [...page.matchAll(/^\| `((?:parley|process|nodejs)_\w+)` \| (\w+) \| ([^|]*) \|/gm)]
  const told = rows.map(([, name, type, labels = '']) => `${name} ${type} ${labels.replaceAll('`', '').trim()}`)
  const known = allMetrics.map(({ name, type, labels }) => `${name} ${type} ${Object.keys(labels).join(', ') || '–'}`)
  t.same(told.toSorted(), known.toSorted())
})
