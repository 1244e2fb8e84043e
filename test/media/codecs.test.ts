/** G.711, Opus, changes of rate and WAV files: sound in, the same sound out. */
import { joined } from '../../media/pcm/joined.ts'
import { test, type Test } from 'tap'
import { lawOfEncoding } from '../../media/codecs/g711.ts'
import { createOpusLibrary, loadNativeEncoder, type OpusLibrary, type OpusRate } from '../../media/codecs/opus.ts'
import { createResampler } from '../../media/pcm/resample.ts'
import { createDoubling, pieceLength } from '../../media/recording/track.ts'
import { wavHeaderOf } from '../../media/recording/wav.ts'
import { createRandom } from '../fake/random.ts'
import { parseWav } from '../scenes/parse-wav.ts'

const rates: readonly OpusRate[] = [8000, 16000, 24000, 48000]

const toneOf = (hertz: number, rateHz: number, count: number, level = 10_000): Int16Array =>
  Int16Array.from({ length: count }, (_, i) => Math.round(level * Math.sin((2 * Math.PI * hertz * i) / rateHz)))

const energyOf = (samples: Int16Array): number => samples.reduce((sum, sample) => sum + sample * sample, 0)

/** Part of the energy that is the best fitting sine of that frequency, as dB over the rest. */
function signalToNoise(samples: Int16Array, hertz: number, rateHz: number): number {
  const step = (2 * Math.PI * hertz) / rateHz
  let [ss, cc, sc, sy, cy] = [0, 0, 0, 0, 0]
  samples.forEach((sample, i) => {
    const [sine, cosine] = [Math.sin(step * i), Math.cos(step * i)]
    ss += sine * sine
    cc += cosine * cosine
    sc += sine * cosine
    sy += sine * sample
    cy += cosine * sample
  })
  const determinant = ss * cc - sc * sc
  const a = (sy * cc - cy * sc) / determinant
  const b = (cy * ss - sy * sc) / determinant
  let noise = 0
  samples.forEach((sample, i) => (noise += (sample - a * Math.sin(step * i) - b * Math.cos(step * i)) ** 2))
  return 10 * Math.log10((energyOf(samples) - noise) / Math.max(noise, 1e-9))
}

const framesOf = (samples: Int16Array, size: number): Int16Array[] =>
  Array.from({ length: Math.floor(samples.length / size) }, (_, i) => samples.slice(i * size, (i + 1) * size))

test('G.711 decodes the values that the standard names', async (t) => {
  const decoded = (encoding: 'pcmu' | 'pcma', codes: number[]) => {
    const out = new Int16Array(codes.length)
    lawOfEncoding(encoding).decode(Uint8Array.from(codes), out)
    return [...out]
  }
  t.same(decoded('pcmu', [0x00, 0x80, 0xff, 0x7f, 0xf0, 0xe0]), [-32124, 32124, 0, 0, 120, 372])
  t.same(decoded('pcma', [0xd5, 0x55, 0xaa, 0x2a, 0xc5, 0xf5]), [8, -8, 32256, -32256, 264, 528])
})

test('every G.711 code survives a decode and an encode, and every sample comes back within its step', async (t) => {
  for (const encoding of ['pcmu', 'pcma'] as const) {
    const law = lawOfEncoding(encoding)
    const codes = Uint8Array.from({ length: 256 }, (_, code) => code)
    const samples = new Int16Array(256)
    const again = new Uint8Array(256)
    law.decode(codes, samples)
    law.encode(samples, again)
    // µ-law has two zeros; the negative one reads as the positive one.
    const expected = codes.map((code) => (encoding === 'pcmu' && code === 0x7f ? 0xff : code))
    t.same(again, expected, encoding)

    const all = Int16Array.from({ length: 65_536 }, (_, i) => i - 32_768)
    const bytes = new Uint8Array(all.length)
    const back = new Int16Array(all.length)
    law.encode(all, bytes)
    law.decode(bytes, back)
    const worst = all.reduce(
      (most, sample, i) => Math.max(most, Math.abs(back[i]! - sample) - Math.abs(sample) / 32),
      0,
    )
    t.ok(worst <= 16, `${encoding}: error beyond 1/32 of the value is at most 16, is ${worst}`)
    t.ok(
      back.every((sample, i) => i === 0 || sample >= back[i - 1]!),
      'and the curve never turns',
    )
  }
  const silence = new Uint8Array(1)
  lawOfEncoding('pcmu').encode(new Int16Array(1), silence)
  t.equal(silence[0], lawOfEncoding('pcmu').silence)
  lawOfEncoding('pcma').encode(new Int16Array(1), silence)
  t.equal(silence[0], lawOfEncoding('pcma').silence)
})

