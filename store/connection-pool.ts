/**
 * Owns a set of connections to the database that can be given up as a whole, whatever state they are in. The driver (3.4.9) waits for ever for a
 * server that is frozen and for a network that swallows everything, so that its sockets are kept here too.
 */
import type net from 'node:net'
import { connect, type ConnectOptions, type Sql, type Transaction } from './sql.ts'

/** What of a query is the driver's own. `state` is set with the connection that it is sent on. */
export type Query = Promise<unknown> & {
  state: unknown
  handler(query: Query): void
  resolve(value: unknown): void
  reject(error: unknown): void
  execute(): Query
}

export type Begun = {
  /** Settles as `sql.begin` does. */
  readonly done: Promise<unknown>
  /** A connection has been found, and the server asked. */
  isSent(): boolean
}

export type ConnectionPool = {
  readonly sql: Sql
  begin(work: (tx: Transaction) => unknown): Begun
  /** What is under way has `ms` to end, then its connections are cut. Idempotent. */
  close(ms: number): Promise<void>
}

export function openConnectionPool(options: ConnectOptions): ConnectionPool {
  const sockets = new Set<net.Socket>()
  const sql = connect({
    ...options,
    opened(socket) {
      for (const former of sockets) if (former.destroyed) sockets.delete(former)
      sockets.add(socket)
    },
  })
  let begin: Query | null = null
  const { unsafe } = sql
  // The driver begins a transaction with `sql.unsafe`, at once, and tells nobody of that query.
  const remembered = (...given: Parameters<typeof unsafe>) => {
    const query = unsafe(...given)
    begin = query as unknown as Query
    return query
  }
  Object.assign(sql, { unsafe: remembered })
  let closed: Promise<void> | null = null
  const close = async (ms: number): Promise<void> => {
    await sql.end({ timeout: ms / 1000 })
    sockets.forEach(cut)
  }
  return {
    sql,
    begin(work) {
      const done: Promise<unknown> = sql.begin(work)
      const query = begin
      return { done, isSent: () => query !== null && query.state !== null }
    },
    close: (ms) => (closed ??= close(ms)),
  }
}

/** What a TCP connection has not sent yet is never sent; a network that is back would deliver it. */
function cut(socket: net.Socket): void {
  if (socket.remoteAddress === undefined) socket.destroy()
  else socket.resetAndDestroy()
}
