/** Outbound calls over trunks, as the carrier sees them on the wire and the actor on the bus; and what a SIP answer means. */
import { test, type Test } from 'tap'
import { systemClock } from '../../app/clock.ts'
import type { TrunkSettings } from '../../model/trunk.ts'
import { outcomeOf, speaksOfGateway } from '../../sip/call/outcome-of-answer.ts'
import { readCredentials, provesPassword } from '../../sip/server/message/digest.ts'
import { headerOf } from '../../sip/server/message/header-fields.ts'
import type { SipRequest } from '../../sip/server/message/message.ts'
import type { InvitationResult } from '../../sip/invitation.ts'
import { connectStack } from '../../sip/stack.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { until } from '../scenes/in-time.ts'
import { openEdgeScene } from '../scenes/sip-edge-scene.ts'
import { openControlRelay } from '../fake/control-relay.ts'
import { openSipWire } from '../fake/sip-wire.ts'
import { createSipServer, type SipServer } from '../../sip/server/sip-server.ts'
import { openSipPeer, type SipPeer } from '../fake/sip-peer.ts'
import { trunkOf } from '../fake/telephony-port.ts'
import { bodyText } from '../scenes/body-text.ts'

const sdp = (codec = '0'): string =>
  `v=0\r\no=- 7 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 40000 RTP/AVP ${codec}\r\n`

const gatewayOf = ({ port }: { readonly port: number }) => ({ host: '127.0.0.1', port })

async function openScene(t: Test, settings: TrunkSettings = {}, password: string | null = null) {
  const scene = await openEdgeScene(t)
  scene.telephony.trunks = [trunkOf({ gateways: [gatewayOf(scene.peer)], qualify: false, ...settings }, password)]
  return scene
}

/** Another gateway, closed with the test. */
async function openGateway(t: Test, serverPort: number): Promise<SipPeer> {
  const peer = await openSipPeer(serverPort)
  t.teardown(() => peer.close())
  return peer
}

test('a call is dialed, rings, is answered and hung up by the worker', async (t) => {
  const { dial, peer, event, command, telephony, edge } = await openScene(t)
  const { callId, reply } = await dial()
  t.same(reply, { type: 'dialing' })
  const invite = await peer.request('INVITE')
  t.equal(invite.uri, `sip:+4915112345678@127.0.0.1:${peer.port}`)
  t.match(headerOf(invite, 'From'), /^<sip:\+4930999@127\.0\.0\.1>;tag=/)
  t.match(headerOf(invite, 'To'), '<sip:+4915112345678@127.0.0.1>')
  t.match(bodyText(invite), /m=audio \d+ RTP\/AVP 0 8 9 /)
  t.same(telephony.carried, [{ callId, trunkId: telephony.trunks[0]!.id }])
  peer.answer(invite, 180, { reason: 'Ringing' })
  t.same(await event(callId), { type: 'ringing', providerStatus: '180 Ringing' })
  peer.answer(invite, 200, { reason: 'OK', body: sdp() })
  await peer.request('ACK')
  t.same(await event(callId), { type: 'connected', providerStatus: '200 OK' })
  t.equal(edge.health().calls, 1)
  t.match(await command(callId, { type: 'close', reason: 'completed' }), { type: 'closed' })
  peer.answer(await peer.request('BYE'), 200)
  t.equal(edge.health().calls, 0)
})

test('the other side hangs up', async (t) => {
  const { dial, peer, event } = await openScene(t)
  const { callId } = await dial()
  const invite = await peer.request('INVITE')
  peer.answer(invite, 200, { body: sdp() })
  await peer.request('ACK')
  t.match(await event(callId), { type: 'connected' })
  const bye = await peer.callOf(invite).request('BYE', { headers: ['Reason: Q.850;cause=16;text="Normal"'] })
  t.equal(bye.status, 200)
  t.match(await event(callId), { type: 'disconnected', cause: 'hung_up', details: /cause=16/ })
})

