/** The embedded SIP server, driven by unmodified drachtio-srf on one side and by peers on the other of which the test writes every message. */
import { once } from 'node:events'
import net from 'node:net'
import { test, type Test } from 'tap'
import { systemClock } from '../../app/clock.ts'
import { tagOf } from '../../sip/server/message/address.ts'
import { headerOf, headersOf } from '../../sip/server/message/header-fields.ts'
import type { SipRequest, SipResponse } from '../../sip/server/message/message.ts'
import { contactOf } from '../../sip/server/dialog/draft-headers.ts'
import { createSipServer, type SipServerOptions } from '../../sip/server/sip-server.ts'
import type { Clock } from '../../model/clock.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRandom } from '../fake/random.ts'
import { openSipApp, socketOf, type Loose, type SipApp } from '../fake/sip-app.ts'
import { openSipWire, sdp, type SipWire } from '../fake/sip-wire.ts'

const every = (protocol: 'udp' | 'tcp') => ({ protocol, address: '127.0.0.1', port: 0 })
/** Timers of RFC 3261 twenty times as fast. */
const fast = { t1: 25, t2: 200, t4: 250 }

type Scene = {
  readonly app: SipApp
  readonly wire: SipWire
  readonly port: number
  readonly server: Awaited<ReturnType<typeof createSipServer>>
  readonly log: ReturnType<typeof createQuietLog>
}

async function scene(
  t: Test,
  {
    protocol = 'udp',
    clock = systemClock,
    ...options
  }: Partial<SipServerOptions> & { protocol?: 'udp' | 'tcp'; clock?: Clock } = {},
): Promise<Scene> {
  const log = createQuietLog()
  const server = await createSipServer({ listen: [every('udp'), every('tcp')], limits: fast, ...options, clock, log })
  const port = server.listening.find((one) => one.protocol === protocol)?.local.port ?? 0
  const wire = await openSipWire(port, protocol)
  const app = await openSipApp(server.control)
  t.teardown(async () => {
    await app.close()
    await server.close()
    await wire.close()
    const errors = log.lines.filter(({ level }) => level === 'error')
    if (errors.length > 0) throw new Error(`the server says: ${errors.map(({ message }) => message).join(', ')}`)
  })
  return { app, wire, port, server, log }
}

let calls = 0
const freshCall = () => ({ callId: `call-${calls++}`, fromTag: `from-${calls}` })

/** The app calls; answered before anybody has said anything. */
async function call(app: SipApp, wire: Pick<SipWire, 'uri'>, options: Loose = {}) {
  const { promise, resolve } = Promise.withResolvers<Loose>()
  const told = { cbRequest: (_: unknown, req: Loose) => resolve(req), ...options.told }
  const calling = app.srf.createUAC(wire.uri, { localSdp: sdp(50_000), ...options }, told)
  calling.catch(() => undefined)
  return { calling, sent: await promise }
}

/** A call to the app that is answered. */
async function incoming({ app, wire }: Scene, headers: readonly string[] = []) {
  const ids = freshCall()
  wire.ask('INVITE', { ...ids, cseq: 1, body: sdp(), headers })
  const { req, res } = await app.next('invite')
  const dialog = await app.srf.createUAS(req, res, { localSdp: sdp(50_000) })
  const answer = await wire.response('1 INVITE', 200)
  const call = { ...ids, toTag: tagOf(answer, 'To') ?? '' }
  wire.ask('ACK', { ...call, cseq: 1 })
  await new Promise((resolve) => dialog.once('ack', resolve))
  return { dialog, call, answer, req }
}

/** A call of the app that the peer answers. */
async function outgoing({ app, wire }: Scene, headers: readonly string[] = []) {
  const calling = app.srf.createUAC(wire.uri, { localSdp: sdp(50_000) })
  const invite = await wire.request('INVITE')
  wire.answer(invite, 200, 'peer', headers, sdp())
  const dialog = await calling
  const ack = await wire.request('ACK')
  const call = { callId: headerOf(invite, 'Call-ID') ?? '', fromTag: 'peer', toTag: tagOf(invite, 'From') ?? '' }
  return { dialog, invite, ack, call }
}

/** The status that ended a call before it began; 0: it stands. */
const refusalOf = (calling: Promise<Loose>): Promise<number> =>
  calling.then(
    () => 0,
    (error: { status: number }) => error.status,
  )

const event = (emitter: Loose, name: string): Promise<Loose[]> =>
  new Promise((resolve) => emitter.once(name, (...args: Loose[]) => resolve(args)))

const numberOf = (message: SipRequest | SipResponse): number => Number(headerOf(message, 'CSeq')?.split(' ')[0])

test('a call whose caller is gone when it is answered over TCP ends then, and not when no ACK has come', async (t) => {
  const { app, wire, server } = await scene(t, { limits: { ...fast, t1: 500 } })
  const port = server.listening.find(({ protocol }) => protocol === 'tcp')?.local.port ?? 0
  const socket = net.connect(port, '127.0.0.1')
  await once(socket, 'connect')
  const gone = socket.localPort
  const lines = [
    `INVITE sip:service@127.0.0.1:${port};transport=tcp SIP/2.0`,
    `Via: SIP/2.0/TCP 127.0.0.1:${gone};branch=z9hG4bK-gone`,
    'From: <sip:caller@127.0.0.1>;tag=gone',
    'To: <sip:service@127.0.0.1>',
    'Call-ID: gone',
    'CSeq: 1 INVITE',
    `Contact: <${wire.uri}>`,
    'Max-Forwards: 70',
    'Content-Type: application/sdp',
    `Content-Length: ${sdp().length}`,
  ]
  socket.write(`${lines.join('\r\n')}\r\n\r\n${sdp()}`)
  const { req, res } = await app.next('invite')
  socket.destroy()
  await once(socket, 'close')
  const dialog = await app.srf.createUAS(req, res, { localSdp: sdp(50_000) })
  const [bye] = await event(dialog, 'destroy')
  t.match(bye.get('reason'), /the answer could not be sent/)
  const sent = await wire.request('BYE')
  wire.answer(sent, 200)
})

