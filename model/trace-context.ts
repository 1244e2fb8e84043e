/**
 * Owns the words by which one trace goes through several services (W3C Trace Context, https://www.w3.org/TR/trace-context/ §3.2), and which trace a
 * call is: its own by its id, so that whoever runs the call goes on with the same one, or a part of the trace of whoever asked for it.
 */
export type TraceContext = {
  /** 32 hexadecimal digits in lower case, not all zero. */
  readonly traceId: string
  /** Of the span that is meant; 16 such digits. */
  readonly spanId: string
  readonly isSampled: boolean
}

const shape = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
/** Longer ones are nobody's. */
const longest = 256

/** Null for what is none: its sender has no trace then, and nothing else is wrong with its request. */
export function parseTraceparent(header: string | null | undefined): TraceContext | null {
  if (!header || header.length > longest) return null
  const [, version, traceId = '', spanId = '', flags = '', more] = shape.exec(header.trim()) ?? []
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return null
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return null
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

export const traceparentOf = ({ traceId, spanId, isSampled }: TraceContext): string =>
  `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`

/**
 * The span of a call as a whole. A UUIDv7 is as random in its last half as a span id is to be. `ratio`: of the calls that nobody has asked for by a
 * trace, the part that is sampled; by the id, so that every process decides alike.
 */
export function traceOfCall(callId: string, asked: TraceContext | null, ratio = 1): TraceContext {
  const digits = callId.replaceAll('-', '').toLowerCase()
  const spanId = digits.slice(16)
  if (asked) return { ...asked, spanId }
  return { traceId: digits, spanId, isSampled: Number.parseInt(digits.slice(-12), 16) / 2 ** 48 < ratio }
}
