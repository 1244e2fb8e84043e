/** Owns the proof that offers and answers of phone calls mean what RFC 3264 says: codecs, directions, addresses, keys, hostile text. */
import { test } from 'tap'
import { readSdpText } from '../../net/sdp.ts'
import type { CryptoSuite, LocalMedia, MediaSession, SrtpKey } from '../../media/rtp/media-session.ts'
import { answerOffer } from '../../sip/sdp/answer-offer.ts'
import { createOffer } from '../../sip/sdp/create-offer.ts'
import { readCrypto } from '../../sip/sdp/crypto-lines.ts'
import { readAnswer } from '../../sip/sdp/read-answer.ts'
import { createRandom } from '../fake/random.ts'

const keyOf = (byte: number, suite: CryptoSuite = 'AES_CM_128_HMAC_SHA1_80'): SrtpKey => ({
  suite,
  keyAndSalt: new Uint8Array(30).fill(byte),
})
const inlineOf = (byte: number) => Buffer.alloc(30, byte).toString('base64')

const local: LocalMedia = {
  address: '198.51.100.7',
  port: 30_000,
  rtcpPort: 30_001,
  codecs: ['PCMU', 'PCMA', 'G722', 'opus'],
  encryption: 'none',
  keys: [keyOf(1), keyOf(2, 'AES_CM_128_HMAC_SHA1_32')],
  sessionId: '4711',
  version: 1,
  direction: 'sendrecv',
}

/** As a carrier offers; `audio` are the lines of its audio section. */
const offerOf = (...audio: string[]): string =>
  ['v=0', 'o=- 1 2 IN IP4 192.0.2.9', 's=call', 'c=IN IP4 192.0.2.9', 't=0 0', ...audio, ''].join('\r\n')

const audioLine = 'm=audio 4000 RTP/AVP 8 0 101'
const eventLines = ['a=rtpmap:101 telephone-event/8000', 'a=fmtp:101 0-15']

function answered(offer: string, ours: Partial<LocalMedia> = {}): { session: MediaSession; lines: string[] } {
  const result = answerOffer(offer, { ...local, ...ours })
  if (result.kind === 'refused') throw new Error(result.reason)
  return { session: result.session, lines: result.answer.split('\r\n') }
}

function refusal(offer: string, ours: Partial<LocalMedia> = {}): string {
  const result = answerOffer(offer, { ...local, ...ours })
  return result.kind === 'refused' ? result.reason : 'answered'
}

const sessionOf = (offer: string, ours: Partial<LocalMedia> = {}): MediaSession => answered(offer, ours).session

void test('a plain offer is answered to the letter', (t) => {
  const { session, lines } = answered(offerOf(audioLine, ...eventLines, 'a=ptime:20'))
  t.same(lines, [
    'v=0',
    'o=- 4711 1 IN IP4 198.51.100.7',
    's=-',
    'c=IN IP4 198.51.100.7',
    't=0 0',
    'm=audio 30000 RTP/AVP 8 101',
    'a=rtpmap:8 PCMA/8000',
    'a=rtpmap:101 telephone-event/8000',
    'a=fmtp:101 0-16',
    'a=ptime:20',
    'a=sendrecv',
    '',
  ])
  t.same(session, {
    remote: { address: '192.0.2.9', port: 4000, rtcpPort: 4001 },
    audio: {
      codec: 'pcma',
      payloadType: 8,
      clockRateHz: 8000,
      telephoneEventPayloadType: 101,
      comfortNoisePayloadType: null,
      packetMs: 20,
      silence: 'continuous',
    },
    direction: 'sendrecv',
    srtp: null,
    rtcpMux: false,
  })
  t.end()
})

