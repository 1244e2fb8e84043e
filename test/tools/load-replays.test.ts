/** Recorded calls of other implementations: challenged INVITEs, offers in the 200, bodies of several parts, codecs and captures that cannot be made again. */
import dgram from 'node:dgram'
import { once } from 'node:events'
import { test, type Test } from 'tap'
import { headerOf, headersOf } from '../../sip/server/message/header-fields.ts'
import type { SipRequest } from '../../sip/server/message/message.ts'
import { parseMessage } from '../../sip/server/message/parse-message.ts'
import type { RtpPacket } from '../../model/rtp-transport.ts'
import { openSipExchange } from '../../tools/callers/sip-exchange.ts'
import { allowedHostsOf } from '../../tools/load/allowed-hosts.ts'
import { createLoadTally } from '../../tools/load/load-tally.ts'
import { sessionsOfPcap } from '../../tools/load/pcap/sessions-of-pcap.ts'
import { anonymise } from '../../tools/load/session/anonymise-session.ts'
import { parseSession, readSession } from '../../tools/load/session/read-session.ts'
import { replaySip } from '../../tools/load/session/replay-sip.ts'
import { playSound } from '../../tools/load/session/replay-sound.ts'
import type { Session } from '../../tools/load/session/session-format.ts'
import { sessionText, type RecordedLine } from '../../tools/load/session/write-session.ts'
import { ipv4, pcap, udp } from '../scenes/captured-packets.ts'
import { until } from '../scenes/in-time.ts'

const recordedHost = '203.0.113.7'
const numbers = '+12025550100'

type Words = { readonly toTag?: string; readonly headers?: readonly string[]; readonly body?: string }

function sip(first: string, cseq: string, { toTag = '', headers = [], body = '' }: Words = {}): string {
  const type =
    body === '' || headers.some((line) => line.startsWith('Content-Type')) ? [] : ['Content-Type: application/sdp']
  const lines = [
    first,
    `Via: SIP/2.0/UDP ${recordedHost}:5062;branch=z9hG4bK${cseq.replace(' ', '')}`,
    `From: <sip:alice@${recordedHost}>;tag=alicetag`,
    `To: <sip:${numbers}@198.51.100.1>${toTag && `;tag=${toTag}`}`,
    'Call-ID: recorded',
    `CSeq: ${cseq}`,
    `Contact: <sip:alice@${recordedHost}:5062>`,
    ...headers,
    ...type,
    `Content-Length: ${Buffer.byteLength(body)}`,
  ]
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}
const request = (method: string, number: number, words: Words = {}): string =>
  sip(`${method} sip:${numbers}@198.51.100.1 SIP/2.0`, `${number} ${method}`, words)

const sdp = (formats: string, { address = recordedHost, port = 6000, protocol = 'RTP/AVP' } = {}): string =>
  `v=0\r\no=- 1 1 IN IP4 ${address}\r\ns=-\r\nc=IN IP4 ${address}\r\nt=0 0\r\nm=audio ${port} ${protocol} ${formats}\r\n`

const head = {
  parleySession: 1,
  kind: 'sip',
  source: 'pcap',
  codec: 'pcmu',
  payloadType: 0,
  clockRateHz: 8000,
} as const
type Said = readonly [at: number, by: 'caller' | 'service', message: string]

function sessionOf(said: readonly Said[], more: readonly RecordedLine[] = []): Session {
  const lines = said.map(([at, by, message]): RecordedLine => ({ type: 'sip', at, by, message }))
  return parseSession('f', sessionText(head, [...lines, ...more]))
}

/** A SIP host that answers every INVITE with this description, and everything else with 200 without one. */
async function openHost(t: Test, description: string) {
  const socket = dgram.createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  t.teardown(() => void socket.close())
  const heard: SipRequest[] = []
  socket.on('message', (bytes, from) => {
    const parsed = parseMessage(bytes)
    if (parsed.kind !== 'message' || parsed.message.kind !== 'request') return
    const asked = parsed.message
    heard.push(asked)
    if (asked.method === 'ACK') return
    const copied = ['From', 'Call-ID', 'CSeq'].map((name) => `${name}: ${headerOf(asked, name)}`)
    const to = headerOf(asked, 'To') ?? ''
    const body = asked.method === 'INVITE' ? description : ''
    const lines = [
      'SIP/2.0 200 OK',
      ...headersOf(asked, 'Via').map((via) => `Via: ${via}`),
      ...copied,
      `To: ${to.includes(';tag=') ? to : `${to};tag=host`}`,
      `Contact: <sip:127.0.0.1:${socket.address().port}>`,
      ...(body === '' ? [] : ['Content-Type: application/sdp']),
      `Content-Length: ${body.length}`,
    ]
    socket.send(`${lines.join('\r\n')}\r\n\r\n${body}`, from.port, from.address)
  })
  const target = { protocol: 'udp', host: '127.0.0.1', port: socket.address().port } as const
  const exchange = await openSipExchange(target)
  t.teardown(() => exchange.close())
  const told: string[] = []
  const allowed = await allowedHostsOf([])
  const made = (session: Session) =>
    replaySip({ session, exchange, allowed, called: null, calling: null, refused: (words) => void told.push(words) })
  return { heard, made, told }
}

