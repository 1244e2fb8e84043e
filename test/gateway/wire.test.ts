/** What the front door believes from the network: connectivity checks, DTLS handshakes, SRTP. */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { test, type Test } from 'tap'
import { RTCCertificate } from 'werift'
import { openMediaSocket } from '../../gateway/werift/media-socket.ts'
import { isRtcp, readRtp } from '../../media/rtp/rtp-wire.ts'
import { checkedUserOf, makeCheck } from '../../gateway/werift/stun.ts'
import { createWebStream, type Beat, type WebStream } from '../../gateway/werift/web-stream.ts'
import type { NegotiatedAudio, RtpPacket } from '../../model/rtp-transport.ts'
import { newCertificate } from '../scenes/dtls-client.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRandom } from '../fake/random.ts'
import { until } from '../scenes/in-time.ts'

const credentials = { usernameFragment: 'abcdefgh', password: 'p'.repeat(24) }

const fingerprintsOf = (certificate: RTCCertificate) => certificate.getFingerprints()

const audio: NegotiatedAudio = {
  codec: 'opus',
  payloadType: 111,
  clockRateHz: 48000,
  telephoneEventPayloadType: null,
  comfortNoisePayloadType: null,
  packetMs: 20,
  silence: 'sparse',
}

type PairOptions = {
  readonly server: RTCCertificate
  readonly client: RTCCertificate
  /** What signaling told the server about the client. */
  readonly announced?: RTCCertificate
  /** What arrives of a datagram of the client. */
  readonly network?: (datagram: Buffer) => readonly Buffer[]
}

/** Two ends back to back, on a clock that gives each datagram its time. */
function createPair({ server, client, announced = client, network = (datagram) => [datagram] }: PairOptions) {
  const result = Promise.withResolvers<string>()
  const clientConnected = Promise.withResolvers<void>()
  const ended: string[] = []
  const packets: RtpPacket[] = []
  let onPacket: (packet: RtpPacket) => void = () => undefined
  let time = 0
  const ticks = new Set<(at: number) => void>()
  const beat: Beat = (onTick) => {
    ticks.add(onTick)
    return () => ticks.delete(onTick)
  }
  const shared = { beat, now: () => (time += 20) }
  const serverEnd: WebStream = createWebStream({
    ...shared,
    send: (datagram) => void setImmediate(() => clientEnd.receive(datagram)),
    packet(packet) {
      packets.push(packet)
      onPacket(packet)
    },
  })
  const clientEnd: WebStream = createWebStream({
    ...shared,
    send(datagram) {
      for (const arriving of network(datagram)) setImmediate(() => serverEnd.receive(arriving))
    },
    packet: () => undefined,
  })
  serverEnd.agree({
    role: 'server',
    certificate: server,
    fingerprints: fingerprintsOf(announced),
    audio,
    connected: () => result.resolve('connected'),
    ended(cause, details) {
      ended.push(cause)
      result.resolve(`${cause} ${details}`)
    },
  })
  clientEnd.agree({
    role: 'client',
    certificate: client,
    fingerprints: fingerprintsOf(server),
    audio,
    connected: () => clientConnected.resolve(),
    ended: () => undefined,
  })
  clientEnd.start()
  return {
    serverEnd,
    clientEnd,
    result: result.promise,
    connected: Promise.all([result.promise, clientConnected.promise]).then(([how]) => how),
    heard: (sequenceNumber: number) =>
      new Promise<RtpPacket>((resolve) => {
        onPacket = (packet) => packet.sequenceNumber === sequenceNumber && resolve(packet)
      }),
    packets,
    ended,
    /** Time passes, and both ends say what is due then. */
    async pass(ms: number) {
      time += ms
      for (const tick of ticks) tick(time)
      // Whatever was sent has arrived.
      for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    },
  }
}

const soundOf = (sequenceNumber: number, text = 'hi'): RtpPacket => ({
  payloadType: audio.payloadType,
  marker: false,
  sequenceNumber: sequenceNumber & 0xffff,
  timestamp: sequenceNumber * 960,
  payload: Buffer.from(text),
})

