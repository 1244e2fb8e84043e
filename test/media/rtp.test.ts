/** The media of phone calls: RTP and RTCP on real sockets of this host, and the rules behind them with time in hand. */
import { once } from 'node:events'
import { test, type Test } from 'tap'
import { RtcpPacketConverter, RtcpRrPacket, RtcpSrPacket } from 'werift'
import type { NegotiatedAudio, RtpPacket } from '../../model/rtp-transport.ts'
import { createIncomingRtp } from '../../media/rtp/incoming-rtp.ts'
import { createMediaPorts, type MediaPortsOptions } from '../../media/rtp/media-ports.ts'
import { createPeerSource, type Address } from '../../media/rtp/peer-source.ts'
import { createPortRange } from '../../media/rtp/port-range.ts'
import { createReception } from '../../media/rtp/rtcp/reception.ts'
import { createRtcpLink } from '../../media/rtp/rtcp/rtcp-link.ts'
import { createRtcpSession } from '../../media/rtp/rtcp/rtcp-session.ts'
import { readRtcp, writeRtcp } from '../../media/rtp/rtcp/rtcp-wire.ts'
import type { RtpEndpoint } from '../../media/rtp/rtp-endpoint.ts'
import { createSecurity } from '../../media/rtp/srtp/security.ts'
import { freeEvenPort, openSocketPair } from '../../media/rtp/socket-pair.ts'
import { createSrtpKey } from '../../media/rtp/srtp/srtp-keys.ts'
import { createStreamSplice } from '../../media/rtp/stream-splice.ts'
import type { CryptoSuite, MediaSession } from '../../media/rtp/media-session.ts'
import { createJitterBuffer } from '../../media/rtp/jitter-buffer.ts'
import { bindUdp, closeUdp } from '../../media/rtp/udp-socket.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRandom } from '../fake/random.ts'
import { createRtpPeer, rtpOf, type RtpPeer } from '../fake/rtp-peer.ts'
import { until } from '../scenes/in-time.ts'

const audio: NegotiatedAudio = {
  codec: 'pcmu',
  payloadType: 0,
  clockRateHz: 8000,
  telephoneEventPayloadType: 101,
  comfortNoisePayloadType: 13,
  packetMs: 20,
  silence: 'continuous',
}

const sessionWith = (remote: MediaSession['remote'], change: Partial<MediaSession> = {}): MediaSession => ({
  remote,
  audio,
  direction: 'sendrecv',
  srtp: null,
  rtcpMux: false,
  ...change,
})

const packetOf = (sequenceNumber: number, text = 'sound'): RtpPacket => ({
  payloadType: 0,
  marker: sequenceNumber === 1,
  sequenceNumber,
  timestamp: sequenceNumber * 160,
  payload: Buffer.from(text),
})

function createPorts(t: Test, change: Partial<MediaPortsOptions> = {}) {
  const time = { now: 1000 }
  const log = createQuietLog()
  const ports = createMediaPorts({
    bindAddress: '127.0.0.1',
    externalAddress: null,
    portRange: [0, 0],
    now: () => time.now,
    log,
    ...change,
  })
  t.teardown(() => ports.close())
  return { ports, time, log }
}

/** An endpoint, and what it told. */
async function openEndpoint(ports: ReturnType<typeof createMediaPorts>) {
  const packets: RtpPacket[] = []
  const learned: string[] = []
  let alive = 0
  let wake: () => void = () => undefined
  const endpoint = await ports.open({
    packet(packet) {
      packets.push(packet)
      wake()
    },
    alive() {
      alive += 1
      wake()
    },
    learned: ({ port, asSignaled }) => void learned.push(`${port} ${asSignaled}`),
  })
  const until = async (met: () => boolean): Promise<void> => {
    while (!met()) await new Promise<void>((resolve) => (wake = resolve))
  }
  return {
    endpoint,
    learned,
    alive: () => alive,
    signsOfLife: (count: number) => until(() => alive >= count),
    /** Resolves when so many packets were heard in all; tells the last one's payload. */
    async heard(count: number): Promise<string> {
      await until(() => packets.length >= count)
      return Buffer.from(packets.at(-1)?.payload ?? []).toString()
    },
    packets,
    sequence: () => packets.map(({ sequenceNumber }) => sequenceNumber),
  }
}

async function openPeer(t: Test, address?: string): Promise<RtpPeer> {
  const peer = await createRtpPeer(address)
  t.teardown(() => peer.close())
  return peer
}

const plain = ({ local }: { readonly local: RtpEndpoint['local'] }): MediaSession['remote'] => local

for (const address of ['127.0.0.1', '::1'])
  for (const suite of [null, 'AES_CM_128_HMAC_SHA1_80', 'AES_CM_128_HMAC_SHA1_32'] as const)
    test(`two ends talk over ${address}, ${suite ?? 'plain RTP'}, and report to each other`, async (t) => {
      const { ports, time } = createPorts(t, { bindAddress: address })
      const [a, b] = [await openEndpoint(ports), await openEndpoint(ports)]
      const keys = suite && { a: createSrtpKey(suite), b: createSrtpKey(suite) }
      const rtcpMux = suite === 'AES_CM_128_HMAC_SHA1_32'
      a.endpoint.use(sessionWith(b.endpoint.local, { rtcpMux, srtp: keys && { ours: keys.a, theirs: keys.b } }))
      b.endpoint.use(sessionWith(a.endpoint.local, { rtcpMux, srtp: keys && { ours: keys.b, theirs: keys.a } }))
      for (let seq = 1; seq <= 10; seq += 1) {
        time.now += 20
        a.endpoint.send(packetOf(seq, `from a ${seq}`))
        b.endpoint.send(packetOf(seq + 65_530, `from b ${seq}`))
        t.equal(await b.heard(seq), `from a ${seq}`)
        t.equal(await a.heard(seq), `from b ${seq}`)
      }
      t.same(b.packets[0], { ...packetOf(1, 'from a 1') })
      t.same(
        a.sequence(),
        [...Array(10).keys()].map((step) => (65_531 + step + 0x8000) & 0xffff),
        'from the lower half',
      )
      t.same(a.learned, [`${b.endpoint.local.port} true`])
      a.endpoint.tick((time.now += 10_000))
      await b.signsOfLife(1)
      time.now += 30
      b.endpoint.tick(time.now)
      await a.signsOfLife(1)
      const { quality, ...counts } = a.endpoint.stats()
      t.match(counts, { packetsSent: 10, packetsReceived: 10, dropped: { strangers: 0, flood: 0, unusable: 0 } })
      t.match(quality, { packetsLost: 0, peer: { packetsLost: 0, fractionLost: 0 } })
      t.ok(Math.abs(quality?.roundTripMs ?? 99) < 1, 'no time passes on the way; what the peer waited does not count')
      await a.endpoint.close()
      await Promise.all([a.endpoint.close(), b.endpoint.close('completed')])
      t.equal(ports.inUse(), 0)
    })

test('media of the signaled host from another port is the peer behind NAT: the answer goes there', async (t) => {
  const { ports } = createPorts(t)
  const [peer, behind] = [await openPeer(t), await openPeer(t)]
  const { endpoint, heard, learned } = await openEndpoint(ports)
  endpoint.use(sessionWith(plain(peer)))
  endpoint.send(packetOf(1))
  t.equal((await peer.next()).port, endpoint.local.port, 'at first where SDP says')
  await behind.send(endpoint.local, { sequenceNumber: 1 })
  await heard(1)
  endpoint.send(packetOf(2))
  t.equal((await behind.next()).bytes.readUInt16BE(2), 2)
  t.same(learned, [`${behind.local.port} false`])
})

