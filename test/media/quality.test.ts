/** How well sound got through: the estimate of a mean opinion score, and what a leg tells when it has ended. */
import { test, type Test } from 'tap'
import type { LegDeps } from '../../media/leg/leg.ts'
import { createOpusLibrary } from '../../media/codecs/opus.ts'
import { LegQuality, toCallQuality } from '../../model/call-quality.ts'
import { fromBytes } from '../../model/bus-json.ts'
import {
  allQualities,
  callOfQuality,
  createRecentQuality,
  ToldQuality,
  toLiveQuality,
} from '../../model/live-quality.ts'
import { LegReply } from '../../model/leg.ts'
import { mosOf, opinionOf } from '../../model/mos.ts'
import type { LegSignaling, NegotiatedAudio } from '../../model/rtp-transport.ts'
import { createRandom } from '../fake/random.ts'
import { createRecordedTelemetry } from '../fake/recorded-telemetry.ts'
import { negotiatedOpus, negotiatedPhone } from '../fake/scripted-transport.ts'
import { openLegScene, subjects } from '../scenes/leg-scene.ts'

const near = (t: Test, value: number, wanted: number, name: string, most = 0.005) =>
  t.ok(Math.abs(value - wanted) <= most, `${name}: ${value.toFixed(3)}, wanted ${wanted}`)

test('a transmission rating is the opinion that G.107, Annex B has for it', async (t) => {
  for (const [r, mos] of [
    [90, 4.34],
    [80, 4.03],
    [70, 3.6],
    [60, 3.1],
    [50, 2.58],
    [93.2, 4.41],
  ] as const)
    near(t, opinionOf(r), mos, `R ${r}`, 0.01)
  t.equal(opinionOf(-5), 1)
  t.equal(opinionOf(3), 1, 'not below the worst')
  t.equal(opinionOf(120), 4.5)
})

test('the estimate has the known points of the E-model', async (t) => {
  const g711 = (lossPercent: number, delayMs: number) => mosOf({ codec: 'pcmu', loss: lossPercent / 100, delayMs })
  near(t, g711(0, 0), 4.41, 'a perfect line')
  near(t, g711(0, 20), 4.4, 'and 20 ms')
  // Ie,eff = 95 · Ppl / (Ppl + 25.1): 3.64 at 1 %, 15.78 at 5 %, 47.5 at 25.1 %.
  near(t, g711(1, 0), opinionOf(93.2 - 3.64), '1 % loss')
  near(t, g711(5, 0), opinionOf(93.2 - 15.78), '5 % loss')
  near(t, g711(25.1, 0), opinionOf(93.2 - 47.5), 'as much loss as it is robust against')
  // Id = 0.024 d + 0.11 (d − 177.3) above 177.3 ms.
  near(t, g711(0, 150), opinionOf(93.2 - 3.6), '150 ms')
  near(t, g711(0, 400), opinionOf(93.2 - 9.6 - 24.5), '400 ms')
  t.equal(mosOf({ codec: 'pcma', loss: 0.02, delayMs: 80 }), g711(2, 80), 'both laws sound alike')
  near(t, mosOf({ codec: 'g722', loss: 0, delayMs: 0 }), opinionOf(100 * (116 / 129)), 'G.722 of wideband')
  near(t, mosOf({ codec: 'opus', loss: 0, delayMs: 0 }), opinionOf(100 * (127.8 / 148)), 'Opus of fullband')
})

test('whatever was lost and however late, the estimate lies from 1 to 4.5, and worse is never better', async (t) => {
  const random = createRandom(7)
  for (const codec of ['pcmu', 'g722', 'opus'] as const)
    for (let round = 0; round < 500; round++) {
      const heard = { codec, loss: random.next() * 1.2 - 0.1, delayMs: random.next() * 2_000 - 100 }
      const mos = mosOf(heard)
      if (!(mos >= 1 && mos <= 4.5)) t.fail(`${mos} of ${JSON.stringify(heard)}`)
      const worse = [
        mosOf({ ...heard, loss: heard.loss + random.next() * 0.1 }),
        mosOf({ ...heard, delayMs: heard.delayMs + random.next() * 100 }),
      ]
      if (worse.some((other) => other > mos + 1e-9)) t.fail(`worse than ${JSON.stringify(heard)} is better`)
    }
})

