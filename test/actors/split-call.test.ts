/** A call whose leg is in another process than its actor, over a real NATS server: what becomes of the talk when the bus is gone for a while, or the actor. */
import { test, type Test } from 'tap'
import type { CallFact } from '../../actors/call/call-event.ts'
import { subjectsOf } from '../../model/bus.ts'
import { toBytes } from '../../model/bus-json.ts'
import type { Turn } from '../../model/call.ts'
import type { LegCommand } from '../../model/leg.ts'
import type { VoiceEngine } from '../../model/voice-engine.ts'
import { createScriptedEngine } from '../fake/scripted-engine.ts'
import { until } from '../scenes/in-time.ts'
import { callId, openSplitCall } from '../scenes/split-call.ts'

const pcmu = { encoding: 'pcmu', rateHz: 8000 } as const

/** Takes what the wire has, and notes what it hears: one number for each frame, and keys between them. */
function listeningEngine() {
  const scripted = createScriptedEngine()
  const heard: (number | string)[] = []
  const engine: VoiceEngine = {
    ...scripted,
    hears: [pcmu],
    speaks: [pcmu],
    async open(config, emit) {
      const session = await scripted.open(config, emit)
      const note = (what: string) => void heard.push(what)
      return { ...session, hear: (payload) => void heard.push(payload[0]!), dtmf: note, typed: note }
    },
  }
  const say = (itemId: string, text: string, frames: readonly number[]): void => {
    scripted.emit({ type: 'agent_text', itemId, text })
    for (const mark of frames) scripted.emit({ type: 'audio', itemId, payload: new Uint8Array(160).fill(mark) })
    scripted.emit({ type: 'item_done', itemId })
  }
  return { ...scripted, engine, heard, say }
}

/** As the first actor tells it. */
const settledUpTo = (seq: number) =>
  [subjectsOf(callId).legCommand, toBytes({ type: 'settled', epoch: 1, seq } satisfies LegCommand)] as const
const agentSound = (sent: readonly { readonly payload: Uint8Array }[]): number[] =>
  sent.map(({ payload }) => payload[0]!).filter((mark) => mark < 0x60)
const turnOf = (facts: readonly CallFact[]): Turn => {
  const [fact] = facts
  if (fact?.type !== 'turn_committed') throw new Error('no turn')
  return fact.turn
}
const from = (first: number, count: number): number[] => Array.from({ length: count }, (_, index) => first + index)

test('what a caller says while NATS is gone is kept by the leg and heard when it is back, in order and once', async (t) => {
  const call = await openSplitCall(t)
  if (!call) return
  const { engine, heard } = listeningEngine()
  call.wire.connect()
  const actor = await call.openActor(1, engine)
  let said = 0
  const speak = (): void => call.wire.speak(new Uint8Array(160).fill(++said))
  await call.run(200, speak)
  await until(() => heard.length === 10)

  await call.stopNats()
  await call.run(600, speak)
  t.equal(heard.length, 10)
  await call.startNats()
  await call.run(40, speak)
  await until(
    () => heard.length === 42,
    () => heard,
  )
  t.same(heard, from(1, 42))
  t.same(actor.facts, [])
})

