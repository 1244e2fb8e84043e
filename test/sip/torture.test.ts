/** Owns the proof that no message breaks the reader: those of RFC 4475, mutations of them, and shapes made to be slow. */
import { test, type Test } from 'tap'
import { addressesOf } from '../../sip/server/message/address.ts'
import { readChallenge, readCredentials } from '../../sip/server/message/digest.ts'
import { headerOf, headersOf, valuesOf } from '../../sip/server/message/header-fields.ts'
import type { SipMessage, SipRequest } from '../../sip/server/message/message.ts'
import { cseqOf, rackOf, reasonsOf, sessionExpiresOf } from '../../sip/server/message/numbered-fields.ts'
import { parseMessage, type ParsedMessage } from '../../sip/server/message/parse-message.ts'
import { maxHeaderFields } from '../../sip/server/message/read-head.ts'
import { responseTo } from '../../sip/server/message/response-to.ts'
import { readSipUri, subscriberOf } from '../../sip/server/message/uri.ts'
import { validateRequest, type UnderstoodRequests } from '../../sip/server/message/validate-request.ts'
import { topViaOf } from '../../sip/server/message/via.ts'
import { writeMessage } from '../../sip/server/message/write-message.ts'
import { createRandom, type Random } from '../fake/random.ts'
import { invalidMessages } from './torture/invalid-messages.ts'
import { semanticMessages } from './torture/semantic-messages.ts'
import type { TortureMessage } from './torture/torture-message.ts'
import { validMessages } from './torture/valid-messages.ts'

const understood: UnderstoodRequests = {
  methods: ['INVITE', 'ACK', 'BYE', 'CANCEL', 'OPTIONS', 'REGISTER', 'INFO', 'UPDATE', 'PRACK', 'REFER', 'NOTIFY'],
  options: ['timer', '100rel'],
  bodies: { INVITE: ['application/sdp'] },
}

const all = [...validMessages, ...invalidMessages, ...semanticMessages]

const messageOf = (parsed: ParsedMessage): SipMessage | null => {
  if (parsed.kind === 'garbage') return null
  return parsed.kind === 'fault' ? parsed.request : parsed.message
}

const faultOf = (parsed: ParsedMessage) => {
  if (parsed.kind === 'garbage') return null
  if (parsed.kind === 'fault') return parsed.fault
  return parsed.message.kind === 'request' ? validateRequest(parsed.message, understood) : null
}

function verdictOf(bytes: Uint8Array): TortureMessage['verdict'] {
  const parsed = parseMessage(bytes)
  return parsed.kind === 'garbage' ? 'dropped' : (faultOf(parsed)?.status ?? 'taken')
}

void test('every message of RFC 4475 becomes what its section says', (t) => {
  for (const { section, bytes, verdict, holds = {} } of all) {
    t.equal(verdictOf(bytes), verdict, `${section}: ${verdict}`)
    const message = messageOf(parseMessage(bytes))
    for (const [sentence, check] of Object.entries(holds))
      t.equal(message !== null && check(message), true, `${section}: ${sentence}`)
  }
  t.equal(all.length, 49, 'and all 49 are here')
  t.end()
})

void test('a refusal names what is wrong', (t) => {
  const reasonOf = (name: string) => {
    const found = all.find(({ section }) => section.endsWith(name))
    const fault = found && faultOf(parseMessage(found.bytes))
    return fault && [fault.reason, ...fault.headers.map(({ name: header, value }) => `${header}: ${value}`)].join(' | ')
  }
  t.equal(reasonOf('insuf'), 'Missing From')
  t.equal(reasonOf('badinv01'), 'Malformed Via')
  t.equal(reasonOf('quotbal'), 'Malformed To')
  t.equal(reasonOf('scalar02'), 'Malformed CSeq')
  t.equal(reasonOf('multi01'), 'More Than One From')
  t.equal(reasonOf('ncl'), 'Malformed Content-Length')
  t.equal(reasonOf('clerr'), 'Body Shorter Than Content-Length')
  t.equal(reasonOf('mismatch01'), 'CSeq Method Does Not Match')
  t.equal(reasonOf('bext01'), 'Bad Extension | Unsupported: nothingSupportsThis, nothingSupportsThisEither')
  t.equal(reasonOf('invut'), 'Unsupported Media Type | Accept: application/sdp')
  t.match(reasonOf('intmeth'), /^Not Implemented \| Allow: INVITE, ACK/)
  t.end()
})

/** Everything the server and its app read of a message: none of it may throw, whatever stands there. */
function readAll(message: SipMessage): void {
  for (const name of ['From', 'To', 'Contact', 'Route', 'Record-Route', 'Refer-To', 'P-Asserted-Identity'])
    for (const { uri } of addressesOf(message, name)) {
      const parts = readSipUri(uri)
      if (parts) subscriberOf(parts)
    }
  valuesOf(message, 'Supported')
  reasonsOf(message)
  rackOf(message)
  sessionExpiresOf(message)
  readCredentials(headerOf(message, 'Authorization') ?? '')
  readChallenge(headerOf(message, 'WWW-Authenticate') ?? '')
}

const grammar = [...';,<>"\\:=@?%[]() \r\n\t\0*/.1'.split(''), '\r\n\r\n', '\r\n ', 'SIP/2.0', 'Via:', 'l: 9', 'ÿ'].map(
  (text) => Buffer.from(text),
)

