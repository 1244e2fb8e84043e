/** Owns how a run reads: a table of faults and invariants with figures, and each violation with its call and the lines of the logs. Pure. */
import { areSilencesJudged, invariants, type Violation } from './judge.ts'
import type { Kill } from './kill-cycles.ts'
import type { RoundReport } from './round.ts'

const inMs = (ms: number): string => String(Math.round(ms))

/** 0 of nothing. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0
}

/** One row for each round: `0` is what must stand there; silences are ms beyond `usual`. */
export function tableOf(reports: readonly RoundReport[]): string {
  const rows = reports.map((report) => {
    const { round, whom, calls, extra, lost, said, violations } = report
    const done = calls.filter(
      ({ row, endedAt }) => row?.outcome === 'completed' && row.endedBy === 'agent' && endedAt !== null,
    )
    return {
      fault: round.fault,
      whom,
      's after/for': `${(round.after / 1000).toFixed(1)}/${(round.lasts / 1000).toFixed(1)}`,
      done: `${done.length}/${calls.length}`,
      'silence p50': inMs(quantile(extra, 0.5)),
      max: inMs(Math.max(0, ...extra)),
      lost: `${lost}/${said}`,
      ...Object.fromEntries(invariants.map((name) => [name, String(countOf(violations, name))])),
      'own delay': inMs(report.ownDelay),
      'host %': String(Math.round(100 * report.stolen)),
    }
  })
  return tableText(rows)
}

const countOf = (violations: readonly Violation[], name: string): number =>
  violations.filter(({ invariant }) => invariant === name).length

function tableText(rows: readonly Readonly<Record<string, string>>[]): string {
  const names = Object.keys(rows[0] ?? {})
  const widths = names.map((name) => Math.max(name.length, ...rows.map((row) => row[name]?.length ?? 0)))
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, index) => (index < 2 ? cell.padEnd(widths[index] ?? 0) : cell.padStart(widths[index] ?? 0))).join(' | ')} |`
  const body = rows.map((row) => line(names.map((name) => row[name] ?? '')))
  return [line(names), line(widths.map((width) => '-'.repeat(width))), ...body].join('\n')
}

/** What is not known of the rounds; empty where all is. */
export function unjudgedText(reports: readonly RoundReport[]): string {
  const unjudged = reports.filter((report) => !areSilencesJudged(report)).map(({ round }) => round.fault)
  if (unjudged.length === 0) return ''
  return `Silences are not judged where the host took more than a tenth of the processors: ${unjudged.join(', ')}\n`
}

/** Of the round without a fault. */
export function costText([first]: readonly RoundReport[]): string {
  const costs = Object.entries(first?.cpu ?? {}).map(([role, ms]) => `${role} ${ms.toFixed(1)}`)
  return `CPU of a call that talks for a second, ms: ${costs.join(', ')}`
}

export const violationText = (
  fault: string,
  { invariant, callId, text }: Violation,
  lines: readonly string[],
): string =>
  [`${fault}: ${invariant}${callId === null ? '' : ` ${callId}`}: ${text}`, ...lines.map((line) => `    ${line}`)].join(
    '\n',
  )

export type KillsReport = {
  readonly kills: readonly Kill[]
  readonly violations: readonly Violation[]
  /** Of all calls: how often each end. */
  readonly ends: ReadonlyMap<string, number>
  /** Telephones and browsers that had a call, and attempts that came to none. */
  readonly passed: number
  readonly unplaced: number
  /** Events that came again under their id. */
  readonly again: number
}

/** What must be 0 stands last. */
export function killsText({ kills, violations, ends, passed, unplaced, again }: KillsReport): string {
  const kinds = Map.groupBy(kills, ({ name }) => name.replace(/-\d+$/, ''))
  const takeovers = [...kinds].map(([kind, of]) => {
    const took = of.filter(({ had }) => had > 0).map((kill) => kill.took)
    const had = of.reduce((sum, kill) => sum + kill.had, 0)
    const times = [0.5, 0.95, 1].map((share) => inMs(quantile(took, share))).join(' / ')
    return `  ${kind}: ${of.length} kills, ${had} calls and lines another's after ${times} ms (p50, p95, most)`
  })
  const lost = violations.filter(({ invariant }) => invariant === 'rows').length
  const doubled = violations.filter(({ invariant }) => invariant === 'ended once').length
  return [
    `\n${kills.length} kills`,
    ...takeovers,
    `  ${passed} callers had a call, ${unplaced} attempts came to none; ${again} events came again under their id`,
    ...[...ends].map(([end, count]) => `  ${count} calls: ${end}`),
    `  ${lost} calls lost, ${doubled} without exactly one call.ended, ${violations.length - lost - doubled} other violations`,
  ].join('\n')
}
