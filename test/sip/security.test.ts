/** What an open SIP port and a hostile tenant may try: the network behind the service, its time, its memory, other people's calls. */
import dgram from 'node:dgram'
import { once } from 'node:events'
import net from 'node:net'
import { test, type Test } from 'tap'
import { factOf } from '../../actors/call/life/leg-facts.ts'
import { createSipReach } from '../../app/sip-reach.ts'
import { systemClock } from '../../app/clock.ts'
import { checkLinesOf } from '../../tools/check-lines.ts'
import { readSdpText } from '../../net/sdp.ts'
import { createDigestVerifier } from '../../sip/digest-verifier.ts'
import type { LocalMedia } from '../../media/rtp/media-session.ts'
import { answerOffer } from '../../sip/sdp/answer-offer.ts'
import { readAudio } from '../../sip/sdp/remote-media.ts'
import { digestResponseOf, readChallenge, writeCredentials } from '../../sip/server/message/digest.ts'
import { headerOf } from '../../sip/server/message/header-fields.ts'
import { parseMessage } from '../../sip/server/message/parse-message.ts'
import { createSipServer, type SipServerOptions } from '../../sip/server/sip-server.ts'
import type { MayReach } from '../../sip/server/transport/reachable-targets.ts'
import { createArrivalLimit } from '../../sip/server/transport/arrival-limit.ts'
import { createTransports } from '../../sip/server/transport/transports.ts'
import { connectStack } from '../../sip/stack.ts'
import { keyIn } from '../../sip/call/key-requests.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRandom } from '../fake/random.ts'
import { openSipApp, type Loose, type SipApp } from '../fake/sip-app.ts'
import { until } from '../scenes/in-time.ts'
import { openEdgeScene } from '../scenes/sip-edge-scene.ts'
import { openSipWire, sdp } from '../fake/sip-wire.ts'
import { trunkOf } from '../fake/telephony-port.ts'

/** An app, its server that reaches only what it may, and a peer. */
async function guarded(t: Test, mayReach: MayReach, limits: SipServerOptions['limits'] = {}) {
  const log = createQuietLog()
  const listen = (['udp', 'tcp'] as const).map((protocol) => ({ protocol, address: '127.0.0.1', port: 0 }))
  const server = await createSipServer({ listen, mayReach, limits, clock: systemClock, log })
  const wire = await openSipWire(server.listening[0]!.local.port)
  const app = await openSipApp(server.control)
  t.teardown(async () => {
    await app.close()
    await server.close()
    await wire.close()
  })
  return { app, wire, server, log }
}

const refuseNext = (app: SipApp, status: number): void => void app.next('invite').then(({ res }) => res.send(status))

/** What the app is told of a call to `uri`. */
async function refusalOf(srf: Loose, uri: string): Promise<{ status: number; reason: string }> {
  try {
    await srf.createUAC(uri, { localSdp: sdp() })
  } catch (error) {
    return error as { status: number; reason: string }
  }
  throw new Error('it was answered')
}

test('gateways: a tenant leads the service to no private address, by literal or by name, and reads why', async (t) => {
  const { app, wire } = await guarded(t, createSipReach([]))
  for (const host of ['127.0.0.1', '[::1]', '10.0.0.5', '169.254.169.254', '[::ffff:10.0.0.5]', '[fd00::1]'])
    for (const transport of ['', ';transport=tcp']) {
      const { status, reason } = await refusalOf(app.srf, `sip:+49301234567@${host}:${wire.port}${transport}`)
      t.equal(status, 503, 'as of a gateway that is out of order: the next one is tried')
      t.equal(reason, `${host.replace(/[[\]]/g, '')} is a private address; name it in SIP_ALLOW_HOSTS`)
    }
  const named = await refusalOf(app.srf, `sip:+49301234567@localhost:${wire.port}`)
  t.equal(named.reason, 'localhost leads to a private address; name it in SIP_ALLOW_HOSTS')
  const behind = await refusalOf(app.srf, `sip:+49301234567@192.0.2.1:5060;maddr=127.0.0.1`)
  t.match(behind.reason, '127.0.0.1 is a private address')
  t.equal(
    wire.waiting(() => true),
    0,
    'nothing was sent',
  )
})

