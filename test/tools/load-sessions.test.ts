/** Session files: what is refused and where, captures of every link layer, calls that are made again with nothing of the old ones, and nothing of anybody in anonymised ones. */
import { test } from 'tap'
import { parseMessage } from '../../sip/server/message/parse-message.ts'
import type { SipRequest } from '../../sip/server/message/message.ts'
import { writeMessage } from '../../sip/server/message/write-message.ts'
import { readPcap } from '../../tools/load/pcap/read-pcap.ts'
import { sessionsOfPcap } from '../../tools/load/pcap/sessions-of-pcap.ts'
import { anonymise } from '../../tools/load/session/anonymise-session.ts'
import { parseSession, WrongSession } from '../../tools/load/session/read-session.ts'
import { rewriteOffer } from '../../tools/load/session/rewrite-offer.ts'
import { rewriteRequest } from '../../tools/load/session/rewrite-sip.ts'
import { sessionText } from '../../tools/load/session/write-session.ts'
import { createRandom } from '../../tools/chaos/random.ts'
import { ethernet, ipv4, ipv6, pcap, pcapng, sll, tcp, udp, type Captured } from '../scenes/captured-packets.ts'

const caller = '203.0.113.7'
const service = '203.0.113.99'

const sdp = (address: string, port: number): string =>
  [
    'v=0',
    `o=alice 1 1 IN IP4 ${address}`,
    's=A talk of Alice',
    `c=IN IP4 ${address}`,
    't=0 0',
    `m=audio ${port} RTP/AVP 0 101`,
    'a=rtpmap:0 PCMU/8000',
    'a=rtpmap:101 telephone-event/8000',
    'a=ice-pwd:verysecretpassword',
    'a=fingerprint:sha-256 AA:BB:CC:DD',
    '',
  ].join('\r\n')

const head = (first: string, cseq: string, toTag: string): string[] => [
  first,
  `Via: SIP/2.0/UDP ${caller}:5062;branch=z9hG4bKalicebranch`,
  'Max-Forwards: 70',
  'From: "Alice Example" <sip:+4915112345678@voip.example.com>;tag=alicetag',
  `To: <sip:+12025550100@${service}>${toTag}`,
  'Call-ID: callid-of-alice',
  `CSeq: ${cseq}`,
]

function message(first: string, cseq: string, body: string, toTag = ';tag=bobtag'): string {
  const type = body === '' ? [] : ['Content-Type: application/sdp']
  const contact = first.startsWith('SIP') ? `<sip:${service}:5060>` : `<sip:+4915112345678@${caller}:5062>`
  const lines = [
    ...head(first, cseq, toTag),
    `Contact: ${contact}`,
    'X-Customer: Alice',
    ...type,
    `Content-Length: ${body.length}`,
  ]
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}

const invite = message(`INVITE sip:+12025550100@${service} SIP/2.0`, '1 INVITE', sdp(caller, 6000), '')
const answered = message('SIP/2.0 200 OK', '1 INVITE', sdp(service, 7000))
const bye = message(`BYE sip:${service}:5060 SIP/2.0`, '2 BYE', '')

function rtp(number: number): Buffer {
  const bytes = Buffer.alloc(12 + 160, number & 0x7f)
  bytes.writeUInt16BE(0x8000, 0)
  bytes.writeUInt16BE(number, 2)
  bytes.writeUInt32BE(number * 160, 4)
  bytes.writeUInt32BE(1234, 8)
  return bytes
}

/** A call by UDP: SIP, two packets of each side, and what belongs to nobody. */
const datagrams: readonly (readonly [
  at: number,
  from: string,
  fromPort: number,
  to: string,
  toPort: number,
  payload: Buffer,
])[] = [
  [0, caller, 5062, service, 5060, Buffer.from(invite)],
  [500, caller, 5062, service, 5060, Buffer.from(invite)],
  [700, service, 5060, caller, 5062, Buffer.from(answered)],
  [710, caller, 6000, service, 7000, rtp(1)],
  [720, service, 7000, caller, 6000, rtp(51)],
  [725, '203.0.113.50', 6000, '203.0.113.51', 7000, rtp(99)],
  [730, caller, 6000, service, 7000, rtp(2)],
  [740, service, 7000, caller, 6000, rtp(52)],
  [900, caller, 5062, service, 5060, Buffer.from(bye)],
]
const packetsBy = (wrap: (ip: Buffer) => Buffer): Captured[] =>
  datagrams.map(([at, from, fromPort, to, toPort, payload]) => ({
    at: 1_700_000_000_000 + at,
    bytes: wrap(ipv4(from, to, 17, udp(fromPort, toPort, payload))),
  }))

