/** What carriers and PBXs ask of a trunk, setting by setting, as the peer sees it on the wire. */
import { test, type Test } from 'tap'
import type { TrunkSettings } from '../../model/trunk.ts'
import {
  digestResponseOf,
  provesPassword,
  readChallenge,
  readCredentials,
  writeCredentials,
} from '../../sip/server/message/digest.ts'
import { headerOf } from '../../sip/server/message/header-fields.ts'
import type { SipRequest } from '../../sip/server/message/message.ts'
import { trunkOf } from '../fake/telephony-port.ts'
import { createDnsResolver } from '../../sip/server/transport/dns-resolver.ts'
import { startDnsServer } from '../fake/dns-server.ts'
import { openSipPeer } from '../fake/sip-peer.ts'
import { until } from '../scenes/in-time.ts'
import { openEdgeScene } from '../scenes/sip-edge-scene.ts'

const sdp = 'v=0\r\no=- 7 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 40000 RTP/AVP 0\r\n'

/** A trunk whose gateway is the peer. `invited`: the INVITE that goes out, refused. */
async function openScene(t: Test, settings: TrunkSettings = {}, password: string | null = null) {
  const scene = await openEdgeScene(t)
  const { telephony, peer, dial } = scene
  const use = (changed: TrunkSettings) => {
    const gateways = [{ host: '127.0.0.1', port: peer.port }]
    telephony.trunks = [trunkOf({ gateways, qualify: false, ...changed }, password)]
  }
  use(settings)
  const invited = async (changed: TrunkSettings): Promise<SipRequest> => {
    use(changed)
    await dial()
    const invite = await peer.request('INVITE')
    peer.answer(invite, 486)
    return invite
  }
  return { ...scene, use, invited }
}

test('numbers are written as the trunk wants them, on the called and on the calling side', async (t) => {
  const { invited } = await openScene(t)
  const vonage = await invited({ numberFormat: { called: 'digits', calling: 'digits' } })
  t.match(vonage.uri, /^sip:4915112345678@/)
  t.match(headerOf(vonage, 'To'), /^<sip:4915112345678@/)
  t.match(headerOf(vonage, 'From'), /^<sip:4930999@/)
  const national = { called: 'national', calling: 'national', countryCode: '49' } as const
  const box = await invited({ numberFormat: national, callerId: 'identity' })
  t.match(box.uri, /^sip:015112345678@/)
  t.match(headerOf(box, 'From'), /^<sip:030999@/)
  t.match(headerOf(box, 'P-Asserted-Identity'), /^<sip:030999@/)
  const outside = await invited({ numberFormat: { ...national, calling: 'plus' }, numberPrefix: '9' })
  t.match(outside.uri, /^sip:9015112345678@/, 'a digit for an outside line goes in front of what is dialed')
  t.match(headerOf(outside, 'From'), /^<sip:\+4930999@/)
})

test('the password is proved by the name of authUsername, and the line keeps its own', async (t) => {
  const settings = { username: '1002', authUsername: 'login7', callerId: 'username' } as const
  const { dial, peer, event } = await openScene(t, settings, 'open sesame')
  const { callId } = await dial()
  const first = await peer.request('INVITE')
  t.match(headerOf(first, 'From'), /^<sip:1002@/)
  peer.answer(first, 407, { headers: ['Proxy-Authenticate: Digest realm="pbx", nonce="n1", qop="auth"'] })
  const proved = await peer.request('INVITE')
  const credentials = readCredentials(headerOf(proved, 'Proxy-Authorization') ?? '')!
  t.equal(credentials.username, 'login7')
  t.ok(provesPassword(credentials, 'INVITE', 'open sesame'))
  t.match(headerOf(proved, 'From'), /^<sip:1002@/)
  peer.answer(proved, 200, { body: sdp })
  t.match(await event(callId), { type: 'connected' })
})

