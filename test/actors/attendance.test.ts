/** docs/supervision.md on what caller and supervisor say to each other: an engine that only hears makes turns of it, at the times at which it was said. */
import { test, type Test } from 'tap'
import { createLocalBus } from '../../actors/bus/local-bus.ts'
import type { CallFact } from '../../actors/call/call-event.ts'
import { createAttendance } from '../../actors/conversation/attendance.ts'
import { createUsageMeter } from '../../actors/conversation/usage-meter.ts'
import { subjectsOf } from '../../model/bus.ts'
import { encodeFrame } from '../../model/frame.ts'
import type { CallId } from '../../model/ids.ts'
import { EngineRefusal, type AttendEvent, type Attending, type VoiceEngine } from '../../model/voice-engine.ts'
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

type Options = { readonly standsIn?: Promise<void> }

/** The caller has the first session, the supervisor the second one; those behind are of who has lost one. */
function openScene(t: Test, { standsIn = Promise.resolve() }: Options = {}) {
  const [clock, log] = [createHandClock(), createQuietLog()]
  const bus = createLocalBus({ clock, log })
  t.teardown(() => bus.close())
  const answeredAt = clock.now()
  const facts: CallFact[] = []
  const opened = Promise.withResolvers<void>()
  const lastWords = Promise.withResolvers<void>()
  const sessions: { readonly heard: Uint8Array[]; readonly told: string[]; emit(event: AttendEvent): void }[] = []
  const engine = {
    name: 'scripted',
    async attend(_: unknown, emit: (event: AttendEvent) => void): Promise<Attending> {
      const [heard, told]: [Uint8Array[], string[]] = [[], []]
      sessions.push({ heard, told, emit })
      await opened.promise
      return {
        hear: (payload) => void heard.push(payload.slice()),
        hearOut() {
          told.push('hear out')
          return lastWords.promise
        },
        close: () => void told.push('close'),
      }
    },
  }
  const attendance = createAttendance(
    { callId, bus, clock, log, engine, post: (fact) => void facts.push(fact) },
    { config, answeredAt, standsIn },
  )
  let seq = 0
  const [caller, supervisor] = [0, 1].map((which) => ({
    heard: () => sessions[which]!.heard,
    told: () => sessions[which]!.told,
    says: (given: Words) => sessions[which]!.emit({ type: 'user_text', ...given }),
    fails: (isRetryable: boolean) => sessions[which]!.emit({ type: 'failed', details: 'gone', isRetryable }),
  })) as [Side, Side]
  return {
    clock,
    log,
    facts,
    sessions,
    opened,
    lastWords,
    attendance,
    caller,
    supervisor,
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

type Side = {
  heard(): Uint8Array[]
  told(): string[]
  says(given: Words): void
  fails(isRetryable: boolean): void
}

test('what is understood of caller and supervisor is a turn at its time since the answer', async (t) => {
  const { clock, opened, pass, lose, caller, supervisor, facts, attendance } = openScene(t)
  clock.advance(5_000)
  await pass(10)
  t.same(caller.heard(), [], 'it is not there yet')
  opened.resolve()
  await pass(40)
  t.equal(caller.heard().length, 50, 'and hears what was said meanwhile')
  t.ok(caller.heard().every((sound) => sound.length === side && sound.every((byte) => byte === 1)))
  t.equal(supervisor.heard().length, 50)
  t.ok(supervisor.heard().every((sound) => sound.length === side && sound.every((byte) => byte === 9)))
  caller.says(words('I want', 100, 400, false))
  caller.says(words('', 100, 400))
  caller.says(words('I want to cancel.', 100, 800))
  supervisor.says(words('Let me', 850, 900, false))
  supervisor.says(words('Let me see.', 850, 990))
  lose(50)
  await pass(5)
  caller.says(words('Hello?', 1_000, 1_100))
  const turn = (role: 'user' | 'agent', text: string, from: number, to: number) => {
    const source = role === 'user' ? 'scripted' : 'supervisor'
    return { type: 'turn_committed', turn: { role, text, from, to, confidence: 0.8, source } }
  }
  t.same(facts, [
    turn('user', 'I want to cancel.', 5_100, 5_800),
    turn('agent', 'Let me see.', 5_850, 5_990),
    turn('user', 'Hello?', 7_000, 7_100),
  ])
  attendance.close()
  caller.says(words('Too late.', 1_200, 1_300))
  supervisor.says(words('Too late.', 1_200, 1_300))
  await pass(5)
  t.equal(facts.length, 3)
  t.equal(caller.heard().length, 55)
})

test('what the agent still says, until the leg plays the supervisor, is not the supervisor', async (t) => {
  const playing = Promise.withResolvers<void>()
  const { opened, pass, caller, supervisor } = openScene(t, { standsIn: playing.promise })
  opened.resolve()
  await pass(10)
  playing.resolve()
  await pass(10)
  t.equal(caller.heard().length, 20)
  t.same(
    supervisor.heard().map((sound) => sound[0]),
    Array.from({ length: 20 }, (_, at) => (at < 10 ? 0 : 9)),
  )
})

test('at the end of the call the last words of both are heard out, for a bounded time', async (t) => {
  const { opened, pass, caller, supervisor, facts, lastWords, attendance } = openScene(t)
  opened.resolve()
  await pass(10)
  const stopped = attendance.stop()
  await pass(10)
  t.same(caller.told(), ['hear out'])
  caller.says(words('Good bye.', 0, 200))
  supervisor.says(words('Bye.', 0, 200))
  lastWords.resolve()
  await stopped
  t.same(
    [caller.told(), supervisor.told()],
    [
      ['hear out', 'close'],
      ['hear out', 'close'],
    ],
  )
  t.equal(facts.length, 2)

  const other = openScene(t)
  other.opened.resolve()
  await other.pass(1)
  const given = other.attendance.stop()
  other.clock.advance(4_000)
  await given
  t.same(other.caller.told(), ['hear out', 'close'], 'whatever the engine does')
})

test('an engine that comes late hears the newest ten seconds, and one that fails for good is let go', async (t) => {
  const late = openScene(t)
  await late.pass(600)
  late.opened.resolve()
  await late.pass(1)
  t.equal(late.caller.heard().length, 501)
  late.caller.says(words('Hello?', 0, 100))
  t.match(late.facts, [{ turn: { from: 2_000, to: 2_100 } }])
  late.caller.fails(false)
  late.clock.advance(60_000)
  await late.pass(1)
  t.equal(late.caller.heard().length, 501)
  t.equal(late.supervisor.heard().length, 502, 'the other one is heard on')
  t.equal(late.sessions.length, 2)
  t.match(late.log.lines.at(-1), { level: 'warn', fields: { who: 'caller', goesOn: false, details: 'gone' } })

  const never = openScene(t)
  never.opened.reject(new Error('no such language'))
  await never.pass(3)
  t.match(never.log.lines, [{ level: 'warn' }, { level: 'warn' }])
  await never.attendance.stop()
  t.same(never.facts, [])
})

test('a session that a provider ends is followed by another one, which hears what was said meanwhile', async (t) => {
  const { clock, opened, pass, sessions, caller, facts, attendance, log } = openScene(t)
  opened.resolve()
  await pass(100)
  caller.fails(true)
  caller.says(words('Of a session that is gone.', 0, 100))
  await pass(49)
  t.equal(sessions.length, 2)
  await pass(1)
  await pass(10)
  t.equal(sessions.length, 3)
  t.equal(sessions[2]!.heard.length, 60)
  sessions[2]!.emit({ type: 'user_text', ...words('Are you there?', 100, 500) })
  t.match(facts, [{ turn: { role: 'user', text: 'Are you there?', from: 2_100, to: 2_500 } }])
  for (let failed = 2; failed < 6; failed++) {
    sessions[failed]!.emit({ type: 'failed', details: 'gone', isRetryable: true })
    clock.advance(1_000)
    await pass(1)
  }
  t.equal(sessions.length, 7)
  sessions[6]!.emit({ type: 'failed', details: 'gone', isRetryable: true })
  clock.advance(60_000)
  await pass(1)
  t.equal(sessions.length, 7, 'five at once, and no more')
  t.match(log.lines.at(-1), { fields: { goesOn: false } })
  attendance.close()

  const refused = openScene(t)
  refused.opened.reject(new EngineRefusal('busy', true))
  await refused.pass(1)
  refused.attendance.close()
  refused.clock.advance(60_000)
  t.equal(refused.sessions.length, 2, 'and none once the agent has the call back')
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
  const byPerson = { ...turn, role: 'agent', source: 'supervisor' } as const
  t.match(meter.withUsage({ type: 'turn_committed', turn: byPerson }), { usage: { speechInMs: 0, speechOutMs: 0 } })
  t.equal(meter.rest(), null)
})