const raw = (ip: Buffer): Buffer => ip

test('a call is found in captures of every kind and link layer, with the sound of both sides and nobody else’s', (t) => {
  const captures: Readonly<Record<string, Buffer>> = {
    'Ethernet, µs': pcap(
      1,
      packetsBy((ip) => ethernet(ip)),
    ),
    'Ethernet with VLAN, ns, big-endian': pcap(
      1,
      packetsBy((ip) => ethernet(ip, 7)),
      { isBig: true, isNano: true },
    ),
    'Linux cooked': pcap(
      113,
      packetsBy((ip) => sll(ip, 1)),
    ),
    'Linux cooked 2': pcap(
      276,
      packetsBy((ip) => sll(ip, 2)),
    ),
    raw: pcap(101, packetsBy(raw)),
    loopback: pcap(
      0,
      packetsBy((ip) => Buffer.concat([Buffer.from([2, 0, 0, 0]), ip])),
    ),
    pcapng: pcapng(
      1,
      packetsBy((ip) => ethernet(ip)),
    ),
  }
  for (const [name, file] of Object.entries(captures)) {
    const [call, ...others] = sessionsOfPcap(file)
    t.same(others, [], name)
    t.same(call?.packets, { caller: 2, service: 2 }, name)
    const session = parseSession(name, call?.text ?? '')
    t.same(
      session.sip.map(({ at, by }) => [at, by]),
      [
        [0, 'caller'],
        [500, 'caller'],
        [700, 'service'],
        [900, 'caller'],
      ],
      name,
    )
    t.same(
      session.rtp.map(({ by, seq }) => [by, seq]),
      [
        ['caller', 1],
        ['service', 51],
        ['caller', 2],
        ['service', 52],
      ],
      name,
    )
    t.same(
      [...session.sounds.values()].map((payload) => payload[0]),
      [1, 2],
      name,
    )
  }
  t.end()
})

test('SIP by TCP and IPv6 is put together: segments out of order, sent again, several messages in one', (t) => {
  const bytes = Buffer.from(invite + bye)
  const part = (from: number, to: number): Buffer =>
    ipv6('2001:db8::7', '2001:db8::99', 6, tcp(5062, 5060, 1000 + 1 + from, bytes.subarray(from, to)))
  const opening = ipv6('2001:db8::7', '2001:db8::99', 6, tcp(5062, 5060, 1000, Buffer.alloc(0), true))
  const pieces = [opening, part(0, 100), part(300, 500), part(0, 100), part(100, 300), part(500, bytes.length)]
  const file = pcap(
    101,
    pieces.map((ip, at) => ({ at, bytes: ip })),
  )
  const [call] = sessionsOfPcap(file)
  const session = parseSession('tcp', call?.text ?? '')
  t.equal(session.head.transport, 'tcp')
  t.same(
    session.sip.map(({ message: text }) => text.split(' ')[0]),
    ['INVITE', 'BYE'],
  )
  t.end()
})

test('damaged captures and random bytes are refused or give nothing; they never throw anything else', (t) => {
  t.throws(() => [...readPcap(Buffer.from('no capture at all, but long enough'))], /neither pcap nor pcapng/)
  const whole = pcap(
    1,
    packetsBy((ip) => ethernet(ip)),
  )
  t.doesNotThrow(() => sessionsOfPcap(whole.subarray(0, whole.length - 3)), 'one that was cut off')
  const random = createRandom(3)
  for (let round = 0; round < 300; round++) {
    const bytes = Buffer.from(whole)
    for (let flips = 0; flips < 20; flips++) bytes[24 + random.below(bytes.length - 24)] = random.below(256)
    try {
      sessionsOfPcap(bytes)
    } catch (error) {
      t.match((error as Error).name, 'WrongCapture')
    }
  }
  t.end()
})

const good = sessionsOfPcap(pcap(101, packetsBy(raw)))[0]?.text ?? ''
const withLine = (line: unknown): string => `${good}${typeof line === 'string' ? line : JSON.stringify(line)}\n`
const lines = good.trimEnd().split('\n').length

