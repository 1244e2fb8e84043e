/** docs/supervision.md on what the caller says to a supervisor: an engine that only hears makes turns of it, at the times at which it was said. */
import { test, type Test } from 'tap'
import { createLocalBus } from '../../actors/bus/local-bus.ts'
import type { CallFact } from '../../actors/call/call-event.ts'
import { createAttendance } from '../../actors/conversation/attendance.ts'
import { createUsageMeter } from '../../actors/conversation/usage-meter.ts'
import { subjectsOf } from '../../model/bus.ts'
import { encodeFrame } from '../../model/frame.ts'
import type { CallId } from '../../model/ids.ts'
import type { AttendEvent, Attending, VoiceEngine } from '../../model/voice-engine.ts'
import { effectiveConfigOf } from '../../model/worker.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { idleSession } from '../fake/idle-session.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createScriptedEngine } from '../fake/scripted-engine.ts'

const callId = '0198c000-0000-7000-8000-000000000001' as CallId
const config = { callId, direction: 'inbound', language: 'en', worker: effectiveConfigOf({}) } as const
const [frameMs, side] = [20, 640]
type Words = Omit<Extract<AttendEvent, { type: 'user_text' }>, 'type'>
const words = (text: string, from: number, to: number, isFinal = true): Words => ({
  text,
  isFinal,
  confidence: 0.8,
  from,
  to,
})

function openScene(t: Test) {
  const [clock, log] = [createHandClock(), createQuietLog()]
  const bus = createLocalBus({ clock, log })
  t.teardown(() => bus.close())
  const answeredAt = clock.now()
  const facts: CallFact[] = []
  const heard: Uint8Array[] = []
  const told: string[] = []
  const opened = Promise.withResolvers<void>()
  const lastWords = Promise.withResolvers<void>()
  let emit: (event: AttendEvent) => void = () => undefined
  const session: Attending = {
    hear: (payload) => void heard.push(payload.slice()),
    hearOut() {
      told.push('hear out')
      return lastWords.promise
    },
    close: () => void told.push('close'),
  }
  const engine = {
    name: 'scripted',
    async attend(_: unknown, listener: typeof emit) {
      emit = listener
      await opened.promise
      return session
    },
  }
  const attendance = createAttendance(
    { callId, bus, clock, log, engine, post: (fact) => void facts.push(fact) },
    { config, answeredAt },
  )
  let seq = 0
  return {
    clock,
    log,
    heard,
    told,
    facts,
    opened,
    lastWords,
    attendance,
    says: (given: Words) => emit({ type: 'user_text', ...given }),
    fails: () => emit({ type: 'failed', details: 'gone', isRetryable: true }),
    lose(frames: number): void {
      seq += frames
      clock.advance(frames * frameMs)
    },
    /** Of a line: the caller's half is all ones, the other one all nines. */
    async pass(frames: number): Promise<void> {
      for (let sent = 0; sent < frames; sent++) {
        clock.advance(frameMs)
        const payload = new Uint8Array(2 * side).fill(1, 0, side).fill(9, side)
        bus.publish(subjectsOf(callId).heard, encodeFrame({ epoch: 0, seq: seq++, timestamp: 0, payload }))
        await bus.flush()
      }
    },
  }
}

test('what is understood of the caller, and of nobody else, is a turn at its time since the answer', async (t) => {
  const { clock, opened, pass, lose, says, heard, facts, attendance } = openScene(t)
  clock.advance(5_000)
  await pass(10)
  t.same(heard, [], 'it is not there yet')
  opened.resolve()
  await pass(40)
  t.equal(heard.length, 50, 'and hears what was said meanwhile')
  t.ok(heard.every((sound) => sound.length === side && sound.every((byte) => byte === 1)))
  says(words('I want', 100, 400, false))
  says(words('', 100, 400))
  says(words('I want to cancel.', 100, 800))
  lose(50)
  await pass(5)
  says(words('Hello?', 1_000, 1_100))
  t.same(facts, [
    {
      type: 'turn_committed',
      turn: { role: 'user', text: 'I want to cancel.', from: 5_100, to: 5_800, confidence: 0.8, source: 'scripted' },
    },
    {
      type: 'turn_committed',
      turn: { role: 'user', text: 'Hello?', from: 7_000, to: 7_100, confidence: 0.8, source: 'scripted' },
    },
  ])
  attendance.close()
  says(words('Too late.', 1_200, 1_300))
  await pass(5)
  t.equal(facts.length, 2)
  t.equal(heard.length, 55)
})

test('at the end of the call the last words are heard out, for a bounded time', async (t) => {
  const { opened, pass, says, told, facts, lastWords, attendance } = openScene(t)
  opened.resolve()
  await pass(10)
  const stopped = attendance.stop()
  await pass(10)
  t.same(told, ['hear out'])
  says(words('Good bye.', 0, 200))
  lastWords.resolve()
  await stopped
  t.same(told, ['hear out', 'close'])
  t.equal(facts.length, 1)

  const other = openScene(t)
  other.opened.resolve()
  await other.pass(1)
  const given = other.attendance.stop()
  other.clock.advance(4_000)
  await given
  t.same(other.told, ['hear out', 'close'], 'whatever the engine does')
})

test('an engine that comes late hears the newest ten seconds, and one that fails is let go', async (t) => {
  const late = openScene(t)
  await late.pass(600)
  late.opened.resolve()
  await late.pass(1)
  t.equal(late.heard.length, 501)
  late.says(words('Hello?', 0, 100))
  t.match(late.facts, [{ turn: { from: 2_000, to: 2_100 } }])
  late.fails()
  await late.pass(1)
  t.equal(late.heard.length, 501)
  t.same(late.told, ['close'])
  t.match(late.log.lines.at(-1), { level: 'warn', fields: { details: 'gone' } })

  const never = openScene(t)
  never.opened.reject(new Error('no such language'))
  await never.pass(3)
  t.match(never.log.lines, [{ level: 'warn' }])
  await never.attendance.stop()
  t.same(never.facts, [])
})

test('what an engine counts while it only hears is counted for the call, with the next turn', async (t) => {
  const meter = createUsageMeter()
  const told: AttendEvent[] = []
  const hearing: VoiceEngine = {
    ...createScriptedEngine(),
    async attend(_, emit) {
      emit({ type: 'used', model: 'ears-1', units: { transcribedMs: 900 } })
      emit({ type: 'user_text', ...words('Yes.', 0, 900) })
      return idleSession
    },
  }
  t.equal(
    meter.metered(createScriptedEngine()).attend,
    undefined,
    'who cannot hear without answering cannot here either',
  )
  await meter.metered(hearing).attend!(config, (event) => void told.push(event))
  t.same(
    told.map(({ type }) => type),
    ['user_text'],
  )
  const turn = { role: 'user', text: 'Yes.', from: 0, to: 900, confidence: null, source: 'scripted' } as const
  t.match(meter.withUsage({ type: 'turn_committed', turn }), {
    usage: { engines: [{ engine: 'scripted', model: 'ears-1', units: { transcribedMs: 900 } }], speechInMs: 900 },
  })
  t.equal(meter.rest(), null)
})