const isRtp = (datagram: Buffer): boolean => datagram.readUInt8(0) >> 6 === 2

test('a client that shows another certificate than the announced one gets no call', async (t) => {
  const [server, client, announced] = [await newCertificate(), await newCertificate(), await newCertificate()]
  const pair = createPair({ server, client, announced })
  t.equal(await pair.result, 'failed DTLS: the certificate is not the announced one')
  pair.clientEnd.close()
})

test('a client that shows the announced certificate without owning its key gets no call', async (t) => {
  const [server, owner, thief] = [await newCertificate(), await newCertificate(), await newCertificate()]
  const stolen = Object.assign(Object.create(RTCCertificate.prototype) as RTCCertificate, owner, {
    privateKey: thief.privateKey,
  })
  const pair = createPair({ server, client: stolen, announced: owner })
  t.equal(await pair.result, 'failed DTLS: the handshake is not signed')
  pair.clientEnd.close()
})

test('a connected end shrugs off forged alerts, new hellos, noise, and sound that is altered or comes again', async (t) => {
  const [server, client] = [await newCertificate(), await newCertificate()]
  const altered = (datagram: Buffer): Buffer => {
    const forged = Buffer.from(datagram)
    forged[20] = (forged[20] ?? 0) ^ 1
    return forged
  }
  const network = (datagram: Buffer): Buffer[] =>
    isRtp(datagram) ? [altered(datagram), Buffer.from(datagram), Buffer.from(datagram)] : [datagram]
  const { serverEnd, clientEnd, connected, heard, packets, ended } = createPair({ server, client, network })
  t.equal(await connected, 'connected')
  const closeNotify = [1, 0]
  serverEnd.receive(Buffer.from([21, 254, 253, 0, 0, 0, 0, 0, 0, 0, 9, 0, 2, ...closeNotify]))
  serverEnd.receive(Buffer.from([21, 254, 253, 0, 1, 0, 0, 0, 0, 0, 9, 0, 26, ...Buffer.alloc(26)]))
  serverEnd.receive(Buffer.from([22, 254, 253, 0, 0, 0, 0, 0, 0, 0, 9, 0, 3, 1, 0, 0]))
  // A HelloRequest hides the ClientHello behind it in the same record.
  const [helloRequest, clientHello] = [Buffer.alloc(12), Buffer.from([1, 0, 0, 2, 0, 9, 0, 0, 0, 0, 0, 2, 254, 253])]
  const hidden = Buffer.concat([helloRequest, clientHello])
  serverEnd.receive(Buffer.concat([Buffer.from([22, 254, 253, 0, 0, 0, 0, 0, 0, 0, 10, 0, hidden.length]), hidden]))
  const random = createRandom(7)
  for (let round = 0; round < 2000; round += 1)
    serverEnd.receive(Buffer.from(Array.from({ length: random.below(80) }, () => random.below(256))))
  const last = heard(10)
  clientEnd.send(soundOf(9))
  clientEnd.send(soundOf(10))
  t.match(await last, { sequenceNumber: 10, payload: Buffer.from('hi') })
  t.same(
    packets.map(({ sequenceNumber }) => sequenceNumber),
    [9, 10],
  )
  t.same(ended, [])
  clientEnd.close()
  await new Promise((resolve) => setImmediate(resolve))
  t.same(ended, ['hung_up'])
  serverEnd.send(soundOf(1))
  t.equal(serverEnd.stats().packetsSent, 0)
})

test('sound goes on after an outage that hid the wrap of the sequence numbers', async (t) => {
  const [server, client] = [await newCertificate(), await newCertificate()]
  const isLost = (sequence: number) => sequence > 65_400 || sequence < 400
  const network = (datagram: Buffer): Buffer[] =>
    isRtp(datagram) && isLost(datagram.readUInt16BE(2)) ? [] : [datagram]
  const { clientEnd, connected, heard, packets } = createPair({ server, client, network })
  t.equal(await connected, 'connected')
  const last = heard(419)
  // What is sent begins in the lower half, so the way to the wrap has steps.
  for (const step of [400, 30_000, 60_000]) clientEnd.send(soundOf(step))
  for (let sequence = 65_300; sequence < 65_536 + 420; sequence += 1) clientEnd.send(soundOf(sequence))
  await last
  t.equal(packets.length, 3 + 101 + 20)
  clientEnd.close()
})

