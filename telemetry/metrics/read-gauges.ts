/**
 * Owns the numbers that are read when somebody looks. A reading that fails, or does not come in time (a database that is away), is left out of
 * that answer, and so is one that is still on its way from the time before: nothing is asked twice at once.
 */
import { Gauge as PrometheusGauge, type Registry } from 'prom-client'
import type { Clock } from '../../model/clock.ts'
import { deadline } from '../../model/deadline.ts'
import type { Gauge, Gauges, Reading } from '../../model/telemetry.ts'
import { declares } from './label-sets.ts'
import { metricNames } from './metric-names.ts'

type Readings = readonly Reading<Gauge>[]

/** Ms, of all readings together. */
const readWithin = 1_000

export function createReadGauges(registry: Registry, clock: Pick<Clock, 'after'>): Gauges & { read(): Promise<void> } {
  const sources = new Map<Gauge, () => Promise<void>>()
  return {
    watch(name, read) {
      sources.set(name, createSource(registry, clock, name, read as () => Readings | Promise<Readings>))
    },
    async read() {
      await Promise.all([...sources.values()].map((read) => read()))
    },
  }
}

function createSource(
  registry: Registry,
  clock: Pick<Clock, 'after'>,
  name: Gauge,
  read: () => Readings | Promise<Readings>,
): () => Promise<void> {
  const { name: metric, help, labels: declared, scale } = metricNames.gauges[name]
  const gauge = new PrometheusGauge({ name: metric, help, labelNames: Object.keys(declared), registers: [registry] })
  let isUnderWay = false
  const ask = async (): Promise<Readings> => {
    isUnderWay = true
    try {
      return await read()
    } catch {
      return []
    } finally {
      isUnderWay = false
    }
  }
  return async () => {
    const readings = isUnderWay ? [] : await deadline(clock, readWithin, ask(), () => [])
    gauge.reset()
    if (Object.keys(declared).length === 0 && readings.length === 0) gauge.remove()
    for (const { labels, value } of readings)
      if (declares(declared, labels) && Number.isFinite(value)) gauge.set(labels, value * scale)
  }
}
