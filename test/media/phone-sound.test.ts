/** The sound of telephones: G.722, packets of any length, keys, noise, guesses at what was lost, and the beep of a voicemail. */
import { createHash } from 'node:crypto'
import { test } from 'tap'
import type { AudioFormat } from '../../model/frame.ts'
import type { NegotiatedAudio } from '../../model/rtp-transport.ts'
import { createBeepDetector } from '../../media/vad/beep-detector.ts'
import { upStages } from '../../media/leg/stages.ts'
import { chain, createSound, noBytes, renew, type Sound } from '../../media/leg/stages/stage.ts'
import { comfortLevel, createNoise, levelOfComfortNoise, levelOfDbm0 } from '../../media/pcm/comfort-noise.ts'
import { createConcealment } from '../../media/pcm/concealment.ts'
import { createDtmfReceiver } from '../../media/rtp/dtmf-receiver.ts'
import { createDtmfSender, type DtmfPacket } from '../../media/rtp/dtmf-sender.ts'
import { lawOfEncoding } from '../../media/codecs/g711.ts'
import { createG722Decoder, createG722Encoder } from '../../media/codecs/g722.ts'
import { createOpusLibrary } from '../../media/codecs/opus.ts'
import { createPacketizer } from '../../media/leg/packetizer.ts'
import { createResampler } from '../../media/pcm/resample.ts'
import { createFlite, type FliteVoice } from '../../voice/engines/embedded/flite.ts'
import { createRandom } from '../fake/random.ts'
import { negotiatedG722, negotiatedPhone } from '../fake/scripted-transport.ts'

/** The filter of G.722 that parts and joins the bands delays by 22 samples in all. */
const g722DelaySamples = 22

const flite = await createFlite()
const greeting =
  'Good morning. You have reached the office of doctor Miller. Please leave your name and your number after the tone, and we will call you back.'

const toneOf = (hertz: number, rateHz: number, ms: number, level = 8000): Int16Array =>
  Int16Array.from({ length: (ms * rateHz) / 1000 }, (_, i) => level * Math.sin((2 * Math.PI * hertz * i) / rateHz))
const silenceOf = (rateHz: number, ms: number): Int16Array => new Int16Array((ms * rateHz) / 1000)
const joined = (...parts: readonly Int16Array[]): Int16Array =>
  Int16Array.from(parts.flatMap((part) => Array.from(part)))
const levelOf = (samples: Int16Array): number =>
  Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length)
const speechOf = (voice: FliteVoice, rateHz: number, text = greeting): Int16Array => {
  const speech = flite(voice, text)
  return createResampler(16_000, rateHz)?.convert(speech).slice() ?? speech
}

/** The first over the difference, dB. */
function signalToNoise(truth: Int16Array, heard: Int16Array): number {
  let [signal, noise] = [0, 1e-9]
  truth.forEach((sample, i) => {
    signal += sample * sample
    noise += (sample - heard[i]!) ** 2
  })
  return 10 * Math.log10(signal / noise)
}

const throughG722 = (sound: Int16Array): Int16Array => {
  const [encoder, decoder] = [createG722Encoder(), createG722Decoder()]
  const out = new Int16Array(sound.length)
  for (let at = 0; at < sound.length; at += 320)
    decoder.decode(encoder.encode(sound.subarray(at, at + 320)), out.subarray(at, at + 320))
  return out
}

