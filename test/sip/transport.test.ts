/** The transports of the SIP server on loopback, and where a request goes: RFC 3261 §18, RFC 3581, RFC 3263, RFC 5626 §4.4.1. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import net from 'node:net'
import tls from 'node:tls'
import { test, type Test } from 'tap'
import { systemClock } from '../../app/clock.ts'
import type { Clock } from '../../model/clock.ts'
import { headerOf } from '../../sip/server/message/header-fields.ts'
import type { HeaderField, SipRequest, SipResponse } from '../../sip/server/message/message.ts'
import { responseTo } from '../../sip/server/message/response-to.ts'
import { readSipUri } from '../../sip/server/message/uri.ts'
import { topViaOf } from '../../sip/server/message/via.ts'
import { writeMessage } from '../../sip/server/message/write-message.ts'
import { createArrivalLimit } from '../../sip/server/transport/arrival-limit.ts'
import { networksOf } from '../../net/networks.ts'
import { createDnsResolver } from '../../sip/server/transport/dns-resolver.ts'
import { createPlaces } from '../../sip/server/transport/places.ts'
import { destinationOf, resolveTargets, type ResolveOptions } from '../../sip/server/transport/resolve-targets.ts'
import { srvOrder } from '../../sip/server/transport/srv-order.ts'
import { createStreamFramer, type Framed } from '../../sip/server/transport/stream-framer.ts'
import type { Endpoint, Flow, Protocol, Target, Transports } from '../../sip/server/transport/transport.ts'
import type { Peers } from '../../sip/strangers.ts'
import { createTransports, type TransportLimits } from '../../sip/server/transport/transports.ts'
import { startDnsServer, type Zone } from '../fake/dns-server.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRandom } from '../fake/random.ts'
import { fakeTls } from '../scenes/tls.ts'

type Event =
  | { readonly kind: 'request'; readonly request: SipRequest; readonly flow: Flow }
  | { readonly kind: 'response'; readonly response: SipResponse; readonly flow: Flow }
  | { readonly kind: 'fault'; readonly request: SipRequest; readonly status: number; readonly flow: Flow }
  | { readonly kind: 'closed'; readonly flow: Flow }

type Side = {
  readonly transports: Transports
  next(): Promise<Event>
  readonly waiting: Event[]
  readonly log: ReturnType<typeof createQuietLog>
}

type SideOptions = {
  readonly address?: string
  readonly protocols?: readonly Protocol[]
  readonly limits?: Partial<TransportLimits>
  readonly clock?: Clock
  readonly ca?: string | null
  readonly verify?: boolean
  readonly peers?: Peers
  /** What is done with a fault, while it is told. */
  readonly answersFaults?: boolean
  readonly throwsAtFaults?: boolean
}

/** Transports on loopback that end with the test; what they tell waits in line. */
async function open(t: Test, options: SideOptions = {}): Promise<Side> {
  const { address = '127.0.0.1', protocols = ['udp', 'tcp', 'tls'], clock = systemClock, limits = {} } = options
  const waiting: Event[] = []
  const asking: ((event: Event) => void)[] = []
  const tell = (event: Event): void => {
    const ask = asking.shift()
    if (ask) ask(event)
    else waiting.push(event)
  }
  const log = createQuietLog()
  const transports = await createTransports(
    {
      listen: protocols.map((protocol) => ({ protocol, address, port: 0, tls: fakeTls })),
      externalAddress: { ipv4: '203.0.113.1', ipv6: null },
      tlsClient: { ca: options.ca === undefined ? fakeTls.cert : options.ca, verify: options.verify ?? true },
      limits,
      ...(options.peers && { peers: options.peers }),
      clock,
      log,
    },
    {
      received: ({ message, flow }) =>
        tell(
          message.kind === 'request'
            ? { kind: 'request', request: message, flow }
            : { kind: 'response', response: message, flow },
        ),
      faulted(request, { status, reason }, flow) {
        if (options.throwsAtFaults) throw new Error('a bug')
        if (options.answersFaults) void transports.respond(responseTo(request, { status, reason, toTag: 'f' }), flow)
        tell({ kind: 'fault', request, status, flow })
      },
      closed: (flow) => tell({ kind: 'closed', flow }),
    },
  )
  t.teardown(() => transports.close())
  const next = (): Promise<Event> => {
    const event = waiting.shift()
    return event ? Promise.resolve(event) : new Promise((resolve) => asking.push(resolve))
  }
  return { transports, next, waiting, log }
}

const listenerOf = ({ transports }: Side, protocol: Protocol): Endpoint =>
  transports.listening.find((one) => one.protocol === protocol)!.local
const targetOf = (side: Side, protocol: Protocol, serverName: string | null = 'localhost'): Target => ({
  protocol,
  remote: listenerOf(side, protocol),
  serverName,
})

const requestOf = (callId: string, bodyBytes = 0, more: HeaderField[] = []): SipRequest => ({
  kind: 'request',
  method: 'OPTIONS',
  uri: 'sip:bob@127.0.0.1',
  headers: [
    ...more,
    { name: 'From', value: '<sip:alice@example.com>;tag=a1' },
    { name: 'To', value: '<sip:bob@example.com>' },
    { name: 'Call-ID', value: callId },
    { name: 'CSeq', value: '1 OPTIONS' },
  ],
  body: new Uint8Array(bodyBytes).fill(120),
})
const withVia = (callId: string, via: string, bodyBytes = 0): Buffer =>
  writeMessage(requestOf(callId, bodyBytes, [{ name: 'Via', value: via }]))
const okTo = (request: SipRequest): SipResponse => responseTo(request, { status: 200, reason: 'OK', toTag: 'b1' })

async function nextRequest(side: Side) {
  const event = await side.next()
  if (event.kind !== 'request') throw new Error(`a request was expected, not ${event.kind}`)
  return event
}

