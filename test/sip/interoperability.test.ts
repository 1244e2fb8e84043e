/** What exchanges, phones and networks of other people do, and a service that was only tried with itself does not see. */
import { test, type Test } from 'tap'
import type { CallId } from '../../model/ids.ts'
import { createMediaPorts } from '../../media/rtp/media-ports.ts'
import { tagOf } from '../../sip/server/message/address.ts'
import { headerOf } from '../../sip/server/message/header-fields.ts'
import type { SipRequest } from '../../sip/server/message/message.ts'
import { parseMessage } from '../../sip/server/message/parse-message.ts'
import { targetsInDialog } from '../../sip/server/transport/reachable-targets.ts'
import { isTranslatedCallee, isTranslatedCaller } from '../../sip/server/transport/seen-peer.ts'
import type { Protocol } from '../../sip/server/transport/transport.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRtpPeer } from '../fake/rtp-peer.ts'
import type { PeerCall } from '../fake/sip-peer.ts'
import { openSipWire, type SipWire } from '../fake/sip-wire.ts'
import { trunkOf } from '../fake/telephony-port.ts'
import { bodyText } from '../scenes/body-text.ts'
import { until } from '../scenes/in-time.ts'
import { openEdgeScene, type EdgeScene } from '../scenes/sip-edge-scene.ts'

const sdp = (port = 40_000, { connection = 'IN IP4 127.0.0.1', direction = 'sendrecv' } = {}): string =>
  [
    'v=0',
    `o=- 7 1 ${connection}`,
    's=-',
    `c=${connection}`,
    't=0 0',
    `m=audio ${port} RTP/AVP 0`,
    `a=${direction}`,
    '',
  ].join('\r\n')

async function wireOf(t: Test, serverPort: number, protocol: Protocol = 'udp'): Promise<SipWire> {
  const wire = await openSipWire(serverPort, protocol)
  t.teardown(() => wire.close())
  return wire
}

const ids = { callId: 'theirs', fromTag: 'phone' }

// ——— Offers and their ACKs ———

test('an INVITE without an offer right behind the ACK changes the call and does not end it', async (t) => {
  const scene = await openEdgeScene(t)
  const { telephony, peer, command, event } = scene
  telephony.trunks = [trunkOf({})]
  for (let round = 0; round < 10; round += 1) {
    const call = peer.invite({ body: sdp() })
    await call.answered()
    const callId = await until(() => telephony.begun[round])
    await command(callId, { type: 'answer' })
    await call.answered()
    call.ack()
    const offered = call.reinvite({}, { body: sdp(40_002) })
    t.same(await event(callId), { type: 'connected', providerStatus: '200 OK' })
    t.match(bodyText(await offered), /m=audio \d+ RTP\/AVP 0 8 9 /)
    t.equal((await call.request('BYE')).status, 200)
    t.match(await event(callId), { type: 'disconnected', cause: 'hung_up' })
  }
})

test('before the ACK that answers our offer another INVITE is told to come again, and an UPDATE that it waits', async (t) => {
  const { telephony, serverPort, command, event, begun } = await openEdgeScene(t)
  telephony.trunks = [trunkOf({})]
  const wire = await wireOf(t, serverPort)
  wire.ask('INVITE', { ...ids, cseq: 1, uri: 'sip:+4930123456@service.test' })
  const callId = await begun()
  await command(callId, { type: 'answer' })
  const toTag = tagOf(await wire.response('1 INVITE', 200), 'To') ?? ''
  wire.ask('INVITE', { ...ids, toTag, cseq: 2, body: sdp(40_002) })
  const again = await wire.response('2 INVITE')
  t.equal(again.status, 500)
  t.match(headerOf(again, 'Retry-After'), /^\d+$/)
  wire.ask('UPDATE', { ...ids, toTag, cseq: 3, body: sdp(40_002) })
  t.equal((await wire.response('3 UPDATE')).status, 491)
  wire.ask('ACK', { ...ids, toTag, cseq: 1, body: sdp() })
  t.same(await event(callId), { type: 'connected', providerStatus: '200 OK' })
  wire.ask('UPDATE', { ...ids, toTag, cseq: 4, body: sdp(40_002) })
  t.equal((await wire.response('4 UPDATE')).status, 200)
})