test('G.722 keeps tones of both bands and speech, at their level, 22 samples later', async (t) => {
  const measured = [
    { name: '440 Hz', sound: toneOf(440, 16_000, 1000), least: 40 },
    { name: '2000 Hz', sound: toneOf(2000, 16_000, 1000), least: 30 },
    { name: '5500 Hz', sound: toneOf(5500, 16_000, 1000), least: 10 },
    { name: 'a woman', sound: speechOf('slt', 16_000), least: 18 },
    { name: 'a man', sound: speechOf('rms', 16_000), least: 18 },
  ]
  for (const { name, sound, least } of measured) {
    const heard = throughG722(sound)
    const truth = sound.subarray(2000, sound.length - 100)
    const ratios = [20, 21, 22, 23, 24].map((delay) => signalToNoise(truth, heard.subarray(2000 + delay)))
    const ratio = Math.max(...ratios)
    t.comment(`${name}: ${ratio.toFixed(1)} dB`)
    t.equal(ratios.indexOf(ratio) + 20, g722DelaySamples, `${name}: the delay`)
    t.ok(ratio >= least, `${name}: ${ratio.toFixed(1)} dB`)
    const change = levelOf(heard.subarray(2000)) / levelOf(truth)
    t.ok(Math.abs(20 * Math.log10(change)) < 0.6, `${name}: the level changed by ${change.toFixed(2)}`)
  }
})

/** Tones, noise, a sweep, full swing and all but silence, one second each, the same at every run. */
function allKindsOfSound(): Int16Array {
  const random = createRandom(722)
  const kinds = [
    (seconds: number) => 10_000 * Math.sin(2 * Math.PI * 440 * seconds),
    () => (random.next() - 0.5) * 24_000,
    (seconds: number) => 12_000 * Math.sin(2 * Math.PI * (100 + 3000 * (seconds % 1)) * (seconds % 1)),
    (seconds: number) => (Math.floor(seconds * 700) % 2 === 0 ? 32_767 : -32_768),
    () => (random.next() - 0.5) * 20,
  ]
  return Int16Array.from({ length: 80_000 }, (_, i) => Math.round(kinds[Math.floor(i / 16_000)]!(i / 16_000)))
}

test('G.722 makes bit for bit what another implementation makes of the same sound', async (t) => {
  // Both were made once by libspandsp 2.0.0 (Debian 12) of the same samples.
  const sound = allKindsOfSound()
  const bytes = createG722Encoder().encode(sound)
  const decoded = new Int16Array(sound.length)
  createG722Decoder().decode(bytes, decoded)
  const hashOf = (view: Uint8Array | Int16Array) => createHash('sha256').update(view).digest('hex').slice(0, 32)
  t.equal(hashOf(bytes), '357c734690ca82226bfc875a881d2e81')
  t.equal(hashOf(decoded.subarray(0, 48_000)), 'ecbed448f23ae11b83e4a8134fcb87de')
})

test('G.722 takes any bytes, never leaves its range, and recovers from garbage', async (t) => {
  const random = createRandom(5)
  const [encoder, decoder] = [createG722Encoder(), createG722Decoder()]
  const out = new Int16Array(320)
  for (let i = 0; i < 500; i++)
    decoder.decode(
      Uint8Array.from({ length: 160 }, () => random.below(256)),
      out,
    )
  for (const value of [0, 255]) for (let i = 0; i < 100; i++) decoder.decode(new Uint8Array(160).fill(value), out)
  const sound = toneOf(440, 16_000, 2000)
  const heard = new Int16Array(sound.length)
  for (let at = 0; at < sound.length; at += 320)
    decoder.decode(encoder.encode(sound.subarray(at, at + 320)), heard.subarray(at, at + 320))
  const ratio = signalToNoise(sound.subarray(16_000, 31_000), heard.subarray(16_000 + g722DelaySamples))
  t.ok(ratio > 35, `a second later the tone is heard as ever: ${ratio.toFixed(1)} dB`)
  const whole = createG722Encoder().encode(sound)
  const pieces = createG722Encoder()
  const cut = [10, 20, 30, 60].flatMap((ms, i) => Array.from(pieces.encode(sound.subarray(i * 960, i * 960 + ms * 16))))
  t.same(cut.slice(0, 160), [...whole.subarray(0, 160)], 'blocks of any size are one stream')
})

