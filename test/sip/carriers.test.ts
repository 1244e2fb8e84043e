/** Calls as carriers, PBXes and phones of today make them, each with its habits; on the wire, over the whole edge. */
import { once } from 'node:events'
import tls from 'node:tls'
import { test, type Test } from 'tap'
import type { CallId } from '../../model/ids.ts'
import type { NegotiatedAudio } from '../../model/rtp-transport.ts'
import type { TrunkSettings } from '../../model/trunk.ts'
import { createChallengeAnswers } from '../../sip/challenge-answers.ts'
import type { LocalMedia } from '../../media/rtp/media-session.ts'
import { answerOffer } from '../../sip/sdp/answer-offer.ts'
import { createOtherTypes } from '../../media/rtp/other-types.ts'
import { tagOf } from '../../sip/server/message/address.ts'
import { provesPassword, readCredentials } from '../../sip/server/message/digest.ts'
import { headerOf, valuesOf } from '../../sip/server/message/header-fields.ts'
import type { SipMessage, SipRequest } from '../../sip/server/message/message.ts'
import { createDnsResolver } from '../../sip/server/transport/dns-resolver.ts'
import { grantedSeconds } from '../../sip/trunk/registration-plan.ts'
import { startDnsServer, type Zone } from '../fake/dns-server.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createRtpPeer } from '../fake/rtp-peer.ts'
import { until } from '../scenes/in-time.ts'
import { openEdgeScene, type EdgeScene } from '../scenes/sip-edge-scene.ts'
import { openSipWire, sdp, type SipWire } from '../fake/sip-wire.ts'
import { trunkOf } from '../fake/telephony-port.ts'
import { carrierTls } from '../scenes/tls.ts'
import { bodyText } from '../scenes/body-text.ts'

/** A DNS of the test's own, closed with it. */
async function resolverOf(t: Test, zone: Zone) {
  const dns = await startDnsServer(zone)
  const resolver = createDnsResolver({ servers: [dns.server], timeout: 1_000, tries: 1 })
  t.teardown(async () => {
    resolver.close()
    await dns.close()
  })
  return resolver
}

async function wireOf(t: Test, serverPort: number, protocol: 'udp' | 'tcp' | 'tls' = 'udp'): Promise<SipWire> {
  const wire = await openSipWire(serverPort, protocol)
  t.teardown(() => wire.close())
  return wire
}

/** A trunk by TLS whose certificate names carrier.test and no address; the service listens for UDP only. */
async function openTlsScene(t: Test, settings: TrunkSettings = {}, password: string | null = null) {
  const resolver = await resolverOf(t, { 'carrier.test': { A: ['127.0.0.1'] } })
  const scene = await openEdgeScene(t, { server: { resolver, tlsClient: { ca: carrierTls.cert, verify: true } } })
  const wire = await wireOf(t, scene.serverPort, 'tls')
  const gateway = { host: 'carrier.test', port: wire.port, transport: 'tls' } as const
  scene.telephony.trunks = [trunkOf({ gateways: [gateway], qualify: false, encryption: 'none', ...settings }, password)]
  return { ...scene, wire }
}

test('a call by TLS needs no certificate of ours, and its requests go both ways by the one connection', async (t) => {
  const { wire, dial, event, command, server } = await openTlsScene(t)
  const { callId } = await dial()
  const invite = await wire.request('INVITE')
  t.match(headerOf(invite, 'Via'), /^SIP\/2\.0\/TLS 127\.0\.0\.1:/)
  // Contact and Record-Route of carriers are addresses, which their certificates do not name.
  wire.answer(invite, 200, 'carrier', [], sdp())
  t.match(await event(callId), { type: 'connected' })
  await wire.request('ACK')
  t.equal(server.sizes().connections, 1)
  wire.ask('OPTIONS', {
    callId: headerOf(invite, 'Call-ID')!,
    fromTag: 'carrier',
    toTag: /tag=(\w+)/.exec(headerOf(invite, 'From')!)![1]!,
    cseq: 7,
  })
  t.equal((await wire.response('7 OPTIONS')).status, 200)
  await command(callId, { type: 'close', reason: 'completed' })
  wire.answer(await wire.request('BYE'), 200)
})

