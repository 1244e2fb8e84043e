/** The media end of a telephone call: what its actor can ask of it, what it tells, and what the other side hears through changes of the line. */
import { test, type Test } from 'tap'
import { bytesOf, samplesOf, type AudioFormat, type Frame } from '../../model/frame.ts'
import type { LegCommand } from '../../model/leg.ts'
import type { LegSignaling, NegotiatedAudio, RtpPacket } from '../../model/rtp-transport.ts'
import { createDtmfReceiver } from '../../media/rtp/dtmf-receiver.ts'
import { lawOfEncoding } from '../../media/codecs/g711.ts'
import { createG722Decoder, createG722Encoder } from '../../media/codecs/g722.ts'
import type { LegDeps } from '../../media/leg/leg.ts'
import { createOpusLibrary } from '../../media/codecs/opus.ts'
import { parseWav } from '../scenes/parse-wav.ts'
import { levelOf, openLegScene, pitchOf } from '../scenes/leg-scene.ts'
import {
  createScriptedTransport,
  negotiatedG722,
  negotiatedOpus,
  negotiatedPhone,
  type ScriptedTransport,
} from '../fake/scripted-transport.ts'

const opus = createOpusLibrary()
const pcm = (rateHz: AudioFormat['rateHz']): AudioFormat => ({ encoding: 'pcm16', rateHz })
const pcma: AudioFormat = { encoding: 'pcma', rateHz: 8000 }

const startOf = (epoch: number, hears = pcm(8000), speaks = pcm(8000)) =>
  ({ type: 'start', epoch, hears: [hears], speaks: [speaks], recording: null }) as const
const recordedStartOf = (epoch: number, hears = pcm(8000), speaks = pcm(8000)) =>
  ({ ...startOf(epoch, hears, speaks), recording: { key: 'a/call.wav', mode: 'split' } }) as const

/** A line that can do all, and remembers what it was asked. */
function createSignaling() {
  const asked: string[] = []
  const transfers: PromiseWithResolvers<Awaited<ReturnType<LegSignaling['transfer']>>>[] = []
  let takesKeys = true
  const signaling: LegSignaling = {
    answer: () => void asked.push('answer'),
    transfer(to) {
      asked.push(`transfer ${to}`)
      const transfer = Promise.withResolvers<Awaited<ReturnType<LegSignaling['transfer']>>>()
      transfers.push(transfer)
      return transfer.promise
    },
    sendDtmf(digits) {
      asked.push(`keys ${digits}`)
      return takesKeys
    },
  }
  return { signaling, asked, transfers, refuseKeys: () => void (takesKeys = false) }
}

function createScene(t: Test, audio: NegotiatedAudio = negotiatedPhone, other: Partial<LegDeps> = {}) {
  const line = createSignaling()
  const scene = openLegScene(t, audio, { opus, signaling: line.signaling, connectWithin: 200_000, ...other })
  return { ...scene, line }
}

const toneOf = (hertz: number, rateHz: number, ms: number, level = 8000): Int16Array =>
  Int16Array.from({ length: (ms * rateHz) / 1000 }, (_, i) => level * Math.sin((2 * Math.PI * hertz * i) / rateHz))
const near = (value: number, wanted: number, most = 12) => Math.abs(value - wanted) <= most

/** Frames of 20 ms, in the format of an engine. */
function framesOf(sound: Int16Array, { rateHz, encoding }: AudioFormat): Uint8Array[] {
  const size = rateHz / 50
  return Array.from({ length: sound.length / size }, (_, i) => {
    const samples = sound.slice(i * size, (i + 1) * size)
    if (encoding === 'pcm16') return bytesOf(samples)
    const bytes = new Uint8Array(size)
    lawOfEncoding(encoding).encode(samples, bytes)
    return bytes
  })
}
const decoded = (packets: readonly RtpPacket[], encoding: 'pcma' | 'pcmu' = 'pcma'): Int16Array => {
  const bytes = Buffer.concat(packets.map(({ payload }) => payload))
  const samples = new Int16Array(bytes.length)
  lawOfEncoding(encoding).decode(bytes, samples)
  return samples
}
const heardIn = (frames: readonly Frame[]): Int16Array =>
  samplesOf(new Uint8Array(Buffer.concat(frames.map(({ payload }) => payload))))

