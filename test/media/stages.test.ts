/** The lists of stages through which a leg's sound goes: their order, what a new one hears, and what it costs when one breaks. */
import { test, type Test } from 'tap'
import { bytesOf, type AudioFormat } from '../../model/frame.ts'
import type { NegotiatedAudio } from '../../model/rtp-transport.ts'
import { frameBytesOf } from '../../media/codecs/frame-bytes.ts'
import { createOpusLibrary, type OpusLibrary } from '../../media/codecs/opus.ts'
import { lawOfEncoding } from '../../media/codecs/g711.ts'
import { createG722Encoder } from '../../media/codecs/g722.ts'
import { downStages, upStages } from '../../media/leg/stages.ts'
import {
  chain,
  createSound,
  noBytes,
  renew,
  type Sound,
  type Stage,
  type Stages,
} from '../../media/leg/stages/stage.ts'
import type { Recording } from '../../media/recording/recording.ts'
import { createTicker } from '../../media/ticker/ticker.ts'
import { levelOf, openLegScene } from '../scenes/leg-scene.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { negotiatedG722, negotiatedOpus, negotiatedPcmu, negotiatedPhone } from '../fake/scripted-transport.ts'

const opus = createOpusLibrary()
const pcm16: AudioFormat = { encoding: 'pcm16', rateHz: 16_000 }
const pcma: AudioFormat = { encoding: 'pcma', rateHz: 8000 }
const startOf = { type: 'start', epoch: 1, hears: [pcm16], speaks: [pcm16], recording: null } as const

type Recorder = Pick<Recording, 'caller' | 'agent'>
const nobody: Recorder = { caller: () => {}, agent: () => {} }

/** Both directions of a line, in either of which a stage may be put. */
const up = (audio: NegotiatedAudio, hears: AudioFormat, recording: Recorder | null): Stages =>
  upStages({ audio, opus, hears, recording })
const down = (audio: NegotiatedAudio, speaks: AudioFormat, recording: Recorder | null): Stages =>
  downStages({ audio, opus, speaks, recording, isWaiting: () => false })

const toneOf = (rateHz: number): Int16Array =>
  Int16Array.from({ length: rateHz / 50 }, (_, i) => 8000 * Math.sin((2 * Math.PI * 400 * i) / rateHz))

/** 20 ms of a tone on the wire. */
function payloadOf({ codec }: NegotiatedAudio): Uint8Array {
  if (codec === 'g722') return createG722Encoder().encode(toneOf(16_000))
  if (codec === 'opus') {
    const encoder = opus.createEncoder({ rateHz: 16_000 })
    const payload = encoder.encode(toneOf(16_000))
    encoder.close()
    return payload
  }
  const payload = new Uint8Array(160)
  lawOfEncoding(codec).encode(toneOf(8000), payload)
  return payload
}

/** 20 ms of a tone of the agent. */
function frameOf(format: AudioFormat): Uint8Array {
  const { encoding, rateHz } = format
  if (encoding === 'pcm16') return bytesOf(toneOf(rateHz))
  const frame = new Uint8Array(frameBytesOf(format))
  lawOfEncoding(encoding).encode(toneOf(rateHz), frame)
  return frame
}

/** Brings as many pieces of 20 ms as there are kinds, and answers what came out. */
function bring(list: readonly Stage[], payload: Uint8Array, kinds: readonly Sound['kind'][]): Sound[] {
  const out: Sound[] = []
  const sound = createSound()
  const take = chain(list, (piece) => void out.push({ ...piece }))
  for (const [i, kind] of kinds.entries()) {
    Object.assign(sound, { timestamp: i * 160, at: i * 20, silentTicks: kind === 'pause' ? 1 : 0 })
    take(renew(sound, kind, kind === 'sound' ? payload : noBytes))
  }
  return out
}

const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value)

