/** Numbers in headers, and proofs of a password: the pure parts of the telephone edge. */
import { test } from 'tap'
import { createAdmission } from '../../sip/call/admit-arrival.ts'
import { keyIn } from '../../sip/call/key-requests.ts'
import { sdpIn } from '../../sip/call/sdp-in.ts'
import { orderWays } from '../../sip/call/ways-out.ts'
import { createDigestVerifier } from '../../sip/digest-verifier.ts'
import { calledNumbersOf, callerOf, dialedNumbersOf, e164Of, userOf } from '../../sip/numbers.ts'
import {
  digestResponseOf,
  readChallenge,
  writeCredentials,
  type DigestAlgorithm,
} from '../../sip/server/message/digest.ts'
import { isCallerVerified } from '../../sip/call/caller-proof.ts'
import type { RequestIn } from '../../sip/stack-types.ts'
import type { TrunkSettings } from '../../model/trunk.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createRandom } from '../fake/random.ts'
import { createTelephonyPort, trunkOf } from '../fake/telephony-port.ts'

const messageOf = (fields: Record<string, string>, body = '') => {
  const lower = new Map(Object.entries(fields).map(([name, value]) => [name.toLowerCase(), value]))
  return { body, get: (name: string) => lower.get(name.toLowerCase()) }
}

const inviteOf = (fields: Record<string, string>, uri = 'sip:x@y'): RequestIn => ({
  ...messageOf(fields),
  method: 'INVITE',
  uri,
  headers: fields,
  source: 'network',
  source_address: '127.0.0.1',
  source_port: 5060,
  protocol: 'udp',
  getParsedHeader: () => ({}),
  on: () => undefined,
})

test('numbers are read as E.164 where they can be', (t) => {
  const rows: Record<string, string | null> = {
    '+4930123456': '+4930123456',
    '004930123456': '+4930123456',
    '4930123456': '+4930123456',
    '+49 (30) 123-456': '+4930123456',
    '+49 (0)30 123456': '+4930123456',
    '12125551234': '+12125551234',
    '030123456': null,
    '100': null,
    '123456789': null,
    '+0301234567': null,
    '+1234567890123456': null,
    anonymous: null,
    '': null,
  }
  for (const [text, number] of Object.entries(rows)) t.equal(e164Of(text), number, text)
  t.equal(userOf('sip:+4930;npdi=yes@host;user=phone'), '+4930')
  t.equal(userOf('sip:%2B4930@host'), '+4930')
  t.equal(userOf('tel:+49-30-123;phone-context=x'), '+49-30-123')
  t.equal(userOf('sip:host'), null)
  t.equal(userOf('mailto:a@b'), null)
  t.end()
})

test('a call is for To, the Request-URI, or whoever passed it on', (t) => {
  const fields = {
    To: '"Carol" <sip:100@pbx.test>',
    Diversion: '<sip:+4989555@carrier.test>;reason=user-busy, <sip:00498966666@carrier.test>',
    'History-Info': '<sip:+4977777777@carrier.test>;index=1',
  }
  t.same(calledNumbersOf(inviteOf(fields, 'sip:4930123456@service.test')), [
    '+4930123456',
    '+4989555',
    '+498966666',
    '+4977777777',
    '100',
    '4930123456',
    '00498966666',
  ])
  t.same(calledNumbersOf(inviteOf({ To: 'garbage <' }, 'sip:service.test')), [])
  t.end()
})

test('what was dialed is the Request-URI, then To; who passed a call on has dialed nothing', (t) => {
  const fields = {
    To: '<sip:+4989555@carrier.test>',
    'P-Called-Party-ID': '<sip:+4930777777@carrier.test>',
    Diversion: '<sip:+4989666@carrier.test>',
    'History-Info': '<sip:+4977777777@carrier.test>;index=1',
  }
  t.same(dialedNumbersOf(inviteOf(fields, 'sip:4930123456@service.test')), [
    '+4930123456',
    '+4989555',
    '+4930777777',
    '4930123456',
  ])
  t.end()
})