test('a stranger takes no call over, however long the peer is silent, is not heard, and is counted', async (t) => {
  const { ports, log, time } = createPorts(t)
  const [peer, stranger] = [await openPeer(t), await openPeer(t, '127.0.0.2')]
  const { endpoint, heard, sequence, learned } = await openEndpoint(ports)
  endpoint.use(sessionWith(plain(peer)))
  await stranger.send(endpoint.local, { sequenceNumber: 500 })
  await stranger.send(endpoint.local, { sequenceNumber: 501 })
  await peer.send(endpoint.local, { sequenceNumber: 1 })
  await heard(1)
  for (let seq = 502; seq < 520; seq += 1) await stranger.send(endpoint.local, { sequenceNumber: seq })
  await peer.send(endpoint.local, { sequenceNumber: 2 })
  await heard(2)
  t.equal(endpoint.stats().dropped?.strangers, 20)
  for (const silentMs of [3_001, 60_000]) {
    time.now += silentMs
    // Sound, a key and comfort noise, under its own SSRC and under the peer's.
    for (const payloadType of [0, 101, 13])
      for (const ssrc of [7, 99])
        for (let seq = 3; seq < 23; seq += 1)
          await stranger.send(endpoint.local, { sequenceNumber: seq, payloadType, ssrc })
    // A session refresh and a hold say nothing of another place.
    endpoint.use(sessionWith(plain(peer), { direction: 'inactive' }))
    endpoint.use(sessionWith({ ...peer.local, address: '0.0.0.0' }))
    endpoint.use(sessionWith(plain(peer)))
  }
  time.now += 20
  await peer.send(endpoint.local, { sequenceNumber: 3 })
  await heard(3)
  t.same(sequence(), [1, 2, 3])
  endpoint.send(packetOf(9))
  t.equal((await peer.next()).bytes.readUInt16BE(2), 9)
  t.equal(stranger.waiting(), 0)
  t.same(learned, [`${peer.local.port} true`])
  t.match(endpoint.stats().dropped, { strangers: 260, lastStranger: '127.0.0.2' })
  await endpoint.close()
  t.match(log.lines, [{ message: 'RTP was dropped', fields: { strangers: 260 } }])
})

test('a stranger who shoots before the peer loses the call at the first packet of the signaled host', async (t) => {
  for (const port of ['signaled', 'another']) {
    const { ports } = createPorts(t)
    const [peer, behind, stranger] = [await openPeer(t), await openPeer(t), await openPeer(t, '127.0.0.2')]
    const from = port === 'signaled' ? peer : behind
    const { endpoint, heard, learned } = await openEndpoint(ports)
    endpoint.use(sessionWith(plain(peer)))
    for (let seq = 1; seq < 10; seq += 1)
      await stranger.send(endpoint.local, { sequenceNumber: seq, payload: 'forged' })
    await heard(7)
    await from.send(endpoint.local, { sequenceNumber: 1, payload: 'true' })
    t.equal(await heard(8), 'true')
    for (let seq = 10; seq < 30; seq += 1) await stranger.send(endpoint.local, { sequenceNumber: seq })
    await from.send(endpoint.local, { sequenceNumber: 2, payload: 'true' })
    t.equal(await heard(9), 'true')
    endpoint.send(packetOf(1))
    await from.next()
    t.same(learned, [`${stranger.local.port} false`, `${from.local.port} ${port === 'signaled'}`])
  }
})

test('where SDP names an address of the inside, the host that signaled is known, and a stranger who shoots first loses', async (t) => {
  const { ports } = createPorts(t)
  const [peer, stranger] = [await openPeer(t), await openPeer(t, '127.0.0.2')]
  const { endpoint, heard, learned } = await openEndpoint(ports)
  const inside = { ...peer.local, address: '192.168.7.7' }
  endpoint.use(sessionWith(inside, { signaledFrom: '::ffff:127.0.0.1' }))
  for (let seq = 1; seq < 4; seq += 1) await stranger.send(endpoint.local, { sequenceNumber: seq })
  await heard(1)
  await peer.send(endpoint.local, { sequenceNumber: 1 })
  await heard(2)
  endpoint.send(packetOf(1))
  await peer.next()
  t.same(learned, [`${stranger.local.port} false`, `${peer.local.port} false`])

  const apart = await openEndpoint(ports)
  apart.endpoint.use(sessionWith(plain(stranger), { signaledFrom: '127.0.0.1' }))
  await stranger.send(apart.endpoint.local, { sequenceNumber: 1 })
  await apart.heard(1)
  for (let seq = 1; seq < 9; seq += 1) await peer.send(apart.endpoint.local, { sequenceNumber: seq })
  await stranger.send(apart.endpoint.local, { sequenceNumber: 2 })
  await apart.heard(2)
  t.same(apart.sequence(), [1, 2], 'who signals in the place of a peer with an address of its own is not its sound')
})

test('NAT gives the peer another port: its stream is heard on without a pause, and late packets move nothing back', async (t) => {
  const { ports, time } = createPorts(t)
  const [before, after, next] = [await openPeer(t), await openPeer(t), await openPeer(t)]
  const { endpoint, heard, sequence, learned } = await openEndpoint(ports)
  endpoint.use(sessionWith(plain(before)))
  for (const [peer, sequenceNumber] of [
    [before, 1],
    [before, 2],
    [after, 4],
    [before, 3],
    [after, 5],
    [next, 6],
    [after, 5],
    [next, 7],
  ] as const) {
    time.now += 20
    await peer.send(endpoint.local, { sequenceNumber })
  }
  await heard(6)
  t.same(sequence(), [1, 2, 4, 5, 6, 7])
  endpoint.send(packetOf(1))
  await next.next()
  t.same(
    learned,
    [before, after, next].map(({ local }) => `${local.port} ${local.port === before.local.port}`),
  )
  t.equal(endpoint.stats().dropped?.strangers, 0, 'no false alarm')
})

test('a peer may change its SSRC, and its port as well after a pause; its neighbour on the same host takes nothing while it talks', async (t) => {
  const { ports, time } = createPorts(t)
  const [peer, neighbour] = [await openPeer(t), await openPeer(t)]
  const { endpoint, heard, packets } = await openEndpoint(ports)
  endpoint.use(sessionWith(plain(peer)))
  let count = 0
  const hears = async (from: RtpPeer, ssrc: number, sequenceNumber: number): Promise<void> => {
    time.now += 20
    await from.send(endpoint.local, { ssrc, sequenceNumber, payload: `of ${ssrc}` })
    t.equal(await heard((count += 1)), `of ${ssrc}`)
  }
  await hears(peer, 7, 1)
  await hears(peer, 8, 30_000)
  await hears(peer, 9, 5)
  for (let seq = 1; seq < 20; seq += 1) await neighbour.send(endpoint.local, { ssrc: 55, sequenceNumber: seq })
  await hears(peer, 9, 6)
  time.now += 1_000
  for (let seq = 20; seq < 23; seq += 1)
    await neighbour.send(endpoint.local, { ssrc: 55, sequenceNumber: seq, payload: 'of 55' })
  t.equal(await heard((count += 1)), 'of 55', 'the third')
  await hears(neighbour, 55, 23)
  endpoint.send(packetOf(1))
  await neighbour.next()
  t.equal(packets.length, count)
})