test('an inbound call proves the password by the name of authUsername', async (t) => {
  const { telephony, peer } = await openScene(t, { username: '1002', authUsername: 'login7' }, 'open sesame')
  telephony.mustAuthenticate = true
  const proofBy = async (username: string): Promise<number> => {
    const call = peer.invite({ body: sdp })
    const challenge = readChallenge(headerOf(await call.answered(), 'WWW-Authenticate') ?? '')!
    const { realm, nonce } = challenge
    const uri = 'sip:+4930123456@service.test'
    const proof = { username, realm, nonce, uri, algorithm: 'MD5', nc: '00000001', cnonce: 'c' } as const
    const response = digestResponseOf(proof, 'INVITE', 'open sesame')
    call.again([`Authorization: ${writeCredentials({ ...proof, opaque: null, response })}`])
    const { status } = await call.answered()
    if (status < 200) call.cancel()
    return status
  }
  t.equal(await proofBy('login7'), 180)
  t.equal(await proofBy('1002'), 403)
})

test('a caller whom the trunk names as within its country is known by the whole number', async (t) => {
  const { peer, begun, telephony } = await openScene(t, { numberFormat: { countryCode: '49' } })
  const call = peer.invite({ body: sdp, from: 'sip:015112345678@pbx.test' })
  await call.answered()
  await begun()
  t.equal(telephony.received[0]?.fromNumber, '+4915112345678')
  call.cancel()
})

test('the caller has a name, a preferred identity, and stands in headers of the trunk', async (t) => {
  const { invited } = await openScene(t)
  const named = await invited({ displayName: 'Käthe "K" \\ Co', callerId: 'identity', identityHeader: 'preferred' })
  t.match(headerOf(named, 'From'), '"Käthe \\"K\\" \\\\ Co" <sip:+4930999@127.0.0.1>')
  t.equal(headerOf(named, 'P-Preferred-Identity'), '"Käthe \\"K\\" \\\\ Co" <sip:+4930999@127.0.0.1>')
  t.equal(headerOf(named, 'P-Asserted-Identity'), null)
  const line = await invited({
    callerId: 'username',
    username: '1002',
    identityHeader: 'preferred',
    displayName: 'Desk',
  })
  t.match(headerOf(line, 'From'), /^"Desk" <sip:1002@/)
  t.match(headerOf(line, 'P-Preferred-Identity'), '<sip:+4930999@')
  const alone = await invited({ identityHeader: 'preferred' })
  t.match(headerOf(alone, 'P-Preferred-Identity'), '<sip:+4930999@', 'the header alone says that it is wanted')
  const headers = { 'X-Caller': '{from}', 'X-Route': 'tel:{to};from={from};{other}' }
  const filled = await invited({ headers, numberFormat: { called: 'digits', calling: 'digits' } })
  t.equal(headerOf(filled, 'X-Caller'), '4930999')
  t.equal(headerOf(filled, 'X-Route'), 'tel:4915112345678;from=4930999;{other}')
})

test('by an outbound proxy everything goes there, and the gateway stays in the Request-URI', async (t) => {
  const { invited, peer, telephony, clock, edge, dial } = await openScene(t)
  const outboundProxy = { host: '127.0.0.1', port: peer.port }
  const elsewhere = [{ host: 'carrier.invalid', port: 5099 }]
  const invite = await invited({ outboundProxy, gateways: elsewhere })
  t.equal(invite.uri, 'sip:+4915112345678@carrier.invalid:5099')
  t.equal(headerOf(invite, 'Route'), `<sip:127.0.0.1:${peer.port};lr>`)
  const settings = { outboundProxy, gateways: elsewhere, username: 'line7', register: true, registerExpires: 300 }
  telephony.trunks = [trunkOf(settings, 'open sesame')]
  clock.advance(31_000)
  await until(() => edge.health().trunks === 1)
  clock.advance(5_000)
  const register = await peer.request('REGISTER')
  t.equal(register.uri, 'sip:carrier.invalid:5099')
  t.equal(headerOf(register, 'Route'), `<sip:127.0.0.1:${peer.port};lr>`)
  t.equal(headerOf(register, 'Expires'), '300')
  peer.answer(register, 407, { headers: ['Proxy-Authenticate: Digest realm="r", nonce="n", qop="auth"'] })
  const proved = await peer.request('REGISTER')
  t.equal(headerOf(proved, 'Route'), `<sip:127.0.0.1:${peer.port};lr>`, 'the proof goes the same way')
  peer.answer(proved, 200)
  const options = await peer.request('OPTIONS')
  t.equal(options.uri, 'sip:carrier.invalid:5099')
  peer.answer(options, 200)
  await dial()
  const dialed = await peer.request('INVITE')
  peer.answer(dialed, 503)
  t.equal(headerOf(await peer.request('ACK'), 'Route'), `<sip:127.0.0.1:${peer.port};lr>`, 'RFC 3261 §17.1.1.3')
})