test("20 ms in, packets of the peer's length out, with the time of their first sample", async (t) => {
  for (const packetMs of [10, 20, 30, 40, 60] as const) {
    const packets: { at: number; bytes: number[]; marker: boolean }[] = []
    const packetizer = createPacketizer({
      packetMs,
      bytesPerMs: 8,
      send: (payload, at, marker) => void packets.push({ at, bytes: [...payload], marker }),
    })
    const start = 0xffff_ff00
    for (let tick = 0; tick < 60; tick++)
      packetizer.add(
        Uint8Array.from({ length: 160 }, (_, i) => (tick * 160 + i) & 0xff),
        (start + tick * 160) >>> 0,
        tick === 0 || tick === 31,
      )
    t.equal(packets.length, 1200 / packetMs, `${packetMs} ms`)
    packets.forEach(({ at, bytes }, i) => {
      const first = i * packetMs * 8
      if (at !== (start + first) >>> 0 || bytes.length !== packetMs * 8) t.fail(`packet ${i} is at ${at}`)
      if (bytes.some((byte, k) => byte !== ((first + k) & 0xff))) t.fail(`packet ${i} holds other sound`)
    })
    const marked = packets.flatMap(({ marker }, i) => (marker ? [i] : []))
    t.same(marked, [0, Math.floor((31 * 20) / packetMs)], 'the marker is where the sound begins')
    t.notOk(packetizer.isWaiting())
  }
})

test('a gap in time or a flush sends what waits as a shorter packet', async (t) => {
  const packets: [number, number][] = []
  const send = (payload: Uint8Array, at: number) => void packets.push([at, payload.length])
  const packetizer = createPacketizer({ packetMs: 60, bytesPerMs: 8, send })
  packetizer.add(new Uint8Array(160), 1000, true)
  packetizer.add(new Uint8Array(160), 1160, false)
  packetizer.add(new Uint8Array(160), 5000, true)
  t.ok(packetizer.isWaiting())
  packetizer.flush()
  packetizer.flush()
  t.same(packets, [
    [1000, 320],
    [5000, 160],
  ])
})

/** What is sent for the digits, with the tick of each packet. */
function pressed(digits: string, clockRateHz: number, timing?: { press: number; pause: number }) {
  const sender = createDtmfSender(timing)
  const packets: (DtmfPacket & { tick: number; event: number; end: boolean; duration: number })[] = []
  if (!sender.press(digits)) throw new Error('refused')
  let tick = 0
  for (; sender.isBusy(); tick++) {
    const packet = sender.next((0xffff_f000 + tick * (clockRateHz / 50)) >>> 0, clockRateHz)
    if (packet === null) continue
    const [event = 0, flags = 0, high = 0, low = 0] = packet.payload
    packets.push({ ...packet, tick, event, end: flags >= 0x80, duration: high * 256 + low })
  }
  return { packets, ticks: tick }
}

test('a press is one timestamp, a duration that counts up, three ends and a pause', async (t) => {
  for (const clockRateHz of [8000, 48_000]) {
    const perTick = clockRateHz / 50
    const { packets, ticks } = pressed('5#', clockRateHz)
    t.equal(ticks, 22, '120 ms and 100 ms, twice')
    t.equal(packets.length, 16)
    const first = packets.slice(0, 8)
    t.same(
      first.map(({ duration }) => duration / perTick),
      [1, 2, 3, 4, 5, 6, 6, 6],
    )
    t.same(
      first.map(({ end }) => end),
      [false, false, false, false, false, true, true, true],
    )
    t.same(
      first.map(({ tick }) => tick),
      [0, 1, 2, 3, 4, 5, 6, 7],
      'every 20 ms',
    )
    t.same(
      packets.map(({ marker }) => marker),
      packets.map((_, i) => i % 8 === 0),
    )
    t.same([...new Set(packets.map(({ timestamp }) => timestamp))], [0xffff_f000, (0xffff_f000 + 11 * perTick) >>> 0])
    t.same([...new Set(packets.map(({ event }) => event))], [5, 11])
  }
})

