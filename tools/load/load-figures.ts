/**
 * Owns the figures of a load: histograms over all of it (HdrHistogram), and windows for the plots. A wait is measured from when its call was due, so that
 * nothing is omitted because the tester waited along.
 */
import { build, type Histogram } from 'hdr-histogram-js'
import { counters, measures, type Batch, type Counter, type Measure } from './load-job.ts'
import type { Cost } from './loaded-cost.ts'

export type Quantiles = {
  readonly count: number
  readonly p50: number
  readonly p90: number
  readonly p95: number
  readonly p99: number
  readonly max: number
  readonly min: number
}

export type Window = {
  /** Since the beginning, ms. */
  readonly at: number
  readonly measured: Readonly<
    Partial<Record<Measure, { readonly p50: number; readonly p95: number; readonly max: number }>>
  >
  readonly counts: Readonly<Record<Counter, number>>
  readonly errors: number
  /** Percent of a core; null: nobody tells. */
  readonly cpuPercent: number | null
  readonly rssMb: number | null
}

export type LoadFigures = {
  add(batch: Batch): void
  cost(cost: Cost | null, at: number): void
  /** Ends the window under way. */
  turn(at: number): void
  read(): LoadResult
}

export type LoadResult = {
  readonly measured: Readonly<Record<Measure, Quantiles | null>>
  readonly counts: Readonly<Record<Counter, number>>
  /** Most first. */
  readonly errors: readonly (readonly [string, number])[]
  readonly unmet: readonly string[]
  readonly windows: readonly Window[]
  /** CPU seconds of the service during the load; null: nobody told. */
  readonly cpuSeconds: number | null
  readonly maxRssMb: number | null
}

/** Histograms count whole numbers: hundredths. */
const scale = 100
const maxUnmet = 1_000
const maxKinds = 500

export function createLoadFigures(): LoadFigures {
  const histograms = new Map(measures.map((measure) => [measure, histogram()] as const))
  const totals = zeroCounts()
  const errors = new Map<string, number>()
  const unmet: string[] = []
  const windows: Window[] = []
  const costs = createCosts()
  let current = new Map<Measure, number[]>()
  let [counts, failures] = [zeroCounts(), 0]

  function addCounts(given: Batch['counts']): void {
    for (const counter of counters) {
      totals[counter] += given[counter] ?? 0
      counts[counter] += given[counter] ?? 0
    }
  }
  return {
    add(batch) {
      for (const measure of measures)
        for (const value of batch.values[measure] ?? []) {
          histograms.get(measure)?.recordValue(Math.max(0, Math.round(value * scale)))
          const values = current.get(measure)
          if (values) values.push(value)
          else current.set(measure, [value])
        }
      addCounts(batch.counts)
      for (const [kind, times] of Object.entries(batch.errors)) {
        const name = errors.has(kind) || errors.size < maxKinds ? kind : 'other errors'
        errors.set(name, (errors.get(name) ?? 0) + times)
        failures += times
      }
      unmet.push(...batch.unmet.slice(0, maxUnmet - unmet.length))
    },
    cost: costs.add,
    turn(at) {
      const measured = Object.fromEntries([...current].map(([measure, values]) => [measure, briefOf(values)]))
      // How many run is a level and no count.
      const levels = { ...counts, running: totals.running }
      windows.push({ at, measured, counts: levels, errors: failures, ...costs.turn() })
      current = new Map()
      counts = zeroCounts()
      failures = 0
    },
    read: () => ({
      measured: Object.fromEntries(
        measures.map((measure) => [measure, quantilesOf(histograms.get(measure))]),
      ) as LoadResult['measured'],
      counts: { ...totals },
      errors: [...errors].toSorted((first, second) => second[1] - first[1]),
      unmet: [...unmet],
      windows: [...windows],
      ...costs.sum(),
    }),
  }
}

const histogram = (): Histogram =>
  build({ bitBucketSize: 32, autoResize: true, highestTrackableValue: 1e7, numberOfSignificantValueDigits: 3 })

const zeroCounts = (): Record<Counter, number> =>
  Object.fromEntries(counters.map((counter) => [counter, 0])) as Record<Counter, number>

function quantilesOf(given: Histogram | undefined): Quantiles | null {
  if (!given || given.totalCount === 0) return null
  const at = (percentile: number): number => given.getValueAtPercentile(percentile) / scale
  const { totalCount: count, maxValue } = given
  return { count, min: at(0), p50: at(50), p90: at(90), p95: at(95), p99: at(99), max: maxValue / scale }
}

function briefOf(values: readonly number[]): { p50: number; p95: number; max: number } {
  const sorted = values.toSorted((first, second) => first - second)
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0
  return { p50: at(0.5), p95: at(0.95), max: sorted.at(-1) ?? 0 }
}

function createCosts() {
  let first: Cost | null = null
  let last: { readonly cost: Cost; readonly at: number } | null = null
  let begun: { readonly cost: Cost; readonly at: number } | null = null
  let maxRss: number | null = null
  return {
    add(cost: Cost | null, at: number): void {
      if (cost === null) return
      first ??= cost
      begun ??= { cost, at }
      last = { cost, at }
      maxRss = Math.max(maxRss ?? 0, cost.rssBytes / 1e6)
    },
    turn(): Pick<Window, 'cpuPercent' | 'rssMb'> {
      if (!last || !begun || last.at <= begun.at) return { cpuPercent: null, rssMb: last && last.cost.rssBytes / 1e6 }
      const seconds = last.cost.cpuSeconds - begun.cost.cpuSeconds
      const cpuPercent = (seconds * 100_000) / (last.at - begun.at)
      begun = last
      return { cpuPercent, rssMb: last.cost.rssBytes / 1e6 }
    },
    sum: () => ({ cpuSeconds: first && last && last.cost.cpuSeconds - first.cpuSeconds, maxRssMb: maxRss }),
  }
}