test('with SRTP the newest authentic packet says where the peer is, at once; a late one and a forged one move nothing', async (t) => {
  const { ports } = createPorts(t)
  const [peer, moved, stranger] = [await openPeer(t), await openPeer(t, '127.0.0.3'), await openPeer(t, '127.0.0.2')]
  const [ours, theirs] = [createSrtpKey('AES_CM_128_HMAC_SHA1_80'), createSrtpKey('AES_CM_128_HMAC_SHA1_80')]
  const { endpoint, heard, learned, sequence } = await openEndpoint(ports)
  endpoint.use(sessionWith(plain(peer), { srtp: { ours, theirs } }))
  const there = createSecurity()
  there.use({ ours: theirs, theirs: ours })
  const packets = [1, 2, 3, 4].map((sequenceNumber) => {
    const datagram = Buffer.concat([rtpOf({ sequenceNumber }), Buffer.alloc(there.tagBytes())])
    there.protect(datagram)
    return datagram
  })
  const [first, late, third, fourth] = packets as [Buffer, Buffer, Buffer, Buffer]
  await peer.send(endpoint.local, Buffer.from(first))
  await heard(1)
  await moved.send(endpoint.local, Buffer.from(third))
  await heard(2)
  for (const forged of [first, third, rtpOf({ sequenceNumber: 9, payload: 'x'.repeat(170) })])
    await stranger.send(endpoint.local, Buffer.from(forged))
  await stranger.send(endpoint.local, Buffer.from(late))
  await heard(3)
  endpoint.send(packetOf(1))
  await moved.next()
  await peer.send(endpoint.local, Buffer.from(fourth))
  await heard(4)
  t.same(sequence(), [1, 3, 2, 4], 'what comes late is of the peer all the same')
  t.same(learned, [`${peer.local.port} true`, `${moved.local.port} false`, `${peer.local.port} true`])
  t.equal(endpoint.stats().dropped?.strangers, 3)
  t.equal(stranger.waiting(), 0)
})

test('with SRTP only what is authentic says where the peer is', async (t) => {
  const { ports } = createPorts(t)
  const [peer, stranger] = [await openPeer(t), await openPeer(t, '127.0.0.2')]
  const key = (): ReturnType<typeof createSrtpKey> => createSrtpKey('AES_CM_128_HMAC_SHA1_80')
  const [ours, theirs] = [key(), key()]
  const { endpoint, heard, learned } = await openEndpoint(ports)
  endpoint.use(sessionWith(plain(peer), { srtp: { ours, theirs } }))
  for (let seq = 1; seq <= 5; seq += 1) {
    await stranger.send(endpoint.local, { sequenceNumber: seq, payload: 'x'.repeat(170) })
    await peer.send(endpoint.local, { sequenceNumber: seq, payload: 'x'.repeat(170) })
  }
  const there = createSecurity()
  there.use({ ours: theirs, theirs: ours })
  const good = Buffer.concat([rtpOf({ sequenceNumber: 6 }), Buffer.alloc(there.tagBytes())])
  there.protect(good)
  await stranger.send(endpoint.local, Buffer.from(good))
  t.equal(await heard(1), 'sound', 'one authentic packet is enough')
  t.same(learned, [`${stranger.local.port} false`])
  t.equal(endpoint.stats().dropped?.unusable, 10)
})

test('nothing is sent before the answer, on hold and after close, and nothing is heard', async (t) => {
  const { ports } = createPorts(t)
  const peer = await openPeer(t)
  const { endpoint, heard, sequence } = await openEndpoint(ports)
  let sent = 0
  let told = 0
  const say = async (session: MediaSession | null): Promise<void> => {
    if (session) endpoint.use(session)
    endpoint.send(packetOf((sent += 1)))
    await peer.send(endpoint.local, { sequenceNumber: (told += 1) })
    while (arrived() < told) await new Promise((resolve) => setImmediate(resolve))
  }
  const arrived = (): number => endpoint.stats().packetsReceived + (endpoint.stats().dropped?.unusable ?? 0)
  await say(null)
  await say(sessionWith(plain(peer), { direction: 'inactive' }))
  await say(sessionWith(plain(peer), { direction: 'sendonly' }))
  await say(sessionWith(plain(peer), { direction: 'recvonly' }))
  await heard(1)
  await say(sessionWith({ ...peer.local, address: '0.0.0.0' }))
  await heard(2)
  await say(sessionWith(null))
  await heard(3)
  await say(sessionWith(plain(peer)))
  await heard(4)
  t.same(sequence(), [4, 5, 6, 7])
  t.equal((await peer.next()).bytes.readUInt16BE(2), 3, 'sendonly')
  t.equal((await peer.next()).bytes.readUInt16BE(2), 7, 'sendrecv')
  t.equal(peer.waiting(), 0)
  t.match(endpoint.stats(), { packetsReceived: 6, packetsSent: 2, dropped: { unusable: 1 } })
  await endpoint.close()
  endpoint.send(packetOf(8))
  endpoint.use(sessionWith(plain(peer)))
  endpoint.tick(1e9)
  t.equal(endpoint.stats().packetsSent, 2)
})

test('a re-INVITE may change address, payload type and keys while the call goes on', async (t) => {
  const { ports, time } = createPorts(t)
  const [before, after] = [await openPeer(t), await openPeer(t, '127.0.0.2')]
  const { endpoint, heard, sequence, packets } = await openEndpoint(ports)
  endpoint.use(sessionWith(plain(before)))
  await before.send(endpoint.local, { sequenceNumber: 1 })
  await heard(1)
  const keys = { ours: createSrtpKey('AES_CM_128_HMAC_SHA1_32'), theirs: createSrtpKey('AES_CM_128_HMAC_SHA1_32') }
  const pcma: NegotiatedAudio = { ...audio, codec: 'pcma', payloadType: 8 }
  endpoint.use(sessionWith(plain(after), { audio: pcma, srtp: keys }))
  const there = createSecurity()
  there.use({ ours: keys.theirs, theirs: keys.ours })
  const protectedRtp = (sequenceNumber: number, payloadType: number): Buffer => {
    const datagram = Buffer.concat([rtpOf({ sequenceNumber, payloadType }), Buffer.alloc(there.tagBytes())])
    there.protect(datagram)
    return datagram
  }
  await before.send(endpoint.local, { sequenceNumber: 2 })
  await after.send(endpoint.local, protectedRtp(3, 96))
  await after.send(endpoint.local, protectedRtp(4, 8))
  await heard(2)
  t.same(sequence(), [1, 4], 'neither the old address nor a payload type that nobody agreed on')
  t.equal(packets[1]?.payloadType, 8)
  time.now += 20
  endpoint.send({ ...packetOf(5), payloadType: 8 })
  const { bytes } = await after.next()
  t.equal(bytes.length, 12 + 5 + 4)
  t.match(there.unprotect(bytes)?.subarray(12).toString(), 'sound')
  endpoint.use(sessionWith(plain(after)))
  await after.send(endpoint.local, { sequenceNumber: 5 })
  t.equal(await heard(3), 'sound', 'and back to plain RTP')
})

