/** Owns how the uWebSockets.js driver writes an answer. Its response may not be touched once it was aborted or ended. */
import { STATUS_CODES } from 'node:http'
import type { HttpResponse } from 'uWebSockets.js'
import type { ResponseHead, ResponseWire } from './send-response.ts'

export type UwsWire = ResponseWire & {
  /** The response was turned into something else; the wire is over without a word. */
  release(): void
}

type Wire = {
  readonly res: HttpResponse
  readonly told: (action: () => void) => void
  /** Aborted or ended. */
  over: boolean
  /** Ends the wait of a chunk that did not fit. */
  wake: () => void
  /** What is to be tried when the socket takes more, told how many bytes of the body it has; false when that did not fit either. */
  resume: (offset: number) => boolean
}

/**
 * Called in the same turn as the request arrived. `last`: is this answer the last one of its connection? `told` is around all that may close
 * the connection.
 */
export function uwsWire(res: HttpResponse, last: () => boolean, told: (action: () => void) => void): UwsWire {
  const gone = new AbortController()
  const wire: Wire = { res, told, over: false, wake: () => undefined, resume: () => true }
  let total: number | null = null
  res.onAborted(() => {
    wire.over = true
    gone.abort()
    wire.wake()
  })

  function whole(head: ResponseHead, body: Uint8Array | string | null): void {
    touch(wire, () => {
      wire.over = true
      writeHead(res, head)
      if (body !== null) res.end(body, last())
      else if (head.length !== null) res.endWithoutBody(head.length, last())
      else res.endWithoutBody()
    })
  }

  return {
    closed: gone.signal,
    whole,
    start(head) {
      total = head.length
      // Once and for all: the library forgets a handler that is set while another one runs.
      res.onWritable((offset) => wire.resume(offset))
      touch(wire, () => writeHead(res, head))
    },
    write(chunk) {
      // An empty chunk would end the response.
      if (chunk.length === 0 || wire.over) return
      return total === null ? writeChunk(wire, chunk) : writePart(wire, chunk, total)
    },
    end() {
      touch(wire, () => {
        wire.over = true
        res.end()
      })
    },
    cut() {
      if (wire.over) return
      wire.over = true
      res.close()
    },
    release: () => void (wire.over = true),
  }
}

/** Every touch of the response: together in one packet, and never after its end. */
function touch(wire: Wire, action: () => void): void {
  if (!wire.over) wire.told(() => wire.res.cork(action))
}

function writeHead(res: HttpResponse, { status, headers }: ResponseHead): void {
  res.writeStatus(`${status} ${STATUS_CODES[status] ?? 'Unknown'}`)
  // A header is Latin-1 (as `Headers` has it), a text is written as UTF-8: only ASCII is the same in both.
  for (const [name, value] of headers) res.writeHeader(name, ascii.test(value) ? value : Buffer.from(value, 'latin1'))
}

const ascii = /^[\t -~]*$/

const woken = (wire: Wire): Promise<void> => new Promise((resolve) => (wire.wake = resolve))

function writeChunk(wire: Wire, chunk: Uint8Array): Promise<void> | void {
  let flowing = true
  touch(wire, () => (flowing = wire.res.write(chunk)))
  if (flowing) return
  wire.resume = () => {
    wire.wake()
    return true
  }
  return woken(wire)
}

/** Of a body with a known length: what does not fit now is tried again from the byte where it stopped. */
function writePart(wire: Wire, chunk: Uint8Array, size: number): Promise<void> | void {
  const from = wire.res.getWriteOffset()
  const fits = (rest: Uint8Array): boolean => {
    const [all, done] = wire.res.tryEnd(rest, size)
    wire.over ||= done
    return all
  }
  let written = true
  touch(wire, () => (written = fits(chunk)))
  if (written || wire.over) return
  const waiting = woken(wire)
  wire.resume = (offset) => {
    const flowing = fits(chunk.subarray(offset - from))
    if (!flowing) return false
    wire.resume = () => true
    wire.wake()
    return true
  }
  return waiting
}
