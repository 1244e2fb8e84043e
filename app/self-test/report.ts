/** Owns how the self-test's report reads: a table with one line per proof. */
import type { SelfTestReport } from './self-test.ts'

export function reportOf(report: SelfTestReport): string {
  const rows: [string, string][] = [
    ['call', report.callId],
    ['first agent audio', inMs(report.firstAudioMs)],
    ['turns understood', `${report.turnsUnderstood} of ${report.turnsAsked}`],
    ['silent after barge-in', inMs(report.bargeInMs)],
    [
      'webhooks verified',
      `${report.webhooksVerified}${report.webhooksRefused ? `, ${report.webhooksRefused} refused` : ''}`,
    ],
    ['recording', report.recordingSeconds === null ? 'none' : `${report.recordingSeconds.toFixed(1)} s`],
    ['outcome', report.outcome],
    ['self-test', report.passed ? 'passed' : 'FAILED'],
  ]
  const [left, right] = [0, 1].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) as [
    number,
    number,
  ]
  const line = (from: string, between: string, to: string): string =>
    `${from}${'─'.repeat(left + 2)}${between}${'─'.repeat(right + 2)}${to}`
  const body = rows.map(([name, value]) => `│ ${name.padEnd(left)} │ ${value.padEnd(right)} │`)
  return [line('┌', '┬', '┐'), ...body, line('└', '┴', '┘')].join('\n')
}

const inMs = (ms: number | null): string => (ms === null ? 'none' : `${Math.round(ms)} ms`)
