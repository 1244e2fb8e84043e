/** The media end of a call, as its actor sees it over the bus and its caller over the wire. */
import { test, type Test } from 'tap'
import { BusNoResponders } from '../../model/bus.ts'
import { bytesOf, samplesOf, type AudioFormat, type Frame } from '../../model/frame.ts'
import type { NodeId } from '../../model/ids.ts'
import { createLegWire } from '../../media/leg/leg-wire.ts'
import type { RecordingStore } from '../../model/recording-store.ts'
import type { NegotiatedAudio, Presence } from '../../model/rtp-transport.ts'
import { lawOfEncoding } from '../../media/codecs/g711.ts'
import type { LegDeps } from '../../media/leg/leg.ts'
import { createOpusLibrary, type OpusRate } from '../../media/codecs/opus.ts'
import { createTicker } from '../../media/ticker/ticker.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { parseWav } from '../scenes/parse-wav.ts'
import { levelOf, openLegScene, pitchOf, subjects, type LegScene } from '../scenes/leg-scene.ts'
import { negotiatedOpus, negotiatedPcmu, type ScriptedTransport } from '../fake/scripted-transport.ts'

const opus = createOpusLibrary()
const pcm = (rateHz: AudioFormat['rateHz']): AudioFormat => ({ encoding: 'pcm16', rateHz })
const pcmu: AudioFormat = { encoding: 'pcmu', rateHz: 8000 }

const startOf = (epoch: number, hears = pcm(16_000), speaks = pcm(24_000)) =>
  ({ type: 'start', epoch, hears: [hears], speaks: [speaks], recording: null }) as const

type Scene = Omit<LegScene, 'say'> & {
  /** The agent's frame, `frames` of them from `seq` on. */
  readonly say: (epoch: number, seq: number, frames: number, payload?: Uint8Array) => Promise<void>
}

function createScene(t: Test, audio: NegotiatedAudio = negotiatedOpus, other: Partial<LegDeps> = {}): Scene {
  const scene = openLegScene(t, audio, { opus, ...other })
  const say: Scene['say'] = (epoch, seq, frames, payload = new Uint8Array(960)) =>
    scene.say(
      epoch,
      seq,
      Array.from({ length: frames }, () => payload),
    )
  return { ...scene, say }
}

const toneOf = (hertz: number, rateHz: number, count: number): Int16Array =>
  Int16Array.from({ length: count }, (_, i) => Math.round(8000 * Math.sin((2 * Math.PI * hertz * i) / rateHz)))

/** The caller's voice: packets of a 440 Hz tone, endless. */
function speakerOf(wire: ScriptedTransport): () => void {
  const encoder = opus.createEncoder({ rateHz: 48_000, expectedLossPercent: 20 })
  const tone = toneOf(440, 48_000, 48_000)
  const packets = Array.from({ length: 50 }, (_, i) => encoder.encode(tone.slice(i * 960, (i + 1) * 960)))
  let next = 0
  return () => wire.speak(packets[next++ % 50]!)
}

const soundOf = (frames: readonly Frame[]): Int16Array =>
  samplesOf(new Uint8Array(Buffer.concat(frames.map(({ payload }) => payload))))

test('of the formats an engine has, the line that has one untouched takes that, else the first', async (t) => {
  const lists = { hears: [pcm(24_000), pcmu], speaks: [pcm(16_000), pcmu] }
  const start = { ...startOf(1), ...lists }
  const law = createScene(t, negotiatedPcmu)
  law.wire.connect()
  t.same(await law.command(start), { type: 'started', hears: pcmu, speaks: pcmu })
  t.same(await law.command(start), { type: 'started', hears: pcmu, speaks: pcmu }, 'asked again')
  const wide = createScene(t)
  wide.wire.connect()
  t.same(await wide.command(start), { type: 'started', hears: pcm(24_000), speaks: pcm(16_000) })
  t.match(await wide.command({ ...start, hears: [] }), { type: 'refused' })
})

test('the first frame after a pause of the agent is told, and no other', async (t) => {
  const { wire, command, say, run, events } = createScene(t)
  wire.connect()
  await command(startOf(1))
  const sounding = () => events.filter(({ type }) => type === 'sounding')
  await say(1, 0, 20)
  await run(300)
  t.same(sounding(), [{ type: 'sounding', seq: 0 }])
  await run(180)
  await say(1, 20, 5)
  await run(200)
  t.equal(sounding().length, 1, 'a gap is no pause')
  await run(400)
  await say(1, 25, 5)
  await run(200)
  t.same(sounding().at(-1), { type: 'sounding', seq: 25 })
})