void test('the peer’s order of codecs counts, not ours', (t) => {
  const codecOf = (formats: string, ours: LocalMedia['codecs'], ...more: string[]) =>
    sessionOf(offerOf(`m=audio 4000 RTP/AVP ${formats}`, ...more), { codecs: ours }).audio.codec
  t.equal(codecOf('0 8', ['PCMA', 'PCMU']), 'pcmu')
  t.equal(codecOf('18 3 8 0', ['PCMU', 'PCMA']), 'pcma', 'what we do not take is passed over')
  t.equal(codecOf('8 0', ['PCMU']), 'pcmu')
  t.equal(codecOf('9 0', ['PCMU', 'G722']), 'g722', 'a static type needs no rtpmap')
  t.equal(codecOf('96 0', ['PCMU', 'PCMA'], 'a=rtpmap:96 pcma/8000/1'), 'pcma', 'names without case, mono said or not')
  t.equal(codecOf('97 0', ['PCMU', 'opus'], 'a=rtpmap:97 OPUS/48000/2'), 'opus')
  t.equal(codecOf('97 0', ['PCMU', 'opus']), 'pcmu', 'a dynamic type without rtpmap is nothing')
  t.equal(codecOf('97 0', ['PCMU', 'opus'], 'a=rtpmap:97 opus/8000'), 'pcmu', 'Opus is always 48000/2')
  t.equal(codecOf('0 8', ['PCMU', 'PCMA'], 'a=rtpmap:0 G729/8000'), 'pcma', 'rtpmap says what a type is')
  t.end()
})

void test('telephone events are of the clock of the codec, or of another one that the peer has alone; comfort noise only at 8 kHz', (t) => {
  const of = (formats: string, ...lines: string[]) =>
    sessionOf(offerOf(`m=audio 4000 RTP/AVP ${formats}`, ...lines)).audio
  const maps = ['a=rtpmap:96 opus/48000/2', 'a=rtpmap:101 telephone-event/8000', 'a=rtpmap:110 telephone-event/48000']
  t.match(of('96 0 101 110 13', ...maps), {
    telephoneEventPayloadType: 110,
    comfortNoisePayloadType: null,
    clockRateHz: 48000,
  })
  t.match(of('0 96 110 101 13', ...maps), {
    telephoneEventPayloadType: 101,
    comfortNoisePayloadType: 13,
    clockRateHz: 8000,
  })
  const eight = { telephoneEventPayloadType: 101, eventClockHz: 8000 }
  t.match(of('96 101', ...maps), eight, 'baresip with Opus has them at 8 kHz alone')
  const wide = ['a=rtpmap:102 telephone-event/16000', ...maps]
  t.match(of('9 102', ...wide), { codec: 'g722', telephoneEventPayloadType: 102, eventClockHz: 16_000 })
  t.match(of('96 102 101', ...wide), eight)
  t.ok(answered(offerOf('m=audio 4000 RTP/AVP 9 102', ...wide)).lines.includes('a=rtpmap:102 telephone-event/16000'))
  t.match(of('9 13 101', ...maps), {
    codec: 'g722',
    clockRateHz: 8000,
    telephoneEventPayloadType: 101,
    comfortNoisePayloadType: 13,
  })
  t.equal(of('0 101').telephoneEventPayloadType, null, 'not mapped to anything')
  const { lines } = answered(offerOf('m=audio 4000 RTP/AVP 96 110 101 13', ...maps))
  t.ok(lines.includes('m=audio 30000 RTP/AVP 96 110'))
  t.ok(lines.includes('a=fmtp:96 useinbandfec=1'))
  t.ok(answered(offerOf('m=audio 4000 RTP/AVP 0 13')).lines.includes('m=audio 30000 RTP/AVP 0 13'))
  t.end()
})

void test('packets are as long as the peer wants them, where that can be had', (t) => {
  const packetMs = (...lines: string[]) => sessionOf(offerOf('m=audio 4000 RTP/AVP 0', ...lines)).audio.packetMs
  t.equal(packetMs(), 20)
  for (const time of [10, 20, 30, 40, 60] as const) t.equal(packetMs(`a=ptime:${time}`), time)
  for (const time of ['50', '0', '200', 'x', '']) t.equal(packetMs(`a=ptime:${time}`), 20, time)
  t.equal(packetMs('a=maxptime:10'), 10)
  t.equal(packetMs('a=ptime:60', 'a=maxptime:45'), 40)
  t.equal(packetMs('a=ptime:30', 'a=maxptime:150'), 30)
  t.equal(packetMs('a=maxptime:1'), 10)
  const opus = ['m=audio 4000 RTP/AVP 96', 'a=rtpmap:96 opus/48000/2', 'a=ptime:30']
  t.equal(sessionOf(offerOf(...opus)).audio.packetMs, 20, 'Opus has no frames of 30 ms')
  t.ok(answered(offerOf(audioLine, 'a=ptime:30')).lines.includes('a=ptime:30'))
  t.equal(sessionOf(offerOf('a=ptime:40', audioLine)).audio.packetMs, 40, 'also said for the whole session')
  t.end()
})

