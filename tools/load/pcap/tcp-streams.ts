/** Owns SIP messages out of captured TCP: each direction of a connection in its order, what comes twice left out, what is missing waited for. */
import { createStreamFramer, type StreamFramer } from '../../../sip/server/transport/stream-framer.ts'
import { maxMessageBytes } from '../../../sip/server/message/read-head.ts'
import type { Segment } from './unwrap-packet.ts'

type Stream = { next: number | null; readonly early: Map<number, Buffer>; framer: StreamFramer }

const maxStreams = 10_000
const maxEarly = 256

/** The result takes a segment and gives the messages that it completes. */
export function createTcpStreams(): (segment: Segment) => Buffer[] {
  const streams = new Map<string, Stream>()
  return ({ from, to, payload, sequence, begins }) => {
    const key = `${from} ${to}`
    let stream = streams.get(key)
    if (!stream || begins) {
      if (streams.size >= maxStreams) streams.clear()
      const next = begins ? (sequence + 1) >>> 0 : null
      stream = { next, early: new Map(), framer: createStreamFramer(maxMessageBytes) }
      streams.set(key, stream)
    }
    if (payload.length === 0) return []
    stream.next ??= sequence
    if (stream.early.size < maxEarly) stream.early.set(sequence, payload)
    return inOrder(stream)
  }
}

function inOrder(stream: Stream): Buffer[] {
  const messages: Buffer[] = []
  for (;;) {
    const found = [...stream.early].find(([sequence, payload]) => {
      const ahead = (sequence - (stream.next ?? 0)) | 0
      return ahead <= 0 && ahead + payload.length > 0
    })
    if (!found) break
    const [sequence, payload] = found
    stream.early.delete(sequence)
    const fresh = payload.subarray(-((sequence - (stream.next ?? 0)) | 0))
    stream.next = ((stream.next ?? 0) + fresh.length) >>> 0
    for (const framed of stream.framer.push(fresh))
      if (framed.kind === 'message') messages.push(Buffer.from(framed.bytes))
  }
  // What came before is a repetition.
  for (const [sequence, payload] of stream.early)
    if (((sequence + payload.length - (stream.next ?? 0)) | 0) <= 0) stream.early.delete(sequence)
  return messages
}