test('an unreachable peer, a name or an address of another family costs nothing but the packets', async (t) => {
  const { ports } = createPorts(t)
  const [gone, peer] = [await createRtpPeer(), await openPeer(t)]
  await gone.close()
  const { endpoint, heard } = await openEndpoint(ports)
  const nowhere = [plain(gone), { ...peer.local, address: 'example.invalid' }, { ...peer.local, address: '::1' }]
  for (const remote of [...nowhere, { ...peer.local, port: 0 }, { ...peer.local, port: 70_000, rtcpPort: 0 }]) {
    endpoint.use(sessionWith(remote))
    for (let seq = 1; seq <= 3; seq += 1) endpoint.send(packetOf(seq))
    endpoint.tick(1e6)
  }
  endpoint.use(sessionWith(plain(peer)))
  await peer.send(endpoint.local, { sequenceNumber: 1 })
  t.equal(await heard(1), 'sound')
})

test('a peer that names no address is spoken to where it is heard from, its reports beside it', async (t) => {
  const { ports, time } = createPorts(t)
  const peer = await openPeer(t)
  const { endpoint, heard, learned } = await openEndpoint(ports)
  const named = sessionWith(null, { isNameless: true })
  endpoint.use(named)
  endpoint.send(packetOf(1))
  for (let seq = 1; seq <= 3; seq += 1) await peer.send(endpoint.local, { sequenceNumber: seq })
  await heard(1)
  endpoint.use(named)
  endpoint.send(packetOf(2))
  t.equal((await peer.next()).bytes.readUInt16BE(2), 2, 'a refresh forgets nothing')
  t.same(learned, [`${peer.local.port} false`])
  endpoint.tick((time.now += 10_000))
  endpoint.use(sessionWith(null, { direction: 'recvonly' }))
  endpoint.send(packetOf(3))
  endpoint.use(named)
  endpoint.send(packetOf(4))
  t.equal((await peer.next()).bytes.readUInt16BE(2), 4, 'neither a report nor, on hold, sound')
})

test('a socket for both families reads and reaches IPv4 peers as such', async (t) => {
  const { ports } = createPorts(t, { bindAddress: '::', externalAddress: '203.0.113.7' })
  const peer = await openPeer(t)
  const { endpoint, heard, learned } = await openEndpoint(ports)
  t.equal(endpoint.local.address, '203.0.113.7')
  endpoint.use(sessionWith(plain(peer)))
  await peer.send({ address: '127.0.0.1', port: endpoint.local.port }, { sequenceNumber: 1 })
  await heard(1)
  t.same(learned, [`${peer.local.port} true`])
  endpoint.send(packetOf(1))
  t.ok(await peer.next())
})

test('each call has an even port and the next one; a busy pair is passed over, a closed one is free again', async (t) => {
  const { ports: anywhere } = createPorts(t)
  const taken = (await openEndpoint(anywhere)).endpoint
  const { port } = taken.local
  const { ports } = createPorts(t, { portRange: [port - 1, port + 5] })
  const opened: RtpEndpoint[] = []
  const openAll = async (): Promise<void> => {
    for (;;) opened.push((await openEndpoint(ports)).endpoint)
  }
  await t.rejects(openAll(), { name: 'NoPortsLeft', message: /pairs of RTP ports from \d+ to \d+ are in use/ })
  const numbers = opened.map(({ local }) => local.port)
  t.ok(numbers.length <= 2 && !numbers.includes(port), 'not the busy one')
  for (const number of numbers) t.ok(number % 2 === 0 && number >= port - 1 && number < port + 5)
  for (const { local } of opened) t.equal(local.rtcpPort, local.port + 1)
  t.equal(ports.inUse(), numbers.length)
  await opened[0]?.close()
  await taken.close()
  t.equal((await openEndpoint(ports)).endpoint.local.port % 2, 0)
  await ports.close()
  t.equal(ports.inUse(), 0)
  await t.rejects(openEndpoint(ports), /closed/)
})

test('a pair of which RTCP’s half is busy is left alone until it is free', async (t) => {
  const port = await freeEvenPort('127.0.0.1')
  const { ports } = createPorts(t, { portRange: [port, port + 1] })
  const busy = await bindUdp('127.0.0.1', port + 1)
  await t.rejects(openEndpoint(ports), { name: 'NoPortsLeft' })
  await closeUdp(busy)
  for (const _ of [1, 2, 3]) {
    const { endpoint } = await openEndpoint(ports)
    t.equal(endpoint.local.port, port)
    await endpoint.close()
  }
  const refused = t.rejects(openEndpoint(ports), /closed/)
  await ports.close()
  await closeUdp(await bindUdp('127.0.0.1', port))
  await refused
})

test('ports that are closed while one is being opened leave nothing open', async (t) => {
  const { ports } = createPorts(t)
  const opening = openEndpoint(ports)
  const refused = t.rejects(opening, /closed/)
  await ports.close()
  await refused
  t.equal(ports.inUse(), 0)
  await t.rejects(openEndpoint(createPorts(t, { bindAddress: '192.0.2.1' }).ports), { code: 'EADDRNOTAVAIL' })
})

test('ports are taken in any order, each once', (t) => {
  const random = createRandom(5)
  const range = createPortRange([10_001, 10_020], random.next)
  t.equal(range.size, 9)
  const first = Array.from({ length: 9 }, () => range.take() ?? 0)
  t.equal(range.take(), null)
  t.same(
    first.toSorted((a, b) => a - b),
    [10_002, 10_004, 10_006, 10_008, 10_010, 10_012, 10_014, 10_016, 10_018],
  )
  t.notSame(
    first,
    first.toSorted((a, b) => a - b),
  )
  range.giveBack(10_006)
  t.equal(range.take(), 10_006)
  t.end()
})

test('a flood costs bounded work, and none of the peer’s budget when it comes from elsewhere', (t) => {
  let at = 0
  let heard = 0
  const source = createPeerSource()
  const incoming = createIncomingRtp({
    source,
    security: createSecurity(),
    rtcp: createRtcpSession({ ssrc: 1, cname: 'x', random: () => 0 }),
    now: () => at,
    packet: () => void (heard += 1),
    learned: () => undefined,
    tapped: () => undefined,
  })
  const [peer, stranger] = [
    { address: '192.0.2.1', port: 4000 },
    { address: '192.0.2.2', port: 4000 },
  ]
  source.expect(peer)
  incoming.use(sessionWith({ ...peer, rtcpPort: 4001 }))
  for (let seq = 0; seq < 10_000; seq += 1) {
    incoming.receive(rtpOf({ sequenceNumber: seq & 0xffff }), peer)
    incoming.receive(rtpOf({ sequenceNumber: seq & 0xffff }), stranger)
  }
  t.equal(heard, 250)
  t.match(incoming.counts, { flood: 9750, strangers: 10_000 })
  at += 1000
  for (let seq = 0; seq < 100; seq += 1) incoming.receive(rtpOf({ sequenceNumber: seq }), peer)
  t.equal(heard, 350, 'a call of 10 ms packets comes through')
  at += 5000
  for (let seq = 0; seq < 1000; seq += 1)
    incoming.receive(rtpOf({ sequenceNumber: seq }), { ...stranger, port: 5000 + seq })
  t.equal(heard, 350)
  t.match(incoming.counts, { flood: 9750, strangers: 11_000 }, 'none of them is looked at')
  source.expect({ address: '192.0.2.9', port: 4000 }, { at })
  for (let seq = 0; seq < 1000; seq += 1)
    incoming.receive(rtpOf({ sequenceNumber: 0 }), { ...stranger, port: 5000 + seq })
  t.equal(heard, 350)
  t.equal(incoming.counts.flood, 9750 + 900, 'who may become the peer has a budget of its own')
  t.end()
})