test('gateways: REGISTER, OPTIONS and a next hop of our own are asked the same', async (t) => {
  const { app, wire } = await guarded(t, createSipReach([]))
  for (const options of [
    { method: 'OPTIONS', uri: wire.uri },
    { method: 'REGISTER', uri: wire.uri },
    { method: 'OPTIONS', uri: 'sip:carrier.example', proxy: wire.uri },
  ]) {
    const { promise, resolve } = Promise.withResolvers<Loose>()
    app.srf.request(options, (_error: unknown, request: Loose) => request.on('response', resolve))
    t.match(await promise, { status: 503, reason: /127\.0\.0\.1 is a private address/ }, options.method)
  }
  t.equal(
    wire.waiting(() => true),
    0,
    'nothing was sent',
  )
})

test('SIP_ALLOW_HOSTS opens what it names: addresses, networks, and names wherever they lead', async (t) => {
  const mayReach = createSipReach(['10.1.0.0/16', '[fd00::7]', 'PBX.lan', 'localhost'])
  t.ok(mayReach('10.1.2.3', 'any.example') && mayReach('::ffff:10.1.2.3', 'x') && mayReach('fd00::7', 'x'))
  t.notOk(mayReach('10.2.0.1', 'any.example') || mayReach('fd00::8', 'x') || mayReach('169.254.169.254', 'x'))
  t.ok(mayReach('8.8.8.8', 'any.example'), 'what is public is open')
  t.notOk(mayReach('192.168.7.7', '192.168.7.7'))
  t.ok(mayReach('192.168.7.7', 'pbx.lan'))
  t.ok(mayReach('192.168.7.7', '192.168.7.7'), 'the answer to its challenge goes to its address')
  for (const wrong of ['10.0.0.0/64', 'http://pbx', 'a b']) t.throws(() => createSipReach([wrong]), wrong)
  const { app, wire } = await guarded(t, mayReach)
  const calling = app.srf.createUAC(`sip:1@localhost:${wire.port}`, { localSdp: sdp() })
  wire.answer(await wire.request('INVITE'), 486, 'busy')
  await t.rejects(calling, /486/)
})

test('a peer’s Contact and Record-Route lead nowhere inside: the ACK and the BYE go back where the peer spoke from', async (t) => {
  const inside = await openSipWire(9)
  t.teardown(() => inside.close())
  const { app, wire } = await guarded(t, (address) => address === '127.0.0.1')
  for (const headers of [
    [`Contact: <sip:service@127.0.0.2:${inside.port}>`],
    [`Contact: <sip:x@127.0.0.2:${inside.port};transport=tcp>`, `Record-Route: <sip:127.0.0.3:${inside.port};lr>`],
  ]) {
    const calling = app.srf.createUAC(wire.uri, { localSdp: sdp() })
    wire.answer(await wire.request('INVITE'), 200, `t${headers.length}`, headers, sdp(41_000))
    const dialog = await calling
    t.match((await wire.request('ACK')).uri, 'sip:')
    const ended = dialog.destroy()
    wire.answer(await wire.request('BYE'), 200)
    await ended
  }
  t.equal(
    inside.waiting(() => true),
    0,
  )
})

test('with a server that does not ask, addresses that stand in a gateway are asked by the app', async (t) => {
  const { server, log } = await guarded(t, () => true)
  const stack = await connectStack({
    control: server.control,
    routes: {},
    clock: systemClock,
    log,
    connectWithin: 5_000,
    mayReach: createSipReach([]),
  })
  t.teardown(() => stack.close())
  const details = '10.0.0.5 is a private address; name it in SIP_ALLOW_HOSTS'
  t.same(await stack.request('sip:10.0.0.5', { method: 'OPTIONS', headers: {} }), { kind: 'silence', details })
  const ended = await new Promise((resolve) => {
    const handlers = { provisional: () => undefined, ended: resolve }
    stack.invite('sip:+4930@carrier.example', { headers: {}, localSdp: sdp(), proxy: 'sip:10.0.0.5' }, handlers)
  })
  t.same(ended, { kind: 'unreachable', details })
})

const local: LocalMedia = {
  address: '192.0.2.1',
  port: 4000,
  rtcpPort: 4001,
  codecs: ['PCMU', 'PCMA', 'G722'],
  encryption: 'optional',
  keys: [],
  sessionId: '1',
  version: 1,
  direction: 'sendrecv',
}