void test('of several sections the first usable audio is taken, the others are refused in their place', (t) => {
  const { lines, session } = answered(
    offerOf(
      'm=image 6000 udptl t38',
      'm=audio 4000 RTP/SAVP 0',
      'm=video 5000/2 RTP/AVP 31 32',
      'm=audio 4100 RTP/AVP 18',
      'm=audio 0 RTP/AVP 0',
      'm=audio 4200 RTP/AVP 0',
      'm=audio 4300 RTP/AVP 0',
      'm=message 7000 TCP/MSRP *',
      'm=application 9 UDP/DTLS/SCTP webrtc-datachannel',
    ),
  )
  t.same(
    lines.filter((line) => line.startsWith('m=')),
    [
      'm=image 0 udptl t38',
      'm=audio 0 RTP/SAVP 0',
      'm=video 0 RTP/AVP 31 32',
      'm=audio 0 RTP/AVP 18',
      'm=audio 0 RTP/AVP 0',
      'm=audio 30000 RTP/AVP 0',
      'm=audio 0 RTP/AVP 0',
      'm=message 0 TCP/MSRP *',
      'm=application 0 UDP/DTLS/SCTP webrtc-datachannel',
    ],
  )
  t.equal(session.remote?.port, 4200)
  t.end()
})

void test('what cannot be answered is refused with a sentence for people', (t) => {
  const codecs: LocalMedia['codecs'] = ['PCMU', 'PCMA']
  t.equal(
    refusal(offerOf('m=audio 4000 RTP/AVP 18 3 101', ...eventLines), { codecs }),
    'The offer cannot be used: its codecs are G729, GSM, and PCMU, PCMA can be used here.',
  )
  t.equal(refusal(offerOf('m=image 4000 udptl t38')), 'The offer has no audio.')
  t.equal(refusal(offerOf()), 'The offer has no audio.')
  t.equal(refusal(offerOf('m=audio 0 RTP/AVP 0')), 'The offer cannot be used: its audio is switched off (port 0).')
  t.equal(
    refusal(offerOf('m=audio 4000 UDP/TLS/RTP/SAVPF 0')),
    'The offer cannot be used: it wants its sound by UDP/TLS/RTP/SAVPF, which is not spoken here.',
  )
  t.match(refusal(offerOf('m=audio 4000 RTP/SAVP 0')), /encryption is switched off here/)
  t.match(refusal(offerOf(audioLine), { encryption: 'required' }), /only encrypted sound is taken/)
  t.match(refusal(offerOf(audioLine).replace(/c=.*\r\n/, '')), /at which address/)
  t.match(refusal(''), /does not begin with v=0/)
  t.match(refusal(offerOf('m=audio 99999 RTP/AVP 0')), /malformed m= line/)
  t.match(refusal(offerOf('m=audio 4000 RTP/AVP')), /malformed m= line/)
  t.match(refusal(offerOf(...Array.from({ length: 33 }, () => audioLine))), /too many sections/)
  t.match(refusal(offerOf(...Array.from({ length: 4001 }, () => 'a=x'))), /too many lines/)
  t.notMatch(
    refusal(offerOf('m=audio 4000 RTP/AVP 96', 'a=rtpmap:96 <b>/8000')),
    '<',
    'a name that is none is not repeated',
  )
  t.end()
})

