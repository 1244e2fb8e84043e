/** Inbound calls over a trunk, as the carrier sees them on the wire and the actor on the bus. */
import { test, type Test } from 'tap'
import { subjectsOf } from '../../model/bus.ts'
import { encodeFrame } from '../../model/frame.ts'
import type { CallId } from '../../model/ids.ts'
import type { SipResponse } from '../../sip/server/message/message.ts'
import { createRtpPeer, type RtpPeer } from '../fake/rtp-peer.ts'
import type { PeerCall } from '../fake/sip-peer.ts'
import { digestResponseOf, readChallenge, writeCredentials } from '../../sip/server/message/digest.ts'
import { headerOf, headersOf } from '../../sip/server/message/header-fields.ts'
import { until } from '../scenes/in-time.ts'
import { openEdgeScene, passing, type EdgeScene } from '../scenes/sip-edge-scene.ts'
import { trunkOf } from '../fake/telephony-port.ts'
import { bodyText } from '../scenes/body-text.ts'

const sdp = (port = 40_000, { version = 1, direction = 'sendrecv', codec = '0' } = {}): string =>
  [
    'v=0',
    `o=- 7 ${version} IN IP4 127.0.0.1`,
    's=-',
    'c=IN IP4 127.0.0.1',
    't=0 0',
    `m=audio ${port} RTP/AVP ${codec} 101`,
    'a=rtpmap:101 telephone-event/8000',
    `a=${direction}`,
    '',
  ].join('\r\n')

test('a call is let in, rings, is answered when the actor says so and hung up by the caller', async (t) => {
  const { telephony, peer, begun, event, command, edge } = await openEdgeScene(t)
  telephony.trunks = [trunkOf({})]
  const call = peer.invite({ body: sdp() })
  t.equal((await call.answered()).status, 180)
  const callId = await begun()
  t.match(telephony.received, [{ fromNumber: '+4915112345678', route: { toNumber: telephony.number } }])
  t.equal(edge.health().calls, 1)
  t.same(await command(callId, { type: 'answer' }), { type: 'accepted' })
  const answer = await call.answered()
  t.equal(answer.status, 200)
  t.match(bodyText(answer), /m=audio \d+ RTP\/AVP 0 101/)
  call.ack()
  t.same(await event(callId), { type: 'connected', providerStatus: '200 OK' })
  t.equal((await call.request('BYE')).status, 200)
  t.match(await event(callId), { type: 'disconnected', cause: 'hung_up' })
  await command(callId, { type: 'close', reason: 'completed' })
  t.equal(edge.health().calls, 0)
})

const statusOf = async (answer: Promise<SipResponse>): Promise<number> => (await answer).status

async function talking(
  scene: EdgeScene,
  body = sdp(),
): Promise<{ call: PeerCall; callId: CallId; answer: SipResponse }> {
  const call = scene.peer.invite({ body })
  await call.answered()
  const callId = await scene.begun()
  await scene.command(callId, { type: 'answer' })
  const answer = await call.answered()
  call.ack()
  await scene.event(callId)
  return { call, callId, answer }
}

async function openTalk(t: Test, body?: string) {
  const scene = await openEdgeScene(t)
  scene.telephony.trunks = [trunkOf({ domain: 'carrier.test', transferTo: 'tel' })]
  return { ...scene, ...(await talking(scene, body)) }
}

test('sound flows both ways, by the ports of the descriptions', async (t) => {
  const rtp = await createRtpPeer()
  t.teardown(() => rtp.close())
  const scene = await openTalk(t, sdp(rtp.local.port))
  const { bus, callId, command, answer } = scene
  const port = Number(/m=audio (\d+)/.exec(bodyText(answer))?.[1])
  const heard = new Promise<number>((resolve) => {
    bus.subscribe(subjectsOf(callId).up, ({ payload }) => resolve(payload.length))
  })
  const format = { encoding: 'pcmu', rateHz: 8000 } as const
  await command(callId, { type: 'start', hears: [format], speaks: [format], recording: null })
  for (let sequenceNumber = 1; sequenceNumber < 6; sequenceNumber++)
    await rtp.send({ address: '127.0.0.1', port }, { sequenceNumber, payload: new Uint8Array(160).fill(0x7f) })
  t.equal(await heard, 172, 'a frame of 20 ms and its header')
  for (let seq = 0; seq < 5; seq++)
    bus.publish(
      subjectsOf(callId).down,
      encodeFrame({ epoch: 1, seq, timestamp: seq * 20, payload: new Uint8Array(160).fill(0x12) }),
    )
  for (;;) {
    const { bytes } = await rtp.next()
    if (bytes.length === 172 && bytes.subarray(12).every((byte) => byte === 0x12)) break
  }
})

