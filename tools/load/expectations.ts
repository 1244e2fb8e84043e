/** Owns what a load as a whole is expected to keep: `setUp.p95<500`, `errors<1` (percent of the calls that were due), `mos.p50>3.5`. */
import { measures, type Measure } from './load-job.ts'
import type { LoadResult, Quantiles } from './load-figures.ts'

export type Expectation = {
  readonly text: string
  readonly of: { readonly measure: Measure; readonly quantile: Exclude<keyof Quantiles, 'count'> } | 'errors'
  readonly sign: '<' | '>'
  readonly limit: number
}

const quantiles = ['min', 'p50', 'p90', 'p95', 'p99', 'max'] as const

/** A string says what is wrong. */
export function readExpectation(text: string): Expectation | string {
  const [, name = '', quantile = '', sign, limit] =
    /^(\w+)(?:\.(\w+))?\s*([<>])\s*(\d+(?:\.\d+)?)$/.exec(text.trim()) ?? []
  if (sign === undefined || limit === undefined)
    return `--expect: ${JSON.stringify(text)} does not read like setUp.p95<500 or errors<1`
  const common = { text, sign: sign === '<' ? '<' : '>', limit: Number(limit) } as const
  if (name === 'errors' && quantile === '') return { ...common, of: 'errors' }
  const measure = measures.find((one) => one === name)
  if (!measure) return `--expect: ${JSON.stringify(name)} is none of errors, ${measures.join(', ')}`
  const found = quantiles.find((one) => one === quantile)
  if (!found) return `--expect: ${name} needs one of ${quantiles.join(', ')} behind a dot, as in ${name}.p95`
  return { ...common, of: { measure, quantile: found } }
}

export type Verdict = { readonly text: string; readonly got: number | null; readonly met: boolean }

/** What was not measured at all is not met. */
export function verdictOf({ text, of, sign, limit }: Expectation, result: LoadResult): Verdict {
  const got = of === 'errors' ? failedPercent(result) : (result.measured[of.measure]?.[of.quantile] ?? null)
  return { text, got, met: got !== null && (sign === '<' ? got < limit : got > limit) }
}

export const failedPercent = ({ counts }: Pick<LoadResult, 'counts'>): number | null =>
  counts.due === 0 ? null : (100 * counts.failed) / counts.due