/** A UDP peer without any manners. */
async function openRawUdp(t: Test, address = '127.0.0.1') {
  const socket = createSocket('udp4')
  socket.bind(0, address)
  await once(socket, 'listening')
  t.teardown(() => socket.close())
  return {
    port: socket.address().port,
    send: (bytes: Uint8Array | string, to: Endpoint) => socket.send(bytes, to.port, to.address),
    next: async (): Promise<string> => String((await once(socket, 'message'))[0]),
  }
}

async function connectRaw(t: Test, { address, port }: Endpoint): Promise<net.Socket> {
  const socket = net.connect(port, address)
  socket.on('error', () => undefined)
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

for (const address of ['127.0.0.1', '::1'])
  for (const protocol of ['udp', 'tcp', 'tls'] as const)
    test(`a request and its answer go by ${protocol} over ${address}`, async (t) => {
      const [alice, bob] = await Promise.all([open(t, { address }), open(t, { address })])
      const target = targetOf(bob, protocol)
      const { flow, sent } = await alice.transports.request(requestOf('c1', 10), target, 'z9hG4bK1')
      const arrived = await nextRequest(bob)
      const via = topViaOf(arrived.request)!
      const own = listenerOf(alice, protocol)
      t.match(via, { transport: protocol.toUpperCase(), host: address, port: own.port })
      t.match(headerOf(sent, 'Via'), address === '::1' ? `[::1]:${own.port}` : `127.0.0.1:${own.port}`)
      t.equal(via.params.get('branch'), 'z9hG4bK1')
      t.equal(via.params.get('received'), address)
      t.equal(via.params.get('rport'), String(arrived.flow.remote.port))
      t.equal(arrived.request.body.length, 10)
      await bob.transports.respond(okTo(arrived.request), arrived.flow)
      const answer = await alice.next()
      t.match(answer, { kind: 'response', response: { status: 200 }, flow: { protocol, connection: flow.connection } })
      t.equal(flow.connection === 0, protocol === 'udp')
    })

test('an answer by UDP goes to rport where it is asked for, else to the port of Via (§18.2.2, RFC 3581)', async (t) => {
  const side = await open(t)
  const [sender, named] = await Promise.all([openRawUdp(t), openRawUdp(t)])
  const to = listenerOf(side, 'udp')
  sender.send(withVia('c1', `SIP/2.0/UDP host.invalid:${named.port};branch=z9hG4bK1;rport`), to)
  const first = await nextRequest(side)
  const [gotFirst] = await Promise.all([sender.next(), side.transports.respond(okTo(first.request), first.flow)])
  t.match(gotFirst, `received=127.0.0.1`)
  t.match(gotFirst, `rport=${sender.port}`)
  sender.send(withVia('c2', `SIP/2.0/UDP host.invalid:${named.port};branch=z9hG4bK2;received=192.0.2.77`), to)
  const second = await nextRequest(side)
  const [gotSecond] = await Promise.all([named.next(), side.transports.respond(okTo(second.request), second.flow)])
  t.match(gotSecond, 'received=127.0.0.1', 'what the peer wrote there himself does not count')
  t.notMatch(gotSecond, '192.0.2.77')
})

test('received is left out when Via says the same, and maddr leads nobody’s answers elsewhere', async (t) => {
  const side = await open(t)
  const sender = await openRawUdp(t)
  const to = listenerOf(side, 'udp')
  sender.send(withVia('c1', `SIP/2.0/UDP 127.0.0.1:${sender.port};branch=z9hG4bK1;maddr=127.0.0.2`), to)
  const { request, flow } = await nextRequest(side)
  t.notMatch(headerOf(request, 'Via'), 'received')
  const [got] = await Promise.all([sender.next(), side.transports.respond(okTo(request), flow)])
  t.match(got, 'SIP/2.0 200 OK')
  sender.send(withVia('c2', 'SIP/2.0/UDP 127.0.0.1;branch=z9hG4bK2;received=192.0.2.77'), to)
  t.match(headerOf((await nextRequest(side)).request, 'Via'), 'received=127.0.0.1', 'one that was there is put right')
})

test('what is no SIP, and an answer to what we did not ask, is dropped without a word and counted', async (t) => {
  const side = await open(t)
  const peer = await openRawUdp(t)
  const to = listenerOf(side, 'udp')
  for (const bytes of ['\r\n\r\n', '\0', 'x', 'GET / HTTP/1.1\r\n\r\n', Buffer.alloc(2000, 255)]) peer.send(bytes, to)
  const foreign = responseTo(requestOf('c1', 0, [{ name: 'Via', value: 'SIP/2.0/UDP 192.0.2.7:9;branch=z9hG4bK1' }]), {
    status: 200,
    reason: 'OK',
    toTag: 'b',
  })
  peer.send(writeMessage(foreign), to)
  peer.send(withVia('last', `SIP/2.0/UDP 127.0.0.1:${peer.port};branch=z9hG4bK9`), to)
  const { request, flow } = await nextRequest(side)
  t.equal(headerOf(request, 'Call-ID'), 'last', 'nothing else was told')
  const [got] = await Promise.all([peer.next(), side.transports.respond(okTo(request), flow)])
  t.match(got, 'Call-ID: last', 'nothing else was sent')
  t.same(side.transports.dropped(), { overLimit: 0, garbage: 3, connections: 0 })
})

test('a request that is malformed is told with its fault, so that it is answered', async (t) => {
  const side = await open(t, { answersFaults: true })
  const peer = await openRawUdp(t)
  const text = String(withVia('c1', `SIP/2.0/UDP 127.0.0.1:${peer.port};branch=z9hG4bK1;rport`)).replace(
    'CSeq: 1',
    'CSeq: x',
  )
  const answered = peer.next()
  peer.send(text, listenerOf(side, 'udp'))
  t.match(await side.next(), { kind: 'fault', status: 400 })
  t.match(await answered, 'SIP/2.0 400 ')
})

test('a message that makes its receiver throw harms no other', async (t) => {
  const side = await open(t, { throwsAtFaults: true })
  const peer = await openRawUdp(t)
  const good = withVia('good', `SIP/2.0/UDP 127.0.0.1:${peer.port};branch=z9hG4bK1`)
  peer.send(String(good).replace('CSeq: 1', 'CSeq: x'), listenerOf(side, 'udp'))
  peer.send(good, listenerOf(side, 'udp'))
  t.equal(headerOf((await nextRequest(side)).request, 'Call-ID'), 'good')
  t.match(side.log.lines, [{ level: 'error', message: 'a SIP message failed' }])
})

test('what an address sends beyond its limit is dropped before it is read', async (t) => {
  const clock = createHandClock()
  const side = await open(t, { clock, limits: { exemptsLoopback: false, messagesPerSecond: 10, messageBurst: 3 } })
  const peer = await connectRaw(t, listenerOf(side, 'tcp'))
  for (let index = 0; index < 10; index += 1)
    peer.write(withVia(`c${index}`, `SIP/2.0/TCP 127.0.0.1;branch=z9hG4bK${index}`))
  for (const callId of ['c0', 'c1', 'c2']) t.equal(headerOf((await nextRequest(side)).request, 'Call-ID'), callId)
  peer.write('\r\n\r\n')
  await once(peer, 'data')
  clock.advance(100)
  peer.write(withVia('later', 'SIP/2.0/TCP 127.0.0.1;branch=z9hG4bK77'))
  t.equal(headerOf((await nextRequest(side)).request, 'Call-ID'), 'later')
  t.equal(side.transports.dropped().overLimit, 7)
  t.equal(side.log.lines.filter(({ level }) => level === 'warn').length, 1, 'a flood does not flood the log')
})

test('the limit counts each address by itself, an IPv6 network as one, fills steadily, and its table is bounded', (t) => {
  const clock = createHandClock()
  const limits = { messagesPerSecond: 2, messageBurst: 2, maxAddresses: 4, exemptsLoopback: true }
  const admits = createArrivalLimit(limits, clock.now)
  t.same(
    [1, 2, 3].map(() => admits('192.0.2.1')),
    [true, true, false],
  )
  t.ok(admits('192.0.2.2'))
  t.same(['2001:db8::1', '2001:db8:0:0:5::1', '2001:db8::9'].map(admits), [true, true, false])
  t.ok(admits('2001:db8:0:1::1'))
  clock.advance(500)
  t.same(
    [1, 2].map(() => admits('192.0.2.1')),
    [true, false],
  )
  t.ok(Array.from({ length: 100 }, () => admits('127.0.0.1')).every(Boolean), 'loopback is exempt')
  for (let index = 0; index < 10; index += 1) admits(`198.51.100.${index}`)
  t.ok(admits('192.0.2.1'), 'what was forgotten begins anew')
  t.end()
})

const describe = (framed: Framed): string =>
  framed.kind === 'message'
    ? `message ${framed.bytes.length}`
    : framed.kind === 'broken'
      ? `broken ${framed.fault.status}`
      : 'ping'

test('a stream is cut into its messages however it is torn, pings between them included', (t) => {
  const random = createRandom(18)
  const messages = Array.from({ length: 30 }, (_, index) =>
    withVia(`c${index}`, 'SIP/2.0/TCP a;branch=z9hG4bK1', random.below(400)),
  )
  const parts = messages.flatMap((message, index) => (index % 3 === 0 ? [Buffer.from('\r\n\r\n'), message] : [message]))
  const stream = Buffer.concat(parts)
  const expected = parts.map((part) => (part.length === 4 ? 'ping' : `message ${part.length}`))
  for (const most of [1, 2, 7, 100, 5_000, stream.length]) {
    const framer = createStreamFramer(65_536)
    const seen: string[] = []
    for (let at = 0; at < stream.length;) {
      const size = most === 1 ? 1 : 1 + random.below(most)
      for (const framed of framer.push(stream.subarray(at, at + size))) {
        if (framed.kind === 'message') t.ok(messages.some((message) => message.equals(framed.bytes)))
        seen.push(describe(framed))
      }
      at += size
    }
    t.same(seen, expected, `in pieces of up to ${most} bytes`)
    t.notOk(framer.isPartial())
  }
  t.end()
})

test('a stream that nobody can follow is broken off: no Content-Length, a malformed one, or more than 64 KiB', (t) => {
  const head = (length: string): string =>
    `OPTIONS sip:a SIP/2.0\r\nVia: SIP/2.0/TCP a;branch=z9hG4bK1\r\n${length}\r\n`
  const framed = (text: string | Buffer): string[] => createStreamFramer(65_536).push(Buffer.from(text)).map(describe)
  t.same(framed(head('')), ['broken 400'])
  t.same(framed(head('Content-Length: x\r\n')), ['broken 400'])
  t.same(framed(head('Content-Length: 1\r\nl: 2\r\n')), ['broken 400'])
  t.same(framed(head('Content-Length: 65536\r\n')), ['broken 413'])
  t.same(framed(Buffer.alloc(65_537, 120)), ['broken 413'])
  const [compact, folded] = [head('l : 2\r\n') + 'ab', head('Content-Length:\r\n 0\r\n')]
  t.same(framed(compact + folded), [`message ${compact.length}`, `message ${folded.length}`])
  const framer = createStreamFramer(65_536)
  framer.push(Buffer.from(head('')))
  t.same(framer.push(Buffer.from(head('l: 0\r\n'))), [], 'nothing follows')
  t.end()
})

test('on a connection CRLF CRLF is answered CRLF, and a request without Content-Length 400 and the end', async (t) => {
  const side = await open(t, { answersFaults: true })
  const peer = await connectRaw(t, listenerOf(side, 'tcp'))
  peer.write('\r\n\r\n')
  t.equal(String((await once(peer, 'data'))[0]), '\r\n')
  peer.write(String(withVia('c1', 'SIP/2.0/TCP 127.0.0.1;branch=z9hG4bK1')).replace(/Content-Length: 0\r\n/, ''))
  t.match(String((await once(peer, 'data'))[0]), 'SIP/2.0 400 Missing Content-Length')
  await once(peer, 'end')
  t.match(await side.next(), { kind: 'fault', status: 400 })
  t.match(await side.next(), { kind: 'closed' })
  t.equal(side.transports.connections(), 0)
})

test('a peer that says nothing, one that does not come to an end, and one that is idle are cut', async (t) => {
  const clock = createHandClock()
  const side = await open(t, { clock, limits: { firstMessage: 30_000, messageTime: 15_000, idle: 600_000 } })
  const to = listenerOf(side, 'tcp')
  const [silent, slow, idle] = [await connectRaw(t, to), await connectRaw(t, to), await connectRaw(t, to)]
  const good = withVia('c1', 'SIP/2.0/TCP 127.0.0.1;branch=z9hG4bK1')
  slow.write(good)
  idle.write(good)
  await nextRequest(side)
  await nextRequest(side)
  slow.write('OPTIONS sip:a')
  slow.write(good.subarray(13))
  slow.write('OPTIONS sip:')
  await nextRequest(side).catch(() => undefined)
  await pingPong(idle)
  const cutOf = (peer: net.Socket): Promise<unknown> => once(peer, 'close')
  const [silentCut, slowCut, idleCut] = [cutOf(silent), cutOf(slow), cutOf(idle)]
  clock.advance(16_000)
  t.same(await Promise.race([slowCut.then(() => 'slow'), silentCut.then(() => 'silent'), idleCut]), 'slow')
  clock.advance(15_000)
  t.same(await Promise.race([silentCut.then(() => 'silent'), idleCut]), 'silent')
  clock.advance(600_000)
  await idleCut
  t.equal(side.transports.connections(), 0)
  t.equal(clock.pending(), 0)
})

/** Everything written before has been read. */
async function pingPong(peer: net.Socket): Promise<void> {
  peer.write('\r\n\r\n')
  await once(peer, 'data')
}

test('connections are bounded, per address and in all, and a place is free again when one closes', async (t) => {
  const side = await open(t, { limits: { maxConnectionsPerAddress: 2 } })
  const to = listenerOf(side, 'tcp')
  const [first, second] = [await connectRaw(t, to), await connectRaw(t, to)]
  await pingPong(first)
  await pingPong(second)
  const third = await connectRaw(t, to)
  await once(first, 'close')
  t.equal(side.transports.dropped().connections, 1, 'the one that waits for longest makes way')
  t.match(await side.next(), { kind: 'closed' })
  await pingPong(third)
  second.destroy()
  t.match(await side.next(), { kind: 'closed' })
  await pingPong(await connectRaw(t, to))
  t.equal(side.transports.dropped().connections, 1)
  const full = await open(t, { limits: { maxConnections: 0 } })
  await t.rejects(full.transports.request(requestOf('c1'), targetOf(side, 'tcp'), 'z9hG4bK1'), /too many connections/)
})

/** Peers by their last byte: strangers below 10. */
const strangersBelow10 = { admits: () => true, isKnown: (address: string) => Number(address.split('.')[3]) >= 10 }

const connectFrom = async (t: Test, to: Endpoint, localAddress: string): Promise<net.Socket> => {
  const socket = net.connect({ host: to.address, port: to.port, localAddress }).on('error', () => undefined)
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

test('when all places are taken, idle connections of unknown peers are closed first, and none that carries a call', async (t) => {
  const side = await open(t, { limits: { maxConnections: 4 }, peers: strangersBelow10 })
  const to = listenerOf(side, 'tcp')
  const say = async (from: string, method = 'OPTIONS') => {
    const socket = await connectFrom(t, to, from)
    const text = String(withVia(from, `SIP/2.0/TCP ${from};branch=z9hG4bK${from}`)).replaceAll('OPTIONS', method)
    socket.write(text)
    return { socket, ...(await nextRequest(side)) }
  }
  const trunk = await say('127.0.0.10')
  const calling = await say('127.0.0.1', 'INVITE')
  await side.transports.respond(okTo(calling.request), calling.flow)
  const asked = await say('127.0.0.2')
  await side.transports.request(
    requestOf('ours'),
    { protocol: 'tcp', remote: asked.flow.remote, serverName: null },
    'z9hG4bK2',
  )
  const idle = await connectFrom(t, to, '127.0.0.3')
  const cut = once(idle.resume(), 'close')
  for (let count = 0; count < 20; count += 1) {
    const flooding = await connectFrom(t, to, `127.0.0.${4 + (count % 5)}`)
    await pingPong(flooding)
  }
  await cut
  const open3 = [trunk, calling, asked].map(({ socket }) => socket.destroyed)
  t.same(open3, [false, false, false])
  for (const { socket } of [trunk, calling]) {
    socket.resume()
    await pingPong(socket)
  }
})

test('an unknown peer that is idle is cut after two minutes, one that belongs here after an hour', async (t) => {
  const clock = createHandClock()
  const side = await open(t, { clock, peers: strangersBelow10 })
  const to = listenerOf(side, 'tcp')
  const [stranger, trunk] = [await connectFrom(t, to, '127.0.0.1'), await connectFrom(t, to, '127.0.0.10')]
  const good = withVia('c1', 'SIP/2.0/TCP 127.0.0.1;branch=z9hG4bK1')
  for (const socket of [stranger, trunk]) {
    socket.write(good)
    await nextRequest(side)
  }
  const cut = once(stranger.resume(), 'close')
  clock.advance(119_000)
  t.equal(side.transports.connections(), 2)
  clock.advance(1_000)
  await cut
  t.equal(side.transports.connections(), 1)
  clock.advance(3_400_000)
  t.equal(side.transports.connections(), 1)
  clock.advance(100_000)
  t.equal(side.transports.connections(), 0)
})

test('a banned address opens no connection, and those it has are closed: TCP and TLS', async (t) => {
  const clock = createHandClock()
  const banned = new Set<string>()
  const peers = { admits: (address: string) => !banned.has(address), isKnown: () => false }
  const side = await open(t, { clock, peers })
  const [tcp, secure] = [listenerOf(side, 'tcp'), listenerOf(side, 'tls')]
  const good = withVia('c1', 'SIP/2.0/TCP 127.0.0.1;branch=z9hG4bK1')
  const silent = await connectFrom(t, tcp, '127.0.0.1')
  const talking = await connectFrom(t, tcp, '127.0.0.1')
  const other = await connectFrom(t, tcp, '127.0.0.2')
  const overTls = tls.connect({
    host: secure.address,
    port: secure.port,
    localAddress: '127.0.0.1',
    ca: fakeTls.cert,
  } as never)
  t.teardown(() => overTls.destroy())
  await once(overTls, 'secureConnect')
  for (const socket of [silent, talking, other]) await pingPong(socket)
  overTls.write('\r\n\r\n')
  await once(overTls, 'data')
  banned.add('127.0.0.1')
  const closings = [silent, talking, overTls].map((socket) => once(socket.resume(), 'close'))
  talking.write(good)
  await closings[1]
  t.equal(side.waiting.filter(({ kind }) => kind === 'request').length, 0, 'what it says is not heard')
  clock.advance(1_000)
  await Promise.all(closings)
  await pingPong(other)
  for (const to of [tcp, secure]) {
    const again = net
      .connect({ host: to.address, port: to.port, localAddress: '127.0.0.1' })
      .on('error', () => undefined)
    await once(again.resume(), 'close')
  }
  t.equal(side.transports.connections(), 1)
})

test('a thousand sockets of one address leave room for another, whatever they do: nothing, half a message, half a handshake', async (t) => {
  const side = await open(t, { limits: { maxConnectionsPerAddress: 20, maxConnections: 60 } })
  const peers: net.Socket[] = []
  for (const [protocol, text] of [
    ['tcp', ''],
    ['tcp', 'INVITE sip:a@b SIP/2.0\r\nVia:'],
    ['tls', '\x16\x03'],
  ] as const)
    for (let count = 0; count < 340; count += 1) {
      const socket = await connectFrom(t, listenerOf(side, protocol), '127.0.0.2')
      if (text !== '') socket.write(text)
      peers.push(socket.resume())
    }
  const other = await connectFrom(t, listenerOf(side, 'tcp'), '127.0.0.3')
  await pingPong(other)
  t.ok(side.transports.dropped().connections >= 1_000)
  t.ok(side.transports.connections() <= 21)
})

test('a peer that does not read is cut when too much waits for it', async (t) => {
  const side = await open(t, { limits: { maxUnsentBytes: 100_000 } })
  const peer = await connectRaw(t, listenerOf(side, 'tcp'))
  peer.pause()
  peer.write(withVia('c1', 'SIP/2.0/TCP 127.0.0.1;branch=z9hG4bK1'))
  const { request, flow } = await nextRequest(side)
  const large = { ...okTo(request), body: new Uint8Array(60_000) }
  let failure: unknown
  for (let count = 0; count < 2_000 && !failure; count += 1)
    await side.transports.respond(large, flow).catch((error: unknown) => (failure = error))
  t.match(failure, { name: 'TransportError', message: 'the peer does not read' })
  t.match(await side.next(), { kind: 'closed' })
})

test('a request over 1300 bytes that was to go by UDP goes by TCP, and by UDP when TCP is refused', async (t) => {
  const alice = await open(t)
  const bob = await open(t, { protocols: ['udp'] })
  const port = listenerOf(bob, 'udp').port
  const target: Target = { protocol: 'udp', remote: { address: '127.0.0.1', port }, serverName: null }
  const refused = await alice.transports.request(requestOf('c1', 1_400), target, 'z9hG4bK1')
  t.equal(refused.flow.protocol, 'udp')
  t.match(headerOf(refused.sent, 'Via'), 'SIP/2.0/UDP')
  t.equal((await nextRequest(bob)).request.body.length, 1_400)
  const listener = net.createServer()
  listener.listen(port, '127.0.0.1')
  await once(listener, 'listening')
  t.teardown(() => listener.close())
  const again = await alice.transports.request(requestOf('c2', 1_400), target, 'z9hG4bK2')
  t.equal(again.flow.protocol, 'udp', 'who took no TCP is not asked again at once')
  const carol = await open(t)
  const accepted = once(listener, 'connection')
  const { flow, sent } = await carol.transports.request(requestOf('c3', 1_400), target, 'z9hG4bK3')
  t.equal(flow.protocol, 'tcp')
  t.match(headerOf(sent, 'Via'), 'SIP/2.0/TCP')
  const [socket] = (await accepted) as [net.Socket]
  t.match(String((await once(socket, 'data'))[0]), 'Call-ID: c3')
  socket.destroy()
  const small = await carol.transports.request(requestOf('c4', 100), target, 'z9hG4bK4')
  t.equal(small.flow.protocol, 'udp')
})

test('requests to one peer share a connection, also one the peer opened, and those sent at once open only one', async (t) => {
  const [alice, bob] = await Promise.all([open(t), open(t)])
  const target = targetOf(bob, 'tcp')
  const sent = await Promise.all(
    ['c1', 'c2', 'c3'].map((callId) => alice.transports.request(requestOf(callId), target, `z9hG4bK${callId}`)),
  )
  t.equal(new Set(sent.map(({ flow }) => flow.connection)).size, 1)
  const { flow } = await nextRequest(bob)
  const back = await bob.transports.request(
    requestOf('back'),
    { protocol: 'tcp', remote: flow.remote, serverName: null },
    'z9hG4bKb',
  )
  t.equal(back.flow.connection, flow.connection)
  t.match(await alice.next(), { kind: 'request', request: { method: 'OPTIONS' } })
  t.equal(alice.transports.connections() + bob.transports.connections(), 2)
})

test('an answer whose connection is gone goes by a new one to the port of Via', async (t) => {
  const [alice, bob] = await Promise.all([open(t), open(t)])
  const peer = await connectRaw(t, listenerOf(bob, 'tcp'))
  peer.write(withVia('c1', `SIP/2.0/TCP 127.0.0.1:${listenerOf(alice, 'tcp').port};branch=z9hG4bK1;rport`))
  const { request, flow } = await nextRequest(bob)
  peer.destroy()
  t.match(await bob.next(), { kind: 'closed', flow: { connection: flow.connection } })
  const [told] = bob.log.lines.filter(({ message }) => message === 'SIP connection closed')
  t.match(told, { fields: { address: undefined, personal: { address: '127.0.0.1' } } }, 'whose it was is masked')
  await bob.transports.respond(okTo(request), flow)
  t.match(await alice.next(), { kind: 'response', response: { status: 200 } })
})

test('a certificate is verified against the name that was asked for, unless that is switched off', async (t) => {
  const server = await open(t)
  const request = (side: Side, name: string | null) =>
    side.transports.request(requestOf('c1'), targetOf(server, 'tls', name), 'z9hG4bK1')
  const believing = await open(t)
  const first = await request(believing, 'localhost')
  await t.rejects(request(believing, 'sip.example.com'), { name: 'TransportError' }, 'another name')
  await t.rejects(
    request(await open(t, { ca: null }), 'localhost'),
    { name: 'TransportError' },
    'nobody vouches for it',
  )
  t.ok(await request(await open(t, { ca: null, verify: false }), 'sip.example.com'))
  const second = await request(believing, '127.0.0.1')
  t.not(second.flow.connection, first.flow.connection, 'what was proved for one name is not proved for another')
  t.equal((await request(believing, null)).flow.connection, first.flow.connection)
})

test('a handshake that does not come to its end is given up, on either side', async (t) => {
  const clock = createHandClock()
  const side = await open(t, { clock, limits: { connect: 5_000, handshake: 10_000 } })
  const listener = net.createServer()
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  t.teardown(() => listener.close())
  const { port } = listener.address() as net.AddressInfo
  const accepted = once(listener, 'connection')
  const target: Target = { protocol: 'tls', remote: { address: '127.0.0.1', port }, serverName: null }
  const asked = side.transports.request(requestOf('c1'), target, 'z9hG4bK1')
  asked.catch(() => undefined)
  const [socket] = (await accepted) as [net.Socket]
  await once(socket, 'data')
  clock.advance(5_000)
  await t.rejects(asked, /no connection in time/)
  socket.destroy()
  const silent = await connectRaw(t, listenerOf(side, 'tls'))
  // Somebody else's handshake, begun later, is over: the silent one has been taken.
  const other = tls.connect({ ...addressOf(listenerOf(side, 'tls')), ca: fakeTls.cert, servername: 'localhost' })
  await once(other, 'secureConnect')
  other.destroy()
  clock.advance(10_000)
  await once(silent, 'close')
  t.pass('it was cut')
})

const addressOf = ({ address, port }: Endpoint) => ({ host: address, port })

test('connections we opened are kept open through NATs, and one that fails ends no other', async (t) => {
  const clock = createHandClock()
  const side = await open(t, { clock, limits: { keepAlive: 30_000 } })
  const listener = net.createServer()
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  t.teardown(() => listener.close())
  const { port } = listener.address() as net.AddressInfo
  const accepted = once(listener, 'connection')
  await side.transports.request(
    requestOf('c1'),
    { protocol: 'tcp', remote: { address: '127.0.0.1', port }, serverName: null },
    'z9hG4bK1',
  )
  const [socket] = (await accepted) as [net.Socket]
  t.match(String((await once(socket, 'data'))[0]), 'OPTIONS')
  const theirs = await connectRaw(t, listenerOf(side, 'tcp'))
  theirs.write(withVia('c1', 'SIP/2.0/TCP 127.0.0.1;branch=z9hG4bK1'))
  await nextRequest(side)
  const toTheirs: unknown[] = []
  theirs.on('data', (bytes) => toTheirs.push(bytes))
  clock.advance(31_000)
  t.equal(String((await once(socket, 'data'))[0]), '\r\n\r\n')
  const closed = listenerOf(await open(t), 'tcp')
  await side.transports.close()
  await Promise.all([once(socket, 'close'), once(theirs, 'close')])
  t.same(toTheirs, [], 'a connection the peer opened is his to keep open')
  await t.rejects(
    side.transports.request(requestOf('c2'), { protocol: 'tcp', remote: closed, serverName: null }, 'z9hG4bK2'),
    {
      name: 'TransportError',
    },
  )
  await t.rejects(
    side.transports.request(requestOf('c2'), { protocol: 'udp', remote: closed, serverName: null }, 'z9hG4bK2'),
    {
      name: 'TransportError',
    },
  )
})

test('a connection whose peer answers is kept as long as a call, one whose peer answers nothing is given up', async (t) => {
  const clock = createHandClock()
  const side = await open(t, { clock, limits: { keepAlive: 0 } })
  const [answering, silent] = [await acceptOne(t), await acceptOne(t)]
  await side.transports.request(requestOf('c1'), answering.target, 'z9hG4bK1')
  await side.transports.request(requestOf('c2'), silent.target, 'z9hG4bK2')
  const [answers, keepsSilent] = [await answering.socket, await silent.socket]
  await Promise.all([once(answers, 'data'), once(keepsSilent, 'data')])
  answers.write('SIP/2.0 100 Trying\r\nVia: SIP/2.0/TCP 127.0.0.1;branch=z9hG4bK1\r\n')
  answers.write(`${commonHeaders('c1')}CSeq: 1 OPTIONS\r\nContent-Length: 0\r\n\r\n`)
  t.match(await side.next(), { kind: 'response', response: { status: 100 } })
  const given = once(keepsSilent, 'close')
  clock.advance(40_000)
  await given
  t.match(await side.next(), { kind: 'closed' })
  t.equal(side.transports.connections(), 1)
  clock.advance(600_000)
  const again = once(answers, 'data')
  await side.transports.request(requestOf('c3'), answering.target, 'z9hG4bK3')
  t.match(String((await again)[0]), 'c3', 'a call of ten minutes goes on by the same connection')
})

const commonHeaders = (callId: string): string =>
  `From: <sip:alice@example.com>;tag=a1\r\nTo: <sip:bob@example.com>;tag=b1\r\nCall-ID: ${callId}\r\n`

/** A peer that is called by TCP, and does nothing by itself. */
async function acceptOne(t: Test): Promise<{ readonly target: Target; readonly socket: Promise<net.Socket> }> {
  const listener = net.createServer()
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  t.teardown(() => listener.close())
  const { port } = listener.address() as net.AddressInfo
  const socket = once(listener, 'connection').then(([accepted]) => {
    t.teardown(() => (accepted as net.Socket).destroy())
    return accepted as net.Socket
  })
  return { target: { protocol: 'tcp', remote: { address: '127.0.0.1', port }, serverName: null }, socket }
}

test('when one address cannot be listened on nothing is left open', async (t) => {
  const taken = listenerOf(await open(t), 'tcp')
  const clock = createHandClock()
  const free = await openRawUdp(t)
  const listen = [
    { protocol: 'udp' as const, address: '127.0.0.1', port: 0 },
    { protocol: 'tcp' as const, address: '127.0.0.1', port: taken.port },
  ]
  const none = { received: () => undefined, faulted: () => undefined, closed: () => undefined }
  const settings = { externalAddress: { ipv4: null, ipv6: null }, tlsClient: { ca: null, verify: true } }
  await t.rejects(createTransports({ ...settings, listen, clock, log: createQuietLog() }, none), { code: 'EADDRINUSE' })
  const busy = [{ protocol: 'udp' as const, address: '127.0.0.1', port: free.port }]
  await t.rejects(createTransports({ ...settings, listen: busy, clock, log: createQuietLog() }, none), {
    code: 'EADDRINUSE',
  })
})

test('peers outside see the external address; loopback and those in our own network the bound one', (t) => {
  const ownAddresses = () => [
    { address: '127.0.0.1', network: networksOf(['127.0.0.1/8']), internal: true },
    { address: '10.1.0.5', network: networksOf(['10.1.0.5/16']), internal: false },
    { address: '198.51.100.5', network: networksOf(['198.51.100.5/24']), internal: false },
  ]
  const places = (address: string, external: string | null) =>
    createPlaces({
      bound: [{ protocol: 'udp', local: { address, port: 5070 } }],
      externalAddress: { ipv4: external, ipv6: null },
      ownAddresses,
    })
  const seenBy = (remote: string, address: string, external: string | null = '203.0.113.1'): string =>
    places(address, external).externalOf('udp', remote).address
  t.equal(seenBy('192.0.2.9', '10.1.0.5'), '203.0.113.1')
  t.equal(seenBy('10.1.7.7', '10.1.0.5'), '10.1.0.5')
  t.equal(seenBy('10.200.0.1', '10.1.0.5'), '10.1.0.5', 'the same private network, another part of it')
  t.equal(seenBy('192.168.0.1', '10.1.0.5'), '203.0.113.1')
  t.equal(seenBy('198.51.100.77', '198.51.100.5'), '198.51.100.5')
  t.equal(seenBy('127.0.0.1', '0.0.0.0'), '127.0.0.1')
  t.equal(seenBy('198.51.100.77', '0.0.0.0'), '198.51.100.5', 'bound to all: the address nearest to the peer')
  t.equal(seenBy('192.0.2.9', '0.0.0.0'), '203.0.113.1')
  t.equal(seenBy('192.0.2.9', '0.0.0.0', null), '10.1.0.5')
  t.same(places('0.0.0.0', null).externalOf('tcp', '10.1.7.7'), { address: '10.1.0.5', port: 5070 })
  t.equal(places('127.0.0.1', null).listenerFor('udp', '2001:db8::1'), null)
  t.end()
})

const zone: Zone = {
  'full.example': {
    NAPTR: [
      '50 10 s SIPS+D2T _sips._tcp.full.example',
      '10 20 s SIP+D2U _sip._udp.full.example',
      '10 10 s SIP+D2T _sip._tcp.full.example',
      '1 1 u E2U+sip .',
    ],
  },
  '_sip._tcp.full.example': { SRV: ['20 0 5062 b.full.example', '10 0 5061 a.full.example'] },
  '_sip._udp.full.example': { SRV: ['10 0 5060 a.full.example'] },
  '_sips._tcp.full.example': { SRV: ['10 0 5071 a.full.example'] },
  'a.full.example': { A: ['127.0.0.11'], AAAA: ['0:0:0:0:0:0:0:1'] },
  'b.full.example': { A: ['127.0.0.12', '127.0.0.13'] },
  'plain.example': { A: ['127.0.0.21'] },
  'srv.example': {},
  '_sip._udp.srv.example': { SRV: ['10 0 5090 a.full.example', '5 0 5091 nobody.example'] },
  'none.example': { A: ['127.0.0.31'] },
  '_sip._udp.none.example': { SRV: ['0 0 0 .'] },
  'broken.example': { fails: 2 },
  'mute.example': { fails: 'silent' },
}

async function openResolver(t: Test) {
  const dns = await startDnsServer(zone)
  const resolver = createDnsResolver({ servers: [dns.server], timeout: 2_000, tries: 1 })
  t.teardown(async () => {
    resolver.close()
    await dns.close()
  })
  const settings: ResolveOptions = {
    resolver,
    signal: new AbortController().signal,
    clock: systemClock,
    random: () => 0,
    families: [4],
  }
  const resolve = async (uri: string, more: Partial<ResolveOptions> = {}): Promise<string[]> => {
    const targets = await resolveTargets(destinationOf(readSipUri(uri)!), { ...settings, ...more })
    return targets.map(({ protocol, remote }) => `${protocol} ${remote.address} ${remote.port}`)
  }
  return { resolve, settings, questions: dns.questions }
}

test('an address, and localhost, need no DNS', async (t) => {
  const { resolve, questions } = await openResolver(t)
  t.same(await resolve('sip:bob@192.0.2.1'), ['udp 192.0.2.1 5060'])
  t.same(await resolve('sip:bob@192.0.2.1:5080;transport=TCP'), ['tcp 192.0.2.1 5080'])
  t.same(await resolve('sips:bob@192.0.2.1'), ['tls 192.0.2.1 5061'])
  t.same(await resolve('sip:bob@192.0.2.1;transport=tls'), ['tls 192.0.2.1 5061'])
  t.same(await resolve('sip:[2001:db8::1]', { families: [4, 6] }), ['udp 2001:db8::1 5060'])
  t.same(await resolve('sip:[2001:DB8:0::1]', { families: [4, 6] }), ['udp 2001:db8::1 5060'], 'in one spelling')
  t.same(await resolve('sip:[::ffff:c000:201]'), ['udp 192.0.2.1 5060'], 'IPv4 as IPv6 writes it')
  t.same(await resolve('sip:localhost:5070', { families: [4, 6] }), ['udp 127.0.0.1 5070', 'udp ::1 5070'])
  t.same(await resolve('sip:bob@full.example;maddr=192.0.2.3'), ['udp 192.0.2.3 5060'])
  await t.rejects(resolve('sips:192.0.2.1;transport=udp'), { name: 'TransportError' })
  await t.rejects(resolve('sip:192.0.2.1;transport=sctp'), { name: 'TransportError' })
  await t.rejects(resolve('sip:[2001:db8::1]'), { name: 'TransportError' }, 'a family we cannot send by')
  t.same(questions, [])
})

test('NAPTR chooses the protocols, SRV the servers, each in its order (RFC 3263 §4)', async (t) => {
  const { resolve, settings } = await openResolver(t)
  const [tcp, udp, secure] = [
    ['tcp 127.0.0.11 5061', 'tcp 127.0.0.12 5062', 'tcp 127.0.0.13 5062'],
    ['udp 127.0.0.11 5060'],
    ['tls 127.0.0.11 5071'],
  ]
  t.same(await resolve('sip:full.example'), [...tcp, ...udp, ...secure])
  t.same(await resolve('sips:full.example'), secure)
  t.same(await resolve('sip:full.example;transport=udp'), udp)
  t.same(await resolve('sip:full.example', { protocols: ['udp'] }), udp)
  t.same(await resolve('sip:full.example', { maxTargets: 2 }), tcp.slice(0, 2))
  t.same(await resolve('sip:full.example;transport=udp', { families: [4, 6] }), [...udp, 'udp ::1 5060'])
  const [first] = await resolveTargets({ host: 'full.example', port: null, transport: null, isSecure: true }, settings)
  t.equal(first?.serverName, 'full.example', 'the certificate is that of the domain, not of its server (RFC 5922)')
})

test('without NAPTR every protocol is asked for by SRV, and without SRV the address by the default port', async (t) => {
  const { resolve, questions } = await openResolver(t)
  t.same(await resolve('sip:srv.example'), ['udp 127.0.0.11 5090'], 'a server nobody knows is left out')
  t.same(await resolve('sip:plain.example'), ['udp 127.0.0.21 5060'])
  t.same(await resolve('sip:plain.example;transport=tls'), ['tls 127.0.0.21 5061'])
  t.same(await resolve('sips:plain.example'), ['tls 127.0.0.21 5061'])
  questions.splice(0)
  t.same(await resolve('sip:plain.example:5077'), ['udp 127.0.0.21 5077'])
  t.same(questions, ['A plain.example'], 'a port leaves nothing to ask but the address')
  questions.splice(0)
  await t.rejects(resolve('sip:none.example;transport=udp'), /no address was found/, 'it is said not to be offered')
  t.same(questions, ['SRV _sip._udp.none.example'])
  await t.rejects(resolve('sip:unknown.example'), /no address was found/)
  await t.rejects(resolve('sip:broken.example'), /the DNS did not answer/)
})

test('a DNS that says nothing costs a bounded time, and nobody waits for who has gone', async (t) => {
  const { settings } = await openResolver(t)
  const clock = createHandClock()
  const gone = new AbortController()
  const mute = { host: 'mute.example', port: null, transport: null, isSecure: false }
  const late = resolveTargets(mute, { ...settings, clock, timeout: 5_000 })
  clock.advance(5_000)
  await t.rejects(late, /not answer for mute.example in time/)
  const unwanted = resolveTargets(mute, { ...settings, signal: gone.signal })
  gone.abort()
  await t.rejects(unwanted, /nobody waits/)
  t.equal(clock.pending(), 0)
})

test('among SRV records of one priority chance decides by their weights (RFC 2782)', (t) => {
  const random = createRandom(2782)
  const records = [
    { priority: 10, weight: 70, port: 1, name: 'a' },
    { priority: 10, weight: 30, port: 1, name: 'b' },
    { priority: 10, weight: 0, port: 1, name: 'c' },
    { priority: 5, weight: 1, port: 1, name: 'first' },
  ]
  const firsts = Array.from({ length: 2_000 }, () => srvOrder(records, random.next).map(({ name }) => name))
  t.ok(firsts.every((names) => names[0] === 'first' && names.length === 4))
  const share = (name: string): number => firsts.filter((names) => names[1] === name).length / firsts.length
  t.ok(Math.abs(share('a') - 0.7) < 0.05, `a: ${share('a')}`)
  t.ok(Math.abs(share('b') - 0.3) < 0.05, `b: ${share('b')}`)
  t.ok(share('c') < 0.05, `c: ${share('c')}`)
  t.end()
})
