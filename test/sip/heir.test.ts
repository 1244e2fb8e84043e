/** What the peer of an edge that died hears of its heir, on the wire: of any dialog, by any transport. RFC 3261 §12.2.1, §15.1. */
import { once } from 'node:events'
import net from 'node:net'
import tls from 'node:tls'
import { test, type Test } from 'tap'
import type { CallId } from '../../model/ids.ts'
import { DialogFacts } from '../../model/sip-dialog.ts'
import { dialogFactsOf, movedTo } from '../../sip/call/dialog-facts.ts'
import { headerOf, headersOf } from '../../sip/server/message/header-fields.ts'
import type { SipRequest } from '../../sip/server/message/message.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { trunkOf } from '../fake/telephony-port.ts'
import { until } from '../scenes/in-time.ts'
import { openEdgeScene, passing, type EdgeScene } from '../scenes/sip-edge-scene.ts'
import { newId } from '../scenes/tenant.ts'
import { fakeTls } from '../scenes/tls.ts'

const sdp = 'v=0\r\no=- 7 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 40000 RTP/AVP 0\r\n'

/** A call that came in and talks. */
async function talking(scene: EdgeScene, headers: readonly string[] = [], trunk = trunkOf({})) {
  scene.telephony.trunks = [trunk]
  const call = scene.peer.invite({ body: sdp, headers })
  await call.answered()
  const callId = await scene.begun()
  await scene.command(callId, { type: 'answer' })
  const answer = await call.answered()
  call.ack()
  await scene.event(callId)
  return { call, callId, answer, dialog: scene.telephony.kept.get(callId)! }
}

/** A call that was placed and talks. `challenge` of the INVITE. */
async function placed(scene: EdgeScene, password: string | null, headers: readonly string[] = []) {
  const gateways = [{ host: '127.0.0.1', port: scene.peer.port }]
  const trunk = trunkOf({ gateways, ...(password !== null && { username: 'alice' }) }, password)
  scene.telephony.trunks = [trunk]
  const { callId } = await scene.dial()
  const invite = await scene.peer.request('INVITE')
  scene.peer.answer(invite, 200, { body: sdp, headers })
  await scene.peer.request('ACK')
  await scene.event(callId)
  return { callId, invite, trunk, dialog: scene.telephony.kept.get(callId)! }
}

const numberIn = (request: SipRequest): number => Number.parseInt(headerOf(request, 'CSeq') ?? '')

test('a dialog is kept from the answer to the BYE, and moves with its peer', async (t) => {
  const scene = await openEdgeScene(t)
  const { telephony } = scene
  const { call, callId, dialog } = await talking(scene)
  t.match(dialog, { callId: call.callId, localSequence: 0, seen: { protocol: 'udp', address: '127.0.0.1' } })
  await call.reinvite({ body: sdp.replace('7 1', '7 2') })
  t.equal(telephony.kept.get(callId), dialog, 'it is where it was')
  const contact = '<sip:elsewhere@127.0.0.1:5099>'
  const moved = movedTo(dialog, { get: (name) => (name === 'Contact' ? contact : undefined) })
  t.equal(moved?.remoteTarget, 'sip:elsewhere@127.0.0.1:5099')
  t.equal((await call.request('BYE')).status, 200)
  await until(() => telephony.kept.size === 0)
  await scene.command(callId, { type: 'close', reason: 'completed' })
})

test('a peer that answers a refresh of ours with another description is followed, as by its own re-INVITE', async (t) => {
  const clock = createHandClock()
  const scene = await openEdgeScene(t, { server: { clock } })
  const { callId, dialog } = await talking(scene, ['Supported: timer', 'Session-Expires: 90;refresher=uas'])
  t.equal(dialog.talk?.audio.packetMs, 20)
  clock.advance(45_000)
  const refresh = await scene.peer.request('INVITE')
  scene.peer.answer(refresh, 200, { body: `${sdp.replace('7 1', '7 2')}a=ptime:40\r\n` })
  await scene.peer.request('ACK')
  await until(() => scene.telephony.kept.get(callId)?.talk?.audio.packetMs === 40)
  const closing = scene.command(callId, { type: 'close', reason: 'completed' })
  scene.peer.answer(await scene.peer.request('BYE'), 200)
  await closing
})