test('a carrier by TLS asks for the password, and gets it by the same connection', async (t) => {
  const { wire, dial, event, server } = await openTlsScene(t, { username: 'line' }, 'secret')
  const { callId } = await dial()
  const challenge = ['Proxy-Authenticate: Digest realm="carrier.test", nonce="n", qop="auth"']
  wire.answer(await wire.request('INVITE'), 407, 'carrier', challenge)
  await wire.request('ACK')
  const proved = await wire.request('INVITE')
  t.ok(headerOf(proved, 'Proxy-Authorization'))
  wire.answer(proved, 486, 'carrier')
  t.match(await event(callId), { outcome: { status: 'busy' } })
  t.equal(server.sizes().connections, 1)
})

async function openUdpScene(t: Test, settings: TrunkSettings = {}, password: string | null = null) {
  const scene = await openEdgeScene(t)
  const wire = await wireOf(t, scene.serverPort)
  const gateway = { host: '127.0.0.1', port: wire.port }
  scene.telephony.trunks = [trunkOf({ gateways: [gateway], qualify: false, ...settings }, password)]
  return { ...scene, wire }
}

const isInvite = (message: SipMessage): boolean => message.kind === 'request' && message.method === 'INVITE'

const idsOf = (invite: SipRequest, tag = 'carrier') => ({
  callId: headerOf(invite, 'Call-ID')!,
  fromTag: tag,
  toTag: tagOf(invite, 'From')!,
})

/** What the leg says goes there. */
async function start({ command }: Pick<EdgeScene, 'command'>, callId: CallId): Promise<void> {
  const format = { encoding: 'pcmu', rateHz: 8000 } as const
  await command(callId, { type: 'start', hears: [format], speaks: [format], recording: null })
}

async function rtpOf(t: Test) {
  const rtp = await createRtpPeer()
  t.teardown(() => rtp.close())
  return rtp
}

test('each challenge is met as it is written', async (t) => {
  const scene = await openUdpScene(t, { username: 'line', digestQop: 'optional' }, 'secret')
  const { wire, dial, event } = scene
  const asks = (rest: string) => `Digest realm="Acme, \\"Voice\\"", ${rest}`
  const meets = async (challenges: readonly string[], expected: object) => {
    const { callId } = await dial()
    wire.answer(
      await wire.request('INVITE'),
      401,
      'c',
      challenges.map((one) => `WWW-Authenticate: ${one}`),
    )
    await wire.request('ACK')
    const proved = await wire.request('INVITE')
    const credentials = readCredentials(headerOf(proved, 'Authorization')!)!
    t.match(credentials, { realm: 'Acme, "Voice"', username: 'line', ...expected })
    t.ok(provesPassword(credentials, 'INVITE', 'secret'))
    wire.answer(proved, 486, 'c')
    t.match(await event(callId), { outcome: { status: 'busy' } })
  }
  await meets([asks('nonce="n", qop="auth-int,auth", opaque="o"')], { opaque: 'o', nc: '00000001' })
  await meets([asks('nonce="n"')], { nc: null })
  await meets([asks('nonce="s", algorithm=SHA-256, qop="auth"'), asks('nonce="m", algorithm=MD5, qop="auth"')], {
    nonce: 's',
    algorithm: 'SHA-256',
  })
  await meets([asks('nonce="m", algorithm=MD5, qop="auth"'), asks('nonce="s", algorithm=SHA-256, qop="auth"')], {
    nonce: 's',
  })
  await meets([asks('nonce="s", algorithm=sha-256-SESS, qop="auth"')], { algorithm: 'SHA-256-sess' })
  await meets([asks('nonce="m", algorithm=MD5-sess, qop="auth"')], { algorithm: 'MD5-sess' })
  await meets([asks('nonce="x", algorithm=SHA-512-256'), asks('nonce="m", algorithm=MD5, qop="auth"')], { nonce: 'm' })

  const { callId } = await dial()
  wire.answer(await wire.request('INVITE'), 407, 'p', ['Proxy-Authenticate: Digest realm="proxy", nonce="1"'])
  const atProxy = await wire.request('INVITE')
  wire.answer(atProxy, 401, 'u', ['WWW-Authenticate: Digest realm="pbx", nonce="2"'])
  const atBoth = await wire.request('INVITE')
  t.ok(headerOf(atBoth, 'Proxy-Authorization'))
  wire.answer(atBoth, 401, 'u', ['WWW-Authenticate: Digest realm="pbx", nonce="3", stale=true'])
  const fresh = await wire.request('INVITE')
  t.match(readCredentials(headerOf(fresh, 'Authorization')!), { nonce: '3' })
  wire.answer(fresh, 401, 'u', ['WWW-Authenticate: Digest realm="pbx", nonce="4"'])
  t.match(await event(callId), { outcome: { reason: 'sip_call_failed' }, providerStatus: /401/ })
})