test('an encrypted call stays encrypted when the peer has us offer anew, though we would have taken it plain', async (t) => {
  const { telephony, serverPort, command, event, begun } = await openEdgeScene(t)
  telephony.trunks = [trunkOf({})]
  const wire = await wireOf(t, serverPort)
  const key = (letter: string) => `a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:${letter.repeat(40)}`
  const secured = (letter: string) =>
    sdp()
      .replace('RTP/AVP', 'RTP/SAVP')
      .replace('a=sendrecv', `${key(letter)}\r\na=sendrecv`)
  wire.ask('INVITE', { ...ids, cseq: 1, uri: 'sip:+4930123456@service.test', body: secured('A') })
  const callId = await begun()
  await command(callId, { type: 'answer' })
  const answered = await wire.response('1 INVITE', 200)
  const toTag = tagOf(answered, 'To') ?? ''
  const [ourKey = ''] = /a=crypto:1 AES_CM_128_HMAC_SHA1_80 \S+/.exec(bodyText(answered)) ?? []
  wire.ask('ACK', { ...ids, toTag, cseq: 1 })
  t.same(await event(callId), { type: 'connected', providerStatus: '200 OK' })
  wire.ask('INVITE', { ...ids, toTag, cseq: 2 })
  const offer = bodyText(await wire.response('2 INVITE', 200))
  t.match(offer, /m=audio \d+ RTP\/SAVP /)
  t.ok(offer.includes(ourKey), 'under the same key')
  wire.ask('ACK', { ...ids, toTag, cseq: 2, body: secured('B') })
  wire.ask('BYE', { ...ids, toTag, cseq: 3 })
  t.match(await event(callId), { type: 'disconnected', cause: 'hung_up' })
})

// ——— Transfers ———

async function talking(scene: EdgeScene, body = sdp()): Promise<{ call: PeerCall; callId: CallId; port: number }> {
  const call = scene.peer.invite({ body })
  await call.answered()
  const callId = await scene.begun()
  await scene.command(callId, { type: 'answer' })
  const answer = await call.answered()
  call.ack()
  await scene.event(callId)
  return { call, callId, port: Number(/m=audio (\d+)/.exec(bodyText(answer))?.[1]) }
}

/** A caller whose sound has been heard, and who has consented to be passed on. */
async function transferring(t: Test) {
  const scene = await openEdgeScene(t)
  scene.telephony.trunks = [trunkOf({ transferTo: 'tel' })]
  const rtp = await createRtpPeer()
  t.teardown(() => rtp.close())
  const { call, callId, port } = await talking(scene, sdp(rtp.local.port))
  let sequenceNumber = 0
  const speak = async () => {
    const before = scene.packets()
    await rtp.send({ address: '127.0.0.1', port }, { sequenceNumber: ++sequenceNumber })
    await until(() => scene.packets() > before)
  }
  const transfer = async () => {
    const asked = scene.command(callId, { type: 'transfer', to: '+4989555' })
    scene.peer.answer(await scene.peer.request('REFER'), 202)
    t.same(await asked, { type: 'accepted' })
  }
  const notify = (line: string, state: string) =>
    call.request('NOTIFY', {
      headers: ['Event: refer', `Subscription-State: ${state}`, 'Content-Type: message/sipfrag'],
      body: `SIP/2.0 ${line}\r\n`,
    })
  return { ...scene, call, callId, speak, transfer, notify }
}

test('a caller who consented to a transfer and whose sound then stops has been passed on: BYE after 15 s', async (t) => {
  const { speak, transfer, clock, event, callId, peer } = await transferring(t)
  await speak()
  await transfer()
  clock.advance(14_000)
  await speak()
  clock.advance(14_000)
  await speak()
  clock.advance(16_000)
  t.same(await event(callId), { type: 'transferred', providerStatus: '202 Accepted' })
  peer.answer(await peer.request('BYE'), 200)
})