const told: LegQuality = {
  codec: 'pcma',
  packetMs: 20,
  received: { packets: 1_000, lost: 0, jitterMs: 1 },
  sent: { packets: 1_000, lost: 50, jitterMs: 12.34 },
  roundTripMs: 60,
  concealedMs: 0,
  lateFrames: 0,
}

test('the score of a call is that of its worse direction, with half the round trip and a packet as delay', async (t) => {
  const mos = (quality: LegQuality) => toCallQuality(quality).mos
  const rounded = (value: number) => Math.round(value * 100) / 100
  t.equal(mos(told), rounded(mosOf({ codec: 'pcma', loss: 0.05, delayMs: 50 })))
  const swapped = { ...told, received: told.sent, sent: told.received }
  t.equal(mos(swapped), mos(told))
  t.equal(mos({ ...told, sent: null }), rounded(mosOf({ codec: 'pcma', loss: 0, delayMs: 50 })))
  t.equal(mos({ ...told, sent: null, roundTripMs: null }), rounded(mosOf({ codec: 'pcma', loss: 0, delayMs: 20 })))
  t.equal(mos({ ...told, sent: null, received: null }), null)
  const moreThanSent = { packets: 0, lost: 3, jitterMs: 0 }
  t.equal(toCallQuality({ ...told, sent: moreThanSent }).sent?.loss, 0, 'of nothing nothing is lost')
  t.equal(toCallQuality({ ...told, sent: { ...moreThanSent, packets: 2 } }).sent?.loss, 1)
})

test('a quality tells of strangers where there were any, and that of a leg of before is read without', async (t) => {
  t.notOk('strangerPackets' in toCallQuality(LegQuality.parse(told)))
  t.equal(toCallQuality(LegQuality.parse({ ...told, strangerPackets: 7 })).strangerPackets, 7)
})

test('a quality that cannot be read costs nobody the length of the recording', async (t) => {
  const closed = { type: 'closed', recordedMs: 1_000 }
  t.same(LegReply.parse({ ...closed, quality: told }), { ...closed, quality: told })
  t.match(LegReply.parse({ ...closed, quality: { codec: 'lpc10' } }), closed)
  t.equal((LegReply.parse({ ...closed, quality: { codec: 'lpc10' } }) as { quality?: unknown }).quality, undefined)
  t.same(LegReply.parse(closed), closed, 'a leg of before tells none')
})

const opus = createOpusLibrary()
const start = {
  type: 'start',
  epoch: 1,
  hears: [{ encoding: 'pcm16', rateHz: 16_000 }],
  speaks: [{ encoding: 'pcm16', rateHz: 16_000 }],
  recording: null,
} as const
const signaling: LegSignaling = {
  answer() {},
  transfer: async () => ({ accepted: false, details: '' }),
  sendDtmf: () => false,
}

function openScene(t: Test, audio: NegotiatedAudio, other: Partial<LegDeps> = {}) {
  const telemetry = createRecordedTelemetry()
  const scene = openLegScene(t, audio, { opus, telemetry, ...other })
  const lines = () => scene.log.lines.filter(({ message }) => message === 'a leg ended')
  return { ...scene, telemetry, lines }
}