void test('each way flows only when one end sends and the other receives', (t) => {
  const direction = (theirs: string, ours: LocalMedia['direction'] = 'sendrecv') =>
    sessionOf(offerOf(audioLine, ...(theirs === '' ? [] : [`a=${theirs}`])), { direction: ours }).direction
  t.same(
    ['', 'sendrecv', 'sendonly', 'recvonly', 'inactive'].map((theirs) => direction(theirs)),
    ['sendrecv', 'sendrecv', 'recvonly', 'sendonly', 'inactive'],
  )
  t.equal(direction('sendrecv', 'recvonly'), 'recvonly')
  t.equal(direction('sendonly', 'sendonly'), 'inactive')
  t.equal(direction('recvonly', 'sendonly'), 'sendonly')
  t.equal(direction('sendrecv', 'inactive'), 'inactive')
  t.equal(sessionOf(offerOf('a=inactive', audioLine)).direction, 'inactive', 'said for the whole session')
  t.equal(
    sessionOf(offerOf('a=inactive', audioLine, 'a=sendonly')).direction,
    'recvonly',
    'the section’s own word counts',
  )
  t.ok(answered(offerOf(audioLine, 'a=sendonly')).lines.includes('a=recvonly'))
  t.end()
})

void test('hold by an address of zeros: nothing is sent there, and what comes is heard', (t) => {
  const held = offerOf(audioLine).replace('c=IN IP4 192.0.2.9', 'c=IN IP4 0.0.0.0')
  t.match(sessionOf(held), { remote: null, direction: 'recvonly' })
  t.match(sessionOf(held.replace('IP4 0.0.0.0\r\nt', 'IP6 ::\r\nt')), { remote: null, direction: 'recvonly' })
  t.match(sessionOf(held.replace(audioLine, `${audioLine}\r\na=recvonly`)), { remote: null, direction: 'inactive' })
  t.end()
})

void test('addresses: IPv4 and IPv6, of the session or the section; names and addresses of many are none', (t) => {
  const remote = (connection: string, ...lines: string[]) =>
    sessionOf(offerOf(audioLine, ...lines).replace('c=IN IP4 192.0.2.9', connection)).remote
  t.equal(remote('c=IN IP6 2001:db8::5')?.address, '2001:db8::5')
  t.equal(remote('c=IN IP4 192.0.2.9', 'c=IN IP4 192.0.2.10')?.address, '192.0.2.10')
  for (const place of ['IP4 224.2.1.1/127', 'IP4 255.255.255.255', 'IP6 ff02::1', 'IP4 sbc.example.com'])
    t.match(
      sessionOf(offerOf(audioLine).replace('c=IN IP4 192.0.2.9', `c=IN ${place}`)),
      { remote: null, direction: 'sendrecv', isNameless: true },
      place,
    )
  const { lines } = answered(offerOf(audioLine), { address: '2001:db8::7' })
  t.ok(lines.includes('c=IN IP6 2001:db8::7') && lines.includes('o=- 4711 1 IN IP6 2001:db8::7'))
  t.end()
})

void test('RTCP: on the next port, on the one that is said, or on the same', (t) => {
  const of = (...lines: string[]) => answered(offerOf(audioLine, ...lines), { rtcpPort: 30_009 })
  t.equal(of().session.remote?.rtcpPort, 4001)
  t.equal(of('a=rtcp:4444 IN IP4 192.0.2.9').session.remote?.rtcpPort, 4444)
  t.match(of('a=rtcp-mux', 'a=rtcp:4444').session, { rtcpMux: true, remote: { rtcpPort: 4000 } })
  t.ok(of('a=rtcp-mux').lines.includes('a=rtcp-mux'))
  t.notOk(of().lines.includes('a=rtcp-mux'))
  t.ok(of().lines.includes('a=rtcp:30009'), 'ours is said where it is not the next')
  t.notOk(answered(offerOf(audioLine)).lines.some((line) => line.startsWith('a=rtcp')))
  t.end()
})