test('a caller is proved by a trusted trunk: by its verstat, else by its word', (t) => {
  const [from, asserted] = ['<sip:+4930555@c.test>;tag=1', '<sip:+4930555@c.test>']
  const isProved = (fields: Record<string, string>, settings: TrunkSettings = { trustsIdentity: true }) =>
    isCallerVerified(inviteOf({ From: from, ...fields }), settings)
  const identity = (value: string) => ({ 'P-Asserted-Identity': value })
  const national = { trustsIdentity: true, numberFormat: { countryCode: '49' } }
  for (const [what, proved, expected] of [
    ['From is what the caller wrote', isProved({}), false],
    ['its word', isProved(identity(asserted)), true],
    ['of a trunk that is not trusted', isProved(identity(asserted), {}), false],
    ['of nobody', isProved(identity('<sip:anonymous@c.test>')), false],
    ['in the form of its network', isProved(identity('<sip:030555000@c.test>'), national), true],
    ['to a caller who asks for privacy', isProved({ ...identity(asserted), Privacy: 'id' }), false],
    ['a number that passed', isProved(identity('<sip:+4930555;verstat=TN-Validation-Passed@c.test>')), true],
    ['in full', isProved(identity('<tel:+4930555;verstat=TN-Validation-Passed-A>')), true],
    ['at From', isProved({ From: '<tel:+4930555;verstat=TN-Validation-Passed>;tag=1' }), true],
    ['not trusted', isProved({ From: '<tel:+4930555;verstat=TN-Validation-Passed>;tag=1' }, {}), false],
    ['a customer with another number', isProved(identity('<tel:+4930555;verstat=TN-Validation-Passed-B>')), false],
    ['from abroad', isProved(identity('<tel:+4930555;verstat=TN-Validation-Passed-C>')), false],
    ['failed', isProved(identity('<tel:+4930555;verstat=TN-Validation-Failed>')), false],
    ['not validated', isProved(identity('<tel:+4930555;verstat=No-TN-Validation>')), false],
  ] as const)
    t.equal(proved, expected, what)
  t.end()
})

test('a user that is no text is nobody, and an INVITE that a server let through with control characters is refused', async (t) => {
  const fields = { From: '<sip:%00@x>;tag=1', To: '<sip:+4930%00@x>', Contact: '<sip:a@x>' }
  t.same(calledNumbersOf(inviteOf(fields, 'sip:%00@y')), [])
  t.equal(callerOf(inviteOf(fields), true), null)
  const telephony = createTelephonyPort()
  const nothing = () => undefined
  const strangers = { challenged: nothing, wrongPassword: nothing, proved: nothing }
  const admission = createAdmission({ telephony, verifier: createDigestVerifier({ now: () => 0 }), strangers })
  const good = { From: '<sip:+4930999@x>;tag=1', To: '<sip:+4930123456@x>', Contact: '<sip:a@x>' }
  for (const [invite, status] of [
    [inviteOf({ ...good, 'X-Any': 'a\0b' }), 400],
    [inviteOf({ ...good, From: '<sip:+4930\u0001@x>' }), 400],
    [inviteOf(good, 'sip:+4930\0@x'), 400],
    [inviteOf(fields, 'sip:%00@y'), 484],
  ] as const) {
    const sent: number[] = []
    const reply = { finalResponseSent: false, send: (code: number) => void sent.push(code) }
    t.equal(await admission.admit(invite, reply), null)
    t.same(sent, [status])
  }
})

test('who asks for privacy is nobody', (t) => {
  const from = { From: '"Carol" <sip:+4930123456@x>;tag=1' }
  t.equal(callerOf(messageOf(from), false), '+4930123456')
  t.equal(callerOf(messageOf({ ...from, Privacy: 'none' }), false), '+4930123456')
  t.equal(callerOf(messageOf({ ...from, Privacy: 'header;id' }), false), null)
  t.equal(callerOf(messageOf({ From: '<sip:100@x>', 'P-Asserted-Identity': '<sip:100@x>' }), true), null)
  t.end()
})

type Proof = { algorithm?: DigestAlgorithm; nc?: string | null; password?: string; username?: string; realm?: string }

function openVerifier(options: { maxRemembered?: number } = {}) {
  const clock = createHandClock()
  const verifier = createDigestVerifier({ now: clock.now, ...options })
  const expected = { realm: 'r', username: 'carol', password: 'open sesame' }
  const ask = (authorization?: string) => verifier.verify('INVITE', authorization, expected)
  const challenge = (authorization?: string) => {
    const verdict = ask(authorization)
    if (verdict.kind !== 'challenge') throw new Error(`no challenge but ${verdict.kind}`)
    return readChallenge(verdict.challenges[0]!)!
  }
  const prove = (nonce: string, proof: Proof = {}): string => {
    const { algorithm = 'SHA-256', nc = '00000001', password = 'open sesame', username = 'carol', realm = 'r' } = proof
    const shared = { username, realm, nonce, uri: 'sip:x', algorithm, nc, cnonce: nc === null ? null : 'c' }
    return writeCredentials({ ...shared, opaque: null, response: digestResponseOf(shared, 'INVITE', password) })
  }
  return { clock, verifier, ask, challenge, prove }
}

test('a password is proved by MD5 and SHA-256, with a counter that grows', (t) => {
  const { ask, challenge, prove, verifier } = openVerifier()
  const { nonce, stale } = challenge()
  t.equal(stale, false)
  t.equal(verifier.size(), 0, 'a challenge costs no memory')
  t.same(ask(prove(nonce)), { kind: 'proved', isThere: true })
  t.equal(challenge(prove(nonce)).stale, true, 'the same proof again')
  t.same(ask(prove(nonce, { nc: '0000000a', algorithm: 'MD5' })), { kind: 'proved', isThere: true })
  t.equal(challenge(prove(nonce, { nc: '00000009' })).stale, true, 'an older one')
  const without = challenge().nonce
  t.same(ask(prove(without, { nc: null })), { kind: 'proved', isThere: true })
  t.equal(challenge(prove(without, { nc: null })).stale, true, 'without a counter once only')
  t.same(
    ask(`${prove(nonce, { realm: 'other' })}, ${prove(nonce, { nc: '000000ff' })}`),
    { kind: 'proved', isThere: true },
    'among others',
  )
  t.end()
})

