/** Order and time: jitter buffer, telephone events, the caller's line, the ticker. */
import { test } from 'tap'
import type { AudioFormat } from '../../model/frame.ts'
import type { RtpPacket } from '../../model/rtp-transport.ts'
import { createDtmfReceiver } from '../../media/rtp/dtmf-receiver.ts'
import { createJitterBuffer, type JitterBuffer, type Released } from '../../media/rtp/jitter-buffer.ts'
import { createLatenessMeter } from '../../media/ticker/lateness.ts'
import { createTicker } from '../../media/ticker/ticker.ts'
import { createUpLine } from '../../media/leg/up-line.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createRandom, type Random } from '../fake/random.ts'
import { createRecordedTelemetry } from '../fake/recorded-telemetry.ts'

const packetOf = (index: number, { firstSeq = 65_500, firstTimestamp = 0xffff_0000 } = {}): RtpPacket => ({
  payloadType: 111,
  marker: false,
  sequenceNumber: (firstSeq + index) & 0xffff,
  timestamp: (firstTimestamp + index * 960) >>> 0,
  payload: Uint8Array.of(index & 0xff, index >> 8),
})
const indexOf = ({ payload }: RtpPacket): number => payload[0]! | (payload[1]! << 8)

const createBuffer = () => createJitterBuffer({ clockRateHz: 48_000, soundPayloadType: 111 })

function drained(buffer: JitterBuffer, now: number): Released[] {
  const all: Released[] = []
  for (let released = buffer.due(now); released !== null; released = buffer.due(now)) all.push(released)
  return all
}

const told = (released: readonly Released[]): (number | string)[] =>
  released.map((one) => ('packet' in one ? indexOf(one.packet) : one.next ? `lost, next ${indexOf(one.next)}` : 'lost'))

test('packets in order are released at once', async (t) => {
  const buffer = createBuffer()
  for (let i = 0; i < 100; i++) {
    buffer.push(packetOf(i), i * 20)
    t.same(told(drained(buffer, i * 20)), [i])
  }
  t.match(buffer.stats(), { received: 100, lost: 0, late: 0, duplicated: 0, jitterMs: 0 })
})

test('behind a gap packets wait, and a packet that comes in time fills it', async (t) => {
  const buffer = createBuffer()
  buffer.push(packetOf(0), 0)
  buffer.push(packetOf(2), 40)
  t.same(told(drained(buffer, 40)), [0])
  t.same(told(drained(buffer, 59)), [])
  buffer.push(packetOf(1), 59)
  t.same(told(drained(buffer, 59)), [1, 2])
  t.equal(buffer.stats().lost, 0)
})

test('a gap that stays is released as losses, the last one with the packet that may repeat it', async (t) => {
  const buffer = createBuffer()
  buffer.push(packetOf(0), 0)
  buffer.push(packetOf(4), 80)
  t.same(told(drained(buffer, 99)), [0])
  t.same(told(drained(buffer, 100)), ['lost', 'lost', 'lost, next 4', 4])
  buffer.push(packetOf(2), 101)
  buffer.push(packetOf(4), 101)
  t.same(told(drained(buffer, 101)), [])
  t.match(buffer.stats(), { lost: 3, late: 1, duplicated: 1 })
})

test('the wait follows the jitter, and never exceeds 120 ms', async (t) => {
  const waited = (jitterMs: number) => {
    const random = createRandom(5)
    const buffer = createBuffer()
    for (let i = 0; i < 200; i++) {
      buffer.push(packetOf(i), i * 20 + random.below(jitterMs + 1))
      drained(buffer, i * 20 + jitterMs)
    }
    buffer.push(packetOf(201), 201 * 20)
    for (let wait = 0; ; wait++) if (drained(buffer, 201 * 20 + wait).length > 0) return wait
  }
  t.equal(waited(0), 20)
  const medium = waited(60)
  t.ok(medium > 50 && medium <= 70, `60 ms of jitter: ${medium}`)
  t.equal(waited(1000), 120)
})

test('a stream that begins anew is followed from its second packet on, and its first is not lost', async (t) => {
  const anew = { firstSeq: 65_500 - 30, firstTimestamp: 12_345_678 }
  for (const options of [
    anew,
    { firstSeq: 1000, firstTimestamp: 0 },
    { firstSeq: 20_000, firstTimestamp: 0xffff_2000 },
  ]) {
    const buffer = createBuffer()
    for (let i = 0; i < 40; i++) buffer.push(packetOf(i), i * 20)
    drained(buffer, 800)
    const heard = [40, 41, 42, 43].flatMap((i) => {
      buffer.push(packetOf(i, options), i * 20)
      return told(drained(buffer, i * 20))
    })
    t.same(heard, [40, 41, 42, 43], JSON.stringify(options))
    t.equal(buffer.stats().resynchronised, 1)
  }
})