/** The caller says a tone, 20 ms at each call. */
function speakerOf(wire: ScriptedTransport, hertz = 400): () => void {
  const packets = framesOf(toneOf(hertz, 8000, 1000), pcma)
  let next = 0
  return () => wire.speak(packets[next++ % packets.length]!)
}

test('a call that comes in rings until it is answered, once; only then it can press keys', async (t) => {
  const { wire, line, events, bus, command } = createScene(t)
  t.match(await command({ type: 'send_dtmf', epoch: 1, digits: '1' }), { type: 'refused', details: /answered/ })
  t.same(await command({ type: 'answer', epoch: 1 }), { type: 'accepted' })
  t.same(line.asked, ['answer'])
  wire.connect()
  await bus.flush()
  t.same(await command({ type: 'answer', epoch: 1 }), { type: 'accepted' })
  t.same(line.asked, ['answer'], 'asked again, it changes nothing')
  t.match(await command({ type: 'answer', epoch: 0 }), { type: 'refused', details: /taken over/ })
  t.same(events, [{ type: 'connected', providerStatus: 'connected' }])
})

test('ringing is told once and only before the answer', async (t) => {
  const { leg, wire, events, bus } = createScene(t)
  leg.handlers.ringing('180 Ringing')
  leg.handlers.ringing('183 Session Progress')
  wire.connect()
  leg.handlers.ringing('180 Ringing')
  await bus.flush()
  t.same(events, [
    { type: 'ringing', providerStatus: '180 Ringing' },
    { type: 'connected', providerStatus: 'connected' },
  ])
})

test('a dial that failed ends the leg in place of a disconnection, and an actor that took over learns of it', async (t) => {
  const { leg, wire, events, bus, command } = createScene(t)
  const ended = { type: 'dial_failed', outcome: { status: 'busy' }, providerStatus: '486 Busy Here' } as const
  leg.handlers.ringing('180 Ringing')
  leg.handlers.dialFailed({ status: 'busy' }, '486 Busy Here')
  wire.disconnect('hung_up', 'and the transport ends')
  leg.handlers.transferFailed('603 Decline')
  await bus.flush()
  t.same(events, [{ type: 'ringing', providerStatus: '180 Ringing' }, ended])
  t.equal(wire.closeReason(), 'busy')
  t.same(await command({ type: 'ping', epoch: 7 }), { type: 'here', connected: false, ended })
  for (const type of ['answer', 'transfer', 'send_dtmf'] as const)
    t.match(await command({ type, epoch: 7, to: '+4930', digits: '1' } as LegCommand), { type: 'refused' }, type)
  t.match(await command({ type: 'close', epoch: 7, reason: 'busy' }), { type: 'closed' })
})

test('a caller is passed on: the answer waits for the other side, its success ends the leg, its failure does not', async (t) => {
  const { leg, wire, line, events, bus, command, closings } = createScene(t)
  wire.connect()
  const refused = command({ type: 'transfer', epoch: 1, to: '+49301' })
  await bus.flush()
  line.transfers[0]!.resolve({ accepted: false, details: '403 Forbidden' })
  t.same(await refused, { type: 'refused', details: '403 Forbidden' })
  const accepted = command({ type: 'transfer', epoch: 1, to: '+49302' })
  t.same(
    await command({ type: 'ping', epoch: 1 }),
    { type: 'here', connected: true, ended: null },
    'nobody waits for it',
  )
  line.transfers[1]!.resolve({ accepted: true })
  t.same(await accepted, { type: 'accepted' })
  leg.handlers.transferFailed('486 Busy Here')
  await bus.flush()
  t.equal(closings(), 0)
  leg.handlers.transferred('200 OK')
  wire.disconnect('hung_up', 'BYE')
  await bus.flush()
  t.same(events.slice(1), [
    { type: 'transfer_failed', providerStatus: '486 Busy Here' },
    { type: 'transferred', providerStatus: '200 OK' },
  ])
  t.equal(wire.closeReason(), 'transferred')
  t.match(await command({ type: 'ping', epoch: 1 }), { ended: { type: 'transferred' } })
})