test('a 100 of a transfer says no more than its 202', async (t) => {
  const { speak, transfer, clock, event, callId, notify, peer } = await transferring(t)
  await speak()
  await transfer()
  t.equal((await notify('100 Trying', 'active;expires=60')).status, 200)
  clock.advance(15_000)
  t.same(await event(callId), { type: 'transferred', providerStatus: '100 Trying' })
  peer.answer(await peer.request('BYE'), 200)
})

test('a transfer whose news come is what they say, with and without sound', async (t) => {
  const { speak, transfer, clock, event, callId, notify } = await transferring(t)
  await speak()
  await transfer()
  await notify('180 Ringing', 'active;expires=60')
  clock.advance(40_000)
  await notify('486 Busy Here', 'terminated;reason=noresource')
  t.same(await event(callId), { type: 'transfer_failed', providerStatus: '486 Busy Here' })
  clock.advance(60_000)
  await speak()
  await transfer()
  clock.advance(5_000)
  await notify('603 Decline', 'terminated;reason=noresource')
  t.same(await event(callId), { type: 'transfer_failed', providerStatus: '603 Decline' }, 'and the call goes on')
  await transfer()
  await notify('180 Ringing', 'active;expires=60')
  clock.advance(90_000)
  t.same(await event(callId), { type: 'transferred', providerStatus: '180 Ringing' }, 'no sound and no last word')
})

test('who held the call before a transfer has no sound that could stop', async (t) => {
  const { speak, transfer, clock, event, callId, call } = await transferring(t)
  await speak()
  await call.reinvite({ body: sdp(40_000, { direction: 'inactive' }) })
  await transfer()
  clock.advance(89_000)
  t.equal((await call.request('OPTIONS')).status, 200, 'the call goes on')
  clock.advance(1_000)
  t.match(await event(callId), { type: 'transfer_failed', providerStatus: /no word/ })
})

const referTo = (request: SipRequest): string | null => headerOf(request, 'Refer-To')

test('whoever follows Refer-To reaches the gateway: its port and transport are in it', async (t) => {
  const listen = (['tcp', 'udp'] as const).map((protocol) => ({ protocol, address: '127.0.0.1', port: 0 }))
  const { telephony, serverPort, dial, event, command } = await openEdgeScene(t, { listen })
  const wire = await wireOf(t, serverPort, 'tcp')
  const gateway = { host: '127.0.0.1', port: wire.port, transport: 'tcp' } as const
  for (const [settings, expected] of [
    [{}, `<sip:+4989555@127.0.0.1:${wire.port};transport=tcp>`],
    [{ numberPrefix: '00' }, `<sip:004989555@127.0.0.1:${wire.port};transport=tcp>`],
    [{ domain: 'carrier.test' }, '<sip:+4989555@carrier.test;transport=tcp>'],
    [{ transferTo: 'tel' }, '<tel:+4989555>'],
  ] as const) {
    telephony.trunks = [trunkOf({ gateways: [gateway], qualify: false, ...settings })]
    const { callId } = await dial()
    const invite = await wire.request('INVITE')
    wire.answer(invite, 200, 'callee', [], sdp())
    t.match(await event(callId), { type: 'connected' })
    await wire.request('ACK')
    const asked = command(callId, { type: 'transfer', to: '+4989555' })
    const refer = await wire.request('REFER')
    t.equal(referTo(refer), expected)
    t.match(headerOf(refer, 'Contact'), /^<sip:127\.0\.0\.1:\d+;transport=tcp>$/)
    wire.answer(refer, 603)
    await asked
    await command(callId, { type: 'close', reason: 'completed' })
    wire.answer(await wire.request('BYE'), 200)
  }
})

