/** Owns how checks read on a terminal: a line each, what to mend below those that need it. */

export type CheckReport = {
  readonly name: string
  readonly verdict: 'passed' | 'warned' | 'failed' | 'skipped'
  readonly expected: string
  readonly got: string
  readonly mend: string | null
}

const marks = { passed: '✓', warned: '!', failed: '✗', skipped: '–' } as const
const indent = '    '
/** What the other side answered must not write on the terminal of an operator. */
const plain = (text: string): string => text.replace(/\p{Cc}/gu, '?')

/** `width`: of the names. */
export function checkLinesOf({ name, verdict, expected, got, mend }: CheckReport, width: number): string[] {
  const line = `${marks[verdict]} ${name.padEnd(width)}  ${plain(got)}`
  if (verdict === 'passed' || verdict === 'skipped') return [line]
  return [line, `${indent}expected: ${expected}`, ...(mend === null ? [] : [`${indent}mend:     ${mend}`])]
}

export function checkSummaryOf(checks: readonly CheckReport[]): string {
  const count = (verdict: CheckReport['verdict']): number => checks.filter((check) => check.verdict === verdict).length
  const parts = [`${count('passed')} passed`, `${count('warned')} with a warning`, `${count('failed')} failed`]
  return [...parts, ...(count('skipped') > 0 ? [`${count('skipped')} skipped`] : [])].join(', ')
}