test("a browser's leg is no telephone: no answer, no transfer; keys where they were negotiated", async (t) => {
  const { wire, command, run } = createScene(t, negotiatedOpus, { signaling: null })
  wire.connect()
  await command(startOf(1))
  t.match(await command({ type: 'answer', epoch: 1 }), { type: 'refused', details: /no telephone/ })
  t.match(await command({ type: 'transfer', epoch: 1, to: '+4930' }), { type: 'refused', details: /browser/ })
  wire.sent.length = 0
  t.same(await command({ type: 'send_dtmf', epoch: 1, digits: '9' }), { type: 'accepted' })
  await run(400)
  const keys = wire.sent.filter(({ payloadType }) => payloadType === 110)
  t.equal(keys.length, 8)
  t.same([...keys.at(-1)!.payload], [9, 0x8a, (6 * 960) >> 8, (6 * 960) & 0xff], 'in units of 48 kHz')
})

test('a line that breaks when it is asked ends the call as failed, and the actor gets an answer', async (t) => {
  const signaling: LegSignaling = {
    answer() {
      throw new Error('a bug')
    },
    transfer: () => Promise.resolve({ accepted: true }),
    sendDtmf: () => false,
  }
  const { command, events, log, bus } = createScene(t, negotiatedPhone, { signaling })
  t.match(await command({ type: 'answer', epoch: 1 }), { type: 'refused' })
  await bus.flush()
  t.match(events, [{ type: 'disconnected', cause: 'failed' }])
  t.equal(log.lines.filter(({ level }) => level === 'error').length, 1)
})

test('the transport is told why it is closed', async (t) => {
  const byActor = createScene(t)
  byActor.wire.connect()
  await byActor.command({ type: 'close', epoch: 1, reason: 'voicemail' })
  t.equal(byActor.wire.closeReason(), 'voicemail')
  const byNobody = createScene(t)
  await byNobody.run(200_040)
  t.equal(byNobody.wire.closeReason(), 'media_lost', 'a telephone may ring as long as it was given, and no longer')
  const byOwner = createScene(t)
  await byOwner.leg.close('service_stopping')
  t.equal(byOwner.wire.closeReason(), 'service_stopping')
  const late = createScene(t)
  await late.command({ type: 'close', epoch: 1, reason: 'canceled' })
  const wire = createScriptedTransport(late.leg.handlers, negotiatedPhone)
  late.leg.attach(wire)
  t.equal(wire.closeReason(), 'canceled', 'one that comes late too')
})

test("keys are pressed instead of the agent's sound, whose frames wait and go on after them", async (t) => {
  const { wire, events, command, say, run } = createScene(t)
  wire.connect()
  await command(startOf(1))
  await run(100)
  await say(1, 0, framesOf(toneOf(300, 8000, 1000), pcm(8000)))
  await run(200)
  wire.sent.length = 0
  t.same(await command({ type: 'send_dtmf', epoch: 1, digits: '1A#' }), { type: 'accepted' })
  await run(660 + 800)
  const isKey = ({ payloadType }: RtpPacket) => payloadType === 101
  const receiver = createDtmfReceiver()
  t.equal(wire.sent.flatMap((packet) => (isKey(packet) ? (receiver.receive(packet) ?? []) : [])).join(''), '1A#')
  const firstSound = wire.sent.findIndex((packet) => !isKey(packet))
  t.equal(firstSound, 24, 'three presses of 8 packets, and nothing between them')
  t.ok(wire.sent[firstSound]!.marker, 'the sound begins anew')
  t.equal((wire.sent[firstSound]!.timestamp - wire.sent[0]!.timestamp) >>> 0, 33 * 160, 'and time went on')
  wire.sent.slice(1).forEach((packet, i) => {
    if (packet.sequenceNumber !== ((wire.sent[i]!.sequenceNumber + 1) & 0xffff)) t.fail(`a hole before packet ${i + 1}`)
  })
  t.ok(near(pitchOf(decoded(wire.sent.slice(firstSound)), 8000), 300), 'not one frame was lost')
  t.same(events.at(-1), { type: 'drained', lastPlayedSeq: 49 })
  t.match(await command({ type: 'send_dtmf', epoch: 1, digits: '1'.repeat(32) }), { type: 'accepted' })
  t.match(await command({ type: 'send_dtmf', epoch: 1, digits: '2'.repeat(32) }), { type: 'accepted' })
  t.match(await command({ type: 'send_dtmf', epoch: 1, digits: '3' }), { type: 'refused', details: /too many/ })
})