test('a caller of a trunk without gateways is passed on by the way it came: REFER and 302', async (t) => {
  const listen = (['udp', 'tcp'] as const).map((protocol) => ({ protocol, address: '127.0.0.1', port: 0 }))
  const { telephony, server, begun, command, peer } = await openEdgeScene(t, { listen })
  telephony.trunks = [trunkOf({})]
  const call = peer.invite({ body: sdp() })
  await call.answered()
  await command(await begun(), { type: 'transfer', to: '+4989555' })
  t.equal(headerOf(await call.answered(), 'Contact'), `<sip:+4989555@127.0.0.1:${peer.port}>`)
  const tcpPort = server.listening.find(({ protocol }) => protocol === 'tcp')!.local.port
  const wire = await wireOf(t, tcpPort, 'tcp')
  wire.ask('INVITE', { callId: 'by-tcp', fromTag: 'f', cseq: 1, uri: 'sip:+4930123456@service.test', body: sdp() })
  await wire.response('1 INVITE', 180)
  const callId = await until(() => telephony.begun[1])
  await command(callId, { type: 'transfer', to: '+4989555' })
  const moved = await wire.response('1 INVITE', 302)
  t.equal(headerOf(moved, 'Contact'), `<sip:+4989555@127.0.0.1:${wire.port};transport=tcp>`, 'the port of its Via')
})

test('a caller from one of several gateways is passed on by that one', async (t) => {
  const { telephony, begun, command, peer } = await openEdgeScene(t)
  const gateways = [
    { host: '203.0.113.7', port: 5070 },
    { host: '127.0.0.1', port: 5090, transport: 'tls' },
  ] as const
  telephony.trunks = [trunkOf({ gateways: [...gateways], qualify: false })]
  const call = peer.invite({ body: sdp() })
  await call.answered()
  await command(await begun(), { type: 'transfer', to: '+4989555' })
  t.equal(headerOf(await call.answered(), 'Contact'), '<sip:+4989555@127.0.0.1:5090;transport=tls>')
})

// ——— NAT ———

test('a phone behind a NAT hears of the end by the way its INVITE came, whoever has its address here', async (t) => {
  const { telephony, serverPort, begun, command } = await openEdgeScene(t, { server: { mayReach: () => true } })
  telephony.trunks = [trunkOf({})]
  const wire = await wireOf(t, serverPort)
  // Of its own network, where it has an address that somebody has here as well.
  wire.ask('INVITE', {
    ...ids,
    cseq: 1,
    uri: 'sip:+4930123456@service.test',
    via: '127.0.0.77:9',
    headers: ['Contact: <sip:phone@127.0.0.77:9>'],
    body: sdp(),
  })
  const callId = await begun()
  await command(callId, { type: 'answer' })
  const toTag = tagOf(await wire.response('1 INVITE', 200), 'To') ?? ''
  wire.ask('ACK', { ...ids, toTag, cseq: 1 })
  await command(callId, { type: 'close', reason: 'completed' })
  const bye = await wire.request('BYE')
  t.equal(bye.uri, 'sip:phone@127.0.0.77:9')
  wire.answer(bye, 200)
})

const at = (address: string, port = 5060, protocol: Protocol = 'udp') => ({
  protocol,
  remote: { address, port },
  local: { address: '192.168.1.2', port: 5060 },
  connection: protocol === 'udp' ? 0 : 3,
})

function read(text: string): SipRequest {
  const parsed = parseMessage(Buffer.from(text))
  if (parsed.kind !== 'message' || parsed.message.kind !== 'request') throw new Error('no request')
  return parsed.message
}

const inviteFrom = (via: string, contact: string): SipRequest =>
  read(
    `INVITE sip:us@service.test SIP/2.0\r\nVia: SIP/2.0/UDP ${via};branch=z9hG4bK1\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:us@b>\r\n` +
      `Call-ID: 1\r\nCSeq: 1 INVITE\r\nContact: <sip:phone@${contact}>\r\nContent-Length: 0\r\n\r\n`,
  )