test('keys that are pressed while NATS is gone are heard when it is back, in their place and once; those of no actor by the next one', async (t) => {
  const call = await openSplitCall(t)
  if (!call) return
  const first = listeningEngine()
  call.wire.connect()
  call.leg.dtmf('0')
  const actor = await call.openActor(1, first.engine)
  let said = 0
  const speak = (): void => call.wire.speak(new Uint8Array(160).fill(++said))
  await call.run(40, speak)
  call.leg.dtmf('1')
  await call.run(20, speak)
  await call.stopNats()
  await call.run(40, speak)
  call.leg.dtmf('2')
  call.leg.typed('two')
  await call.run(40, speak)
  await call.startNats()
  await call.run(20, speak)
  const heard = ['0', 1, 2, '1', 3, 4, 5, '2', 'two', 6, 7, 8]
  await until(() => first.heard.length === heard.length)
  t.same(first.heard, heard)
  // All of it is written down.
  call.far.bus.publish(...settledUpTo(11))
  await call.settle()

  await call.run(20, speak)
  call.leg.dtmf('3')
  await call.settle()
  await actor.kill()
  await call.run(20, speak)
  call.leg.dtmf('4')
  await call.run(20, speak)
  const second = listeningEngine()
  const heir = await call.openActor(2, second.engine)
  await call.run(20, speak)
  await until(() => second.heard.length === 6)
  t.same(second.heard, [9, '3', 10, '4', 11, 12])

  // The keys are a turn that is written down, and the actor is gone before it could tell the leg.
  const turn: Turn = { role: 'user', text: '[pressed 3 4]', from: 0, to: 0, confidence: 1, source: 'test' }
  const settled = heir.conversation.settles(turn)
  await heir.kill()
  const third = listeningEngine()
  await call.openActor(3, third.engine, settled ? { settled } : {})
  await call.run(20, speak)
  await until(() => third.heard.length === 5)
  t.same(third.heard, [9, 10, 11, 12, 13])
})

test('what the agent says while NATS is gone is played when it is back; that it was heard out meanwhile is found', async (t) => {
  const call = await openSplitCall(t)
  if (!call) return
  const { engine, say, told } = listeningEngine()
  call.wire.connect()
  const actor = await call.openActor(1, engine)
  say('a', 'One two three', from(1, 10))
  await call.settle()
  await call.stopNats()
  say('b', 'Four five six', from(11, 10))
  await call.run(400)
  t.same(told, [], 'nobody could tell')
  const sound = (): number[] => agentSound(call.wire.sent)
  t.same(sound(), from(1, 10))

  await call.startNats()
  await call.run(40)
  await until(
    () => told.length === 1,
    () => told,
  )
  await call.settle()
  await call.run(300)
  await until(
    () => told.length === 2,
    () => told,
  )
  t.same(sound(), from(1, 20))
  t.same(told, ['played:a', 'played:b'])
  t.match(actor.facts, [{ turn: { text: 'One two three' } }, { turn: { text: 'Four five six' } }])
})

test('a sentence whose actor is gone is played to its end, is a turn of the next one, and is not said again', async (t) => {
  const call = await openSplitCall(t)
  if (!call) return
  const first = listeningEngine()
  call.wire.connect()
  const actor = await call.openActor(1, first.engine)
  first.emit({ type: 'memory', memory: { at: 'the question' } })
  first.say('a', 'When shall we come?', from(1, 20))
  await call.settle()
  await call.run(100)
  await actor.kill()
  await call.run(100)

  const second = listeningEngine()
  const heir = await call.openActor(2, second.engine)
  t.match(second.configs[0], {
    history: [{ role: 'agent', text: 'When shall we come?' }],
    memory: { at: 'the question' },
    owesReply: false,
    unheardMs: 200,
  })
  t.notOk('brokenOff' in second.configs[0]!)
  second.say('b', 'Hello?', from(21, 2))
  await call.settle()
  await call.run(400)
  t.same(agentSound(call.wire.sent), from(1, 22))
  await until(() => heir.facts.length === 2)
  t.match(heir.facts, [
    { type: 'turn_committed', turn: { text: 'When shall we come?' }, memory: { at: 'the question' } },
    { type: 'turn_committed', turn: { text: 'Hello?' } },
  ])
})

/** What the engine of the next actor is told, when that of the one before had said this and its process died. Undefined: without nats-server. */
async function toldAfter(t: Test, say: (engine: ReturnType<typeof listeningEngine>) => void) {
  const call = await openSplitCall(t)
  if (!call) return undefined
  const first = listeningEngine()
  call.wire.connect()
  const actor = await call.openActor(1, first.engine)
  first.emit({ type: 'memory', memory: { said: 0 } })
  say(first)
  first.emit({ type: 'memory', memory: { said: 1 } })
  await call.settle()
  await call.run(100)
  await actor.kill()
  const second = listeningEngine()
  await call.openActor(2, second.engine)
  return second.configs[0]
}