test('sound is sent to no service of a machine, to nobody’s loopback, to no link and to no crowd', (t) => {
  const read = (address: string, { port = 4000, ours = local.address, more = '' } = {}) => {
    const family = address.includes(':') ? 6 : 4
    const text = readSdpText(`v=0\r\nc=IN IP${family} ${address}\r\nm=audio ${port} RTP/AVP 0\r\n${more}`)
    if (typeof text === 'string') throw new Error(text)
    const audio = readAudio(text, text.sections[0]!, { ...local, address: ours })
    return typeof audio === 'string' ? audio : audio.session.remote
  }
  for (const address of [
    '127.0.0.1',
    '127.9.9.9',
    '0.1.2.3',
    '169.254.169.254',
    '224.0.0.1',
    '255.255.255.255',
    '::1',
    '0:0:0:0:0:0:0:1',
    '::ffff:127.0.0.1',
    '0:0:0:0:0:ffff:7f00:1',
    '::ffff:a9fe:a9fe',
    '64:ff9b::a9fe:a9fe',
    '64:ff9b::127.0.0.1',
    'fe80::1',
    'ff02::1',
  ])
    t.equal(read(address), null, address)
  for (const address of ['203.0.113.4', '10.0.0.9', '2001:db8::1']) t.match(read(address), { address, port: 4000 })
  const throughNat64 = { address: '64:ff9b::cb00:7104', port: 4000 }
  t.match(read('64:ff9b::203.0.113.4'), throughNat64, 'sound goes by the address a machine without IPv4 can send to')
  t.match(read('127.0.0.1', { ours: '127.0.0.1' }), { address: '127.0.0.1' }, 'on one machine all is loopback')
  for (const port of [1, 53, 123, 1023]) t.match(read('203.0.113.4', { port }), /where no telephone listens/)
  t.match(read('203.0.113.4', { more: 'a=rtcp:53\r\n' }), { rtcpPort: 4001 })
  t.end()
})

/** Ms that nothing else could run; the shortest of three, since others use this machine. */
function timeOf(action: () => unknown): number {
  const once = (): number => {
    const begun = performance.now()
    action()
    return performance.now() - begun
  }
  return Math.min(once(), once(), once())
}

const headOf = (fields: Readonly<Record<string, string>>, more: readonly string[] = [], body = ''): string => {
  const usual = {
    Via: 'SIP/2.0/UDP 127.0.0.1:9;branch=z9hG4bKa',
    From: '<sip:+491511234567@a.example>;tag=1',
    To: '<sip:+4930123456@b.example>',
    'Call-ID': 'c',
    CSeq: '1 INVITE',
    Contact: '<sip:a@127.0.0.1:9>',
    ...fields,
  }
  const lines = Object.entries(usual).map(([name, value]) => `${name}: ${value}`)
  return [
    'INVITE sip:+4930123456@b.example SIP/2.0',
    ...lines,
    ...more,
    `Content-Length: ${body.length}`,
    '',
    body,
  ].join('\r\n')
}

test('no message of 64 KiB costs more than a moment to read', (t) => {
  const long = 16_000
  const list = (value: string) => Array.from({ length: long / (value.length + 1) }, () => value).join()
  const fields = ['Via', 'From', 'To', 'Contact', 'CSeq', 'Record-Route', 'Authorization', 'Reason', 'Session-Expires']
  const patterns = [
    ...[' ', '\t', '\v', ',', ';', '"', '<', '>', '\\', ':', '/', '=', '@', '%', '1', 'a', '[', '%41'].map((text) =>
      text.repeat(long / text.length),
    ),
    ...['a=b', '<sip:a@b>', 'SIP/2.0/UDP a', 'Digest a', '"\\"', 'sip:', 'a SIP/2.0 '].map(list),
  ]
  const random = createRandom(20261121)
  const texts = fields.flatMap((name) =>
    patterns.map((pattern) =>
      headOf(
        {},
        [1, 2, 3].map(() => `${name}: x${pattern}y`),
      ),
    ),
  )
  for (let round = 0; round < 200; round += 1) {
    const value = () =>
      Array.from({ length: 40 }, () => random.pick(patterns).slice(0, 300)).join(random.pick([';', ' ', '']))
    texts.push(
      headOf(
        { [random.pick(fields)]: `<sip:a@b>${value()}` },
        ['Via: x', 'To: y'].map((start) => start + value()),
      ),
    )
  }
  texts.push(
    `INVITE sip:${'a SIP/2.0 '.repeat(6000)} SIP/2.0\r\n\r\n`,
    `${'\r\n'.repeat(30_000)}x`,
    'a:\r\n'.repeat(16_000),
  )
  const worst = Math.max(...texts.map((text) => timeOf(() => parseMessage(Buffer.from(text.slice(0, 65_000))))))
  t.ok(worst < 500, `${worst} ms`)
  t.end()
})

