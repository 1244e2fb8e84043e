/** Owns cutting a stream into messages: by Content-Length, which a stream must have. RFC 3261 §7.5, §18.3; keep-alives by RFC 5626 §4.4.1. */
import type { MessageFault } from '../message/message.ts'
import { contentLengthIn, endOfHead, readHead, startOfMessage } from '../message/read-head.ts'
import { createByteQueue } from './byte-queue.ts'

export type Framed =
  | { readonly kind: 'message'; readonly bytes: Uint8Array }
  /** CRLF CRLF between messages: answered with CRLF. */
  | { readonly kind: 'ping' }
  /** Where the next message begins cannot be known: `bytes` is the head, as far as it came. Nothing follows. */
  | { readonly kind: 'broken'; readonly bytes: Uint8Array; readonly fault: MessageFault }

export type StreamFramer = {
  /** What became complete. The bytes are views: they are read before `push` is called again. */
  push(chunk: Uint8Array): readonly Framed[]
  /** Is part of a message waiting for its rest? */
  isPartial(): boolean
}

const ping = '\r\n\r\n'

export function createStreamFramer(maxMessageBytes: number): StreamFramer {
  const queue = createByteQueue()
  /** In the first so many bytes that wait is no end of a head. */
  let scanned = 0
  /** Of the message whose head is there. */
  let messageBytes: number | null = null
  let isBroken = false

  function broken(bytes: Uint8Array, status: 400 | 413, reason: string): Framed {
    isBroken = true
    return { kind: 'broken', bytes, fault: { status, reason, headers: [] } }
  }

  /** Null: more must come. */
  function next(): Framed | null {
    const waiting = queue.waiting()
    if (isBroken || waiting.length === 0) return null
    if (messageBytes !== null) return whole(waiting, messageBytes)
    return startOfMessage(waiting.subarray(0, 1)) === 1 ? lineEnds(waiting) : head(waiting)
  }

  /** Line ends in front of a message are skipped. The first of a ping may be all that came of it so far. */
  function lineEnds(waiting: Buffer): Framed | null {
    const beginning = waiting.toString('latin1', 0, ping.length)
    if (beginning === ping) {
      queue.drop(ping.length)
      return { kind: 'ping' }
    }
    if (ping.startsWith(beginning)) return null
    queue.drop(startOfMessage(waiting))
    return next()
  }

  function head(waiting: Buffer): Framed | null {
    const bodyAt = endOfHead(waiting, 0, scanned)
    scanned = waiting.length
    const known = bodyAt === -1 ? waiting.length : bodyAt
    if (known > maxMessageBytes) return broken(waiting.subarray(0, maxMessageBytes), 413, 'Message Too Large')
    if (bodyAt === -1) return null
    const bytes = waiting.subarray(0, bodyAt)
    const length = contentLengthIn(readHead(bytes).headers)
    if (length === null) return broken(bytes, 400, 'Missing Content-Length')
    if (Number.isNaN(length)) return broken(bytes, 400, 'Malformed Content-Length')
    if (bodyAt + length > maxMessageBytes) return broken(bytes, 413, 'Message Too Large')
    messageBytes = bodyAt + length
    return whole(waiting, messageBytes)
  }

  function whole(waiting: Buffer, length: number): Framed | null {
    if (waiting.length < length) return null
    queue.drop(length)
    scanned = 0
    messageBytes = null
    return { kind: 'message', bytes: waiting.subarray(0, length) }
  }

  return {
    push(chunk) {
      if (isBroken) return []
      queue.append(chunk)
      const framed: Framed[] = []
      for (let one = next(); one; one = next()) framed.push(one)
      return framed
    },
    isPartial: () => queue.waiting().length > startOfMessage(queue.waiting()),
  }
}
