/** Owns rows on their way by COPY, in and out, and what the driver (3.4.9) forgets of it. */
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Sql } from '../sql.ts'

/** `statement`: `copy … to stdout`. */
export async function* rowsOf(sql: Sql, statement: string): AsyncGenerator<Buffer> {
  const stream: Readable = await sql.unsafe(statement).readable()
  for await (const chunk of stream as AsyncIterable<Buffer>) yield chunk
  // It leaves its socket paused when a full buffer and the end come in one piece, and the next query would wait for ever.
  stream._read(0)
}

/** `statement`: `copy … from stdin`. Rejects with whatever the database has against it. */
export async function copyInto(
  sql: Sql,
  statement: string,
  rows: AsyncIterable<Uint8Array> | readonly Uint8Array[],
): Promise<void> {
  const query = sql.unsafe(statement)
  // What is refused behind the last row, and a connection that is lost then, the stream is not told of: it would never end.
  const { promise: refused, reject } = Promise.withResolvers<never>()
  void Object.assign(query, { reject })
  const stream = await Promise.race([query.writable(), refused])
  await Promise.race([pipeline(rows, stream), refused])
}