for (const protocol of ['udp', 'tcp'] as const)
  test(`calls over ${protocol}`, async (t) => {
    const stage = await scene(t, { protocol })
    const { app, wire, server } = stage

    await t.test('a call comes in, is answered, and the caller hangs up', async (t) => {
      const { dialog, call, answer } = await incoming(stage)
      t.equal(dialog.id, `${call.callId};from-tag=${call.fromTag}`)
      t.match(headerOf(answer, 'Contact'), protocol === 'udp' ? /^<sip:127.0.0.1:\d+>$/ : /;transport=tcp>$/)
      t.match(headerOf(answer, 'Allow'), /UPDATE/)
      const gone = event(dialog, 'destroy')
      wire.ask('BYE', { ...call, cseq: 2 })
      t.equal((await wire.response('2 BYE')).status, 200)
      t.equal((await gone)[1], 'normal release')
    })

    await t.test('the app hangs up a call that came in', async (t) => {
      const { dialog, call } = await incoming(stage)
      const ending = dialog.destroy()
      const bye = await wire.request('BYE')
      t.equal(tagOf(bye, 'To'), call.fromTag)
      t.equal(tagOf(bye, 'From'), call.toTag)
      wire.answer(bye, 200)
      await ending
    })

    await t.test('the app calls, and either side hangs up', async (t) => {
      const first = await outgoing(stage)
      t.equal(numberOf(first.ack), numberOf(first.invite))
      const ending = first.dialog.destroy()
      const bye = await wire.request('BYE')
      t.equal(numberOf(bye), numberOf(first.invite) + 1)
      wire.answer(bye, 200)
      await ending
      const second = await outgoing(stage)
      const gone = event(second.dialog, 'destroy')
      wire.ask('BYE', { ...second.call, cseq: 1 })
      t.equal((await wire.response('1 BYE')).status, 200)
      await gone
    })

    await t.test('no dialog is left', (t) => {
      t.equal(server.sizes().dialogs, 0)
      t.equal(server.sizes().open, 0)
      t.end()
    })

    await t.test('486 in both directions', async (t) => {
      wire.ask('INVITE', { ...freshCall(), cseq: 1, body: sdp() })
      const { res } = await app.next('invite')
      res.send(486)
      t.equal((await wire.response('1 INVITE')).status, 486)
      const calling = app.srf.createUAC(wire.uri, { localSdp: sdp() })
      wire.answer(await wire.request('INVITE'), 486, 'busy')
      t.equal(await refusalOf(calling), 486)
      t.equal(tagOf(await wire.request('ACK'), 'To'), 'busy')
    })
  })

test('an INVITE whose answer cannot be sent is told to the app like a CANCEL', async (t) => {
  const { app, wire } = await scene(t, { protocol: 'tcp' })
  wire.ask('INVITE', { ...freshCall(), cseq: 1, body: sdp() })
  const { req, res } = await app.next('invite')
  const canceled = new Promise<Loose>((resolve) => req.once('cancel', resolve))
  await wire.close()
  res.send(180)
  t.equal((await canceled).method, 'CANCEL')
})

test('CANCEL', async (t) => {
  const stage = await scene(t)
  const { app, wire } = stage

  await t.test('of the caller: 200 and 487, and the app is told', async (t) => {
    const ids = freshCall()
    const branch = wire.ask('INVITE', { ...ids, cseq: 1, body: sdp() })
    const { req, res } = await app.next('invite')
    const canceled = event(req, 'cancel')
    res.send(180)
    await wire.response('1 INVITE', 180)
    wire.ask('CANCEL', { ...ids, cseq: 1, branch, headers: ['Reason: SIP;cause=200;text="elsewhere"'] })
    t.equal((await wire.response('1 CANCEL')).status, 200)
    t.equal((await wire.response('1 INVITE')).status, 487)
    t.match((await canceled)[0].get('Reason'), /elsewhere/)
  })

  await t.test('of the app: the peer gets it after its first word, the app gets the 487', async (t) => {
    const { calling, sent } = await call(app, wire)
    const invite = await wire.request('INVITE')
    sent.cancel()
    t.equal(
      wire.waiting((message) => message.kind === 'request' && message.method === 'CANCEL'),
      0,
    )
    wire.answer(invite, 180, 'ringing')
    const cancel = await wire.request('CANCEL')
    wire.answer(cancel, 200, 'ringing')
    wire.answer(invite, 487, 'ringing')
    t.equal(await refusalOf(calling), 487)
  })

  await t.test('that the 200 overtakes: ACK and BYE, and the app gets a 487', async (t) => {
    const { calling, sent } = await call(app, wire)
    const invite = await wire.request('INVITE')
    wire.answer(invite, 180, 'late')
    sent.cancel()
    const cancel = await wire.request('CANCEL')
    wire.answer(invite, 200, 'late', [], sdp())
    wire.answer(cancel, 481, 'late')
    await wire.request('ACK')
    wire.answer(await wire.request('BYE'), 200)
    t.equal(await refusalOf(calling), 487)
  })
})