test('the cause that a caller gives to BYE or CANCEL is told: of Q.850 before SIP, and none where none can be read', async (t) => {
  const { telephony, peer, begun, event, command } = await openEdgeScene(t)
  telephony.trunks = [trunkOf({})]
  const given: [string[], string | null][] = [
    [['Reason: SIP;cause=200;text="elsewhere", Q.850;cause=16;text="Normal call clearing"'], 'Q.850 16'],
    [['Reason: SIP ;cause=480'], 'SIP 480'],
    [['Reason: preemption;text="no cause"'], null],
    [[], null],
  ]
  for (const [headers, endCause] of given) {
    const call = peer.invite({ body: sdp() })
    await call.answered()
    const callId = await begun()
    await command(callId, { type: 'answer' })
    await call.answered()
    call.ack()
    await event(callId)
    await call.request('BYE', { headers })
    t.match(await event(callId), { type: 'disconnected', cause: 'hung_up', endCause }, headers.join())
    await command(callId, { type: 'close', reason: 'completed' })
  }
  const ringing = peer.invite({ body: sdp() })
  await ringing.answered()
  const callId = await begun()
  ringing.cancel({ headers: ['Reason: SIP;cause=200;text="Call completed elsewhere"'] })
  t.match(await event(callId), { type: 'disconnected', cause: 'hung_up', endCause: 'SIP 200' })
})

test('an INVITE without an offer gets ours, and the call is connected by the answer in the ACK', async (t) => {
  const scene = await openEdgeScene(t)
  const { telephony, peer, begun, command, event } = scene
  telephony.trunks = [trunkOf({ codecs: ['PCMA', 'PCMU'] })]
  const call = peer.invite()
  await call.answered()
  const callId = await begun()
  await command(callId, { type: 'answer' })
  t.match(bodyText(await call.answered()), /m=audio \d+ RTP\/AVP 8 0 101/)
  call.ack({ body: sdp(40_000, { codec: '8' }) })
  t.same(await event(callId), { type: 'connected', providerStatus: '200 OK' })
  await command(callId, { type: 'close', reason: 'completed' })
  const bye = await peer.request('BYE')
  peer.answer(bye, 200)
  t.match(headerOf(bye, 'Reason'), /completed/)

  const mute = peer.invite()
  await mute.answered()
  const muteId = await until(() => (telephony.begun.length > 1 ? telephony.begun[1] : null))
  await command(muteId, { type: 'answer' })
  await mute.answered()
  mute.ack()
  peer.answer(await peer.request('BYE'), 200)
  t.match(await event(muteId), { type: 'disconnected', cause: 'failed' }, 'an ACK without an answer ends the call')
})

test('a caller who cancels is gone before the answer, and the call that was stored hears of it', async (t) => {
  const { telephony, peer, begun, event } = await openEdgeScene(t)
  telephony.trunks = [trunkOf({})]
  const call = peer.invite({ body: sdp() })
  await call.answered()
  call.cancel()
  t.equal((await call.answered()).status, 487)
  const callId = await begun()
  t.match(await event(callId), { type: 'disconnected', cause: 'hung_up' })
})

test('of two callers who share a Call-ID the one who cancels is gone, and the other is answered or cancels as well', async (t) => {
  const { telephony, peer, event, command } = await openEdgeScene(t)
  telephony.trunks = [trunkOf({})]
  const ring = async (index: number) => {
    const call = peer.invite({ body: sdp(), callId: 'counted-from-the-start' })
    t.equal(await statusOf(call.answered()), 180)
    return { call, callId: await until(() => telephony.begun[index]) }
  }
  const [first, second, third] = [await ring(0), await ring(1), await ring(2)]
  first.call.cancel()
  t.equal(await statusOf(first.call.answered()), 487)
  t.match(await event(first.callId), { type: 'disconnected', cause: 'hung_up' })
  await command(second.callId, { type: 'answer' })
  t.equal(await statusOf(second.call.answered()), 200)
  second.call.ack()
  t.match(await event(second.callId), { type: 'connected' })
  third.call.cancel()
  t.equal(await statusOf(third.call.answered()), 487)
  t.match(await event(third.callId), { type: 'disconnected', cause: 'hung_up' })
})