test('one stray packet moves nothing', async (t) => {
  const buffer = createBuffer()
  for (let i = 0; i < 10; i++) buffer.push(packetOf(i), i * 20)
  drained(buffer, 200)
  buffer.push(packetOf(3, { firstSeq: 40_000, firstTimestamp: 77 }), 200)
  buffer.push(packetOf(10), 200)
  t.same(told(drained(buffer, 200)), [10])
  t.match(buffer.stats(), { late: 1, resynchronised: 0 })
})

test('a pause of the sender is no loss', async (t) => {
  const buffer = createBuffer()
  buffer.push(packetOf(0), 0)
  t.same(told(drained(buffer, 0)), [0])
  buffer.push({ ...packetOf(1), timestamp: (packetOf(1).timestamp + 48_000 * 60) >>> 0 }, 60_000)
  t.same(told(drained(buffer, 60_000)), [1])
})

type Arrival = { readonly at: number; readonly index: number }

/** A stream of packets as a bad network hands it over: late, lost, twice, in bursts. */
function arrivalsOf(random: Random, count: number): Arrival[] {
  const loss = random.next() * 0.2
  const jitter = random.below(200)
  const twice = random.next() * 0.1
  const arrivals: Arrival[] = []
  for (let index = 0; index < count; index++) {
    if (random.next() < loss) continue
    const copies = random.next() < twice ? 2 : 1
    for (let copy = 0; copy < copies; copy++) arrivals.push({ at: index * 20 + random.below(jitter + 1), index })
  }
  return arrivals.sort((a, b) => a.at - b.at || a.index - b.index)
}

test('whatever the network does: in order, nothing twice, every gap accounted for, nothing held for long', async (t) => {
  for (let seed = 1; seed <= 200; seed++) {
    const random = createRandom(seed)
    const arrivals = arrivalsOf(random, 400)
    const buffer = createBuffer()
    let position = arrivals[0]!.index
    let packets = 0
    let losses = 0
    const pushedAt = new Map<number, number>()
    const take = (released: readonly Released[], now: number) => {
      for (const one of released) {
        const expected = (65_500 + position) & 0xffff
        if ('packet' in one) {
          packets++
          if (one.packet.sequenceNumber !== expected) t.fail(`seed ${seed}: ${indexOf(one.packet)} at ${position}`)
          if (now - pushedAt.get(position)! > 125) t.fail(`seed ${seed}: held ${now - pushedAt.get(position)!} ms`)
        } else {
          losses++
          if (one.lost !== expected) t.fail(`seed ${seed}: loss ${one.lost} at ${position}`)
          if (one.next && indexOf(one.next) !== position + 1) t.fail(`seed ${seed}: a wrong next`)
        }
        position++
      }
    }
    for (let now = 0, next = 0; now < 400 * 20 + 600; now += 5) {
      for (; next < arrivals.length && arrivals[next]!.at <= now; next++) {
        const { index } = arrivals[next]!
        if (!pushedAt.has(index)) pushedAt.set(index, now)
        buffer.push(packetOf(index), now)
        take(drained(buffer, now), now)
      }
      take(drained(buffer, now), now)
    }
    const stats = buffer.stats()
    if (stats.received !== arrivals.length) t.fail(`seed ${seed}: received ${stats.received}`)
    if (stats.lost !== losses) t.fail(`seed ${seed}: lost ${stats.lost}, released ${losses}`)
    if (packets + stats.late + stats.duplicated !== arrivals.length) t.fail(`seed ${seed}: a packet is unaccounted for`)
    if (position !== Math.max(...arrivals.map(({ index }) => index)) + 1) t.fail(`seed ${seed}: stopped at ${position}`)
  }
  t.pass('200 networks')
})

const eventPacket = (timestamp: number, event: number, duration: number, { end = false, marker = false } = {}) => ({
  ...packetOf(0),
  timestamp,
  marker,
  payload: Uint8Array.of(event, end ? 0x8a : 0x0a, duration >> 8, duration & 0xff),
})

