/** SRTP and SRTCP of all calls against the vectors of RFC 3711 and RFC 7714, and against an independent implementation. */
import { createCipheriv, createHmac } from 'node:crypto'
import { test, type Test } from 'tap'
import {
  ProtectionProfileAeadAes128Gcm,
  ProtectionProfileAes128CmHmacSha1_80,
  RtpHeader,
  RtpPacket,
  SrtcpSession,
  SrtpSession,
} from 'werift'
import { createAesGcmRtcp, createAesGcmRtp } from '../../media/rtp/srtp/aes-gcm.ts'
import { createCounterMode } from '../../media/rtp/srtp/counter-mode.ts'
import { createReplayWindow } from '../../media/rtp/srtp/replay-window.ts'
import { createSecurity } from '../../media/rtp/srtp/security.ts'
import { createSrtcpReceiving, createSrtcpSending } from '../../media/rtp/srtp/srtcp.ts'
import { createSrtpKey, derive, deriveSessionKeys } from '../../media/rtp/srtp/srtp-keys.ts'
import { createSrtpReceiving, createSrtpSending, type SrtpSending } from '../../media/rtp/srtp/srtp.ts'
import type { CryptoSuite, SrtpKey } from '../../media/rtp/media-session.ts'
import { createRandom } from '../fake/random.ts'

const bytesOf = (hex: string): Buffer => Buffer.from(hex.replaceAll(/\s/g, ''), 'hex')
const counterModeSuites: readonly CryptoSuite[] = ['AES_CM_128_HMAC_SHA1_80', 'AES_CM_128_HMAC_SHA1_32']
const suites: readonly CryptoSuite[] = [...counterModeSuites, 'AEAD_AES_128_GCM']
const keyOf = (suite: CryptoSuite = suites[0]!, seed = 1): SrtpKey => {
  const random = createRandom(seed)
  const length = suite === 'AEAD_AES_128_GCM' ? 28 : 30
  return { suite, keyAndSalt: Uint8Array.from({ length }, () => random.below(256)) }
}

type Shape = { sequenceNumber: number; ssrc?: number; payload?: string; sources?: number; extension?: boolean }

function rtpOf({ sequenceNumber, ssrc = 7, payload = 'sound', sources = 0, extension = false }: Shape): Buffer {
  const header = Buffer.alloc(12 + sources * 4)
  header[0] = 0x80 | sources | (extension ? 0x10 : 0)
  header.writeUInt16BE(sequenceNumber, 2)
  header.writeUInt32BE(sequenceNumber * 160, 4)
  header.writeUInt32BE(ssrc, 8)
  const extended = extension ? [bytesOf('bede0001 10ff0000')] : []
  return Buffer.concat([header, ...extended, Buffer.from(payload)])
}

function protect(sending: SrtpSending, shape: Shape): Buffer {
  const datagram = Buffer.concat([rtpOf(shape), Buffer.alloc(sending.tagBytes)])
  if (!sending.protect(datagram)) throw new Error('refused')
  return datagram
}

const profiles = {
  AES_CM_128_HMAC_SHA1_80: ProtectionProfileAes128CmHmacSha1_80,
  AEAD_AES_128_GCM: ProtectionProfileAeadAes128Gcm,
} as const
/** What the other implementation knows. */
const sharedSuites = ['AES_CM_128_HMAC_SHA1_80', 'AEAD_AES_128_GCM'] as const

const werift = (ours: SrtpKey, theirs: SrtpKey) => ({
  profile: profiles[ours.suite as keyof typeof profiles],
  keys: {
    localMasterKey: Buffer.from(ours.keyAndSalt.subarray(0, 16)),
    localMasterSalt: Buffer.from(ours.keyAndSalt.subarray(16)),
    remoteMasterKey: Buffer.from(theirs.keyAndSalt.subarray(0, 16)),
    remoteMasterSalt: Buffer.from(theirs.keyAndSalt.subarray(16)),
  },
})

test('the keystream is that of RFC 3711 §B.2', (t) => {
  const counterMode = createCounterMode(bytesOf('2B7E151628AED2A6ABF7158809CF4F3C'))
  const stream = Buffer.alloc(48)
  counterMode(stream, bytesOf('F0F1F2F3F4F5F6F7F8F9FAFBFCFD0000'))
  t.same(
    stream,
    bytesOf('E03EAD0935C95E80E166B16DD92B4EB4 D23513162B02D0F72A43A2FE4A5F97AB 41E95B3BB0A2E8DD477901E4FCA894C0'),
  )
  t.throws(() => counterMode(Buffer.alloc(2049), Buffer.alloc(16)))
  t.end()
})

