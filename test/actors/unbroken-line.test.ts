/** What an actor makes of frames that are missing, whatever the leg has of them, on the real in-process bus. */
import { test } from 'tap'
import { createLocalBus } from '../../actors/bus/local-bus.ts'
import { createUnbrokenLine, hearLine } from '../../actors/conversation/unbroken-line.ts'
import { subjectsOf } from '../../model/bus.ts'
import { fromBytes, toBytes } from '../../model/bus-json.ts'
import { decodeFrame, encodeFrame } from '../../model/frame.ts'
import type { KeyEvent, LegCommand, LegReply } from '../../model/leg.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { newId } from '../scenes/tenant.ts'

const payload = new Uint8Array(160)

/** `leg` answers who catches up; it may send frames before. */
function open(leg: (heard: number, up: (seqs: readonly number[]) => void) => LegReply | null) {
  const clock = createHandClock()
  const bus = createLocalBus({ log: createQuietLog(), clock })
  const deps = { bus, clock, callId: newId<'call'>(), epoch: 1 }
  const subjects = subjectsOf(deps.callId)
  const send = (seq: number, payload: Uint8Array): void =>
    bus.publish(subjects.up, encodeFrame({ epoch: 1, seq, timestamp: seq * 20, payload }))
  const up = (seqs: readonly number[]): void => seqs.forEach((seq) => send(seq, payload))
  const gap = (seq: number): void => send(seq, new Uint8Array(0))
  const tell = (event: KeyEvent): void => bus.publish(subjects.legEvent, toBytes(event))
  const key = (seq: number, epoch = 1): void => tell({ type: 'dtmf', digit: `#${seq}`, line: { epoch, seq } })
  bus.subscribe(subjects.legEvent, ({ payload: event }) => line.press(fromBytes(event) as KeyEvent))
  const asked: number[] = []
  bus.subscribe(subjects.legCommand, (message) => {
    const command = fromBytes(message.payload) as LegCommand
    if (command.type !== 'catch_up') return
    asked.push(command.heard)
    const reply = leg(command.heard, up)
    if (reply) message.respond(toBytes(reply))
  })
  const down: number[] = []
  bus.subscribe(subjects.down, (message) => void down.push(decodeFrame(message.payload)!.seq))
  const heard: (number | string)[] = []
  const played: number[] = []
  const line = createUnbrokenLine({
    ...deps,
    isKept: true,
    firstHeard: 0,
    take: ({ seq }) => void heard.push(seq),
    leftOut: (frames) => void heard.push(`-${frames}`),
    takeKey: (event) => void heard.push(event.type === 'dtmf' ? event.digit : event.text),
    caughtUp: (seq) => void played.push(seq),
  })
  const hearing = hearLine(deps, line)
  const say = (...seqs: number[]): void => line.send(seqs.map((seq) => ({ seq, payload })))
  const settle = async (): Promise<void> => {
    for (let round = 0; round < 20; round++) await bus.flush()
  }
  /** So many ms pass. */
  const pass = async (ms: number): Promise<void> => {
    for (let at = 0; at < ms; at += 250) {
      clock.advance(250)
      await settle()
    }
  }
  return { up, gap, key, tell, asked, down, heard, played, line, hearing, say, settle, pass, clock }
}

/** Of a leg of an older version: it does not say what it has. */
const caughtUp = { type: 'caught_up', played: -1, taken: -1 } as const
const has = (first: number) => ({ ...caughtUp, first })

test('frames of which the leg has the newest only are heard from there on; what came before is not heard twice', async (t) => {
  for (const [reply, left] of [
    [has(4), ['-2']],
    [caughtUp, []],
  ] as const) {
    const line = open((_, up) => {
      up([4, 5, 6, 7, 8])
      return reply
    })
    line.up([0, 1, 1, 0, 7, 8])
    await line.settle()
    line.up([8, 9])
    await line.settle()
    t.same(line.heard, [0, 1, ...left, 4, 5, 6, 7, 8, 9])
    t.same(line.asked, [1, left.length > 0 ? 3 : 1], 'once more for those that came before their answer')
  }
})