test('the packets of one key press are one digit, whichever of them are lost', async (t) => {
  const press = [
    eventPacket(1000, 5, 160, { marker: true }),
    eventPacket(1000, 5, 320),
    ...[1, 2, 3].map(() => eventPacket(1000, 5, 480, { end: true })),
  ]
  for (let present = 1; present < 32; present++) {
    const receiver = createDtmfReceiver()
    const digits = press.filter((_, i) => present & (1 << i)).map((packet) => receiver.receive(packet))
    t.same(
      digits.filter((digit) => digit !== null),
      ['5'],
    )
  }
})

test('the same key pressed twice is two digits, also when the end of the first was lost or comes again late', async (t) => {
  const receiver = createDtmfReceiver()
  const digits = [
    eventPacket(1000, 11, 160, { marker: true }),
    eventPacket(9000, 11, 160, { marker: true }),
    eventPacket(1000, 11, 480, { end: true }),
    eventPacket(9000, 11, 480, { end: true }),
    eventPacket(17_000, 15, 160),
  ].map((packet) => receiver.receive(packet))
  t.same(digits, ['#', '#', null, null, 'D'])
})

test('a key held longer than one segment can say is one digit; flashes and garbage are none', async (t) => {
  const receiver = createDtmfReceiver()
  const digits = [
    eventPacket(1000, 10, 0xffff, { marker: true }),
    eventPacket(1000 + 0xffff, 10, 800),
    eventPacket(1000 + 0xffff, 10, 1600, { end: true }),
    eventPacket(200_000, 16, 160, { marker: true }),
    { ...packetOf(0), payload: Uint8Array.of(1, 2) },
  ].map((packet) => receiver.receive(packet))
  t.same(digits, ['*', null, null, null, null])
})

test('presses of a sender whose clock stands still are told apart, and of one whose clock runs on are one', async (t) => {
  const standing = createDtmfReceiver()
  const pressAt = (event: number) => [
    eventPacket(0, event, 160, { marker: true }),
    eventPacket(0, event, 320),
    ...[1, 2, 3].map(() => eventPacket(0, event, 320, { end: true })),
  ]
  t.same(
    [1, 1, 2].flatMap((event) => pressAt(event).flatMap((packet) => standing.receive(packet) ?? [])),
    ['1', '1', '2'],
  )
  const running = createDtmfReceiver()
  const runOn = (from: number) =>
    [160, 320, 480, 640].map((duration) => eventPacket(from + duration, 5, duration, { marker: duration === 160 }))
  const endOf = (from: number) => [800, 960, 1120].map((after) => eventPacket(from + after, 5, 800, { end: true }))
  const packets = [1000, 3000].flatMap((from) => [...runOn(from), ...endOf(from)])
  t.same(
    packets.flatMap((packet) => running.receive(packet) ?? []),
    ['5', '5'],
  )
  const torn = createDtmfReceiver()
  t.same(
    packets.flatMap((packet, at) => (at % 2 === 0 ? (torn.receive(packet) ?? []) : [])),
    ['5', '5'],
    'also where every second one is lost',
  )
})

const pcm8: AudioFormat = { encoding: 'pcm16', rateHz: 8000 }

/** A line whose frames are told as `s` (silence) or their first byte. */
function createToldLine() {
  const frames: (number | 's')[] = []
  const line = createUpLine(pcm8, 0, (payload, seq) => {
    if (payload.length !== 320 || seq !== frames.length) throw new Error('a wrong frame')
    frames.push(payload.every((byte) => byte === 0) ? 's' : payload[0]!)
  })
  return { line, frames }
}
const soundOf = (mark: number, ms = 20) => new Uint8Array(ms * 16).fill(mark)

test('packets of any length become frames of 20 ms at once', async (t) => {
  const { line, frames } = createToldLine()
  line.sound(soundOf(1, 10), 0)
  t.same(frames, [])
  line.sound(soundOf(1, 10), 10)
  t.same(frames, [1])
  line.sound(soundOf(2, 60), 70)
  t.same(frames, [1, 2, 2, 2])
  line.sound(soundOf(3, 30), 100)
  line.sound(soundOf(4, 30), 130)
  t.same(frames, [1, 2, 2, 2, 3, 3, 4])
})

test('a stalled caller is silence in real time, and a pause has its true length', async (t) => {
  const { line, frames } = createToldLine()
  for (let now = 0; now < 1000; now += 20) {
    if (now < 200 || now >= 800) line.sound(soundOf(1), now)
    line.tick(now + 3)
  }
  t.equal(frames.filter((frame) => frame === 1).length, 20)
  const silent = frames.filter((frame) => frame === 's').length
  t.ok(silent >= 29 && silent <= 31, `${silent} frames for 600 ms`)
  t.equal(frames.lastIndexOf('s') - frames.indexOf('s'), silent - 1, 'in one piece')
})

