/** Owns how runs read in a terminal. Pure. */
import type { Fault } from './judge-call.ts'
import type { Run } from './run-suite.ts'

export const runLine = ({ passed, scenario, seed, callId }: Run): string =>
  `${passed ? 'passed' : 'FAILED'}  ${scenario} (seed ${seed})${callId === null ? '' : `  ${callId}`}`

export function faultText({ field, wanted, got, atMs }: Fault): string {
  const when = atMs === null ? '' : ` at ${(atMs / 1000).toFixed(1)} s`
  return `        ${field}${when}: wanted ${wanted}; got ${got}`
}
