/** Owns how benches print: quantiles and a plain table. */

/** NaN of nothing. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN
}

/** All rows have the columns of the first. Columns of words begin at the left. */
export function printTable(rows: readonly Readonly<Record<string, string>>[]): void {
  const names = Object.keys(rows[0] ?? {})
  const widths = names.map((name) => Math.max(name.length, ...rows.map((row) => row[name]?.length ?? 0)))
  const areWords = names.map((name) => !rows.some((row) => /^[-+]?\d/.test(row[name] ?? '')))
  const padded = (cell: string, index: number): string =>
    areWords[index] ? cell.padEnd(widths[index] ?? 0) : cell.padStart(widths[index] ?? 0)
  const line = (cells: readonly string[]): string => `| ${cells.map(padded).join(' | ')} |`
  console.log(line(names))
  console.log(line(widths.map((width) => '-'.repeat(width))))
  for (const row of rows) console.log(line(names.map((name) => row[name] ?? '')))
}