test('an actor that ends an unanswered call says by its status what the caller hears', async (t) => {
  const scene = await openEdgeScene(t)
  const { telephony, peer, command } = scene
  telephony.trunks = [trunkOf({})]
  const rows = { busy: 486, failed: 503, canceled: 480, no_answer: 480 }
  for (const [index, [reason, status]] of Object.entries(rows).entries()) {
    const call = peer.invite({ body: sdp() })
    await call.answered()
    const callId = await until(() => telephony.begun[index])
    await command(callId, { type: 'close', reason })
    t.equal(await statusOf(call.answered()), status, reason)
  }
})

test('more calls at once than a node looks at are told to come again', async (t) => {
  const { telephony, peer } = await openEdgeScene(t, { maxPending: 0 })
  telephony.trunks = [trunkOf({})]
  const answer = await peer.invite({ body: sdp() }).answered()
  t.equal(answer.status, 503)
  t.ok(headerOf(answer, 'Retry-After'))
  t.match(telephony.refusals, [{ reason: 'too_many_calls_per_second' }])
})

test('a call that cannot begin is answered 503', async (t) => {
  const { telephony, peer } = await openEdgeScene(t)
  telephony.trunks = [trunkOf({})]
  telephony.refuses.begin = { reason: 'malformed', details: '', accountId: null, trunkId: null, sipStatus: 500 }
  const call = peer.invite({ body: sdp() })
  await call.answered()
  t.equal(await statusOf(call.answered()), 503)
})

test('what is not let in is answered with its status, and told with who called whom from where', async (t) => {
  const { telephony, peer, edge } = await openEdgeScene(t)
  t.equal(await statusOf(peer.invite({ body: sdp() }).answered()), 404, 'no trunk')
  telephony.trunks = [trunkOf({})]
  t.equal(await statusOf(peer.invite({ to: 'sip:+4977777777@service.test', body: sdp() }).answered()), 404)
  telephony.refuses.receive = {
    reason: 'account_at_capacity',
    details: 'two calls are enough',
    accountId: telephony.accountId,
    trunkId: null,
    sipStatus: 503,
  }
  const busy = await peer.invite({ body: sdp() }).answered()
  t.equal(busy.status, 503)
  t.ok(headerOf(busy, 'Retry-After'))
  t.match(telephony.refusals, [
    {
      direction: 'inbound',
      reason: 'unknown_number',
      sipStatus: 404,
      called: '+4930123456',
      calling: '+4915112345678',
    },
    { reason: 'unknown_number', called: '+4977777777', address: `127.0.0.1:${peer.port}` },
    { reason: 'account_at_capacity', details: 'two calls are enough', accountId: telephony.accountId },
  ])
  t.equal(edge.health().calls, 0)
})

test('an offer that cannot be answered is refused with 488 and why, a body that is none with 415', async (t) => {
  const { telephony, peer } = await openEdgeScene(t)
  telephony.trunks = [trunkOf({})]
  const unknown = await peer.invite({ body: sdp(40_000, { codec: '18' }) }).answered()
  t.equal(unknown.status, 488)
  t.match(headerOf(unknown, 'Warning'), /^305 parley ".+"$/)
  t.equal(await statusOf(peer.invite({ body: 'hello', headers: ['Content-Type: text/plain'] }).answered()), 415)
  t.match(telephony.refusals, [{ reason: 'not_acceptable_here', sipStatus: 488 }, { sipStatus: 415 }])
  t.equal(telephony.received.length, 0, 'nothing was stored')
})