test('who is believed to be the peer', (t) => {
  const signaled: Address = { address: '192.0.2.1', port: 4000 }
  const moved: Address = { address: '192.0.2.1', port: 4444 }
  const other: Address = { address: '198.51.100.1', port: 4000 }
  const third: Address = { address: '198.51.100.2', port: 4000 }
  const of = (sequenceNumber: number, isAuthentic = false) => ({ ssrc: 1, sequenceNumber, isAuthentic })
  const begin = () => {
    const source = createPeerSource()
    t.equal(source.target(), null)
    source.expect(signaled)
    return source
  }

  const elsewhere = begin()
  t.same(
    [1, 2, 3].map((seq) => elsewhere.proved(other, of(seq), 0)),
    ['stranger', 'stranger', 'learned'],
    'the first source, of a peer that NAT hides',
  )
  t.equal(elsewhere.judge(third, 2999), 'stranger')
  t.equal(elsewhere.judge(third, 1e9), 'stranger', 'for ever')
  t.match(elsewhere.learned(), { ...other, asSignaled: false, refused: 2 })
  t.equal(elsewhere.judge(moved, 10), 'near')
  t.equal(elsewhere.proved(moved, { ...of(900), ssrc: 2 }, 10), 'learned', 'the host of the SDP')
  t.equal(elsewhere.proved(signaled, { ...of(1), ssrc: 3 }, 10), 'learned', 'its very address')
  t.equal(elsewhere.judge(other, 5000), 'stranger')
  t.same(elsewhere.target(), signaled)
  elsewhere.expect(null)
  t.equal(elsewhere.target(), null)
  elsewhere.expect(signaled)
  t.equal(elsewhere.judge(third, 20), 'stranger', 'hold and a refresh open no door')

  const interrupted = begin()
  for (const [from, seq] of [
    [other, 1],
    [third, 7],
    [other, 2],
    [third, 9],
    [other, 4],
    [third, 10],
  ] as const)
    t.equal(interrupted.proved(from, of(seq), 0), 'stranger')
  t.equal(interrupted.proved(third, of(11), 0), 'learned', 'three in sequence, whatever comes between')

  const nat = begin()
  t.equal(nat.proved(moved, of(1), 0), 'learned')
  t.equal(nat.judge(signaled, 0), 'near')
  nat.expect(other)
  t.equal(nat.judge(moved, 500), 'former', 'late packets of before')
  t.equal(nat.proved(moved, of(2), 1000), 'stranger')
  t.equal(nat.proved(other, of(1), 1000), 'learned')

  const silent = begin()
  t.equal(silent.judge(other, 30_000), 'candidate')
  t.equal(silent.judge(other, 30_001), 'stranger', 'a peer that never spoke is not waited for at any address')
  t.equal(silent.judge(moved, 30_001), 'near', 'only at its own')
  silent.expect(signaled, { at: 60_000, listens: false })
  t.equal(silent.judge(other, 60_000), 'stranger', 'on hold')
  silent.expect(signaled, { at: 70_000 })
  t.equal(silent.judge(other, 100_000), 'candidate', 'after a re-INVITE')

  const secure = createPeerSource()
  secure.expect(signaled, { isSecure: true })
  t.equal(secure.proved(third, of(1, true), 0), 'learned')
  t.equal(secure.proved(other, of(2, true), 10), 'learned', 'newer')
  t.equal(secure.proved(third, of(1, true), 2000), 'peer', 'what is late is heard, and moves nothing')
  secure.reported?.(third, 1, 2500)
  t.same(secure.target(), other, 'a report says nothing while sound comes')
  secure.reported?.(third, 1, 3001)
  t.same(secure.target(), third)
  t.end()
})

test('a change of the peer’s SSRC is heard without a gap, also when sources alternate', (t) => {
  const splice = createStreamSplice()
  const buffer = createJitterBuffer({ clockRateHz: 8000, soundPayloadType: 0 })
  const released: number[] = []
  let at = 0
  const hear = (ssrc: number, sequenceNumber: number, timestamp: number, payloadType = 0): RtpPacket => {
    const packet = splice.pass(ssrc, { ...packetOf(sequenceNumber), timestamp: timestamp >>> 0, payloadType }, at)
    buffer.push(packet, at)
    for (let next = buffer.due(at); next; next = buffer.due(at)) if ('packet' in next) released.push(at)
    return packet
  }
  const talk = (ssrc: number, sequenceNumber: number, timestamp: number, count: number): RtpPacket => {
    for (let step = 0; ; step += 1, at += 20) {
      const packet = hear(ssrc, (sequenceNumber + step) & 0xffff, timestamp + step * 160)
      if (step === count - 1) return packet
    }
  }
  const last = talk(1, 65_530, 0xffff_ff00, 20)
  at += 20
  const next = talk(2, 100, 5, 1)
  t.equal(next.sequenceNumber, (last.sequenceNumber + 1) & 0xffff)
  t.equal(next.timestamp, (last.timestamp + 160) >>> 0)
  at += 20
  talk(2, 101, 165, 9)
  at += 20
  talk(1, 500, 1_000_000, 10)
  for (let step = 0; step < 10; step += 1, at += 20) {
    hear(1, 510 + step, 1_001_600 + step * 160)
    t.equal(hear(3, 9000 + step, 777, 101).timestamp, hear(3, 9000 + step, 777, 101).timestamp)
  }
  t.equal(released.length, 20 + 10 + 10 + 20)
  const { lost, late, resynchronised } = buffer.stats()
  t.match({ lost, late, resynchronised }, { lost: 0, resynchronised: 0 })
  t.end()
})

test('late packets stay late over a change of the SSRC, and a clock that stood still is brought up to date', (t) => {
  const splice = createStreamSplice()
  const pass = (ssrc: number, sequenceNumber: number, at: number) => {
    const passed = splice.pass(ssrc, packetOf(sequenceNumber), at)
    return [passed.sequenceNumber, passed.timestamp]
  }
  t.same(pass(1, 10, 0), [10, 1600])
  t.same(pass(1, 12, 40), [12, 1920])
  t.same(pass(1, 11, 40), [11, 1760])
  t.same(pass(2, 500, 60), [13, 2080], 'after the newest, not after the last')
  t.same(pass(1, 9, 60), [9, 1440], 'late')
  t.same(pass(2, 501, 80), [14, 2240])
  t.same(pass(1, 13, 100), [15, 2080], 'back soon: its own time')
  t.same(pass(2, 502, 60_000), [16, 2400 + 59_900 * 8 - 320], 'back late')
  const only = createStreamSplice()
  const packet = packetOf(1)
  t.equal(only.pass(1, packet, 0), packet, 'one source is passed untouched')
  for (let ssrc = 0; ssrc < 100; ssrc += 1) t.equal(only.pass(ssrc + 2, packetOf(ssrc * 7), 0).sequenceNumber, ssrc + 2)
  t.equal(only.pass(2, packetOf(0), 0).sequenceNumber, 102, 'the oldest are forgotten')
  only.forget()
  t.equal(only.pass(2, packetOf(9000), 0).sequenceNumber, 103, 'another sender under the same SSRC')
  t.end()
})

