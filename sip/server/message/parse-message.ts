/**
 * Owns reading a SIP message from bytes: a datagram, or what a stream's framing has cut out. A message that was read has readable Vias and
 * exactly one readable From, To, Call-ID and CSeq, that of its method; what a request says beyond that is looked at in validate-request.ts.
 * RFC 3261 §7, §8.2, §18.3.
 */
import { readAddress } from './address.ts'
import { headersOf, valuesOf } from './header-fields.ts'
import { isToken } from './header-text.ts'
import type { HeaderField, MessageFault, SipMessage, SipRequest, SipResponse } from './message.ts'
import { readCSeq } from './numbered-fields.ts'
import {
  contentLengthIn,
  endOfHead,
  hasControls,
  maxLineLength,
  maxMessageBytes,
  readHead,
  startOfMessage,
  withoutControls,
  type Head,
} from './read-head.ts'
import { readVia, topViaOf } from './via.ts'

export type ParsedMessage =
  | { readonly kind: 'message'; readonly message: SipMessage }
  /** Answered with the fault: `request` is as far as it could be read, its top Via is readable, and it is no ACK. */
  | { readonly kind: 'fault'; readonly fault: MessageFault; readonly request: SipRequest }
  /** Never answered: keep-alives, no SIP, malformed responses and ACKs, requests that do not say where an answer goes. */
  | { readonly kind: 'garbage' }

const garbage: ParsedMessage = { kind: 'garbage' }
const noBody = new Uint8Array(0)

type Start =
  | { readonly method: string; readonly uri: string; readonly fault: MessageFault | null }
  | { readonly status: number; readonly reason: string }

/** Never throws. `bytes` are not kept. */
export function parseMessage(bytes: Uint8Array): ParsedMessage {
  const start = startOfMessage(bytes)
  if (bytes.length - start > maxMessageBytes) return parsedPart(bytes.subarray(start, start + maxMessageBytes))
  const bodyAt = endOfHead(bytes, start)
  // Without an empty line the head may have been cut off anywhere.
  if (bodyAt === -1) return parsed(readHead(bytes.subarray(start)), noBody, 'Missing Empty Line')
  return parsed(readHead(bytes.subarray(start, bodyAt)), bytes.subarray(bodyAt), null)
}

/** Too long: answered when the head is there. */
function parsedPart(bytes: Uint8Array): ParsedMessage {
  const bodyAt = endOfHead(bytes, 0)
  if (bodyAt === -1) return garbage
  return parsed(readHead(bytes.subarray(0, bodyAt)), noBody, { status: 413, reason: 'Message Too Large', headers: [] })
}

function parsed(head: Head, rest: Uint8Array, given: MessageFault | string | null): ParsedMessage {
  const start = readStartLine(head.startLine)
  if (!start) return garbage
  const body = bodyOf(head, rest)
  const fault = (typeof given === 'string' ? badRequest(given) : given) ?? faultOf(head) ?? badBody(body)
  if ('status' in start) return responseOf(start, head, body, fault)
  const { method, uri } = start
  const request: SipRequest = { kind: 'request', method, uri, headers: head.headers, body: bytesOf(body) }
  const worst = start.fault ?? fault ?? controlFault(request) ?? mandatoryFault(request, method)
  if (!worst) return { kind: 'message', message: request }
  // An ACK is never answered (§17), and without a Via there is no way back (§18.2.2).
  if (method === 'ACK' || !topViaOf(request)) return garbage
  return { kind: 'fault', fault: worst, request }
}

function responseOf(
  { status, reason }: { readonly status: number; readonly reason: string },
  { headers }: Head,
  body: Uint8Array | string,
  fault: MessageFault | null,
): ParsedMessage {
  const message: SipResponse = { kind: 'response', status, reason, headers: headers.map(cleaned), body: bytesOf(body) }
  return fault || mandatoryFault(message, null) ? garbage : { kind: 'message', message }
}

function controlFault({ uri, headers }: SipRequest): MessageFault | null {
  if (hasControls(uri)) return badRequest('Malformed Request-Line')
  const field = headers.find(({ value }) => hasControls(value))
  return field ? badRequest(`Malformed ${field.name}`) : null
}