test('requests outside of calls', async (t) => {
  const stage = await scene(t)
  const { app, wire } = stage

  await t.test('OPTIONS to the app and from the app', async (t) => {
    wire.ask('OPTIONS', { ...freshCall(), cseq: 7 })
    const { res } = await app.next('options')
    res.send(200)
    const answer = await wire.response('7 OPTIONS')
    t.equal(answer.status, 200)
    t.match(headerOf(answer, 'Allow'), /INVITE/)
    const req = await app.srf.request(wire.uri, { method: 'OPTIONS' })
    const heard = event(req, 'response')
    wire.answer(await wire.request('OPTIONS'), 200, 'x')
    t.equal((await heard)[0].status, 200)
  })

  await t.test('REGISTER at the app, challenged by it', async (t) => {
    const ids = freshCall()
    wire.ask('REGISTER', { ...ids, cseq: 1 })
    const first = await app.next('register')
    first.res.send(401, { headers: { 'WWW-Authenticate': 'Digest realm="r", nonce="n"' } })
    const challenge = await wire.response('1 REGISTER')
    t.equal(headerOf(challenge, 'WWW-Authenticate'), 'Digest realm="r", nonce="n"')
    t.equal(headerOf(challenge, 'Contact'), null)
    wire.ask('REGISTER', { ...ids, cseq: 2, headers: ['Authorization: Digest username="u"'] })
    const second = await app.next('register')
    t.equal(second.req.get('Authorization'), 'Digest username="u"')
    second.res.send(200, { headers: { Contact: `<${wire.uri}>;expires=60` } })
    t.equal(headerOf(await wire.response('2 REGISTER'), 'Contact'), `<${wire.uri}>;expires=60`)
  })

  await t.test('REGISTER by the app, with digest, CSeq going on and Call-ID and tag kept', async (t) => {
    const req = await app.srf.request(wire.uri, {
      method: 'REGISTER',
      headers: { From: '<sip:line@127.0.0.1>', Contact: '<sip:line@localhost>', Expires: '60' },
      auth: { username: 'line', password: 'secret' },
    })
    const heard = event(req, 'response')
    const first = await wire.request('REGISTER')
    t.match(headerOf(first, 'Contact'), /^<sip:line@127\.0\.0\.1:\d+>$/)
    wire.answer(first, 401, 'x', ['WWW-Authenticate: Digest realm="r", nonce="n", qop="auth"'])
    const second = await wire.request('REGISTER')
    t.match(headerOf(second, 'Authorization'), /username="line".*qop=auth/)
    t.equal(numberOf(second), numberOf(first) + 1)
    t.equal(headerOf(second, 'Call-ID'), headerOf(first, 'Call-ID'))
    t.equal(headerOf(second, 'From'), headerOf(first, 'From'))
    wire.answer(second, 200, 'x')
    t.equal((await heard)[0].status, 200)
  })

  await t.test('INVITE by the app, challenged with 407; the ACK repeats the credentials', async (t) => {
    const { calling } = await call(app, wire, { auth: { username: 'line', password: 'secret' } })
    const first = await wire.request('INVITE')
    wire.answer(first, 407, 'x', ['Proxy-Authenticate: Digest realm="r", nonce="n"'])
    await wire.request('ACK')
    const second = await wire.request('INVITE')
    const credentials = headerOf(second, 'Proxy-Authorization')
    t.match(credentials, /username="line"/)
    wire.answer(second, 200, 'y', [], sdp())
    const dialog = await calling
    t.equal(headerOf(await wire.request('ACK'), 'Proxy-Authorization'), credentials)
    const ending = dialog.destroy()
    const bye = await wire.request('BYE')
    wire.answer(bye, 407, 'y', ['Proxy-Authenticate: Digest realm="r", nonce="o"'])
    await wire.request('BYE').then((again) => {
      t.match(headerOf(again, 'Proxy-Authorization'), /nonce="o"/)
      wire.answer(again, 200)
    })
    await ending
  })

  await t.test('what nobody wants is refused: 405 outside, 481 within a dialog that nobody knows', async (t) => {
    wire.ask('SUBSCRIBE', { ...freshCall(), cseq: 1, headers: ['Event: x'] })
    t.equal((await wire.response('1 SUBSCRIBE')).status, 405)
    for (const method of ['INVITE', 'BYE', 'INFO', 'NOTIFY']) {
      wire.ask(method, { ...freshCall(), cseq: 2, toTag: 'nobody' })
      t.equal((await wire.response(`2 ${method}`)).status, 481, method)
    }
    wire.ask('BYE', { ...freshCall(), cseq: 3 })
    t.equal((await wire.response('3 BYE')).status, 481)
    wire.ask('INVITE', { ...freshCall(), cseq: 4, headers: ['Require: replaces'] })
    const refused = await wire.response('4 INVITE')
    t.equal(refused.status, 420)
    t.equal(headerOf(refused, 'Unsupported'), 'replaces')
  })
})