test('a challenge without qop is met only where the trunk says so', async (t) => {
  const { wire, dial, event, telephony } = await openUdpScene(t, { username: 'line' }, 'secret')
  const { callId } = await dial()
  wire.answer(await wire.request('INVITE'), 401, 'c', ['WWW-Authenticate: Digest realm="r", nonce="n"'])
  t.match(await event(callId), { providerStatus: /401/ })
  const [trunk] = telephony.trunks
  t.match(telephony.realms.get(trunk!.id), [{ host: '127.0.0.1', proved: [], refused: /no qop.*digestQop/ }])
  telephony.trunks = [{ ...trunk!, settings: { ...trunk!.settings, digestQop: 'optional' } }]
  await wire.request('ACK')
  const second = await dial()
  wire.answer(await wire.request('INVITE'), 401, 'd', ['WWW-Authenticate: Digest realm="r", nonce="n"'])
  await wire.request('ACK')
  wire.answer(await wire.request('INVITE'), 486, 'd')
  t.match(await event(second.callId), { outcome: { status: 'busy' } })
})

test('a call that is given up while its password is asked for is not placed again', async (t) => {
  const { wire, dial, event, clock } = await openUdpScene(t, { username: 'line' }, 'secret')
  const { callId } = await dial({ ringTimeout: 20_000 })
  const invite = await wire.request('INVITE')
  clock.advance(20_000)
  wire.answer(invite, 401, 'c', ['WWW-Authenticate: Digest realm="r", nonce="n"'])
  // Nobody's telephone rang.
  t.match(await event(callId), { type: 'dial_failed', outcome: { status: 'failed', reason: 'sip_call_failed' } })
  await wire.request('ACK')
  t.equal(wire.waiting(isInvite), 0)
})

test('the answer to a challenge goes to the server that made it', (t) => {
  const sent = { get: (name: string) => ({ cseq: '7 INVITE', from: 'f', 'call-id': 'i' })[name] }
  const hopAfter = (uri: string, from: object, proxy?: string) =>
    createChallengeAnswers({ username: 'u', password: 'p', realm: null }).answer({
      method: 'INVITE',
      uri,
      proxy,
      sent: { ...sent, ...from },
      response: { status: 401, reason: '', get: () => 'Digest realm="r", nonce="n"', protocol: 'tls', ...from },
    })?.proxy
  const source = { source_address: '203.0.113.7', source_port: 5061 }
  t.equal(hopAfter('sip:1@carrier.test', source), 'sip:203.0.113.7:5061;transport=tls')
  t.equal(hopAfter('sip:1@trunk.test', source, 'sip:carrier.test'), 'sip:203.0.113.7:5061;transport=tls')
  t.equal(
    hopAfter('sip:1@carrier.test', { ...source, source_address: '2001:db8::7' }),
    'sip:[2001:db8::7]:5061;transport=tls',
  )
  t.equal(hopAfter('sip:1@198.51.100.1', source), null, 'an address is the server')
  t.equal(hopAfter('sip:1@pbx.lan', { ...source, source_address: '192.168.1.5' }), null, 'what is allowed by name')
  t.end()
})