void test('SRTP: the first line is taken that is of a suite we have a key for', (t) => {
  const cryptos = [
    'a=crypto:1 AES_256_CM_HMAC_SHA1_80 inline:abc',
    `a=crypto:2 AES_CM_128_HMAC_SHA1_32 inline:${inlineOf(7)}|2^31|1:4`,
    `a=crypto:3 AES_CM_128_HMAC_SHA1_32 inline:${inlineOf(8)}|2^31`,
    `a=crypto:4 AES_CM_128_HMAC_SHA1_80 inline:${inlineOf(9)}`,
  ]
  for (const profile of ['RTP/SAVP', 'RTP/SAVPF'])
    for (const encryption of ['optional', 'required'] as const) {
      const { session, lines } = answered(offerOf(`m=audio 4000 ${profile} 0`, ...cryptos), { encryption })
      t.same(session.srtp, {
        ours: keyOf(2, 'AES_CM_128_HMAC_SHA1_32'),
        theirs: keyOf(8, 'AES_CM_128_HMAC_SHA1_32'),
      })
      t.ok(lines.includes(`m=audio 30000 ${profile} 0`))
      t.ok(lines.includes(`a=crypto:3 AES_CM_128_HMAC_SHA1_32 inline:${inlineOf(2)}`))
    }
  const only80 = { encryption: 'optional', keys: [keyOf(1)] } as const
  t.equal(sessionOf(offerOf('m=audio 4000 RTP/SAVP 0', ...cryptos), only80).srtp?.theirs.keyAndSalt[0], 9)
  t.match(refusal(offerOf('m=audio 4000 RTP/SAVP 0'), only80), /none of its keys/)
  t.match(sessionOf(offerOf('m=audio 4000 RTP/AVPF 0', ...cryptos), { encryption: 'optional' }), { srtp: null })
  t.end()
})

void test('a=crypto: what is unknown or would change the packets makes a line unusable', (t) => {
  const line = (rest: string) => readCrypto(`1 AES_CM_128_HMAC_SHA1_80 inline:${rest}`)
  const key = inlineOf(5)
  for (const rest of [key, `${key}|2^20`, `${key}|1048576`, `${key} WSH=64`, `${key} -anything=1`])
    t.same(line(rest)?.keyAndSalt, new Uint8Array(30).fill(5), rest)
  for (const rest of [
    '',
    key.slice(1),
    `${key}A`,
    `${key.slice(0, 39)}=`,
    `${key}|2^20|1:4`,
    `${key}|1:4`,
    `${key};inline:${key}`,
    `${key} KDR=1`,
    `${key} WSH=64 KDR=1`,
    `${key} UNENCRYPTED_SRTP`,
    `${key} UNENCRYPTED_SRTCP`,
    `${key} UNAUTHENTICATED_SRTP`,
    `${key} FEC_ORDER=FEC_SRTP`,
  ])
    t.equal(line(rest), null, rest)
  t.equal(readCrypto(`x AES_CM_128_HMAC_SHA1_80 inline:${key}`), null)
  t.equal(readCrypto(`1 F8_128_HMAC_SHA1_80 inline:${key}`), null)
  t.end()
})

void test('our offer: codecs in our order, events of each clock, keys only where encryption is required', (t) => {
  t.same(createOffer({ ...local, direction: 'sendonly', version: 3 }).split('\r\n'), [
    'v=0',
    'o=- 4711 3 IN IP4 198.51.100.7',
    's=-',
    'c=IN IP4 198.51.100.7',
    't=0 0',
    'm=audio 30000 RTP/AVP 0 8 9 111 101 110',
    'a=rtpmap:0 PCMU/8000',
    'a=rtpmap:8 PCMA/8000',
    'a=rtpmap:9 G722/8000',
    'a=rtpmap:111 opus/48000/2',
    'a=fmtp:111 useinbandfec=1',
    'a=rtpmap:101 telephone-event/8000',
    'a=fmtp:101 0-16',
    'a=rtpmap:110 telephone-event/48000',
    'a=fmtp:110 0-16',
    'a=ptime:20',
    'a=sendonly',
    'a=rtcp-mux',
    '',
  ])
  const secure = createOffer({ ...local, codecs: ['PCMA'], encryption: 'required' })
  t.match(secure, 'm=audio 30000 RTP/SAVP 8 101\r\n')
  t.match(secure, `a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:${inlineOf(1)}\r\n`)
  t.match(secure, `a=crypto:2 AES_CM_128_HMAC_SHA1_32 inline:${inlineOf(2)}\r\n`)
  t.notMatch(createOffer({ ...local, encryption: 'optional' }), 'crypto')
  t.end()
})