test('who is behind a NAT is told from who is in the same private network', (t) => {
  for (const [via, contact, source, expected] of [
    ['192.168.1.20', '192.168.1.20:5062', '203.0.113.9', true],
    ['192.168.1.20', '192.168.1.20', '192.168.1.20', false],
    ['203.0.113.9', '192.168.1.20', '203.0.113.9', true],
    ['pbx.example.com', '10.0.0.5', '203.0.113.9', true],
    ['pbx.example.com', '203.0.113.10', '203.0.113.9', false],
    // A proxy of our network in front of a phone of our network.
    ['192.168.1.5', '192.168.1.20', '192.168.1.5', false],
    ['192.168.1.20', '192.168.1.20', '192.168.7.1', true],
    ['127.0.0.1', '127.0.0.2', '127.0.0.1', false],
    ['127.0.0.1', '192.168.1.20', '127.0.0.1', true],
  ] as const)
    t.equal(isTranslatedCaller(inviteFrom(via, contact), at(source)), expected, `${via} ${contact} from ${source}`)
  const answer = (contact: string) => ({
    kind: 'response' as const,
    status: 200,
    reason: 'OK',
    headers: [{ name: 'Contact', value: `<sip:pbx@${contact}>` }],
    body: new Uint8Array(),
  })
  t.equal(isTranslatedCallee(answer('10.0.0.5'), at('203.0.113.9')), true)
  t.equal(isTranslatedCallee(answer('10.0.0.5'), at('10.0.0.1')), false, 'a proxy that led us to a phone')
  t.equal(isTranslatedCallee(answer('203.0.113.10'), at('203.0.113.9')), false)
  t.end()
})

test('a private address of a peer behind a NAT is tried after the way it came by, and a public one is where it says', (t) => {
  const target = (address: string) => ({ protocol: 'udp' as const, remote: { address, port: 5062 }, serverName: null })
  const addresses = (address: string, isTranslated: boolean) =>
    targetsInDialog([target(address)], address, {
      mayReach: () => true,
      peer: { flow: at('203.0.113.9', 40_001, 'tls'), isTranslated },
    }).map(({ protocol, remote }) => `${protocol} ${remote.address}:${remote.port}`)
  t.same(addresses('192.168.1.20', true), ['tls 203.0.113.9:40001', 'udp 192.168.1.20:5062'])
  t.same(addresses('192.168.1.20', false), ['udp 192.168.1.20:5062'])
  t.same(addresses('198.51.100.4', true), ['udp 198.51.100.4:5062'])
  t.end()
})

test('a peer that listens nowhere is reached by the connection it opened, behind where its Contact says', (t) => {
  const ways = (protocol: Protocol, address: string, port: number) =>
    targetsInDialog([{ protocol, remote: { address, port }, serverName: null }], address, {
      mayReach: () => true,
      peer: { flow: at('203.0.113.9', 40_001, 'tcp'), isTranslated: false },
    }).map(({ remote }) => `${remote.address}:${remote.port}`)
  t.same(ways('tcp', '203.0.113.9', 5060), ['203.0.113.9:5060', '203.0.113.9:40001'])
  t.same(ways('tcp', '203.0.113.9', 40_001), ['203.0.113.9:40001'])
  t.same(ways('tcp', '198.51.100.4', 5060), ['198.51.100.4:5060'], 'another host has no connection with us')
  t.same(ways('udp', '203.0.113.9', 5060), ['203.0.113.9:5060'], 'and packets come from anywhere')
  t.end()
})

type Caller = { readonly callId: string; readonly headers: readonly string[] }

/** A call that is answered, and ended by us: its caller hears the BYE. */
async function callAndBeHungUp(t: Test, { begun, command, event }: EdgeScene, wire: SipWire, caller: Caller) {
  const call = { ...caller, fromTag: 'f', cseq: 1, uri: 'sip:+4930123456@service.test' }
  wire.ask('INVITE', { ...call, body: sdp() })
  await wire.response('1 INVITE', 180)
  const callId = await begun()
  await command(callId, { type: 'answer' })
  wire.ask('ACK', { ...call, toTag: tagOf(await wire.response('1 INVITE', 200), 'To') ?? '' })
  t.match(await event(callId), { type: 'connected' })
  await command(callId, { type: 'close', reason: 'completed' })
  wire.answer(await wire.request('BYE'), 200)
}