test('a trunk says how its calls are addressed', async (t) => {
  const scene = await openScene(t)
  const { telephony, peer, dial } = scene
  const invited = async (settings: TrunkSettings): Promise<SipRequest> => {
    telephony.trunks = [trunkOf({ gateways: [gatewayOf(peer)], qualify: false, ...settings })]
    await dial()
    const invite = await peer.request('INVITE')
    peer.answer(invite, 486)
    return invite
  }
  const plain = await invited({ domain: 'trunk.test', numberPrefix: '00', headers: { 'X-Token': 'abc' } })
  t.equal(plain.uri, 'sip:004915112345678@trunk.test', 'the gateway is the next hop only')
  t.match(headerOf(plain, 'To'), '<sip:004915112345678@trunk.test>')
  t.equal(headerOf(plain, 'X-Token'), 'abc')
  t.equal(headerOf(plain, 'P-Asserted-Identity'), null)
  const identity = await invited({ callerId: 'identity', numberPrefix: '12#' })
  t.match(identity.uri, /^sip:12%234915112345678@/)
  t.equal(headerOf(identity, 'P-Asserted-Identity'), '<sip:+4930999@127.0.0.1>')
  const line = await invited({ callerId: 'username', username: 'line 7', codecs: ['PCMA'], encryption: 'sdes' })
  t.match(headerOf(line, 'From'), /^<sip:line%207@127\.0\.0\.1>/)
  t.equal(headerOf(line, 'P-Asserted-Identity'), '<sip:+4930999@127.0.0.1>')
  t.match(bodyText(line), /m=audio \d+ RTP\/SAVP 8 /)
  t.match(bodyText(line), /a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:/)
})

test('a peer that asks for proof refreshes the call, also in the longer interval that it wants', async (t) => {
  const settings = { username: 'carol', realm: 'carrier', domain: 'trunk.test' }
  const { dial, peer, event } = await openScene(t, settings, 'open sesame')
  const { callId } = await dial()
  const headers = ['Proxy-Authenticate: Digest realm="carrier", nonce="n1", qop="auth"']
  peer.answer(await peer.request('INVITE'), 407, { headers })
  await peer.request('ACK')
  peer.answer(await peer.request('INVITE'), 422, { headers: ['Min-SE: 3600'] })
  await peer.request('ACK')
  const longer = await peer.request('INVITE')
  t.equal(headerOf(longer, 'Session-Expires'), '3600;refresher=uas')
  peer.answer(longer, 200, { body: sdp() })
  t.match(await event(callId), { type: 'connected' })
})

test('a challenge is answered with the password of the trunk, of its realm only', async (t) => {
  const settings = { username: 'carol', realm: 'carrier', domain: 'trunk.test' }
  const { dial, peer, event } = await openScene(t, settings, 'open sesame')
  const { callId } = await dial()
  const challenge = (realm: string) => [`Proxy-Authenticate: Digest realm="${realm}", nonce="n1", qop="auth"`]
  peer.answer(await peer.request('INVITE'), 407, { headers: challenge('carrier') })
  await peer.request('ACK')
  const proved = await peer.request('INVITE')
  const credentials = readCredentials(headerOf(proved, 'Proxy-Authorization') ?? '')!
  t.match(credentials, { username: 'carol', realm: 'carrier' })
  t.ok(provesPassword(credentials, 'INVITE', 'open sesame'))
  t.equal(headerOf(proved, 'Session-Expires'), '1800;refresher=uas', 'what refreshes the call would be challenged too')
  peer.answer(proved, 200, { body: sdp() })
  t.match(await event(callId), { type: 'connected' })
  const other = await dial()
  peer.answer(await peer.request('INVITE'), 401, {
    reason: 'Unauthorized',
    headers: ['WWW-Authenticate: Digest realm="thief", nonce="n2"'],
  })
  t.same(await event(other.callId), {
    type: 'dial_failed',
    outcome: { status: 'failed', reason: 'sip_call_failed' },
    providerStatus: '401 Unauthorized',
    endedBy: 'network',
    endCause: 'SIP 401',
  })
})

test('ringing has an end: the INVITE is canceled and nobody answered', async (t) => {
  const { dial, peer, event, clock } = await openScene(t)
  const { callId } = await dial({ ringTimeout: 20_000 })
  const invite = await peer.request('INVITE')
  peer.answer(invite, 183, { reason: 'Session Progress', body: sdp() })
  t.match(await event(callId), { type: 'ringing', providerStatus: '183 Session Progress' })
  clock.advance(20_000)
  peer.answer(await peer.request('CANCEL'), 200)
  peer.answer(invite, 487, { reason: 'Request Terminated' })
  t.same(await event(callId), {
    type: 'dial_failed',
    outcome: { status: 'no_answer' },
    providerStatus: '487 Request Terminated',
    endedBy: 'service',
    endCause: 'SIP 487',
  })
})