test('a peer that called us and asks for the password within its call gets it, where it is one of the trunk', async (t) => {
  const scene = await openEdgeScene(t)
  const { peer } = scene
  const gateways = [{ host: '127.0.0.1', port: peer.port }]
  const { callId } = await talking(scene, [], trunkOf({ gateways, username: 'alice' }, 'secret'))
  const closing = scene.command(callId, { type: 'close', reason: 'completed' })
  const first = await peer.request('BYE')
  const challenge = ['WWW-Authenticate: Digest realm="carrier", nonce="n1", qop="auth"']
  peer.answer(first, 401, { headers: challenge })
  const second = await peer.request('BYE')
  t.match(headerOf(second, 'Authorization'), /username="alice"/)
  t.equal(numberIn(second), numberIn(first) + 1)
  peer.answer(second, 200)
  await closing

  const others = await openEdgeScene(t)
  const known = await talking(others, [], trunkOf({ username: 'alice' }, 'secret'))
  const ending = others.command(known.callId, { type: 'close', reason: 'completed' })
  others.peer.answer(await others.peer.request('BYE'), 401, { headers: challenge })
  await ending
  await until(() => others.edge.health().calls === 0)
  t.equal(others.server.sizes().open, 0, 'a stranger who asks for it gets nothing, and the call is over')
})

test('a dialog with a header that no row can hold is not kept, since it would keep those of other calls from being written', (t) => {
  const names = {
    from: '<sip:a@127.0.0.1>;tag=1',
    to: '<sip:b@127.0.0.1>',
    Contact: '<sip:a@127.0.0.1:5070>',
    cseq: '1 INVITE',
  }
  const read = (headers: Readonly<Record<string, string>>) => {
    const first = {
      protocol: 'udp',
      source_address: '127.0.0.1',
      source_port: 5070,
      get: (name: string) => headers[name],
    }
    const sip = { callId: 'c', localTag: '2', remoteTag: '1' }
    const dialog = { id: 'd', res: first, type: 'uas', sip, remote: {}, on: () => null } as const
    return dialogFactsOf(dialog as never, first as never)
  }
  const facts = read(names)
  t.match(facts, { remote: names.from, remoteTarget: 'sip:a@127.0.0.1:5070' })
  t.equal(read({ ...names, from: '"A\0" <sip:a@127.0.0.1>;tag=1' }), null)
  t.equal(read({ ...names, 'Record-Route': '<sip:127.0.0.1;lr;x="\0">' }), null)
  const contact = '<sip:a\0@127.0.0.1:5071>'
  t.equal(facts && movedTo(facts, { get: (name) => (name === 'Contact' ? contact : undefined) }), null)
  t.end()
})

test('who called hears a BYE of its call, numbered beyond all that it has heard, by the proxies that stayed in the way', async (t) => {
  const scene = await openEdgeScene(t)
  const { telephony, peer } = scene
  const routes = [`<sip:127.0.0.1:${peer.port};lr;hop=1>`, '<sip:192.0.2.7;lr>']
  const { call, callId, answer, dialog } = await talking(scene, [
    `Record-Route: ${routes[0]}`,
    `Record-Route: ${routes[1]}`,
  ])
  const telling = telephony.tellPeer({ callId, dialog, heirs: 2, trunk: telephony.trunks[0]! })
  const bye = await peer.request('BYE')
  t.equal(headerOf(bye, 'Call-ID'), call.callId)
  t.equal(headerOf(bye, 'From'), headerOf(answer, 'To'))
  t.equal(headerOf(bye, 'To'), headerOf(answer, 'From'))
  t.equal(numberIn(bye), 20_000)
  t.same(
    headersOf(bye, 'Route').flatMap((value) => value.split(/,\s*/)),
    routes,
  )
  t.match(bye.uri, `sip:peer@127.0.0.1:${peer.port}`)
  t.notOk(
    bye.headers.some(({ name }) => /seen/i.test(name)),
    'what is for the server stays there',
  )
  peer.answer(bye, 200)
  await telling
  t.ok(scene.log.lines.some(({ message }) => message === 'the peer of a dead edge was told'))
})