test('tells that media can flow, once', async (t) => {
  const { wire, events, bus, command } = createScene(t)
  t.same(await command({ type: 'ping', epoch: 1 }), { type: 'here', connected: false, ended: null })
  wire.connect()
  wire.connect()
  await bus.flush()
  t.same(events, [{ type: 'connected', providerStatus: 'connected' }])
  t.same(await command({ type: 'ping', epoch: 1 }), { type: 'here', connected: true, ended: null })
})

test('what the caller says goes up from `start` on, at the rate that is heard, in frames of 20 ms', async (t) => {
  for (const rateHz of [8000, 16_000, 24_000, 48_000] as OpusRate[]) {
    const { wire, up, command, run } = createScene(t)
    const speak = speakerOf(wire)
    wire.connect()
    await run(200, speak)
    t.equal(up.length, 0, 'nothing before start')
    const formats = { hears: pcm(rateHz), speaks: pcm(24_000) }
    t.same(await command(startOf(3, pcm(rateHz))), { type: 'started', ...formats })
    await run(1000, speak)
    t.ok(Math.abs(up.length - 50) <= 1)
    up.forEach((frame, i) => {
      const { epoch, seq, timestamp, payload } = frame
      t.same([epoch, seq, timestamp, payload.length], [3, i, i * 20, rateHz / 25])
    })
    const sound = soundOf(up.slice(10))
    t.ok(Math.abs(pitchOf(sound, rateHz) - 440) < 10, `${pitchOf(sound, rateHz)} Hz`)
    t.ok(levelOf(sound) > 3000)
  }
})

test('G.711 goes through untouched when the same law is heard, and is changed where it is not', async (t) => {
  const law = lawOfEncoding('pcmu')
  const bytes = new Uint8Array(160)
  law.encode(toneOf(400, 8000, 160), bytes)
  // The negative zero, which no encoder makes.
  bytes[0] = 0x7f
  for (const hears of [pcmu, pcm(24_000), { encoding: 'pcma', rateHz: 8000 } as const]) {
    const { wire, up, command, run } = createScene(t, negotiatedPcmu)
    wire.connect()
    await command(startOf(1, hears))
    await run(400, () => wire.speak(bytes))
    if (hears.encoding === 'pcmu') t.same(up[5]!.payload, bytes)
    if (hears.encoding === 'pcm16') t.ok(Math.abs(pitchOf(soundOf(up.slice(5, 15)), 24_000) - 400) < 10)
    if (hears.encoding === 'pcma') {
      const samples = new Int16Array(160)
      lawOfEncoding('pcma').decode(up[5]!.payload, samples)
      t.ok(levelOf(samples) > 5000)
    }
  }
})

test("the agent's frames are played one per tick, numbered as RFC 3550 wants it", async (t) => {
  const { wire, clock, events, say, command, run } = createScene(t)
  wire.connect()
  await command(startOf(1))
  await run(2000)
  wire.sent.length = 0
  const tone = toneOf(300, 24_000, 480)
  const before = clock.now()
  await say(1, 0, 50, bytesOf(tone))
  await run(1000)
  const sent = wire.sent.splice(0)
  t.equal(sent.length, 50)
  t.equal(clock.now() - before, 1000)
  t.same(
    sent.map(({ marker }) => marker),
    [true, ...Array.from({ length: 49 }, () => false)],
  )
  sent.slice(1).forEach((packet, i) => {
    t.equal(packet.sequenceNumber, (sent[i]!.sequenceNumber + 1) & 0xffff)
    t.equal(packet.timestamp, (sent[i]!.timestamp + 960) >>> 0)
    t.equal(packet.payloadType, 111)
  })
  const decoder = opus.createDecoder({ rateHz: 16_000 })
  const heard = sent.map(({ payload }) => decoder.decode(payload)!.slice())
  decoder.close()
  t.ok(Math.abs(pitchOf(heard[40]!, 16_000) - 300) <= 50)
  t.ok(levelOf(heard[40]!) > 3000)
  t.same(
    events.filter(({ type }) => type === 'drained'),
    [{ type: 'drained', lastPlayedSeq: 49 }],
  )
})