void test('an answer to our offer is read as the peer gave it', (t) => {
  const read = (answer: string, ours: Partial<LocalMedia> = {}) => readAnswer(answer, { ...local, ...ours })
  t.match(read(offerOf(audioLine, ...eventLines, 'a=ptime:30')), {
    kind: 'agreed',
    session: { audio: { codec: 'pcma', telephoneEventPayloadType: 101, packetMs: 30 }, remote: { port: 4000 } },
  })
  t.match(read(offerOf(audioLine, 'a=recvonly')), { session: { direction: 'sendonly' } })
  t.match(read(offerOf('m=audio 0 RTP/AVP 0')), { kind: 'refused', reason: /switched off/ })
  t.match(read(offerOf('m=audio 4000 RTP/AVP 18')), { kind: 'refused', reason: /G729/ })
  t.match(read(offerOf('m=video 4000 RTP/AVP 31')), { kind: 'refused', reason: 'The answer has no audio.' })
  t.match(read('nothing'), { kind: 'refused' })
  const secure = { encryption: 'required' } as const
  const crypto = (tag: number, suite: string) =>
    read(
      offerOf('m=audio 4000 RTP/SAVP 0', `a=crypto:${tag} AES_CM_128_HMAC_SHA1_${suite} inline:${inlineOf(9)}`),
      secure,
    )
  t.match(crypto(2, '32'), { session: { srtp: { ours: keyOf(2, 'AES_CM_128_HMAC_SHA1_32') } } })
  t.match(crypto(1, '32'), { kind: 'refused', reason: /not offered/ })
  t.match(crypto(3, '80'), { kind: 'refused', reason: /not offered/ })
  t.match(read(offerOf(audioLine), secure), { kind: 'refused' }, 'encryption was offered and must not be lost')
  t.match(
    read(offerOf('m=audio 4000 RTP/SAVP 0', `a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:${inlineOf(9)}`), {
      encryption: 'optional',
    }),
    { kind: 'refused' },
    'plain was offered',
  )
  t.end()
})

void test('our offers and answers understand each other, whatever each side brings', (t) => {
  const random = createRandom(3264)
  const directions = ['sendrecv', 'sendonly', 'recvonly', 'inactive'] as const
  const side = (address: string): LocalMedia => ({
    ...local,
    address,
    port: 20_000 + 2 * random.below(1000),
    codecs: local.codecs.toSorted(() => random.next() - 0.5).slice(random.below(4)),
    encryption: random.pick(['none', 'optional', 'required']),
    keys: [keyOf(random.below(256)), keyOf(random.below(256), 'AES_CM_128_HMAC_SHA1_32')].slice(random.below(2)),
    direction: random.pick(directions),
  })
  const counts = { agreed: 0, refused: 0 }
  for (let round = 0; round < 3000; round += 1) {
    const [caller, callee] = [side('192.0.2.1'), side('2001:db8::2')]
    const answer = answerOffer(createOffer(caller), callee)
    const isPossible =
      caller.codecs.some((codec) => callee.codecs.includes(codec)) &&
      (caller.encryption === 'required'
        ? callee.encryption !== 'none' &&
          caller.keys.some(({ suite }) => callee.keys.some((key) => key.suite === suite))
        : callee.encryption !== 'required')
    counts[isPossible ? 'agreed' : 'refused'] += 1
    if ((answer.kind === 'answered') !== isPossible) t.fail(`${JSON.stringify(answer)}`)
    if (answer.kind === 'refused') continue
    const read = readAnswer(answer.answer, caller)
    const [one, other] = [read.kind === 'agreed' ? read.session : null, answer.session]
    const mirrored = { sendrecv: 'sendrecv', sendonly: 'recvonly', recvonly: 'sendonly', inactive: 'inactive' } as const
    t.same(
      [one?.audio, one?.srtp?.ours, one?.srtp?.theirs, one?.rtcpMux, one && mirrored[one.direction], one?.remote?.port],
      [other.audio, other.srtp?.theirs, other.srtp?.ours, true, other.direction, callee.port],
    )
  }
  t.ok(counts.agreed > 500 && counts.refused > 500, JSON.stringify(counts))
  t.end()
})