/** A response cannot be refused: without it the request would wait for nothing. */
const cleaned = (field: HeaderField): HeaderField =>
  hasControls(field.value) ? { ...field, value: withoutControls(field.value) } : field

const badRequest = (reason: string): MessageFault => ({ status: 400, reason, headers: [] })

const faultOf = ({ fault }: Head): MessageFault | null => (fault === null ? null : badRequest(fault))

const badBody = (body: Uint8Array | string): MessageFault | null => (typeof body === 'string' ? badRequest(body) : null)

const bytesOf = (body: Uint8Array | string): Uint8Array => (typeof body === 'string' ? noBody : body)

/** What follows a body of the length named is ignored. §18.3. */
function bodyOf({ headers }: Head, rest: Uint8Array): Uint8Array | string {
  const length = contentLengthIn(headers)
  if (length === null) return new Uint8Array(rest)
  if (Number.isNaN(length)) return 'Malformed Content-Length'
  return length > rest.length ? 'Body Shorter Than Content-Length' : new Uint8Array(rest.subarray(0, length))
}

/** §7.1, §7.2. Null: no SIP, or a response whose status does not exist. */
function readStartLine(line: string): Start | null {
  if (/^SIP\//i.test(line)) return readStatusLine(line)
  const [, method = '', uri = '', version] = /^([^\s:]+) (.*)\sSIP\/(\d+\.\d+)\s*$/i.exec(line) ?? []
  if (version === undefined || !isToken(method)) return null
  return { method, uri, fault: requestLineFault(line, uri, version) }
}

function readStatusLine(line: string): Start | null {
  const [, digits, reason = ''] = /^SIP\/2\.0 ([1-6]\d\d)(?: (.*))?$/i.exec(line) ?? []
  return digits === undefined ? null : { status: Number(digits), reason: wordsOf(reason) }
}

/** It stands in databases, events and terminals later: without control characters, and not a book. */
const wordsOf = (reason: string): string =>
  reason
    .replace(/\p{Cc}+/gu, ' ')
    .slice(0, maxReasonLength)
    .toWellFormed()

const maxReasonLength = 200

/** One space between the parts and none behind; the URI is bare. §25.1, RFC 4475 §3.1.2.7–10. */
function requestLineFault(line: string, uri: string, version: string): MessageFault | null {
  if (version !== '2.0') return { status: 505, reason: 'Version Not Supported', headers: [] }
  if (line.length > maxLineLength) return badRequest('Request-Line Too Long')
  return /[\s<>"]/.test(uri) || uri === '' || /\s$/.test(line) ? badRequest('Malformed Request-Line') : null
}

/** `method`: of a request; a response may be of any. §8.1.1: what every message has. */
function mandatoryFault(message: SipMessage, method: string | null): MessageFault | null {
  const reason =
    viaFault(message) ??
    singleFault(message, 'From', isReadableAddress) ??
    singleFault(message, 'To', isReadableAddress) ??
    singleFault(message, 'Call-ID', isCallId) ??
    singleFault(message, 'CSeq', (value) => readCSeq(value) !== null) ??
    methodFault(message, method)
  return reason === null ? null : badRequest(reason)
}

function viaFault(message: SipMessage): string | null {
  const values = valuesOf(message, 'Via')
  if (values.length === 0) return 'Missing Via'
  return values.every(readVia) ? null : 'Malformed Via'
}

function singleFault(message: SipMessage, name: string, isGood: (value: string) => boolean): string | null {
  const [value, another] = headersOf(message, name)
  if (value === undefined) return `Missing ${name}`
  if (another !== undefined) return `More Than One ${name}`
  return isGood(value) ? null : `Malformed ${name}`
}

const isReadableAddress = (value: string): boolean => readAddress(value) !== null

const isCallId = (value: string): boolean => value !== '' && !/\s/.test(value)

/** §8.1.1.5. */
function methodFault(message: SipMessage, method: string | null): string | null {
  if (method === null) return null
  return readCSeq(headersOf(message, 'CSeq')[0] ?? '')?.method === method ? null : 'CSeq Method Does Not Match'
}