test('requests within a call follow the Record-Route of two proxies, one of them at two transports', async (t) => {
  const listen = [
    { protocol: 'udp', address: '127.0.0.1', port: 0 },
    { protocol: 'tcp', address: '127.0.0.1', port: 0 },
  ] as const
  const scene = await openEdgeScene(t, { listen })
  const { telephony, dial, event, command, server } = scene
  const [gateway, inner] = [await wireOf(t, scene.serverPort), await wireOf(t, server.listening[1]!.local.port, 'tcp')]
  telephony.trunks = [trunkOf({ gateways: [{ host: '127.0.0.1', port: gateway.port }], qualify: false })]
  const { callId } = await dial()
  const routes = [
    'Record-Route: <sip:192.0.2.9;lr>, <sip:192.0.2.8:5070;r2=on;lr=on>',
    `Record-Route: <sip:127.0.0.1:${inner.port};transport=tcp;r2=on;lr>`,
  ]
  const contact = 'Contact: "The callee" <sip:callee@192.0.2.77:5099;ob>;+sip.instance="<urn:uuid:1>"'
  gateway.answer(await gateway.request('INVITE'), 200, 'c', [...routes, contact], sdp())
  const ack = await inner.request('ACK')
  t.same(valuesOf(ack, 'Route'), [
    `<sip:127.0.0.1:${inner.port};transport=tcp;r2=on;lr>`,
    '<sip:192.0.2.8:5070;r2=on;lr=on>',
    '<sip:192.0.2.9;lr>',
  ])
  t.equal(ack.uri, 'sip:callee@192.0.2.77:5099;ob')
  t.match(await event(callId), { type: 'connected' })
  await command(callId, { type: 'close', reason: 'completed' })
  inner.answer(await inner.request('BYE'), 200)
})

test('the 200 of a branch stands with the description of its own 183, not of another', async (t) => {
  const scene = await openUdpScene(t)
  const { wire, dial, event } = scene
  const [taken, other] = [await rtpOf(t), await rtpOf(t)]
  const { callId } = await dial()
  const invite = await wire.request('INVITE')
  wire.answer(invite, 100)
  wire.answer(invite, 183, 'taken', [], sdp(taken.local.port))
  wire.answer(invite, 180, 'other')
  wire.answer(invite, 183, 'other', [], sdp(other.local.port))
  wire.answer(invite, 200, 'taken')
  await wire.request('ACK')
  for (let type = ''; type !== 'connected';) type = (await event(callId)).type
  await start(scene, callId)
  await taken.next()
  t.equal(other.waiting(), 0)
})

test('a 200 that says something else than the 183 before counts', async (t) => {
  const scene = await openUdpScene(t)
  const { wire, dial, event } = scene
  const [early, late] = [await rtpOf(t), await rtpOf(t)]
  const { callId } = await dial()
  const invite = await wire.request('INVITE')
  wire.answer(invite, 183, 'c', [], sdp(early.local.port))
  await event(callId)
  wire.answer(
    invite,
    200,
    'c',
    [],
    sdp(late.local.port).replace('RTP/AVP 0', 'RTP/AVP 8 0 96\r\na=rtpmap:96 telephone-event/8000'),
  )
  t.match(await event(callId), { type: 'connected' })
  await start(scene, callId)
  const { bytes } = await late.next()
  t.equal(bytes[1]! & 0x7f, 8)
  t.equal(early.waiting(), 0)
})

test('sound in the other law is heard, and keys under the number that we offered', (t) => {
  const types = createOtherTypes()
  const audio: NegotiatedAudio = {
    codec: 'pcmu',
    payloadType: 0,
    clockRateHz: 8000,
    telephoneEventPayloadType: 96,
    comfortNoisePayloadType: null,
    packetMs: 20,
    silence: 'continuous',
  }
  const packet = { marker: false, sequenceNumber: 1, timestamp: 160, payload: new Uint8Array([0xd5, 0x2a, 0x55]) }
  const heard = types.agreed({ ...packet, payloadType: 8 }, audio)
  t.equal(heard.payloadType, 0)
  t.same([...heard.payload.subarray(0, 1)], [0xfe], 'A-law has no code of its own for zero')
  t.equal(types.agreed({ ...packet, payloadType: 101 }, audio).payloadType, 96)
  t.equal(types.agreed({ ...packet, payloadType: 3 }, audio).payloadType, 3)
  t.equal(types.agreed({ ...packet, payloadType: 0 }, { ...audio, codec: 'g722', payloadType: 9 }).payloadType, 0)
  t.end()
})

/** A call that came in and talks. */
async function talking(scene: EdgeScene & { readonly wire: SipWire }, body = sdp(), headers: readonly string[] = []) {
  const { wire, begun, command, event } = scene
  const callId = `in-${wire.port}`
  const ask = { callId, fromTag: 'pbx', cseq: 1, uri: 'sip:+4930123456@service.test' }
  wire.ask('INVITE', { ...ask, headers, body })
  await wire.response('1 INVITE', 180)
  const id = await begun()
  await command(id, { type: 'answer' })
  const answer = await wire.response('1 INVITE', 200)
  const within = { ...ask, toTag: tagOf(answer, 'To')! }
  wire.ask('ACK', within)
  while ((await event(id)).type !== 'connected');
  return { id, answer, within }
}