test('within a call', async (t) => {
  const stage = await scene(t)
  const { wire } = stage

  await t.test('a re-INVITE of the peer: asked of the app, target moved, answered, acknowledged', async (t) => {
    const { dialog, call } = await incoming(stage)
    const asked = event(dialog, 'modify')
    wire.ask('INVITE', { ...call, cseq: 2, body: sdp(40_002, 2), headers: [`Contact: <${wire.uri};moved=yes>`] })
    const [req, res] = await asked
    t.match(req.body, /40002/)
    res.send(200, { body: sdp(50_000, 2) })
    const answer = await wire.response('2 INVITE', 200)
    t.match(Buffer.from(answer.body).toString(), /m=audio 50000/)
    const acked = event(dialog, 'ack')
    wire.ask('ACK', { ...call, cseq: 2 })
    await acked
    const ending = dialog.destroy()
    const bye = await wire.request('BYE')
    t.match(bye.uri, /;moved=yes$/)
    wire.answer(bye, 200)
    await ending
  })

  await t.test('a re-INVITE of the app, and one that is refused', async (t) => {
    const { dialog, call, invite } = await outgoing(stage)
    const changing = dialog.modify(sdp(50_004, 2))
    const again = await wire.request('INVITE')
    t.equal(tagOf(again, 'To'), 'peer')
    t.equal(numberOf(again), numberOf(invite) + 1)
    t.match(headerOf(again, 'Contact'), /^<sip:127/)
    wire.answer(again, 200, undefined, [], sdp(40_004))
    t.match(await changing, /40004/)
    t.equal(numberOf(await wire.request('ACK')), numberOf(again))
    const refused = dialog.modify(sdp(50_006, 3))
    wire.answer(await wire.request('INVITE'), 488)
    t.equal(await refusalOf(refused), 488)
    await wire.request('ACK')
    wire.ask('BYE', { ...call, cseq: 1 })
    await wire.response('1 BYE')
  })

  await t.test('glare: 491 to the peer while ours is under way, 491 to the app while theirs is', async (t) => {
    const { dialog, call } = await outgoing(stage)
    const changing = dialog.modify(sdp(50_004, 2))
    const ours = await wire.request('INVITE')
    wire.ask('INVITE', { ...call, cseq: 1, body: sdp() })
    t.equal((await wire.response('1 INVITE')).status, 491)
    wire.ask('ACK', { ...call, cseq: 1 })
    wire.answer(ours, 491)
    t.equal(await refusalOf(changing), 491)
    await wire.request('ACK')

    const asked = event(dialog, 'modify')
    wire.ask('INVITE', { ...call, cseq: 2, body: sdp() })
    const [, res] = await asked
    const response = await dialog.request({ method: 'INVITE', body: sdp() })
    t.equal(response.status, 491)
    t.equal(
      wire.waiting((message) => message.kind === 'request' && message.method === 'INVITE'),
      0,
    )
    wire.ask('INVITE', { ...call, cseq: 3, body: sdp() })
    const pending = await wire.response('3 INVITE')
    t.equal(pending.status, 500)
    t.match(headerOf(pending, 'Retry-After'), /^(?:\d|10)$/)
    wire.ask('ACK', { ...call, cseq: 3 })
    res.send(200, { body: sdp() })
    await wire.response('2 INVITE', 200)
    wire.ask('ACK', { ...call, cseq: 2 })
    wire.ask('BYE', { ...call, cseq: 4 })
    await wire.response('4 BYE')
  })

  await t.test('INFO, UPDATE and REFER in both directions', async (t) => {
    const { dialog, call } = await incoming(stage)
    let cseq = 2
    for (const method of ['INFO', 'UPDATE', 'REFER', 'NOTIFY', 'OPTIONS']) {
      const asked = event(dialog, method.toLowerCase())
      wire.ask(method, { ...call, cseq, headers: ['Refer-To: <sip:x@127.0.0.1>', 'Event: refer'] })
      const [, res] = await asked
      res.send(method === 'REFER' ? 202 : 200)
      t.equal((await wire.response(`${cseq} ${method}`)).status, method === 'REFER' ? 202 : 200, `${method} in`)
      cseq += 1
      const answered = dialog.request({ method, headers: { 'X-Test': method } })
      const sent = await wire.request(method)
      t.equal(headersOf(sent, 'X-Test')[0], method)
      wire.answer(sent, 200)
      t.equal((await answered).status, 200, `${method} out`)
    }
    wire.ask('BYE', { ...call, cseq })
    await wire.response(`${cseq} BYE`)
  })

  await t.test('a lower CSeq is answered with 500', async (t) => {
    const { dialog, call } = await incoming(stage)
    wire.ask('INFO', { ...call, cseq: 1 })
    t.equal((await wire.response('1 INFO')).status, 500)
    const ending = dialog.destroy()
    wire.answer(await wire.request('BYE'), 200)
    await ending
  })

  await t.test('the route set comes from Record-Route and holds for the whole call', async (t) => {
    const routes = [`Record-Route: <sip:127.0.0.1:${wire.port};lr;n=1>`, 'Record-Route: <sip:10.9.9.9;lr>']
    const came = await incoming(stage, routes)
    t.same(headersOf(came.answer, 'Record-Route').length, 2)
    const ending = came.dialog.destroy()
    const bye = await wire.request('BYE')
    t.equal(bye.uri, wire.uri)
    t.match(headersOf(bye, 'Route'), [/n=1/, /10\.9\.9\.9/])
    wire.answer(bye, 200)
    await ending
    const went = await outgoing(stage, [...routes].reverse())
    t.match(headersOf(went.ack, 'Route'), [/n=1/, /10\.9\.9\.9/])
    const over = went.dialog.destroy()
    wire.answer(await wire.request('BYE'), 200)
    await over
    const strict = await outgoing(stage, [`Record-Route: <sip:127.0.0.1:${wire.port};n=3>`])
    t.match(strict.ack.uri, /n=3$/)
    t.match(headersOf(strict.ack, 'Route'), [`<${wire.uri}>`])
    const gone = strict.dialog.destroy()
    wire.answer(await wire.request('BYE'), 200)
    await gone
  })
})

