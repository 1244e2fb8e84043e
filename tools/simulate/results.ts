/** Owns what a suite came to: of each scenario how often it passed, the measures of all calls together, and what is other than the last time. Pure. */
import { measureWords, valueWords } from '../../console/measure-words.js'
import { measureNames, type MeasureName } from './scenario.ts'
import { meanOf, type Measure } from './measures.ts'
import type { Run } from './run-suite.ts'

export const resultsVersion = 1

export type ScenarioResult = {
  readonly name: string
  readonly runs: number
  readonly passed: number
  /** pass^1, pass^2, …: how likely so many runs all pass, by those that did. */
  readonly passAll: readonly number[]
}

export type Results = {
  readonly version: typeof resultsVersion
  readonly at: string
  /** What was called. */
  readonly url: string
  readonly seeds: readonly number[]
  readonly scenarios: readonly ScenarioResult[]
  readonly measures: Readonly<Record<MeasureName, Omit<Measure, 'samples'>>>
  readonly runs: readonly (Omit<Run, 'track' | 'measures'> & {
    readonly measures: Readonly<Record<MeasureName, number | null>> | null
  })[]
}

export function resultsOf(runs: readonly Run[], { at, url, seeds }: Pick<Results, 'at' | 'url' | 'seeds'>): Results {
  const byScenario = Map.groupBy(runs, ({ scenario }) => scenario)
  return {
    version: resultsVersion,
    at,
    url,
    seeds,
    scenarios: [...byScenario].map(([name, of]) => scenarioResult(name, of)),
    measures: byName((name) => withoutSamples(together(runs, name))),
    runs: runs.map(({ track: _, measures, ...run }) => ({
      ...run,
      measures: measures && byName((name) => measures.values[name].value),
    })),
  }
}

function scenarioResult(name: string, runs: readonly Run[]): ScenarioResult {
  const passed = runs.filter((run) => run.passed).length
  const passAll = runs.map((_, index) => chosen(passed, index + 1) / chosen(runs.length, index + 1))
  return { name, runs: runs.length, passed, passAll }
}

/** Binomial coefficient: ways to choose `count` of `all`. */
const chosen = (all: number, count: number): number => {
  let ways = 1
  for (let i = 0; i < count; i++) ways *= (all - i) / (i + 1)
  return Math.max(0, ways)
}

function together(runs: readonly Run[], name: MeasureName): Measure {
  const measured = runs.flatMap(({ measures }) => (measures ? [measures.values[name]] : []))
  const samples = measured.flatMap((measure) => measure.samples)
  const reason = measured.find((measure) => measure.reason !== null)?.reason ?? 'there was no call'
  const mean = meanOf(samples, reason)
  if (name === 'deadAirTotal') return { ...mean, value: sum(samples) / Math.max(1, measured.length), reason: null }
  if (name === 'deadAirLongest') return { ...mean, value: Math.max(0, ...samples), reason: null }
  if (name === 'deadAirOver3s') return { ...mean, value: sum(measured.map(({ value }) => value ?? 0)), reason: null }
  return mean
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
const withoutSamples = ({ samples: _, ...measure }: Measure) => measure

const byName = <Value>(of: (name: MeasureName) => Value): Readonly<Record<MeasureName, Value>> =>
  Object.fromEntries(measureNames.map((name) => [name, of(name)])) as Record<MeasureName, Value>

export type Difference = { readonly what: string; readonly before: string; readonly now: string }

/** What both have: scenarios that passed more or less often, and measures that moved by a tenth and more. */
export function differencesOf(before: Results, now: Results): Difference[] {
  const scenarios = now.scenarios.flatMap(({ name, runs, passed }): Difference[] => {
    const then = before.scenarios.find((scenario) => scenario.name === name)
    if (!then || then.passed / then.runs === passed / runs) return []
    return [{ what: name, before: `${then.passed} of ${then.runs} passed`, now: `${passed} of ${runs} passed` }]
  })
  const measures = measureNames.flatMap((name): Difference[] => {
    const [then, value] = [before.measures[name]?.value ?? null, now.measures[name].value]
    const isSame = then === value || (then !== null && value !== null && Math.abs(value - then) < Math.abs(then) / 10)
    return isSame ? [] : [{ what: name, before: valueWords(name, then), now: valueWords(name, value) }]
  })
  return [...scenarios, ...measures]
}

/** With how many events it is of. */
export function measureText(name: MeasureName, { value, events, reason }: Omit<Measure, 'samples'>): string {
  const words = measureWords({ name, value, events, reason })
  return value === null ? words : `${words} (${events})`
}
