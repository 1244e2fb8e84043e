/**
 * Owns the reading of all tables as they were at one moment, while others write. One transaction sees nothing of what comes after it began (isolation level
 * repeatable read), and holds nobody up: it takes no lock that a write waits for.
 */
import type { Sql } from '../sql.ts'
import { textPart, type Manifest, type Part, type TableOfArchive } from './archive.ts'
import { rowsOf } from './copy-rows.ts'
import { listSequences, listTables, quoted } from './known-tables.ts'

/** Rows are gathered to parts of about this size; a larger row is a part by itself. */
const partBytes = 4 << 20
const newline = 0x0a

export type Snapshot = Pick<Manifest, 'migrations' | 'tables' | 'sequences'> & {
  /** Rows by table, as far as they have been read. */
  readonly rows: Readonly<Record<string, number>>
  parts(): AsyncGenerator<Part>
}

/** `sql` has one connection, which is this work's alone, and is ended by who gave it. */
export async function openSnapshot(sql: Sql, mtime: number): Promise<Snapshot> {
  await sql.unsafe('begin isolation level repeatable read, read only')
  const mark = await markOf(sql)
  const migrations = await sql<{ name: string; sha256: string }[]>`select name, sha256 from migrations order by name`
  const tables = await listTables(sql)
  const rows: Record<string, number> = {}
  return {
    migrations: [...migrations],
    tables,
    sequences: await listSequences(sql),
    rows,
    async *parts() {
      for (const table of tables) {
        rows[table.name] = 0
        let number = 0
        for await (const bytes of wholeRows(sql, table)) {
          rows[table.name]! += countOf(bytes)
          yield textPart(`tables/${table.name}/${String(++number).padStart(8, '0')}`, bytes, mtime)
        }
      }
      // The driver would go on over another connection, outside of the transaction.
      if ((await markOf(sql)) !== mark) throw new Error('the connection to the database was lost')
      await sql.unsafe('rollback')
    },
  }
}

/** Of one transaction of one connection. */
async function markOf(sql: Sql): Promise<string> {
  const [row] = await sql<{ mark: string }[]>`select pg_backend_pid() || ' ' || now()::text as mark`
  return row?.mark ?? ''
}

async function* wholeRows(sql: Sql, { name, columns }: TableOfArchive): AsyncGenerator<Buffer> {
  const query = `copy (select ${columns.map(quoted).join(', ')} from ${quoted(name)}) to stdout`
  let gathered: Buffer[] = []
  let bytes = 0
  for await (const chunk of rowsOf(sql, query)) {
    const end = chunk.lastIndexOf(newline) + 1
    bytes += chunk.length
    if (bytes < partBytes || end === 0) {
      gathered.push(chunk)
      continue
    }
    yield Buffer.concat([...gathered, chunk.subarray(0, end)])
    gathered = [chunk.subarray(end)]
    bytes = chunk.length - end
  }
  if (bytes > 0) yield Buffer.concat(gathered)
}

/** In the text format every row ends with a newline, and has none within. */
function countOf(rows: Buffer): number {
  let count = 0
  for (let place = rows.indexOf(newline); place !== -1; place = rows.indexOf(newline, place + 1)) count++
  return count
}