test('after the last frame 200 ms of silence are sent, then one packet every 400 ms, and time goes on in all of it', async (t) => {
  const { wire, say, command, run } = createScene(t)
  wire.connect()
  await command(startOf(1))
  await say(1, 0, 5)
  await run(100)
  const last = wire.sent.at(-1)!
  wire.sent.length = 0
  await run(200 + 2000)
  t.equal(wire.sent.length, 10 + 5)
  const elapsed = wire.sent.map(({ timestamp }) => ((timestamp - last.timestamp) >>> 0) / 48)
  t.same(elapsed, [20, 40, 60, 80, 100, 120, 140, 160, 180, 200, 600, 1000, 1400, 1800, 2200])
  t.ok(
    wire.sent.every(
      ({ marker, sequenceNumber }, i) => !marker && sequenceNumber === ((last.sequenceNumber + 1 + i) & 0xffff),
    ),
  )
  await run(60)
  await say(1, 5, 1)
  await run(20)
  t.match(wire.sent.at(-1), { marker: true, timestamp: (last.timestamp + 48 * 2280) >>> 0 })
})

test('flush forgets what was not played and says what was', async (t) => {
  const { wire, events, say, command, run } = createScene(t)
  wire.connect()
  await command(startOf(1))
  t.same(await command({ type: 'flush', epoch: 1 }), { type: 'flushed', lastPlayedSeq: -1 })
  await say(1, 0, 100)
  await run(300)
  t.same(await command({ type: 'flush', epoch: 1 }), { type: 'flushed', lastPlayedSeq: 14 })
  await run(1000)
  t.same(await command({ type: 'flush', epoch: 1 }), { type: 'flushed', lastPlayedSeq: 14 })
  t.equal(events.filter(({ type }) => type === 'drained').length, 0, 'what is flushed does not drain')
  await say(1, 100, 2)
  await run(60)
  t.same(events.at(-1), { type: 'drained', lastPlayedSeq: 101 })
})

test('two minutes of frames wait at most; what is more, of a wrong size or old is dropped and logged once', async (t) => {
  const { wire, leg, log, say, command, run } = createScene(t)
  wire.connect()
  await command(startOf(1))
  await say(1, 0, 6050)
  t.equal(leg.stats().agentFramesDropped, 50)
  await say(1, 7000, 1, new Uint8Array(100))
  await run(40)
  await say(1, 3, 1)
  t.equal(leg.stats().agentFramesDropped, 52)
  t.equal(log.lines.filter(({ level }) => level === 'warn').length, 1)
})

test('an actor that was taken over is refused, and so are its frames', async (t) => {
  const { wire, up, say, command, run } = createScene(t)
  const speak = speakerOf(wire)
  wire.connect()
  await command(startOf(1))
  await run(200, speak)
  await say(1, 0, 3)
  await run(80, speak)
  const heard = up.length
  t.same(await command({ type: 'ping', epoch: 2 }), { type: 'here', connected: true, ended: null, startedBy: 1 })
  t.same(await command({ type: 'flush', epoch: 2 }), { type: 'flushed', lastPlayedSeq: -1 })
  for (const old of [startOf(1), { type: 'flush', epoch: 1 }, { type: 'close', epoch: 1, reason: 'x' }])
    t.match(await command(old), { type: 'refused', details: /taken over/ })
  t.match(await command(startOf(2, pcm(8000), pcm(8000))), { type: 'started' })
  wire.sent.length = 0
  await say(1, 3, 5, new Uint8Array(320))
  await run(400, speak)
  t.ok(
    wire.sent.every(({ marker }) => !marker),
    'frames of the old actor are not played',
  )
  await say(2, 0, 1, new Uint8Array(320))
  await run(20, speak)
  t.ok(wire.sent.at(-1)!.marker)
  t.same(await command({ type: 'flush', epoch: 2 }), { type: 'flushed', lastPlayedSeq: 0 })
  const second = up.filter(({ epoch }) => epoch === 2)
  second.forEach((frame, i) => t.match(frame, { seq: i, timestamp: (heard + i) * 20 }, 'the line of sound goes on'))
  t.equal(second[0]!.payload.length, 320)
})