test('of several Contacts the first counts, of who calls and of who is called', async (t) => {
  const scene = await openEdgeScene(t)
  const { telephony, serverPort, dial, command, event } = scene
  const wire = await wireOf(t, serverPort)
  telephony.trunks = [trunkOf({ gateways: [gatewayOf(wire)], qualify: false })]
  const headers = [`Contact: <${wire.uri}>;q=0.9, <sip:other@127.0.0.1:1>`]
  await callAndBeHungUp(t, scene, wire, { callId: 'two-contacts', headers })
  const dialed = await dial()
  wire.answer(await wire.request('INVITE'), 200, 'p', headers, sdp())
  await wire.request('ACK')
  t.match(await event(dialed.callId), { type: 'connected' })
  await command(dialed.callId, { type: 'close', reason: 'completed' })
  wire.answer(await wire.request('BYE'), 200)
})

test('who calls over TCP and listens nowhere is hung up by the connection it opened', async (t) => {
  const listen = [{ protocol: 'tcp', address: '127.0.0.1', port: 0 } as const]
  const scene = await openEdgeScene(t, { listen })
  scene.telephony.trunks = [trunkOf({})]
  const wire = await wireOf(t, scene.serverPort, 'tcp')
  const headers = ['Contact: <sip:pbx@127.0.0.1:1;transport=tcp>']
  await callAndBeHungUp(t, scene, wire, { callId: 'by-tcp', headers })
})

// ——— Bodies ———

test('a call from a telephone network brings its signaling along, NUL and all, and is answered (SIP-I)', async (t) => {
  const listen = (['udp', 'tcp'] as const).map((protocol) => ({ protocol, address: '127.0.0.1', port: 0 }))
  const { telephony, server, command, event } = await openEdgeScene(t, { listen })
  telephony.trunks = [trunkOf({})]
  const isup = ['Content-Type: application/ISUP;version=itu-t92+;base=itu-t92+', '', '\x01\0\x49\0\0\x03\x02\0\x07']
  const body = ['--b', 'Content-Type: application/sdp', '', sdp(), '--b', ...isup, '--b--', ''].join('\r\n')
  for (const [index, protocol] of (['udp', 'tcp'] as const).entries()) {
    const { local } = server.listening.find((one) => one.protocol === protocol)!
    const wire = await wireOf(t, local.port, protocol)
    const call = { callId: `sip-i-${protocol}`, fromTag: 'f', uri: 'sip:+4930123456@service.test' }
    wire.ask('INVITE', {
      ...call,
      cseq: 1,
      headers: ['Content-Type: multipart/mixed;boundary=b', 'MIME-Version: 1.0'],
      body,
    })
    const callId = await until(() => telephony.begun[index])
    await command(callId, { type: 'answer' })
    const answer = await wire.response('1 INVITE', 200)
    t.match(bodyText(answer), /m=audio \d+ RTP\/AVP 0/)
    const toTag = tagOf(answer, 'To') ?? ''
    wire.ask('ACK', { ...call, toTag, cseq: 1 })
    t.same(await event(callId), { type: 'connected', providerStatus: '200 OK' })
    const headers = ['Content-Type: application/ISUP;version=itu-t92+']
    wire.ask('INFO', { ...call, toTag, cseq: 2, headers, body: '\x0c\0\x02\0' })
    t.equal((await wire.response('2 INFO')).status, 200)
    wire.ask('BYE', { ...call, toTag, cseq: 3, headers, body: '\x0c\0\x02\0' })
    t.equal((await wire.response('3 BYE')).status, 200)
    t.match(await event(callId), { type: 'disconnected', cause: 'hung_up' })
  }
})