test('a gateway that ignores the CANCEL keeps nobody waiting', async (t) => {
  const { dial, peer, event, clock } = await openScene(t)
  const { callId } = await dial({ ringTimeout: 20_000 })
  peer.answer(await peer.request('INVITE'), 180, { reason: 'Ringing' })
  await event(callId)
  clock.advance(25_000)
  t.same(await event(callId), {
    type: 'dial_failed',
    outcome: { status: 'no_answer' },
    providerStatus: '180 Ringing',
    endedBy: 'service',
  })
})

test('an answer that crosses the CANCEL is hung up', async (t) => {
  const { dial, peer, event, command } = await openScene(t)
  const { callId } = await dial()
  const invite = await peer.request('INVITE')
  peer.answer(invite, 180)
  await event(callId)
  await command(callId, { type: 'close', reason: 'canceled' })
  await peer.request('CANCEL')
  peer.answer(invite, 200, { body: sdp() })
  await peer.request('ACK')
  peer.answer(await peer.request('BYE'), 200)
})

test('an answer without usable sound is acknowledged, hung up and a failure', async (t) => {
  const { dial, peer, event } = await openScene(t)
  const { callId } = await dial()
  peer.answer(await peer.request('INVITE'), 200, { reason: 'OK', body: sdp('18') })
  await peer.request('ACK')
  t.match(await event(callId), {
    type: 'dial_failed',
    outcome: { reason: 'sip_call_failed' },
    providerStatus: '200 OK',
  })
  peer.answer(await peer.request('BYE'), 200)
})

test('the next gateway is asked when one is out of order, the next trunk when all of one are', async (t) => {
  const { dial, peer, event, telephony, serverPort, clock } = await openScene(t)
  const [second, third] = [await openGateway(t, serverPort), await openGateway(t, serverPort)]
  telephony.trunks = [
    trunkOf({ gateways: [gatewayOf(peer), gatewayOf(second)], qualify: false }, null, 'one'),
    trunkOf({ gateways: [gatewayOf(third)], qualify: false, codecs: ['PCMA'] }, null, 'two'),
  ]
  const { callId } = await dial()
  peer.answer(await peer.request('INVITE'), 503, { reason: 'Service Unavailable' })
  await second.request('INVITE')
  clock.advance(8_000)
  const invite = await third.request('INVITE')
  t.match(bodyText(invite), /m=audio \d+ RTP\/AVP 8 /, 'the offer is that of the trunk')
  t.equal(/^o=\S+ \d+ (\d+)/m.exec(bodyText(invite))?.[1], '2', 'and a new version of the description')
  third.answer(invite, 486, { reason: 'Busy Here' })
  t.same(await event(callId), {
    type: 'dial_failed',
    outcome: { status: 'busy' },
    providerStatus: '486 Busy Here',
    endedBy: 'caller',
    endCause: 'SIP 486',
  })
  t.same(
    telephony.carried.map(({ trunkId }) => trunkId),
    telephony.trunks.map(({ id }) => id),
  )
})

test('a gateway that rang has asked the callee: no other is tried', async (t) => {
  const { dial, peer, event, telephony, serverPort } = await openScene(t)
  const second = await openGateway(t, serverPort)
  telephony.trunks = [trunkOf({ gateways: [gatewayOf(peer), gatewayOf(second)], qualify: false })]
  const { callId } = await dial()
  const invite = await peer.request('INVITE')
  peer.answer(invite, 180)
  await event(callId)
  peer.answer(invite, 500, { reason: 'Oops', headers: ['Reason: Q.850;cause=17'] })
  t.same(await event(callId), {
    type: 'dial_failed',
    outcome: { status: 'busy' },
    providerStatus: '500 Oops',
    endedBy: 'caller',
    endCause: 'Q.850 17',
  })
})