test('what a caller said to an actor of another process, and was not settled, the next one hears again, faster than it was said', async (t) => {
  const { wire, up, clock, command, run, bus } = createScene(t, negotiatedPcmu, { nodeId: 'leg' as NodeId })
  wire.connect()
  const start = (epoch: number, node: string) => command({ ...startOf(epoch, pcmu), node })
  t.match(await start(1, 'other'), { type: 'started', waits: { kept: 0 } })
  await command({ type: 'listens', epoch: 1 })
  let said = 0
  const speak = () => wire.speak(new Uint8Array(160).fill(++said))
  await run(200, speak)
  t.equal(up.length, 10)
  await command({ type: 'settled', epoch: 1, seq: 3 })
  t.match(await command({ type: 'ping', epoch: 1 }), { type: 'here', kept: 6 })

  up.length = 0
  const second = { ...startOf(2, pcmu), node: 'third', settled: { epoch: 0, seq: 8 } } as const
  t.match(await command(second), { type: 'started', waits: { kept: 6 } }, 'of an actor that it did not listen to last')
  t.match(await command({ type: 'settled', epoch: 1, seq: 9 }), { type: 'refused' }, 'of who is gone nothing counts')
  await run(40, speak)
  t.equal(up.length, 0)
  const before = clock.now()
  await command({ type: 'listens', epoch: 2 })
  await bus.flush()
  t.equal(clock.now(), before)
  await run(40, speak)
  t.same(
    up.map(({ epoch, seq, payload }) => [epoch, seq, payload[0]]),
    Array.from({ length: 10 }, (_, index) => [2, index, index + 5]),
  )

  const third = { ...startOf(3, pcmu), node: 'leg', settled: { epoch: 2, seq: 3 } } as const
  t.match(
    await command(third),
    { waits: { kept: 6 } },
    'an actor beside it hears the rest as well, but what was written down',
  )
  await command({ type: 'listens', epoch: 3 })
  t.notOk('kept' in (await command({ type: 'ping', epoch: 3 })))
})

test('the same start again disturbs nothing', async (t) => {
  const { wire, up, say, command, run } = createScene(t)
  wire.connect()
  await command(startOf(1))
  await say(1, 0, 10)
  await run(100)
  t.match(await command(startOf(1)), { type: 'started' })
  await run(100)
  t.same(await command({ type: 'flush', epoch: 1 }), { type: 'flushed', lastPlayedSeq: 9 })
  up.forEach(({ seq }, i) => t.equal(seq, i))
})

test('nonsense is refused', async (t) => {
  const { command, bus } = createScene(t)
  t.match(await command({ type: 'dance', epoch: 1 }), { type: 'refused' })
  t.match(await command({ type: 'flush' }), { type: 'refused' })
  const answer = await bus.request(subjects.legCommand, Uint8Array.of(255, 0, 7), { timeout: 1000 })
  t.match(JSON.parse(new TextDecoder().decode(answer)), { type: 'refused' })
  bus.publish(subjects.down, Uint8Array.of(1, 2, 3))
})

test('a lost packet leaves no hole, and a stalled stream is silence in real time', async (t) => {
  const { wire, up, leg, command, run } = createScene(t)
  const speak = speakerOf(wire)
  wire.connect()
  await command(startOf(1))
  let tick = 0
  await run(2000, () => (tick++ % 10 === 7 ? wire.lose() : speak()))
  t.ok(Math.abs(up.length - 100) <= 2, `${up.length} frames`)
  t.equal(leg.stats().received?.lost, 10)
  t.equal(leg.stats().concealedMs, 0, 'each is in the packet after it')
  const sound = soundOf(up.slice(10))
  t.ok(Math.abs(pitchOf(sound, 16_000) - 440) < 10)
  const heard = up.length
  await run(1000, () => wire.pause(20))
  t.ok(Math.abs(up.length - heard - 50) <= 2, `${up.length - heard} frames`)
  t.ok(levelOf(soundOf(up.slice(-40))) === 0)
  await run(200, speak)
  t.ok(levelOf(soundOf(up.slice(-5))) > 3000)
  up.forEach(({ seq, timestamp }, i) => t.same([seq, timestamp], [i, i * 20]))
})