test('session keys are derived as in RFC 3711 §B.3', (t) => {
  const keyAndSalt = bytesOf('E1F97A0D3E018BE0D64FA32C06DE4139 0EC675AD498AFEEBB6960B3AABE6')
  const keys = deriveSessionKeys({ suite: 'AES_CM_128_HMAC_SHA1_80', keyAndSalt }, 'rtp')
  t.same(keys.cipherKey, new Uint8Array(bytesOf('C61E7A93744F39EE10734AFE3FF7A087')))
  t.same(keys.salt, new Uint8Array(bytesOf('30CBBC08863D8C85D49DB34A9AE1')))
  const longAuthenticationKey = bytesOf(
    `CEBE321F6FF7716B6FD4AB49AF256A15 6D38BAA48F0A0ACF3C34E2359E6CDBCE E049646C43D9327AD175578EF7227098
     6371C10C9A369AC2F94A8C5FBCDDDC25 6D6E919A48B610EF17C2041E47403576 6B68642C59BBFC2F34DB60DBDFB2`,
  )
  t.same(derive(keyAndSalt, 1, 94), new Uint8Array(longAuthenticationKey))
  t.same(keys.authenticationKey, new Uint8Array(longAuthenticationKey.subarray(0, 20)))
  for (const suite of suites)
    t.throws(() => deriveSessionKeys({ suite, keyAndSalt: keyAndSalt.subarray(1) }, 'rtp'), /have \d\d bytes/)
  t.end()
})

/** §16 and §17 share key and salt, and have no derivation. */
const gcmKeys = {
  cipherKey: bytesOf('000102030405060708090a0b0c0d0e0f'),
  authenticationKey: new Uint8Array(),
  salt: bytesOf('517569642070726f2071756f'),
}

test('AEAD_AES_128_GCM: RTP is what RFC 7714 §16.1 says, both ways', (t) => {
  const plain = bytesOf(
    `8040f17b8041f8d35501a0b2 47616c6c696120657374206f6d6e69732064697669736120696e207061727465732074726573`,
  )
  const expected = bytesOf(
    `8040f17b8041f8d35501a0b2 f24de3a3fb34de6cacba861c9d7e4bcabe633bd50d294e6f42a5f47a51c7d19b36de3adf8833
     899d7f27beb16a9152cf765ee4390cce`,
  )
  const transform = createAesGcmRtp(gcmKeys)
  const datagram = Buffer.concat([plain, Buffer.alloc(transform.tagBytes)])
  transform.protect(datagram, 12, 0xf17b)
  t.same(datagram, expected)
  t.notOk(transform.unprotect(datagram, 12, 0x1_f17b), 'the rollover counter is part of it')
  t.same(datagram, expected, 'what is not authentic stays as it was')
  t.ok(transform.unprotect(datagram, 12, 0xf17b))
  t.same(datagram.subarray(0, plain.length), plain)
  t.end()
})

test('AEAD_AES_128_GCM: RTCP is what RFC 7714 §17.1 and §17.3 say, encrypted or with a tag only', (t) => {
  const plain = bytesOf(
    '81c8000d4d617273 4e5450314e545032525450200000042a0000e9304c756e61deadbeefdeadbeefdeadbeefdeadbeefdeadbeef',
  )
  const encrypted = bytesOf(
    `81c8000d4d617273 63e94885dcdab67ca727d7662f6b7e997ff5c0f76c06f32dc676a5f1730d6fda4ce09b4686303ded0bb9275b
     c84aa45896cf4d2fc5abf87245d9eade 800005d4`,
  )
  const transform = createAesGcmRtcp(gcmKeys)
  const datagram = Buffer.concat([plain, Buffer.alloc(16), bytesOf('800005d4')])
  t.equal(datagram.length, plain.length + transform.trailerBytes)
  transform.protect(datagram, 0x5d4)
  t.same(datagram, encrypted)
  t.notOk(transform.unprotect(datagram, 0x5d5, true))
  t.ok(transform.unprotect(datagram, 0x5d4, true))
  t.same(datagram.subarray(0, plain.length), plain)
  const tagged = Buffer.concat([plain, bytesOf('841dd9683dd78ec92ae58790125f62b3 000005d4')])
  t.notOk(transform.unprotect(tagged, 0x5d4, true))
  t.ok(transform.unprotect(tagged, 0x5d4, false))
  t.same(tagged.subarray(0, plain.length), plain)
  t.end()
})