test('hold in each of its ways is agreed on; who only listens is spoken to, and sound goes to the other port when it is over', async (t) => {
  const scene = await openUdpScene(t)
  const { wire } = scene
  const [first, second, listening] = [await rtpOf(t), await rtpOf(t), await rtpOf(t)]
  const { id, within } = await talking(scene, sdp(first.local.port))
  await start(scene, id)
  await first.next()
  let cseq = 1
  const reinvite = async (body: string, expected: RegExp) => {
    wire.ask('INVITE', { ...within, cseq: ++cseq, body })
    const answer = await wire.response(`${cseq} INVITE`)
    t.equal(answer.status, 200)
    t.match(bodyText(answer), expected)
    wire.ask('ACK', { ...within, cseq })
  }
  const port = first.local.port
  await reinvite(sdp(port, 2).replace('sendrecv', 'sendonly'), /a=recvonly/)
  await reinvite(sdp(port, 3).replace('sendrecv', 'inactive'), /a=inactive/)
  await reinvite(sdp(port, 4).replace('c=IN IP4 127.0.0.1', 'c=IN IP4 0.0.0.0'), /m=audio [1-9]/)
  await reinvite(sdp(listening.local.port, 5).replace('sendrecv', 'recvonly'), /a=sendonly/)
  await listening.next()
  await reinvite(sdp(second.local.port, 6), /a=sendrecv/)
  await second.next()
})

test('keys that come by INFO and with the sound are pressed once', async (t) => {
  const scene = await openUdpScene(t)
  const { wire, event } = scene
  const rtp = await rtpOf(t)
  const body = sdp(rtp.local.port).replace('RTP/AVP 0', 'RTP/AVP 0 127\r\na=rtpmap:127 telephone-event/8000')
  const { id, answer, within } = await talking(scene, body)
  const place = { address: '127.0.0.1', port: Number(/m=audio (\d+)/.exec(bodyText(answer))![1]) }
  const info = async (cseq: number, key: string) => {
    wire.ask('INFO', { ...within, cseq, headers: ['Content-Type: application/dtmf-relay'], body: `Signal=${key}\r\n` })
    await wire.response(`${cseq} INFO`, 200)
  }
  const press = (sequenceNumber: number, key: number) =>
    rtp.send(place, { sequenceNumber, payloadType: 127, marker: true, payload: new Uint8Array([key, 10, 0, 160]) })
  await start(scene, id)
  await info(2, '1')
  t.match(await event(id), { type: 'dtmf', digit: '1' })
  await press(1, 2)
  t.match(await event(id), { type: 'dtmf', digit: '2' })
  await info(3, '2')
  await press(2, 3)
  t.match(await event(id), { type: 'dtmf', digit: '3' })
})

test('what keeps a NAT open disturbs nobody', async (t) => {
  const { wire } = await openUdpScene(t)
  const stun = '\u0000\u0001\u0000\u0000!\u0012$Babcdefghijkl'
  for (const bytes of ['\r\n\r\n', '\0', '', '\r\n', 'jaK', stun]) wire.sendRaw(bytes)
  wire.ask('OPTIONS', { callId: 'k', fromTag: 'f', cseq: 1 })
  t.equal((await wire.response('1 OPTIONS')).status, 200)
})

test('a line that is called by its username is found by the number the network names', async (t) => {
  const { wire, begun, telephony } = await openUdpScene(t)
  const headers = ['P-Called-Party-ID: <sip:+4930123456;npdi@ims.test;user=phone>']
  wire.ask('INVITE', {
    callId: 'p',
    fromTag: 'f',
    cseq: 1,
    uri: 'sip:line7-a8f3@service.test;rinstance=77',
    headers,
    body: sdp(),
  })
  await begun()
  t.equal(telephony.received.length, 1)
})