test('frames of the agent that are sent late are counted: more than 10 ms after their tick, or after ticks that were left out', async (t) => {
  let tick: Parameters<LegDeps['ticker']['join']>[0] = () => {}
  const join: LegDeps['ticker']['join'] = (onTick) => {
    tick = onTick
    return () => {}
  }
  const ticker = { ...createTicker(createHandClock()), join }
  const { wire, leg, say, command } = createScene(t, negotiatedOpus, { ticker })
  wire.connect()
  await command(startOf(1))
  await say(1, 0, 5)
  for (const [at, lateMs] of [
    [20, 0],
    [40, 10.5],
    [60, 9],
    [300, 2],
    [320, 0],
    [340, 30],
  ] as const)
    tick(at, lateMs)
  t.equal(wire.sent.length, 6)
  t.equal(leg.stats().agentFramesLate, 2, 'silence is never late')
})

test('a caller who is connected and sends nothing yet is silence from `start` on', async (t) => {
  const { wire, up, command, run } = createScene(t)
  await command(startOf(1))
  await run(200)
  t.equal(up.length, 0)
  wire.connect()
  await run(1000)
  t.ok(Math.abs(up.length - 50) <= 1)
})

test('key presses are told once, by RTP and by hand, and cost the line of sound nothing', async (t) => {
  const { wire, leg, up, events, command, run } = createScene(t)
  const speak = speakerOf(wire)
  wire.connect()
  await command(startOf(1))
  await run(200, speak)
  for (const [index, end] of [false, false, false, true, true, true].entries()) {
    wire.press(7, { duration: 960 * (index + 1), end, marker: index === 0 })
    await run(20)
  }
  wire.pause(120)
  await run(200, speak)
  leg.dtmf('#')
  await run(20, speak)
  t.same(
    events.filter(({ type }) => type === 'dtmf'),
    [
      { type: 'dtmf', digit: '7' },
      { type: 'dtmf', digit: '#' },
    ],
  )
  t.equal(leg.stats().received?.lost, 0)
  t.ok(Math.abs(up.length - 27) <= 2, `${up.length}`)
})

test('15 s without a packet, or 30 s without the first, and the media is lost', async (t) => {
  const silent = createScene(t)
  silent.wire.connect()
  await silent.run(29_900)
  t.notMatch(silent.events.at(-1), { type: 'disconnected' })
  await silent.run(200)
  t.match(silent.events.at(-1), { type: 'disconnected', cause: 'media_lost' })
  t.ok(silent.wire.isClosed())

  const stalled = createScene(t)
  stalled.wire.connect()
  await stalled.run(1000, speakerOf(stalled.wire))
  await stalled.run(14_900)
  t.equal(stalled.events.length, 1)
  await stalled.run(200)
  t.match(stalled.events.at(-1), { type: 'disconnected', cause: 'media_lost' })
  t.equal(stalled.events.length, 2)
})

test('media that is lost ended with its last packet: so the leg tells, whenever it is asked, and so long is the recording', async (t) => {
  const { wire, run, events, files, command } = createScene(t)
  wire.connect()
  await command({ ...startOf(1), recording: { key: 'a/lost.wav', mode: 'mixed' } })
  await run(3_000, speakerOf(wire))
  await run(15_100)
  const lost = events.at(-1)
  if (lost?.type !== 'disconnected') return t.fail('the media is not lost')
  t.ok(Math.abs((lost.silentFor ?? 0) - 15_020) <= 20, `${lost.silentFor} ms`)
  await run(2_000)
  const here = await command({ type: 'ping', epoch: 1 })
  const told = here.type === 'here' && here.ended?.type === 'disconnected' ? here.ended.silentFor : null
  t.ok(Math.abs((told ?? 0) - 17_100) <= 40, `${told} ms`)
  const closed = await command({ type: 'close', epoch: 1, reason: 'failed' })
  if (closed.type !== 'closed') return t.fail('the leg did not close')
  t.ok(Math.abs((closed.recordedMs ?? 0) - 3_000) <= 40, `${closed.recordedMs} ms`)
  t.ok(Math.abs((closed.silentFor ?? 0) - 17_100) <= 40, `${closed.silentFor} ms`)
  t.equal(parseWav(files.get('a/lost.wav')!).samples.length, (closed.recordedMs ?? 0) * 16)
})

