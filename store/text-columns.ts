/** Owns which columns of a table may hold texts: those of later versions too, which nobody here knows. */
import type { Sql, Transaction } from './sql.ts'

/** As information_schema names the types: everything that is no number, time, truth or id. */
const plainTypes = [
  'smallint',
  'integer',
  'bigint',
  'numeric',
  'real',
  'double precision',
  'boolean',
  'timestamp with time zone',
  'timestamp without time zone',
  'date',
  'interval',
  'uuid',
]

export async function textColumnsOf(sql: Sql | Transaction, table: string): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    select column_name as name from information_schema.columns
    where table_schema = current_schema() and table_name = ${table} and data_type <> all(${plainTypes}::text[])
      and is_generated = 'NEVER'
    order by ordinal_position`
  return rows.map(({ name }) => name)
}

/** `a = default, b = default, `: as if nobody had written them. In front of others that are set. */
export const resetting = (sql: Sql | Transaction, columns: readonly string[]) =>
  sql.unsafe(columns.map((name) => `"${name}" = default, `).join(''))