test('stages are passed in the order of their list, and one that passes nothing on ends the way', (t) => {
  const passed: string[] = []
  const named =
    (name: string): Stage =>
    (next) =>
    (sound) => {
      passed.push(`${name} ${sound.timestamp}`)
      next(sound)
    }
  const dropsOdd: Stage = (next) => (sound) => void (sound.timestamp % 320 === 0 && next(sound))
  bring([named('first'), named('second'), dropsOdd, named('third')], noBytes, times(3, 'sound'))
  t.same(passed, ['first 0', 'second 0', 'third 0', 'first 160', 'second 160', 'first 320', 'second 320', 'third 320'])
  t.end()
})

test('a stage hears every piece of its direction once and in order, wherever in the list it stands', (t) => {
  const heardAt = (list: readonly Stage[], at: number, payload: Uint8Array, kinds: readonly Sound['kind'][]) => {
    const heard: number[] = []
    const ear: Stage = (next) => (sound) => {
      heard.push(sound.timestamp / 160)
      next(sound)
    }
    return { out: bring(list.toSpliced(at, 0, ear), payload, kinds), heard }
  }
  const count = Array.from({ length: 20 }, (_, i) => i)
  for (const audio of [negotiatedPcmu, negotiatedPhone, negotiatedG722, negotiatedOpus])
    for (const format of [pcm16, pcma])
      for (const recording of [null, nobody]) {
        const payload = payloadOf(audio)
        const name = `${audio.codec}, ${format.encoding}, ${recording ? 'recorded' : 'not recorded'}`
        const upLength = up(audio, format, recording).list.length
        for (let at = 0; at <= upLength; at++) {
          const stages = up(audio, format, recording)
          const { out, heard } = heardAt(stages.list, at, payload, times(20, 'sound'))
          t.same(heard, count, `up at ${at}: ${name}`)
          t.ok(out.every(({ payload }) => payload.length === frameBytesOf(format)))
          stages.close()
        }
        const downLength = down(audio, format, recording).list.length
        const kinds = count.map<Sound['kind']>((i) => (i % 5 === 4 ? 'pause' : 'sound'))
        for (let at = 0; at <= downLength; at++) {
          const stages = down(audio, format, recording)
          const { out, heard } = heardAt(stages.list, at, frameOf(format), kinds)
          t.same(heard, count, `down at ${at}: ${name}`)
          t.ok(out.every(({ payload }) => payload.length > 0))
          stages.close()
        }
      }
  t.end()
})

test('what is lost is sound again before the recording hears it, and a packet that is none counts as lost', (t) => {
  const heard: { readonly timestamp: number; readonly level: number }[] = []
  const recording: Recorder = {
    caller: (samples, timestamp) => void heard.push({ timestamp, level: levelOf(samples) }),
    agent: () => void t.fail('another direction'),
  }
  const { list } = up(negotiatedPhone, pcm16, recording)
  const kinds = [...times(5, 'sound' as const), ...times(5, 'lost' as const), 'sound' as const]
  const out = bring(list, payloadOf(negotiatedPhone), kinds)
  t.same(
    out.map(({ kind }) => kind),
    [...times(5, 'sound'), ...times(3, 'guess'), 'sound'],
    'nothing is guessed beyond 60 ms',
  )
  t.same(
    heard.map(({ timestamp }) => timestamp / 160),
    [0, 1, 2, 3, 4, 5, 6, 7, 10],
    'and what is guessed lies where it was lost',
  )
  t.ok(heard.slice(0, 6).every(({ level }) => level > 3000))
  t.same(
    bring(list, new Uint8Array(0), ['sound']).map(({ kind }) => kind),
    ['guess'],
  )
  t.end()
})