test('a registration is known among others by its address, however the registrar writes it', (t) => {
  const message = (Contact: string, more: object = {}) => ({
    get: (name: string) => ({ Contact, ...more })[name as 'Contact'],
  })
  const sent = message('<sip:line7@198.51.100.1:5060>')
  const rows: readonly (readonly [string, number])[] = [
    ['<sip:a@192.0.2.1>;expires=9, "Line" <sip:line7@198.51.100.1:5060;ob;rinstance=1>;expires=120;q=0.5', 120],
    ['<sip:a@192.0.2.1>;expires=9, <sip:LINE7@198.51.100.1>;expires=300', 300],
    ['<sip:a@192.0.2.1>;expires=900, <sip:line7@198.51.100.1:40211>;expires=60', 60],
    ['<sip:a@192.0.2.1>;expires=900, <sip:line7@203.0.113.5:40211>;expires=60', 60],
  ]
  for (const [contact, seconds] of rows) t.equal(grantedSeconds(message(contact), sent), seconds, contact)
  t.equal(grantedSeconds(message('<sip:line7@198.51.100.1:5060>', { Expires: '77' }), sent), 77)
  t.end()
})

test('a call of an hour is kept by the refreshes of either side, and every timer of it is gone at its end', async (t) => {
  const time = createHandClock()
  const scene = await openEdgeScene(t, { server: { clock: time } })
  const wire = await wireOf(t, scene.serverPort)
  const { telephony, dial, event, command } = scene
  telephony.trunks = [trunkOf({ gateways: [{ host: '127.0.0.1', port: wire.port }], qualify: false })]
  const { callId } = await dial()
  const invite = await wire.request('INVITE')
  const session = ['Session-Expires: 1800;refresher=uas', 'Require: timer', 'Allow: INVITE, ACK, BYE, UPDATE']
  wire.answer(invite, 200, 'carrier', session, sdp())
  await wire.request('ACK')
  t.match(await event(callId), { type: 'connected' })
  const ids = idsOf(invite)
  for (let cseq = 2; cseq <= 8; cseq += 2) {
    time.advance(900_000)
    // By turns UPDATE and INVITE, both without a description.
    const method = cseq % 4 === 0 ? 'INVITE' : 'UPDATE'
    wire.ask(method, { ...ids, cseq, headers: ['Session-Expires: 1800;refresher=uac', 'Supported: timer'] })
    const answer = await wire.response(`${cseq} ${method}`)
    t.equal(answer.status, 200)
    t.equal(headerOf(answer, 'Session-Expires'), '1800;refresher=uac')
    if (method === 'INVITE') wire.ask('ACK', { ...ids, cseq, body: sdp() })
    // The ACK is there when what was sent behind it is answered.
    wire.ask('OPTIONS', { ...ids, cseq: cseq + 1 })
    await wire.response(`${cseq + 1} OPTIONS`)
  }
  await command(callId, { type: 'close', reason: 'completed' })
  wire.answer(await wire.request('BYE'), 200)
  await until(() => scene.server.sizes().dialogs === 0)
  time.advance(600_000)
  t.equal(scene.server.sizes().transactions, 0)
})

test('both sides hang up at once', async (t) => {
  const scene = await openUdpScene(t)
  const { wire, command, server } = scene
  const { id, within } = await talking(scene)
  await command(id, { type: 'close', reason: 'completed' })
  const ours = await wire.request('BYE')
  wire.ask('BYE', { ...within, cseq: 2 })
  const { status } = await wire.response('2 BYE')
  t.ok(status === 200 || status === 481, String(status))
  wire.answer(ours, 481)
  await until(() => server.sizes().dialogs === 0)
})

test('a gateway by TCP that closes its connection between calls is called by another one', async (t) => {
  const listen = [{ protocol: 'tcp', address: '127.0.0.1', port: 0 } as const]
  const scene = await openEdgeScene(t, { listen })
  const { telephony, dial, event, server } = scene
  const wire = await wireOf(t, scene.serverPort, 'tcp')
  telephony.trunks = [trunkOf({ gateways: [{ host: '127.0.0.1', port: wire.port, transport: 'tcp' }], qualify: false })]
  for (const status of [486, 600]) {
    const { callId } = await dial()
    wire.answer(await wire.request('INVITE'), status, 'c')
    t.match(await event(callId), { outcome: { status: 'busy' } })
    wire.cut()
    await until(() => server.sizes().connections === 1)
  }
})

