/**
 * Owns what each number that the service tells of is called in Prometheus: the name of the port (model/telemetry.ts) behind `parley_`, its unit
 * behind it as a basic one, and `_total` for what only grows.
 */
import { counters, gauges, histograms, spans } from '../../model/telemetry.ts'

export type MetricDescription = {
  /** As it is scraped. */
  readonly name: string
  readonly type: 'counter' | 'histogram' | 'gauge'
  readonly help: string
  /** Every label with its values. */
  readonly labels: Readonly<Record<string, readonly string[]>>
  /** What is told is multiplied by it. */
  readonly scale: number
}

type Told = { readonly description: string; readonly unit: string; readonly labels: MetricDescription['labels'] }

/** Of units that are more than what is counted. */
const suffixes: Readonly<Record<string, readonly [suffix: string, scale: number]>> = {
  ms: ['_seconds', 1 / 1000],
  bytes: ['_bytes', 1],
  fraction: ['_ratio', 1],
}

/** How a piece of work ended. */
const result = ['ok', 'failed'] as const

type Named<Of> = Readonly<Record<keyof Of, MetricDescription>>

function named<Of extends Readonly<Record<string, Told>>>(
  told: Of,
  type: MetricDescription['type'],
  more: MetricDescription['labels'] = {},
): Named<Of> {
  const described = Object.entries(told).map(([name, { description, unit, labels }]) => {
    const [suffix, scale] = suffixes[unit] ?? ['', 1]
    const total = type === 'counter' ? '_total' : ''
    const metric = `parley_${name.replaceAll('.', '_')}${suffix}${total}`
    return [name, { name: metric, type, help: description, labels: { ...labels, ...more }, scale }]
  })
  return Object.fromEntries(described) as Named<Of>
}

export const metricNames = {
  counters: named(counters, 'counter'),
  histograms: named(histograms, 'histogram'),
  spans: named(spans, 'histogram', { result }),
  gauges: named(gauges, 'gauge'),
}