test('a password is asked for where it must be proved, and a proof is good once', async (t) => {
  const { telephony, peer, begun } = await openEdgeScene(t)
  telephony.mustAuthenticate = true
  telephony.trunks = [trunkOf({ username: 'carol', domain: 'service.test' }, 'open sesame')]
  const call = peer.invite({ body: sdp() })
  const challenged = await call.answered()
  t.equal(challenged.status, 401)
  const challengesIn = (answer: SipResponse) =>
    headersOf(answer, 'WWW-Authenticate').map((value) => readChallenge(value)!)
  let challenges = challengesIn(challenged)
  t.match(challenges, [{ algorithm: 'MD5', realm: 'service.test', qopAuth: true }])
  const prove = (password: string, nc: string): string[] => {
    const { realm, nonce, algorithm } = challenges[0]!
    const shared = { username: 'carol', realm, nonce, uri: 'sip:service.test', algorithm, nc, cnonce: 'abc' }
    const response = digestResponseOf(shared, 'INVITE', password)
    return [`Authorization: ${writeCredentials({ ...shared, opaque: null, response })}`]
  }
  const wrong = peer.invite({ body: sdp(), headers: prove('open barley', '00000001') })
  t.equal(await statusOf(wrong.answered()), 403)
  t.match(telephony.refusals, [{ reason: 'wrong_credentials', accountId: telephony.accountId }])
  call.again(prove('open sesame', '00000002'))
  const burnt = await call.answered()
  t.equal(burnt.status, 401, 'a wrong password uses the nonce up')
  challenges = challengesIn(burnt)
  t.match(challenges, [{ stale: true }])
  call.again(prove('open sesame', '00000001'))
  t.equal(await statusOf(call.answered()), 180)
  await begun()
  const replayed = await peer.invite({ body: sdp(), headers: prove('open sesame', '00000001') }).answered()
  t.equal(replayed.status, 401)
  t.match(headerOf(replayed, 'WWW-Authenticate'), /stale=true/)
  t.equal(telephony.received.length, 1)
})

test('hold, resume, a new address and another codec are agreed on within the call', async (t) => {
  const rtp = await createRtpPeer()
  t.teardown(() => rtp.close())
  const { call, answer, server, callId, command, log } = await openTalk(t)
  const versionOf = (message: SipResponse) => /^o=\S+ \d+ (\d+)/m.exec(bodyText(message))?.[1]
  t.equal(versionOf(answer), '1')
  const refreshed = await call.reinvite({ body: sdp() })
  t.equal(bodyText(refreshed), bodyText(answer), 'a refresh changes nothing, not even the version')
  const held = await call.reinvite({ body: sdp(40_000, { version: 2, direction: 'sendonly' }) })
  t.match(bodyText(held), /a=recvonly/)
  t.equal(versionOf(held), '2')
  const resumed = await call.reinvite({ body: sdp(rtp.local.port, { version: 3, codec: '8' }) })
  t.match(bodyText(resumed), /m=audio \d+ RTP\/AVP 8 101/)
  t.equal(versionOf(resumed), '3')
  t.equal((await call.reinvite({ body: sdp(40_000, { version: 4, codec: '18' }) })).status, 488)
  const updated = await call.request('UPDATE', { body: sdp(rtp.local.port, { version: 5, codec: '8' }) })
  t.equal(updated.status, 200)
  t.equal(versionOf(updated), '3', 'the same words again')
  t.equal((await call.request('UPDATE')).status, 200, 'a session is refreshed without an offer')
  const still = { body: sdp(rtp.local.port, { version: 5, codec: '8' }), contact: false } as const
  t.equal((await call.reinvite(still)).status, 200, 'who says no Contact within a call is where it was')
  const format = { encoding: 'pcmu', rateHz: 8000 } as const
  await command(callId, { type: 'start', hears: [format], speaks: [format], recording: null })
  const { bytes } = await rtp.next()
  t.equal(bytes[1]! & 0x7f, 8, 'sound goes to the new address in the new codec')
  t.equal(server.sizes().dialogs, 1)
  t.notOk(log.lines.some(({ level }) => level === 'error'))
})