test('a redirection, and what is said behind 380 and 503, are outcomes; only 503 asks another gateway', async (t) => {
  const scene = await openUdpScene(t)
  const { telephony, wire, dial, event } = scene
  const other = await wireOf(t, scene.serverPort)
  telephony.trunks = [
    trunkOf({ gateways: [wire, other].map(({ port }) => ({ host: '127.0.0.1', port })), qualify: false }),
  ]
  const rows = [
    [302, 'Contact: <sip:+4915@192.0.2.1>', 'carrier_call_failed'],
    [380, 'Warning: 399 carrier "busy"', 'carrier_call_failed'],
    [403, 'Warning: 399 carrier "no credit"', 'sip_call_failed'],
  ] as const
  for (const [status, header, reason] of rows) {
    const { callId } = await dial()
    wire.answer(await wire.request('INVITE'), status, 'c', [header])
    t.match(await event(callId), { outcome: { reason } }, String(status))
  }
  const { callId } = await dial()
  wire.answer(await wire.request('INVITE'), 503, 'c', ['Retry-After: 120'])
  other.answer(await other.request('INVITE'), 486, 'c')
  t.match(await event(callId), { outcome: { status: 'busy' } })
})

test('a name whose first server is dead costs one request its time, and then calls reach the second soon', async (t) => {
  const time = createHandClock()
  const zone: Record<string, Zone[string]> = { 'carrier.test': {}, 'one.test': { A: ['127.0.0.1'] } }
  const resolver = await resolverOf(t, zone)
  const scene = await openEdgeScene(t, { server: { clock: time, resolver } })
  const { telephony, dial, event } = scene
  const [dead, good] = [await wireOf(t, scene.serverPort), await wireOf(t, scene.serverPort)]
  zone['_sip._udp.carrier.test'] = { SRV: [`1 0 ${dead.port} one.test`, `2 0 ${good.port} one.test`] }
  telephony.trunks = [trunkOf({ gateways: [{ host: 'carrier.test' }], qualify: false })]
  for (const timeout of [32_000, 6_000]) {
    dead.clear()
    const { callId } = await dial({ ringTimeout: 60_000 })
    await dead.request('INVITE')
    time.advance(timeout - 1)
    t.equal(good.waiting(isInvite), 0)
    time.advance(1)
    good.answer(await good.request('INVITE'), 486, 'c')
    t.match(await event(callId), { outcome: { status: 'busy' } })
  }
})

test('a connection over which nothing comes back is given up, and the next call opens another', async (t) => {
  const time = createHandClock()
  const listen = [{ protocol: 'tcp', address: '127.0.0.1', port: 0 } as const]
  const scene = await openEdgeScene(t, { listen, server: { clock: time } })
  const { telephony, dial, event, server } = scene
  const wire = await wireOf(t, scene.serverPort, 'tcp')
  telephony.trunks = [trunkOf({ gateways: [{ host: '127.0.0.1', port: wire.port, transport: 'tcp' }], qualify: false })]
  const lost = await dial({ ringTimeout: 90_000 })
  await wire.request('INVITE')
  time.advance(32_000)
  t.match(await event(lost.callId), { outcome: { reason: 'sip_call_failed' } })
  time.advance(2_000)
  await until(() => server.sizes().connections === 0)
  const { callId } = await dial()
  wire.answer(await wire.request('INVITE'), 486, 'c')
  t.match(await event(callId), { outcome: { status: 'busy' } })
})

test('an UPDATE before the 200 moves the sound, and a 200 without a description leaves it there', async (t) => {
  const scene = await openUdpScene(t)
  const { wire, dial, event } = scene
  const [early, late] = [await rtpOf(t), await rtpOf(t)]
  const { callId } = await dial()
  const invite = await wire.request('INVITE')
  wire.answer(invite, 183, 'c', ['Require: 100rel', 'RSeq: 1'], sdp(early.local.port))
  wire.answer(await wire.request('PRACK'), 200)
  wire.ask('UPDATE', { ...idsOf(invite, 'c'), cseq: 5, body: sdp(late.local.port, 2) })
  t.equal((await wire.response('5 UPDATE')).status, 200)
  wire.answer(invite, 200, 'c')
  await wire.request('ACK')
  while ((await event(callId)).type !== 'connected');
  await start(scene, callId)
  await late.next()
  t.equal(early.waiting(), 0)
})