test('what was lost, and how irregularly packets came, is counted as in RFC 3550 §A.3 and §A.8', (t) => {
  const reception = createReception(8000)
  t.match(reception.report(), { fractionLost: 0, packetsLost: 0 })
  const start = 65_500
  for (let step = 0; step < 100; step += 1)
    if (step % 4 !== 3) reception.add((start + step) & 0xffff, step * 160, step * 20)
  t.equal(reception.lost(), 24)
  t.same(reception.report(), { fractionLost: 62, packetsLost: 24, highestSequence: 65_598, jitter: 0 })
  reception.add((start + 99) & 0xffff, 99 * 160, 1980)
  reception.add((start + 97) & 0xffff, 97 * 160, 1980)
  reception.add((start + 97) & 0xffff, 97 * 160, 1980)
  t.match(reception.report(), { fractionLost: 0, packetsLost: 22, highestSequence: 65_599 }, 'late and doubled ones')
  reception.add(30_000, 0, 2000)
  t.equal(reception.lost(), 22, 'one stray packet means nothing')
  reception.add(31_000, 0, 2000)
  reception.add(31_001, 160, 2020)
  t.equal(reception.lost(), 0, 'a new beginning')
  t.match(reception.report(), { fractionLost: 0, packetsLost: 0, highestSequence: 31_001 })
  const shaky = createReception(8000)
  for (let step = 0; step < 500; step += 1) shaky.add(step, step * 160, step * 20 + (step % 2) * 10)
  t.ok(Math.abs(shaky.jitterMs() - 10) < 0.1, 'each packet 10 ms off the one before')
  shaky.add(500, null, 1e6)
  shaky.add(501, 0x8000_0000, 1e6)
  t.ok(shaky.jitterMs() < 11, 'another line of time')
  t.end()
})

test('what a relay keeps back while the call is on hold was not lost', async (t) => {
  const { ports } = createPorts(t)
  const [peer, { endpoint }] = [await openPeer(t), await openEndpoint(ports)]
  let received = 0
  const lost = () => endpoint.stats().quality?.packetsLost
  const send = async (...sequenceNumbers: number[]) => {
    for (const sequenceNumber of sequenceNumbers) await peer.send(endpoint.local, { sequenceNumber })
    received += sequenceNumbers.length
    await until(() => endpoint.stats().packetsReceived === received)
  }
  const talk = () => endpoint.use(sessionWith(plain(peer)))
  const hold = (direction: MediaSession['direction']) => endpoint.use(sessionWith(plain(peer), { direction }))
  talk()
  await send(1, 2, 4)
  t.equal(lost(), 1)
  for (const [index, direction] of (['inactive', 'sendonly', 'recvonly'] as const).entries()) {
    const at = (index + 1) * 1000
    hold(direction)
    await send(at, at + 100)
    talk()
    await send(at + 300, at + 301)
  }
  t.equal(lost(), 1, 'before, within and behind each hold')
  await send(3305)
  t.equal(lost(), 4, 'from then on all of it is')
  await endpoint.close()
})

test('another implementation reads our reports', (t) => {
  const session = createRtcpSession({ ssrc: 0xfeed_f00d, cname: 'q2tF1Wzv', random: () => 0.5 })
  session.use(8000, 0)
  t.equal(session.goodbye(10), null, 'who never spoke does not say goodbye')
  t.equal(session.due(2499), null)
  const parse = (bytes: Buffer | null) => RtcpPacketConverter.deSerialize(bytes ?? Buffer.alloc(0))
  const [empty, name] = parse(session.due(2500))
  t.ok(empty instanceof RtcpRrPacket && empty.reports.length === 0)
  t.match(name, { chunks: [{ source: 0xfeed_f00d, items: [{ type: 1, text: 'q2tF1Wzv' }] }] })
  for (let seq = 0; seq < 10; seq += 1) if (seq !== 5) session.heard(99, seq, seq * 160, 3000 + seq * 20)
  session.received({ ssrc: 99, senderReport: 0x1234_5678, blocks: [], saysGoodbye: false }, 6000)
  t.equal(session.due(7499), null)
  const [receiver] = parse(session.due(7500))
  t.ok(receiver instanceof RtcpRrPacket)
  if (!(receiver instanceof RtcpRrPacket)) return t.end()
  t.match(receiver.reports[0], { ssrc: 99, packetsLost: 1, highestSequence: 9, fractionLost: 25 })
  t.match(receiver.reports[0], { lsr: 0x1234_5678, dlsr: 1.5 * 65_536 })
  t.equal(session.quality().packetsLost, 1)
  session.heard(100, 7, 0, 8000)
  session.heard(100, 9, 320, 8040)
  t.equal(session.quality().packetsLost, 2, 'of all sources')
  t.ok(session.due(12_500 - 1) === null)
  session.sent(1600, 160, 12_000)
  session.sent(1760, 160, 12_020)
  const [sender] = parse(session.due(12_500))
  t.ok(sender instanceof RtcpSrPacket)
  if (!(sender instanceof RtcpSrPacket)) return t.end()
  t.match(sender.senderInfo, { packetCount: 2, octetCount: 320, rtpTimestamp: 1760 + 480 * 8 })
  t.equal(sender.senderInfo.ntpTimestamp, (12n << 32n) | 0x8000_0000n)
  t.match(sender.reports[0], { ssrc: 100, packetsLost: 1, lsr: 0, dlsr: 0 })
  const [again] = parse(session.due(17_500))
  t.ok(
    again instanceof RtcpSrPacket && again.reports.length === 0,
    'sent since the report before the last; nothing came',
  )
  t.ok(parse(session.due(22_500))[0] instanceof RtcpRrPacket)
  t.match(readRtcp(session.goodbye(23_000) ?? Buffer.alloc(0)), { ssrc: 0xfeed_f00d, saysGoodbye: true })
  t.end()
})

test('a report that is due at a time before the one of the peer came says that no time has passed since', (t) => {
  const session = createRtcpSession({ ssrc: 5, cname: 'x', random: () => 0.5 })
  session.use(8000, 0)
  session.heard(9, 1, 0, 9_900)
  session.received({ ssrc: 9, senderReport: 7 * 65_536, blocks: [], saysGoodbye: false }, 10_030)
  const [block] = readRtcp(session.due(10_000) ?? Buffer.alloc(0))?.blocks ?? []
  t.match(block, { ssrc: 9, lastReport: 7 * 65_536, sinceLastReport: 0 })
  t.end()
})

test('what the peer reports is believed within bounds', (t) => {
  const session = createRtcpSession({ ssrc: 5, cname: 'x', random: () => 0.5 })
  const block = {
    ssrc: 5,
    fractionLost: 64,
    packetsLost: 12,
    highestSequence: 9,
    jitter: 80,
    lastReport: 0,
    sinceLastReport: 0,
  }
  const tell = (change: Partial<typeof block>, at: number): void =>
    session.received(
      {
        ssrc: 9,
        senderReport: null,
        blocks: [
          { ...block, ssrc: 4 },
          { ...block, ...change },
        ],
        saysGoodbye: false,
      },
      at,
    )
  tell({}, 0)
  t.match(session.quality(), { peer: null }, 'before there is a codec')
  session.use(8000, 0)
  tell({ ssrc: 6 }, 0)
  t.match(session.quality(), { peer: null, roundTripMs: null }, 'of somebody else')
  tell({}, 0)
  t.same(session.quality().peer, { packetsSent: 0, packetsLost: 12, fractionLost: 0.25, jitterMs: 10 })
  t.equal(session.quality().roundTripMs, null)
  session.sent(0, 160, 9900)
  t.ok(session.due(10_000))
  tell({ lastReport: 10 * 65_536, sinceLastReport: 65_536 }, 11_040)
  t.ok(Math.abs((session.quality().roundTripMs ?? 0) - 40) < 0.1)
  for (const lastReport of [0, 12 * 65_536, 0xffff_ffff, 0x8000_0000]) tell({ lastReport }, 11_040)
  tell({ lastReport: 10 * 65_536, sinceLastReport: 9 * 65_536 }, 11_040)
  t.ok(Math.abs((session.quality().roundTripMs ?? 0) - 40) < 0.1, 'nonsense changes nothing')
  tell({ jitter: 0xffff_ffff, packetsLost: -5, fractionLost: 255 }, 12_000)
  t.match(session.quality().peer, { packetsSent: 1, packetsLost: 0, jitterMs: 60_000 })
  t.end()
})