test('while a call runs its leg tells every five seconds how it sounds, to whoever listens, and not after its end', async (t) => {
  const { wire, bus, command, run, leg } = openScene(t, negotiatedPhone, { signaling })
  const heard: { readonly callId: string; readonly quality: ToldQuality }[] = []
  bus.subscribe(allQualities, ({ subject, payload }) => {
    heard.push({ callId: callOfQuality(subject), quality: ToldQuality.parse(fromBytes(payload)) })
  })
  await run(6_000)
  t.same(heard, [], 'there is no sound yet')
  wire.connect()
  await command(start)
  const said = () => wire.speak(new Uint8Array(160).fill(0xd5))
  await run(4_980, said)
  t.equal(heard.length, 1, 'on a beat of its own')
  await run(10_000, said)
  t.equal(heard.length, 3)
  t.match(heard.at(-1), { callId: subjects.up.split('.')[1], quality: { codec: 'pcma', received: { lost: 0 } } })
  t.match(toLiveQuality(heard.at(-1)!.quality), { mos: 4.4, loss: 0, jitterMs: null, lateFrames: 0, seconds: 10 })
  t.same(
    heard.map(({ quality }) => quality.ofMs),
    [5_000, 10_000, 10_000],
  )

  let tick = 0
  await run(5_000, () => (tick++ % 5 === 0 ? wire.lose() : said()))
  const bad = toLiveQuality(heard.at(-1)!.quality)
  near(t, bad.loss ?? 0, 0.08, 'a fifth of the newest four seconds, of ten', 0.01)
  await run(15_000, said)
  t.equal(toLiveQuality(heard.at(-1)!.quality).loss, 0, 'what is over is not told any more')
  const closed = await command({ type: 'close', epoch: 1, reason: 'completed' })
  t.match(closed, { quality: { received: { lost: 50 } } }, 'its end tells of all of it')
  const all = heard.length
  await leg.close()
  await run(10_000)
  t.equal(heard.length, all)
})

test('what is looked at while a call runs is of the worse of both ways', async (t) => {
  t.same(toLiveQuality(told), { mos: 3.9, loss: 0.05, jitterMs: 12, lateFrames: 0, seconds: null })
  t.same(toLiveQuality({ ...told, received: null, sent: null, ofMs: 5_000 }), {
    mos: null,
    loss: null,
    jitterMs: null,
    lateFrames: 0,
    seconds: 5,
  })
})

test('of what a leg counts from the beginning the newest ten seconds are told, however its counts go', async (t) => {
  const recentOf = createRecentQuality()
  const way = (packets: number, lost: number) => ({ packets, lost, jitterMs: 2 })
  const counted = (received: LegQuality['received'], sent: LegQuality['sent'], lateFrames: number) =>
    recentOf({ ...told, received, sent, lateFrames })
  t.match(counted(way(250, 10), null, 3), { received: way(250, 10), sent: null, lateFrames: 3, ofMs: 5_000 })
  t.match(counted(way(500, 10), way(200, 4), 3), { received: way(500, 10), sent: way(200, 4), ofMs: 10_000 })
  t.match(counted(way(750, 10), way(200, 4), 5), {
    received: way(500, 0),
    sent: way(200, 4),
    lateFrames: 2,
    ofMs: 10_000,
  })
  t.match(counted(way(750, 10), way(200, 4), 5), { received: way(250, 0), sent: null }, 'nothing new was reported')
  t.match(counted(way(1_000, 8), way(450, 4), 5), { received: way(250, 0), sent: way(250, 0) }, 'what was late came')
  t.match(
    counted(way(40, 2), way(20, 1), 0),
    { received: way(40, 2), sent: way(20, 1), lateFrames: 0 },
    'counts begin anew',
  )
})

test('a leg that is closed tells what got lost, what was guessed and how long a round trip takes: once', async (t) => {
  const { wire, command, run, lines, telemetry } = openScene(t, negotiatedPhone, { signaling })
  wire.connect()
  await command(start)
  let tick = 0
  await run(2_000, () => (tick++ % 10 === 7 ? wire.lose() : wire.speak(new Uint8Array(160).fill(0xd5))))
  const peer = { packetsSent: 80, packetsLost: 4, fractionLost: 0, jitterMs: 3 }
  wire.report({ packetsLost: 10, jitterMs: 0.5, roundTripMs: 40, peer })
  t.same([lines(), telemetry.counted, telemetry.observed, telemetry.spans], [[], [], [], []], 'no frame tells anything')

  const closed = await command({ type: 'close', epoch: 1, reason: 'completed' })
  const quality: LegQuality = {
    codec: 'pcma',
    packetMs: 20,
    received: { packets: 100, lost: 10, jitterMs: 0.5 },
    sent: { packets: 80, lost: 4, jitterMs: 3 },
    roundTripMs: 40,
    concealedMs: 200,
    lateFrames: 0,
  }
  t.same(closed, { type: 'closed', recordedMs: null, quality })
  t.same(await command({ type: 'close', epoch: 1, reason: 'completed' }).catch(() => null), null, 'it is gone')
  const callId = '0198c000-0000-7000-8000-000000000001'
  t.match(lines(), [
    { level: 'info', fields: { callId, reason: 'completed', recordedMs: null, quality: toCallQuality(quality) } },
  ])
  t.equal(lines().length, 1)

  const { mos } = toCallQuality(quality)
  t.same(
    telemetry.observed.map(({ name, labels, value }) => [name, labels, value]),
    [
      ['leg.loss', { line: 'phone', direction: 'received' }, 0.1],
      ['leg.jitter', { line: 'phone', direction: 'received' }, 0.5],
      ['leg.loss', { line: 'phone', direction: 'sent' }, 0.05],
      ['leg.jitter', { line: 'phone', direction: 'sent' }, 3],
      ['leg.round_trip', { line: 'phone' }, 40],
      ['leg.mos', { line: 'phone', codec: 'pcma' }, mos],
      ['leg.concealed', { line: 'phone' }, 200],
    ],
  )
  t.same(telemetry.counted, [{ name: 'leg.late_frames', labels: { line: 'phone' }, by: 0 }])
})