test('a trunk registers where its registrar is, or at every gateway, and tells how each does', async (t) => {
  const { peer, telephony, clock, edge, serverPort } = await openScene(t)
  const other = await openSipPeer(serverPort)
  t.teardown(() => other.close())
  const [here, there] = [peer, other].map(({ port }) => ({ host: '127.0.0.1', port }))
  const line = { username: 'line7', register: true, qualify: false } as const
  const keep = async (settings: TrunkSettings) => {
    const trunk = trunkOf(settings)
    telephony.trunks = [trunk]
    clock.advance(31_000)
    await until(() => telephony.reports.has(trunk.id))
    clock.advance(1_000)
    return () => telephony.reports.get(trunk.id)
  }
  const apart = await keep({ ...line, registrar: there!, gateways: [here!] })
  other.answer(await other.request('REGISTER'), 200)
  await until(() => apart()?.registration === 'registered')
  t.notOk(apart()?.registrations)

  const every = await keep({ ...line, registerWith: 'every', gateways: [here!, there!] })
  const farewell = other.request('REGISTER')
  other.answer(await farewell, 200)
  clock.advance(1_000)
  peer.answer(await peer.request('REGISTER'), 200)
  other.answer(await other.request('REGISTER'), 403, { reason: 'Forbidden' })
  await until(() => every()?.registrations?.every(({ registration }) => registration !== 'registering'))
  t.match(every(), { registration: 'failed', registrationDetails: '403 Forbidden' })
  t.match(every()?.registrations, [
    { ...here, registration: 'registered', registrationDetails: '200 Answer' },
    { ...there, registration: 'failed', registrationDetails: '403 Forbidden', registeredUntil: null },
  ])
  const closed = edge.close(0)
  peer.answer(await peer.request('REGISTER'), 200)
  await closed
})

test('a peer that knows us by a name finds it in Contact and Via, and ours and its own domain apart', async (t) => {
  const { invited, peer, use, dial, event, command, begun, server } = await openScene(t)
  const port = server.listening[0]!.local.port
  const names = {
    publicName: 'sbc.ours.test',
    domain: 'carrier.test',
    fromDomain: 'ours.test',
    callerId: 'identity',
  } as const
  const invite = await invited(names)
  t.equal(invite.uri, 'sip:+4915112345678@carrier.test')
  t.match(headerOf(invite, 'To'), '<sip:+4915112345678@carrier.test>')
  t.match(headerOf(invite, 'From'), '<sip:+4930999@ours.test>')
  t.match(headerOf(invite, 'P-Asserted-Identity'), '<sip:+4930999@ours.test>')
  t.equal(headerOf(invite, 'Contact'), `<sip:sbc.ours.test:${port}>`)
  t.match(headerOf(invite, 'Via'), new RegExp(`^SIP/2\\.0/UDP sbc\\.ours\\.test:${port};`))

  use(names)
  const { callId } = await dial()
  const talked = await peer.request('INVITE')
  peer.answer(talked, 200, { body: sdp })
  t.match(await event(callId), { type: 'connected' })
  t.match(headerOf(await peer.request('ACK'), 'Via'), 'sbc.ours.test')
  // The peer of this test cannot look the name up.
  const there = {
    ...talked,
    headers: talked.headers.map((field) =>
      field.name === 'Contact' ? { ...field, value: `<sip:127.0.0.1:${port}>` } : field,
    ),
  }
  const changed = await peer.callOf(there).reinvite({ body: sdp })
  t.equal(headerOf(changed, 'Contact'), `<sip:sbc.ours.test:${port}>`)
  await command(callId, { type: 'close', reason: 'completed' })
  const bye = await peer.request('BYE')
  t.match(headerOf(bye, 'Via'), 'sbc.ours.test')
  peer.answer(bye, 200)

  const call = peer.invite({ body: sdp })
  t.equal(headerOf(await call.answered(), 'Contact'), `<sip:sbc.ours.test:${port}>`)
  const arrived = await begun()
  await command(arrived, { type: 'answer' })
  t.equal(headerOf(await call.answered(), 'Contact'), `<sip:sbc.ours.test:${port}>`)
  call.cancel()
})