/** A PBX that calls by TLS from a socket nobody can call back, and what was said to it. */
async function openTlsCaller(t: Test, settings: TrunkSettings = {}) {
  const listen = [{ protocol: 'tls', address: '127.0.0.1', port: 0, tls: carrierTls } as const]
  const scene = await openEdgeScene(t, { listen, server: { tlsClient: { ca: carrierTls.cert, verify: true } } })
  const { telephony, serverPort, begun, command } = scene
  telephony.trunks = [trunkOf(settings)]
  const place = { host: '127.0.0.1', port: serverPort, ca: carrierTls.cert, servername: 'carrier.test' }
  const socket = tls.connect(place)
  t.teardown(() => void socket.destroy())
  await once(socket, 'secureConnect')
  let heard = ''
  socket.on('data', (bytes: Buffer) => void (heard += bytes.toString()))
  const say = (method: string, toTag: string, body: string) => {
    const lines = [
      `${method} sip:+4930123456@service.test SIP/2.0`,
      `Via: SIP/2.0/TLS 192.0.2.1:5061;branch=z9hG4bK${method}`,
      'From: <sip:+491511234567@pbx.test>;tag=f',
      `To: <sip:+4930123456@service.test>${toTag}`,
      'Call-ID: by-tls',
      `CSeq: 1 ${method}`,
      // Nothing listens there.
      'Contact: <sip:127.0.0.1:1;transport=tls>',
      `Content-Length: ${body.length}`,
      ...(body ? ['Content-Type: application/sdp'] : []),
    ]
    socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`)
  }
  /** Answered, and not acknowledged yet: the tag of our side. */
  const answeredTo = async (offer: string): Promise<{ readonly callId: CallId; readonly toTag: string }> => {
    say('INVITE', '', offer)
    const callId = await begun()
    await command(callId, { type: 'answer' })
    return {
      callId,
      toTag: await until(() => /SIP\/2.0 200[^]*?To:[^\r]*(;tag=[^\r;]+)[^]*\r\n\r\nv=0/.exec(heard)?.[1]),
    }
  }
  return { ...scene, say, answeredTo, heard: () => heard }
}

test('a PBX that calls by TLS is hung up by the connection it came by, whatever its certificate says', async (t) => {
  const { say, answeredTo, event, command, heard } = await openTlsCaller(t)
  const { callId, toTag } = await answeredTo(sdp())
  say('ACK', toTag, '')
  t.match(await event(callId), { type: 'connected' })
  await command(callId, { type: 'close', reason: 'completed' })
  t.ok(await until(() => /^BYE sip:127\.0\.0\.1:1;transport=tls /m.test(heard())))
})

test('a caller by TLS who leaves the offer to us gets one of SRTP, unless the trunk says plain', async (t) => {
  const { say, answeredTo, event, heard } = await openTlsCaller(t)
  const { callId, toTag } = await answeredTo('')
  t.match(heard(), /m=audio \d+ RTP\/SAVP [^]*a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:/)
  const key = `a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:${'A'.repeat(40)}\r\n`
  say('ACK', toTag, `${sdp().replace('RTP/AVP', 'RTP/SAVP')}${key}`)
  t.match(await event(callId), { type: 'connected' })

  const plain = await openTlsCaller(t, { encryption: 'none' })
  await plain.answeredTo('')
  t.match(plain.heard(), /m=audio \d+ RTP\/AVP /)
})

test('descriptions are read with LF alone, unknown lines, without s= and with one c= for all', (t) => {
  const local: LocalMedia = {
    address: '127.0.0.1',
    port: 4000,
    rtcpPort: 4001,
    codecs: ['PCMU', 'PCMA'],
    encryption: 'none',
    keys: [],
    sessionId: '1',
    version: 1,
    direction: 'sendrecv',
  }
  const offer = [
    'v=0',
    'o=- 1 1 IN IP6 2001:db8::7',
    'c=IN IP6 2001:db8::7',
    't=0 0',
    'k=prompt',
    'x=?',
    'b=AS:84',
    'm=audio 4002/1 RTP/AVP 18 8 96',
    'i=title',
    'a=rtpmap:96 telephone-event/8000',
    'a=ptime:30',
    'a=X-unknown:1',
    '',
  ].join('\n')
  const answered = answerOffer(offer, local)
  t.match(answered, { kind: 'answered', session: { remote: { address: '2001:db8::7', port: 4002 } } })
  t.match(answered, { session: { audio: { codec: 'pcma', packetMs: 30, telephoneEventPayloadType: 96 } } })
  t.match(answerOffer(offer.replace('4002/1', '0'), local), { kind: 'refused', reason: /port 0/ })
  t.match(answerOffer(`${offer}a=inactive\n`, local), { session: { direction: 'inactive' } })
  t.end()
})