test('sound that was held up by the network is passed on, but not what is more than a second ahead of time', async (t) => {
  const { line, frames } = createToldLine()
  line.sound(soundOf(1), 0)
  for (let now = 0; now <= 3000; now += 20) line.tick(now)
  for (let i = 0; i < 150; i++) line.sound(soundOf(2), 3000)
  const heard = frames.filter((frame) => frame === 2).length
  t.ok(heard >= 50 && heard <= 52, `${heard} of 150`)
  t.equal(line.dropped(), 150 - heard)
})

test('a guess for a lost packet is used only where the line is behind', async (t) => {
  const { line, frames } = createToldLine()
  line.sound(soundOf(1), 0)
  line.filler(soundOf(9), 5)
  t.same(frames, [1])
  line.filler(soundOf(9), 45)
  t.same(frames, [1, 9])
  t.equal(line.filledMs(), 20)
})

test("an hour with a caller's clock 300 ppm fast drops nothing and is never filled", async (t) => {
  const { line, frames } = createToldLine()
  for (let tick = 0, sent = 0; tick < 180_000; tick++) {
    for (; sent * 20 * (1 - 0.0003) <= tick * 20; sent++) line.sound(soundOf(1), tick * 20)
    line.tick(tick * 20)
  }
  t.equal(line.dropped(), 0)
  t.ok(frames.every((frame) => frame === 1))
})

const createTicked = () => {
  const clock = createHandClock(0)
  return { clock, ticker: createTicker(clock) }
}

test('everyone is called every 20 ms, spread over four slots', async (t) => {
  const { clock, ticker } = createTicked()
  const calls: number[][] = Array.from({ length: 8 }, () => [])
  const leaves = calls.map((own) => ticker.join((at) => own.push(at)))
  clock.advance(200)
  for (const own of calls) {
    t.equal(own.length, 10)
    own.forEach((at, i) => t.equal(at, own[0]! + i * 20))
  }
  t.same(new Set(calls.map((own) => own[0]! % 20)).size, 4)
  for (const leave of leaves) leave()
  leaves[0]!()
  t.equal(clock.pending(), 0, 'and no timer runs for nobody')
  ticker.join(() => {})
  t.equal(clock.pending(), 1)
  ticker.close()
  ticker.close()
  t.equal(clock.pending(), 0)
})

/** A clock whose timers come late when the test says so. */
function createLateClock() {
  let now = 0
  let timer: { at: number; action: () => void } | null = null
  return {
    now: () => now,
    after(ms: number, action: () => void) {
      const own = { at: now + ms, action }
      timer = own
      return () => {
        if (timer === own) timer = null
      }
    },
    fire(late: number) {
      const { at, action } = timer!
      timer = null
      now = Math.max(now, at) + late
      action()
    },
    pass: (ms: number) => void (now += ms),
    waiting: () => timer !== null,
  }
}

test('a small delay is caught up without moving the beat, a great one is skipped and counted', async (t) => {
  const clock = createLateClock()
  const ticker = createTicker(clock)
  const calls: number[] = []
  const late: number[] = []
  ticker.join((at, lateMs) => {
    calls.push(at)
    late.push(lateMs)
  })
  for (let i = 0; i < 8; i++) clock.fire(0)
  t.same(calls, [5, 25])
  clock.fire(100)
  t.same(calls, [5, 25, 45, 65, 85, 105, 125, 145])
  t.same(late, [0, 0, 100, 80, 60, 40, 20, 0], 'each is told how late it is')
  t.equal(ticker.lateness().skipped, 0)
  clock.fire(1000)
  for (let i = 0; i < 4; i++) clock.fire(0)
  t.ok(calls.length <= 10, 'no burst')
  t.ok(calls.every((at) => at % 20 === 5))
  t.ok(clock.now() - calls.at(-1)! < 25)
  t.ok(ticker.lateness().skipped >= 190)
  t.ok(ticker.lateness().overTenMs > 0)
  ticker.close()
})