test('what is lost', async (t) => {
  const stage = await scene(t)
  const { app, wire } = stage

  await t.test('without ACK the 200 is repeated, then BYE, and the app hears of it', async (t) => {
    const ids = freshCall()
    wire.ask('INVITE', { ...ids, cseq: 1, body: sdp() })
    const { req, res } = await app.next('invite')
    const dialog = await app.srf.createUAS(req, res, { localSdp: sdp() })
    const gone = event(dialog, 'destroy')
    for (let again = 0; again < 5; again++) await wire.response('1 INVITE', 200)
    const bye = await wire.request('BYE')
    t.match(headerOf(bye, 'Reason'), /ACK timeout/)
    wire.answer(bye, 200)
    t.equal((await gone)[1], 'ACK timeout')
  })

  await t.test('a BYE of the app waits for the ACK of its 200', async (t) => {
    const ids = freshCall()
    wire.ask('INVITE', { ...ids, cseq: 1, body: sdp() })
    const { req, res } = await app.next('invite')
    const dialog = await app.srf.createUAS(req, res, { localSdp: sdp() })
    const answer = await wire.response('1 INVITE', 200)
    const ending = dialog.destroy()
    await wire.response('1 INVITE', 200)
    t.equal(
      wire.waiting((message) => message.kind === 'request'),
      0,
    )
    wire.ask('ACK', { ...ids, toTag: tagOf(answer, 'To') ?? '', cseq: 1 })
    wire.answer(await wire.request('BYE'), 200)
    await ending
  })

  await t.test('a 200 that comes again is acknowledged again', async (t) => {
    const { dialog, invite } = await outgoing(stage)
    wire.answer(invite, 200, 'peer', [], sdp())
    t.equal(numberOf(await wire.request('ACK')), numberOf(invite))
    const ending = dialog.destroy()
    wire.answer(await wire.request('BYE'), 200)
    await ending
  })

  await t.test('of a forked call the first 200 is taken, the others get ACK and BYE', async (t) => {
    const { dialog, invite } = await outgoing(stage)
    wire.answer(invite, 200, 'other', [], sdp())
    t.equal(tagOf(await wire.request('ACK'), 'To'), 'other')
    const bye = await wire.request('BYE')
    t.equal(tagOf(bye, 'To'), 'other')
    wire.answer(bye, 200)
    const ending = dialog.destroy()
    const own = await wire.request('BYE')
    t.equal(tagOf(own, 'To'), 'peer')
    wire.answer(own, 200)
    await ending
  })

  await t.test('a 200 without Contact is hung up, and the app gets a 502', async (t) => {
    const { calling } = await call(app, wire)
    const invite = await wire.request('INVITE')
    wire.answer(invite, 200, 'x', ['Contact: '], sdp())
    await wire.request('ACK')
    wire.answer(await wire.request('BYE'), 200)
    t.equal(await refusalOf(calling), 502)
  })

  await t.test('a peer that says nothing at all: 408 to the app', async (t) => {
    const { calling } = await call(app, wire)
    await wire.request('INVITE')
    t.equal(await refusalOf(calling), 408)
  })

  await t.test('15 of 100 packets in each direction: all calls stand and end', async (t) => {
    const random = createRandom(15)
    let lost = 0
    const repeats = new Map<string, NodeJS.Timeout>()
    wire.serve((request) => {
      const callId = headerOf(request, 'Call-ID') ?? ''
      const answer = (): void => wire.answer(request, 200, 'lossy', [], request.method === 'INVITE' ? sdp() : '')
      if (request.method === 'INVITE' && !repeats.has(callId)) repeats.set(callId, setInterval(answer, 40))
      if (request.method === 'ACK') clearInterval(repeats.get(callId))
      else answer()
    })
    const talk = async (): Promise<void> => {
      const dialog = await app.srf.createUAC(wire.uri, { localSdp: sdp() })
      await dialog.destroy()
    }
    // A peer that has just said nothing is given less time.
    await talk()
    wire.lose(() => random.next() < 0.15 && (lost += 1) > 0)
    await Promise.all(Array.from({ length: 40 }, talk))
    repeats.forEach((timer) => clearInterval(timer))
    wire.lose(() => false)
    wire.serve(null)
    t.ok(lost > 20, `${lost} packets were lost`)
  })
})