test('where no telephone events were negotiated, keys go by signaling, or are refused with the reason', async (t) => {
  const { wire, line, command } = createScene(t, { ...negotiatedPhone, telephoneEventPayloadType: null })
  wire.connect()
  t.same(await command({ type: 'send_dtmf', epoch: 1, digits: '12' }), { type: 'accepted' })
  line.refuseKeys()
  t.match(await command({ type: 'send_dtmf', epoch: 1, digits: '3' }), { type: 'refused', details: /no way/ })
  t.same(line.asked, ['keys 12', 'keys 3'])
})

test('on hold nothing is sent, no silence is a lost call, and the agent goes on where it was stopped', async (t) => {
  const { leg, wire, up, events, command, say, run } = createScene(t)
  const speak = speakerOf(wire)
  wire.connect()
  await command(startOf(1))
  await run(200, speak)
  await say(1, 0, framesOf(toneOf(300, 8000, 1000), pcm(8000)))
  await run(200, speak)
  leg.handlers.held(true)
  wire.sent.length = 0
  await say(1, 50, framesOf(toneOf(300, 8000, 200), pcm(8000)))
  await run(60_000)
  t.equal(wire.sent.length, 0)
  t.same(
    events.map(({ type }) => type),
    ['connected', 'sounding'],
    'a minute without a packet',
  )
  const held = up.length
  await run(400, speakerOf(wire, 1000))
  t.equal(levelOf(heardIn(up.slice(held))), 0, 'music on hold is not the caller')
  leg.handlers.held(false)
  wire.jump(40_000, 12_345)
  await run(14_900)
  t.equal(events.filter(({ type }) => type === 'disconnected').length, 0, 'the time for the next packet counts anew')
  t.ok(wire.sent[0]!.marker)
  const before = up.length
  await run(200, speak)
  t.ok(levelOf(heardIn(up.slice(before + 2))) > 4000, 'the caller is heard at once')
  await run(15_100)
  t.match(events.at(-1), { type: 'disconnected', cause: 'media_lost' })
})

test('a peer that only listens hears the agent go on, and is not taken for lost', async (t) => {
  const { leg, wire, up, events, command, say, run } = createScene(t)
  wire.connect()
  await command(startOf(1))
  leg.handlers.held(true, true)
  await say(1, 0, framesOf(toneOf(300, 8000, 400), pcm(8000)))
  await run(60_000)
  t.ok(wire.sent.length > 20)
  t.ok(near(pitchOf(decoded(wire.sent.slice(1, 20)), 8000), 300))
  t.same(
    events.map(({ type }) => type),
    ['connected', 'sounding', 'drained'],
  )
  const held = up.length
  await run(400, speakerOf(wire))
  t.equal(levelOf(heardIn(up.slice(held))), 0, 'what comes all the same is not the caller')
  leg.handlers.held(true, false)
  wire.sent.length = 0
  await run(1000)
  t.equal(wire.sent.length, 0, 'on hold behind it')
})

test('what the agent said on hold is played after it', async (t) => {
  const { leg, wire, events, command, say, run } = createScene(t)
  wire.connect()
  await command(startOf(1))
  leg.handlers.held(true)
  await say(1, 0, framesOf(toneOf(300, 8000, 400), pcm(8000)))
  await run(5000)
  t.same(await command({ type: 'flush', epoch: 1 }), { type: 'flushed', lastPlayedSeq: -1 }, 'and may be flushed')
  await say(1, 20, framesOf(toneOf(300, 8000, 400), pcm(8000)))
  leg.handlers.held(false)
  await run(400)
  t.same(events.at(-1), { type: 'drained', lastPlayedSeq: 39 })
  t.ok(near(pitchOf(decoded(wire.sent.slice(-20)), 8000), 300))
})