test('no description and no key press of 64 KiB costs more than a moment', (t) => {
  const start = 'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 203.0.113.1\r\nt=0 0\r\n'
  const formats = Array.from({ length: 128 }, () => '96').join(' ')
  for (const text of [
    ...['A', '1/', '/', ' '].map(
      (piece) => `m=audio 4000 RTP/AVP ${formats}\r\na=rtpmap:96 ${piece.repeat(60_000 / piece.length)}/8000`,
    ),
    ...['m=audio 4000 RTP/AVP 0', `m=audio 4000 RTP/AVP ${' '.repeat(1_500)}`].map((line) => `${line}\r\n`.repeat(30)),
    `m=audio 4000 RTP/SAVP 0\r\n${`a=crypto:1 ${'x '.repeat(20)}\r\n`.repeat(1_200)}`,
    `m=audio 4000 RTP/SAVP 0\r\na=crypto:1 x inline:${'x '.repeat(30_000)}`,
    `m=audio 4000 RTP/AVP ${'1 '.repeat(30_000)}`,
    'a=x\r\n'.repeat(3_900),
  ]) {
    const ms = timeOf(() => answerOffer(start + text, local))
    t.ok(ms < 200, `${ms} ms for ${text.slice(0, 60)}`)
  }
  for (const type of ['application/dtmf-relay', 'application/dtmf'])
    for (const piece of ['\n', ' \n', 'signal\n', 'signal=', '\r']) {
      const body = piece.repeat(60_000 / piece.length)
      const ms = timeOf(() => keyIn({ body, get: () => type }))
      t.ok(ms < 200, `${ms} ms`)
    }
  t.equal(keyIn({ body: '\r\nSignal= 5\r\nDuration=160', get: () => 'application/dtmf-relay' }), '5')
  t.end()
})

test('an INVITE that makes the library slow is refused before the library reads it', async (t) => {
  const { server, app, wire } = await guarded(t, () => true)
  const blank = ' '.repeat(15_000)
  refuseNext(app, 486)
  const port = server.listening[0]!.local.port
  const socket = dgram.createSocket('udp4')
  t.teardown(() => socket.close())
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const via = `SIP/2.0/UDP 127.0.0.1:${socket.address().port};rport;branch=z9hG4bKslow`
  for (const fields of [
    { Contact: `<sip:a@b>;x=1${blank}y` },
    { From: `<sip:a@b>;x=1${'\v'.repeat(15_000)}y;tag=1` },
  ]) {
    const answered = once(socket, 'message')
    socket.send(headOf({ Via: via + Object.keys(fields).join(''), ...fields }), port, '127.0.0.1')
    t.match(String((await answered)[0]), /^SIP\/2\.0 400 /)
  }
  wire.ask('INVITE', { callId: 'usual', fromTag: 'f', cseq: 1 })
  t.equal((await wire.response('1 INVITE')).status, 486, 'and others are answered')
})