test('a call to a telephone network is answered by a description that brings signaling along, in the 200 or before it', async (t) => {
  const { telephony, peer, dial, command, event } = await openEdgeScene(t)
  telephony.trunks = [trunkOf({ gateways: [gatewayOf(peer)], qualify: false })]
  const isup = ['Content-Type: application/ISUP;version=itu-t92+', '', '\x09\0\x14']
  const body = ['--b', ...isup, '--b', 'Content-Type: application/sdp', '', sdp(), '--b--', ''].join('\r\n')
  const words = { headers: ['Content-Type: multipart/mixed;boundary=b', 'MIME-Version: 1.0'], body }
  for (const isEarly of [false, true]) {
    const { callId } = await dial()
    const invite = await peer.request('INVITE')
    if (isEarly) peer.answer(invite, 183, { reason: 'Session Progress', ...words })
    if (isEarly) t.match(await event(callId), { type: 'ringing' })
    peer.answer(invite, 200, { reason: 'OK', ...(!isEarly && words) })
    await peer.request('ACK')
    t.same(await event(callId), { type: 'connected', providerStatus: '200 OK' })
    await command(callId, { type: 'close', reason: 'completed' })
    peer.answer(await peer.request('BYE'), 200)
  }
})

// ——— IPv6 ———

test('keys of a telephone with Opus whose events count at 8000 are heard, and those of the worker count like that', async (t) => {
  const scene = await openEdgeScene(t)
  scene.telephony.trunks = [trunkOf({ codecs: ['opus'] })]
  const rtp = await createRtpPeer()
  t.teardown(() => rtp.close())
  const formats = ['a=rtpmap:96 opus/48000/2', 'a=rtpmap:101 telephone-event/8000', '']
  const body = `${sdp(rtp.local.port).replace('RTP/AVP 0', 'RTP/AVP 96 101')}${formats.join('\r\n')}`
  const { callId, port } = await talking(scene, body)
  const format = { encoding: 'pcm16', rateHz: 16_000 } as const
  await scene.command(callId, { type: 'start', hears: [format], speaks: [format], recording: null })
  const press = { sequenceNumber: 1, payloadType: 101, marker: true, payload: Uint8Array.of(5, 10, 0, 160) }
  await rtp.send({ address: '127.0.0.1', port }, press)
  t.match(await scene.event(callId), { type: 'dtmf', digit: '5' })
  t.same(await scene.command(callId, { type: 'send_dtmf', digits: '7' }), { type: 'accepted' })
  for (;;) {
    const { bytes } = await rtp.next()
    if ((bytes[1]! & 0x7f) !== 101) continue
    t.same([bytes[12], bytes.readUInt16BE(14)], [7, 160], '20 ms at 8000')
    break
  }
})

test('sound by IPv6 is refused where IPv4 is spoken: 488 and Warning 300, at first and in a call', async (t) => {
  const scene = await openEdgeScene(t)
  const { telephony, peer } = scene
  telephony.trunks = [trunkOf({})]
  const six = sdp(40_000, { connection: 'IN IP6 2001:db8::7' })
  const refused = await peer.invite({ body: six }).answered()
  t.equal(refused.status, 488)
  t.match(headerOf(refused, 'Warning'), /^300 parley ".*IPv6.*"$/)
  t.match(telephony.refusals, [{ reason: 'not_acceptable_here', sipStatus: 488, details: /IPv4 is spoken here/ }])
  t.equal(telephony.received.length, 0, 'nothing was stored')
  const { call } = await talking(scene)
  const changed = await call.reinvite({ body: six })
  t.same([changed.status, headerOf(changed, 'Warning')?.slice(0, 3)], [488, '300'])
  t.equal((await call.reinvite({ body: sdp(40_002) })).status, 200)
})

test('a callee that answers with IPv6 is hung up, and the call has failed', async (t) => {
  const { telephony, peer, dial, event } = await openEdgeScene(t)
  telephony.trunks = [trunkOf({ gateways: [gatewayOf(peer)], qualify: false })]
  const { callId } = await dial()
  const body = sdp(40_000, { connection: 'IN IP6 2001:db8::7' })
  peer.answer(await peer.request('INVITE'), 200, { reason: 'OK', body })
  await peer.request('ACK')
  t.match(await event(callId), { type: 'dial_failed', outcome: { reason: 'sip_call_failed' } })
  peer.answer(await peer.request('BYE'), 200)
})