const bad: readonly (readonly [text: string, says: RegExp])[] = [
  ['', /f:1: this is no JSON object/],
  ['{"kind":"sip"}', /f:1: parleySession: it must say which version/],
  ['{"parleySession":2}', /f:1: parleySession: version 2 is none that is known/],
  [good.replace('"codec":"pcmu"', '"codec":"mp3"'), /f:1: codec: /],
  [good.replace('"kind":"sip"', '"kind":"sip","extra":1'), /f:1: extra: /],
  [withLine('{"type":'), new RegExp(`f:${lines + 1}: this is no JSON object`)],
  [withLine(''), new RegExp(`f:${lines + 1}: the line is empty`)],
  [withLine({ type: 'video' }), new RegExp(`f:${lines + 1}: type: must be one of sip, signal, sound, rtp, expect`)],
  [withLine({ type: 'signal', at: 0, by: 'caller', message: { type: 'bye' } }), /type: signal in a session of sip/],
  [withLine({ type: 'rtp', at: -1, by: 'service', seq: 1, ts: 1, pt: 0 }), /: at: /],
  [withLine({ type: 'rtp', at: 1, by: 'service', seq: 70_000, ts: 1, pt: 0 }), /: seq: /],
  [
    withLine({ type: 'rtp', at: 1, by: 'caller', seq: 1, ts: 1, pt: 0, ref: 999 }),
    /: ref: there is no sound 999 before it/,
  ],
  [
    withLine({ type: 'rtp', at: 1, by: 'caller', seq: 1, ts: 1, pt: 0 }),
    /: ref: a packet of the caller must say what was in it/,
  ],
  [withLine({ type: 'sound', ref: 0, payload: 'AAAA' }), /: ref: there is a sound 0 already/],
  [withLine({ type: 'sound', ref: 77, payload: '***' }), /: payload: /],
  [withLine({ type: 'expect' }), /: expect: one of answerWithin/],
  [withLine({ type: 'expect', answerWithin: 0 }), /: answerWithin: /],
  [withLine({ type: 'expect', audioWithin: 5, outcome: 'completed' }), /: expect: one of/],
  [good.split('\n').slice(0, 1).join('\n'), /no INVITE of the caller/],
]

test('a bad line is refused with file, line and field', (t) => {
  t.doesNotThrow(() => parseSession('f', withLine({ type: 'expect', outcome: 'completed' })))
  for (const [text, says] of bad) {
    t.throws(() => parseSession('f', text), says)
    try {
      parseSession('f', text)
    } catch (error) {
      t.ok(error instanceof WrongSession)
    }
  }
  t.end()
})

test('an INVITE that is sent again carries nothing by which the old call, its end or its keys could be meant', (t) => {
  const parsed = parseMessage(Buffer.from(invite))
  const request = (parsed.kind === 'message' ? parsed.message : null) as SipRequest
  const call = {
    target: { protocol: 'tcp', host: '127.0.0.1', port: 5080 },
    local: { address: '127.0.0.1', port: 6010 },
    rtpPort: 9000,
    callId: 'fresh',
    fromTag: 'newtag',
    toTag: null,
    contact: null,
    routes: [],
    called: '+12025550177',
    calling: null,
  } as const
  const text = writeMessage(rewriteRequest(request, call, 'z9hG4bKnew')).toString()
  t.notMatch(text, /203\.0\.113|alicetag|alicebranch|callid-of-alice|verysecretpassword|AA:BB/)
  t.match(text, /^INVITE sip:\+12025550177@127\.0\.0\.1:5080;transport=tcp SIP\/2\.0/)
  t.match(text, /From: "Alice Example" <sip:\+4915112345678@127\.0\.0\.1:6010>;tag=newtag/, 'who calls stays')
  t.match(text, /c=IN IP4 127\.0\.0\.1\r\n[^]*m=audio 9000 RTP\/AVP 0 101/)
  const again = parseMessage(Buffer.from(text))
  t.equal(again.kind, 'message', 'and it is good SIP')
  t.end()
})