test('of a caller behind a NAT the host that signals is heard, and no stranger who was quicker', async (t) => {
  const [rtp, stranger] = [await createRtpPeer(), await createRtpPeer('127.0.0.2')]
  t.teardown(() => Promise.all([rtp.close(), stranger.close()]))
  const inside = sdp(rtp.local.port).replace('c=IN IP4 127.0.0.1', 'c=IN IP4 192.168.7.7')
  const { callId, answer, command, bus, log, packets } = await openTalk(t, inside)
  const to = { address: '127.0.0.1', port: Number(/m=audio (\d+)/.exec(bodyText(answer))?.[1]) }
  const heard: number[] = []
  bus.subscribe(subjectsOf(callId).up, ({ payload }) => void heard.push(payload.at(-1) ?? 0))
  const format = { encoding: 'pcmu', rateHz: 8000 } as const
  await command(callId, { type: 'start', hears: [format], speaks: [format], recording: null })
  const say = async (peer: RtpPeer, sequenceNumber: number, byte: number): Promise<void> =>
    peer.send(to, { sequenceNumber, payload: new Uint8Array(160).fill(byte) })
  for (let seq = 1; seq < 4; seq += 1) await say(stranger, seq, 0x11)
  await until(() => packets() === 1)
  await say(rtp, 1, 0x22)
  await until(() => heard.includes(0x22))
  for (let seq = 4; seq < 40; seq += 1) await say(stranger, seq, 0x33)
  for (let seq = 2; seq < 5; seq += 1) await say(rtp, seq, 0x44)
  await until(() => heard.includes(0x44))
  t.equal(packets(), 5)
  t.notOk(heard.includes(0x33))
  await rtp.next()
  t.pass('sound goes there')
  await until(() => log.lines.some(({ message }) => message === 'RTP of a stranger is dropped'))
})

test('a re-INVITE without an offer gets ours, and its ACK changes the session', async (t) => {
  const { call } = await openTalk(t)
  const offered = await call.reinvite({}, { body: sdp(40_002, { version: 2 }) })
  t.match(bodyText(offered), /m=audio \d+ RTP\/AVP 0 8 9 /)
  t.equal(await statusOf(call.request('BYE')), 200)
})

test('keys come by INFO in both spellings, and every INFO is answered', async (t) => {
  const { call, callId, event, command } = await openTalk(t)
  // Before it they are kept for whoever starts the leg.
  const format = { encoding: 'pcmu', rateHz: 8000 } as const
  await command(callId, { type: 'start', hears: [format], speaks: [format], recording: null })
  const info = (type: string, body: string) => call.request('INFO', { headers: [`Content-Type: ${type}`], body })
  t.equal(await statusOf(info('application/dtmf-relay', 'Signal=5\r\nDuration=160\r\n')), 200)
  t.equal(await statusOf(info('application/dtmf', '11')), 200)
  t.equal(await statusOf(info('application/media_control+xml', '<x/>')), 200)
  t.same(
    [await event(callId), await event(callId)].map((told) => ('digit' in told ? told.digit : told)),
    ['5', '#'],
  )
})

test('the worker presses keys by INFO where no telephone events were agreed on', async (t) => {
  const noEvents = sdp()
    .replace(' 101', '')
    .replace(/a=rtpmap:101.*\r\n/, '')
  const { peer, callId, command } = await openTalk(t, noEvents)
  t.same(await command(callId, { type: 'send_dtmf', digits: '1#' }), { type: 'accepted' })
  for (const digit of ['1', '#']) {
    const info = await peer.request('INFO')
    t.match(bodyText(info), `Signal=${digit}\r\n`)
    peer.answer(info, 200)
  }
})

test('a caller is passed on by REFER, the call ends with the last NOTIFY', async (t) => {
  const { peer, call, callId, command, event } = await openTalk(t)
  const asked = command(callId, { type: 'transfer', to: '+4989555' })
  const refer = await peer.request('REFER')
  t.equal(headerOf(refer, 'Refer-To'), '<tel:+4989555>')
  peer.answer(refer, 202)
  t.same(await asked, { type: 'accepted' })
  t.same(
    await command(callId, { type: 'transfer', to: '+4989555' }),
    { type: 'accepted' },
    'asked again by another actor',
  )
  t.match(await command(callId, { type: 'transfer', to: '+4989777' }), { type: 'refused', details: /another/ })
  const notify = (line: string, state: string) =>
    call.request('NOTIFY', {
      headers: ['Event: refer', `Subscription-State: ${state}`, 'Content-Type: message/sipfrag'],
      body: `SIP/2.0 ${line}\r\n`,
    })
  t.equal(await statusOf(notify('100 Trying', 'active;expires=60')), 200)
  t.equal(await statusOf(notify('200 OK', 'terminated;reason=noresource')), 200)
  t.same(await event(callId), { type: 'transferred', providerStatus: '200 OK' })
  peer.answer(await peer.request('BYE'), 200)
})