test('reliable provisional responses (RFC 3262)', async (t) => {
  const stage = await scene(t)
  const { app, wire } = stage

  await t.test('the app rings reliably: repeated until PRACK, and the 200 waits for it', async (t) => {
    const ids = freshCall()
    wire.ask('INVITE', { ...ids, cseq: 1, body: sdp(), headers: ['Supported: 100rel'] })
    const { req, res } = await app.next('invite')
    const acknowledged = new Promise<Loose>((resolve) => {
      res.send(183, { body: sdp(), headers: { Require: '100rel' } }, () => undefined, resolve)
    })
    const first = await wire.response('1 INVITE', 183)
    const again = await wire.response('1 INVITE', 183)
    t.equal(headerOf(first, 'RSeq'), headerOf(again, 'RSeq'))
    const answering = app.srf.createUAS(req, res, { localSdp: sdp() })
    const early = { ...ids, toTag: tagOf(first, 'To') ?? '' }
    wire.ask('PRACK', { ...early, cseq: 2, headers: [`RAck: 4711 1 INVITE`] })
    t.equal((await wire.response('2 PRACK')).status, 481)
    t.equal(
      wire.waiting((message) => message.kind === 'response' && message.status === 200),
      0,
    )
    wire.ask('PRACK', { ...early, cseq: 3, headers: [`RAck: ${headerOf(first, 'RSeq')} 1 INVITE`] })
    t.equal((await wire.response('3 PRACK')).status, 200)
    t.equal((await acknowledged).method, 'PRACK')
    await wire.response('1 INVITE', 200)
    wire.ask('ACK', { ...early, cseq: 1 })
    const dialog = await answering
    const ending = dialog.destroy()
    wire.answer(await wire.request('BYE'), 200)
    await ending
  })

  await t.test('a peer that requires it gets every ringing reliably; without PRACK the call is refused', async (t) => {
    wire.ask('INVITE', { ...freshCall(), cseq: 1, body: sdp(), headers: ['Require: 100rel'] })
    const { req, res } = await app.next('invite')
    const canceled = event(req, 'cancel')
    res.send(180)
    t.equal(headerOf(await wire.response('1 INVITE', 180), 'Require'), '100rel')
    t.equal((await wire.response('1 INVITE', 504)).status, 504)
    await canceled
  })

  await t.test('a peer that does not know it gets plain ringing', async (t) => {
    wire.ask('INVITE', { ...freshCall(), cseq: 1, body: sdp() })
    const { res } = await app.next('invite')
    res.send(180, { headers: { Require: '100rel' } })
    const ringing = await wire.response('1 INVITE', 180)
    t.equal(headerOf(ringing, 'Require'), null)
    t.equal(headerOf(ringing, 'RSeq'), null)
    res.send(480)
    await wire.response('1 INVITE', 480)
  })

  await t.test('what the peer sends reliably is acknowledged once by the app, repetitions are not told', async (t) => {
    let rung = 0
    const { calling } = await call(app, wire, { told: { cbProvisional: () => (rung += 1) } })
    const invite = await wire.request('INVITE')
    const reliable = ['Require: 100rel', 'RSeq: 77']
    wire.answer(invite, 183, 'early', reliable, sdp())
    wire.answer(invite, 183, 'early', reliable, sdp())
    const prack = await wire.request('PRACK')
    t.equal(headerOf(prack, 'RAck'), `77 ${headerOf(invite, 'CSeq')}`)
    t.equal(tagOf(prack, 'To'), 'early')
    t.ok(numberOf(prack) > numberOf(invite))
    wire.answer(prack, 200)
    wire.answer(invite, 200, 'early', [], sdp())
    const dialog = await calling
    await wire.request('ACK')
    t.equal(rung, 1)
    const ending = dialog.destroy()
    wire.answer(await wire.request('BYE'), 200)
    await ending
  })

  await t.test('BYE before the answer ends the call like CANCEL', async (t) => {
    const ids = freshCall()
    wire.ask('INVITE', { ...ids, cseq: 1, body: sdp() })
    const { req, res } = await app.next('invite')
    const canceled = event(req, 'cancel')
    res.send(180)
    const ringing = await wire.response('1 INVITE', 180)
    wire.ask('BYE', { ...ids, toTag: tagOf(ringing, 'To') ?? '', cseq: 2 })
    t.equal((await wire.response('2 BYE')).status, 200)
    t.equal((await wire.response('1 INVITE', 487)).status, 487)
    await canceled
  })
})