test('another codec in the middle of the call: queue, numbering, recording and the line of the caller go on', async (t) => {
  const { wire, up, events, files, command, say, run } = createScene(t, negotiatedOpus)
  const encoder = opus.createEncoder({ rateHz: 8000 })
  const tone = framesOf(toneOf(400, 8000, 1000), pcm(8000)).map((frame) => encoder.encode(samplesOf(frame)))
  let next = 0
  wire.connect()
  await command(recordedStartOf(1))
  await say(1, 0, framesOf(toneOf(300, 8000, 4000), pcm(8000)))
  await run(1000, () => wire.speak(tone[next++ % 50]!))
  wire.renegotiate(negotiatedPhone)
  wire.renegotiate(negotiatedPhone)
  await run(1000, speakerOf(wire))
  wire.renegotiate({ ...negotiatedG722, packetMs: 40 })
  const wide = createG722Encoder()
  const wideTone = toneOf(400, 16_000, 1000)
  next = 0
  await run(1000, () => wire.speak(wide.encode(wideTone.slice(next * 320, ++next * 320))))
  wire.renegotiate(negotiatedOpus)
  next = 0
  await run(1000, () => wire.speak(tone[next++ % 50]!))

  const types = wire.sent.map(({ payloadType }) => payloadType)
  t.same([...new Set(types)], [111, 8, 9])
  for (const [i, packet] of wire.sent.slice(1).entries())
    if (packet.sequenceNumber !== ((wire.sent[i]!.sequenceNumber + 1) & 0xffff)) t.fail(`a hole before packet ${i + 1}`)
  const first = (type: number) => wire.sent.findIndex(({ payloadType }) => payloadType === type)
  const elapsed = (from: number, to: number) => (wire.sent[to]!.timestamp - wire.sent[from]!.timestamp) >>> 0
  t.equal(elapsed(first(8) - 1, first(8)), 160, 'the timestamp goes on by the new clock')
  t.ok(wire.sent[first(8)]!.marker)
  t.equal(elapsed(first(8), first(9)), 50 * 160)
  t.same(
    [...new Set(wire.sent.filter(({ payloadType }) => payloadType === 9).map(({ payload }) => payload.length))],
    [320],
  )
  t.same(events.at(-1), { type: 'drained', lastPlayedSeq: 199 }, 'not one frame was lost')

  up.forEach(({ seq, timestamp }, i) => t.same([seq, timestamp], [i, i * 20]))
  t.ok(Math.abs(up.length - 200) <= 3, `${up.length} frames`)
  for (const at of [20, 70, 120, 170])
    t.ok(near(pitchOf(heardIn(up.slice(at, at + 25)), 8000), 400, 20), `the caller is heard, frame ${at}`)
  await command({ type: 'close', epoch: 1, reason: 'completed' })
  const { samples } = parseWav(files.get('a/call.wav')!)
  t.equal(samples.length, 4000 * 32)
  const channel = (index: number, from: number, to: number) =>
    Int16Array.from({ length: (to - from) * 16 }, (_, i) => samples[(from * 16 + i) * 2 + index]!)
  for (const from of [300, 1300, 2300, 3300]) {
    t.ok(near(pitchOf(channel(0, from, from + 500), 16_000), 300, 20), `the agent in the recording, ${from} ms`)
    t.ok(near(pitchOf(channel(1, from, from + 500), 16_000), 400, 20), `the caller in the recording, ${from} ms`)
  }
  encoder.close()
})

test('a key pressed across a change of the line is one key', async (t) => {
  const { wire, events, bus, command } = createScene(t)
  wire.connect()
  await command(startOf(1))
  wire.press(5, { duration: 160, end: false, marker: true })
  wire.renegotiate({ ...negotiatedPhone, codec: 'pcmu', payloadType: 0 })
  wire.press(5, { duration: 320, end: true, marker: false })
  wire.press(5, { duration: 320, end: true, marker: false })
  await bus.flush()
  t.same(events.slice(1), [{ type: 'dtmf', digit: '5' }])
})

test("another source's stream is heard from its first packets on, in the line and in the recording", async (t) => {
  const { wire, up, files, command, run } = createScene(t)
  const speak = speakerOf(wire)
  wire.connect()
  await command(recordedStartOf(1))
  for (const [sequenceNumber, timestamp] of [
    [20_000, 3],
    [19_990, 0x8000_0000],
    [65_535, 0xffff_ffff],
  ] as const) {
    await run(1000, speak)
    wire.jump(sequenceNumber, timestamp)
    const before = up.length
    await run(200, speak)
    t.ok(levelOf(heardIn(up.slice(before, before + 10))) > 4500, `${sequenceNumber}: nothing of it is lost`)
  }
  await command({ type: 'close', epoch: 1, reason: 'completed' })
  const { samples } = parseWav(files.get('a/call.wav')!)
  const caller = Int16Array.from({ length: samples.length / 2 }, (_, i) => samples[i * 2 + 1]!)
  t.ok(levelOf(caller.subarray(3200)) > 5000)
})