test('an offer that is made again has the credentials, candidates and fingerprint of the end that makes it', (t) => {
  const recorded =
    'v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\nm=audio 50000 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP4 198.51.100.2\r\na=mid:0\r\n' +
    'a=ice-ufrag:oldfrag\r\na=ice-pwd:oldpassword\r\na=fingerprint:sha-256 OLD\r\na=setup:actpass\r\na=rtpmap:111 opus/48000/2\r\na=ssrc:42 cname:old\r\na=candidate:1 1 udp 1 198.51.100.2 50000 typ host\r\n' +
    'm=video 50000 UDP/TLS/RTP/SAVPF 96\r\na=mid:1\r\na=ice-ufrag:oldfrag\r\n'
  const own =
    'v=0\r\no=- 9 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\nm=audio 40000 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP4 127.0.0.1\r\na=mid:0\r\na=ice-ufrag:newfrag\r\na=ice-pwd:newpassword\r\na=fingerprint:sha-256 NEW\r\na=ssrc:7 cname:new\r\na=candidate:1 1 udp 1 127.0.0.1 40000 typ host\r\n'
  const made = rewriteOffer(recorded, own)
  t.notMatch(made, /198\.51\.100|oldfrag|oldpassword|OLD|ssrc:42/)
  t.match(made, /a=ice-ufrag:newfrag\r\n[^]*a=fingerprint:sha-256 NEW[^]*m=video/, 'within the section of sound')
  t.match(made, /a=rtpmap:111 opus/)
  t.end()
})

test('an anonymised file is as good as the recorded one, and has none of its addresses, numbers, names, keys or sound', (t) => {
  const named = withLine({ type: 'expect', transcriptContains: 'my name is Alice' }).replace(
    '"source":"pcap"',
    '"source":"pcap","name":"Alice calls"',
  )
  const session = parseSession('f', `${named}${JSON.stringify({ type: 'expect', answerWithin: 900 })}\n`)
  const text = anonymise(session)
  t.notMatch(text, /alice|203\.0\.113|4915112345678|voip\.example|verysecret|AA:BB|bobtag|X-Customer/i)
  for (const payload of session.sounds.values()) t.notOk(text.includes(Buffer.from(payload).toString('base64')))
  const again = parseSession('anonymous', text)
  t.equal(again.rtp.length, session.rtp.length)
  t.same(
    again.sip.map(({ at, by }) => [at, by]),
    session.sip.map(({ at, by }) => [at, by]),
  )
  t.equal(again.expected.answerWithin, 900)
  t.same(again.expected.transcriptContains, [], 'words that were said are no expectation any more')
  const [first] = again.sip
  t.equal(parseMessage(Buffer.from(first?.message ?? '')).kind, 'message')
  t.not(anonymise(session), text, 'nobody finds an original by its hash')
  t.end()
})

test('signals of a browser lose credentials, words and keys that were pressed', (t) => {
  const webHead = {
    parleySession: 1,
    kind: 'web',
    source: 'call',
    codec: 'opus',
    payloadType: 111,
    clockRateHz: 48000,
  } as const
  const offer =
    'v=0\r\no=- 1 2 IN IP4 10.1.2.3\r\ns=-\r\nt=0 0\r\nm=audio 50000 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP4 10.1.2.3\r\na=ice-ufrag:frag1234\r\na=ice-pwd:passwordpassword\r\na=candidate:1 1 udp 1 10.1.2.3 50000 typ srflx raddr 10.9.9.9 rport 1\r\n'
  const text = sessionText(webHead, [
    {
      type: 'signal',
      at: 0,
      by: 'service',
      message: { type: 'ready', callId: 'call-12345', sessionId: 's-12345', resumeToken: 'token-12345' },
    },
    { type: 'signal', at: 1, by: 'caller', message: { type: 'offer', sdp: offer } },
    { type: 'signal', at: 2, by: 'caller', message: { type: 'dtmf', digits: '4711' } },
    {
      type: 'signal',
      at: 3,
      by: 'service',
      message: {
        type: 'transcript',
        role: 'user',
        text: 'I am Alice',
        isFinal: true,
        turnIndex: 0,
        ts: '2026-01-01T00:00:00.000Z',
      },
    },
  ])
  const made = anonymise(parseSession('f', text))
  t.notMatch(made, /10\.1\.2\.3|10\.9\.9\.9|frag1234|passwordpassword|4711|Alice|call-12345|token-12345/)
  t.equal(parseSession('again', made).signals.length, 4)
  t.end()
})