test('nothing is decoded where the engine hears and speaks the law of the wire and nobody needs samples', (t) => {
  const seen: Pick<Sound, 'samples' | 'payload'>[] = []
  const eye: Stage = (next) => (sound) => {
    seen.push({ samples: sound.samples, payload: sound.payload })
    next(sound)
  }
  const watched = ({ list }: Stages): Stage[] => [eye, ...list.flatMap((stage) => [stage, eye])]
  for (const [stages, payload] of [
    [up(negotiatedPhone, pcma, null), payloadOf(negotiatedPhone)],
    [down(negotiatedPhone, pcma, null), frameOf(pcma)],
  ] as const) {
    const out = bring(watched(stages), payload, times(10, 'sound'))
    t.ok(seen.length >= 30)
    t.ok(
      seen.splice(0).every((sound) => sound.samples.length === 0 && sound.payload === payload),
      'no samples at any place, and the very bytes',
    )
    t.equal(out.length, 10)
  }
  let recorded = 0
  const recording = { caller: () => void recorded++, agent: () => void recorded++ }
  for (const [stages, payload] of [
    [up(negotiatedPhone, pcma, recording), payloadOf(negotiatedPhone)],
    [down(negotiatedPhone, pcma, recording), frameOf(pcma)],
  ] as const)
    t.ok(bring(stages.list, payload, times(10, 'sound')).every((sound) => sound.payload === payload))
  t.equal(recorded, 20, 'whoever records hears samples, and the bytes are the same all the same')
  t.end()
})

test('a stage that changes samples is heard, also where the bytes would have gone through untouched', (t) => {
  const half: Stage = (next) => (sound) => {
    sound.samples = sound.samples.map((sample) => sample / 2)
    sound.payload = noBytes
    next(sound)
  }
  const loudnessOf = (sounds: readonly Sound[]): number => {
    const samples = new Int16Array(160)
    lawOfEncoding('pcma').decode(sounds.at(-1)!.payload, samples)
    return levelOf(samples)
  }
  for (const [{ list }, payload] of [
    [up(negotiatedPhone, pcma, nobody), payloadOf(negotiatedPhone)],
    [down(negotiatedPhone, pcma, nobody), frameOf(pcma)],
  ] as const) {
    const untouched = loudnessOf(bring(list, payload, times(5, 'sound')))
    const halved = loudnessOf(bring(list.toSpliced(-1, 0, half), payload, times(5, 'sound')))
    t.ok(Math.abs(halved / untouched - 0.5) < 0.02, `${untouched} → ${halved}`)
  }
  t.end()
})

/** Opus that counts its codecs, and breaks at the hundredth piece where it should. */
function createWatchedOpus(breaks: 'decode' | 'encode' | null = null) {
  let open = 0
  let left = 100
  const used = (step: 'decode' | 'encode') => {
    if (step === breaks && --left < 0) throw new Error(`the ${step}r broke`)
  }
  const counted = <T extends { close: () => void }>(codec: T): T => {
    open++
    const close = () => {
      open--
      codec.close()
    }
    return { ...codec, close }
  }
  const library: OpusLibrary = {
    ...opus,
    createDecoder(options) {
      const codec = opus.createDecoder(options)
      const decode: typeof codec.decode = (payload) => {
        used('decode')
        return codec.decode(payload)
      }
      return counted({ ...codec, decode })
    },
    createEncoder(options) {
      const codec = opus.createEncoder(options)
      const encode: typeof codec.encode = (samples) => {
        used('encode')
        return codec.encode(samples)
      }
      return counted({ ...codec, encode })
    },
  }
  return { library, open: () => open }
}

/** Legs of one ticker. */
function openLegs(t: Test, libraries: readonly OpusLibrary[]) {
  const clock = createHandClock()
  const ticker = createTicker(clock)
  const legs = libraries.map((library) =>
    openLegScene(t, negotiatedOpus, { opus: library, ticker, now: () => clock.now() }),
  )
  const payload = payloadOf(negotiatedOpus)
  const run = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 20) {
      for (const { wire } of legs) wire.speak(payload)
      clock.advance(20)
      for (const { bus } of legs) await bus.flush()
    }
  }
  return { legs, run }
}

for (const breaks of ['decode', 'encode'] as const)
  test(`a stage that throws (${breaks}) ends its own leg as failed: the ticker and the other legs go on`, async (t) => {
    const { legs, run } = openLegs(t, [createWatchedOpus(breaks).library, opus])
    const [broken, whole] = legs as [(typeof legs)[0], (typeof legs)[0]]
    for (const { wire, command, say } of legs) {
      wire.connect()
      await command(startOf)
      await say(1, 0, times(500, bytesOf(toneOf(16_000))))
    }
    await run(4000)
    t.match(broken.events.at(-1), { type: 'disconnected', cause: 'failed', details: 'internal error' })
    t.equal(broken.events.filter(({ type }) => type === 'disconnected').length, 1)
    t.equal(broken.log.lines.filter(({ level }) => level === 'error').length, 1, 'logged once')
    t.ok(broken.wire.isClosed())
    t.ok(Math.abs(broken.up.length - 100) < 5, `${broken.up.length} frames until then`)
    t.same(
      whole.events.map(({ type }) => type),
      ['connected', 'sounding'],
    )
    t.ok(Math.abs(whole.up.length - 200) < 5, `${whole.up.length} frames up`)
    t.ok(Math.abs(whole.wire.sent.length - 200) < 5, `${whole.wire.sent.length} frames down`)
  })