test('packets of any length go out one by one, each as long after the one before as that lasts', async (t) => {
  for (const packetMs of [10, 20, 30, 40, 60] as const) {
    const { wire, command, say, clock, bus } = createScene(t, { ...negotiatedPhone, packetMs })
    wire.connect()
    await command(startOf(1, pcm(8000), pcm(8000)))
    await say(1, 0, framesOf(toneOf(440, 8000, 600), pcm(8000)))
    const times: number[] = []
    for (let passed = 0; passed < 1200; passed += 5) {
      clock.advance(5)
      await bus.flush()
      while (times.length < wire.sent.length) times.push(clock.now())
    }
    const gaps = times.slice(1).map((time, i) => time - times[i]!)
    t.same([...new Set(gaps)], [packetMs], `${packetMs} ms`)
    t.ok(times.length >= 1200 / packetMs - 2)
  }
})

test('keys and what follows them go out in order, however long the packets are', async (t) => {
  for (const packetMs of [10, 30] as const) {
    const { wire, command, say, run } = createScene(t, { ...negotiatedPhone, packetMs })
    wire.connect()
    await command(startOf(1, pcm(8000), pcm(8000)))
    await say(1, 0, framesOf(toneOf(440, 8000, 600), pcm(8000)))
    await run(150)
    await command({ type: 'send_dtmf', epoch: 1, digits: '5' })
    await run(600)
    const times = wire.sent.map(({ timestamp }) => timestamp)
    const isOrdered = wire.sent.every(
      ({ sequenceNumber }, i) => i === 0 || sequenceNumber === ((wire.sent[i - 1]!.sequenceNumber + 1) & 0xffff),
    )
    t.ok(isOrdered, 'numbered as they go')
    const sounds = wire.sent.filter(({ payloadType }) => payloadType === 8)
    t.ok(
      sounds.every(({ timestamp }, i) => i === 0 || (timestamp - sounds[i - 1]!.timestamp) >>> 0 < 8 * 400),
      String(times),
    )
  }
})

const inband: NegotiatedAudio = { ...negotiatedPhone, telephoneEventPayloadType: null }
const rows = [697, 770, 852, 941]
const columns = [1209, 1336, 1477, 1633]
const keys = ['123A', '456B', '789C', '*0#D']

/** The tones of a key as an exchange sends them: 20 ms of A-law each. */
function tonesOf(digit: string, ms: number): Uint8Array[] {
  const row = keys.findIndex((line) => line.includes(digit))
  const pair = [rows[row]!, columns[keys[row]!.indexOf(digit)]!]
  const sound = Int16Array.from({ length: ms * 8 }, (_, i) =>
    pair.reduce((sum, hertz) => sum + 4000 * Math.sin((2 * Math.PI * hertz * i) / 8000), 0),
  )
  return framesOf(sound, pcma)
}

async function dial(scene: ReturnType<typeof createScene>, digits: string, ms = 100): Promise<void> {
  const pause = framesOf(new Int16Array(8 * 80), pcma)
  for (const digit of digits)
    for (const payload of [...tonesOf(digit, ms), ...pause]) await scene.run(20, () => scene.wire.speak(payload))
}

const digitsOf = ({ events }: Pick<ReturnType<typeof createScene>, 'events'>): string =>
  events.flatMap((event) => (event.type === 'dtmf' ? [event.digit] : [])).join('')

test('keys that come as tones are told as keys, once each, and the engine hears silence in their place', async (t) => {
  const all = '0123456789*#ABCD'
  const scene = createScene(t, inband, { inbandKeys: true })
  scene.wire.connect()
  await scene.command(startOf(1))
  await dial(scene, `${all}55`)
  t.equal(digitsOf(scene), `${all}55`)
  const loud = scene.up.filter((frame) => levelOf(heardIn([frame])) > 500)
  t.ok(loud.length < scene.up.length / 4, `${loud.length} of ${scene.up.length} frames have tones`)
})

test('keys are not looked for where telephone events were agreed on, where it is switched off, or in a browser', async (t) => {
  for (const [audio, other] of [
    [negotiatedPhone, { inbandKeys: true }],
    [inband, {}],
    [inband, { inbandKeys: true, signaling: null }],
  ] as const) {
    const scene = createScene(t, audio, other)
    scene.wire.connect()
    await scene.command(startOf(1))
    await dial(scene, '12')
    t.equal(digitsOf(scene), '')
  }
})

test('a key that signaling tells as well is one key, and from then on the sound has none', async (t) => {
  const scene = createScene(t, inband, { inbandKeys: true })
  scene.wire.connect()
  await scene.command(startOf(1))
  await dial(scene, '1')
  scene.leg.dtmf('1')
  await scene.bus.flush()
  await dial(scene, '2')
  scene.leg.dtmf('2')
  scene.leg.dtmf('2')
  await scene.bus.flush()
  t.equal(digitsOf(scene), '122')
})