test('who was called asks for the password, and gets it where the INVITE would have proved it', async (t) => {
  const scene = await openEdgeScene(t)
  const { telephony, peer } = scene
  const { callId, invite, trunk, dialog } = await placed(scene, 'secret')
  const telling = telephony.tellPeer({ callId, dialog, heirs: 1, trunk })
  const first = await peer.request('BYE')
  t.equal(headerOf(first, 'From'), headerOf(invite, 'From'))
  t.equal(numberIn(first), numberIn(invite) + 10_000)
  peer.answer(first, 407, { headers: ['Proxy-Authenticate: Digest realm="carrier", nonce="n1", qop="auth"'] })
  const second = await peer.request('BYE')
  t.match(headerOf(second, 'Proxy-Authorization'), /username="alice"/)
  t.equal(numberIn(second), numberIn(first) + 1)
  t.equal(headerOf(second, 'To'), headerOf(first, 'To'), 'within the dialog')
  peer.answer(second, 200)
  await telling
})

test('who rings for an edge that died is canceled by the Via of its INVITE, and a call that ended while it rang leaves nothing', async (t) => {
  const scene = await openEdgeScene(t)
  const { telephony, peer } = scene
  const trunk = trunkOf({ gateways: [{ host: '127.0.0.1', port: peer.port }] })
  telephony.trunks = [trunk]
  const { callId } = await scene.dial()
  const invite = await peer.request('INVITE')
  peer.answer(invite, 180)
  await scene.event(callId)
  const early = telephony.kept.get(callId)!
  // The dead one listened elsewhere.
  const via = early.early!.via.replace(/:\d+;/, ':5999;')
  const telling = telephony.tellPeer({ callId, dialog: { ...early, early: { via } }, heirs: 1, trunk })
  const cancel = await peer.request('CANCEL')
  t.equal(headerOf(cancel, 'Via'), via)
  t.not(via, headerOf(invite, 'Via'))
  t.equal(cancel.uri, invite.uri)
  for (const name of ['From', 'To', 'Call-ID']) t.equal(headerOf(cancel, name), headerOf(invite, name))
  t.equal(numberIn(cancel), numberIn(invite))
  t.notOk(
    cancel.headers.some(({ name }) => /seen|sent/i.test(name)),
    'what is for the server stays there',
  )
  peer.answer(cancel, 200)
  await passing(scene.clock, telling)
  t.ok(scene.log.lines.some(({ message }) => message === 'the INVITE of a dead edge was canceled'))
  peer.answer(invite, 486)
  await scene.event(callId)
  await until(() => telephony.kept.size === 0)
})

test('a peer that does not know the call any more has been told, and one that is silent is given up', async (t) => {
  const scene = await openEdgeScene(t)
  const { telephony, peer, clock, log } = scene
  const { callId, dialog } = await talking(scene)
  const telling = telephony.tellPeer({ callId, dialog, heirs: 1, trunk: null })
  peer.answer(await peer.request('BYE'), 481)
  await telling
  await passing(clock, telephony.tellPeer({ callId, dialog, heirs: 2, trunk: null }))
  t.ok(log.lines.some(({ message }) => message.includes('cannot be told')))
})

/** A call that talks at an edge which is as good as dead, and the dialog of it as another edge inherits it: its peer is where that one's is. */
async function orphan(t: Test, heir: EdgeScene) {
  const scene = await openEdgeScene(t)
  const { call, answer, callId: of, dialog: kept } = await talking(scene)
  const { port } = heir.peer
  const dialog = { ...kept, remoteTarget: `sip:peer@127.0.0.1:${port}`, seen: { ...kept.seen, port } }
  const [trunk] = scene.telephony.trunks
  return { scene, of, call, answer, inherited: { callId: newId<'call'>(), dialog, heirs: 1, trunk: trunk! } }
}

