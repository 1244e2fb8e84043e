/** Owns how the node driver writes an answer. */
import type { ServerResponse } from 'node:http'
import type { ResponseHead, ResponseWire } from './send-response.ts'

export type NodeWireOptions = {
  /** Is this answer the last one of its connection? Asked when its head is written. */
  last(): boolean
  /** What is waited for between the last byte of an answer and its end; null for nothing. */
  beforeEnd(): Promise<void> | null
  /** As of Limits. */
  readonly writeTimeout: number
}

export function nodeWire(outgoing: ServerResponse, { last, beforeEnd, writeTimeout }: NodeWireOptions): ResponseWire {
  const gone = new AbortController()
  let patience: NodeJS.Timeout | undefined
  outgoing.once('close', () => {
    clearTimeout(patience)
    if (!outgoing.writableFinished) gone.abort()
  })
  // A broken connection also shows as `close`.
  outgoing.on('error', () => undefined)

  /** Who reads nothing for so long holds a connection and an answer for nothing. */
  function startPatience(): void {
    clearTimeout(patience)
    patience = setTimeout(() => outgoing.destroy(), writeTimeout)
    patience.unref()
  }

  function writeHead({ status, headers, length }: ResponseHead): void {
    const lines = headers.flat()
    if (length !== null) lines.push('content-length', String(length))
    if (last()) outgoing.shouldKeepAlive = false
    outgoing.writeHead(status, lines)
  }

  function endNow(body: Uint8Array | string | null, encoding: BufferEncoding): void {
    if (body === null) outgoing.end()
    else outgoing.end(body, encoding)
    // What the system did not take at once.
    if (outgoing.writableLength > 0) startPatience()
  }

  /** The client has the whole answer meanwhile. */
  function endAfter(waiting: Promise<void>, body: Uint8Array | string | null, encoding: BufferEncoding): void {
    if (body === null) outgoing.flushHeaders()
    else outgoing.write(body, encoding)
    void waiting.then(() => endNow(null, encoding))
  }

  function end(body: Uint8Array | string | null, encoding: BufferEncoding = 'utf8'): void {
    const waiting = beforeEnd()
    if (waiting) endAfter(waiting, body, encoding)
    else endNow(body, encoding)
  }

  return {
    closed: gone.signal,
    start: writeHead,
    whole(head, body) {
      writeHead(head)
      // As many bytes as characters: the text is ASCII, and is written together with its head without being encoded.
      end(body, typeof body === 'string' && head.length === body.length ? 'latin1' : 'utf8')
    },
    write(chunk) {
      if (outgoing.destroyed || outgoing.write(chunk)) return
      startPatience()
      return new Promise((resolve) => {
        const go = (): void => {
          clearTimeout(patience)
          outgoing.off('drain', go).off('close', go)
          resolve()
        }
        outgoing.on('drain', go).on('close', go)
      })
    },
    end: () => end(null),
    cut: () => void outgoing.destroy(),
  }
}