test('what a caller said behind a lost packet is heard, although they hang up before it is given up', async (t) => {
  const { wire, up, command, run, bus } = createScene(t)
  const speak = speakerOf(wire)
  wire.connect()
  await command(startOf(1))
  await run(400, speak)
  const before = up.length
  wire.lose()
  for (let packet = 0; packet < 4; packet++) speak()
  wire.disconnect('hung_up', 'BYE')
  await bus.flush()
  t.ok(levelOf(heardIn(up.slice(before).slice(-4))) > 4000)
  t.ok(up.length - before >= 4, `${up.length - before} frames`)
})

test("packets of the peer's length, in the time of their sound, with the agent's pauses as soft noise", async (t) => {
  for (const packetMs of [10, 20, 30, 40, 60] as const)
    for (const audio of [negotiatedPhone, negotiatedG722]) {
      const { wire, command, say, run } = createScene(t, { ...audio, packetMs })
      wire.connect()
      await command(startOf(1, pcm(16_000), pcm(16_000)))
      await run(600)
      await say(1, 0, framesOf(toneOf(440, 16_000, 1200), pcm(16_000)))
      await run(1800)
      t.equal(wire.sent.length, 2400 / packetMs, `${audio.codec} ${packetMs} ms`)
      t.same([...new Set(wire.sent.map(({ payload }) => payload.length))], [packetMs * 8])
      wire.sent.slice(1).forEach((packet, i) => {
        const elapsed = (packet.timestamp - wire.sent[i]!.timestamp) >>> 0
        if (elapsed !== packetMs * 8 || packet.marker) t.fail(`packet ${i + 1}: ${elapsed}`)
      })
      t.ok(wire.sent[0]!.marker, 'one packet begins the stream')
      const sound = soundOf(wire.sent, audio)
      const perMs = sound.length / 2400
      t.ok(near(pitchOf(sound.subarray(650 * perMs, 1750 * perMs), perMs * 1000), 440))
      for (const [from, to] of [
        [200, 600],
        [1900, 2400],
      ] as const) {
        const level = levelOf(sound.subarray(from * perMs, to * perMs))
        t.ok(level > 4 && level < 25, `noise of ${level.toFixed(1)}`)
      }
    }
})

function soundOf(packets: readonly RtpPacket[], { codec }: NegotiatedAudio): Int16Array {
  if (codec !== 'g722') return decoded(packets)
  const bytes = Buffer.concat(packets.map(({ payload }) => payload))
  const samples = new Int16Array(bytes.length * 2)
  createG722Decoder().decode(bytes, samples)
  return samples
}

test('an exchange that takes a pause for a lost call gets packets from the connection on, before any actor speaks', async (t) => {
  const { wire, command, run } = createScene(t)
  await run(200)
  t.equal(wire.sent.length, 0)
  wire.connect()
  await run(1000)
  t.equal(wire.sent.length, 50)
  t.ok(levelOf(decoded(wire.sent)) > 4)
  await command(startOf(1))
  await run(60_000, speakerOf(wire))
  t.equal(wire.sent.length, 3050, 'and for as long as nothing is said')
  const browser = createScene(t, negotiatedOpus)
  browser.wire.connect()
  await browser.run(1000)
  t.equal(browser.wire.sent.length, 0)
})

test('packets of 10 to 120 ms from the caller are frames of 20 ms', async (t) => {
  for (const ms of [10, 20, 30, 40, 60, 120]) {
    const { wire, up, leg, command, run } = createScene(t)
    wire.connect()
    await command(startOf(1))
    const sound = framesOf(toneOf(400, 8000, 2400), pcma)
    const bytes = Buffer.concat(sound)
    let sent = 0
    let now = 0
    await run(2400, () => {
      for (now += 20; sent + ms <= now; sent += ms) wire.speak(bytes.subarray(sent * 8, (sent + ms) * 8), ms)
    })
    t.ok(Math.abs(up.length - 120) <= 6, `${ms} ms: ${up.length} frames`)
    t.ok(near(pitchOf(heardIn(up.slice(10)), 8000), 400, 20), `${ms} ms`)
    t.equal(leg.stats().received?.lost, 0)
  }
})