test('both ends tell each other by SRTCP what they hear, and the last word is a goodbye before that of DTLS', async (t) => {
  const [server, client] = [await newCertificate(), await newCertificate()]
  const fromClient: Buffer[] = []
  const network = (datagram: Buffer): Buffer[] => {
    fromClient.push(Buffer.from(datagram))
    const isLost = isRtp(datagram) && !isRtcp(datagram) && datagram.readUInt16BE(2) === 4
    return isLost ? [] : [datagram]
  }
  const { serverEnd, clientEnd, connected, heard, pass, ended } = createPair({ server, client, network })
  t.equal(await connected, 'connected')
  fromClient.length = 0
  const talk = async (from: number, to: number): Promise<void> => {
    const last = heard(to)
    for (let sequence = from; sequence <= to; sequence += 1) {
      clientEnd.send(soundOf(sequence))
      serverEnd.send(soundOf(sequence))
    }
    await last
  }
  await talk(1, 9)
  await pass(1000)
  await talk(10, 12)
  // Each answers the first report of the other.
  await pass(8000)
  const [atServer, atClient] = [serverEnd.stats().quality, clientEnd.stats().quality]
  t.match(atServer, { packetsLost: 1, peer: { packetsLost: 0, fractionLost: 0 } })
  t.match(atClient, { packetsLost: 0, peer: { packetsLost: 1 } })
  for (const { roundTripMs } of [atServer, atClient])
    t.ok(roundTripMs !== null && roundTripMs >= 0 && roundTripMs < 1000)
  const reports = fromClient.filter(isRtcp)
  t.equal(reports.length, 2)
  t.notOk(
    reports.some((report) => report.includes(clientEnd.cname)),
    'nobody reads them on the way',
  )
  clientEnd.close()
  const [goodbye, farewell] = fromClient.slice(-2)
  t.ok(goodbye && isRtcp(goodbye))
  t.equal(farewell?.[0], 21)
  await pass(0)
  t.same(ended, ['hung_up'])
})

test('reports that are forged or come again are none', async (t) => {
  const [server, client] = [await newCertificate(), await newCertificate()]
  const reports: Buffer[] = []
  const network = (datagram: Buffer): Buffer[] => {
    if (!isRtp(datagram) || !isRtcp(datagram)) return [datagram]
    reports.push(Buffer.from(datagram))
    return []
  }
  const { serverEnd, clientEnd, connected, heard, pass } = createPair({ server, client, network })
  t.equal(await connected, 'connected')
  const last = heard(2)
  for (const sequence of [1, 2]) {
    serverEnd.send(soundOf(sequence))
    clientEnd.send(soundOf(sequence))
  }
  await last
  await pass(10_000)
  const [report] = reports
  if (!report) throw new Error('no report')
  const told = () => serverEnd.stats().quality.peer
  for (let at = 0; at < report.length; at += 1) {
    const forged = Buffer.from(report)
    forged[at]! ^= 1
    await pass(100)
    serverEnd.receive(forged)
  }
  t.equal(told(), null, 'forged')
  serverEnd.receive(Buffer.from(report))
  const known = told()
  t.match(known, { packetsLost: 0 })
  serverEnd.receive(Buffer.from(report))
  t.equal(told(), known, 'the same one again')
})