test('media that is lost with the socket of its browser was left by the caller', async (t) => {
  const ends: [Presence, object, string | undefined][] = [
    ['open', { cause: 'media_lost' }, undefined],
    ['lost', { cause: 'media_lost' }, 'caller'],
    ['none', { cause: 'media_lost' }, 'caller'],
    ['left', { cause: 'hung_up' }, undefined],
  ]
  for (const [presence, end, endedBy] of ends) {
    const { wire, leg, run, events } = createScene(t)
    leg.handlers.presence('open')
    wire.connect()
    await run(1000, speakerOf(wire))
    leg.handlers.presence(presence)
    await run(31_000)
    const last = events.at(-1)
    t.match(last, { type: 'disconnected', ...end }, presence)
    t.equal(last?.type === 'disconnected' ? last.endedBy : null, endedBy, presence)
    t.ok(last?.type === 'disconnected' && (last.silentFor ?? 0) > 3_000, 'ended with its last sign')
  }
})

test('a peer that sends no sound but RTCP is there', async (t) => {
  const quiet = createScene(t)
  quiet.wire.connect()
  quiet.command(startOf(1)).catch(t.threw)
  for (let rounds = 0; rounds < 10; rounds++) {
    await quiet.run(5_000)
    quiet.leg.handlers.alive()
  }
  t.notMatch(quiet.events.at(-1), { type: 'disconnected' })
  await quiet.run(30_100)
  t.match(quiet.events.at(-1), { type: 'disconnected', cause: 'media_lost' })
})

test('a leg that is connected and gets no actor within a minute ends as failed: its call is over already', async (t) => {
  const alone = createScene(t)
  alone.wire.connect()
  await alone.run(59_900, speakerOf(alone.wire))
  t.notMatch(alone.events.at(-1), { type: 'disconnected' })
  await alone.run(200, speakerOf(alone.wire))
  t.match(alone.events.at(-1), { type: 'disconnected', cause: 'failed', details: /no actor/ })

  const taken = createScene(t)
  taken.wire.connect()
  await taken.command(startOf(1))
  await taken.run(60_500, speakerOf(taken.wire))
  t.notMatch(taken.events.at(-1), { type: 'disconnected' })
})

test('a caller who hangs up ends the leg once; the actor can still close it and learn what was recorded', async (t) => {
  const { wire, leg, events, files, closings, bus, say, command, run } = createScene(t)
  const speak = speakerOf(wire)
  wire.connect()
  await command({ ...startOf(1), recording: { key: 'a/b.wav', mode: 'split' } })
  await say(1, 0, 100, bytesOf(toneOf(300, 24_000, 480)))
  await run(3000, speak)
  wire.disconnect('hung_up', 'bye')
  wire.disconnect('failed', 'again')
  await leg.hangUp('and again')
  await bus.flush()
  t.same(
    events.filter(({ type }) => type === 'disconnected'),
    [{ type: 'disconnected', cause: 'hung_up', details: 'bye' }],
  )
  t.ok(wire.isClosed())
  t.equal(closings(), 0)
  t.match(await command(startOf(1)), { type: 'refused' })
  const ended = { type: 'disconnected', cause: 'hung_up', details: 'bye' }
  t.same(await command({ type: 'ping', epoch: 1 }), { type: 'here', connected: false, ended, startedBy: 1 })
  t.match(await command({ type: 'close', epoch: 1, reason: 'over' }), { type: 'closed', recordedMs: 3000 })
  t.equal(closings(), 1)
  await t.rejects(command({ type: 'ping', epoch: 1 }), BusNoResponders)

  const { samples, channels } = parseWav(files.get('a/b.wav')!)
  t.equal(channels, 2)
  t.equal(samples.length, 3000 * 32)
  const channel = (index: number, from: number, to: number) =>
    Int16Array.from({ length: (to - from) * 16 }, (_, i) => samples[(from * 16 + i) * 2 + index]!)
  t.ok(Math.abs(pitchOf(channel(0, 100, 1900), 16_000) - 300) < 10, 'the agent is on the left')
  t.ok(levelOf(channel(0, 2100, 2900)) < 5, 'as long as it spoke')
  t.ok(Math.abs(pitchOf(channel(1, 200, 2900), 16_000) - 440) < 10, 'the caller is on the right')
})