test('a tone keeps 60 dB over noise through every change of rate, in exact frames of 20 ms', async (t) => {
  for (const from of rates)
    for (const to of rates) {
      const resampler = createResampler(from, to)
      if (from === to) {
        t.equal(resampler, null)
        continue
      }
      for (const hertz of [440, 1000, 3000]) {
        const frames = framesOf(toneOf(hertz, from, from / 2), from / 50).map((frame) =>
          createdFrame(resampler!.convert(frame), to / 50, t),
        )
        const settled = joined(frames.slice(5))
        const ratio = signalToNoise(settled, hertz, to)
        t.ok(ratio >= 60, `${hertz} Hz from ${from} to ${to}: ${ratio.toFixed(1)} dB`)
        const level = Math.sqrt((2 * energyOf(settled)) / settled.length)
        t.ok(Math.abs(level - 10_000) < 150, `and keeps its level: ${level.toFixed(0)}`)
      }
    }
})

function createdFrame(samples: Int16Array, size: number, t: Test): Int16Array {
  if (samples.length !== size) t.fail(`a frame of ${samples.length} samples instead of ${size}`)
  return samples.slice()
}

/** Level of that frequency in dB over what went in, and of all that is not that frequency. */
function doubled(hertz: number): { readonly level: number; readonly rest: number } {
  const sound = toneOf(hertz, 8000, 8000)
  const out = new Int16Array(pieceLength)
  const doubling = createDoubling()
  const settled = new Int16Array(12_800)
  for (let at = 0; at < settled.length; at += pieceLength) {
    doubling.make(out, at, (line, from) => line.forEach((_, i) => (line[i] = sound[from + i + 1000] ?? 0)))
    settled.set(out, at)
  }
  const [all, step] = [energyOf(settled) / settled.length, (2 * Math.PI * hertz) / 16_000]
  let [sine, cosine] = [0, 0]
  settled.forEach((sample, i) => {
    sine += sample * Math.sin(step * i)
    cosine += sample * Math.cos(step * i)
  })
  const tone = 2 * ((sine / settled.length) ** 2 + (cosine / settled.length) ** 2)
  const inDecibels = (power: number): number => 10 * Math.log10(Math.max(power, 1e-9) / 5e7)
  return { level: inDecibels(tone), rest: inDecibels(all - tone) }
}

test('a recording has the band of a telephone as it is, up to 3.6 kHz, and nothing besides', async (t) => {
  let [loudest, quietest, worst] = [-Infinity, Infinity, -Infinity]
  // Whole numbers of waves in the 800 ms that are looked at.
  for (let hertz = 100; hertz <= 3600; hertz += 50) {
    const { level, rest } = doubled(hertz)
    loudest = Math.max(loudest, level)
    quietest = Math.min(quietest, level)
    worst = Math.max(worst, rest)
  }
  t.ok(loudest < 0.1 && quietest > -0.1, `from ${quietest.toFixed(3)} to ${loudest.toFixed(3)} dB`)
  t.ok(worst < -60, `what was not there is at ${worst.toFixed(1)} dB`)
})

test('what the lower rate cannot carry is gone and not mirrored', async (t) => {
  const resampler = createResampler(24_000, 8000)!
  const frames = framesOf(toneOf(5000, 24_000, 12_000), 480).map((frame) => resampler.convert(frame).slice())
  const level = Math.sqrt((2 * energyOf(joined(frames.slice(5)))) / (20 * 160))
  t.ok(level < 10, `a level of 10 000 became ${level.toFixed(1)}`)
})