const wholeOffer = offerOf(
  'a=group:BUNDLE 0',
  'm=audio 4000 RTP/SAVP 8 0 96 101 13',
  'c=IN IP6 2001:db8::1',
  'a=rtpmap:96 opus/48000/2',
  ...eventLines,
  'a=ptime:20',
  'a=maxptime:60',
  'a=rtcp:4009',
  `a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:${inlineOf(3)}|2^20 WSH=64`,
  'a=sendrecv',
  'm=audio 4000 RTP/AVP 0',
  'm=image 0 udptl t38',
)

void test('thirty thousand mutated descriptions throw nothing, and every answer has the sections of its offer', (t) => {
  const random = createRandom(4566)
  const pieces = [
    '\r\n',
    '\n',
    'm=',
    'm=audio 1 RTP/AVP 0\r\n',
    'c=IN IP4 ',
    'a=',
    ':',
    '/',
    ' ',
    '\0',
    '99999999999',
    '-1',
    '|',
    'ÿ',
    '2^',
  ]
  const ours: LocalMedia = { ...local, encryption: 'optional' }
  const counts = { answered: 0, refused: 0 }
  const complaints: string[] = []
  for (let round = 0; round < 30_000; round += 1) {
    let text = wholeOffer
    for (let changes = 1 + random.below(4); changes > 0; changes -= 1) {
      const at = random.below(text.length)
      const [before, behind] = [text.slice(0, at), text.slice(at)]
      text = random.pick([
        before + random.pick(pieces) + behind,
        before + behind.slice(random.below(30)),
        before + behind.slice(0, 60) + behind,
      ])
    }
    const result = answerOffer(text, ours)
    readAnswer(text, ours)
    counts[result.kind] += 1
    if (result.kind === 'refused') continue
    const [offer, answer] = [readSdpText(text), readSdpText(result.answer)]
    const kindsOf = (read: ReturnType<typeof readSdpText>) =>
      typeof read === 'string' ? read : read.sections.map(({ kind, protocol }) => `${kind} ${protocol}`)
    if (JSON.stringify(kindsOf(offer)) !== JSON.stringify(kindsOf(answer))) complaints.push(text)
    if (typeof answer === 'object' && answer.sections.filter(({ port }) => port !== 0).length !== 1) return t.fail(text)
  }
  t.same(complaints.slice(0, 3), [])
  t.ok(counts.answered > 5000 && counts.refused > 1000, JSON.stringify(counts))
  t.end()
})

void test('64 KiB of whatever is meant to be slow is read in no time', (t) => {
  const startedAt = performance.now()
  const ours: LocalMedia = { ...local, encryption: 'optional' }
  for (const piece of [
    ' ',
    '0 ',
    '\r\n',
    'a=\r\n',
    'a=rtpmap:96 x/1\r\n',
    'm=audio 1 RTP/AVP 0\r\n',
    'a=crypto:1 ',
    '1',
    '-',
    '/2',
    '2^1|',
    ' WSH=1',
    '\0',
  ])
    for (const place of [
      '',
      'm=audio 4000 RTP/SAVP 96',
      'm=audio 4000 RTP/SAVP 96\r\na=rtpmap:96 ',
      `m=audio 4000 RTP/SAVP 0\r\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:${inlineOf(1)}`,
      'c=IN IP4 ',
      'a=ptime:',
    ])
      answerOffer(offerOf(place + piece.repeat(65_000 / piece.length)), ours)
  t.ok(performance.now() - startedAt < 8000, 'about eighty of them together')
  t.end()
})