test('media ports that listen for both families have an address for each', async (t) => {
  const portsAt = (bindAddress: string, externalAddress: string | null = null) => {
    const log = createQuietLog()
    return createMediaPorts({ bindAddress, externalAddress, portRange: [0, 0], now: () => 0, log })
  }
  t.same([portsAt('127.0.0.1').addressFor(4), portsAt('127.0.0.1').addressFor(6)], ['127.0.0.1', null])
  t.same([portsAt('::1').addressFor(4), portsAt('::1').addressFor(6)], [null, '::1'])
  t.equal(portsAt('0.0.0.0', '203.0.113.7').addressFor(4), '203.0.113.7')
  t.equal(portsAt('0.0.0.0', '203.0.113.7').addressFor(6), null)
  t.equal(portsAt('::', '203.0.113.7').addressFor(4), '203.0.113.7')
})

// ——— Gateways that are gone ———

const gatewayOf = ({ port }: { readonly port: number }) => ({ host: '127.0.0.1', port })

async function dialing(t: Test) {
  const scene = await openEdgeScene(t)
  const second = await wireOf(t, scene.serverPort)
  scene.telephony.trunks = [trunkOf({ gateways: [gatewayOf(scene.peer)], qualify: false })]
  /** What the peer said before is known to the edge when this resolves. */
  const settled = () => scene.peer.ask('OPTIONS')
  return { ...scene, second, settled }
}

test('a lone gateway that says nothing is given up after 8 s, without a SIP status of our own', async (t) => {
  const { telephony, peer, dial, event, clock } = await dialing(t)
  const { callId } = await dial({ ringTimeout: 30_000 })
  await peer.request('INVITE')
  clock.advance(8_000)
  t.same(await event(callId), {
    type: 'dial_failed',
    outcome: { status: 'failed', reason: 'sip_call_failed' },
    providerStatus: null,
    endedBy: 'network',
  })
  t.match(telephony.refusals, [{ reason: 'gateway_unreachable', direction: 'outbound', sipStatus: null, callId }])
})

test('a lone gateway that is at work on the call may ring as late as it will', async (t) => {
  const { peer, dial, event, clock, settled } = await dialing(t)
  const { callId } = await dial({ ringTimeout: 30_000 })
  const invite = await peer.request('INVITE')
  peer.answer(invite, 100, { reason: 'Trying' })
  await settled()
  clock.advance(29_000)
  peer.answer(invite, 180, { reason: 'Ringing' })
  t.same(await event(callId), { type: 'ringing', providerStatus: '180 Ringing' })
  peer.answer(invite, 486, { reason: 'Busy Here' })
  t.match(await event(callId), { outcome: { status: 'busy' }, providerStatus: '486 Busy Here' })
})

test('a gateway that says 100 and no more is given up for another after 20 s', async (t) => {
  const { telephony, peer, second, dial, event, clock, settled } = await dialing(t)
  telephony.trunks = [trunkOf({ gateways: [gatewayOf(peer), gatewayOf(second)], qualify: false })]
  const { callId } = await dial({ ringTimeout: 60_000 })
  const invite = await peer.request('INVITE')
  peer.answer(invite, 100, { reason: 'Trying' })
  await settled()
  clock.advance(19_000)
  await settled()
  const hasCome = second.waiting(() => true) > 0
  t.notOk(hasCome)
  clock.advance(1_000)
  second.answer(await second.request('INVITE'), 486, 'b')
  t.match(await event(callId), { outcome: { status: 'busy' } })
})

test('a port where nobody listens has no SIP status either, and leads to the next gateway', async (t) => {
  const listen = (['tcp', 'udp'] as const).map((protocol) => ({ protocol, address: '127.0.0.1', port: 0 }))
  const { telephony, dial, event } = await openEdgeScene(t, { listen })
  telephony.trunks = [trunkOf({ gateways: [{ host: '127.0.0.1', port: 9, transport: 'tcp' }], qualify: false })]
  const { callId } = await dial()
  t.same(await event(callId), {
    type: 'dial_failed',
    outcome: { status: 'failed', reason: 'sip_call_failed' },
    providerStatus: null,
    endedBy: 'network',
  })
  t.match(telephony.refusals, [{ reason: 'gateway_unreachable' }])
})