for (const suite of counterModeSuites)
  test(`${suite}: a packet is what RFC 3711 §4 says, worked out by other means`, (t) => {
    const key = keyOf(suite)
    const sending = createSrtpSending(key)
    t.equal(sending.tagBytes, suite.endsWith('80') ? 10 : 4)
    const shape = { sequenceNumber: 4242, ssrc: 0xdeadbeef, payload: 'x'.repeat(160), sources: 2, extension: true }
    const datagram = protect(sending, shape)
    const { cipherKey, authenticationKey, salt } = deriveSessionKeys(key, 'rtp')
    const vector = Buffer.concat([salt, Buffer.alloc(2)])
    bytesOf('00000000 deadbeef 000000001092 0000').forEach((byte, at) => (vector[at]! ^= byte))
    const plain = rtpOf(shape)
    const start = 12 + 8 + 8
    const cipher = createCipheriv('aes-128-ctr', cipherKey, vector)
    const encrypted = Buffer.concat([plain.subarray(0, start), cipher.update(plain.subarray(start))])
    const tag = createHmac('sha1', authenticationKey).update(encrypted).update(Buffer.alloc(4)).digest()
    t.same(datagram, Buffer.concat([encrypted, tag.subarray(0, sending.tagBytes)]))
    t.same(createSrtpReceiving(key).unprotect(datagram), plain)
    t.end()
  })

for (const suite of sharedSuites)
  test(`${suite}: another implementation understands us, and we understand it, over a wrap of the sequence number`, (t) => {
    const [ours, theirs] = [keyOf(suite, 1), keyOf(suite, 2)]
    const peer = new SrtpSession(werift(theirs, ours))
    const sending = createSrtpSending(ours)
    const receiving = createSrtpReceiving(theirs)
    for (let at = 65_300; at < 65_536 + 20; at += 1) {
      const sequenceNumber = at & 0xffff
      const shape = { sequenceNumber, payload: `sound ${at}` }
      const theirView = peer.decrypt(protect(sending, shape))
      const header = new RtpHeader({ payloadType: 0, sequenceNumber, timestamp: sequenceNumber * 160, ssrc: 7 })
      const ourView = receiving.unprotect(peer.encrypt(Buffer.from(shape.payload), header))
      t.same(theirView, rtpOf(shape))
      t.equal(ourView && RtpPacket.deSerialize(ourView).payload.toString(), shape.payload)
    }
    t.equal(receiving.rolloverOf(7), 1)
    t.equal(receiving.rolloverOf(8), null)
    t.end()
  })

for (const suite of sharedSuites)
  test(`${suite}: SRTCP of another implementation is read, and ours by it`, (t) => {
    const [ours, theirs] = [keyOf(suite, 1), keyOf(suite, 2)]
    const peer = new SrtcpSession(werift(theirs, ours))
    const sending = createSrtcpSending(ours)
    const receiving = createSrtcpReceiving(theirs)
    const report = bytesOf('80c90001 00000007')
    const long = Buffer.concat([bytesOf('81c90007 00000007'), Buffer.alloc(24, 5)])
    for (const compound of [report, long, report, long]) {
      const datagram = sending(compound)
      t.equal(datagram.length, compound.length + (suite === 'AEAD_AES_128_GCM' ? 20 : 14))
      t.ok(compound.length === 8 || !datagram.includes(compound.subarray(8)), 'it is encrypted')
      t.same(peer.decrypt(datagram), compound)
      t.same(receiving(peer.encrypt(Buffer.from(compound))), compound)
    }
    t.end()
  })