test('session timers (RFC 4028)', async (t) => {
  const clock = createHandClock()
  const stage = await scene(t, { clock, limits: {}, sessionSeconds: 1_800 })
  const { app, wire } = stage
  const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
  const pass = async (seconds: number): Promise<void> => {
    for (let passed = 0; passed < seconds; passed++) {
      clock.advance(1_000)
      await tick()
    }
  }

  await t.test('an interval under 90 s is refused with 422', async (t) => {
    wire.ask('INVITE', { ...freshCall(), cseq: 1, headers: ['Session-Expires: 60', 'Supported: timer'] })
    const refused = await wire.response('1 INVITE')
    t.equal(refused.status, 422)
    t.equal(headerOf(refused, 'Min-SE'), '90')
  })

  await t.test('a peer that can refresh does: without it the call ends with BYE', async (t) => {
    const { dialog, answer, call } = await incoming(stage, ['Session-Expires: 90', 'Supported: timer'])
    t.equal(headerOf(answer, 'Session-Expires'), '90;refresher=uac')
    t.equal(headerOf(answer, 'Require'), 'timer')
    await pass(50)
    const asked = event(dialog, 'update')
    wire.ask('UPDATE', { ...call, cseq: 2, headers: ['Session-Expires: 90;refresher=uac', 'Supported: timer'] })
    const [, res] = await asked
    res.send(200)
    t.equal(headerOf(await wire.response('2 UPDATE'), 'Session-Expires'), '90;refresher=uac')
    await pass(50)
    t.equal(
      wire.waiting((message) => message.kind === 'request'),
      0,
    )
    const gone = event(dialog, 'destroy')
    await pass(15)
    t.match(headerOf(await wire.request('BYE'), 'Reason'), /session expired/)
    t.equal((await gone)[1], 'session expired')
    wire.serve((request) => wire.answer(request, 200))
    await pass(40)
    wire.serve(null)
    wire.clear()
  })

  await t.test('when it is our turn we refresh at half time: by INVITE with our last description', async (t) => {
    const { dialog, call } = await incoming(stage, ['Session-Expires: 100;refresher=uas', 'Supported: timer'])
    for (let round = 0; round < 2; round++) {
      await pass(50)
      const refresh = await wire.request('INVITE')
      t.equal(Buffer.from(refresh.body).toString(), sdp(50_000))
      t.equal(headerOf(refresh, 'Session-Expires'), '100;refresher=uac')
      wire.answer(refresh, 200, undefined, ['Session-Expires: 100;refresher=uac', 'Supported: timer'], sdp())
      await wire.request('ACK')
    }
    wire.ask('BYE', { ...call, cseq: 2 })
    await wire.response('2 BYE')
    t.notOk(dialog.connected)
  })

  await t.test('or by UPDATE where the peer takes it; a peer that has forgotten the call ends it', async (t) => {
    const { dialog, invite } = await outgoing(stage, ['Session-Expires: 200;refresher=uac', 'Allow: UPDATE, BYE'])
    t.equal(headerOf(invite, 'Session-Expires'), '1800')
    await pass(100)
    const refresh = await wire.request('UPDATE')
    t.equal(refresh.body.length, 0)
    wire.answer(refresh, 491)
    // An answer behind it says that it was read.
    wire.ask('BYE', { ...freshCall(), cseq: 9 })
    await wire.response('9 BYE')
    await pass(5)
    const again = await wire.request('UPDATE')
    const gone = event(dialog, 'destroy')
    wire.answer(again, 481)
    wire.answer(await wire.request('BYE'), 481)
    await gone
  })

  await t.test('a 422 to our INVITE is answered with a longer interval; the app sees one call', async (t) => {
    const { calling } = await call(app, wire)
    const first = await wire.request('INVITE')
    wire.answer(first, 422, 'x', ['Min-SE: 3600'])
    await wire.request('ACK')
    const second = await wire.request('INVITE')
    t.equal(headerOf(second, 'Session-Expires'), '3600')
    t.equal(headerOf(second, 'Min-SE'), '3600')
    t.equal(numberOf(second), numberOf(first) + 1)
    wire.answer(second, 200, 'y', [], sdp())
    const dialog = await calling
    t.equal(numberOf(await wire.request('ACK')), numberOf(second))
    const ending = dialog.destroy()
    wire.answer(await wire.request('BYE'), 200)
    await ending
  })
})

test('several ways to one name, one after the other (RFC 3263)', async (t) => {
  const gateways: SipWire[] = []
  const resolver = {
    naptr: async () => [],
    srv: async (name: string) =>
      name === '_sip._udp.carrier.test'
        ? gateways.map(({ port }, priority) => ({ name: '127.0.0.1', port, priority, weight: 0 }))
        : [],
    addresses: async () => [],
  }
  const stage = await scene(t, { resolver })
  const open = (): Promise<SipWire> => openSipWire(stage.port)
  const [silent, busy, good] = [await open(), await open(), await open()]
  t.teardown(() => Promise.all([silent, busy, good].map((gateway) => gateway.close())))
  gateways.push(silent, busy, good)
  const { calling } = await call(stage.app, { uri: 'sip:15550100@carrier.test' })
  busy.answer(await busy.request('INVITE'), 503)
  const invite = await good.request('INVITE')
  t.equal(invite.uri, 'sip:15550100@carrier.test')
  good.answer(invite, 200, 'good', [], sdp())
  const dialog = await calling
  await good.request('ACK')
  const ending = dialog.destroy()
  good.answer(await good.request('BYE'), 200)
  await ending
  const nobody = await call(stage.app, { uri: 'sip:x@nobody.invalid' })
  t.equal(await refusalOf(nobody.calling), 503)
})

test('a BYE does not overtake the ACK, however long the DNS takes', async (t) => {
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
  let lookups = 0
  const addresses = async (): Promise<string[]> => {
    if (lookups++ === 0) await answered
    return ['127.0.0.1']
  }
  const resolver = { naptr: async () => [], srv: async () => [], addresses }
  const { app, wire } = await scene(t, { resolver })
  const { calling } = await call(app, wire)
  const invite = await wire.request('INVITE')
  const came: string[] = []
  const done = new Promise<void>((resolve) => {
    wire.serve((request) => {
      // The INVITE may have been repeated before it was answered.
      if (request.method !== 'INVITE') came.push(request.method)
      if (request.method !== 'BYE') return
      wire.answer(request, 200)
      resolve()
    })
  })
  wire.answer(invite, 200, 'named', [`Contact: <sip:peer@slow.test:${wire.port}>`], sdp())
  const dialog = await calling
  const ending = dialog.destroy()
  // Behind the BYE of the app on the same connection.
  const unknown = { method: 'INFO', stackDialogId: 'nobody', uri: 'sip:x@127.0.0.1' }
  await new Promise<void>((resolve) => app.srf._app.request(unknown, () => resolve()))
  answer()
  await done
  await ending
  t.same(came, ['ACK', 'BYE'])
})