test('what is wrong is refused, what is old is challenged anew', (t) => {
  const { clock, ask, challenge, prove } = openVerifier()
  const { nonce } = challenge()
  t.match(ask(prove(nonce, { password: 'x' })), { kind: 'wrong', details: /password/ })
  t.match(ask(prove(challenge().nonce, { username: 'x' })), { kind: 'wrong', details: /username/ })
  t.equal(challenge('Basic Y2Fyb2w6eA==').stale, false)
  t.equal(challenge(prove('made.up.nonce')).stale, true)
  t.equal(challenge(prove(`${nonce}x`)).stale, true)
  clock.advance(300_000)
  t.equal(challenge(prove(nonce)).stale, true)
  t.end()
})

test('however many nonces prove something, memory is bounded and none is good twice', (t) => {
  const { clock, ask, challenge, prove, verifier } = openVerifier({ maxRemembered: 3 })
  const proofs = Array.from({ length: 10 }, () => {
    clock.advance(1)
    const proof = prove(challenge().nonce)
    t.same(ask(proof), { kind: 'proved', isThere: true })
    return proof
  })
  t.equal(verifier.size(), 3)
  for (const proof of proofs) t.equal(challenge(proof).stale, true)
  t.end()
})

test('no header makes reading numbers or proofs throw', (t) => {
  const random = createRandom(7)
  const { ask } = openVerifier()
  const pieces = [
    'sip:',
    '+49',
    '<',
    '>',
    '"',
    ';',
    ',',
    '@',
    '%',
    '%zz',
    '\\',
    'tel:',
    'Digest ',
    'nonce=',
    '=',
    ' ',
    '\u0000',
    '[::1]',
    'a',
  ]
  for (let round = 0; round < 3_000; round++) {
    const text = Array.from({ length: random.below(12) }, () => random.pick(pieces)).join('')
    const invite = inviteOf({ To: text, From: text, Diversion: text, 'P-Asserted-Identity': text, Privacy: text }, text)
    t.ok(calledNumbersOf(invite).length <= 8)
    callerOf(invite, true)
    ask(text)
    sdpIn(messageOf({ 'Content-Type': `multipart/mixed;boundary=${text}` }, `--${text}\r\n${text}`))
  }
  t.end()
})

test('the SDP of a message is its body or a part of it', (t) => {
  const parts = [
    '--b1',
    'Content-Type: application/isup',
    '',
    'x',
    '--b1',
    'Content-Type: application/sdp',
    '',
    'v=0',
    '--b1--',
  ]
  t.equal(sdpIn(messageOf({ 'Content-Type': 'multipart/mixed;boundary=b1' }, parts.join('\r\n'))), 'v=0\r\n')
  t.equal(sdpIn(messageOf({ 'Content-Type': 'multipart/mixed' }, parts.join('\r\n'))), null)
  t.equal(sdpIn(messageOf({ 'Content-Type': 'application/sdp; charset=utf-8' }, 'v=0')), 'v=0')
  t.equal(sdpIn(messageOf({}, 'v=0')), 'v=0')
  t.equal(sdpIn(messageOf({})), '')
  t.equal(sdpIn(messageOf({ 'Content-Type': 'text/plain' }, 'v=0')), null)
  t.end()
})

test('an INFO is a key in each of its spellings, or none', (t) => {
  const relay = (body: string) => keyIn(messageOf({ 'Content-Type': 'application/dtmf-relay' }, body))
  t.equal(relay('Signal=5\r\nDuration=160'), '5')
  t.equal(relay('Signal= #\r\n'), '#')
  t.equal(relay('Duration=160\r\nSignal=10\r\n'), '*')
  t.equal(relay('Signal=d'), 'D')
  t.equal(relay('Signal=77'), null)
  t.equal(keyIn(messageOf({ 'Content-Type': 'application/dtmf' }, '9')), '9')
  t.equal(keyIn(messageOf({ 'Content-Type': 'text/plain' }, '9')), null)
  t.end()
})

test('gateways are tried in their order, those known to be down at the end', (t) => {
  const hosts = (name: string) => trunkOf({ gateways: [{ host: `${name}1` }, { host: `${name}2` }] })
  const ways = orderWays([hosts('a'), trunkOf({}), hosts('b')], ({ host }) => host !== 'a1')
  t.same(
    ways.map(({ gateway }) => gateway.host),
    ['a2', 'b1', 'b2', 'a1'],
  )
  t.end()
})