test('what of the missing is lost again is asked for again, as long as it takes, and nothing overtakes it', async (t) => {
  let times = 0
  const line = open((heard, up) => {
    // For a while all of it, then of what is sent again every second one.
    if (++times > 4) up([heard + 1, heard + 3, 10].filter((seq) => seq <= 10))
    return has(heard + 1)
  })
  line.up([0, 10])
  await line.settle()
  t.equal(line.asked.length, 3, 'at once')
  await line.pass(20_000)
  t.same(line.heard, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  t.equal(line.clock.pending(), 0)
  line.up([11, 13])
  times = -100
  await line.settle()
  t.ok(line.clock.pending() > 0, 'it waits to ask once more')
  line.hearing.close()
  await line.settle()
  t.equal(line.clock.pending(), 0, 'a line that is closed waits for nothing')
})

test('a leg that answers nobody is asked for two minutes at most, ever more slowly; what the agent says meanwhile is for it when it does', async (t) => {
  let isThere = false
  const line = open(() => (isThere ? { ...has(1), taken: 0 } : null))
  line.say(0)
  line.up([0, 5])
  await line.settle()
  line.say(1, 2)
  await line.pass(60_000)
  t.same(line.down, [0], 'nothing overtakes what may be lost')
  t.ok(line.asked.length <= 20, `${line.asked.length} questions`)
  isThere = true
  await line.pass(5_000)
  t.same([...new Set(line.down)], [0, 1, 2])
  line.say(3)
  t.same(line.heard, [0])
  await line.pass(60_000)
  line.up([6, 7])
  await line.settle()
  t.same(line.heard, [0, 6, 7], 'then it goes on from where it is')
  t.same(line.down.includes(3), true)
  t.equal(line.clock.pending(), 0)
})

test('frames that are lost once more are asked for once more; a leg that has none costs no more than those', async (t) => {
  let times = 0
  const lossy = open((_, up) => {
    if (++times === 2) up([1, 2, 3])
    return has(1)
  })
  lossy.up([0, 3])
  await lossy.settle()
  t.same(lossy.heard, [0, 1, 2, 3])
  const empty = open(() => ({ type: 'refused', details: 'not a command' }))
  empty.up([0, 9])
  await empty.settle()
  empty.up([10, 11])
  await empty.settle()
  t.same(empty.heard, [0, 10, 11])
  t.equal(empty.asked.length, 3)
})

test('the leg gets of the agent what it has not taken, in order, and what is said meanwhile behind it', async (t) => {
  let newest = 2
  const line = open((heard, up) => {
    up(Array.from({ length: newest - heard }, (_, at) => heard + 1 + at))
    return { type: 'caught_up', played: 1, taken: 2, first: heard + 1 }
  })
  line.say(0, 1, 2, 3, 4)
  line.up([0, 2])
  await line.settle()
  t.same(line.down, [0, 1, 2, 3, 4, 3, 4])
  t.same(line.played, [1])
  line.line.played(3)
  line.say(5)
  newest = 5
  line.up([3, 5])
  await line.settle()
  t.same(line.down.slice(7), [5, 4, 5])
  line.line.cut()
  newest = 9
  line.up([9])
  await line.settle()
  t.same(line.down.slice(10), [], 'what was cut off is not sent again')
})

test('what the leg has left out is not waited for, however often it did; what is lost behind it is', async (t) => {
  let times = 0
  const stage = open((heard, up) => {
    times++
    if (heard === 0) {
      stage.gap(3)
      up([4])
      stage.gap(6)
    } else up([7, 8, 9, 10])
    return caughtUp
  })
  stage.up([0, 9])
  await stage.settle()
  stage.up([10])
  await stage.settle()
  t.same(stage.heard, [0, '-3', 4, '-2', 7, 8, 9, 10])
  t.same(stage.asked, [0, 6])
  t.equal(times, 2)
})

test('a key has its place among the frames: lost with them it comes again with them, and one of another actor is none', async (t) => {
  const stage = open((_, up) => {
    up([2])
    stage.key(3)
    up([4, 5])
    return caughtUp
  })
  stage.up([0])
  stage.key(1, 7)
  stage.key(1)
  stage.up([2, 5])
  await stage.settle()
  stage.key(3)
  stage.key(6)
  stage.tell({ type: 'typed', text: 'of an older leg' })
  await stage.settle()
  t.same(stage.heard, [0, '#1', 2, '#3', 4, 5, '#6', 'of an older leg'])
})

test('a line that is closed takes and tells nothing more', async (t) => {
  const line = open(() => caughtUp)
  line.up([0, 2])
  line.say(0)
  await Promise.resolve()
  line.hearing.close()
  await line.settle()
  t.same(line.played, [])
})