const originOf = (text: string) => {
  const [, sessionId, version, address] = /^o=- (\d+) (\d+) IN IP4 (\S+)/m.exec(text) ?? []
  return { sessionId, version: Number(version), address }
}
const bodyOf = ({ body }: { readonly body: Uint8Array }): string => Buffer.from(body).toString()

test('a telephone is asked over by an INVITE in the dialog of the dead edge, with the next description of its session; its talk goes on here', async (t) => {
  const heir = await openEdgeScene(t)
  const { telephony, peer } = heir
  const { scene, of, answer, inherited } = await orphan(t, heir)
  const asking = telephony.askOver(inherited)
  const invite = await peer.request('INVITE')
  t.equal(headerOf(invite, 'From'), headerOf(answer, 'To'), 'in the name of the dead one')
  t.equal(headerOf(invite, 'To'), headerOf(answer, 'From'))
  t.equal(numberIn(invite), 10_000 - 20)
  const [before, now] = [originOf(bodyOf(answer)), originOf(bodyOf(invite))]
  t.same(now, { ...before, version: before.version + 1 }, 'the same session (RFC 3264 §8)')
  t.match(bodyOf(invite), /^m=audio \d+ RTP\/AVP 0\r$/m, 'with the codec that was agreed on, and no other')
  t.notOk(
    invite.headers.some(({ name }) => /seen/i.test(name)),
    'what is for the server stays there',
  )
  peer.answer(invite, 200, { body: sdp.replace('7 1', '7 2') })
  await peer.request('ACK')
  const taken = await asking
  await taken?.isThere
  const { callId } = inherited
  t.match(await heir.event(callId), { type: 'connected', providerStatus: '200 Answer' })
  const kept = telephony.kept.get(callId)
  t.match(kept, { callId: inherited.dialog.callId, local: inherited.dialog.local, localSequence: 0 })
  t.same(kept?.talk?.origin, { sessionId: now.sessionId, version: now.version, address: now.address })
  const call = peer.callOf(invite)
  const again = await call.reinvite({ body: sdp.replace('7 1', '7 3') })
  t.equal(again.status, 200, 'the peer finds its dialog here')
  t.equal(originOf(bodyOf(again)).sessionId, now.sessionId)
  t.equal((await call.request('BYE')).status, 200)
  t.match(await heir.event(callId), { type: 'disconnected', cause: 'hung_up' })
  await heir.command(callId, { type: 'close', reason: 'completed' })
  await scene.command(of, { type: 'close', reason: 'completed' })
})

test('who refuses to come over, answers what cannot be used, or nothing at all, is given up at once, and told', async (t) => {
  const heir = await openEdgeScene(t)
  const { telephony, peer, clock, server } = heir
  const { scene, of, inherited } = await orphan(t, heir)
  const refused = telephony.askOver(inherited)
  peer.answer(await peer.request('INVITE'), 488)
  t.equal(await refused, null)
  const useless = telephony.askOver({ ...inherited, heirs: 2 })
  peer.answer(await peer.request('INVITE'), 200, { body: sdp.replace('AVP 0', 'AVP 18') })
  await peer.request('ACK')
  t.equal(await useless, null)
  peer.answer(await peer.request('BYE'), 200)
  const silent = telephony.askOver({ ...inherited, heirs: 3 })
  const unheard = await peer.request('INVITE')
  clock.advance(1_499)
  t.equal(await Promise.race([silent, scene.bus.flush().then(() => 'asking')]), 'asking')
  clock.advance(1)
  t.equal(await silent, null)
  // It was slow, and not gone: nobody talks to it any more.
  peer.answer(unheard, 200, { body: sdp })
  await peer.request('ACK')
  peer.answer(await peer.request('BYE'), 200)
  await until(() => server.sizes().dialogs === 0)
  t.equal(heir.edge.health().calls, 0)
  const telling = telephony.tellPeer({ ...inherited, heirs: 4 })
  const bye = await peer.request('BYE')
  t.equal(numberIn(bye), 40_000, 'behind all that it was asked')
  peer.answer(bye, 481)
  await telling
  await scene.command(of, { type: 'close', reason: 'completed' })
})

