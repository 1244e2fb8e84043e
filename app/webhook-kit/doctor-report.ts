/** Owns how an examination reads on a terminal: a line per check, what to mend below those that need it. */
import type { CheckReport, Examination } from './doctor.ts'

const marks = { passed: '✓', warned: '!', failed: '✗', skipped: '–' } as const
const indent = '    '

export function doctorReportOf({ url, note, checks, passed }: Examination): string {
  const width = Math.max(...checks.map(({ name }) => name.length))
  const lines = checks.flatMap((check) => linesOf(check, width))
  const verdict = passed ? 'the receiver is sound' : 'the receiver needs mending'
  const notes = note === null ? [] : [`note: ${note}`]
  return [url, ...lines, '', ...notes, `${summaryOf(checks)}: ${verdict}`].join('\n')
}

function linesOf({ name, verdict, expected, got, mend }: CheckReport, width: number): string[] {
  const line = `${marks[verdict]} ${name.padEnd(width)}  ${got}`
  if (verdict === 'passed' || verdict === 'skipped') return [line]
  return [line, `${indent}expected: ${expected}`, ...(mend === null ? [] : [`${indent}mend:     ${mend}`])]
}

function summaryOf(checks: readonly CheckReport[]): string {
  const count = (verdict: CheckReport['verdict']): number => checks.filter((check) => check.verdict === verdict).length
  const parts = [`${count('passed')} passed`, `${count('warned')} with a warning`, `${count('failed')} failed`]
  return [...parts, ...(count('skipped') > 0 ? [`${count('skipped')} skipped`] : [])].join(', ')
}