test('the actor closes the leg: nothing is told, everything is gone', async (t) => {
  const { wire, events, up, closings, command, run } = createScene(t)
  const speak = speakerOf(wire)
  wire.connect()
  await command(startOf(1))
  await run(100, speak)
  const both = await Promise.all([1, 2].map(() => command({ type: 'close', epoch: 1, reason: 'done' })))
  t.match(both, [
    { type: 'closed', recordedMs: null },
    { type: 'closed', recordedMs: null },
  ])
  const heard = up.length
  await run(100, speak)
  t.equal(up.length, heard)
  t.equal(closings(), 1)
  t.same(
    events.map(({ type }) => type),
    ['connected'],
  )
})

test('a leg nobody closes goes by itself, 30 s after its caller', async (t) => {
  const { leg, wire, closings, run } = createScene(t)
  wire.connect()
  await leg.hangUp('bye')
  await run(29_900)
  t.equal(closings(), 0)
  await run(200)
  t.equal(closings(), 1)
})

test('a takeover goes on with the same recording', async (t) => {
  const { wire, files, command, run } = createScene(t)
  const speak = speakerOf(wire)
  wire.connect()
  const recording = { key: 'a/b.wav', mode: 'mixed' } as const
  await command({ ...startOf(1), recording })
  await run(1000, speak)
  await command({ ...startOf(2), recording })
  await run(1000, speak)
  t.match(await command({ type: 'close', epoch: 2, reason: 'done' }), { type: 'closed', recordedMs: 2000 })
  t.equal(parseWav(files.get('a/b.wav')!).samples.length, 32_000)
})

test('a leg by which a call goes on records a part of its own, and never what another one has recorded', async (t) => {
  const { wire, files, command, run } = createScene(t, negotiatedOpus, { isFurther: true })
  const speak = speakerOf(wire)
  wire.connect()
  t.match(await command({ type: 'ping', epoch: 1 }), { type: 'here', isFurther: true })
  const recording = { key: 'a/b.wav', mode: 'mixed' } as const
  await command({ ...startOf(1), recording })
  await run(500, speak)
  t.equal(files.size, 0, 'an actor of before there were parts has it record nothing')
  await command({ ...startOf(2), recording: { ...recording, from: 61_300 } })
  await run(1000, speak)
  await command({ ...startOf(3), recording: { ...recording, from: 62_300 } })
  await run(1000, speak)
  t.match(await command({ type: 'close', epoch: 3, reason: 'done' }), { type: 'closed', recordedMs: 63_300 })
  t.same([...files.keys()], ['a/b.61300.wav'])
  t.equal(parseWav(files.get('a/b.61300.wav')!).samples.length, 32_000)
})

const spoken = { key: 'a/b.wav', mode: 'split' } as const

/** Of a split recording, ms: how loud both sides are. */
function levelsOf(file: Buffer, from: number, to: number) {
  const { samples } = parseWav(file)
  const side = (index: number) =>
    levelOf(Int16Array.from({ length: (to - from) * 16 }, (_, i) => samples[(from * 16 + i) * 2 + index]!))
  return { agent: side(0) > 100, caller: side(1) > 100 }
}

test('a recording that is paused has silence in place of both sides, and goes on where it would be', async (t) => {
  const { wire, files, say, command, run } = createScene(t)
  const speak = speakerOf(wire)
  const record = (parts: string) => command({ type: 'record', epoch: 1, parts })
  wire.connect()
  await command({ ...startOf(1), recording: spoken })
  await say(1, 0, 200, bytesOf(toneOf(300, 24_000, 480)))
  await run(1000, speak)
  t.same(await record('none'), { type: 'accepted' })
  t.same(await record('none'), { type: 'accepted' }, 'again')
  await run(1000, speak)
  t.same(await record('both'), { type: 'accepted' })
  await run(1000, speak)
  t.match(await command({ type: 'close', epoch: 1, reason: 'done' }), { type: 'closed', recordedMs: 3000 })
  const file = files.get('a/b.wav')!
  t.equal(parseWav(file).samples.length, 3000 * 32, 'no shorter for the pause')
  t.same(levelsOf(file, 200, 900), { agent: true, caller: true })
  const { samples } = parseWav(file)
  t.ok(
    samples.subarray(1100 * 32, 1980 * 32).every((sample) => sample === 0),
    'silence, to the last sample',
  )
  t.same(levelsOf(file, 2200, 2900), { agent: true, caller: true })
})

