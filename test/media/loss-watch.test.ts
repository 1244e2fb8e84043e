/** How much loss the encoder prepares for, by the reports of the peer; and what redundancy it then sends. */
import { test } from 'tap'
import { createLossWatch } from '../../media/leg/loss-watch.ts'
import { createOpusLibrary } from '../../media/codecs/opus.ts'
import { repeatsFormer } from '../scenes/opus-packet.ts'
import { bytesOf } from '../../model/frame.ts'
import type { TransportQuality } from '../../model/rtp-transport.ts'
import { negotiatedOpus } from '../fake/scripted-transport.ts'
import { createRandom } from '../fake/random.ts'
import { openLegScene } from '../scenes/leg-scene.ts'

const report = (packetsSent: number, fractionLost: number): NonNullable<TransportQuality['peer']> => ({
  packetsSent,
  packetsLost: 0,
  fractionLost,
  jitterMs: 0,
})

test('loss is believed at once, its end report by report, and a report is heard once', async (t) => {
  const { news } = createLossWatch()
  t.equal(news(null), null)
  const lossy = report(250, 0.12)
  t.equal(news(lossy), 12)
  t.equal(news(lossy), null)
  t.equal(news(report(500, 0.12)), null, 'nothing new')
  t.same(
    [750, 1000, 1250, 1500, 1750].map((sent) => news(report(sent, 0))),
    [6, 3, 2, 1, 0],
  )
  t.equal(news(report(2000, 0)), null)
  t.equal(news(report(2005, 0.4)), null, 'two of five packets tell nothing')
  t.equal(news(report(2250, 0.01)), 1)
})

/** Vowels with little pauses. */
function speech(seconds: number): Int16Array[] {
  const random = createRandom(5)
  let phase = 0
  return Array.from({ length: seconds * 50 }, (_, frame) =>
    Int16Array.from({ length: 320 }, () => {
      phase += (2 * Math.PI * 150) / 16_000
      const voice = [1, 2, 3, 4, 5, 9, 10].reduce((sum, overtone) => sum + Math.sin(overtone * phase) / overtone, 0)
      return (frame % 25 < 20 ? 5000 : 50) * voice + 30 * (random.next() - 0.5)
    }),
  )
}

test('the encoder repeats where loss is expected and nowhere else, and gives redundancy bits of its own', async (t) => {
  for (const library of [createOpusLibrary(), createOpusLibrary(() => null)]) {
    const encoder = library.createEncoder({ rateHz: 16_000, expectedLossPercent: 0 })
    const measure = () => {
      const packets = speech(4).map((frame) => encoder.encode(frame))
      const repeating = packets.filter(repeatsFormer).length / packets.length
      return { repeating, bits: packets.reduce((sum, { length }) => sum + length * 8, 0) / 4 }
    }
    const clean = measure()
    t.equal(clean.repeating, 0, `${library.encoding}: nothing`)
    encoder.expectLoss(10)
    const lossy = measure()
    t.ok(lossy.repeating > 0.7, `${lossy.repeating}`)
    t.ok(lossy.bits > clean.bits * 1.15, `${clean.bits} to ${lossy.bits} bit/s`)
    encoder.expectLoss(30)
    t.ok(measure().bits < lossy.bits * 0.85, 'less on a line that is full')
    encoder.expectLoss(0)
    encoder.encode(new Int16Array(320))
    t.equal(measure().repeating, 0)
    encoder.close()
    encoder.expectLoss(10)
  }
})

test('a leg sends redundancy as soon as the peer reports loss, keeps it for the next actor, and ends it on a clean line', async (t) => {
  const { wire, command, say, run } = openLegScene(t, negotiatedOpus, { opus: createOpusLibrary() })
  const pcm16 = { encoding: 'pcm16', rateHz: 16_000 } as const
  const start = (epoch: number) => ({ type: 'start', epoch, hears: [pcm16], speaks: [pcm16], recording: null })
  const told = (packetsSent: number, fractionLost: number) =>
    wire.report({ packetsLost: 0, jitterMs: 0, roundTripMs: null, peer: report(packetsSent, fractionLost) })
  const frames = speech(3).map((frame) => bytesOf(frame).slice())
  const share = async (epoch: number, seq: number) => {
    await say(epoch, seq, frames)
    wire.sent.length = 0
    await run(3000)
    return wire.sent.filter(({ payload }) => repeatsFormer(payload)).length / wire.sent.length
  }
  wire.connect()
  await command(start(1))
  for (let reports = 1; reports < 10; reports += 1) {
    told(reports * 250, 0)
    await run(600)
  }
  t.equal(await share(1, 0), 0, 'a clean line')
  told(3000, 0.1)
  await run(600)
  t.ok((await share(1, 200)) > 0.6, 'loss was reported')
  await command(start(2))
  t.ok((await share(2, 0)) > 0.6, 'another actor speaks')
})
