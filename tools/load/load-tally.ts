/** Owns what a process of the load has seen since it told last. */
import type { Batch, Counter, Measure } from './load-job.ts'

export type LoadTally = {
  value(measure: Measure, value: number): void
  count(counter: Counter, by?: number): void
  error(kind: string): void
  unmet(text: string): void
  /** Empties it. */
  take(): Batch
}

/** Kinds of errors, and unmet expectations in words, between two batches: what is beyond it is counted under one name. */
const maxKinds = 100

export function createLoadTally(): LoadTally {
  let values: Partial<Record<Measure, number[]>> = {}
  let counts: Partial<Record<Counter, number>> = {}
  let errors: Record<string, number> = {}
  let unmet: string[] = []
  return {
    value: (measure, value) => void (values[measure] ??= []).push(value),
    count: (counter, by = 1) => void (counts[counter] = (counts[counter] ?? 0) + by),
    error(kind) {
      const name = kind in errors || Object.keys(errors).length < maxKinds ? kind : 'other errors'
      errors[name] = (errors[name] ?? 0) + 1
    },
    unmet: (text) => void (unmet.length < maxKinds && unmet.push(text)),
    take() {
      const batch = { values, counts, errors, unmet }
      values = {}
      counts = {}
      errors = {}
      unmet = []
      return batch
    },
  }
}
