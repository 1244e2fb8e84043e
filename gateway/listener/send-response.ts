/** Owns how a fetch `Response` goes out: whole with its length when it is small and ready, else in pieces as fast as the client reads. */
import { pairsOf } from '../../net/http/light-headers.ts'
import { readyBodyOf } from '../../net/http/ready-response.ts'

export type ResponseHead = {
  readonly status: number
  /** Several `set-cookie` stay several. Content-Length is not among them, see `length`. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** Of the body in bytes; null when it is not known. */
  readonly length: number | null
}

/** One answer of a driver. After `closed` nothing has an effect. */
export type ResponseWire = {
  readonly closed: AbortSignal
  /** Head and body in one; null for an answer that has no body. */
  whole(head: ResponseHead, body: Uint8Array | string | null): void
  start(head: ResponseHead): void
  /** Resolves when the client can take more, or is gone. */
  write(chunk: Uint8Array): Promise<void> | void
  end(): void
  /** Breaks the connection: the client must see that something is missing. */
  cut(): void
}

/** Never rejects. Whatever happens, the response's body is read to its end or canceled. */
export async function sendResponse(response: Response, wire: ResponseWire, isHead: boolean): Promise<void> {
  const head = headOf(response)
  if (isHead || response.status === 204 || response.status === 304) {
    response.body?.cancel().catch(ignore)
    return wire.whole(head, null)
  }
  const ready = readyBodyOf(response)
  if (ready !== null) return sendReady(head, ready, wire)
  if (!response.body) return wire.whole({ ...head, length: 0 }, null)
  try {
    await sendBody(head, response.body.getReader(), wire)
  } catch {
    // The source of the body broke, or was read before; its owner knows, and the client learns it by the missing end.
    wire.cut()
  }
}

/** Longer ones go in pieces, so that no client that reads slowly has a copy of its own in the driver, and that it shows whether it reads. */
const maxPiece = 64 * 1024

function sendReady(head: ResponseHead, body: Uint8Array | string, wire: ResponseWire): Promise<void> | void {
  const length = Buffer.byteLength(body)
  if (length <= maxPiece) return wire.whole({ ...head, length }, body)
  return sendLong({ ...head, length }, typeof body === 'string' ? Buffer.from(body) : body, wire)
}

async function sendLong(head: ResponseHead, body: Uint8Array, wire: ResponseWire): Promise<void> {
  wire.start(head)
  await writeInPieces(body, wire)
  wire.end()
}

async function writeInPieces(bytes: Uint8Array, wire: ResponseWire): Promise<void> {
  for (let at = 0; at < bytes.length && !wire.closed.aborted; at += maxPiece) {
    const waiting = wire.write(bytes.subarray(at, at + maxPiece))
    if (waiting) await waiting
  }
}

type Reader = ReadableStreamDefaultReader<Uint8Array>

async function sendBody(head: ResponseHead, reader: Reader, wire: ResponseWire): Promise<void> {
  const stop = (): void => void reader.cancel().catch(ignore)
  wire.closed.addEventListener('abort', stop, { once: true })
  try {
    // A client that left while the application was asked is not reported again.
    if (!wire.closed.aborted) await sendPieces(head, reader, wire)
  } finally {
    wire.closed.removeEventListener('abort', stop)
    stop()
  }
}

async function sendPieces(head: ResponseHead, reader: Reader, wire: ResponseWire): Promise<void> {
  const first = await reader.read()
  if (first.done) return wire.whole({ ...head, length: 0 }, new Uint8Array(0))
  const second = reader.read()
  // The body of most answers is one piece and over at once; that is known before the next turn of the event loop.
  const early = await Promise.race([second, nextTurn()])
  if (early?.done) return sendReady(head, first.value, wire)
  wire.start(head)
  await writeInPieces(first.value, wire)
  const sent = first.value.length + (await sendRest(second, reader, wire))
  if (head.length !== null && head.length !== sent) return wire.cut()
  wire.end()
}

async function sendRest(second: ReturnType<Reader['read']>, reader: Reader, wire: ResponseWire): Promise<number> {
  let sent = 0
  for (let piece = await second; !piece.done && !wire.closed.aborted; piece = await reader.read()) {
    sent += piece.value.length
    await writeInPieces(piece.value, wire)
  }
  return sent
}

function headOf({ status, headers }: Response): ResponseHead {
  const length = headers.get('content-length')
  const own: (readonly [string, string])[] = []
  for (const header of pairsOf(headers)) if (!connectionHeaders.has(header[0])) own.push(header)
  return { status, headers: own, length: length === null ? null : Number(length) }
}

/** They belong to the connection, and so to the driver. */
const connectionHeaders = new Set(['connection', 'keep-alive', 'transfer-encoding', 'content-length', 'upgrade'])

const nextTurn = (): Promise<null> => new Promise((resolve) => setImmediate(() => resolve(null)))

function ignore(): void {
  // The failure of a body that is thrown away has no effect.
}