test('From of an answer is the caller’s, to the letter', async (t) => {
  const { app, server } = await guarded(t, () => true)
  refuseNext(app, 404)
  const heard = Promise.withResolvers<string>()
  const socket = dgram.createSocket('udp4')
  socket.on('message', (bytes) => {
    if (String(bytes).startsWith('SIP/2.0 404')) heard.resolve(String(bytes))
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  t.teardown(() => socket.close())
  const via = `SIP/2.0/UDP 127.0.0.1:${socket.address().port};rport;branch=z9hG4bKfrom`
  const from = '<sip:me@localhost>;tag=1'
  socket.send(headOf({ Via: via, From: from }), server.listening[0]!.local.port, '127.0.0.1')
  t.match(await heard.promise, `From: ${from}\r\n`)
})

test('what a peer writes as its reason is neither NUL nor a command to a terminal, nor long', async (t) => {
  const text = `SIP/2.0 486 Busy\0\u001b[31m\u009bHere ${'x'.repeat(5_000)}\r\n${headOf({}).split('\r\n').slice(1).join('\r\n')}`
  const parsed = parseMessage(Buffer.from(text))
  const message = parsed.kind === 'message' ? parsed.message : null
  if (message?.kind !== 'response') return t.fail('no response')
  t.match(message.reason, /^Busy \[31m Here x{10}/)
  t.ok(message.reason.length <= 200)
  for (const fact of [
    factOf({ type: 'disconnected', cause: 'hung_up', details: 'gone\0\u001b' + 'y'.repeat(9_999) }),
    factOf({ type: 'transfer_failed', providerStatus: '603 No\0' + 'z'.repeat(9_999) }),
    factOf({ type: 'dial_failed', outcome: { status: 'busy' }, providerStatus: '486 \0 \ud800' + 'z'.repeat(9_999) }),
  ]) {
    const stored = JSON.stringify(fact)
    t.ok(stored.length < 500 && !/\\u0000|\\u001b|\\ud800/i.test(stored), stored)
  }
  const check = {
    name: 'gateway',
    verdict: 'failed',
    expected: '200',
    got: '486 \u001b]0;x\u0007',
    mend: null,
  } as const
  t.notOk(checkLinesOf(check, 10).join('').includes('\u001b'))
})

test('over UDP a refused INVITE brings whomever it names no more bytes than it has, and nobody through maddr', async (t) => {
  const { app, server } = await guarded(t, () => true, { t1: 10, t2: 80, t4: 80 })
  refuseNext(app, 403)
  const [port, socket, victim] = [
    server.listening[0]!.local.port,
    dgram.createSocket('udp4'),
    dgram.createSocket('udp4'),
  ]
  const [heard, hit] = [[] as string[], [] as string[]]
  socket.on('message', (bytes) => void heard.push(String(bytes)))
  victim.on('message', (bytes) => void hit.push(String(bytes)))
  for (const one of [socket, victim]) {
    one.bind(one === victim ? socket.address().port : 0, one === victim ? '127.0.0.2' : '127.0.0.1')
    await once(one, 'listening')
    t.teardown(() => one.close())
  }
  const via = `SIP/2.0/UDP 127.0.0.1:${socket.address().port};branch=z9hG4bKm;maddr=${victim.address().address};received=127.0.0.3`
  const bytesOf = (texts: readonly string[]) => texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  const small = headOf({ Via: via })
  socket.send(small, port, '127.0.0.1')
  await until(() => (server.sizes().transactions === 1 ? true : undefined))
  await until(() => (server.sizes().transactions === 0 ? true : undefined))
  t.ok(bytesOf(heard) <= small.length, `${bytesOf(heard)} bytes for ${small.length}`)
  t.equal(hit.length, 0)

  heard.length = 0
  refuseNext(app, 403)
  const large = headOf({ Via: via.replace('z9hG4bKm', 'z9hG4bKl'), 'Call-ID': 'large' }, [], sdp().padEnd(1_200))
  socket.send(large, port, '127.0.0.1')
  await until(() => (heard.some((text) => text.startsWith('SIP/2.0 403')) ? true : undefined))
  await until(() => (server.sizes().transactions === 0 ? true : undefined))
  t.match(heard[0], /^SIP\/2\.0 100[^]*received=127\.0\.0\.1/)
  t.ok(bytesOf(heard) <= large.length, `${bytesOf(heard)} bytes for ${large.length}, with all that was repeated`)
})

test('a client that is there hears its refusal again when it asks again, however small its INVITE', async (t) => {
  const { app, server } = await guarded(t, () => true)
  refuseNext(app, 403)
  const socket = dgram.createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  t.teardown(() => socket.close())
  const heard: string[] = []
  socket.on('message', (bytes) => void heard.push(String(bytes)))
  const invite = headOf({ Via: `SIP/2.0/UDP 127.0.0.1:${socket.address().port};branch=z9hG4bKs` })
  for (const times of [1, 2, 3]) {
    socket.send(invite, server.listening[0]!.local.port, '127.0.0.1')
    await until(() => heard.filter((text) => text.startsWith('SIP/2.0 403')).length >= times)
  }
})

test('a table of addresses forgets before it is full, and a flood from one address leaves others alone', (t) => {
  let now = 0
  const limits = { messagesPerSecond: 10, messageBurst: 20, maxAddresses: 1_000, exemptsLoopback: false }
  const admits = createArrivalLimit(limits, () => now)
  const admitted = Array.from({ length: 100 }, () => admits('203.0.113.9')).filter(Boolean).length
  t.equal(admitted, 20)
  t.ok(admits('203.0.113.10'))
  const before = process.memoryUsage().heapUsed
  for (let count = 0; count < 100_000; count += 1) admits(`10.${count >> 16}.${(count >> 8) & 255}.${count & 255}`)
  t.ok(process.memoryUsage().heapUsed - before < 50_000_000)
  now += 1_000
  t.ok(admits('203.0.113.9'))
  t.end()
})

test('connections of one address come at a bounded rate, and a flood of keep-alives gets one answer a packet', async (t) => {
  const transports = await createTransports(
    {
      listen: [{ protocol: 'tcp', address: '127.0.0.1', port: 0 }],
      externalAddress: { ipv4: null, ipv6: null },
      tlsClient: { ca: null, verify: true },
      limits: { connectionBurst: 3, connectionsPerSecond: 0.001, exemptsLoopback: false },
      clock: systemClock,
      log: createQuietLog(),
    },
    { received: () => undefined, faulted: () => undefined, closed: () => undefined },
  )
  const { port } = transports.listening[0]!.local
  const sockets = Array.from({ length: 3 }, () => net.connect(port, '127.0.0.1'))
  t.teardown(async () => {
    sockets.forEach((socket) => socket.destroy())
    await transports.close()
  })
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  const [first] = sockets
  let pongs = 0
  const answered = once(first!, 'data')
  first!.on('data', (bytes: Buffer) => (pongs += bytes.length / 2))
  first!.write('\r\n\r\n'.repeat(10_000))
  await answered
  const last = once(first!, 'data')
  first!.write('\r\n\r\n')
  await last
  t.ok(pongs < 100, `${pongs} answers`)
  const late = net.connect(port, '127.0.0.1')
  late.on('error', () => undefined)
  await once(late, 'close')
  t.equal(transports.connections(), 3)
})

const answerTo = (
  challenge: string,
  { password = 'secret', username = 'ada', nc = '00000001', uri = 'sip:x' } = {},
) => {
  const { realm, nonce } = readChallenge(challenge)!
  const proof = { username, realm, nonce, uri, algorithm: 'MD5', nc, cnonce: 'c' } as const
  return writeCredentials({ ...proof, opaque: null, response: digestResponseOf(proof, 'INVITE', password) })
}

test('digest: forged, replayed, foreign and aged nonces prove nothing, and a wrong name tells no more than a wrong password', (t) => {
  let now = 1_000_000
  const verifier = createDigestVerifier({ now: () => now, maxRemembered: 4 })
  const expected = { realm: 'a', username: 'ada', password: 'secret' }
  const verify = (given: string | undefined, of = expected) => verifier.verify('INVITE', given, of)
  const challengeOf = (of = expected): string => {
    const verdict = verify(undefined, of)
    return verdict.kind === 'challenge' ? verdict.challenges[0]! : ''
  }
  const good = answerTo(challengeOf())
  t.equal(verify(good).kind, 'proved')
  t.equal(verify(good).kind, 'challenge', 'the same again')
  t.equal(verifier.verify('INVITE', good, { ...expected, realm: 'b' }).kind, 'challenge', 'another tenant’s realm')
  t.equal(verify(answerTo(challengeOf(), { password: 'x' })).kind, 'wrong')
  t.equal(verify(answerTo(challengeOf(), { username: 'eve' })).kind, 'wrong')
  const other = createDigestVerifier({ now: () => now }).verify('INVITE', undefined, expected)
  t.equal(
    verify(answerTo(other.kind === 'challenge' ? other.challenges[0]! : '')).kind,
    'challenge',
    'another service’s',
  )
  const kept = challengeOf()
  for (let count = 0; count < 10; count += 1) {
    now += 1
    t.equal(verify(answerTo(challengeOf())).kind, 'proved')
  }
  t.equal(verifier.size(), 4)
  t.equal(verify(good).kind, 'challenge', 'forgotten is used up')
  now += 300_001
  t.equal(verify(answerTo(kept)).kind, 'challenge', 'too old')
  for (const text of [
    'Digest',
    'Digest ,',
    'Basic x',
    `Digest ${'a=b,'.repeat(5_000)}`,
    `${'Digest ,'.repeat(3_000)}`,
  ]) {
    t.ok(timeOf(() => t.equal(verify(text).kind, 'challenge')) < 200)
  }
  t.end()
})

test('digest: a wrong password uses its nonce up, and a count that does not grow is not looked at', (t) => {
  const verifier = createDigestVerifier({ now: () => 1_000_000 })
  const expected = { realm: 'a', username: 'ada', password: 'secret' }
  let looks = 0
  const look = () => ({ wait: 0, right: () => undefined, count: (looks += 1) })
  const verify = (given: string | undefined) => verifier.verify('INVITE', given, expected, 'here', look)
  const challengeOf = (): string => {
    const verdict = verify(undefined)
    return verdict.kind === 'challenge' ? verdict.challenges[0]! : ''
  }
  for (const wrong of [{ password: 'x' }, { username: 'eve' }]) {
    const challenge = challengeOf()
    t.equal(verify(answerTo(challenge, wrong)).kind, 'wrong')
    const again = verify(answerTo(challenge, { nc: '00000002' }))
    t.match(again, { kind: 'challenge', challenges: [/stale=true/] }, 'the right one needs a nonce of its own')
  }
  const challenge = challengeOf()
  t.equal(verify(answerTo(challenge, { nc: '00000003' })).kind, 'proved')
  const before = looks
  for (const nc of ['00000003', '00000001', '00000000'])
    t.equal(verify(answerTo(challenge, { nc, password: 'x' })).kind, 'challenge', nc)
  t.equal(looks, before)
  t.equal(verify(answerTo(challenge, { nc: '00000004' })).kind, 'proved')
  const limited = verifier.verify('INVITE', answerTo(challengeOf()), expected, 'here', () => ({ ...look(), wait: 7 }))
  t.same(limited, { kind: 'unlooked', wait: 7, isThere: true })
  t.end()
})

test('a stranger who knows nothing of a call neither ends nor changes it, and hears nothing of it', async (t) => {
  const scene = await openEdgeScene(t)
  scene.telephony.trunks = [trunkOf({})]
  const call = scene.peer.invite({ body: sdp() })
  await call.answered()
  const callId = await scene.begun()
  await scene.command(callId, { type: 'answer' })
  const answer = await call.answered()
  call.ack()
  await scene.event(callId)
  const stranger = await openSipWire(scene.serverPort)
  t.teardown(() => stranger.close())
  const toTag = /;tag=([^;]+)/.exec(headerOf(answer, 'To') ?? '')![1]!
  const fromTag = /;tag=([^;]+)/.exec(headerOf(answer, 'From') ?? '')![1]!
  for (const guess of [
    { callId: call.callId, fromTag: 'guess', toTag },
    { callId: call.callId, fromTag, toTag: 'guess' },
    { callId: 'guess', fromTag, toTag },
  ])
    for (const [index, method] of ['BYE', 'INVITE', 'UPDATE', 'INFO', 'REFER'].entries()) {
      stranger.ask(method, { ...guess, cseq: 100 + index })
      t.equal((await stranger.response(`${100 + index} ${method}`)).status, 481, method)
    }
  stranger.ask('CANCEL', { callId: call.callId, fromTag, cseq: 1, branch: 'z9hG4bKguess' })
  t.equal((await stranger.response('1 CANCEL')).status, 481)
  t.equal(scene.edge.health().calls, 1)
  t.equal((await call.request('BYE')).status, 200)
})

test('strangers who never say ACK do not keep callers out', async (t) => {
  const { app, wire, server } = await guarded(t, () => true, { maxServers: 50 })
  for (let count = 0; count < 200; count += 1) refuseNext(app, 403)
  const socket = dgram.createSocket('udp4')
  t.teardown(() => socket.close())
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const refused = new Set<string>()
  socket.on('message', (bytes) => {
    const [, id] = /^SIP\/2\.0 403 [\s\S]*Call-ID: (\S+)/.exec(String(bytes)) ?? []
    if (id) refused.add(id)
  })
  for (let count = 0; count < 150; count += 1) {
    const via = `SIP/2.0/UDP 127.0.0.1:${socket.address().port};rport;branch=z9hG4bKs${count}`
    socket.send(headOf({ Via: via, 'Call-ID': `s${count}` }), server.listening[0]!.local.port, '127.0.0.1')
    await until(() => refused.has(`s${count}`))
  }
  t.ok(server.sizes().transactions <= 50)
  wire.ask('INVITE', { callId: 'usual', fromTag: 'f', cseq: 1 })
  t.equal((await wire.response('1 INVITE')).status, 403, 'the app is asked')
})