test('what an engine remembers behind a sentence that is being played counts for the next actor', async (t) => {
  const told = await toldAfter(t, (engine) => engine.say('a', 'Number one.', from(1, 20)))
  if (told) t.match(told, { history: [{ role: 'agent', text: 'Number one.' }], memory: { said: 1 } })
})

test('what an engine remembers while the sound of a sentence still comes is of what follows it', async (t) => {
  const told = await toldAfter(t, ({ emit }) => {
    emit({ type: 'agent_text', itemId: 'a', text: 'Number one.' })
    for (const mark of from(1, 5)) emit({ type: 'audio', itemId: 'a', payload: new Uint8Array(160).fill(mark) })
  })
  if (told) t.match(told, { memory: { said: 0 } })
})

test('a sentence of which not all sound was there is gone on with behind its last pause', async (t) => {
  const call = await openSplitCall(t)
  if (!call) return
  const first = listeningEngine()
  call.wire.connect()
  const actor = await call.openActor(1, first.engine)
  const text = 'We come on Monday, and we bring all that is needed.'
  first.emit({ type: 'agent_text', itemId: 'a', text })
  // "We come on Monday," at a usual pace.
  for (const mark of from(1, 60)) first.emit({ type: 'audio', itemId: 'a', payload: new Uint8Array(160).fill(mark) })
  await call.settle()
  await call.run(60)
  await actor.kill()

  const second = listeningEngine()
  const heir = await call.openActor(2, second.engine, { history: [{ role: 'user', text: 'When?' }] })
  t.match(second.configs[0], {
    history: [
      { role: 'user', text: 'When?' },
      { role: 'agent', text: 'We come on Monday,' },
    ],
    owesReply: true,
    brokenOff: { rest: 'and we bring all that is needed.' },
  })
  second.say('b', 'and we bring all that is needed.', from(61, 10))
  await call.settle()
  await call.run(1_500)
  t.same(agentSound(call.wire.sent), from(1, 70))
  await until(() => heir.facts.length === 2)
  t.match(heir.facts, [
    { turn: { text: 'We come on Monday,' } },
    { turn: { text: 'and we bring all that is needed.' } },
  ])
})

test('of a sentence that the caller broke off what was heard stays; one that is written down already is no second turn', async (t) => {
  const call = await openSplitCall(t)
  if (!call) return
  const first = listeningEngine()
  call.wire.connect()
  const actor = await call.openActor(1, first.engine)
  first.say('a', 'one two three four five', from(1, 50))
  await call.settle()
  await call.run(400)
  first.emit({ type: 'user_speech_started', at: 300 })
  await until(() => actor.facts.length === 1)
  await actor.kill()
  const turn = turnOf(actor.facts)

  const second = listeningEngine()
  const heir = await call.openActor(2, second.engine)
  t.match(second.configs[0], { history: [{ role: 'agent', text: turn.text }], owesReply: false })
  await until(() => heir.facts.length === 1)
  t.match(heir.facts, [{ type: 'turn_committed', turn: { text: turn.text, from: turn.from } }])
  await heir.kill()

  const third = listeningEngine()
  const last = await call.openActor(3, third.engine, {
    history: [{ role: 'agent', text: turn.text }],
    agentUntil: turn.from,
  })
  t.same(third.configs[0]?.history, [{ role: 'agent', text: turn.text }])
  await call.run(40)
  t.same(last.facts, [])
})

test('last words whose actor is gone end the call when they have been heard', async (t) => {
  const call = await openSplitCall(t)
  if (!call) return
  const first = listeningEngine()
  call.wire.connect()
  const actor = await call.openActor(1, first.engine)
  first.say('a', 'Good bye.', from(1, 10))
  first.emit({ type: 'finished', nextAction: 'call_back' })
  await call.settle()
  await actor.kill()

  const second = listeningEngine()
  const heir = await call.openActor(2, second.engine)
  await call.run(100)
  t.same(heir.facts, [])
  await call.run(300)
  await until(() => heir.facts.length === 2)
  t.match(heir.facts, [
    { type: 'turn_committed', turn: { text: 'Good bye.' } },
    { type: 'agent_finished', nextAction: 'call_back' },
  ])
})