test('every key is heard by the receiver once, whatever two of three packets are lost', async (t) => {
  const digits = '0123456789*#ABCD5550'
  const { packets } = pressed(digits, 8000)
  for (const kept of [0, 1, 2]) {
    const receiver = createDtmfReceiver()
    const heard = packets.flatMap((packet, i) =>
      i % 3 === kept ? (receiver.receive({ ...packet, payloadType: 101, sequenceNumber: i }) ?? []) : [],
    )
    t.equal(heard.join(''), digits)
  }
})

test('a press longer than its duration can say goes on in another segment and stays one digit', async (t) => {
  const { packets } = pressed('7', 8000, { press: 9000, pause: 100 })
  t.equal(packets.filter(({ marker }) => marker).length, 1)
  t.same([...new Set(packets.map(({ timestamp }) => timestamp))], [0xffff_f000, (0xffff_f000 + 0xffff) >>> 0])
  t.equal(packets.filter(({ end }) => end).length, 3)
  t.equal(0xffff + packets.at(-1)!.duration, 72_000)
  const receiver = createDtmfReceiver()
  const heard = packets.map((packet, i) => receiver.receive({ ...packet, payloadType: 101, sequenceNumber: i }))
  t.same(
    heard.filter((digit) => digit !== null),
    ['7'],
  )
})

test('64 keys wait at most, and what is too much is not pressed in part', async (t) => {
  const sender = createDtmfSender()
  t.ok(sender.press('1'.repeat(32)))
  t.ok(sender.press('2'.repeat(32)))
  t.notOk(sender.press('3'))
  sender.clear()
  t.notOk(sender.isBusy())
  t.ok(sender.press('3'))
})

const pcm = (rateHz: AudioFormat['rateHz']): AudioFormat => ({ encoding: 'pcm16', rateHz })

const opusLibrary = createOpusLibrary()
type Heard = Pick<Sound, 'kind' | 'payload'> | null

/** What is heard of a payload that came, or of one that is lost. */
function hearingOf(audio: NegotiatedAudio, hears: AudioFormat) {
  const sound = createSound()
  const stages = upStages({ audio, hears, opus: opusLibrary, recording: null })
  let heard: Heard = null
  const take = chain(stages.list, ({ kind, payload }) => void (heard = { kind, payload }))
  const next = (kind: 'sound' | 'lost', payload: Uint8Array): Heard => {
    heard = null
    take(renew(sound, kind, payload))
    return heard
  }
  return { hear: (payload: Uint8Array) => next('sound', payload), miss: () => next('lost', noBytes) }
}

test('packets of 10 to 120 ms are sound of that length, longer ones and empty ones are none', async (t) => {
  for (const audio of [negotiatedPhone, negotiatedG722])
    for (const ms of [10, 20, 30, 40, 60, 120]) {
      const heard = hearingOf(audio, pcm(16_000)).hear(new Uint8Array(ms * 8).fill(0x55))
      t.match(heard, { kind: 'sound', payload: { length: ms * 32 } }, `${audio.codec}, ${ms} ms`)
    }
  for (const hears of [pcm(16_000), { encoding: 'pcma', rateHz: 8000 } as const])
    for (const length of [0, 961])
      t.match(hearingOf(negotiatedPhone, hears).hear(new Uint8Array(length)), { kind: 'guess' }, 'counts as lost')
})

/** How unlike the spectra of the pieces around losses are, in dB, on average. */
function spectralDistance(truth: Int16Array, heard: Int16Array, frames: readonly number[]): number {
  const size = 256
  const spectrumOf = (sound: Int16Array, at: number) =>
    Array.from({ length: 53 }, (_, band) => {
      let [real, imaginary] = [0, 0]
      for (let i = 0; i < size; i++) {
        const value = sound[at + i]! * (0.5 - 0.5 * Math.cos((2 * Math.PI * i) / size))
        const angle = (2 * Math.PI * (4 + band * 2) * i) / size
        real += value * Math.cos(angle)
        imaginary += value * Math.sin(angle)
      }
      return 10 * Math.log10(real * real + imaginary * imaginary + 1e5)
    })
  const distances = frames.flatMap((frame) => {
    const at = frame * 160 - 48
    if (at < 0 || at + size > truth.length || levelOf(truth.subarray(at, at + size)) < 200) return []
    const [wanted, got] = [spectrumOf(truth, at), spectrumOf(heard, at)]
    return Math.sqrt(wanted.reduce((sum, value, i) => sum + (value - got[i]!) ** 2, 0) / wanted.length)
  })
  return distances.reduce((sum, distance) => sum + distance, 0) / distances.length
}