test('packets of a stranger are told once in the log while the call runs, then in its quality and in telemetry', async (t) => {
  const { wire, command, run, log, telemetry } = openScene(t, negotiatedPhone, { signaling })
  const told = () => log.lines.filter(({ message }) => message === 'RTP of a stranger is dropped')
  wire.connect()
  await command(start)
  await run(2_000, () => wire.speak(new Uint8Array(160).fill(0xd5)))
  t.same(told(), [])
  for (const strangers of [3, 300]) {
    wire.drop({ strangers, flood: 0, unusable: 0, lastStranger: '198.51.100.66' })
    await run(1_000, () => wire.speak(new Uint8Array(160).fill(0xd5)))
  }
  const callId = '0198c000-0000-7000-8000-000000000001'
  t.match(told(), [{ level: 'warn', fields: { callId, personal: { address: '198.51.100.66' } } }])
  t.equal(told().length, 1)
  const closed = await command({ type: 'close', epoch: 1, reason: 'completed' })
  t.match(closed, { quality: { strangerPackets: 300 } })
  t.equal(telemetry.total('leg.stranger_packets', { line: 'phone' }), 300)
})

test('a wire without reports tells what the jitter buffer missed, and nothing of the other direction', async (t) => {
  const { wire, command, run, lines, telemetry } = openScene(t, negotiatedOpus)
  wire.connect()
  await command(start)
  const packet = opus.createEncoder({ rateHz: 48_000, expectedLossPercent: 20 }).encode(new Int16Array(960))
  let tick = 0
  await run(1_000, () => (tick++ % 10 === 7 ? wire.lose() : wire.speak(packet)))
  wire.disconnect('hung_up', 'the tab was closed')
  const closed = await command({ type: 'close', epoch: 1, reason: 'completed' })
  t.match(closed, {
    quality: {
      codec: 'opus',
      received: { packets: 50, lost: 5, jitterMs: null },
      sent: null,
      roundTripMs: null,
    },
  })
  t.equal(lines().length, 1, 'told when the media ended, and not again when the leg was closed')
  t.equal(lines()[0]?.fields['reason'], 'hung_up')
  t.same(telemetry.values('leg.loss', { line: 'web', direction: 'received' }), [0.1])
  t.same(telemetry.values('leg.loss', { direction: 'sent' }), [])
  t.same(telemetry.values('leg.jitter'), [])
})

test('a leg on which no sound could flow tells no quality, and one that heard nothing tells nothing of what came', async (t) => {
  const never = openScene(t, negotiatedOpus)
  t.same(await never.command({ type: 'close', epoch: 1, reason: 'canceled' }), { type: 'closed', recordedMs: null })
  t.match(never.lines(), [{ fields: { reason: 'canceled', quality: null } }])
  t.same(never.telemetry.observed, [])

  const mute = openScene(t, negotiatedOpus)
  mute.wire.connect()
  await mute.run(100)
  t.match(await mute.command({ type: 'close', epoch: 1, reason: 'completed' }), { quality: { received: null } })
  t.same(mute.telemetry.values('leg.loss'), [])
})
