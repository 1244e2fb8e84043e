/** SIP headers of inbound calls as facts, and those that outbound calls take along. */
import { test, type Test } from 'tap'
import { CallHeaders, type SipFacts } from '../../model/sip-facts.ts'
import type { TrunkSettings } from '../../model/trunk.ts'
import { headerOf, headersOf } from '../../sip/server/message/header-fields.ts'
import { trunkOf } from '../fake/telephony-port.ts'
import { openEdgeScene } from '../scenes/sip-edge-scene.ts'

const sdp = 'v=0\r\no=- 7 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 40000 RTP/AVP 0\r\n'

async function openScene(t: Test, settings: TrunkSettings = {}) {
  const scene = await openEdgeScene(t)
  const { telephony, peer } = scene
  telephony.trunks = [trunkOf({ gateways: [{ host: '127.0.0.1', port: peer.port }], qualify: false, ...settings })]
  const factsOf = async (
    headers: readonly string[],
    words: { from?: string; uri?: string } = {},
  ): Promise<SipFacts> => {
    const before = telephony.begun.length
    const call = peer.invite({ body: sdp, headers, ...words })
    await call.answered()
    const facts = telephony.received[before]?.sip
    if (!facts) throw new Error('no facts were told')
    call.cancel()
    return facts
  }
  return { ...scene, factsOf }
}

test('the facts of an INVITE: its Call-ID, whom it called, and the headers that carriers and PBXs write', async (t) => {
  const { factsOf } = await openScene(t, { trustsIdentity: true })
  const facts = await factsOf(
    [
      'X-Account: 4711',
      'X-CRM-ID: as written',
      'x-lower: case',
      'User-to-User: 56a390f3d2b7310023a;encoding=hex',
      'Diversion: <sip:+4989555@carrier.test>;reason=user-busy',
      'P-Asserted-Identity: "Carol" <sip:+4915112345678;verstat=TN-Validation-Passed@carrier.test>',
      'Identity: eyJhbGciOiJFUzI1NiJ9.e30.x;info=<https://cert.test/a.pem>;ppt=shaken',
      'Subject: not asked for',
    ],
    { uri: 'sip:+4930123456@service.test;user=phone' },
  )
  t.match(facts.callId, /^peer-/)
  t.equal(facts.requestUri, 'sip:+4930123456@service.test;user=phone')
  t.match(facts, { called: '+4930123456', verstat: 'TN-Validation-Passed', trusted: true })
  t.match(facts.to, '<sip:+4930123456@service.test>')
  t.match(facts.from, '<sip:+4915112345678@carrier.test>')
  t.same(facts.headers, {
    'P-Asserted-Identity': '"Carol" <sip:+4915112345678;verstat=TN-Validation-Passed@carrier.test>',
    'User-to-User': '56a390f3d2b7310023a;encoding=hex',
    Diversion: '<sip:+4989555@carrier.test>;reason=user-busy',
    Identity: 'eyJhbGciOiJFUzI1NiJ9.e30.x;info=<https://cert.test/a.pem>;ppt=shaken',
    'X-Account': '4711',
    'X-CRM-ID': 'as written',
    'x-lower': 'case',
  })
})

test('verstat is found where carriers write it: at the number, at its URI, at the header', async (t) => {
  const { factsOf } = await openScene(t)
  const identity = (value: string) => factsOf([`P-Asserted-Identity: ${value}`])
  t.match(await identity('<tel:+15551234567;verstat=TN-Validation-Failed>'), { verstat: 'TN-Validation-Failed' })
  t.match(await identity('<sip:+15551234567@c.test;verstat=No-TN-Validation>'), { verstat: 'No-TN-Validation' })
  t.match(await identity('<sip:+15551234567@c.test>;verstat=A'), { verstat: 'A', trusted: false })
  t.match(await factsOf([], { from: 'sip:+1555;verstat=TN-Validation-Passed@c.test' }), {
    verstat: 'TN-Validation-Passed',
  })
  t.notOk('verstat' in (await factsOf([])))
})