/** What a lost frame was before: the last one, at half its level. */
function createRepetition() {
  const last = new Int16Array(160)
  let missed = 0
  return {
    heard(samples: Int16Array) {
      last.set(samples)
      missed = 0
    },
    guess(_count: number) {
      if (++missed > 3) return null
      for (let i = 0; i < last.length; i++) last[i] = last[i]! >> 1
      return last
    },
  }
}

test('a guess by the period of the voice is nearer to what was said than the last packet again', async (t) => {
  for (const [voice, loss] of [
    ['slt', 0.05],
    ['slt', 0.1],
    ['rms', 0.05],
    ['rms', 0.1],
  ] as const) {
    const speech = speechOf(voice, 8000)
    const law = lawOfEncoding('pcma')
    const measured = [createConcealment(8000), createRepetition()].map((concealment) => {
      const random = createRandom(99)
      const [truth, heard, around] = [new Int16Array(speech.length), new Int16Array(speech.length), new Set<number>()]
      for (let frame = 0, at = 0; at + 160 <= speech.length; frame++, at += 160) {
        const code = new Uint8Array(160)
        law.encode(speech.subarray(at, at + 160), code)
        const samples = new Int16Array(160)
        law.decode(code, samples)
        truth.set(samples, at)
        const isLost = random.next() < loss
        if (!isLost) concealment.heard(samples)
        heard.set(isLost ? (concealment.guess(160) ?? new Int16Array(160)) : samples, at)
        if (isLost) around.add(frame).add(frame + 1)
      }
      return { ratio: signalToNoise(truth, heard), distance: spectralDistance(truth, heard, [...around]) }
    })
    const [guessed, repeated] = measured as [(typeof measured)[0], (typeof measured)[0]]
    const told = ({ ratio, distance }: typeof guessed) => `${ratio.toFixed(1)} dB, ${distance.toFixed(1)} dB apart`
    t.comment(`${voice}, ${loss * 100} %: guessed ${told(guessed)}; repeated ${told(repeated)}`)
    t.ok(guessed.ratio > repeated.ratio + 1, 'by a decibel at least')
    t.ok(guessed.distance < repeated.distance, 'and by its spectrum')
  }
})

test('a guess goes on where the sound was, fades within 60 ms, and then there is none', async (t) => {
  for (const rateHz of [8000, 16_000]) {
    const concealment = createConcealment(rateHz)
    const frame = rateHz / 50
    const tone = toneOf(150, rateHz, 2000)
    for (let at = 0; at < frame * 10; at += frame) concealment.heard(tone.slice(at, at + frame))
    const guesses = [1, 2, 3].map(() => concealment.guess(frame)!.slice())
    const ratio = signalToNoise(tone.subarray(frame * 10, frame * 10.5), guesses[0]!.subarray(0, frame / 2))
    t.ok(ratio > 15, `the first 10 ms are the tone: ${ratio.toFixed(1)} dB`)
    const levels = guesses.map(levelOf)
    t.ok(levels[0]! > levels[1]! * 1.2 && levels[1]! > levels[2]! * 1.5, `${levels.join(' > ')}`)
    t.equal(concealment.guess(frame), null)
    const back = tone.slice(frame * 14 + 9, frame * 15 + 9)
    concealment.heard(back)
    t.same(
      back.subarray(frame / 2),
      tone.subarray(frame * 14.5 + 9, frame * 15 + 9),
      'what comes again is joined on softly',
    )
    t.not(back[0], tone[frame * 14 + 9], 'and not cut in')
    const still = createConcealment(rateHz)
    t.ok(
      still.guess(frame)!.every((sample) => sample === 0),
      'of nothing nothing is guessed',
    )
  }
})

