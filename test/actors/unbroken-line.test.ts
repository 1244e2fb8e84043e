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
function open(leg: (heard: number, up: (seqs: readonly number[]) => void) => LegReply) {
  const bus = createLocalBus({ log: createQuietLog(), clock: createHandClock() })
  const deps = { bus, callId: newId<'call'>(), epoch: 1 }
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
    message.respond(toBytes(leg(command.heard, up)))
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
  return { up, gap, key, tell, asked, down, heard, played, line, hearing, say, settle }
}

const caughtUp = { type: 'caught_up', played: -1, taken: -1 } as const

test('frames of which the leg has the newest only are heard from there on; what came before is not heard twice', async (t) => {
  const line = open((_, up) => {
    up([4, 5, 6, 7])
    return caughtUp
  })
  line.up([0, 1, 1, 0, 7, 8])
  await line.settle()
  line.up([8, 9])
  await line.settle()
  t.same(line.heard, [0, 1, 4, 5, 6, 7, 8, 9])
  t.same(line.asked, [1])
})

test('frames that are lost once more are asked for once more; a leg that has none costs no more than those', async (t) => {
  let times = 0
  const lossy = open((_, up) => {
    if (++times === 2) up([1, 2, 3])
    return caughtUp
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
  const line = open(() => ({ type: 'caught_up', played: 1, taken: 2 }))
  line.say(0, 1, 2, 3, 4)
  line.up([0, 2])
  await line.settle()
  t.same(line.down, [0, 1, 2, 3, 4, 3, 4])
  t.same(line.played, [1])
  line.line.played(3)
  line.say(5)
  line.up([3, 5])
  await line.settle()
  t.same(line.down.slice(7), [5, 4, 5])
  line.line.cut()
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