test('OPTIONS and REGISTER say the public name too', async (t) => {
  const { peer, telephony, clock, edge } = await openScene(t)
  const gateways = [{ host: '127.0.0.1', port: peer.port }]
  const names = { publicName: 'sbc.ours.test', fromDomain: 'sbc.ours.test' }
  telephony.trunks = [trunkOf({ gateways, ...names, username: 'line7', register: true })]
  clock.advance(31_000)
  await until(() => edge.health().trunks === 1)
  clock.advance(5_000)
  const register = await peer.request('REGISTER')
  t.match(headerOf(register, 'Contact'), '<sip:line7@sbc.ours.test:')
  peer.answer(register, 200)
  const options = await peer.request('OPTIONS')
  t.match(headerOf(options, 'Contact'), '<sip:sbc.ours.test:')
  t.match(headerOf(options, 'From'), '<sip:sbc.ours.test>')
  peer.answer(options, 200)
})

test('names that calls come from are looked up while the trunk is kept, and again when their time is over', async (t) => {
  const zone: Record<string, { A?: string[]; SRV?: string[]; fails?: number }> = {
    'carrier.test': { A: ['192.0.2.1', '192.0.2.2'] },
    'pbx.test': {},
    '_sip._udp.pbx.test': { SRV: ['10 10 5060 node.pbx.test'] },
    'node.pbx.test': { A: ['192.0.2.9'] },
  }
  const dns = await startDnsServer(zone)
  const resolver = createDnsResolver({ servers: [dns.server], timeout: 1_000, tries: 1 })
  const { telephony, clock, log } = await openEdgeScene(t, { resolver })
  t.teardown(async () => {
    resolver.close()
    await dns.close()
  })
  const gateways = [{ host: 'pbx.test' }]
  const line = { username: 'line7', register: true, qualify: false, gateways }
  const trunk = trunkOf({ ...line, allowedAddresses: ['203.0.113.0/24', 'Carrier.test', 'gone.test'] })
  telephony.trunks = [trunk]
  clock.advance(31_000)
  const found = () => new Map((telephony.sources.get(trunk.id) ?? []).map(({ name, addresses }) => [name, addresses]))
  await until(() => (clock.advance(1_000), found().size === 2))
  t.same(found().get('carrier.test'), ['192.0.2.1', '192.0.2.2'])
  t.same(found().get('pbx.test'), ['192.0.2.9'], 'calls come back from where the line is registered')
  await until(() => log.lines.some(({ fields }) => fields['host'] === 'gone.test'))
  zone['carrier.test'] = { A: ['192.0.2.3'] }
  telephony.sources.clear()
  await until(() => (clock.advance(1_000), found().get('carrier.test')))
  t.same(found().get('carrier.test'), ['192.0.2.3'])
  zone['carrier.test'] = { fails: 2 }
  telephony.sources.clear()
  await until(() => (clock.advance(1_000), found().get('pbx.test')))
  t.notOk(found().has('carrier.test'), 'a DNS that does not answer takes nothing away')
})