test('reports keep their form, and what is no report is none', (t) => {
  const random = createRandom(77)
  const below32 = (): number => random.below(2 ** 32)
  for (let round = 0; round < 300; round += 1) {
    const block = {
      ssrc: below32(),
      fractionLost: random.below(256),
      packetsLost: random.below(2 ** 24) - 2 ** 23,
      highestSequence: below32(),
      jitter: below32(),
      lastReport: below32(),
      sinceLastReport: below32(),
    }
    const seconds = below32()
    const sender = { ntpSeconds: seconds, ntpFraction: 0x1_0000, timestamp: 1, packets: 2, octets: 3 }
    const isLast = round % 3 === 0
    const cname = 'x'.repeat(random.below(40))
    const bytes = writeRtcp({ ssrc: 3, sender: round % 2 ? sender : null, block, cname, isLast })
    t.same(readRtcp(bytes), {
      ssrc: 3,
      senderReport: round % 2 ? ((seconds & 0xffff) * 0x1_0000 + 1) % 2 ** 32 : null,
      blocks: [block],
      saysGoodbye: isLast,
    })
    t.equal(readRtcp(bytes.subarray(0, 4 * random.below(bytes.length / 4) + 1 + random.below(3))), null, 'cut')
    const start = Buffer.from(bytes)
    start[0]! |= 0x20
    t.equal(readRtcp(start), null, 'padding in a part that is not the last')
  }
  t.end()
})

test('of several reports in one datagram all count, and reduced-size RTCP is taken where something else proves it', (t) => {
  const block = { fractionLost: 1, packetsLost: 2, highestSequence: 3, jitter: 4, lastReport: 5, sinceLastReport: 6 }
  const sender = { ntpSeconds: 1, ntpFraction: 0, timestamp: 1, packets: 2, octets: 3 }
  const reportOf = (ssrc: number, about: number, isSender: boolean): Buffer =>
    writeRtcp({ ssrc, sender: isSender ? sender : null, block: { ssrc: about, ...block }, cname: 'p', isLast: false })
  const compound = Buffer.concat([reportOf(7, 1, false), reportOf(8, 2, true), reportOf(7, 3, true)])
  t.match(readRtcp(compound), { ssrc: 7, senderReport: 0x1_0000, blocks: [{ ssrc: 1 }, { ssrc: 2 }, { ssrc: 3 }] })
  t.equal(readRtcp(Buffer.concat([reportOf(7, 1, false), reportOf(8, 2, true)]))?.senderReport, null, 'of another')
  const feedback = Buffer.from('81cd00020000000700000001', 'hex')
  t.equal(readRtcp(feedback), null)
  t.same(readRtcp(feedback, true), { ssrc: 7, senderReport: null, blocks: [], saysGoodbye: false })
  const goodbye = Buffer.from('81cb000100000007', 'hex')
  t.match(readRtcp(goodbye, true), { ssrc: 7, saysGoodbye: true })
  t.equal(readRtcp(Buffer.from('80cb0000', 'hex'), true), null, 'of nobody')
  const cutBlock = Buffer.from('81c9000100000007', 'hex')
  t.equal(readRtcp(Buffer.concat([feedback, cutBlock]), true), null, 'a report without the block it counts')
  t.end()
})

test('the first report comes soon after the first packet, and the next ones no sooner than ever', (t) => {
  const session = createRtcpSession({ ssrc: 5, cname: 'x', random: () => 0.5 })
  session.use(8000, 0)
  session.sent(0, 160, 1000)
  session.sent(160, 160, 1020)
  t.equal(session.due(1499), null)
  t.match(readRtcp(session.due(1500) ?? Buffer.alloc(0)), { senderReport: 1.5 * 65_536 })
  session.sent(320, 160, 1520)
  t.equal(session.due(6499), null)
  t.ok(session.due(6500))
  t.end()
})

test('reports of strangers are not believed, and the last one says goodbye', async (t) => {
  const { ports, time } = createPorts(t)
  const [peer, stranger] = [await openPeer(t), await openPeer(t, '127.0.0.2')]
  const { endpoint, signsOfLife } = await openEndpoint(ports)
  endpoint.use(sessionWith(plain(peer)))
  const report = writeRtcp({ ssrc: 7, sender: null, block: null, cname: 'peer', isLast: false })
  const to = { address: endpoint.local.address, port: endpoint.local.rtcpPort }
  await stranger.sendRtcp(to, report)
  await peer.sendRtcp(to, Buffer.from('garbage'))
  await peer.sendRtcp(to, report)
  await signsOfLife(1)
  t.match(endpoint.stats().dropped, { strangers: 1, lastStranger: '127.0.0.2' })
  endpoint.tick((time.now += 10_000))
  t.ok(readRtcp((await peer.nextRtcp()).bytes))
  endpoint.send(packetOf(1))
  await endpoint.close()
  t.match(readRtcp((await peer.nextRtcp()).bytes), { saysGoodbye: true })
})

test('reports go where the peer’s come from', (t) => {
  const source = createPeerSource()
  const sent: string[] = []
  let alive = 0
  const rtcp = createRtcpSession({ ssrc: 1, cname: 'x', random: () => 0 })
  const reporting = createRtcpLink({
    source,
    security: createSecurity(),
    rtcp,
    now: () => 0,
    send: (_compound, to, onRtp) => void sent.push(`${to.address}:${to.port}${onRtp ? ' on rtp' : ''}`),
    alive: () => void (alive += 1),
  })
  rtcp.use(8000, 0)
  const remote = { address: '192.0.2.1', port: 4000, rtcpPort: 4009 }
  const use = (session: MediaSession): void => {
    source.expect(session.remote)
    reporting.use(session)
  }
  let at = 0
  const report = (): string | undefined => {
    reporting.tick((at += 10_000))
    return sent.pop()
  }
  t.equal(report(), undefined, 'nowhere')
  use(sessionWith(remote))
  t.equal(report(), '192.0.2.1:4009')
  source.proved({ address: '192.0.2.1', port: 7000 }, { ssrc: 1, sequenceNumber: 1, isAuthentic: false }, 0)
  t.equal(report(), '192.0.2.1:7001', 'beside the learned port')
  const compound = writeRtcp({ ssrc: 7, sender: null, block: null, cname: 'p', isLast: false })
  reporting.receive(compound, { address: '192.0.2.1', port: 7777 }, false)
  t.equal(report(), '192.0.2.1:7777')
  t.equal(alive, 1)
  const goodbye = writeRtcp({ ssrc: 7, sender: null, block: null, cname: 'p', isLast: true })
  reporting.receive(goodbye, { address: '192.0.2.1', port: 7777 }, false)
  t.equal(alive, 1, 'a goodbye is no sign of life')
  for (let count = 0; count < 100; count += 1) reporting.receive(compound, { address: '192.0.2.1', port: 7777 }, false)
  t.equal(alive, 19, 'twenty in a second are enough')
  use(sessionWith({ ...remote, rtcpPort: 4010 }))
  t.equal(report(), '192.0.2.1:7001', 'moved')
  use(sessionWith(remote, { rtcpMux: true }))
  t.equal(report(), '192.0.2.1:7000 on rtp')
  use(sessionWith(null))
  t.equal(report(), undefined, 'on hold by 0.0.0.0')
  use(sessionWith({ ...remote, port: 5000 }))
  const stranger = { address: '198.51.100.9', port: 6000 }
  for (let seq = 1; seq < 4; seq += 1) source.proved(stranger, { ssrc: 9, sequenceNumber: seq, isAuthentic: false }, 0)
  reporting.receive(compound, { ...stranger, port: 6001 }, false)
  t.equal(report(), '198.51.100.9:6001', 'of who was quicker than the peer')
  source.proved({ address: '192.0.2.1', port: 5000 }, { ssrc: 1, sequenceNumber: 1, isAuthentic: false }, 0)
  t.equal(report(), '192.0.2.1:4009', 'until the peer spoke')
  reporting.receive(compound, { ...stranger, port: 6001 }, false)
  t.equal(report(), '192.0.2.1:4009')
  t.end()
})