test('a thread that cannot keep up still gets to its other work, and one may leave or join while called', async (t) => {
  const clock = createLateClock()
  const ticker = createTicker(clock)
  let calls = 0
  ticker.join(() => {
    calls++
    clock.pass(50)
  })
  for (let i = 0; i < 8; i++) clock.fire(0)
  const before = calls
  clock.fire(0)
  t.ok(calls - before <= 10, 'one turn runs what was due when it began')
  ticker.close()

  const second = createTicked()
  const order: string[] = []
  const leave = second.ticker.join(() => {
    order.push('first')
    leave()
    second.ticker.join(() => order.push('second'))
  })
  second.clock.advance(60)
  t.same(order.slice(0, 2), ['first', 'second'])
  t.equal(second.clock.pending(), 1)
  second.ticker.close()

  const third = createTicked()
  const leaveLast = third.ticker.join(() => leaveLast())
  third.clock.advance(60)
  t.equal(third.clock.pending(), 0, 'the last one that leaves stops the timer')
})

test('one that throws leaves the beat and is told, and the others go on', async (t) => {
  const clock = createHandClock()
  const failures: unknown[] = []
  const ticker = createTicker({ ...clock, failed: (error) => failures.push(error) })
  const calls = { before: 0, buggy: 0, halfway: 0, after: 0 }
  // Four of each, so that each slot has one of all.
  for (let slot = 0; slot < 4; slot++) ticker.join(() => calls.before++)
  ticker.join(() => {
    calls.buggy++
    throw new Error('a bug')
  })
  ticker.join(
    () => undefined,
    () => {
      calls.halfway++
      throw new Error('another bug')
    },
  )
  for (let slot = 0; slot < 2; slot++) ticker.join(() => calls.after++)
  clock.advance(100)
  t.same(calls, { before: 20, buggy: 1, halfway: 1, after: 10 })
  t.match(failures, [{ message: 'a bug' }, { message: 'another bug' }])
  ticker.close()

  const { clock: other, ticker: strict } = createTicked()
  strict.join(() => {
    throw new Error('a bug')
  })
  t.throws(() => other.advance(5), /a bug/, 'where nobody is told, the thread is')
  t.equal(other.pending(), 0)
  strict.close()
})

test('lateness is told by quantiles over the last 10 to 20 seconds', async (t) => {
  const meter = createLatenessMeter()
  for (let i = 0; i < 1000; i++) meter.add(i < 900 ? 1 : 30, i)
  const { ticks, overTenMs, p50, p99, max } = meter.read(1000)
  t.same({ ticks, overTenMs, max }, { ticks: 1000, overTenMs: 0.1, max: 30 })
  t.ok(p50 >= 1 && p50 <= 1.5)
  t.ok(p99 >= 29.5 && p99 <= 30)
  t.equal(meter.read(12_000).ticks, 1000)
  t.equal(meter.read(25_000).ticks, 0)
})

test('telemetry that is off is asked for nothing, however many slots are run', async (t) => {
  const clock = createLateClock()
  let asked = 0
  const ask = () => void asked++
  const span = () => ({ end: ask })
  const ticker = createTicker({ ...clock, telemetry: { isOn: false, count: ask, observe: ask, span } })
  ticker.join(() => {})
  for (let slot = 0; slot < 5_000; slot++) clock.fire(0)
  clock.fire(1_000)
  ticker.close()
  t.ok(ticker.lateness().ticks > 400)
  t.equal(asked, 0)
})

test('the ticker tells how late its slots were every ten seconds and when nobody is left, and no slot by itself', async (t) => {
  const clock = createLateClock()
  const telemetry = createRecordedTelemetry()
  const ticker = createTicker({ ...clock, telemetry })
  const leave = ticker.join(() => {})
  for (let slot = 0; slot < 1_900; slot++) clock.fire(0)
  t.same(telemetry.observed, [], 'nothing within ten seconds')
  for (let slot = 0; slot < 200; slot++) clock.fire(0)
  // One member: one of four slots has something to do.
  const tick = { name: 'ticker.lateness', labels: {}, value: 0.5 }
  t.match(telemetry.observed, [tick])
  t.ok(telemetry.values('ticker.lateness').length > 480)
  clock.fire(30)
  clock.fire(1_000)
  leave()
  t.ok(telemetry.values('ticker.lateness').some((ms) => ms > 25 && ms < 35))
  t.equal(telemetry.total('ticker.skipped'), ticker.lateness().skipped)
  t.ok(telemetry.total('ticker.skipped') > 190)
  const before = telemetry.observed.length
  ticker.close()
  t.equal(telemetry.observed.length, before, 'and nothing twice')
})
