/**
 * Owns how many statements this process sends to Postgres, counted where they leave it: each Execute and each simple Query of the protocol, with
 * those that begin, guard and commit transactions. PostgreSQL, "Frontend/Backend Protocol", 53.2.
 */
import net from 'node:net'

/** What a connection begins with: a length, then this. */
const protocolVersion = 196_608
const [execute, query] = ['E'.charCodeAt(0), 'Q'.charCodeAt(0)]
/** A letter and a length. */
const headBytes = 5

/** Counts from now on, on connections that are opened from now on; the result reads. */
export function countSentStatements(): () => number {
  let count = 0
  /** By connection, what of a message is still to come. */
  const open = new WeakMap<net.Socket, Buffer>()
  const read = (socket: net.Socket, chunk: Buffer): void => {
    const before = open.get(socket)
    if (before === undefined) {
      if (chunk.length >= 8 && chunk.readInt32BE(4) === protocolVersion) open.set(socket, Buffer.alloc(0))
      return
    }
    let bytes = before.length === 0 ? chunk : Buffer.concat([before, chunk])
    while (bytes.length >= headBytes && bytes.length > bytes.readInt32BE(1)) {
      if (bytes[0] === execute || bytes[0] === query) count++
      bytes = bytes.subarray(1 + bytes.readInt32BE(1))
    }
    open.set(socket, Buffer.from(bytes))
  }
  const { write } = net.Socket.prototype
  net.Socket.prototype.write = function (this: net.Socket, chunk: unknown, ...rest: unknown[]): boolean {
    if (chunk instanceof Uint8Array) read(this, Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength))
    return (write as (...given: unknown[]) => boolean).call(this, chunk, ...rest)
  } as typeof write
  return () => count
}
