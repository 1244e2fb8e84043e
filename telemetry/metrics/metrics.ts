/**
 * Owns the numbers of this process as Prometheus reads them: what is told to the port (model/telemetry.ts) is added up in memory, and written
 * out when somebody looks. Labels are what the port declares and nothing else, so that what is kept has a bound.
 */
import { setImmediate } from 'node:timers/promises'
import { Counter, Histogram, Registry } from 'prom-client'
import type { Clock } from '../../model/clock.ts'
import type { Gauges, Telemetry } from '../../model/telemetry.ts'
import { buckets } from './buckets.ts'
import { createReadGauges } from './read-gauges.ts'
import { createRefused, type Refused } from './refused.ts'
import { declares, labelSets } from './label-sets.ts'
import { metricNames, type MetricDescription } from './metric-names.ts'
import { openProcessMetrics, type ProcessFacts, type ProcessMetrics } from './process-metrics.ts'

export type Metrics = {
  readonly telemetry: Telemetry
  readonly gauges: Gauges
  readonly watchLoops: ProcessMetrics['watchLoops']
  /** All of it in the text format of Prometheus. Who asks while somebody is answered gets the same answer. Never fails. */
  scrape(): Promise<string>
  /** Idempotent. */
  close(): void
}

type Deps = ProcessFacts & { readonly clock: Clock }

/** Series of one counter that are there from the beginning, so that the first of anything is seen as a rise. */
const mostBegun = 100

export function createMetrics(deps: Deps): Metrics {
  const registry = new Registry()
  const refused = createRefused(registry)
  const counters = mapOf(metricNames.counters, (metric) => openCounter(registry, refused, metric))
  const histograms = mapOf(metricNames.histograms, (metric, name) =>
    openHistogram(registry, refused, metric, buckets[name]),
  )
  const spans = mapOf(metricNames.spans, (metric, name) => openHistogram(registry, refused, metric, buckets[name]))
  const gauges = createReadGauges(registry, deps.clock)
  const ofProcess = openProcessMetrics(registry, deps)
  const telemetry: Telemetry = {
    isOn: true,
    count: (name, labels, by = 1) => counters[name](labels, by),
    observe: (name, value, labels, times = 1) => histograms[name](labels, value, times),
    span(name, labels, _about, began) {
      const since = deps.now()
      const until = (ended?: number): number => {
        // Of what was before now, both times are the clock's.
        if (began === undefined) return deps.now() - since
        return Math.max(0, (ended ?? deps.clock.now()) - began)
      }
      return { end: (result, ended) => spans[name]({ ...labels, result }, until(ended), 1) }
    },
  }
  let underWay: Promise<string> | null = null
  const scrape = async (): Promise<string> => {
    await gauges.read()
    return written(registry)
  }
  return {
    telemetry,
    gauges,
    watchLoops: ofProcess.watchLoops,
    scrape: () => (underWay ??= scrape().finally(() => void (underWay = null))),
    close: () => ofProcess.close(),
  }
}

/** One after the other, and others come to their turn in between: sound may be sent by the same thread. */
async function written(registry: Registry): Promise<string> {
  const texts: string[] = []
  for (const { name } of registry.getMetricsAsArray()) {
    texts.push(await registry.getSingleMetricAsString(name))
    await setImmediate()
  }
  return `${texts.join('\n')}\n`
}

const mapOf = <Name extends string, Opened>(
  named: Readonly<Record<Name, MetricDescription>>,
  open: (metric: MetricDescription, name: Name) => Opened,
): Readonly<Record<Name, Opened>> =>
  Object.fromEntries(
    Object.entries<MetricDescription>(named).map(([name, metric]) => [name, open(metric, name as Name)]),
  ) as Record<Name, Opened>

function openCounter(registry: Registry, refused: Refused, { name, help, labels: declared, scale }: MetricDescription) {
  const counter = new Counter({ name, help, labelNames: Object.keys(declared), registers: [registry] })
  const begun = labelSets(declared)
  if (begun.length <= mostBegun) for (const labels of begun) counter.inc(labels, 0)
  return (labels: object, by: number): void => {
    if (!declares(declared, labels) || !isAmount(by)) refused.inc()
    else counter.inc(labels, by * scale)
  }
}

function openHistogram(
  registry: Registry,
  refused: Refused,
  { name, help, labels: declared, scale }: MetricDescription,
  limits: readonly number[],
) {
  const labelNames = Object.keys(declared)
  const histogram = new Histogram({ name, help, labelNames, buckets: [...limits], registers: [registry] })
  return (labels: object, value: number, times: number): void => {
    if (!declares(declared, labels) || !isAmount(value) || !isTimes(times)) refused.inc()
    else for (let nth = 0; nth < times; nth++) histogram.observe(labels, value * scale)
  }
}

const isAmount = (number: number): boolean => Number.isFinite(number) && number >= 0
/** The slots of a ticker in ten seconds, and room. */
const mostTimes = 100_000
const isTimes = (times: number): boolean => Number.isInteger(times) && times >= 0 && times <= mostTimes
