/**
 * Owns which statements this process sends to Postgres, counted where they leave it: each Execute and each simple Query of the protocol, with
 * those that begin, guard and commit transactions. PostgreSQL, "Frontend/Backend Protocol", 53.2 and 53.7.
 */
import net from 'node:net'

export type SentStatements = {
  count(): number
  /** How often each text was sent. */
  byText(): ReadonlyMap<string, number>
}

/** What a connection begins with: a length, then this. */
const protocolVersion = 196_608
/** A letter and a length. */
const headBytes = 5

/** What is known of a connection; `rest`: what came of a message that is not there yet. */
type Open = { rest: Buffer; readonly prepared: Map<string, string>; bound: string }

/** Counts from now on, on connections that are opened from now on. */
export function countSentStatements(): SentStatements {
  let count = 0
  const texts = new Map<string, number>()
  const open = new WeakMap<net.Socket, Open>()
  const sent = (text: string): void => {
    count++
    texts.set(text, (texts.get(text) ?? 0) + 1)
  }
  const read = (socket: net.Socket, chunk: Buffer): void => {
    const known = open.get(socket)
    if (known === undefined) {
      if (chunk.length >= 8 && chunk.readInt32BE(4) === protocolVersion)
        open.set(socket, { rest: Buffer.alloc(0), prepared: new Map(), bound: '' })
      return
    }
    let bytes = known.rest.length === 0 ? chunk : Buffer.concat([known.rest, chunk])
    while (bytes.length >= headBytes && bytes.length > bytes.readInt32BE(1)) {
      const end = 1 + bytes.readInt32BE(1)
      note(known, String.fromCharCode(bytes[0] ?? 0), bytes.subarray(headBytes, end), sent)
      bytes = bytes.subarray(end)
    }
    known.rest = Buffer.from(bytes)
  }
  const { write } = net.Socket.prototype
  net.Socket.prototype.write = function (this: net.Socket, chunk: unknown, ...rest: unknown[]): boolean {
    if (chunk instanceof Uint8Array) read(this, Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength))
    return (write as (...given: unknown[]) => boolean).call(this, chunk, ...rest)
  } as typeof write
  return { count: () => count, byText: () => new Map(texts) }
}

/** Parse names a text, Bind says which name the next Execute runs; a simple Query brings its text. */
function note(known: Open, letter: string, body: Buffer, sent: (text: string) => void): void {
  if (letter === 'P') known.prepared.set(wordOf(body, 0), wordOf(body, 1))
  if (letter === 'B') known.bound = wordOf(body, 1)
  if (letter === 'E') sent(known.prepared.get(known.bound) ?? '')
  if (letter === 'Q') sent(wordOf(body, 0))
}

/** The strings that a message begins with, each with a zero behind it. */
function wordOf(body: Buffer, place: number): string {
  let begin = 0
  for (let at = 0; at < place; at++) begin = body.indexOf(0, begin) + 1
  return body.toString('utf8', begin, body.indexOf(0, begin))
}
