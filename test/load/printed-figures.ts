/** Owns how figures are read back from the tables that benches print (table.ts), so that two runs of any bench can be compared. */

export type Figure = { readonly row: string; readonly column: string; readonly value: number }

type Table = { readonly header: readonly string[]; readonly rows: readonly (readonly string[])[] }

/** Cells that hold no number are left out. A row that is printed twice has its number behind its name. */
export function figuresOf(printed: string): Figure[] {
  const seen = new Map<string, number>()
  return tablesOf(printed).flatMap(({ header, rows }) =>
    rows.flatMap((cells) => {
      const name = nameOf(cells)
      const times = (seen.get(`${header.join()} ${name}`) ?? 0) + 1
      seen.set(`${header.join()} ${name}`, times)
      const row = times === 1 ? name : `${name} #${times}`
      return cells.flatMap((cell, at) => (at === 0 ? [] : figuresOfCell(row, header[at] ?? '', cell)))
    }),
  )
}

/** Lines of cells, one after the other: the names of columns, the rule, the rows. A further rule begins the next table with the line before it. */
function tablesOf(printed: string): Table[] {
  const tables: string[][][] = [[]]
  for (const line of printed.split('\n')) {
    const cells = /^\|(.*)\|\s*$/
      .exec(line)?.[1]
      ?.split('|')
      .map((cell) => cell.trim())
    const last = tables.at(-1)
    if (!cells || !last) tables.push([])
    else if (isRule(cells) && last.length > 1) tables.push([last.pop() ?? [], cells])
    else last.push(cells)
  }
  return tables.filter(([, rule]) => rule && isRule(rule)).map(([header = [], , ...rows]) => ({ header, rows }))
}

const isRule = (cells: readonly string[]): boolean => cells.every((cell) => /^-+$/.test(cell))

/** The first cell, and the second when it is no figure. */
function nameOf([first = '', second = '']: readonly string[]): string {
  return second === '' || second === '-' || /^[-+]?[\d.]/.test(second) ? first : `${first} ${second}`
}

/** `2.4 (2.2–2.6)` is 2.4; `5 / 9` below `p50/p95 ms` are two figures. */
function figuresOfCell(row: string, column: string, cell: string): Figure[] {
  const values = cell
    .replaceAll(/\([^)]*\)/g, '')
    .split('/')
    .map((part) => part.trim())
  if (values.some((value) => value === '' || !Number.isFinite(Number(value)))) return []
  const names = namesOf(column, values.length)
  return values.map((value, at) => ({ row, column: names[at] ?? column, value: Number(value) }))
}

function namesOf(column: string, count: number): string[] {
  const joined = column.replaceAll(' / ', '/')
  const alternatives = /\S+\/\S+/.exec(joined)?.[0]
  const words = alternatives?.split('/') ?? []
  if (count === 1 || !alternatives || words.length !== count)
    return Array.from({ length: count }, (_, at) => (count === 1 ? column : `${column} [${at + 1}]`))
  return words.map((word) => joined.replace(alternatives, word))
}