test('a paused recording stays paused for an actor that takes over, and a recorded agent alone leaves its caller silent', async (t) => {
  const { wire, files, say, command, run } = createScene(t)
  const speak = speakerOf(wire)
  const tone = bytesOf(toneOf(300, 24_000, 480))
  wire.connect()
  await command({ ...startOf(1), recording: { ...spoken, parts: 'agent' } })
  await say(1, 0, 50, tone)
  await run(1000, speak)
  await command({ type: 'record', epoch: 1, parts: 'none' })
  await command({ ...startOf(2), recording: { ...spoken, parts: 'none' } })
  t.match(await command({ type: 'record', epoch: 1, parts: 'both' }), { type: 'refused' }, 'the former actor')
  await say(2, 0, 100, tone)
  await run(1000, speak)
  await command({ type: 'record', epoch: 2, parts: 'both' })
  await run(1000, speak)
  t.match(await command({ type: 'close', epoch: 2, reason: 'done' }), { type: 'closed', recordedMs: 3000 })
  const file = files.get('a/b.wav')!
  t.same(levelsOf(file, 200, 900), { agent: true, caller: false })
  t.same(levelsOf(file, 1200, 1900), { agent: false, caller: false })
  t.same(levelsOf(file, 2200, 2900), { agent: true, caller: true })
})

test('a leg that is told to record nothing makes no file', async (t) => {
  const { wire, files, command, run } = createScene(t)
  wire.connect()
  await command(startOf(1))
  t.same(await command({ type: 'record', epoch: 1, parts: 'both' }), { type: 'accepted' })
  await run(1000, speakerOf(wire))
  t.match(await command({ type: 'close', epoch: 1, reason: 'done' }), { type: 'closed', recordedMs: null })
  t.equal(files.size, 0)
})

test("garbage on the wire is no one's end", async (t) => {
  const { wire, up, log, events, command, run } = createScene(t)
  const speak = speakerOf(wire)
  wire.connect()
  await command(startOf(1))
  let tick = 0
  await run(1000, () => (tick++ % 3 === 0 ? wire.speak(Uint8Array.of(255, 255, 3)) : speak()))
  t.same(
    events.map(({ type }) => type),
    ['connected'],
  )
  t.equal(log.lines.filter(({ level }) => level === 'error').length, 0)
  t.ok(up.length >= 30)
})

test('a codec that breaks ends this call as failed, and its actor learns of it', async (t) => {
  const broken = {
    ...opus,
    createDecoder: () => {
      throw new Error('out of memory for Opus')
    },
  }
  const { wire, bus, events, log, command } = createScene(t, negotiatedOpus, { opus: broken })
  wire.connect()
  await command(startOf(1))
  await bus.flush()
  t.match(events.at(-1), { type: 'disconnected', cause: 'failed', details: 'internal error' })
  t.equal(log.lines.filter(({ level }) => level === 'error').length, 1)
})

test('a recording that cannot be completed is lost, and the leg closes all the same', async (t) => {
  const recordings: Pick<RecordingStore, 'create'> = {
    create: () => ({ append() {}, overwriteStart() {}, close: () => Promise.reject(new Error('disk is full')) }),
  }
  const { wire, log, closings, command, run } = createScene(t, negotiatedOpus, { recordings })
  wire.connect()
  await command({ ...startOf(1), recording: { key: 'a/b.wav', mode: 'mixed' } })
  await run(100)
  t.match(await command({ type: 'close', epoch: 1, reason: 'done' }), { type: 'closed', recordedMs: null })
  t.equal(closings(), 1)
  t.equal(log.lines.filter(({ level }) => level === 'error').length, 1)
})

test('a leg that never connects is given up after the time it has: its call may be over already', async (t) => {
  let now = 0
  const nothing = () => {}
  const wire = createLegWire({
    now: () => now,
    connectWithin: 60_000,
    negotiated: nothing,
    connected: nothing,
    packet: nothing,
    held: nothing,
    disconnected: nothing,
  })
  now = 59_000
  t.equal(wire.lost(), null)
  now = 60_001
  t.equal(wire.lost(), 'never connected')
  wire.handlers.connected('connected')
  t.equal(wire.lost(), null, 'connected in the last moment, it is not lost')
})