for (const suite of suites)
  test(`${suite}: a report is refused when it comes again, when a bit is wrong, and when it is too short`, (t) => {
    const key = keyOf(suite)
    const sending = createSrtcpSending(key)
    const receiving = createSrtcpReceiving(key)
    const report = Buffer.concat([bytesOf('81c90007 00000007'), Buffer.alloc(24, 5)])
    const datagrams = Array.from({ length: 300 }, () => sending(report))
    const again = (at: number): Buffer => Buffer.from(datagrams[at]!)
    t.ok(receiving(again(10)))
    t.equal(receiving(again(10)), null, 'the same one')
    t.ok(receiving(again(3)), 'an older one that had not come')
    t.ok(receiving(again(299)))
    t.equal(receiving(again(4)), null, 'older than the window')
    for (let at = 0; at < again(200).length; at += 1) {
      const forged = again(200)
      forged[at]! ^= 1
      t.equal(receiving(forged), null, `byte ${at}`)
    }
    t.ok(receiving(again(200)), 'forgeries did not use it up')
    for (let length = 0; length < 28; length += 1) t.equal(receiving(again(201).subarray(0, length)), null)
    t.end()
  })

for (const suite of sharedSuites)
  test(`${suite}: packets around the wrap may be lost, late or out of order`, (t) => {
    const key = keyOf(suite)
    const sending = createSrtpSending(key)
    const receiving = createSrtpReceiving(key)
    const all = new Map<number, Buffer>()
    for (let at = 30_000; at < 131_300; at += 1) all.set(at, protect(sending, { sequenceNumber: at & 0xffff }))
    const hear = (at: number): boolean => receiving.unprotect(Buffer.from(all.get(at)!)) !== null
    t.ok(hear(30_000))
    t.ok(hear(50_000))
    t.ok(hear(65_500), 'before the wrap')
    t.ok(hear(65_900), 'four hundred lost, the wrap among them')
    t.notOk(hear(65_500), 'already heard')
    t.notOk(hear(65_535), 'too late for the window')
    t.ok(hear(65_899), 'late')
    t.ok(hear(90_000))
    t.ok(hear(120_000))
    t.ok(hear(131_070))
    t.ok(hear(131_073), 'the second wrap')
    t.ok(hear(131_071), 'late, from before it')
    t.notOk(hear(131_071))
    t.equal(receiving.rolloverOf(7), 2)
    t.end()
  })

test('every packet is heard once, in whatever order it comes, and none twice', (t) => {
  for (let seed = 1; seed <= 20; seed += 1) {
    const random = createRandom(seed)
    const window = createReplayWindow()
    const seen = new Set<number>()
    const start = random.below(40_000)
    window.saw(start)
    seen.add(start)
    for (let step = 0; step < 3000; step += 1) {
      const jump = random.below(50) === 0 ? random.below(9000) : random.below(500) - 400
      const index = Math.max(0, window.highest() + jump)
      const isInside = index > window.highest() - 224
      if (window.nearest(index & 0xffff) !== index) t.fail(`nearest ${seed} ${step}`)
      if (window.isFresh(index) !== (isInside && !seen.has(index))) t.fail(`fresh ${seed} ${step}`)
      if (!window.isFresh(index)) continue
      window.saw(index)
      seen.add(index)
    }
  }
  t.end()
})

test('who hears a source late, after a wrap was missed, hears it all the same', (t) => {
  const key = keyOf()
  const sending = createSrtpSending(key)
  protect(sending, { sequenceNumber: 65_530 })
  t.ok(createSrtpReceiving(key).unprotect(protect(sending, { sequenceNumber: 3 })))
  t.end()
})

test('a sequence number is never sent twice: its keystream would be the same', (t) => {
  const sending = createSrtpSending(keyOf())
  const send = (sequenceNumber: number): boolean =>
    sending.protect(Buffer.concat([rtpOf({ sequenceNumber }), Buffer.alloc(sending.tagBytes)]))
  t.ok(send(100))
  t.notOk(send(100))
  t.notOk(send(99))
  t.ok(send(101))
  t.end()
})

test('sources under one key are bounded, and none that was heard is forgotten', (t) => {
  const key = keyOf()
  const receiving = createSrtpReceiving(key)
  const hear = (ssrc: number, sequenceNumber: number): boolean =>
    receiving.unprotect(protect(createSrtpSending(key), { ssrc, sequenceNumber })) !== null
  for (let ssrc = 1; ssrc <= 32; ssrc += 1) t.ok(hear(ssrc, 1))
  t.notOk(hear(33, 1))
  t.notOk(hear(1, 1), 'replayed')
  t.ok(hear(1, 2))
  t.end()
})

