/** The grammar of session descriptions that browsers and trunks share. RFC 8866, RFC 3551 section 6. */
import { test } from 'tap'
import { readSdp } from '../../gateway/read-sdp.ts'
import { writeAnswer } from '../../gateway/write-sdp.ts'
import { encodings, formatLines, formatsOf, isEncoding, payloadTypeOf } from '../../net/sdp-formats.ts'
import { connectionAt, otherDirection, readSdpText, refusedMedia } from '../../net/sdp.ts'
import { negotiateAudio } from '../../sip/sdp/audio-formats.ts'
import { chromeOffer } from '../gateway/chrome-offer.ts'

const audioSection = (formats: string, lines: readonly string[] = [], protocol = 'RTP/AVP') => {
  const read = readSdpText(['v=0', 't=0 0', `m=audio 4000 ${protocol} ${formats}`, ...lines].join('\r\n'))
  if (typeof read === 'string' || !read.sections[0]) throw new Error('the description cannot be read')
  return read.sections[0]
}

test('a payload type is what rtpmap says, else what RFC 3551 says, else nothing', (t) => {
  const section = audioSection('0 8 96 97 13 34 3 72', [
    'a=rtpmap:96 opus/48000/2',
    'a=rtpmap:8   pcma/8000/1',
    'a=rtpmap:3 PCMU/8000',
    `a=rtpmap:34 ${'x'.repeat(65)}`,
    'a=rtpmap:72 L16/8000',
    'a=rtpmap:99 G722/8000',
  ])
  const formats = formatsOf(section)
  t.same(
    formats.map(({ payloadType, encoding }) => `${payloadType} ${encoding}`),
    ['0 PCMU/8000', '8 pcma/8000/1', '96 opus/48000/2', '13 CN/8000', '3 PCMU/8000'],
  )
  t.same(
    Object.values(encodings).map((encoding) => payloadTypeOf(formats, encoding)),
    [96, 0, 8, null],
  )
  const one = { payloadType: 9, encoding: 'G722/8000/1' }
  t.same(
    ['G722/8000', 'g722/8000', 'G722/16000', 'G722/8000/2'].map((encoding) => isEncoding(one, encoding)),
    [true, true, false, false],
  )
  t.end()
})

test('what is written is read as it was', (t) => {
  const formats = [
    { payloadType: 111, encoding: 'opus/48000/2' },
    { payloadType: 9, encoding: 'G722/8000' },
    { payloadType: 101, encoding: 'telephone-event/8000' },
  ]
  const lines = formatLines(formats, 'useinbandfec=1')
  t.same(formatsOf(audioSection('111 9 101', lines)), formats)
  t.same(
    lines.filter((line) => line.startsWith('a=fmtp')),
    ['a=fmtp:111 useinbandfec=1', 'a=fmtp:101 0-16'],
  )
  const refused = refusedMedia(audioSection('111 9 101'))
  t.equal(refused, 'm=audio 0 RTP/AVP 111 9 101')
  t.match(readSdpText(`v=0\r\n${refused}\r\n`), {
    sections: [{ kind: 'audio', port: 0, formats: ['111', '9', '101'] }],
  })
  t.same(['192.0.2.1', '2001:db8::1'].map(connectionAt), ['IN IP4 192.0.2.1', 'IN IP6 2001:db8::1'])
  for (const direction of ['sendrecv', 'sendonly', 'recvonly', 'inactive'] as const)
    t.equal(otherDirection[otherDirection[direction]], direction)
  t.end()
})

test('browsers and trunks are understood alike', (t) => {
  const spellings = [
    { formats: '0 101', lines: ['a=rtpmap:101 telephone-event/8000'] },
    { formats: '0 101', lines: ['a=rtpmap:0 pcmu/8000/1', 'a=rtpmap:101 TELEPHONE-EVENT/8000'] },
    { formats: '18 0 101', lines: ['a=rtpmap:101  telephone-event/8000'] },
    { formats: '0 110 101', lines: ['a=rtpmap:110 telephone-event/48000', 'a=rtpmap:101 telephone-event/8000/1'] },
  ]
  const agreed = { codec: 'pcmu', payloadType: 0, clockRateHz: 8000, telephoneEventPayloadType: 101 }
  for (const { formats, lines } of spellings) {
    t.match(negotiateAudio(audioSection(formats, lines), [], ['PCMU']), agreed)
    const start = chromeOffer.indexOf('m=audio')
    const kept = chromeOffer.slice(start).match(/^a=(?:mid|rtcp-mux|ice-|fingerprint|setup).*$/gm) ?? []
    const offer = [chromeOffer.slice(0, start), `m=audio 9 UDP/TLS/RTP/SAVPF ${formats}\r\n`]
    t.match(readSdp(`${offer.join('')}${[...kept, ...lines].join('\r\n')}\r\n`, ['actpass']).audio, agreed)
  }
  t.end()
})

const readPartly = ({ usernameFragment, password, fingerprints, setup }: ReturnType<typeof readSdp>) => ({
  usernameFragment,
  password,
  fingerprints,
  setup,
})

test('a microphone that goes with the bundle of a section before it is found there, and has its transport; without a bundle port 0 is refused', (t) => {
  const [head = '', audio = '', video = ''] = chromeOffer.split(/(?=^m=)/m)
  const withoutWay = audio.replace(/^a=(?:ice-|fingerprint|setup|rtcp).*\r?\n/gm, '').replace('m=audio 9', 'm=audio 0')
  const bundleOnly = `${withoutWay}a=bundle-only\r\n`
  const videoFirst = (mids: string) => `${head.replace(/BUNDLE .*(?=\r?\n)/, `BUNDLE ${mids}`)}${video}${bundleOnly}`
  const read = readSdp(videoFirst('1 0'), ['actpass'])
  t.match(read, { audioIndex: 1, bundled: true, direction: 'sendrecv', audio: { codec: 'opus' } })
  t.match(
    read,
    readPartly(readSdp(chromeOffer, ['actpass'])),
    'credentials and certificate of the one that leads the bundle',
  )
  const own = { usernameFragment: 'ours', password: 'p'.repeat(22), fingerprint: { algorithm: 'sha-256', value: 'AB' } }
  const answer = writeAnswer(read, { ...own, candidates: [{ address: '192.0.2.1', port: 4000 }], ssrc: 1, cname: 'x' })
  const [top = '', kept = '', sound = ''] = answer.split(/(?=^m=)/m)
  t.match(top, /^a=group:BUNDLE 1 0\r$/m)
  t.match(kept, /^m=video 4000 UDP\/TLS\/RTP\/SAVPF 96\r\n/)
  t.match(kept, /^a=inactive\r\na=rtcp-mux\r\na=ice-ufrag:ours\r$/m, 'what leads the bundle is kept, and empty')
  t.match(kept, /^a=rtpmap:96 /m)
  t.match(sound, /^m=audio 4000 UDP\/TLS\/RTP\/SAVPF 111 110\r\n/)
  t.throws(() => readSdp(videoFirst('1 2'), ['actpass']), /rtcp-mux|no audio section/)
  t.throws(() => readSdp(`${head}${video}${audio.replace('m=audio 9', 'm=audio 0')}`, ['actpass']), /no audio section/)
  t.end()
})