/** One to six changes: a byte, a piece of grammar, a piece of another message, a piece taken out or said twice. */
function mutated(random: Random, bytes: Uint8Array): Uint8Array {
  let mutant = Buffer.from(bytes)
  for (let changes = 1 + random.below(6); changes > 0; changes -= 1) {
    // Heads matter more than bodies.
    const at = random.below(random.below(4) === 0 ? mutant.length + 1 : Math.min(mutant.length, 700) + 1)
    const [before, behind] = [mutant.subarray(0, at), mutant.subarray(at)]
    const length = random.below(40)
    const pieces = [
      () => [before, Buffer.from([random.below(256)]), behind.subarray(1)],
      () => [before, random.pick(grammar), behind],
      () => [before, behind.subarray(length)],
      () => [before, behind.subarray(0, length), behind],
      () => [before, Buffer.from(random.pick(all).bytes).subarray(0, 200 + length), behind],
      () => [before],
    ]
    mutant = Buffer.concat(random.pick(pieces)())
  }
  return mutant
}

const mandatory = ['From', 'To', 'Call-ID', 'CSeq']

/** Null, or what is wrong about what became of these bytes. */
function complaintOf(bytes: Uint8Array, parsed: ParsedMessage, isThorough: boolean): string | null {
  const message = messageOf(parsed)
  if (!message) return null
  if (message.headers.length > maxHeaderFields) return 'too many headers'
  if (message.body.length > bytes.length) return 'a body longer than the message'
  if (!topViaOf(message)) return 'nobody knows where an answer goes'
  if (parsed.kind === 'fault') return answerComplaint(parsed.request)
  if (!mandatory.every((name) => headersOf(message, name).length === 1)) return 'a mandatory header is not there once'
  if (message.kind === 'request' && cseqOf(message)?.method !== message.method) return 'CSeq is of another method'
  if (!isThorough) return null
  readAll(message)
  if (message.kind === 'request') validateRequest(message, understood)
  return isSame(message, messageOf(parseMessage(writeMessage(message)))) ? null : 'written and read again it is another'
}

function answerComplaint(request: SipRequest): string | null {
  if (request.method === 'ACK') return 'an ACK would be answered'
  const answer = responseTo(request, { status: 400, reason: 'Bad Request', toTag: 'a' })
  return writeMessage(answer).toString().endsWith('\r\n\r\n') ? null : 'the answer cannot be written'
}

function isSame(one: SipMessage, other: SipMessage | null): boolean {
  const linesOf = ({ headers }: SipMessage) =>
    headers.flatMap(({ name, value }) => (name === 'Content-Length' ? [] : [`${name}:${value}`])).join('\n')
  return other !== null && linesOf(one) === linesOf(other) && Buffer.compare(one.body, other.body) === 0
}

void test('a hundred thousand mutations throw nothing, and what is answerable says where the answer goes', (t) => {
  const random = createRandom(4475)
  const counts = { message: 0, fault: 0, garbage: 0 }
  const complaints: string[] = []
  for (let round = 0; round < 100_000; round += 1) {
    const bytes = mutated(random, random.pick(all).bytes)
    const parsed = parseMessage(bytes)
    counts[parsed.kind] += 1
    const complaint = complaintOf(bytes, parsed, round % 4 === 0)
    if (complaint)
      complaints.push(`${complaint}: ${JSON.stringify(Buffer.from(bytes).toString('latin1')).slice(0, 600)}`)
  }
  t.same(complaints.slice(0, 3), [])
  // Each kind is really met: else the mutations would prove nothing.
  for (const [kind, count] of Object.entries(counts)) t.ok(count > 5000, `${kind}: ${count}`)
  t.end()
})

void test('64 KiB of whatever is meant to be slow is read in no time', (t) => {
  const head = `INVITE sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z9hG4bK1\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:c@d>\r\nCall-ID: 1\r\nCSeq: 1 INVITE\r\n`
  const pieces = [
    ',',
    ';',
    '"',
    '<',
    '>',
    '\\',
    ' ',
    '\t',
    '\r',
    '\r\n ',
    '\r\n',
    ';a',
    ',<sip:a@b>',
    '"a" ',
    'a=b,',
    '%41',
    'a@',
    ' SIP/2.0',
  ]
  const places = [
    'Via: SIP/2.0/UDP h',
    'Contact: ',
    'Contact: sip:',
    'Contact: "',
    'Authorization: Digest ',
    'From: ',
    'CSeq: 1',
    'Reason: ',
    'X',
  ]
  const startedAt = performance.now()
  for (const piece of pieces) {
    const filling = piece.repeat(Math.floor(16_000 / piece.length))
    for (const place of places) visit(t, `${head}${place}${filling}\r\n\r\n`)
    visit(t, `${head}${`X: a${piece}\r\n`.repeat(4000)}\r\n`)
    visit(t, `INVITE ${piece.repeat(60_000 / piece.length)} SIP/2.0\r\n\r\n`)
    visit(t, piece.repeat(65_536 / piece.length))
  }
  t.ok(performance.now() - startedAt < 8000, 'about two hundred of them together')
  t.end()
})

function visit(t: Test, text: string): void {
  const message = messageOf(parseMessage(Buffer.from(text)))
  if (!message) return
  readAll(message)
  if (message.kind === 'request') validateRequest(message, understood)
  if (message.headers.length > maxHeaderFields) t.fail('too many headers')
}