test('a transfer that fails leaves the caller here; one that is refused says so', async (t) => {
  const { peer, call, callId, command, event, clock } = await openTalk(t)
  const transfer = async (status: number) => {
    const asked = command(callId, { type: 'transfer', to: '+4989555' })
    peer.answer(await peer.request('REFER'), status)
    return asked
  }
  t.match(await transfer(603), { type: 'refused', details: /603/ })
  t.same(await transfer(202), { type: 'accepted' })
  const headers = ['Event: refer', 'Subscription-State: terminated', 'Content-Type: message/sipfrag']
  await call.request('NOTIFY', { headers, body: 'SIP/2.0 486 Busy Here\r\n' })
  t.same(await event(callId), { type: 'transfer_failed', providerStatus: '486 Busy Here' })
  t.same(await transfer(202), { type: 'accepted' })
  clock.advance(90_000)
  t.match(await event(callId), { type: 'transfer_failed', providerStatus: /no word/ })
  t.equal(await statusOf(call.request('NOTIFY', { headers, body: 'SIP/2.0 200 OK\r\n' })), 481, 'nobody asked')
  t.same(await transfer(202), { type: 'accepted' })
  t.equal(await statusOf(call.request('BYE')), 200)
  t.same(
    await event(callId),
    { type: 'transferred', providerStatus: '202 Accepted' },
    'some hang up in place of the last word',
  )
})

test('before the answer a caller is passed on by 302', async (t) => {
  const { telephony, peer, begun, command, event } = await openEdgeScene(t)
  telephony.trunks = [trunkOf({ domain: 'carrier.test', numberPrefix: '00' })]
  const call = peer.invite({ body: sdp() })
  await call.answered()
  const callId = await begun()
  t.same(await command(callId, { type: 'transfer', to: '+4989555' }), { type: 'accepted' })
  const moved = await call.answered()
  t.equal(moved.status, 302)
  t.match(headerOf(moved, 'Contact'), '<sip:004989555@carrier.test>')
  t.same(await event(callId), { type: 'transferred', providerStatus: '302 Moved Temporarily' })
})

test('nobody calls others at our cost: a REFER from outside is declined and told', async (t) => {
  const { call, telephony, callId, peer } = await openTalk(t)
  t.equal(await statusOf(call.request('REFER', { headers: ['Refer-To: <sip:+881600@evil.test>'] })), 603)
  t.match(telephony.refusals, [{ direction: 'outbound', reason: 'destination_not_allowed', sipStatus: 603, callId }])
  t.equal(await statusOf(peer.ask('REFER', { headers: ['Refer-To: <sip:+881600@evil.test>'] })), 403)
})

test('other requests get a clear answer, and OPTIONS says what there is', async (t) => {
  const { peer, call } = await openTalk(t)
  const options = await peer.ask('OPTIONS')
  t.equal(options.status, 200)
  t.match(headerOf(options, 'Allow'), /INVITE/)
  t.match(headerOf(options, 'Accept'), 'application/sdp')
  t.equal(await statusOf(call.request('OPTIONS')), 200)
  for (const method of ['REGISTER', 'SUBSCRIBE', 'MESSAGE', 'PUBLISH'])
    t.equal(await statusOf(peer.ask(method, { headers: ['Event: presence'] })), 405, method)
  t.equal(await statusOf(peer.ask('NOTIFY', { headers: ['Event: refer', 'Subscription-State: active'] })), 481)
})

test('who calls is From, and P-Asserted-Identity of a trunk that is trusted to say it', async (t) => {
  const scene = await openEdgeScene(t)
  const { telephony, peer } = scene
  const identity = 'P-Asserted-Identity: <sip:+4930777888@carrier.test>, <tel:+4930777888>'
  const callers = async (settings: { trustsIdentity?: boolean }, headers: string[], from?: string) => {
    telephony.trunks = [trunkOf(settings)]
    await peer.invite({ body: sdp(), headers, ...(from ? { from } : {}) }).answered()
    return telephony.received.at(-1)?.fromNumber
  }
  t.equal(await callers({}, [identity]), '+4915112345678')
  t.equal(await callers({ trustsIdentity: true }, [identity]), '+4930777888')
  t.equal(await callers({ trustsIdentity: true }, [identity, 'Privacy: id']), null)
  t.equal(await callers({}, [], 'sip:anonymous@anonymous.invalid'), null)
  t.equal(await callers({}, [], 'sip:004930555666@carrier.test'), '+4930555666')
})

