/** Owns how a soak reads: a table of what a process has, and one of its tables. Pure. */
import type { TableVerdict, Verdict } from './growth.ts'

export function processTable(verdicts: readonly Verdict[]): string {
  const rows = verdicts.map(({ name, unit, mean, rise, atRest, allowed, grows }) => {
    const text = (value: number): string =>
      unit === 'bytes' ? `${(value / 1024 / 1024).toFixed(1)} MB` : value.toFixed(1)
    return [
      name,
      text(mean),
      text(rise),
      atRest ? `${text(atRest.first)} → ${text(atRest.last)}` : '',
      text(allowed),
      verdictText(grows),
    ]
  })
  return tableText(['of the process', 'mean', 'rise under load', 'at rest', 'allowed', ''], rows)
}

/** Those with rows. */
export function tablesTable(verdicts: readonly TableVerdict[]): string {
  const rows = verdicts
    .filter(({ rows: count, grown }) => count > 0 || grown !== 0)
    .map(({ table, rows: count, grown, forEachCall, grows }) => [
      table,
      String(count),
      String(grown),
      forEachCall ? `${forEachCall.before.toFixed(1)} → ${forEachCall.now.toFixed(1)}` : 'none may stay',
      verdictText(grows),
    ])
  return tableText(['table', 'rows', 'grown', 'for each call', ''], rows)
}

const verdictText = (grows: boolean): string => (grows ? 'GROWS' : 'flat')

function tableText(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((name, column) => Math.max(name.length, ...rows.map((row) => row[column]?.length ?? 0)))
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0))).join(' | ')} |`
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n')
}