test('a telephone that is asking something itself is asked over once more: after 2.1 to 4 s where the Call-ID is ours, else within 2 s', async (t) => {
  const heir = await openEdgeScene(t)
  const { telephony, peer, clock } = heir
  const { scene, of, inherited } = await orphan(t, heir)
  const asking = telephony.askOver(inherited)
  const first = await peer.request('INVITE')
  peer.answer(first, 491)
  await peer.request('ACK')
  await until(() => heir.log.lines.some(({ fields }) => String(fields['details']).startsWith('491')))
  clock.advance(2_000)
  const second = await peer.request('INVITE')
  t.ok(numberIn(second) > numberIn(first))
  peer.answer(second, 200, { body: sdp.replace('7 1', '7 2') })
  await peer.request('ACK')
  const taken = await asking
  await taken?.isThere
  t.match(await heir.event(inherited.callId), { type: 'connected' })
  t.equal((await peer.callOf(second).request('BYE')).status, 200)
  await heir.command(inherited.callId, { type: 'close', reason: 'completed' })

  const ours = { ...inherited, callId: newId<'call'>(), dialog: { ...inherited.dialog, localSequence: 7 } }
  const patient = telephony.askOver(ours)
  peer.answer(await peer.request('INVITE'), 491)
  await peer.request('ACK')
  await until(() => heir.log.lines.filter(({ fields }) => String(fields['details']).startsWith('491')).length === 2)
  clock.advance(2_090)
  t.equal(await Promise.race([patient, scene.bus.flush().then(() => 'waiting')]), 'waiting')
  clock.advance(1_910)
  // Once, and no more.
  peer.answer(await peer.request('INVITE'), 491)
  await peer.request('ACK')
  t.equal(await patient, null)
  await scene.command(of, { type: 'close', reason: 'completed' })
})

test('what a peer asks that is being asked over has to wait, but for its goodbye: then nobody goes on with the call', async (t) => {
  const heir = await openEdgeScene(t)
  const { telephony, peer, clock } = heir
  const { scene, of, inherited } = await orphan(t, heir)
  const asking = telephony.askOver(inherited)
  const invite = await peer.request('INVITE')
  const call = peer.callOf(invite)
  t.equal((await call.reinvite({ body: sdp })).status, 491)
  t.equal((await call.request('BYE')).status, 200)
  peer.answer(invite, 200, { body: sdp })
  await peer.request('BYE')
  await passing(
    clock,
    asking.then(() => undefined),
  )
  t.equal(await asking, null)
  await scene.command(of, { type: 'close', reason: 'completed' })
})

test('a call that an older version wrote down, is being passed on, or went by routes of before RFC 3261, is asked nothing', async (t) => {
  const heir = await openEdgeScene(t)
  const { scene, of, call, inherited } = await orphan(t, heir)
  const { talk: _, ...old } = inherited.dialog
  t.equal(await heir.telephony.askOver({ ...inherited, dialog: old }), null)
  t.equal(await heir.telephony.askOver({ ...inherited, trunk: null }), null)
  const strict = { ...inherited.dialog, routeSet: ['<sip:127.0.0.1:5999>'] }
  t.equal(await heir.telephony.askOver({ ...inherited, dialog: strict }), null)
  t.same(DialogFacts.parse({ ...inherited.dialog, talk: { number: 7 } }), old, 'what cannot be read is not there')
  const passing = scene.command(of, { type: 'transfer', to: '+4930111' })
  scene.peer.answer(await scene.peer.request('REFER'), 202)
  t.match(await passing, { type: 'accepted' })
  t.equal(scene.telephony.kept.get(of)?.talk, undefined)
  const notify = { headers: ['Event: refer', 'Subscription-State: terminated', 'Content-Type: message/sipfrag'] }
  t.equal((await call.request('NOTIFY', { ...notify, body: 'SIP/2.0 603 Decline' })).status, 200)
  await until(() => scene.telephony.kept.get(of)?.talk !== undefined)
  await scene.command(of, { type: 'close', reason: 'completed' })
})