test('µ-law that nobody decodes is guessed at all the same when it is lost', async (t) => {
  const hears = { encoding: 'pcmu', rateHz: 8000 } as const
  const { hear, miss } = hearingOf({ ...negotiatedPhone, codec: 'pcmu', payloadType: 0 }, hears)
  const law = lawOfEncoding('pcmu')
  const codes = new Uint8Array(160 * 10)
  law.encode(toneOf(200, 8000, 200), codes)
  for (let i = 0; i < 10; i++) {
    const payload = codes.slice(i * 160, i * 160 + 160)
    t.equal(hear(payload)?.payload, payload, 'the very bytes')
  }
  const levels = [1, 2, 3].map(() => {
    const missed = miss()!
    t.equal(missed.kind, 'guess')
    const samples = new Int16Array(160)
    law.decode(missed.payload, samples)
    return levelOf(samples)
  })
  t.ok(levels[0]! > 4000 && levels[0]! > levels[1]! && levels[1]! > levels[2]!, levels.join(' > '))
  t.equal(miss(), null)
})

test('comfort noise has the level that was named, and ours is soft and never digital silence', async (t) => {
  const noise = createNoise()
  for (const named of [40, 50, 60]) {
    const level = levelOfComfortNoise(Uint8Array.of(named, 1, 2))
    const measured = 20 * Math.log10(levelOf(noise.make(16_000, level)) / levelOfDbm0(6.18))
    t.ok(Math.abs(measured + named) < 0.7, `-${named} dBov became ${measured.toFixed(1)}`)
  }
  t.equal(levelOfComfortNoise(new Uint8Array(0)), 0)
  for (const encoding of ['pcmu', 'pcma'] as const) {
    const law = lawOfEncoding(encoding)
    const codes = new Uint8Array(8000)
    law.encode(noise.make(8000, comfortLevel), codes)
    const heard = new Int16Array(8000)
    law.decode(codes, heard)
    const level = 20 * Math.log10(levelOf(heard) / levelOfDbm0(0))
    t.ok(level > -69 && level < -60, `${encoding}: ${level.toFixed(1)} dBm0`)
    for (let at = 0; at < 8000; at += 160)
      if (new Set(codes.subarray(at, at + 160)).size < 2) t.fail('20 ms without any change')
  }
})

/** When a beep was heard, in ms; the sound went through µ-law first, as it does from a telephone. */
function beepsIn(sound: Int16Array, rateHz: number): number[] {
  const law = lawOfEncoding('pcmu')
  const detector = createBeepDetector(rateHz)
  const size = rateHz / 50
  const [codes, frame] = [new Uint8Array(size), new Int16Array(size)]
  const beeps: number[] = []
  for (let at = 0; at + size <= sound.length; at += size) {
    law.encode(sound.subarray(at, at + size), codes)
    law.decode(codes, frame)
    if (detector.hear(frame)) beeps.push((at * 1000) / rateHz)
  }
  return beeps
}

const withNoise = (sound: Int16Array, level: number): Int16Array => {
  const noise = createNoise(77).make(sound.length, level)
  return sound.map((sample, i) => sample + noise[i]!)
}
const sum = (...parts: readonly Int16Array[]): Int16Array =>
  parts[0]!.map((_, i) => parts.reduce((total, part) => total + part[i]!, 0))