test('what policy forbids is not dialed, and told', async (t) => {
  const { dial, telephony, event } = await openScene(t)
  telephony.refuses.refusalOf = {
    reason: 'destination_not_allowed',
    details: 'satellites are not allowed',
    accountId: telephony.accountId,
    trunkId: null,
    sipStatus: 403,
  }
  const { callId, reply } = await dial({ toNumber: '+881612345678' })
  t.same(reply, { type: 'dialing' })
  t.match(await event(callId), { type: 'dial_failed', outcome: { status: 'failed' }, providerStatus: null })
  t.match(telephony.refusals, [
    { direction: 'outbound', reason: 'destination_not_allowed', sipStatus: null, callId, called: '+881612345678' },
  ])
  telephony.refuses = {}
  telephony.trunks = []
  const nowhere = await dial()
  t.match(await event(nowhere.callId), { outcome: { status: 'failed', reason: 'sip_call_failed' } })
  t.match(telephony.refusals.at(-1), { reason: 'no_trunk' })
})

test('a call is dialed once however often it is asked for', async (t) => {
  const { dial, peer } = await openScene(t)
  const { callId } = await dial()
  t.same((await dial({ callId })).reply, { type: 'dialing' })
  await peer.request('INVITE')
  t.match((await dial({ ringTimeout: -1 })).reply, { type: 'refused' })
})

test('when the SIP server is lost its calls fail, and calls are refused until it is back', async (t) => {
  const { dial, peer, event, server, edge } = await openScene(t)
  const talking = await dial()
  peer.answer(await peer.request('INVITE'), 200, { body: sdp() })
  await event(talking.callId)
  const ringing = await dial()
  await peer.request('INVITE')
  await server.close()
  t.match(await event(talking.callId), { type: 'disconnected', cause: 'failed' })
  t.match(await event(ringing.callId), { type: 'dial_failed', outcome: { reason: 'sip_call_failed' } })
  await until(() => !edge.health().connected)
  t.match((await dial()).reply, { type: 'refused', details: /not connected/ })
})

test('a server that keeps the calls of a lost connection is told to hang them up when it is back', async (t) => {
  let cut = () => undefined as void
  const scene = await openEdgeScene(t, {
    via: async (control) => {
      const relay = await openControlRelay(control)
      t.teardown(() => relay.close())
      cut = relay.cut
      return relay.control
    },
  })
  const { telephony, peer, dial, event, edge } = scene
  telephony.trunks = [trunkOf({ gateways: [gatewayOf(peer)], qualify: false })]
  const { callId } = await dial()
  peer.answer(await peer.request('INVITE'), 200, { body: sdp() })
  t.match(await event(callId), { type: 'connected' })
  cut()
  t.match(await event(callId), { type: 'disconnected', cause: 'failed' })
  const bye = await peer.request('BYE')
  t.match(headerOf(bye, 'Reason'), /connection lost/)
  peer.answer(bye, 200)
  await until(() => edge.health().connected)
  const again = await dial()
  peer.answer(await peer.request('INVITE'), 486)
  t.match(await event(again.callId), { outcome: { status: 'busy' } }, 'and calls are placed again')
})

test('a gateway is called by the transport the trunk names', async (t) => {
  const listen = [{ protocol: 'tcp', address: '127.0.0.1', port: 0 } as const]
  const { telephony, serverPort, dial, event } = await openEdgeScene(t, { listen })
  const wire = await openSipWire(serverPort, 'tcp')
  t.teardown(() => wire.close())
  telephony.trunks = [trunkOf({ gateways: [{ host: '127.0.0.1', port: wire.port, transport: 'tcp' }], qualify: false })]
  const { callId } = await dial()
  const invite = await wire.request('INVITE')
  t.equal(invite.uri, `sip:+4915112345678@127.0.0.1:${wire.port};transport=tcp`)
  t.match(headerOf(invite, 'Contact'), /;transport=tcp>/)
  wire.answer(invite, 200, 'tag', [], sdp())
  t.match(await event(callId), { type: 'connected' })
})

test('a wrong secret and a server that is not there are said at once', async (t) => {
  const spoiled = (change: (control: SipServer['control']) => SipServer['control']) =>
    openEdgeScene(t, { via: async (control) => change(control) })
  await t.rejects(
    spoiled((control) => ({ ...control, secret: 'guess' })),
    /refused the secret/,
  )
})

