/** Owns how runs read in a terminal. Pure. */
import type { Fault } from './judge-call.ts'
import { measureText, type Difference, type Results } from './results.ts'
import type { Run } from './run-suite.ts'
import { measureNames } from './scenario.ts'

export const runLine = ({ passed, scenario, seed, callId }: Run): string =>
  `${passed ? 'passed' : 'FAILED'}  ${scenario} (seed ${seed})${callId === null ? '' : `  ${callId}`}`

export function faultText({ field, wanted, got, atMs }: Fault): string {
  const when = atMs === null ? '' : ` at ${(atMs / 1000).toFixed(1)} s`
  return `        ${field}${when}: wanted ${wanted}; got ${got}`
}

/** The measures of all calls, how often each scenario passed, and what is other than the last time. */
export function suiteText(results: Results, differences: readonly Difference[] | null): string {
  const width = Math.max(...measureNames.map((name) => name.length))
  const measures = measureNames.map((name) => `  ${name.padEnd(width)}  ${measureText(name, results.measures[name])}`)
  const several = results.scenarios.filter(({ runs }) => runs > 1)
  const passes = several.map(
    ({ name, runs, passed, passAll }) =>
      `  ${name}: ${passed} of ${runs}; pass^k ${passAll.map((share) => share.toFixed(2)).join(' ')}`,
  )
  const changed = differences?.map(({ what, before, now }) => `  ${what}: ${before}, now ${now}`) ?? []
  return [
    '\nTurn-taking: value (events)',
    ...measures,
    ...(passes.length > 0 ? ['\nScenarios', ...passes] : []),
    ...(changed.length > 0 ? ['\nOther than the last time', ...changed] : []),
  ].join('\n')
}
