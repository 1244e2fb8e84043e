/**
 * Owns the search of a whole database for a text: every column of every table that it has, whatever its type, as the text that a dump would have.
 * Bytes are read as text too, and what is sealed stays sealed.
 */
import type { Sql } from '../../store/sql.ts'

type Column = { readonly table: string; readonly column: string; readonly type: string }

export async function textsOfDatabase(sql: Sql) {
  const columns = await sql<Column[]>`
    select c.table_name as table, c.column_name as column, c.data_type as type
    from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
    where c.table_schema = 'public' and t.table_type = 'BASE TABLE' order by 1, 2`
  const cells = await Promise.all(
    columns.map(async ({ table, column, type }) => {
      const value = type === 'bytea' ? sql(column) : sql`${sql(column)}::text`
      const rows = await sql<{ value: Buffer | string | null }[]>`select ${value} as value from ${sql(table)}`
      return {
        place: `${table}.${column}`,
        texts: rows.flatMap((row) => (row.value === null ? [] : [String(row.value)])),
      }
    }),
  )
  return {
    tables: [...new Set(columns.map(({ table }) => table))],
    columns,
    /** Where the text stands, in any case of its letters. */
    naming: (text: string): string[] =>
      cells.flatMap(({ place, texts }) =>
        texts.some((value) => value.toLowerCase().includes(text.toLowerCase())) ? [place] : [],
      ),
    matching: (pattern: RegExp): string[] =>
      cells.flatMap(({ place, texts }) => (texts.some((value) => pattern.test(value)) ? [place] : [])),
  }
}