test('whose check it is, is read from the heads of attributes and from nothing that is made to cost', (t) => {
  const check = makeCheck({ usernameFragment: 'abcdefgh', password: 'p'.repeat(24) }, 'other').bytes
  t.equal(checkedUserOf(check), 'abcdefgh')
  const costly = Buffer.alloc(60_000)
  check.copy(costly, 0, 0, 20)
  costly.writeUInt16BE(0x0020, 20)
  costly.writeUInt16BE(59_000, 22)
  t.equal(checkedUserOf(costly), null, 'an address of 59,000 bytes is not looked at')
  t.equal(checkedUserOf(check.subarray(0, 24)), null, 'an attribute that is cut off')
  const random = createRandom(11)
  for (let round = 0; round < 5000; round += 1) {
    const mutated = Buffer.from(check)
    for (let change = 0; change < 4; change += 1) mutated[20 + random.below(mutated.length - 20)] = random.below(256)
    const user = checkedUserOf(mutated.subarray(0, 20 + random.below(mutated.length - 19)))
    if (user !== null && typeof user !== 'string') t.fail('neither a name nor nothing')
  }
  t.end()
})

async function setUpSocket(t: Test, now?: () => number) {
  const options = { bindAddress: '127.0.0.1', portRange: [0, 0], log: createQuietLog() } as const
  const media = await openMediaSocket({ ...options, ...(now && { now }) })
  t.teardown(() => media.close())
  return { media, client: await openClient(t) }
}

async function openClient(t: Test): Promise<Socket> {
  const client = createSocket('udp4').bind(0, '127.0.0.1')
  await once(client, 'listening')
  t.teardown(() => void client.close())
  return client
}

const reply = async (client: Socket): Promise<Buffer> => ((await once(client, 'message')) as [Buffer])[0]

test('a check is answered when it is signed with the password of the session, and opens the way for its address only', async (t) => {
  const { media, client } = await setUpSocket(t)
  const received: string[] = []
  const done = Promise.withResolvers<void>()
  const path = media.open(credentials, (datagram) => {
    received.push(datagram.toString())
    done.resolve()
  })
  const send = (bytes: Buffer) => client.send(bytes, media.port, '127.0.0.1')
  const good = makeCheck(credentials, 'me')
  path.send(Buffer.from('to nobody'))
  send(Buffer.from('\x80 too early'))
  send(makeCheck({ ...credentials, password: 'wrong'.repeat(5) }, 'me').bytes)
  send(makeCheck({ ...credentials, usernameFragment: 'unknown1' }, 'me').bytes)
  send(good.bytes.subarray(0, 30))
  send(good.bytes)
  const first = await reply(client)
  t.ok(good.isAnsweredBy(first), 'the first answer is the one to the signed check')
  send(Buffer.from('\x80 now'))
  await done.promise
  t.same(received, [Buffer.from('\x80 now').toString()])
  path.send(Buffer.from('to the client'))
  t.equal((await reply(client)).toString(), 'to the client')
  path.close()
  path.send(Buffer.from('too late'))
  const again = media.open(credentials, () => undefined)
  t.throws(() => media.open(credentials, () => undefined), /in use/)
  again.close()
})

test('an address belongs to the call that lives there, whatever checks another call sends under it', async (t) => {
  const { media, client } = await setUpSocket(t)
  const heard: string[] = []
  const [victim, attacker] = [credentials, { usernameFragment: 'attacker', password: 'q'.repeat(24) }]
  const [path, attackers] = [victim, attacker].map((own, index) =>
    media.open(own, (datagram) => void heard.push(`${index} ${datagram.toString()}`)),
  )
  const send = (bytes: Buffer | string) => client.send(bytes, media.port, '127.0.0.1')
  const check = makeCheck(victim, 'me')
  send(check.bytes)
  t.ok(check.isAnsweredBy(await reply(client)))
  for (let count = 0; count < 3; count += 1) send(makeCheck(attacker, 'me').bytes)
  send('before DTLS')
  await until(() => heard.length === 1)
  attackers?.send(Buffer.from('for the attacker'))
  path?.send(Buffer.from('for the victim'))
  t.equal((await reply(client)).toString(), 'for the victim', 'nor is there an answer to the attacker')
  const { address, port } = client.address()
  path?.secured({ address, port })
  send(makeCheck(attacker, 'me').bytes)
  send('after it')
  await until(() => heard.length === 2)
  path?.close()
  send(makeCheck(attacker, 'me').bytes)
  await reply(client)
  send('of the next')
  await until(() => heard.length === 3)
  t.same(heard, ['0 before DTLS', '0 after it', '1 of the next'])
})