test('a peer whose Contact is a name that nobody knows is spoken to where it spoke from', async (t) => {
  const resolver = { naptr: async () => [], srv: async () => [], addresses: async () => [] }
  const { app, wire } = await scene(t, { resolver })
  const { calling } = await call(app, wire)
  wire.answer(await wire.request('INVITE'), 200, 'named', ['Contact: <sip:peer@exchange.local>'], sdp())
  const dialog = await calling
  t.equal((await wire.request('ACK')).uri, 'sip:peer@exchange.local')
  const ending = dialog.destroy()
  wire.answer(await wire.request('BYE'), 200)
  await ending
})

test('apps come and go', async (t) => {
  const stage = await scene(t)
  const { app, wire, server } = stage

  await t.test('new calls go to two apps in turn, and what belongs to a call stays with its app', async () => {
    const other = await openSipApp(server.control, ['invite'])
    const dialogs = []
    for (const one of [app, other, app, other]) {
      const ids = freshCall()
      wire.ask('INVITE', { ...ids, cseq: 1, body: sdp() })
      const { req, res } = await one.next('invite')
      const dialog = await one.srf.createUAS(req, res, { localSdp: sdp() })
      const answer = await wire.response('1 INVITE', 200)
      wire.ask('ACK', { ...ids, toTag: tagOf(answer, 'To') ?? '', cseq: 1 })
      await event(dialog, 'ack')
      dialogs.push({ dialog, call: { ...ids, toTag: tagOf(answer, 'To') ?? '' } })
    }
    for (const { dialog, call } of dialogs) {
      const gone = event(dialog, 'destroy')
      wire.ask('BYE', { ...call, cseq: 2 })
      await gone
      await wire.response('2 BYE')
    }
    await other.close()
  })

  await t.test('an app that is lost: BYE to its calls, 503 to what rings, CANCEL to what it called', async (t) => {
    const lost = await openSipApp(server.control, ['message'])
    const talking = await outgoing({ ...stage, app: lost })
    const { calling } = await call(lost, wire)
    const invite = await wire.request('INVITE')
    wire.answer(invite, 180, 'ringing')
    const heard = wire.request('CANCEL')
    socketOf(lost.srf).destroy()
    const bye = await wire.request('BYE')
    t.equal(headerOf(bye, 'Call-ID'), talking.call.callId)
    wire.answer(bye, 200)
    const cancel = await heard
    t.equal(headerOf(cancel, 'Call-ID'), headerOf(invite, 'Call-ID'))
    wire.answer(cancel, 200, 'ringing')
    // The 200 was faster: it is acknowledged and hung up.
    wire.answer(invite, 200, 'ringing', [], sdp())
    await wire.request('ACK')
    wire.answer(await wire.request('BYE'), 200)
    void calling
  })

  await t.test('503 to what rings, and to all that comes when no app is left', async (t) => {
    wire.ask('INVITE', { ...freshCall(), cseq: 1, body: sdp() })
    const { res } = await app.next('invite')
    res.send(180)
    await wire.response('1 INVITE', 180)
    socketOf(app.srf).destroy()
    t.equal((await wire.response('1 INVITE', 503)).status, 503)
    wire.ask('INVITE', { ...freshCall(), cseq: 2, body: sdp() })
    const refused = await wire.response('2 INVITE')
    t.equal(refused.status, 503)
    t.equal(headerOf(refused, 'Retry-After'), '5')
  })

  t.same(server.sizes().dialogs + server.sizes().open, 0)
})

test('addresses', async (t) => {
  await t.test('a Contact of ours names the transport, and is sips only where the Request-URI was', (t) => {
    const external = { address: '192.0.2.7', port: 5061 }
    const forms = (['udp', 'tcp', 'tls'] as const).map((protocol) => contactOf({ protocol, external, isSecure: false }))
    const host = '192.0.2.7:5061'
    t.same(forms, [`<sip:${host}>`, `<sip:${host};transport=tcp>`, `<sip:${host};transport=tls>`])
    t.equal(contactOf({ protocol: 'tls', external, isSecure: true }), `<sips:${host}>`)
    const v6 = contactOf({ protocol: 'udp', external: { address: '2001:db8::7', port: 5060 }, isSecure: false })
    t.equal(v6, '<sip:[2001:db8::7]:5060>')
    t.end()
  })

  await t.test('a request goes where the app sends it, whatever its URI says', async (t) => {
    const { app, wire } = await scene(t)
    const asking = app.srf.request('sip:15550100@carrier.invalid', { method: 'OPTIONS', proxy: wire.uri })
    const request = await wire.request('OPTIONS')
    t.equal(request.uri, 'sip:15550100@carrier.invalid')
    wire.answer(request, 200, 'x')
    await asking
    const routed = app.srf.request('sip:x@carrier.invalid', {
      method: 'OPTIONS',
      headers: { Route: `<${wire.uri};lr>` },
    })
    t.match(headerOf(await wire.request('OPTIONS'), 'Route'), /;lr>$/)
    await routed
  })

  await t.test('the server can call itself: two dialogs, each with a name of its own', async (t) => {
    const { app, port, server } = await scene(t)
    const calling = app.srf.createUAC(`sip:self@127.0.0.1:${port}`, { localSdp: sdp(50_000) })
    const { req, res } = await app.next('invite')
    const called = await app.srf.createUAS(req, res, { localSdp: sdp(50_002) })
    const caller = await calling
    t.not(called.id, caller.id)
    const gone = event(called, 'destroy')
    await caller.destroy()
    await gone
    t.equal(server.sizes().dialogs, 0)
  })
})