test('loss, reordering and duplicates reach the leg as they are, and are counted', async (t) => {
  const { ports, time } = createPorts(t)
  const peer = await openPeer(t)
  const { endpoint, heard, sequence } = await openEndpoint(ports)
  endpoint.use(sessionWith(plain(peer)))
  const order = [1, 2, 5, 4, 4, 6, 9, 8]
  for (const sequenceNumber of order) {
    time.now += 20
    await peer.send(endpoint.local, { sequenceNumber })
  }
  const padded = Buffer.concat([rtpOf({ sequenceNumber: 10 }), Buffer.from([0, 0, 3])])
  padded[0]! |= 0x20
  await peer.send(endpoint.local, padded)
  await heard(order.length + 1)
  const { jitterMs } = { ...endpoint.stats().quality }
  await peer.send(endpoint.local, { sequenceNumber: 11, payloadType: 101, payload: Uint8Array.of(5, 10, 0, 160) })
  await peer.send(endpoint.local, { sequenceNumber: 12, payloadType: 96 })
  await peer.send(endpoint.local, { sequenceNumber: 13, payloadType: 13 })
  await heard(order.length + 3)
  t.same(sequence(), [...order, 10, 11, 13])
  t.ok((jitterMs ?? 0) > 0)
  t.equal(endpoint.stats().quality?.jitterMs, jitterMs, 'keys and comfort noise say nothing of it')
  t.equal(endpoint.stats().quality?.packetsLost, 2, '3, 7 and 12 did not come, 4 came twice')
  t.equal(endpoint.stats().dropped?.unusable, 1)
})

test('random datagrams never throw, are never heard as the peer’s, and leave nothing behind', (t) => {
  for (const suite of [null, 'AES_CM_128_HMAC_SHA1_80'] as const) fuzz(t, suite)
  t.end()
})

function fuzz(t: Test, suite: CryptoSuite | null): void {
  const random = createRandom(suite ? 1 : 2)
  let at = 0
  let heard = 0
  const source = createPeerSource()
  const security = createSecurity()
  const rtcp = createRtcpSession({ ssrc: 1, cname: 'x', random: random.next })
  const shared = { source, security, rtcp, now: () => at }
  const incoming = createIncomingRtp({
    ...shared,
    packet: () => void (heard += 1),
    learned: () => undefined,
    tapped: () => undefined,
  })
  const link = createRtcpLink({ ...shared, send: () => undefined, alive: () => undefined })
  const remote = { address: '192.0.2.1', port: 4000, rtcpPort: 4001 }
  const session = sessionWith(remote, { srtp: suite && { ours: createSrtpKey(suite), theirs: createSrtpKey(suite) } })
  security.use(session.srtp)
  source.expect(remote)
  rtcp.use(8000, 0)
  incoming.use(session)
  link.use(session)
  const valid = [
    rtpOf({ sequenceNumber: 1 }),
    writeRtcp({ ssrc: 7, sender: null, block: null, cname: 'p', isLast: true }),
    Buffer.from('80c80006000000070000000100000000000000000000000000000000', 'hex'),
  ]
  for (let round = 0; round < 20_000; round += 1) {
    at += 20
    const datagram = random.below(3)
      ? Buffer.from(random.pick(valid))
      : Buffer.from(Array.from({ length: random.below(60) }, () => random.below(256)))
    for (let flips = random.below(4); flips > 0 && datagram.length > 0; flips -= 1)
      datagram[random.below(datagram.length)] = random.below(256)
    const cut = datagram.subarray(0, random.below(4) ? datagram.length : random.below(datagram.length + 1))
    const from = { address: random.below(2) ? '192.0.2.1' : '192.0.2.66', port: random.below(3) + 4000 }
    if (random.below(2)) incoming.receive(cut, from)
    else link.receive(cut, from, false)
    if (round % 100 === 0) link.tick(at)
  }
  incoming.receive(Buffer.alloc(65_507, 0x80), remote)
  link.receive(Buffer.alloc(65_507, 0x80), remote, true)
  t.ok(suite ? heard === 0 : heard > 0)
  const { roundTripMs, jitterMs, packetsLost } = rtcp.quality()
  t.ok((roundTripMs ?? 0) < 60_000 && jitterMs >= 0 && packetsLost >= 0)
}

test('what cannot be sent anywhere is lost, and the sockets of a call go on', async (t) => {
  const [one, other] = [
    await openSocketPair('127.0.0.1', await freeEvenPort('127.0.0.1')),
    await bindUdp('127.0.0.1', 0),
  ]
  t.teardown(() => Promise.all([one.close(), closeUdp(other)]))
  for (const port of [0, -1, 65_536, Number.NaN]) one.rtp.send(Buffer.from('nowhere'), { address: '127.0.0.1', port })
  const heard = once(other, 'message')
  one.rtp.send(Buffer.from('here'), { address: '127.0.0.1', port: other.address().port })
  t.match(await heard, [Buffer.from('here')])
})

test('a datagram that is failed at is lost and told, and what comes after it is heard', async (t) => {
  const { ports, log } = createPorts(t)
  const heard: string[] = []
  const last = Promise.withResolvers<void>()
  const endpoint = await ports.open({
    packet({ payload }) {
      const text = Buffer.from(payload).toString()
      if (text.startsWith('bad')) throw new Error('a bug')
      heard.push(text)
      if (text === 'last') last.resolve()
    },
    alive: () => undefined,
    learned: () => undefined,
  })
  const peer = await openPeer(t)
  endpoint.use(sessionWith(peer.local))
  for (const [index, payload] of ['first', 'bad', 'bad again', 'last'].entries())
    await peer.send(endpoint.local, { sequenceNumber: index + 1, payload })
  await last.promise
  t.same(heard, ['first', 'last'])
  t.match(log.lines, [{ level: 'error', message: 'datagrams were lost, because handling them failed' }])
})