const methodsOf = (heard: readonly SipRequest[]): string[] => heard.map((one) => headerOf(one, 'CSeq') ?? '')
const bodyOf = (one: SipRequest | undefined): string => new TextDecoder().decode(one?.body)
const here = { address: '127.0.0.1', port: 7000 }

test('a service that chooses another codec than was recorded has its call ended, and that is said', async (t) => {
  const { heard, made } = await openHost(t, sdp('8 101', here))
  const session = sessionOf([[0, 'caller', request('INVITE', 1, { body: sdp('8 0 101') })]])
  await t.rejects(made(session), /the service chose PCMA, and pcmu was recorded/)
  t.same(methodsOf(heard), ['1 INVITE', '1 ACK', '2 BYE'])
})

test('an INVITE that was challenged is not sent within the new call, and neither is what belonged to the ringing', async (t) => {
  const { heard, made } = await openHost(t, sdp('0', here))
  const proof = { headers: ['Authorization: Digest username="alice"', 'Require: 100rel, timer'], body: sdp('0') }
  const within = { toTag: 'bob' }
  const session = sessionOf([
    [0, 'caller', request('INVITE', 1, { body: sdp('0') })],
    [20, 'service', sip('SIP/2.0 401 Unauthorized', '1 INVITE', within)],
    [30, 'caller', request('ACK', 1, within)],
    [40, 'caller', request('INVITE', 2, proof)],
    [60, 'caller', request('PRACK', 3, within)],
    [90, 'service', sip('SIP/2.0 200 OK', '2 INVITE', { ...within, body: sdp('0') })],
    [95, 'caller', request('ACK', 2, within)],
    [120, 'caller', request('INFO', 4, within)],
  ])
  const { line, act } = await made(session)
  await act(new AbortController().signal)
  await line.hangUp()
  t.same(methodsOf(heard), ['2 INVITE', '2 ACK', '4 INFO', '5 BYE'])
  const [invite] = heard
  t.equal(invite && headerOf(invite, 'Authorization'), null)
  t.equal(invite && headerOf(invite, 'Require'), 'timer', 'provisional answers are not acknowledged')
})

test('a call whose offer came from the service is answered in the ACK, as it was', async (t) => {
  const { heard, made } = await openHost(t, sdp('8 0 101', here))
  const session = sessionOf([
    [0, 'caller', request('INVITE', 1)],
    [50, 'service', sip('SIP/2.0 200 OK', '1 INVITE', { toTag: 'bob', body: sdp('0 8') })],
    [60, 'caller', request('ACK', 1, { toTag: 'bob', body: sdp('0') })],
  ])
  const { line } = await made(session)
  await until(() => heard.length === 2)
  t.same(methodsOf(heard), ['1 INVITE', '1 ACK'])
  t.equal(bodyOf(heard[0]), '')
  t.match(bodyOf(heard[1]), /c=IN IP4 127\.0\.0\.1\r\n[^]*m=audio \d+ RTP\/AVP 0\r\n$/)
  await line.hangUp()
})

const twoParts = (description: string): Words => ({
  headers: ['Content-Type: multipart/mixed;boundary=part'],
  body: `--part\r\nContent-Type: application/sdp\r\n\r\n${description}\r\n--part\r\nContent-Type: application/isup\r\n\r\nbytes\r\n--part--\r\n`,
})

test('a description in a body of several parts leads to the new caller, and not to the recorded one', async (t) => {
  const { heard, made } = await openHost(t, sdp('0', here))
  const session = sessionOf([[0, 'caller', request('INVITE', 1, twoParts(sdp('0')))]])
  const { line } = await made(session)
  const [invite] = heard
  t.equal(invite && headerOf(invite, 'Content-Type'), 'application/sdp')
  t.match(bodyOf(invite), /^v=0\r\n[^]*c=IN IP4 127\.0\.0\.1\r\n/)
  t.notMatch(bodyOf(invite), /203\.0\.113|part/)
  await line.hangUp()
  const anonymous = parseSession('a', anonymise(session))
  t.match(anonymous.sip[0]?.message, /Content-Type: application\/sdp\r\n[^]*m=audio 9 RTP\/AVP 0\r\n$/)
})