test('a service that stops lets no call in, waits for those that run, and hangs up in the end', async (t) => {
  const scene = await openTalk(t)
  const { edge, peer, clock, telephony } = scene
  const closed = edge.close(5_000)
  t.equal(await statusOf(peer.ask('OPTIONS')), 503)
  t.equal(await statusOf(peer.invite({ body: sdp() }).answered()), 503)
  t.match(telephony.refusals, [{ reason: 'service_stopping' }])
  t.equal(edge.health().calls, 1)
  clock.advance(5_000)
  peer.answer(await peer.request('BYE'), 200)
  // Actors have their moment to learn what was recorded, and there is none here.
  await passing(clock, closed)
})

test('a node that is overloaded says so to INVITEs before anything is looked at, and its calls go on', async (t) => {
  const scene = await openTalk(t)
  const { peer, telephony, call } = scene
  const overload = { reason: 'node_overloaded', details: 'busy', sipStatus: 503, retryAfterSeconds: 5 } as const
  const asked: unknown[] = []
  let isOver: 'unseen' | 'routed' = 'unseen'
  telephony.overload = (route) => {
    asked.push(route?.trunk.id ?? null)
    const [accountId, trunkId] = route ? [route.trunk.accountId, route.trunk.id] : [null, null]
    return (route === null) === (isOver === 'unseen') ? { ...overload, accountId, trunkId } : null
  }
  const route = t.capture(telephony, 'route', telephony.route)
  const unseen = await peer.invite({ body: sdp() }).answered()
  t.same([unseen.status, headerOf(unseen, 'Retry-After')], [503, '5'])
  t.same(route().length, 0, 'whose it is was not asked')
  isOver = 'routed'
  const routed = await peer.invite({ body: sdp() }).answered()
  t.same([routed.status, headerOf(routed, 'Retry-After')], [503, '5'])
  t.same(asked, [null, null, telephony.trunks[0]?.id])
  t.match(telephony.refusals, [
    { reason: 'node_overloaded', trunkId: null },
    { reason: 'node_overloaded', trunkId: telephony.trunks[0]?.id },
  ])
  t.equal(telephony.received.length, 1, 'nothing was stored')
  t.equal(scene.edge.health().calls, 1)
  t.equal((await call.reinvite({ body: sdp(40_000, { version: 2 }) })).status, 200)
})

test('INVITEs wait for their turn: who gets none is told to come later, who hangs up meanwhile is never looked at', async (t) => {
  const { peer, telephony } = await openTalk(t)
  type Turn = Awaited<ReturnType<NonNullable<typeof telephony.turn>>>
  const asked: ((turn: Turn) => void)[] = []
  const [allAsked, allDone] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  telephony.turn = () => {
    const { promise, resolve } = Promise.withResolvers<Turn>()
    if (asked.push(resolve) === 3) allAsked.resolve()
    return promise
  }
  let done = 0
  const mine = { done: () => void (++done === 2 && allDone.resolve()) }
  const [first, canceled, refused] = [peer.invite({ body: sdp() }), peer.invite({ body: sdp() }), peer.invite()]
  await allAsked.promise
  t.equal(telephony.received.length, 1, 'none of them is looked at')
  canceled.cancel()
  t.equal((await canceled.answered()).status, 487)
  const none = { reason: 'node_overloaded', details: 'busy', sipStatus: 503, accountId: null, trunkId: null } as const
  asked[2]?.({ ...none, retryAfterSeconds: 2 })
  const answer = await refused.answered()
  t.same([answer.status, headerOf(answer, 'Retry-After')], [503, '2'])
  asked[1]?.(mine)
  asked[0]?.(mine)
  t.equal((await first.answered()).status, 180)
  await allDone.promise
  t.equal(telephony.received.length, 2, 'the one that was canceled is not stored, and gave its turn back')
})