test('blocks of any size give the same sound as one block', async (t) => {
  const random = createRandom(7)
  const sound = toneOf(700, 24_000, 24_000)
  for (const to of [16_000, 48_000, 12_000]) {
    const whole = createResampler(24_000, to)!.convert(sound).slice()
    const resampler = createResampler(24_000, to)!
    const parts: Int16Array[] = []
    for (let at = 0; at < sound.length;) {
      const size = 1 + random.below(900)
      parts.push(resampler.convert(sound.subarray(at, at + size)).slice())
      at += size
    }
    t.same(joined(parts), whole, `to ${to}`)
  }
})

test('a WAV file tells its shape, with unknown chunks before and a cut end', async (t) => {
  const samples = Int16Array.of(1, -2, 3, -4)
  const data = new Uint8Array(samples.buffer)
  const header = wavHeaderOf({ rateHz: 16_000, channels: 2 }, data.length)
  t.equal(header.length, 44)
  t.match(parseWav(Buffer.concat([header, data])), { rateHz: 16_000, channels: 2, samples })
  const longer = wavHeaderOf({ rateHz: 8000, channels: 1 }, 1000)
  t.match(parseWav(Buffer.concat([longer, data])), { rateHz: 8000, channels: 1, samples })
  const list = Buffer.concat([
    header.subarray(0, 36),
    Buffer.from('LIST\x03\0\0\0abc\0', 'latin1'),
    header.subarray(36),
    data,
  ])
  t.match(parseWav(list), { samples })
  t.throws(() => parseWav(Buffer.from('no sound at all')), /not a WAV file/)
  t.throws(() => parseWav(header.subarray(0, 30)), /without sound|short format/)
})

const encoded = (library: OpusLibrary, rateHz: OpusRate, sound: Int16Array): Uint8Array[] => {
  const encoder = library.createEncoder({ rateHz, expectedLossPercent: 20 })
  const packets = framesOf(sound, rateHz / 50).map((frame) => encoder.encode(frame))
  encoder.close()
  return packets
}

test('Opus carries a tone from every rate to every rate, natively and in WebAssembly', async (t) => {
  for (const library of [createOpusLibrary(), createOpusLibrary(() => null)])
    for (const from of rates) {
      const packets = encoded(library, from, toneOf(440, from, from / 2))
      t.ok(
        packets.every((packet) => packet.length < 200),
        'at about 24 kb/s',
      )
      for (const to of rates) {
        const decoder = library.createDecoder({ rateHz: to })
        const sound = packets.map((packet) => decoder.decode(packet)!.slice())
        decoder.close()
        t.ok(sound.every((frame) => frame.length === to / 50))
        const ratio = signalToNoise(joined(sound.slice(8)), 440, to)
        t.ok(ratio > 8, `${library.encoding} ${from} to ${to}: ${ratio.toFixed(1)} dB`)
      }
    }
  t.equal(createOpusLibrary(() => null).encoding, 'wasm')
})

/** Voiced syllables: pulses through two resonances, loud and soft by turns. */
function babble(rateHz: number, count: number): Int16Array {
  const random = createRandom(3)
  const state = [0, 0, 0, 0]
  const [first, second] = [600, 1700].map((hertz) => 2 * 0.96 * Math.cos((2 * Math.PI * hertz) / rateHz))
  let phase = 0
  return Int16Array.from({ length: count }, (_, i) => {
    phase += (120 + 30 * Math.sin(i / rateHz / 0.3)) / rateHz
    const pulse = phase >= 1 ? 4000 : 0
    if (phase >= 1) phase -= 1
    const one = pulse + (random.next() - 0.5) * 100 + first! * state[0]! - 0.92 * state[1]!
    const two = one + second! * state[2]! - 0.92 * state[3]!
    state.splice(0, 4, one, state[0]!, two, state[2]!)
    return Math.max(-20_000, Math.min(20_000, two * 0.1 * (0.55 + 0.45 * Math.sin(i / rateHz / 0.05))))
  })
}

