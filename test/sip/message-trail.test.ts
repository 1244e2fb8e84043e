/** SIP messages while their calls run: whose they are, how many are kept, and what of them is not. */
import { test } from 'tap'
import type { CallId } from '../../model/ids.ts'
import { createMessageTrail } from '../../sip/message-trail.ts'
import type { SipRequest } from '../../sip/server/message/message.ts'
import { newId } from '../scenes/tenant.ts'

const place = { address: '2001:db8::1', port: 5060 }
const flow = { protocol: 'tls', remote: place, local: place, connection: 1 } as const

const request = (
  sipCallId: string,
  method = 'INVITE',
  more: Readonly<Record<string, string>> = {},
  body = '',
): SipRequest => ({
  kind: 'request',
  method,
  uri: 'sip:4711@127.0.0.1',
  headers: Object.entries({ 'Call-ID': sipCallId, CSeq: `1 ${method}`, ...more }).map(([name, value]) => ({
    name,
    value,
  })),
  body: Buffer.from(body),
})
const opened = () => {
  const trail = createMessageTrail({ now: () => 0 })
  const callId: CallId = newId<'call'>()
  return { trail, callId }
}

test('messages from before the call is known are its own, and so are those of each gateway', (t) => {
  const { trail, callId } = opened()
  trail.note('in', request('a'), flow)
  trail.keep(callId, 'a')
  trail.note('out', request('b'), flow)
  trail.keep(callId, 'b')
  trail.note('in', request('b', 'BYE'), flow)
  trail.note('in', request('c'), flow)
  const { entries, leftOut } = trail.take(callId)
  t.same(
    entries.map(({ text }) => text.slice(0, 6)),
    ['INVITE', 'INVITE', 'BYE si'],
  )
  t.match(entries[0], { remote: '[2001:db8::1]:5060', protocol: 'tls' })
  t.equal(leftOut, 0)
  t.same(trail.take(callId).entries, [], 'once')
  t.end()
})

test('a flood of strangers, and a call that never ends, fill no memory', (t) => {
  const { trail, callId } = opened()
  trail.keep(callId, 'ours')
  trail.note('in', request('early'), flow)
  for (let n = 0; n < 2_000; n++) trail.note('in', request(`stranger-${n}`), flow)
  for (let n = 0; n < 150; n++) trail.note('in', request('ours', 'INFO'), flow)
  trail.note('in', request('ours', 'OPTIONS'), flow)
  trail.keep(callId, 'early')
  const { entries, leftOut } = trail.take(callId)
  t.equal(entries.length, 100)
  t.equal(leftOut, 50, 'keeping alive is not counted, and what came too early is forgotten')
  t.end()
})

test('strangers whose messages are large are forgotten sooner than those whose are small', (t) => {
  const { trail, callId } = opened()
  const large = 'x'.repeat(60_000)
  trail.note('in', request('early'), flow)
  for (let n = 0; n < 100; n++) trail.note('in', request(`large-${n}`, 'INVITE', {}, large), flow)
  trail.keep(callId, 'early')
  t.equal(trail.take(callId).entries.length, 1, '6 MB are kept for a moment')
  const known = (sipCallId: string): boolean => {
    trail.keep(callId, sipCallId)
    return trail.take(callId).entries.length > 0
  }
  for (let n = 0; n < 50; n++)
    for (let again = 0; again < 12; again++)
      trail.note('in', request(`more-${n}`, 'INVITE', { 'X-Large': large }), flow)
  t.notOk(known('large-99'), 'of 36 MB more')
  t.notOk(known('more-30'))
  t.ok(known('more-49'), 'the newest are left')
  t.end()
})

test('what is secret, or pressed, or who wants to be nobody, is not written down', (t) => {
  const { trail, callId } = opened()
  trail.keep(callId, 'a')
  const secrets = {
    'Proxy-Authorization': 'Digest response="d00d"',
    'X-Api-Key': 'k3y',
    Privacy: 'id',
    'P-Asserted-Identity': '<sip:+491234567@carrier.test>',
    Contact: '<sip:user:passw0rd@192.0.2.1>',
    'Content-Type': 'application/sdp',
  }
  const sdp =
    'v=0\r\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:S3cr3t|2^20\r\na=ice-pwd:hush\r\nm=audio 4000 RTP/SAVP 0\r\n'
  trail.note('in', request('a', 'INVITE', secrets, sdp), flow)
  trail.note('in', request('a', 'INFO', { 'Content-Type': 'application/dtmf-relay' }, 'Signal=7\r\n'), flow)
  trail.note('in', request('a', 'MESSAGE', { 'X-Long': 'x'.repeat(10_000) }), flow)
  const { entries } = trail.take(callId)
  const told = entries.map(({ text }) => text).join('\n')
  t.notMatch(told, /d00d|k3y|491234567|passw0rd|S3cr3t|hush|Signal/)
  t.match(told, /a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:\[masked\][^]*m=audio 4000/)
  t.match(told, /\[10 bytes that are no SDP\]/)
  t.ok(entries.every(({ text }) => text.length <= 4_096))
  t.end()
})