test('sound from before the answer is not sent all at once when it comes', async (t) => {
  const packet = (number: number): RtpPacket => ({
    payloadType: 0,
    marker: false,
    sequenceNumber: number,
    timestamp: number * 160,
    payload: new Uint8Array([number]),
  })
  const session = sessionOf(
    [[0, 'caller', request('INVITE', 1, { body: sdp('0') })]],
    [10, 20, 30, 40].map((at) => ({ type: 'packet', at, by: 'caller', packet: packet(at) })),
  )
  const sent: number[] = []
  const line = {
    callId: null,
    audio: { payloadType: 0, clockRateHz: 8000, codec: 'pcmu' },
    onPacket: () => undefined,
    send: ({ sequenceNumber }: RtpPacket) => void sent.push(sequenceNumber),
    ended: new Promise<string>(() => undefined),
    hangUp: () => Promise.resolve(),
  } as const
  const playing = { tally: createLoadTally(), over: new AbortController().signal, anchor: 30 }
  await playSound(line, session, playing)
  t.same(sent, [30, 40])
})

/** A call between two addresses, its sound seen as often as `copies` says. */
function captureOf(offer: Words, answer: Words, copies = 1): Buffer {
  const [caller, service] = [recordedHost, '198.51.100.1']
  const rtp = Buffer.alloc(172)
  rtp.writeUInt16BE(0x8000, 0)
  const packets = [
    ipv4(caller, service, 17, udp(5062, 5060, Buffer.from(request('INVITE', 1, offer)))),
    ipv4(service, caller, 17, udp(5060, 5062, Buffer.from(sip('SIP/2.0 200 OK', '1 INVITE', answer)))),
    ...Array.from({ length: copies }, () => ipv4(caller, service, 17, udp(6000, 7000, rtp))),
  ]
  return pcap(
    101,
    packets.map((bytes, at) => ({ at: 1_700_000_000_000 + at, bytes })),
  )
}
const theirs = { address: '198.51.100.1', port: 7000 }

test('a captured call whose sound cannot be made again says so', (t) => {
  const secure = { ...theirs, protocol: 'RTP/SAVP' }
  const unusable = (offer: Words, answer: Words) => sessionsOfPcap(captureOf(offer, answer)).map((one) => one.unusable)
  t.match(unusable({ body: sdp('18 0') }, { toTag: 'b', body: sdp('18', theirs) }), [/its sound is G729/])
  t.match(unusable({ body: sdp('0') }, { toTag: 'b', body: sdp('0', secure) }), ['its sound is encrypted'])
  t.same(unusable({ body: sdp('18 0') }, { toTag: 'b', body: sdp('101 0', theirs) }), [null])
  t.end()
})

test('a capture of all interfaces, which has a packet several times, gives its sound once', (t) => {
  const answer = { toTag: 'b', body: sdp('0', theirs) }
  const [call] = sessionsOfPcap(captureOf(twoParts(sdp('0')), answer, 3))
  t.same(call?.packets, { caller: 1, service: 0 })
  t.end()
})

test('what the caller typed, and sections that were refused, are no other in an anonymised file', (t) => {
  const offer = `${sdp('111', { protocol: 'UDP/TLS/RTP/SAVPF' })}m=video 0 UDP/TLS/RTP/SAVPF 96\r\n`
  const text = sessionText({ ...head, kind: 'web', codec: 'opus', payloadType: 111, clockRateHz: 48000 }, [
    { type: 'signal', at: 0, by: 'caller', message: { type: 'offer', sdp: offer } },
    { type: 'signal', at: 1, by: 'caller', message: { type: 'text', text: 'My card is 4111 1111' } },
  ])
  const made = anonymise(parseSession('f', text))
  t.notMatch(made, /4111/)
  const [first, typed] = parseSession('a', made).signals
  t.match(first?.message, { sdp: /m=audio 9 [^]*m=video 0 / })
  t.match(typed?.message, { type: 'text' }, 'it is still typed')
  t.end()
})

test('a message that is no SIP, and a path that is no file, are refused before anything is placed', async (t) => {
  const line = (message: string): string =>
    `${JSON.stringify(head)}\n${JSON.stringify({ type: 'sip', at: 0, by: 'caller', message })}\n`
  const withoutCseq = request('INVITE', 1).replace(/^CSeq.*\r\n/m, '')
  t.throws(() => parseSession('f', line(withoutCseq)), /f:2: message: it is no SIP message that can be read/)
  await t.rejects(readSession(import.meta.dirname), { name: 'WrongSession', message: /: it is no file$/ })
})
