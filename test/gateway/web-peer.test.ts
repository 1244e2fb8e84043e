/** The WebPeer port: every implementation passes this suite, with a caller of our own and with a real browser. */
import dgram from 'node:dgram'
import dns from 'node:dns'
import { readdirSync } from 'node:fs'
import { test, type Test } from 'tap'
import { createWeriftCaller } from '../../gateway/werift/caller.ts'
import { Problem } from '../../model/problem.ts'
import type { CreateWebPeer, RtpPacket, RtpTransportHandlers } from '../../model/rtp-transport.ts'
import { browsers } from '../peers/browsers.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRandom } from '../fake/random.ts'
import { callFromBarePage } from '../scenes/page-call.ts'
import { openWebPeers } from '../scenes/web-peers.ts'
import { chromeOffer } from './chrome-offer.ts'

type Implementation = {
  readonly name: string
  open(): Promise<{ createPeer: CreateWebPeer; close(): Promise<void> }>
}

const implementations: readonly Implementation[] = [
  {
    name: 'werift',
    async open() {
      const peers = openWebPeers(createQuietLog())
      await peers.warmUp()
      return peers
    },
  },
]

/** Handlers that note everything, and promises for what a test waits for. */
function createNotes() {
  const events: string[] = []
  const connected = Promise.withResolvers<void>()
  const disconnected = Promise.withResolvers<string>()
  const packets: RtpPacket[] = []
  let onPacket: (packet: RtpPacket) => void = () => undefined
  const handlers: RtpTransportHandlers = {
    negotiated: (audio) =>
      void events.push(`negotiated ${audio.codec} ${audio.payloadType} ${audio.telephoneEventPayloadType}`),
    connected(status) {
      events.push(`connected ${status}`)
      connected.resolve()
    },
    packet(packet) {
      packets.push(packet)
      onPacket(packet)
    },
    disconnected(cause) {
      events.push(`disconnected ${cause}`)
      disconnected.resolve(cause)
    },
  }
  const listen = (listener: typeof onPacket): void => void (onPacket = listener)
  return { events, packets, handlers, connected: connected.promise, disconnected: disconnected.promise, listen }
}

const packetOf = (payloadType: number, sequenceNumber: number, text = 'sound'): RtpPacket => ({
  payloadType,
  marker: sequenceNumber === 1,
  sequenceNumber,
  timestamp: sequenceNumber * 960,
  payload: Buffer.from(text),
})