test('the same key agreed on again goes on; another key is another beginning, with or without the old count', (t) => {
  const [ours, theirs, next] = [keyOf(suites[0], 1), keyOf(suites[0], 2), keyOf(suites[1], 3)]
  const [here, there] = [createSecurity(), createSecurity()]
  const pass = (sequenceNumber: number): Buffer | null => {
    const datagram = Buffer.concat([rtpOf({ sequenceNumber }), Buffer.alloc(there.tagBytes())])
    return there.protect(datagram) ? here.unprotect(datagram) : null
  }
  const agree = (their: SrtpKey | null): void => {
    here.use(their && { ours, theirs: their })
    there.use(their && { ours: their, theirs: ours })
  }
  agree(theirs)
  for (const sequenceNumber of [40_000, 65_000, 4]) t.ok(pass(sequenceNumber))
  const taped = Buffer.concat([rtpOf({ sequenceNumber: 4 }), Buffer.alloc(there.tagBytes())])
  const tape = createSrtpSending(theirs)
  for (const sequenceNumber of [40_000, 65_000]) protect(tape, { sequenceNumber })
  t.ok(tape.protect(taped))
  t.equal(here.unprotect(Buffer.from(taped)), null, 'heard already')
  agree({ ...theirs, keyAndSalt: Uint8Array.from(theirs.keyAndSalt) })
  t.equal(here.unprotect(Buffer.from(taped)), null, 'and not forgotten')
  t.ok(pass(5), 'the count of wraps is kept')
  t.equal(pass(5), null, 'and what was sent stays sent')
  agree(null)
  t.notOk(here.isOn())
  t.same(pass(6), rtpOf({ sequenceNumber: 6 }), 'plain')
  agree(theirs)
  t.equal(pass(5), null, 'a key that comes again is not begun anew')
  t.ok(pass(7))
  agree(next)
  t.ok(pass(8), 'a new key counts from nothing')
  const goesOn = createSrtpSending(theirs)
  for (const sequenceNumber of [40_000, 3, 30_000, 60_000, 9]) protect(goesOn, { sequenceNumber, ssrc: 9 })
  const late = createSrtpReceiving(theirs, { unprotect: () => null, rolloverOf: () => 2 })
  t.ok(late.unprotect(protect(goesOn, { sequenceNumber: 10, ssrc: 9 })), 'a peer may go on counting')
  t.end()
})

test('a new key has 30 bytes of its own, and 28 for GCM', (t) => {
  for (const suite of suites) {
    const [one, other] = [createSrtpKey(suite), createSrtpKey(suite)]
    t.equal(one.keyAndSalt.length, suite === 'AEAD_AES_128_GCM' ? 28 : 30)
    t.notSame(one.keyAndSalt, other.keyAndSalt)
  }
  t.end()
})

for (const suite of suites)
  test(`${suite}: forged, cut and random datagrams are refused and change nothing`, (t) => {
    const key = keyOf(suite)
    const sending = createSrtpSending(key)
    const receiving = createSrtpReceiving(key)
    const reports = createSrtcpReceiving(key)
    const random = createRandom(4711)
    t.ok(receiving.unprotect(protect(sending, { sequenceNumber: 1 })))
    const good = protect(sending, { sequenceNumber: 2, sources: 1, extension: true })
    for (let at = 0; at < good.length; at += 1) forge(t, good, at)
    for (let length = 0; length < good.length; length += 1)
      t.equal(receiving.unprotect(Buffer.from(good.subarray(0, length))), null)
    for (let round = 0; round < 3000; round += 1) {
      const garbage = Buffer.from(Array.from({ length: random.below(80) }, () => random.below(256)))
      if (garbage.length > 0 && random.below(2) === 0) garbage[0] = 0x80 | random.below(0x40)
      if (receiving.unprotect(Buffer.from(garbage)) ?? reports(garbage)) t.fail('garbage was taken')
    }
    t.ok(receiving.unprotect(good), 'the good one is still fresh')
    t.end()

    function forge(here: Test, datagram: Buffer, at: number): void {
      const forged = Buffer.from(datagram)
      forged[at]! ^= 1 << random.below(8)
      const before = Buffer.from(forged)
      here.equal(receiving.unprotect(forged), null, `byte ${at}`)
      here.same(forged, before)
    }
  })