test('of one call a bounded number of checks is computed and of addresses kept, and strangers use up none of the client’s', async (t) => {
  let at = 0
  const { media, client } = await setUpSocket(t, () => at)
  const heard: string[] = []
  const path = media.open(credentials, (datagram) => void heard.push(datagram.toString()))
  const send = (from: Socket, bytes: Buffer | string) => from.send(bytes, media.port, '127.0.0.1')
  const good = () => makeCheck(credentials, 'me').bytes
  let answers = 0
  client.on('message', () => void (answers += 1))
  send(client, good())
  await until(() => answers === 1)
  const stranger = await openClient(t)
  const forged = { ...credentials, password: 'wrong'.repeat(5) }
  for (let count = 0; count < 300; count += 1) send(stranger, makeCheck(forged, 'me').bytes)
  for (let count = 0; count < 80; count += 1) send(client, good())
  send(client, 'after them')
  await until(() => heard.includes('after them'))
  await until(() => answers === 51)
  at += 10_000
  const others = await Promise.all(Array.from({ length: 9 }, () => openClient(t)))
  for (const [index, other] of others.entries()) {
    send(other, good())
    await reply(other)
    send(other, `way ${index}`)
    await until(() => heard.includes(`way ${index}`))
  }
  send(others[0]!, 'of the first way')
  send(others[1]!, 'of the second way')
  await until(() => heard.includes('of the second way'))
  t.notOk(heard.includes('of the first way'), 'eight are kept')
  t.equal(answers, 51, 'fifty at once')
  t.ok(path.isTarget({ address: '127.0.0.1', port: others[8]!.address().port }))
})

test('what claims to come from port 0, where nothing can be sent, ends no socket', async (t) => {
  const { media, client } = await setUpSocket(t)
  const path = media.open({ usernameFragment: 'user', password: 'p'.repeat(24) }, () => {})
  const to = { address: '127.0.0.1', port: 0 }
  path.sendTo(Buffer.from('nowhere'), to)
  path.secured(to)
  path.send(Buffer.from('nowhere'))
  const answer = reply(client)
  path.sendTo(Buffer.from('here'), { address: '127.0.0.1', port: client.address().port })
  t.equal(String(await answer), 'here')
})

test('the first free port of the range is taken, and none left is an error', async (t) => {
  const { media } = await setUpSocket(t)
  const log = createQuietLog()
  const next = await openMediaSocket({ bindAddress: '127.0.0.1', portRange: [media.port, media.port + 20], log })
  t.ok(next.port > media.port && next.port <= media.port + 20)
  await t.rejects(openMediaSocket({ bindAddress: '127.0.0.1', portRange: [media.port, media.port], log }), {
    code: 'EADDRINUSE',
  })
  await next.close()
  await next.close()
})

test('RTP is read with contributing sources, extension and padding, and never beyond its end', (t) => {
  const packet = Buffer.from([
    0xb1, 0xef, 0, 7, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 2, 0xbe, 0xde, 0, 1, 1, 2, 3, 4, 65, 66, 0, 2,
  ])
  t.match(readRtp(packet), {
    payloadType: 111,
    marker: true,
    sequenceNumber: 7,
    timestamp: 9,
    payload: Buffer.from('AB'),
  })
  const random = createRandom(11)
  for (let round = 0; round < 5000; round += 1) {
    const length = random.below(40)
    const bytes = Buffer.from(
      Array.from({ length }, (_, at) => (at === 0 ? 0x80 | random.below(64) : random.below(256))),
    )
    const read = readRtp(bytes)
    if (read && read.payload.length > Math.max(0, length - 12)) t.fail('beyond the end')
  }
  t.end()
})
