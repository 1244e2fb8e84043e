/** A media thread that sleeps from slot to slot: what comes meanwhile, what does not, and what becomes of times of arrival. */
import { createSocket } from 'node:dgram'
import { test } from 'tap'
import { createGauges, createSleptGauge } from '../../app/media-gauges.ts'
import { busyMeterOf, loopOf } from '../../app/thread-loop.ts'
import { createJitterBuffer } from '../../media/rtp/jitter-buffer.ts'
import { createReception } from '../../media/rtp/rtcp/reception.ts'
import { createSlotSleep } from '../../media/ticker/slot-sleep.ts'
import { createTicker } from '../../media/ticker/ticker.ts'
import { createRandom } from '../fake/random.ts'
import { openSleepingThread } from '../scenes/sleeping-thread.ts'

/** An event loop: each turn takes what has come by then, and takes its time for it. */
function createLoop({ perDatagram = 0, perTurn = Infinity, oversleeps = 0 } = {}) {
  let now = 0
  let turn: (() => void) | null = null
  let arrivals: number[] = []
  const taken: { readonly cameAt: number; readonly takenAt: number }[] = []
  const timers: { readonly at: number; readonly action: () => void }[] = []
  const slept: number[] = []
  let turns = 0
  const sleep = createSlotSleep({
    now: () => now,
    later(ms, action) {
      const timer = { at: now + ms, action }
      timers.push(timer)
      return () => void timers.splice(timers.indexOf(timer), timers.includes(timer) ? 1 : 0)
    },
    slept: (ms) => slept.push(ms),
    nextTurn(action) {
      turn = action
      return () => void (turn = null)
    },
    sleep: (ms) => void (now += ms + oversleeps),
  })
  return {
    ...sleep,
    now: () => now,
    taken,
    timers,
    slept,
    turns: () => turns,
    isTurning: () => turn !== null,
    pass: (ms: number) => void (now += ms),
    arrive: (times: readonly number[]) => void (arrivals = [...times]),
    /** Turns until that time; each takes a moment by itself. */
    runUntil(end: number) {
      while (now < end && turn) {
        const own = turn
        turn = null
        turns++
        now += 0.01
        for (let left = perTurn; left > 0 && arrivals[0] !== undefined && arrivals[0] <= now; left--) {
          taken.push({ cameAt: arrivals.shift()!, takenAt: now })
          now += perDatagram
        }
        own()
      }
    },
  }
}

test('a thread sleeps from slot to slot, and takes what came meanwhile in one turn right before the slot', async (t) => {
  const loop = createLoop({ perDatagram: 0.02 })
  const ticker = createTicker(loop)
  const late: number[] = []
  for (let slot = 0; slot < 4; slot++) ticker.join((_, lateMs) => late.push(lateMs))
  loop.arrive(Array.from({ length: 5_000 }, (_, at) => at * 0.2))
  loop.runUntil(1_000)
  t.ok(loop.slept.length <= 201, `${loop.slept.length} sleeps in a second`)
  t.ok(loop.turns() < 800, `${loop.turns()} turns for 5,000 datagrams`)
  t.ok(loop.taken.length > 4_900)
  t.ok(
    loop.taken.every(({ cameAt, takenAt }) => takenAt - cameAt < 6),
    'none waits for longer than a slot',
  )
  t.ok(late.length > 190)
  t.ok(
    late.every((ms) => ms >= 0 && ms < 1.5),
    'and the slots are in time',
  )
  ticker.close()
})

test('a thread that has more to do than time does not sleep, and gets to its sockets between the slots', async (t) => {
  const loop = createLoop()
  const ticker = createTicker(loop)
  const slotsInTurn = new Map<number, number>()
  ticker.join(() => {
    slotsInTurn.set(loop.turns(), (slotsInTurn.get(loop.turns()) ?? 0) + 1)
    loop.pass(30)
  })
  loop.runUntil(20)
  const before = loop.slept.length
  loop.runUntil(6_000)
  t.equal(loop.slept.length, before)
  t.ok(slotsInTurn.size > 10)
  t.ok(Math.max(...slotsInTurn.values()) <= 11, 'what is done in one turn is bounded by what was due when it began')
  ticker.close()
})

test('behind a turn that had something to do there is another one before the thread sleeps', async (t) => {
  const loop = createLoop({ perDatagram: 0.2, perTurn: 1 })
  const ticker = createTicker(loop)
  ticker.join(() => undefined)
  loop.arrive([0, 0, 0, 0])
  loop.runUntil(1)
  t.equal(loop.taken.length, 4, 'all of it before the first sleep')
  t.ok(loop.taken.every(({ takenAt }) => takenAt < 1))
  loop.runUntil(30)
  t.ok(loop.slept.length >= 5)
  ticker.close()
})

test('nobody sleeps for a beat that nobody follows, and what was to be done before a slot is done by a timer', async (t) => {
  const loop = createLoop()
  const ticker = createTicker(loop)
  const done: string[] = []
  loop.beforeSlot(() => done.push('by a timer'))
  t.equal(loop.timers.length, 1)
  const cancel = loop.beforeSlot(() => done.push('never'))
  cancel()
  t.equal(loop.timers.length, 1)
  loop.timers.pop()?.action()
  t.same(done, ['by a timer'])

  const leave = ticker.join(() => done.push('slot'))
  loop.beforeSlot(() => {
    done.push('before')
    loop.beforeSlot(() => done.push('before the next'))
  })
  t.equal(loop.timers.length, 0, 'the slot brings it')
  loop.runUntil(11)
  t.same(done, ['by a timer', 'before', 'slot', 'before the next'])
  t.equal(loop.timers.length, 0)
  loop.beforeSlot(() => done.push('late'))
  leave()
  t.notOk(loop.isTurning())
  loop.timers.pop()?.action()
  t.equal(done.at(-1), 'late')
  t.equal(loop.timers.length, 0)
})

