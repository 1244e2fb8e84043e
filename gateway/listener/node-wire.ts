/** Owns how the node driver writes an answer. */
import type { ServerResponse } from 'node:http'
import type { ResponseHead, ResponseWire } from './send-response.ts'

/** `last`: is this answer the last one of its connection? */
export function nodeWire(outgoing: ServerResponse, last: () => boolean): ResponseWire {
  const gone = new AbortController()
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) gone.abort()
  })
  // A broken connection also shows as `close`.
  outgoing.on('error', () => undefined)

  function writeHead({ status, headers, length }: ResponseHead): void {
    const lines = headers.flat()
    if (length !== null) lines.push('content-length', String(length))
    if (last()) outgoing.shouldKeepAlive = false
    outgoing.writeHead(status, lines)
  }

  return {
    closed: gone.signal,
    start: writeHead,
    whole(head, body) {
      writeHead(head)
      if (body === null) outgoing.end()
      // As many bytes as characters: the text is ASCII, and is written together with its head without being encoded.
      else if (typeof body === 'string') outgoing.end(body, head.length === body.length ? 'latin1' : 'utf8')
      else outgoing.end(body)
    },
    write(chunk) {
      if (outgoing.destroyed || outgoing.write(chunk)) return
      return new Promise((resolve) => {
        const go = (): void => {
          outgoing.off('drain', go).off('close', go)
          resolve()
        }
        outgoing.on('drain', go).on('close', go)
      })
    },
    end: () => void outgoing.end(),
    cut: () => void outgoing.destroy(),
  }
}