test('an edge that stops leaves its talks to other edges, where there are some, without a word to the telephones; what rings stays', async (t) => {
  const scene = await openEdgeScene(t)
  const { telephony, peer, edge } = scene
  const { call, callId } = await talking(scene)
  telephony.trunks = [trunkOf({ gateways: [{ host: '127.0.0.1', port: peer.port }] })]
  const ringing = await scene.dial()
  const invite = await peer.request('INVITE')
  peer.answer(invite, 180)
  await scene.event(ringing.callId)
  await edge.handOn()
  t.equal(edge.health().calls, 2, 'there is nobody else')
  telephony.haveHeirs = true
  await edge.handOn()
  t.same(telephony.left, [callId])
  t.equal(edge.health().calls, 1)
  t.ok(telephony.kept.get(callId)?.talk, 'what others need is there')
  t.equal((await call.request('OPTIONS')).status, 481, 'the dialog is not here any more')
  peer.answer(invite, 486)
  await scene.event(ringing.callId)
})

/** Answers one BYE over a connection that the heir opens. */
async function byStream(t: Test, server: net.Server): Promise<{ port: number; bye: Promise<string> }> {
  const { promise: bye, resolve } = Promise.withResolvers<string>()
  server.on(server instanceof tls.Server ? 'secureConnection' : 'connection', (socket: net.Socket) => {
    socket.on('error', () => undefined)
    socket.on('data', (bytes) => {
      const text = bytes.toString()
      const copied = text.split('\r\n').filter((line) => /^(Via|From|To|Call-ID|CSeq):/i.test(line))
      socket.write(['SIP/2.0 200 OK', ...copied, 'Content-Length: 0', '', ''].join('\r\n'))
      resolve(text)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => void server.close())
  return { port: (server.address() as net.AddressInfo).port, bye }
}

const dialogBy = (protocol: 'tcp' | 'tls', contactPort: number, seenPort: number): DialogFacts => ({
  name: 'x;from-tag=1',
  callId: 'x',
  local: '<sip:+4930123456@service.test>;tag=2',
  remote: '<sip:+4915112345678@carrier.test>;tag=1',
  routeSet: [],
  remoteTarget: `sip:peer@127.0.0.1:${contactPort};transport=${protocol}`,
  localSequence: 0,
  seen: { protocol, address: '127.0.0.1', port: seenPort, isTranslated: false },
})

test('the connection of a dead edge is gone: the heir opens one of its own, by TCP and by TLS', async (t) => {
  const listen = (['udp', 'tcp'] as const).map((protocol) => ({ protocol, address: '127.0.0.1', port: 0 }))
  const scene = await openEdgeScene(t, {
    listen: [...listen, { protocol: 'tls', address: '127.0.0.1', port: 0, tls: fakeTls }],
    server: { tlsClient: { ca: fakeTls.cert, verify: true } },
  })
  for (const [protocol, server] of [
    ['tcp', net.createServer()],
    ['tls', tls.createServer(fakeTls)],
  ] as const) {
    const peer = await byStream(t, server)
    const dialog = dialogBy(protocol, peer.port, 9)
    await scene.telephony.tellPeer({ callId: newId<'call'>() as CallId, dialog, heirs: 1, trunk: null })
    t.match(await peer.bye, /^BYE sip:peer@127\.0\.0\.1:\d+;transport=t\w+ SIP\/2\.0\r\n/)
    t.match(await peer.bye, /\r\nCSeq: 10000 BYE\r\n/)
  }
})

test('a telephone that only connects by itself cannot be told, and that is said', async (t) => {
  const scene = await openEdgeScene(t, { listen: [{ protocol: 'tcp', address: '127.0.0.1', port: 0 }] })
  const nobody = net.createServer().listen(0, '127.0.0.1')
  await once(nobody, 'listening')
  const { port } = nobody.address() as net.AddressInfo
  nobody.close()
  await once(nobody, 'close')
  await scene.telephony.tellPeer({
    callId: newId<'call'>() as CallId,
    dialog: dialogBy('tcp', port, port),
    heirs: 1,
    trunk: null,
  })
  const line = scene.log.lines.find(({ message }) => message.includes('cannot be told'))
  t.match(line, { fields: { protocol: 'tcp' } })
})

/** Answers whatever comes over a connection that the heir opens, an INVITE with this description. */
async function overByStream(t: Test, server: net.Server, description: string) {
  const heard: string[] = []
  server.on(server instanceof tls.Server ? 'secureConnection' : 'connection', (socket: net.Socket) => {
    socket.on('error', () => undefined)
    t.teardown(() => void socket.destroy())
    const take = (text: string) => {
      heard.push(text)
      if (text.startsWith('ACK')) return
      const copied = text.split('\r\n').filter((line) => /^(Via|From|To|Call-ID|CSeq):/i.test(line))
      const body = text.startsWith('INVITE') ? description : ''
      const { port } = server.address() as net.AddressInfo
      const way = server instanceof tls.Server ? 'tls' : 'tcp'
      const own = [`Contact: <sip:peer@127.0.0.1:${port};transport=${way}>`, 'Content-Type: application/sdp']
      socket.write(['SIP/2.0 200 OK', ...copied, ...own, `Content-Length: ${body.length}`, '', body].join('\r\n'))
    }
    socket.on('data', (bytes) =>
      bytes
        .toString()
        .split(/(?=^(?:INVITE|ACK|BYE) sip:)/m)
        .forEach(take),
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => void server.close())
  return { port: (server.address() as net.AddressInfo).port, heard }
}

const audio = {
  codec: 'pcma',
  payloadType: 8,
  clockRateHz: 8000,
  telephoneEventPayloadType: 96,
  comfortNoisePayloadType: null,
  packetMs: 20,
  silence: 'continuous',
} as const

test('a telephone comes over by TCP, and by TLS with new keys where its sound was encrypted, with the payload types that were agreed on', async (t) => {
  const listen = (['udp', 'tcp'] as const).map((protocol) => ({ protocol, address: '127.0.0.1', port: 0 }))
  const scene = await openEdgeScene(t, {
    listen: [...listen, { protocol: 'tls', address: '127.0.0.1', port: 0, tls: fakeTls }],
    server: { tlsClient: { ca: fakeTls.cert, verify: true } },
  })
  const key = Buffer.alloc(30, 7).toString('base64')
  const described = (profile: string) =>
    `${sdp.slice(0, sdp.indexOf('m='))}m=audio 40000 ${profile} 8 96\r\na=rtpmap:96 telephone-event/8000\r\n`
  for (const [protocol, server, profile, crypto] of [
    ['tcp', net.createServer(), 'RTP/AVP', ''],
    ['tls', tls.createServer(fakeTls), 'RTP/SAVP', `a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:${key}\r\n`],
  ] as const) {
    const peer = await overByStream(t, server, `${described(profile)}${crypto}`)
    const isEncrypted = protocol === 'tls'
    const origin = { sessionId: '77', version: 3, address: '127.0.0.1' }
    const talk = { number: '+4930123456', origin, audio, isEncrypted }
    const callId = newId<'call'>()
    const inherited = { callId, dialog: { ...dialogBy(protocol, peer.port, 9), talk }, heirs: 1, trunk: trunkOf({}) }
    const taken = await scene.telephony.askOver(inherited)
    t.ok(taken, protocol)
    const [invite = ''] = peer.heard
    t.match(invite, /^INVITE sip:peer@127\.0\.0\.1:\d+;transport=t\w+ SIP\/2\.0\r\n/)
    t.match(invite, /\r\no=- 77 4 IN IP4 127\.0\.0\.1\r\n/)
    t.match(invite, new RegExp(`\\r\\nm=audio \\d+ ${profile} 8 96\\r\\n`))
    t.equal(invite.includes('a=crypto:'), isEncrypted)
    t.match(scene.telephony.kept.get(callId)?.talk, { origin: { ...origin, version: 4 }, audio, isEncrypted })
    taken?.drop()
    await until(() => peer.heard.some((text) => text.startsWith('BYE')))
  }
  await until(() => scene.edge.health().calls === 0)
})
