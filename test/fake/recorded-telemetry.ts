/** Owns telemetry that keeps what it is told for the test. What is not declared as it is told is refused: an exporter would drop it. */
import type { LogFields } from '../../model/log.ts'
import { counters, histograms, spans, type Telemetry } from '../../model/telemetry.ts'

type Labels = Readonly<Record<string, string>>

export type Told = { readonly name: string; readonly labels: Labels }

export type RecordedTelemetry = Telemetry & {
  readonly counted: (Told & { readonly by: number })[]
  readonly observed: (Told & { readonly value: number; readonly times: number })[]
  /** `result` is null while the work is under way. */
  readonly spans: (Told & { readonly about: LogFields; result: 'ok' | 'failed' | null })[]
  /** Of all labels that have these values among theirs. */
  total(name: keyof typeof counters, labels?: Labels): number
  values(name: keyof typeof histograms, labels?: Labels): number[]
}

export function createRecordedTelemetry(): RecordedTelemetry {
  const counted: RecordedTelemetry['counted'] = []
  const observed: RecordedTelemetry['observed'] = []
  const kept: RecordedTelemetry['spans'] = []
  return {
    isOn: true,
    counted,
    observed,
    spans: kept,
    count(name, labels, by = 1) {
      assertNumbers(by)
      counted.push({ name, labels: declaredLabels(counters[name].labels, labels), by })
    },
    observe(name, value, labels, times = 1) {
      assertNumbers(value, times)
      observed.push({ name, value, labels: declaredLabels(histograms[name].labels, labels), times })
    },
    span(name, labels, about = {}) {
      const declared = declaredLabels(spans[name].labels, labels)
      const span: RecordedTelemetry['spans'][number] = { name, labels: declared, about, result: null }
      kept.push(span)
      return {
        end(result) {
          if (span.result !== null) throw new Error(`a span of ${name} ended twice`)
          span.result = result
        },
      }
    },
    total: (name, labels = {}) =>
      counted.filter((told) => told.name === name && hasLabels(told, labels)).reduce((sum, { by }) => sum + by, 0),
    values: (name, labels = {}) =>
      observed
        .filter((told) => told.name === name && hasLabels(told, labels))
        .flatMap(({ value, times }) => Array.from({ length: times }, () => value)),
  }
}

const hasLabels = (told: Told, labels: Labels): boolean =>
  Object.entries(labels).every(([label, value]) => told.labels[label] === value)

/** The labels as a test compares them. */
function declaredLabels(declared: Readonly<Record<string, readonly string[]>>, told: object): Labels {
  const given = { ...told } as Labels
  const isAsDeclared =
    Object.keys(given).length === Object.keys(declared).length &&
    Object.entries(declared).every(([label, values]) => values.includes(given[label] ?? ''))
  if (!isAsDeclared) throw new Error(`labels that are not declared: ${JSON.stringify(given)}`)
  return given
}

function assertNumbers(...numbers: readonly number[]): void {
  if (!numbers.every((number) => Number.isFinite(number) && number >= 0))
    throw new Error(`no number to tell: ${numbers.join(', ')}`)
}