test('a lost Opus packet is repaired from the next one better than guessed, and guessed better than silent', async (t) => {
  const library = createOpusLibrary()
  const packets = encoded(library, 16_000, babble(16_000, 16_000 * 3))
  const errors = { repaired: 0, guessed: 0, silent: 0 }
  const clean = library.createDecoder({ rateHz: 16_000 })
  const lossy = {
    repaired: library.createDecoder({ rateHz: 16_000 }),
    guessed: library.createDecoder({ rateHz: 16_000 }),
  }
  packets.forEach((packet, i) => {
    const truth = clean.decode(packet)!.slice()
    const lost = i % 10 === 9 && i + 1 < packets.length
    const repaired = (lost ? lossy.repaired.recover(packets[i + 1]!, 320) : lossy.repaired.decode(packet))!.slice()
    const guessed = (lost ? lossy.guessed.conceal(320) : lossy.guessed.decode(packet))!.slice()
    t.equal(repaired.length, 320)
    if (!lost || i < 10) return
    errors.repaired += energyOf(truth.map((sample, k) => (sample - repaired[k]!) / 2))
    errors.guessed += energyOf(truth.map((sample, k) => (sample - guessed[k]!) / 2))
    errors.silent += energyOf(truth.map((sample) => sample / 2))
  })
  const decibels = (part: number) => 10 * Math.log10(errors.silent / part)
  t.comment(`repaired ${decibels(errors.repaired).toFixed(1)} dB, guessed ${decibels(errors.guessed).toFixed(1)} dB`)
  t.ok(errors.repaired < errors.guessed / 2, 'repaired')
  t.ok(errors.guessed < errors.silent, 'guessed')
  for (const decoder of [clean, lossy.repaired, lossy.guessed]) decoder.close()
})

test('encoders have the complexity of their library, unless they are told another', async (t) => {
  for (const loadNative of [loadNativeEncoder, () => null]) {
    const sound = framesOf(toneOf(700, 16_000, 32_000), 320).map((frame, at) =>
      frame.map((sample) => (sample * (at % 7)) / 7),
    )
    const coded = (complexity: number, told?: number): string => {
      const encoder = createOpusLibrary(loadNative, complexity).createEncoder({
        rateHz: 16_000,
        ...(told !== undefined && { complexity: told }),
      })
      return sound.map((frame) => Buffer.from(encoder.encode(frame)).toString('hex')).join()
    }
    t.not(coded(0), coded(10), 'they differ in what they make')
    t.equal(coded(10, 0), coded(0))
  }
})

test('what is no Opus packet decodes to nothing and harms nobody', async (t) => {
  const library = createOpusLibrary()
  const decoder = library.createDecoder({ rateHz: 16_000 })
  const random = createRandom(11)
  t.equal(decoder.decode(new Uint8Array(0)), null)
  t.equal(decoder.decode(new Uint8Array(5000)), null)
  for (let i = 0; i < 2000; i++) {
    const sound = decoder.decode(Uint8Array.from({ length: 1 + random.below(60) }, () => random.below(256)))
    if (sound !== null && sound.length > 1920) t.fail(`${sound.length} samples`)
  }
  const good = encoded(library, 16_000, toneOf(440, 16_000, 16_000))
  const sound = good.map((packet) => decoder.decode(packet)!.slice())
  t.ok(signalToNoise(joined(sound.slice(10)), 440, 16_000) > 8)
  decoder.close()
  t.throws(() => decoder.decode(good[0]!), /closed/)
  decoder.close()
})

test('a thousand codecs opened and closed leave nothing, and the memory may grow under those that run', async (t) => {
  for (const library of [createOpusLibrary(), createOpusLibrary(() => null)]) {
    const witness = library.createDecoder({ rateHz: 16_000 })
    const packets = encoded(library, 16_000, toneOf(440, 16_000, 16_000))
    const before = library.memoryBytes()
    for (let i = 0; i < 1000; i++) {
      const encoder = library.createEncoder({ rateHz: 16_000 })
      const decoder = library.createDecoder({ rateHz: 48_000 })
      encoder.close()
      decoder.close()
      encoder.close()
    }
    t.equal(library.memoryBytes(), before)
    const crowd = Array.from({ length: 1500 }, () => library.createDecoder({ rateHz: 48_000 }))
    t.ok(library.memoryBytes() > before, 'the memory has grown')
    const sound = packets.map((packet) => witness.decode(packet)!.slice())
    t.ok(signalToNoise(joined(sound.slice(8)), 440, 16_000) > 8)
    for (const decoder of [witness, ...crowd]) decoder.close()
  }
})