function conformsAsWebPeer({ name, open }: Implementation): void {
  async function setUp(t: Test) {
    const { createPeer, close } = await open()
    t.teardown(close)
    return createPeer
  }

  async function connectTo(t: Test, createPeer: CreateWebPeer, codecs?: readonly ('opus' | 'pcmu')[]) {
    const notes = createNotes()
    const peer = createPeer(notes.handlers)
    const caller = createWeriftCaller(codecs ? { codecs } : {})
    t.teardown(() => Promise.all([caller.close(), peer.close()]))
    await caller.accept(await peer.accept(await caller.offer()))
    const [{ payloadType }] = await Promise.all([caller.connected, notes.connected])
    return { notes, peer, caller, payloadType }
  }

  test(`${name}: a browser's offer is answered as ICE-lite DTLS server with Opus and telephone-event, the rest refused`, async (t) => {
    const createPeer = await setUp(t)
    const notes = createNotes()
    const answer = await createPeer(notes.handlers).accept(chromeOffer)
    const lines = answer.split('\r\n')
    for (const line of [
      'a=ice-lite',
      'a=group:BUNDLE 0',
      'a=setup:passive',
      'a=rtcp-mux',
      'a=rtcp-rsize',
      'a=sendrecv',
      'a=mid:0',
      'a=rtpmap:111 opus/48000/2',
      'a=fmtp:111 minptime=10;useinbandfec=1',
      'a=rtpmap:110 telephone-event/48000',
      'a=end-of-candidates',
    ])
      t.ok(lines.includes(line), line)
    t.match(answer, /a=candidate:1 1 udp \d+ 127\.0\.0\.1 \d+ typ host/)
    t.match(
      lines.filter((line) => line.startsWith('m=')),
      [
        /^m=audio [1-9]\d* UDP\/TLS\/RTP\/SAVPF 111 110$/,
        /^m=video 0 /,
        /^m=application 0 UDP\/DTLS\/SCTP webrtc-datachannel$/,
      ],
    )
    t.same(notes.events, ['negotiated opus 111 110'])
  })

  test(`${name}: without Opus it is PCMU`, async (t) => {
    const { notes, caller, payloadType } = await connectTo(t, await setUp(t), ['pcmu'])
    t.equal(payloadType, 0)
    caller.send(packetOf(126, 1))
    const heard = new Promise((resolve) => notes.listen(({ payloadType: type }) => type === 0 && resolve(type)))
    caller.send(packetOf(0, 2))
    await heard
    t.same(notes.events, ['negotiated pcmu 0 126', 'connected connected'])
  })

  test(`${name}: packets go both ways as they are, and only once`, async (t) => {
    const { notes, peer, caller, payloadType } = await connectTo(t, await setUp(t))
    const heard = new Promise<RtpPacket>((resolve) => caller.onPacket(resolve))
    notes.listen((packet) => packet.sequenceNumber === 3 && peer.send(packet))
    const sent = packetOf(payloadType, 3, 'x'.repeat(1000))
    caller.send(packetOf(99, 1))
    caller.send(packetOf(payloadType, 2))
    caller.send(packetOf(payloadType, 2))
    caller.send(sent)
    t.match(await heard, { ...sent, payload: Buffer.from(sent.payload) })
    t.same(
      notes.packets.map(({ sequenceNumber }) => sequenceNumber),
      [2, 3],
      'no foreign payload type, no repetition',
    )
    t.match(peer.stats(), {
      packetsReceived: 2,
      packetsSent: 1,
      bytesReceived: 1005,
      bytesSent: 1000,
      dropped: { strangers: 0, flood: 0, unusable: 1 },
    })
  })

  test(`${name}: a sequence number that wraps does not stop the sound`, async (t) => {
    const { notes, caller, payloadType } = await connectTo(t, await setUp(t))
    const last = new Promise((resolve) => notes.listen(({ sequenceNumber }) => sequenceNumber === 5 && resolve(null)))
    // What is sent begins in the lower half, so the way to the wrap has steps.
    const indexes = [1, 30_000, 60_000, ...Array.from({ length: 12 }, (_, step) => 65_530 + step)]
    for (const index of indexes) caller.send(packetOf(payloadType, index & 0xffff))
    await last
    t.same(
      notes.packets.map(({ sequenceNumber }) => sequenceNumber),
      indexes.map((index) => index & 0xffff),
    )
  })

  test(`${name}: the caller's goodbye is a hang-up, and nothing comes after it`, async (t) => {
    const { notes, peer, caller, payloadType } = await connectTo(t, await setUp(t))
    await caller.close()
    t.equal(await notes.disconnected, 'hung_up')
    peer.send(packetOf(payloadType, 1))
    await peer.close()
    t.same(notes.events.slice(1), ['connected connected', 'disconnected hung_up'])
  })

  test(`${name}: closing tells the caller at once, is idempotent, and sends nothing more`, async (t) => {
    const { notes, peer, caller, payloadType } = await connectTo(t, await setUp(t))
    await Promise.all([peer.close(), peer.close()])
    t.match(await caller.ended, /close_notify/)
    peer.send(packetOf(payloadType, 1))
    t.equal(peer.stats().packetsSent, 0)
    t.notOk(
      notes.events.some((event) => event.startsWith('disconnected')),
      'no event for what one does oneself',
    )
  })

  test(`${name}: a second offer is a CONFLICT, a refused one leaves room for a better one`, async (t) => {
    const peer = (await setUp(t))(createNotes().handlers)
    await t.rejects(peer.accept('v=0\r\n'), { name: 'Problem', type: 'VALIDATION_FAILED', issues: [{ path: 'sdp' }] })
    await peer.accept(chromeOffer)
    await t.rejects(peer.accept(chromeOffer), { name: 'Problem', type: 'CONFLICT' })
  })

  test(`${name}: candidates are taken before and after the answer, names are never looked up, garbage is refused`, async (t) => {
    const peer = (await setUp(t))(createNotes().handlers)
    const host = {
      candidate: 'candidate:842163049 1 udp 1677729535 192.0.2.9 46154 typ srflx raddr 0.0.0.0 rport 0',
      sdpMid: '0',
    }
    await peer.addCandidate(host)
    await peer.accept(chromeOffer)
    await peer.addCandidate({
      candidate: 'candidate:1 1 udp 2113937151 6e51ecd7-2f4f-4e6c-a5ec-d9be15a8bd85.local 50000 typ host',
    })
    await peer.addCandidate({ candidate: '' })
    await peer.addCandidate(null)
    for (const candidate of ['x', 'candidate:1', 'candidate:1 1 udp 1 a b typ host\r\na=evil'])
      await t.rejects(peer.addCandidate({ candidate }), { name: 'Problem', type: 'VALIDATION_FAILED' })
  })

  test(`${name}: whatever is done to an offer, it is answered or refused as a Problem`, async (t) => {
    const createPeer = await setUp(t)
    const random = createRandom(20_260_701)
    const offers = Array.from({ length: 1500 }, () => mutated(chromeOffer, random))
    const count = { answered: 0, refused: 0 }
    for (const offer of offers) {
      const peer = createPeer(createNotes().handlers)
      try {
        const answer = await peer.accept(offer)
        count.answered += 1
        if (!answer.startsWith('v=0\r\n') || /[^\r]\n/.test(answer)) t.fail(`malformed answer to ${offer}`)
      } catch (error) {
        count.refused += 1
        if (!(error instanceof Problem)) t.fail('not a Problem', { offer, error })
      }
      await peer.close()
    }
    t.ok(count.answered > 100 && count.refused > 100, JSON.stringify(count))
  })

  test(`${name}: nothing leaves the loopback and no name is resolved`, async (t) => {
    const sent = t.capture(dgram.Socket.prototype, 'send', dgram.Socket.prototype.send)
    const lookup = t.capture(dns, 'lookup', dns.lookup)
    const promised = t.capture(dns.promises, 'lookup', dns.promises.lookup)
    const { caller, notes, payloadType } = await connectTo(t, await setUp(t))
    const heard = new Promise((resolve) => notes.listen(resolve))
    caller.send(packetOf(payloadType, 1))
    await heard
    const targets = new Set(sent().map(({ args }) => args.find((value) => typeof value === 'string')))
    t.same([...targets], ['127.0.0.1'])
    const names = [...lookup(), ...promised()].map(({ args }) => String(args[0]))
    t.same(
      names.filter((host) => host !== '127.0.0.1'),
      [],
    )
  })

  test(`${name}: fifty calls later there is not one socket or file more`, async (t) => {
    const createPeer = await setUp(t)
    const openFiles = () => readdirSync('/proc/self/fd').length
    const sockets = () => process.getActiveResourcesInfo().filter((resource) => resource === 'UDPWrap').length
    const call = async () => {
      const peer = createPeer(createNotes().handlers)
      const caller = createWeriftCaller()
      await caller.accept(await peer.accept(await caller.offer()))
      await caller.connected
      await Promise.all([peer.close(), caller.close()])
    }
    await call()
    const before = openFiles()
    for (let round = 0; round < 10; round += 1) await Promise.all([call(), call(), call(), call(), call()])
    t.equal(openFiles(), before)
    // A closed handle is counted until the event loop has let go of it.
    while (sockets() > 1) await new Promise((resolve) => setImmediate(resolve))
  })

  const [chromium] = browsers()
  test(
    `${name}: Chromium talks and hears, presses a key and hangs up`,
    { skip: chromium.skip, timeout: 90_000 },
    async (t) => {
      const createPeer = await setUp(t)
      const notes = createNotes()
      const peer = createPeer(notes.handlers)
      const pressed = new Promise<number | undefined>((resolve) => {
        notes.listen((packet) => (packet.payloadType === 111 ? peer.send(packet) : resolve(packet.payload[0])))
      })
      const call = await callFromBarePage(t, chromium)
      await call.accept(await peer.accept(call.offer))
      await notes.connected
      await call.hears()
      t.pass('the beeps of the fake microphone come back')
      // Read before the key: its packets are not sent back, so the browser counts them as lost.
      const received = async () => (await call.stats())['inbound-rtp']
      let heard = await received()
      while (heard.packetsReceived <= 20) heard = await received()
      t.ok(heard.packetsLost <= 2, JSON.stringify(heard))
      await call.press('5')
      t.equal(await pressed, 5)
      await call.hangUp()
      t.equal(await notes.disconnected, 'hung_up')
      t.same(notes.events, ['negotiated opus 111 110', 'connected connected', 'disconnected hung_up'])
    },
  )
}

/** One to four changes: a line lost, doubled, moved, cut, or characters replaced. */
function mutated(sdp: string, random: ReturnType<typeof createRandom>): string {
  const lines = sdp.split('\r\n')
  const changes = 1 + random.below(4)
  for (let change = 0; change < changes; change += 1) {
    const at = random.below(lines.length)
    const line = lines[at] ?? ''
    const cut = random.below(line.length + 1)
    const kinds = [
      () => lines.splice(at, 1),
      () => lines.splice(at, 0, line),
      () => lines.splice(random.below(lines.length), 0, ...lines.splice(at, 1)),
      () => lines.splice(at, 1, line.slice(0, cut)),
      () => lines.splice(at, 1, line.slice(0, cut) + String.fromCharCode(random.below(256)) + line.slice(cut + 1)),
      () => lines.splice(at, 1, line.replace(/\d+/g, String(random.below(2 ** 31)))),
      () => lines.splice(at, random.below(40)),
    ]
    random.pick(kinds)()
  }
  return lines.join('\r\n')
}

implementations.forEach(conformsAsWebPeer)