test('the beep after a greeting is heard once, soon after it ended: any pitch, length and level, in noise too', async (t) => {
  const random = createRandom(4)
  for (const rateHz of [8000, 16_000]) {
    const speech = speechOf('awb', rateHz, 'Please leave a message after the tone.')
    for (const hertz of [360, 440, 600, 800, 1000, 1400, 2000, 2150])
      for (const ms of [170, 400, hertz === 440 ? 600 : 1400]) {
        const level = 400 * 30 ** random.next()
        const lead = 300 + random.below(200)
        const sound = joined(speech, silenceOf(rateHz, lead), toneOf(hertz, rateHz, ms, level), silenceOf(rateHz, 2000))
        const beeps = beepsIn(withNoise(sound, level / Math.SQRT2 / 10 ** (15 / 20)), rateHz)
        const end = (speech.length * 1000) / rateHz + lead + ms
        const late = (beeps[0] ?? NaN) - end
        const most = hertz === 440 ? 1600 : 300
        if (beeps.length !== 1 || late < 100 || late > most)
          t.fail(`${hertz} Hz, ${ms} ms, level ${level.toFixed(0)} at ${rateHz}: ${late} ms after its end`)
      }
  }
  t.pass('48 beeps')
})

test('speech, keys, ring-back, busy tones, signals of three tones, tunes, clicks and hum are no beep', async (t) => {
  const quiet = silenceOf(8000, 2500)
  const of = (hertz: number, ms: number) => toneOf(hertz, 8000, ms)
  const repeated = (times: number, ...parts: readonly Int16Array[]) =>
    joined(...Array.from({ length: times }, () => parts).flat())
  const harmonic = (hertz: number, ms: number) => sum(of(hertz, ms), toneOf(hertz * 2, 8000, ms, 5000))
  const glide = Int16Array.from(
    { length: 8000 },
    (_, i) => 8000 * Math.sin(((2 * Math.PI * i) / 8000) * (500 + i / 20)),
  )
  const voices = (['slt', 'rms', 'awb'] as const).map((voice) => [
    `speech of ${voice}`,
    joined(speechOf(voice, 8000), speechOf(voice, 8000, 'Oooh. No, you too? Moo, who knew. Mmm. Ahhh. Looong.')),
  ])
  const sounds = [
    ...voices,
    ['keys', repeated(3, sum(of(770, 250), of(1336, 250)), silenceOf(8000, 300))],
    ['a key with twist', joined(sum(of(697, 400), toneOf(1209, 8000, 400, 3200)), quiet)],
    ['European ring-back', repeated(2, of(425, 1000), silenceOf(8000, 4000))],
    ['American ring-back', repeated(2, sum(of(440, 2000), of(480, 2000)), silenceOf(8000, 4000))],
    ['British ring-back', repeated(3, sum(of(400, 400), of(450, 400)), silenceOf(8000, 200))],
    ['European busy', repeated(6, of(425, 500), silenceOf(8000, 500))],
    ['European congestion', repeated(8, of(425, 250), silenceOf(8000, 250))],
    ['American busy', repeated(5, sum(of(480, 500), of(620, 500)), silenceOf(8000, 500))],
    ['a dial tone', joined(of(425, 4000), quiet)],
    ['a fax that answers', joined(of(2100, 3000), quiet)],
    ['number not in service', joined(of(950, 330), of(1400, 330), of(1800, 330), quiet)],
    ['a tune', joined(of(523, 250), of(587, 250), of(659, 250), of(698, 500), quiet)],
    ['a tune with pauses', repeated(2, of(523, 200), silenceOf(8000, 100), of(659, 200), silenceOf(8000, 100))],
    ['a chord', joined(sum(of(523, 600), of(659, 600)), quiet)],
    ['an instrument', joined(harmonic(523, 600), quiet)],
    ['a glide', joined(glide, quiet)],
    ['a click', joined(of(1000, 60), quiet)],
    ['hum', joined(of(100, 600), quiet)],
    ['a tone above', joined(of(2600, 500), quiet)],
    ['noise', joined(createNoise(3).make(16_000, 3000).slice(), quiet)],
    ['a tone in noise as loud', withNoise(joined(of(1000, 500), quiet), 5600)],
    ['silence', quiet],
  ] as const
  for (const [name, sound] of sounds) t.same(beepsIn(sound as Int16Array, 8000), [], name as string)
})