for (const agreed of [13, null])
  test(`comfort noise from the caller, agreed on as ${agreed}, is soft noise of its level and no loss`, async (t) => {
    const { wire, up, leg, events, command, run } = createScene(t, {
      ...negotiatedPhone,
      comfortNoisePayloadType: agreed,
    })
    const speak = speakerOf(wire)
    wire.connect()
    await command(startOf(1))
    await run(400, speak)
    let heard = up.length
    wire.quieten(50)
    await run(40, () => wire.pause(20))
    t.ok(up.length > heard, 'what is announced is no stall that one waits for')
    await run(1960, () => wire.pause(20))
    t.ok(Math.abs(up.length - heard - 100) <= 1, `${up.length - heard} frames in two seconds`)
    const level = levelOf(heardIn(up.slice(heard + 2)))
    t.ok(near(20 * Math.log10(level / 32_124), -50, 1), `${level}`)
    t.equal(leg.stats().received?.lost, 0)
    heard = up.length
    await run(400, speak)
    t.ok(levelOf(heardIn(up.slice(heard + 1))) > 4500, 'speech goes on at once')
    heard = up.length
    await run(400)
    t.equal(levelOf(heardIn(up.slice(heard + 5))), 0, 'and the noise is forgotten')
    t.equal(events.length, 1)
  })

test('G.711 goes through untouched both ways for an engine of that law, recorded or not', async (t) => {
  for (const start of [startOf(1, pcma, pcma), recordedStartOf(1, pcma, pcma)]) {
    const { wire, up, files, command, say, run } = createScene(t)
    wire.connect()
    await command(start)
    const codes = Array.from({ length: 50 }, (_, i) =>
      Uint8Array.from({ length: 160 }, (_, k) => (i * 7 + k * 3) & 0xff),
    )
    await run(100)
    wire.sent.length = 0
    await say(1, 0, codes)
    let next = 0
    const before = up.length
    await run(1000, () => wire.speak(codes[next++]!))
    t.same(
      wire.sent.map(({ payload }) => Buffer.from(payload)),
      codes.map((code) => Buffer.from(code)),
      'to the caller',
    )
    const heard = up.slice(before).map(({ payload }) => Buffer.from(payload).toString('hex'))
    t.ok(
      codes.every((code) => heard.includes(Buffer.from(code).toString('hex'))),
      'from the caller',
    )
    await command({ type: 'close', epoch: 1, reason: 'completed' })
    if (start.recording === null) continue
    const { samples } = parseWav(files.get('a/call.wav')!)
    t.ok(levelOf(samples.subarray(300 * 32, 900 * 32)) > 3000, 'and both are recorded')
  }
})

test('sound that is guessed in place of lost packets is counted, in what the actor hears and over a takeover', async (t) => {
  const { wire, leg, command, run } = createScene(t)
  const speak = speakerOf(wire)
  wire.connect()
  let tick = 0
  const speakBadly = () => (tick++ % 10 === 7 ? wire.lose() : speak())
  await run(1000, speakBadly)
  t.equal(leg.stats().concealedMs, 0, 'nobody hears yet')
  await command(startOf(1, pcma))
  await run(1000, speakBadly)
  t.equal(leg.stats().concealedMs, 100, 'untouched G.711')
  await command(startOf(2, pcm(16_000)))
  await run(1000, speakBadly)
  t.equal(leg.stats().concealedMs, 200, 'decoded')
  t.equal(leg.stats().received?.lost, 15)
})

test('G.722 is heard and spoken in full width', async (t) => {
  const { wire, up, command, say, run } = createScene(t, negotiatedG722)
  const encoder = createG722Encoder()
  const tone = toneOf(5000, 16_000, 1000)
  let next = 0
  wire.connect()
  await command(startOf(1, pcm(16_000), pcm(24_000)))
  await say(1, 0, framesOf(toneOf(5000, 24_000, 1000), pcm(24_000)))
  await run(1000, () => {
    const packet = encoder.encode(tone.slice(next * 320, (next + 1) * 320))
    if (next++ % 10 === 7) wire.lose()
    else wire.speak(packet)
  })
  t.ok(near(pitchOf(heardIn(up.slice(10)), 16_000), 5000, 150), 'with every tenth packet lost')
  t.ok(near(pitchOf(soundOf(wire.sent.slice(-40), negotiatedG722), 16_000), 5000, 50))
})
