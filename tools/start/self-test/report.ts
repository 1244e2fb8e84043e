/** Owns how the self-test's report reads: a table with one line per proof. */
import { rowsOf } from './extracted.ts'
import type { PhoneCallReport, PhoneTestReport } from './phone-test.ts'
import type { WebTestReport } from './web-test.ts'

type Rows = [string, string][]

/** `phone` null: there is no telephone edge in this process; text: why it could not be tried. */
export function reportOf(web: WebTestReport | string, phone: PhoneTestReport | string | null): string {
  const rows = [...webRows(web), ...(phone === null ? [] : phoneRows(phone))]
  const passed = [web, phone].every((part) => part === null || (typeof part !== 'string' && part.passed))
  return tableOf([...rows, ['self-test', passed ? 'passed' : 'FAILED']])
}

function webRows(report: WebTestReport | string): Rows {
  if (typeof report === 'string') return [['web call', `FAILED: ${report}`]]
  const refused = report.webhooksRefused ? `, ${report.webhooksRefused} refused` : ''
  return [
    ['web call', `${report.outcome}, ${report.callId}`],
    ['  first agent audio', inMs(report.firstAudioMs)],
    ['  turns understood', `${report.turnsUnderstood} of ${report.turnsAsked}`],
    ['  silent after barge-in', inMs(report.bargeInMs)],
    ['  webhooks verified', `${report.webhooksVerified}${refused}`],
    ['  recording', report.recordingSeconds === null ? 'none' : `${report.recordingSeconds.toFixed(1)} s`],
    ...rowsOf(report.extracted),
  ]
}

function phoneRows(report: PhoneTestReport | string): Rows {
  if (typeof report === 'string') return [['phone calls', `FAILED: ${report}`]]
  return [...phoneCallRows('call by SIP', report.inbound), ...phoneCallRows('call back by SIP', report.outbound)]
}

const phoneCallRows = (name: string, call: PhoneCallReport): Rows => [
  [name, `${call.outcome}, ${call.callId}`],
  ['  answered after', inMs(call.answeredMs)],
  ['  first agent audio', `${inMs(call.firstAudioMs)} later, ${call.codec.toUpperCase()}`],
  ['  turns understood', `${call.turnsUnderstood} of ${call.turnsAsked}`],
  ...rowsOf(call.extracted),
]

function tableOf(rows: Rows): string {
  const widths = [0, 1].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const [left = 0, right = 0] = widths
  const line = (from: string, between: string, to: string): string =>
    `${from}${'─'.repeat(left + 2)}${between}${'─'.repeat(right + 2)}${to}`
  const body = rows.map(([name, value]) => `│ ${name.padEnd(left)} │ ${value.padEnd(right)} │`)
  return [line('┌', '┬', '┐'), ...body, line('└', '┴', '┘')].join('\n')
}

const inMs = (ms: number | null): string => (ms === null ? 'none' : `${Math.round(ms)} ms`)