test('who asks for privacy is told nowhere in the facts', async (t) => {
  const { factsOf } = await openScene(t, { trustsIdentity: true })
  const asserted = 'P-Asserted-Identity: <sip:+4915112345678@carrier.test>'
  const facts = await factsOf([asserted, 'Privacy: id', 'Remote-Party-ID: <sip:+4915112345678@carrier.test>', 'X-A: 1'])
  t.notMatch(JSON.stringify(facts), '15112345678')
  t.same(facts.headers, { Privacy: 'id', 'X-A': '1' })
})

test('a stranger who writes many and long headers fills nothing', async (t) => {
  const { factsOf } = await openScene(t)
  const many = await factsOf(Array.from({ length: 60 }, (_, index) => `X-H${index}: ${index}`))
  t.equal(Object.keys(many.headers).length, 32)
  const long = await factsOf([`X-Long: ${'x'.repeat(6_000)}`, `X-${'n'.repeat(200)}: v`])
  t.same(
    Object.entries(long.headers).map(([name, value]) => [name, value.length]),
    [['X-Long', 4_000]],
  )
  const heavy = await factsOf(Array.from({ length: 8 }, (_, index) => `X-H${index}: ${'x'.repeat(3_900)}`))
  t.ok(JSON.stringify(heavy).length < 20_000)
})

test('the headers of a call go out on its INVITE, and again when the INVITE is challenged', async (t) => {
  const { dial, peer, telephony } = await openScene(t)
  const trunk = telephony.trunks[0]!
  telephony.trunks = [
    {
      ...trunk,
      settings: { ...trunk.settings, username: 'u', headers: { 'x-order': 'trunk', 'X-T': '1' } },
      password: 'p',
    },
  ]
  await dial({ headers: { 'X-Order': '4711', 'X-Umlaut': 'Käthe' } })
  const first = await peer.request('INVITE')
  t.same(headersOf(first, 'X-Order'), ['4711'], 'the call’s word counts for the trunk’s')
  t.equal(headerOf(first, 'X-Umlaut'), 'Käthe')
  t.equal(headerOf(first, 'X-T'), '1')
  peer.answer(first, 401, { headers: ['WWW-Authenticate: Digest realm="r", nonce="n", qop="auth"'] })
  const proved = await peer.request('INVITE')
  t.equal(headerOf(proved, 'X-Order'), '4711')
  peer.answer(proved, 486)
})

test('headers that could change a call, or are none, are refused by their names', (t) => {
  const faults = (headers: unknown) =>
    (CallHeaders.safeParse(headers).error?.issues ?? []).map(({ path }) => path.join('.'))
  t.same(faults({ 'X-Order': '4711', 'x-a.b_c': 'Käthe “1”', 'X-Empty': '' }), [])
  for (const name of ['Via', 'From', 'P-Asserted-Identity', 'X-', 'X A', 'X-A:', 'X-A\r\nVia', 'Order', 'X-Ä', ''])
    t.same(faults({ [name]: 'v' }), [name], JSON.stringify(name))
  for (const value of [
    'a\r\nVia: x',
    'a\nb',
    'a\rb',
    '\0',
    '\t',
    '\u007f',
    '\u0085',
    '\u2028',
    'x'.repeat(513),
    7,
    null,
    ['a'],
  ])
    t.same(faults({ 'X-Foo': value }), ['X-Foo'], encodeURI(JSON.stringify(value)).slice(0, 40))
  t.same(faults({ 'X-A': '1', 'x-a': '2' }), ['x-a'])
  t.same(faults({ [`X-${'n'.repeat(63)}`]: '1' }), [`X-${'n'.repeat(63)}`])
  t.same(faults(Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`X-${index}`, 'v']))), [''])
  t.same(faults(Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`X-${index}`, 'v'.repeat(500)]))), [''])
  const began = performance.now()
  const many = Object.fromEntries(Array.from({ length: 80_000 }, (_, index) => [`x-${index.toString(36)}`, '']))
  t.same(faults(many), ['', ''])
  t.ok(performance.now() - began < 10_000, `as many as a body can have took ${performance.now() - began} ms`)
  t.end()
})