test('the codecs of a line are closed when another takes its place, and at its end', async (t) => {
  const watched = createWatchedOpus()
  const { legs } = openLegs(t, [watched.library])
  const { wire, command, leg } = legs[0]!
  wire.connect()
  t.equal(watched.open(), 0)
  await command(startOf)
  t.equal(watched.open(), 2)
  await command({ ...startOf, epoch: 2 })
  t.equal(watched.open(), 2)
  wire.renegotiate(negotiatedPcmu)
  t.equal(watched.open(), 0)
  wire.renegotiate(negotiatedOpus)
  t.equal(watched.open(), 2)
  await leg.close()
  t.equal(watched.open(), 0)
})

test('Opus says where the agent pauses, by packets without content; G.711 sends silence', async (t) => {
  for (const audio of [negotiatedOpus, negotiatedPcmu]) {
    const { wire, command, say, run } = openLegScene(t, audio, { opus })
    wire.connect()
    await command(startOf)
    await say(1, 0, times(10, bytesOf(toneOf(16_000))))
    await run(2000)
    const lengths = wire.sent.map(({ payload }) => payload.length)
    const [spoken, tail, pause] = [lengths.slice(0, 10), lengths.slice(10, 19), lengths.slice(19)]
    const isOpus = audio === negotiatedOpus
    t.ok([...spoken, ...tail].every((length) => length > 2))
    t.ok(pause.length >= 4 && pause.every((length) => (isOpus ? length === 1 : length === 160)), pause.join())
    await say(1, 10, times(10, bytesOf(toneOf(16_000))))
    await run(200)
    t.ok(
      wire.sent.slice(-10).every(({ payload }) => payload.length > 2),
      'the agent goes on',
    )
    if (!isOpus) continue
    const decoder = opus.createDecoder({ rateHz: 16_000 })
    const heard = wire.sent.map(({ payload }) => levelOf(decoder.decode(payload)!))
    decoder.close()
    t.ok(heard.slice(19, -10).every((level) => level < 50) && heard.at(-1)! > 1000)
  }
})

test('while its actor is gone a browser hears soft noise in pauses, which is not recorded, and then a pause that begins anew', (t) => {
  let isAlone = true
  const recorded: Int16Array[] = []
  const recording = { ...nobody, agent: (samples: Int16Array) => void recorded.push(samples) }
  const stages = (audio: NegotiatedAudio): Stages =>
    downStages({ audio, opus, speaks: pcm16, recording, isWaiting: () => false, isAlone: () => isAlone })
  const { list, close } = stages(negotiatedPcmu)
  const bringPauses = (first: number, count: number): Sound[] => {
    const sound = createSound()
    for (let ticks = first; ticks < first + count; ticks++) {
      sound.silentTicks = ticks
      take(renew(sound, 'pause', noBytes))
    }
    return passed.splice(0)
  }
  const passed: Sound[] = []
  const take = chain(list, (piece) => void passed.push({ ...piece, payload: piece.payload.slice() }))
  bringPauses(1, 100)
  const noise = bringPauses(101, 50)
  t.equal(noise.length, 50, 'each tick has its packet')
  t.ok(noise.every(({ payload }) => payload.some((byte) => byte !== 0xff && byte !== 0x7f)))
  isAlone = false
  t.equal(bringPauses(151, 10).length, 10, 'what was said ends in silence')
  t.ok(bringPauses(161, 40).length <= 2)
  t.same(recorded, [])
  close()
  t.end()
})