test('what is for the end of a turn is done behind its slot, and before the thread sleeps', async (t) => {
  const loop = createLoop()
  const ticker = createTicker(loop)
  const done: string[] = []
  loop.afterTurn(() => done.push('without a beat'))
  t.ok(loop.isTurning(), 'in the next turn')
  loop.runUntil(1)
  t.same(done, ['without a beat'])

  ticker.join(() => {
    loop.afterTurn(() => done.push(`behind the slot, slept ${loop.slept.length}`))
    done.push(`slot, slept ${loop.slept.length}`)
  })
  loop.runUntil(8)
  const [slot, behind] = done.slice(1)
  t.match(slot, /^slot, slept/)
  t.equal(behind, `behind the ${slot}`)

  const slept = loop.slept.length
  loop.afterTurn(() => done.push(`slept ${loop.slept.length}`))
  loop.runUntil(loop.now() + 0.02)
  t.equal(done.at(-1), `slept ${slept}`, 'before the next sleep')
  const leave = ticker.join(() => undefined)
  loop.afterTurn(() => done.push('at the end of the beat'))
  leave()
  ticker.close()
  t.equal(done.at(-1), 'at the end of the beat')
})

test('how much a thread works is told without its sleep, of which a wait for a core is a part as in the event loop', async (t) => {
  const loop = createLoop({ oversleeps: 4 })
  const ticker = createTicker(loop)
  ticker.join(() => loop.pass(2))
  const gauges = createGauges()
  const tellSleep = createSleptGauge(gauges)
  const read = loopOf({ performance: { eventLoopUtilization: () => ({ active: loop.now(), idle: 0 }) } }, gauges)
  const busy = busyMeterOf(read)
  t.equal(busy(), 0)
  loop.runUntil(1_000)
  for (const ms of loop.slept) tellSleep(ms)
  const { active, idle } = read()
  t.ok(Math.abs(active + idle - loop.now()) < 0.001)
  t.ok(idle > 800, `${idle} of ${loop.now()}`)
  t.ok(busy() < 0.2)
  ticker.close()
})

/** As a thread sees them that looks every 5 ms. */
const seen = (arrivedAt: number): number => Math.ceil(arrivedAt / 5) * 5

test('times of arrival in steps of 5 ms leave what is steady steady, and make of little jitter at most that much', async (t) => {
  const random = createRandom(7)
  const jitterOf = (arrivalOf: (index: number) => number): { readonly reported: number; readonly buffered: number } => {
    const reception = createReception(8_000)
    const buffer = createJitterBuffer({ clockRateHz: 8_000, soundPayloadType: 0 })
    for (let index = 0; index < 1_000; index++) {
      const at = arrivalOf(index)
      const packet = { payloadType: 0, marker: false, sequenceNumber: index, timestamp: index * 160 }
      reception.add(index, index * 160, at)
      buffer.push({ ...packet, payload: Uint8Array.of(1) }, at)
      while (buffer.due(at) !== null);
    }
    return { reported: reception.jitterMs(), buffered: buffer.stats().jitterMs }
  }
  t.same(
    jitterOf((index) => seen(index * 20 + 3)),
    { reported: 0, buffered: 0 },
  )
  // Around the border of a step, where each packet may fall on either side.
  const border = jitterOf((index) => seen(index * 20 + 5 + 0.4 * (random.next() - 0.5)))
  t.ok(border.reported <= 5 && border.buffered <= 5, JSON.stringify(border))
  const lively = Array.from({ length: 1_000 }, (_, index) => index * 20 + 40 * random.next())
  const [exact, stepped] = [jitterOf((index) => lively[index]!), jitterOf((index) => seen(lively[index]!))]
  t.ok(Math.abs(stepped.reported - exact.reported) < 2, JSON.stringify({ exact, stepped }))
  t.ok(Math.abs(stepped.buffered - exact.buffered) <= 5)
})

test('behind a lost packet those after it wait no longer for a border of the steps', async (t) => {
  const releasedAfter = (arrivalOf: (index: number) => number): number => {
    const buffer = createJitterBuffer({ clockRateHz: 8_000, soundPayloadType: 0 })
    const push = (index: number, at: number): void =>
      buffer.push(
        { payloadType: 0, marker: false, sequenceNumber: index, timestamp: index * 160, payload: Uint8Array.of(1) },
        at,
      )
    for (let index = 0; index < 200; index++) {
      push(index, arrivalOf(index))
      while (buffer.due(arrivalOf(index)) !== null);
    }
    const from = arrivalOf(201)
    push(201, from)
    let at = from
    while (buffer.due(at) === null) at += 1
    return at - from
  }
  const flips = (index: number): number => seen(index * 20 + 5 + (index % 2 === 0 ? 0.1 : -0.1))
  t.equal(
    releasedAfter(flips),
    releasedAfter((index) => index * 20),
  )
})

test(
  'a real thread that sleeps hears datagrams, messages and timers, and can be ended',
  { timeout: 30_000 },
  async (t) => {
    const thread = await openSleepingThread()
    t.teardown(() => thread.close())
    const socket = createSocket('udp4')
    t.teardown(() => socket.close())
    for (let sent = 1; sent <= 50; sent++) {
      const heard = sent % 10 === 0 ? thread.heard(sent) : null
      socket.send(Uint8Array.of(sent), thread.port, '127.0.0.1')
      await heard
    }
    const { timers, sleptMs } = await thread.heard(50)
    t.ok(timers > 0, 'timers come while it sleeps')
    t.ok(sleptMs > 0)
  },
)