const rows: readonly (readonly [number, string, number | null, string])[] = [
  [486, 'Busy Here', null, 'busy'],
  [600, 'Busy Everywhere', null, 'busy'],
  [480, 'Temporarily Unavailable', null, 'no_answer'],
  [480, 'Temporarily Unavailable', 17, 'busy'],
  [480, 'Temporarily Unavailable', 1, 'carrier_call_failed'],
  [408, 'Request Timeout', null, 'no_answer'],
  [487, 'Request Terminated', null, 'no_answer'],
  [603, 'Decline', null, 'no_answer'],
  [603, 'Network Blocked', 21, 'carrier_call_failed'],
  [607, 'Unwanted', null, 'no_answer'],
  [608, 'Rejected', null, 'carrier_call_failed'],
  [404, 'Not Found', null, 'carrier_call_failed'],
  [404, 'Not Found', 17, 'carrier_call_failed'],
  [410, 'Gone', null, 'carrier_call_failed'],
  [484, 'Address Incomplete', null, 'carrier_call_failed'],
  [485, 'Ambiguous', null, 'carrier_call_failed'],
  [604, 'Does Not Exist', null, 'carrier_call_failed'],
  [606, 'Not Acceptable', null, 'carrier_call_failed'],
  [401, 'Unauthorized', null, 'sip_call_failed'],
  [403, 'Forbidden', null, 'sip_call_failed'],
  [407, 'Proxy Authentication Required', null, 'sip_call_failed'],
  [400, 'Bad Request', null, 'sip_call_failed'],
  [488, 'Not Acceptable Here', null, 'sip_call_failed'],
  [482, 'Loop Detected', null, 'carrier_call_failed'],
  [483, 'Too Many Hops', null, 'carrier_call_failed'],
  [302, 'Moved Temporarily', null, 'carrier_call_failed'],
  [500, 'Server Internal Error', null, 'carrier_call_failed'],
  [500, 'Server Internal Error', 17, 'busy'],
  [500, 'Server Internal Error', 19, 'no_answer'],
  [503, 'Service Unavailable', 34, 'carrier_call_failed'],
  [504, 'Server Time-out', 18, 'no_answer'],
]

test('each answer of a carrier is one outcome of the call', (t) => {
  for (const [status, reason, cause, expected] of rows) {
    const outcome = outcomeOf({ status, reason, cause })
    t.equal('reason' in outcome ? outcome.reason : outcome.status, expected, `${status} ${reason} ${cause ?? ''}`)
  }
  t.end()
})

test('another gateway helps against trouble of this one, not against what the callee says', (t) => {
  const helps = (status: number, rang = false, cause: number | null = null) =>
    speaksOfGateway({ status, reason: '', cause }, rang)
  for (const status of [408, 500, 502, 503, 504]) t.ok(helps(status), String(status))
  for (const status of [403, 404, 480, 486, 603]) t.notOk(helps(status), String(status))
  t.notOk(helps(503, true), 'it rang')
  t.notOk(helps(503, false, 17), 'the callee is busy')
  t.ok(helps(503, false, 34), 'no circuit of this gateway is free')
  t.end()
})

test('who calls when the connection to the SIP server is gone has the invitation before it hears of its end', async (t) => {
  const log = createQuietLog()
  const listen = [{ protocol: 'udp', address: '127.0.0.1', port: 0 }] as const
  const server = await createSipServer({ listen, clock: systemClock, log })
  const stack = await connectStack({
    control: server.control,
    routes: {},
    clock: systemClock,
    log,
    connectWithin: 5_000,
  })
  t.teardown(() => stack.close())
  const lost = new Promise<void>((resolve) => stack.onLost(resolve))
  await server.close()
  await lost
  const heard: string[] = []
  const { promise: over, resolve } = Promise.withResolvers<void>()
  const ended = ({ kind }: InvitationResult): void => {
    heard.push(kind)
    resolve()
  }
  stack.invite('sip:1@127.0.0.1:9', { headers: {}, localSdp: sdp() }, { provisional: () => undefined, ended })
  heard.push('invited')
  await over
  t.same(heard, ['invited', 'unreachable'])
})
