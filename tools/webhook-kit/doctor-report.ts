/** Owns how an examination reads on a terminal. */
import { checkLinesOf, checkSummaryOf } from '../check-lines.ts'
import type { Examination } from './doctor.ts'

export function doctorReportOf({ url, note, checks, passed }: Examination): string {
  const width = Math.max(...checks.map(({ name }) => name.length))
  const lines = checks.flatMap((check) => checkLinesOf(check, width))
  const verdict = passed ? 'the receiver is sound' : 'the receiver needs mending'
  const notes = note === null ? [] : [`note: ${note}`]
  return [url, ...lines, '', ...notes, `${checkSummaryOf(checks)}: ${verdict}`].join('\n')
}
