/** Who speaks, who is heard and who interrupts whom, between a scripted engine and a scripted leg on the real in-process bus. */
import { test, type Test } from 'tap'
import { createLocalBus } from '../../actors/bus/local-bus.ts'
import type { CallFact } from '../../actors/call/call-event.ts'
import { createUtterances, heardText } from '../../actors/conversation/utterances.ts'
import { createConversation } from '../../actors/conversation/conversation.ts'
import { createSessionKeeper } from '../../actors/conversation/session-keeper.ts'
import type { CallId } from '../../model/ids.ts'
import type { EngineEvent, EngineSession, Said } from '../../model/voice-engine.ts'
import type { ServerMessage } from '../../model/signaling.ts'
import { effectiveConfigOf } from '../../model/worker.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { callConfig } from '../scenes/spoken-call.ts'
import { idleSession } from '../fake/idle-session.ts'
import { createRandom } from '../fake/random.ts'
import { createScriptedEngine } from '../fake/scripted-engine.ts'
import { createScriptedLeg } from '../fake/scripted-leg.ts'

const callId = '0192f000-0000-7000-8000-000000000001' as CallId
const pcm16 = { encoding: 'pcm16', rateHz: 16000 } as const

type Stage = Awaited<ReturnType<typeof open>>

type Options = {
  failsToOpen?: string
  withoutLeg?: boolean
  history?: readonly Said[]
  transcriptEvents?: 'interim'
  hearOut?(emit: (event: EngineEvent) => void): Promise<void>
}

async function open(t: Pick<Test, 'teardown'>, options: Options = {}) {
  const log = createQuietLog()
  const clock = createHandClock()
  const bus = createLocalBus({ log, clock })
  const leg = createScriptedLeg(bus, callId)
  if (options.withoutLeg) leg.close()
  const engine = createScriptedEngine(options)
  const facts: CallFact[] = []
  const messages: ServerMessage[] = []
  const conversation = createConversation(
    {
      callId,
      epoch: 3,
      bus,
      engine,
      clock,
      log,
      post: (fact) => void facts.push(fact),
      signal: (m) => void messages.push(m),
    },
    {
      config: {
        callId,
        direction: 'inbound',
        language: 'en',
        worker: effectiveConfigOf(options.transcriptEvents ? { transcriptEvents: options.transcriptEvents } : {}),
        script: null,
        instructions: null,
        context: null,
        customer: null,
        tools: [],
        history: options.history ?? [],
        owesReply: false,
        memory: null,
      },
      recording: { key: 'a/b.wav', mode: 'split' },
      answeredAt: clock.now(),
      turns: 0,
    },
  )
  const unsubscribe = bus.subscribe('call.*.leg.event', (message) =>
    conversation.legEvent(JSON.parse(new TextDecoder().decode(message.payload))),
  )
  t.teardown(async () => {
    unsubscribe.close()
    await bus.close()
  })
  await conversation.open()
  const turns = () => facts.flatMap((fact) => (fact.type === 'turn_committed' ? [fact.turn] : []))
  return { bus, clock, leg, engine, facts, messages, conversation, turns, settle: () => bus.flush() }
}

async function playAll(stage: Stage, frames: number): Promise<void> {
  await stage.settle()
  stage.leg.play(frames)
  await stage.settle()
}

test('what the agent says becomes a turn when it has been heard, with its offsets from the answer', async (t) => {
  const stage = await open(t)
  stage.clock.advance(1500)
  stage.engine.say('a', 'Good morning', 50)
  await playAll(stage, 49)
  t.same(stage.turns(), [], 'not before the last frame was played')
  await playAll(stage, 1)
  t.match(stage.turns(), [{ role: 'agent', text: 'Good morning', from: 1500, to: 2500, source: 'scripted' }])
  t.same(stage.engine.told, ['played:a'])
})

test('a caller who speaks over the agent silences it, and the turn says only what was heard', async (t) => {
  const stage = await open(t)
  stage.engine.say('a', 'one two three four five six seven eight nine ten', 100)
  await playAll(stage, 40)
  stage.engine.emit({ type: 'user_speech_started', at: 800 })
  await stage.settle()
  await stage.settle()
  t.equal(stage.leg.waiting(), 0, 'the leg forgot what was not played')
  t.same(stage.engine.told, ['interrupt:a@800'])
  t.match(stage.turns(), [{ text: 'one two three four', from: 0, to: 800 }])
  t.ok(stage.messages.some((message) => message.type === 'interrupted'))
})

test('what was heard of an agent that is cut off is a turn before the words that did it, however early they are known', async (t) => {
  const stage = await open(t)
  stage.engine.say('a', 'one two three four five six seven eight nine ten', 100)
  await playAll(stage, 40)
  // As an engine tells what was typed.
  stage.engine.emit({ type: 'user_speech_started', at: 800 })
  stage.engine.emit({ type: 'user_speech_stopped', at: 800 })
  stage.engine.emit({ type: 'user_text', text: 'stop', isFinal: true, confidence: 1, from: 800, to: 800 })
  stage.engine.emit({ type: 'memory', memory: { stopped: true } })
  await stage.settle()
  await stage.settle()
  stage.engine.say('b', 'as you like', 10)
  await playAll(stage, 10)
  t.match(stage.turns(), [
    { role: 'agent', text: 'one two three four' },
    { role: 'user', text: 'stop' },
    { role: 'agent', text: 'as you like' },
  ])
  const memories = stage.facts.flatMap((fact) => (fact.type === 'turn_committed' ? [fact.memory] : []))
  t.same(memories, [null, null, { stopped: true }], 'and carries nothing of what follows from them')
})

test('an utterance that nobody heard leaves no turn, and a silent agent is not interrupted', async (t) => {
  const stage = await open(t)
  stage.engine.say('a', 'never heard', 10)
  stage.engine.emit({ type: 'user_speech_started', at: 0 })
  await stage.settle()
  await stage.settle()
  t.same(stage.turns(), [])
  t.same(stage.engine.told, ['interrupt:nothing'])
  stage.engine.emit({ type: 'user_speech_started', at: 400 })
  await stage.settle()
  t.equal(stage.engine.told.length, 1)
})

test("the caller's words become a turn when they are final; partial ones are shown, and known to the call", async (t) => {
  const stage = await open(t)
  const words = { type: 'user_text', confidence: 0.9, from: 100, to: 900 } as const
  stage.engine.emit({ ...words, text: 'ye', isFinal: false })
  stage.engine.emit({ type: 'memory', memory: { step: 2 } })
  stage.engine.emit({ ...words, text: 'yes', isFinal: true })
  t.match(stage.messages, [{ type: 'transcript', role: 'user', text: 'ye', isFinal: false, turnIndex: 0 }])
  t.match(stage.facts, [
    { type: 'caller_heard', words: { turn: { role: 'user', text: 'ye' } } },
    {
      type: 'turn_committed',
      turn: { role: 'user', text: 'yes', from: 100, to: 900, confidence: 0.9 },
      memory: { step: 2 },
    },
  ])
})

test('the call ends when the last words of the agent have been heard, not before', async (t) => {
  const stage = await open(t)
  stage.engine.say('bye', 'Goodbye', 20)
  stage.engine.emit({ type: 'finished', nextAction: 'call_back' })
  await playAll(stage, 19)
  t.notOk(stage.facts.some((fact) => fact.type === 'agent_finished'))
  stage.engine.emit({ type: 'user_speech_started', at: 100 })
  await stage.settle()
  t.equal(stage.leg.waiting(), 1, 'last words are not interrupted')
  await playAll(stage, 1)
  t.match(stage.facts.at(-1), { type: 'agent_finished', nextAction: 'call_back' })
})

test("the caller's frames reach the engine; frames of another epoch do not", async (t) => {
  const stage = await open(t)
  stage.leg.speak(3)
  stage.leg.speak(2)
  stage.leg.event({ type: 'dtmf', digit: '5' })
  stage.leg.event({ type: 'typed', text: 'Good morning.' })
  await stage.settle()
  t.equal(stage.engine.heardFrames(), 1)
  t.same(stage.engine.told, ['dtmf:5', 'typed:Good morning.'])
})

test('stopping commits what was heard so far and closes the session once', async (t) => {
  const stage = await open(t)
  stage.engine.say('a', 'alpha beta gamma delta', 40)
  await playAll(stage, 20)
  await stage.conversation.stop()
  await stage.conversation.stop()
  t.match(stage.turns(), [{ text: 'alpha beta' }])
  t.same(stage.engine.told, ['hear out', 'close'])
  stage.engine.say('b', 'after the end', 2)
  await stage.settle()
  t.equal(stage.leg.waiting(), 0)
})

test('an engine that cannot open, and a leg that is gone, are facts for the call', async (t) => {
  const broken = await open(t, { failsToOpen: 'no key' })
  t.match(broken.facts, [{ type: 'engine_failed', details: 'no key' }])
  const alone = await open(t, { withoutLeg: true })
  t.match(alone.facts, [{ type: 'leg_disconnected', cause: 'failed' }])
})

test('a talk that found no leg begins with the one that returns, which does not write into the recording that the former one has begun', async (t) => {
  const stage = await open(t, { withoutLeg: true })
  t.match(stage.facts, [{ type: 'leg_disconnected', gone: true, awaited: true }])
  const leg = createScriptedLeg(stage.bus, callId)
  await stage.conversation.rejoin()
  t.match(leg.commands, [{ type: 'ping' }, { type: 'start', recording: null }], 'one of before there were parts')
  t.equal(stage.engine.configs.length, 1)
})

test('a talk that has already begun with the leg which returns is left alone; with another one it begins anew', async (t) => {
  const stage = await open(t)
  stage.leg.answer('ping', { type: 'here', connected: true, ended: null, startedBy: 3 })
  await stage.conversation.rejoin()
  t.same(
    stage.leg.commands.map(({ type }) => type),
    ['start', 'ping'],
  )
  stage.leg.answer('ping', { type: 'here', connected: true, ended: null })
  await stage.conversation.rejoin()
  t.match(stage.leg.commands.at(-1), { type: 'start', recording: null })
  t.equal(stage.engine.configs.length, 1, 'the session goes on')
})

test('an engine that fails tells whether the caller has heard anything of it', async (t) => {
  const mute = await open(t)
  mute.engine.emit({ type: 'agent_text', itemId: 'a', text: 'Hello' })
  mute.engine.emit({ type: 'failed', details: 'gone', isRetryable: false })
  t.match(mute.facts, [{ type: 'engine_failed', details: 'gone', hasSpoken: false }])
  const heard = await open(t)
  heard.engine.say('a', 'Hello', 1)
  heard.engine.emit({ type: 'failed', details: 'gone', isRetryable: false })
  t.match(heard.facts, [{ type: 'engine_failed', hasSpoken: true }])
  const before = await open(t, { history: [{ role: 'agent', text: 'Hello' }] })
  before.engine.emit({ type: 'failed', details: 'gone', isRetryable: false })
  t.match(before.facts, [{ type: 'engine_failed', hasSpoken: true }], 'of an actor before this one')
})

test('the leg says in which format it speaks, and the session is told', async (t) => {
  const stage = await open(t)
  t.match(stage.leg.commands, [{ type: 'start', hears: [pcm16], speaks: [pcm16] }])
  t.same(stage.engine.configs[0]?.formats, { hears: pcm16, speaks: pcm16 })
})

test('a session that dies is opened again: it knows what was said, owes what was broken off, and hears what the caller said meanwhile', async (t) => {
  const stage = await open(t, { history: [{ role: 'agent', text: 'Hello' }] })
  const answer = { type: 'user_text', text: 'two, please', isFinal: true, confidence: 1, from: 0, to: 900 } as const
  stage.engine.emit(answer)
  stage.engine.emit({ type: 'memory', memory: { step: 4 } })
  stage.engine.emit({ type: 'audio', itemId: 'a', payload: new Uint8Array(640) })
  stage.clock.advance(3000)
  stage.engine.emit({ type: 'failed', details: 'connection lost', isRetryable: true })
  stage.leg.speak(3)
  await stage.settle()
  t.equal(stage.engine.configs.length, 2)
  t.match(stage.engine.configs[1], {
    history: [
      { role: 'agent', text: 'Hello' },
      { role: 'user', text: 'two, please' },
    ],
    owesReply: true,
    memory: { step: 4 },
  })
  t.equal(stage.engine.heardFrames(), 1)
  t.notOk(stage.facts.some(({ type }) => type === 'engine_failed'))
  stage.engine.emit({ ...answer, text: 'yes' })
  t.match(stage.turns().at(-1), { text: 'yes', from: 3000 }, 'times count from the answer, whichever session counts')
})

test('a provider whose sessions die again and again is down', async (t) => {
  const stage = await open(t)
  for (let death = 0; death < 10; death++) {
    stage.engine.emit({ type: 'failed', details: `death ${death}`, isRetryable: true })
    await stage.settle()
    stage.clock.advance(3000)
    await stage.settle()
  }
  t.match(stage.facts, [{ type: 'engine_failed', hasSpoken: false }])
  t.equal(stage.engine.configs.length, 6)
})

test('what ails a provider for some seconds is waited out: sessions that die as they are opened are opened again after ever longer rests', async (t) => {
  const stage = await open(t)
  const die = async (): Promise<number> => {
    stage.engine.emit({ type: 'failed', details: 'it answered 429', isRetryable: true })
    await stage.settle()
    return stage.engine.configs.length
  }
  t.equal(await die(), 2, 'the first one at once')
  for (const [rest, sessions] of [
    [500, 3],
    [1_000, 4],
    [1_500, 5],
  ] as const) {
    t.equal(await die(), sessions - 1)
    stage.clock.advance(rest - 1)
    await stage.settle()
    t.equal(stage.engine.configs.length, sessions - 1)
    stage.clock.advance(1)
    await stage.settle()
    t.equal(stage.engine.configs.length, sessions)
  }
  await die()
  await stage.conversation.stop()
  stage.clock.advance(10_000)
  await stage.settle()
  t.equal(stage.engine.configs.length, 5, 'nobody is there any more')
})

test('a session that is about to end is followed by another one when nobody speaks, and at the last moment', async (t) => {
  const stage = await open(t)
  stage.engine.say('a', 'One moment', 10)
  stage.engine.emit({ type: 'expiring', within: 60_000 })
  t.equal(stage.engine.configs.length, 1, 'the agent speaks')
  await playAll(stage, 10)
  t.equal(stage.engine.configs.length, 2)
  t.same(stage.engine.told, ['played:a', 'close'])
  t.match(stage.engine.configs[1], { history: [{ role: 'agent', text: 'One moment' }], owesReply: false })
  stage.engine.emit({ type: 'user_speech_started', at: 0 })
  stage.engine.emit({ type: 'expiring', within: 60_000 })
  await stage.settle()
  t.equal(stage.engine.configs.length, 2, 'the caller speaks')
  stage.clock.advance(55_000)
  await stage.settle()
  t.equal(stage.engine.configs.length, 3)
})

test('a session that ends while the caller waits for an answer is not given up in that pause, and what follows it owes the answer', async (t) => {
  const stage = await open(t)
  stage.engine.emit({ type: 'expiring', within: 60_000 })
  await stage.settle()
  const before = stage.engine.configs.length
  stage.engine.emit({ type: 'expiring', within: 60_000 })
  await stage.settle()
  const speaks = (text: string | null) => {
    stage.engine.emit({ type: 'user_speech_started', at: 0 })
    stage.engine.emit({ type: 'user_speech_stopped', at: 900 })
    if (text !== null) stage.engine.emit({ type: 'user_text', text, isFinal: true, confidence: null, from: 0, to: 900 })
  }
  const [first] = [stage.engine.configs.length]
  t.ok(first > before, 'nobody spoke: at once')
  stage.engine.emit({ type: 'user_speech_started', at: 0 })
  stage.engine.emit({ type: 'expiring', within: 60_000 })
  speaks('Is it open?')
  await stage.settle()
  t.equal(stage.engine.configs.length, first, 'an answer is due')
  stage.engine.say('a', 'Yes, until six.', 5)
  await playAll(stage, 5)
  t.equal(stage.engine.configs.length, first + 1)
  t.match(stage.engine.configs.at(-1), { owesReply: false })
  speaks(null)
  stage.engine.emit({ type: 'failed', details: 'lost', isRetryable: true })
  await stage.settle()
  t.match(stage.engine.configs.at(-1), { owesReply: true }, 'what the caller said before nobody knows, and they wait')
  speaks('')
  stage.engine.emit({ type: 'expiring', within: 60_000 })
  await stage.settle()
  t.equal(stage.engine.configs.length, first + 3, 'noise is answered by nobody')
})

test('an answer that is complete and on its way when its session dies is not given again', async (t) => {
  const stage = await open(t, { history: [{ role: 'user', text: 'Is it open?' }] })
  stage.engine.say('a', 'Yes, until six.', 100)
  await playAll(stage, 10)
  stage.engine.emit({ type: 'failed', details: 'lost', isRetryable: true })
  await stage.settle()
  t.match(stage.engine.configs[1], {
    history: [
      { role: 'user', text: 'Is it open?' },
      { role: 'agent', text: 'Yes, until six.' },
    ],
    owesReply: false,
  })
})

test('a session that dies while a tool is at work does not ask for it again: the result asks for the reply', async (t) => {
  const stage = await open(t, { history: [{ role: 'user', text: 'Book it.' }] })
  stage.engine.emit({ type: 'tool_call', id: 't1', name: 'book', arguments: {} })
  stage.engine.emit({ type: 'failed', details: 'lost', isRetryable: true })
  await stage.settle()
  t.match(stage.engine.configs[1], { owesReply: false })
})

test('whoever speaks when a session dies, somebody speaks in the next one, however many die before it does', async (t) => {
  const stage = await open(t)
  stage.engine.say('a', 'What is your name?', 5)
  await playAll(stage, 5)
  const die = async () => {
    stage.engine.emit({ type: 'failed', details: 'lost', isRetryable: true })
    await stage.settle()
    stage.clock.advance(2_000)
    await stage.settle()
  }
  stage.engine.emit({ type: 'user_speech_started', at: 0 })
  await die()
  t.match(stage.engine.configs.at(-1), { owesReply: true }, 'the caller spoke')
  await die()
  t.match(stage.engine.configs.at(-1), { owesReply: true }, 'and has not been answered since')
  stage.engine.say('b', 'Your name, please?', 5)
  await playAll(stage, 5)
  await die()
  t.match(stage.engine.configs.at(-1), { owesReply: false })
})

test('a text that its session took with it holds up nothing', async (t) => {
  const stage = await open(t)
  stage.engine.emit({ type: 'user_speech_stopped', at: 900 })
  stage.engine.say('a', 'Sure, done.', 5)
  await playAll(stage, 5)
  stage.engine.emit({ type: 'expiring', within: 60_000 })
  await stage.settle()
  t.equal(stage.engine.configs.length, 1, 'a text is still to come')
  stage.engine.emit({ type: 'failed', details: 'lost', isRetryable: true })
  await stage.settle()
  t.match(stage.turns(), [{ text: 'Sure, done.' }])
  t.match(stage.engine.configs[1], { history: [{ role: 'agent', text: 'Sure, done.' }], owesReply: false })
})

test('the result of a tool that nobody has heard of goes to the next session, which owes no other reply', async (t) => {
  const stage = await open(t, { history: [{ role: 'user', text: 'Book it.' }] })
  stage.engine.emit({ type: 'tool_call', id: 't1', name: 'book', arguments: {} })
  stage.engine.emit({ type: 'expiring', within: 60_000 })
  stage.conversation.toolResult('t1', 'book', { status: 'success', data: {} })
  await stage.settle()
  t.equal(stage.engine.configs.length, 1, 'the agent is to speak about it first')
  stage.engine.emit({ type: 'failed', details: 'lost', isRetryable: true })
  await stage.settle()
  t.match(stage.engine.configs[1], { owesReply: false })
  t.same(stage.engine.told, ['result:t1:book:success', 'result:t1:book:success'])
  stage.engine.say('a', 'It is booked.', 5)
  await playAll(stage, 5)
  stage.engine.emit({ type: 'failed', details: 'lost', isRetryable: true })
  await stage.settle()
  stage.clock.advance(2_000)
  await stage.settle()
  t.equal(stage.engine.configs.length, 3)
  t.equal(stage.engine.told.filter((line) => line.startsWith('result')).length, 2, 'and not to the one after that')
})

test('sessions that lived long before they died are no sign of a provider that is down', async (t) => {
  const stage = await open(t)
  for (let death = 0; death < 8; death++) {
    for (let frame = 0; frame <= 3_000; frame++) stage.leg.speak(3)
    await stage.settle()
    stage.engine.emit({ type: 'failed', details: `death ${death}`, isRetryable: true })
    await stage.settle()
  }
  t.equal(stage.engine.configs.length, 9)
  t.same(stage.facts, [])
})

test('the first session is waited for eight seconds; one that comes later is closed', async (t) => {
  const clock = createHandClock()
  const engine = createScriptedEngine()
  const { promise, resolve } = Promise.withResolvers<EngineSession>()
  const lost: string[] = []
  const none = { history: [], owesReply: false, memory: null }
  const keeper = createSessionKeeper({
    engine: { ...engine, open: () => promise },
    clock,
    log: createQuietLog(),
    config: { ...callConfig(), ...none },
    known: () => none,
    isQuiet: () => true,
    take: () => {},
    opened: () => t.fail('it came too late'),
    lost: (details) => void lost.push(details),
  })
  const opening = keeper.open()
  clock.advance(7_900)
  t.same(lost, [])
  clock.advance(200)
  await opening
  t.match(lost, [/in time/])
  let closed = 0
  resolve({ ...idleSession, close: () => void closed++ })
  await promise
  await Promise.resolve()
  t.equal(closed, 1)
})

test('a death ends the expiry of its session, and keys pressed and words typed before the next one are not lost, up to a bound', async (t) => {
  const stage = await open(t)
  stage.engine.say('a', 'Hello', 5)
  stage.engine.emit({ type: 'expiring', within: 60_000 })
  stage.engine.emit({ type: 'failed', details: 'lost', isRetryable: true })
  stage.conversation.legEvent({ type: 'dtmf', digit: '4' })
  for (let typed = 0; typed < 20; typed++) stage.conversation.legEvent({ type: 'typed', text: `text ${typed}` })
  await stage.settle()
  t.same(stage.engine.told, ['dtmf:4', ...Array.from({ length: 8 }, (_, typed) => `typed:text ${typed}`)])
  await playAll(stage, 5)
  stage.clock.advance(70_000)
  await stage.settle()
  t.equal(stage.engine.configs.length, 2)
})

test('a caller who begins to speak twice at once cuts the agent off once', async (t) => {
  const stage = await open(t)
  stage.engine.say('a', 'one two three four five', 50)
  await playAll(stage, 20)
  stage.engine.emit({ type: 'user_speech_started', at: 400 })
  stage.engine.emit({ type: 'user_speech_started', at: 400 })
  await stage.settle()
  await stage.settle()
  t.same(stage.engine.told, ['interrupt:a@400'])
})

test('what the log cannot keep is refused where the model can mend it, or left out; the call goes on', async (t) => {
  const stage = await open(t)
  stage.engine.emit({ type: 'tool_call', id: 't1', name: 'look', arguments: { key: 'a\0b' } })
  t.same(stage.facts, [])
  t.same(stage.engine.told, ['result:t1:look:error'])
  stage.engine.emit({ type: 'tool_call', id: 't\ud800', name: 'look', arguments: {} })
  t.same(stage.facts, [])
  stage.engine.emit({ type: 'noted', key: 'name', value: '\ud800' })
  t.same(stage.facts, [])
  stage.engine.emit({ type: 'memory', memory: { step: 1 } })
  stage.engine.emit({ type: 'memory', memory: { step: '\0' } })
  const said = { type: 'user_text', isFinal: true, confidence: null, from: 0, to: 900 } as const
  stage.engine.emit({ ...said, text: 'Yes\0 \ud800please' })
  t.match(stage.facts, [{ turn: { text: 'Yes \ufffdplease' }, memory: { step: 1 } }])
})

test('of too many tools at once the last are refused, and asked for again when there is room', async (t) => {
  const stage = await open(t)
  const call = (id: string) => stage.engine.emit({ type: 'tool_call', id, name: 'look', arguments: {} })
  for (let count = 0; count < 17; count++) call(`t${count}`)
  t.equal(stage.facts.length, 16)
  t.same(stage.engine.told, ['result:t16:look:error'])
  stage.conversation.toolResult('t0', 'look', { status: 'success', data: {} })
  call('t17')
  t.equal(stage.facts.length, 17)
})

test('texts that never get a sound are forgotten with their items', async (t) => {
  const stage = await open(t)
  for (let count = 0; count < 100; count++) {
    stage.engine.emit({ type: 'agent_text', itemId: `mute-${count}`, text: 'Never heard' })
    stage.engine.emit({ type: 'item_done', itemId: `mute-${count}` })
  }
  stage.engine.say('a', 'Good morning', 5)
  t.match(stage.messages.at(-1), { text: 'Good morning', turnIndex: 0 })
  await playAll(stage, 5)
  t.match(stage.turns(), [{ text: 'Good morning' }])
})

test("the agent's answer stands after what the caller said, however late that is known", async (t) => {
  const stage = await open(t)
  const said = { type: 'user_text', isFinal: true, confidence: null, from: 0, to: 900 } as const
  stage.engine.emit({ type: 'user_speech_started', at: 0 })
  stage.engine.emit({ type: 'user_speech_stopped', at: 900 })
  stage.engine.say('a', 'Of course', 5)
  await playAll(stage, 5)
  t.same(stage.turns(), [])
  stage.engine.emit({ ...said, text: 'Can you hear me?' })
  t.match(stage.turns(), [{ text: 'Can you hear me?' }, { text: 'Of course' }])
  stage.engine.emit({ type: 'user_speech_stopped', at: 2000 })
  stage.engine.emit({ ...said, text: '' })
  t.equal(stage.turns().length, 2, 'noise is no turn')
  stage.engine.emit({ type: 'user_speech_stopped', at: 3000 })
  stage.engine.say('b', 'Hello?', 5)
  await playAll(stage, 5)
  stage.clock.advance(8000)
  t.match(stage.turns().at(-1), { text: 'Hello?' }, 'a text that never comes holds up nothing for long')
})

const words = { type: 'user_text', confidence: 0.9, from: 100, to: 900 } as const

test('what the caller says as the talk ends is heard out: its text is a turn, and what it establishes is noted', async (t) => {
  const stage = await open(t, {
    async hearOut(emit) {
      emit({ type: 'user_speech_stopped', at: 900 })
      await new Promise(setImmediate)
      emit({ ...words, text: 'Yes, please', isFinal: true })
      emit({ type: 'noted', key: 'book', value: true })
      emit({ type: 'agent_text', itemId: 'a', text: 'Thank you' })
      emit({ type: 'audio', itemId: 'a', payload: new Uint8Array(640) })
      emit({ type: 'tool_call', id: 't', name: 'book', arguments: {} })
      emit({ type: 'finished', nextAction: 'call_back' })
    },
  })
  stage.engine.emit({ type: 'user_speech_started', at: 100 })
  stage.engine.emit({ ...words, text: 'Yes', isFinal: false })
  await stage.conversation.stop()
  t.same(stage.engine.told, ['hear out', 'close'])
  t.match(stage.facts, [
    { type: 'caller_heard', words: { turn: { role: 'user', text: 'Yes' }, notes: [] } },
    { type: 'turn_committed', turn: { role: 'user', text: 'Yes, please' } },
    { type: 'noted', key: 'book', value: true },
    { type: 'action_chosen', nextAction: 'call_back' },
  ])
  t.equal(stage.facts.length, 4, 'nothing is said or done any more')
  t.equal(stage.leg.waiting(), 0)
})

test('last words are waited for six seconds; then what was understood of them is the turn', async (t) => {
  const stage = await open(t, { hearOut: () => new Promise(() => undefined) })
  stage.engine.emit({ type: 'user_speech_started', at: 100 })
  stage.engine.emit({ ...words, text: 'Yes', isFinal: false })
  const stopped = stage.conversation.stop()
  await stage.settle()
  stage.clock.advance(5_999)
  await stage.settle()
  t.same(stage.turns(), [])
  stage.clock.advance(1)
  await stopped
  t.match(stage.turns(), [{ role: 'user', text: 'Yes' }])
  t.equal(stage.engine.told.at(-1), 'close')
})

test('a session that dies over the last words is not opened again, and is not waited for', async (t) => {
  const stage = await open(t, {
    hearOut(emit) {
      emit({ type: 'failed', details: 'gone', isRetryable: true })
      return new Promise(() => undefined)
    },
  })
  await stage.conversation.stop()
  stage.clock.advance(10_000)
  await stage.settle()
  t.equal(stage.engine.configs.length, 1)
  t.same(stage.facts, [])
})

test('words of a caller whose session died are a turn as far as they were understood, and history of the next one', async (t) => {
  const stage = await open(t)
  stage.engine.emit({ type: 'user_speech_started', at: 100 })
  stage.engine.emit({ ...words, text: 'I would like', isFinal: false })
  stage.engine.emit({ type: 'failed', details: 'gone', isRetryable: true })
  stage.clock.advance(500)
  await stage.settle()
  t.match(stage.turns(), [{ role: 'user', text: 'I would like' }])
  t.match(stage.engine.configs.at(-1), { history: [{ role: 'user', text: 'I would like' }], owesReply: true })
})

test('the call learns what is being said at once, then twice a second at most, and that it was nothing', async (t) => {
  const stage = await open(t)
  const heard = () =>
    stage.facts.flatMap((fact) => (fact.type === 'caller_heard' ? [fact.words?.turn.text ?? null] : []))
  const say = (text: string, isFinal = false) => stage.engine.emit({ ...words, text, isFinal })
  say('a')
  say('a b')
  say('a b c')
  t.same(heard(), ['a'])
  stage.clock.advance(500)
  t.same(heard(), ['a', 'a b c'])
  say('', true)
  t.same(heard(), ['a', 'a b c', null])
  stage.clock.advance(5_000)
  t.same(heard().length, 3)
})

test('what the agent says is told before it was heard only where somebody wants to read along', async (t) => {
  const plain = await open(t)
  const reading = await open(t, { transcriptEvents: 'interim' })
  for (const { engine } of [plain, reading]) engine.emit({ type: 'agent_text', itemId: 'a', text: 'Good morning' })
  t.same(plain.facts, [])
  const turn = { role: 'agent', text: 'Good morning', confidence: null, source: 'scripted' }
  t.same(reading.facts, [{ type: 'turn_shown', index: 0, turn }])
})

test("the agent's next turn, shown or told, never comes before the caller's final text, however early it begins", async (t) => {
  const stage = await open(t)
  stage.engine.say('a', 'How are you?', 5)
  await playAll(stage, 5)
  const order = () =>
    stage.messages.flatMap((message) => (message.type === 'transcript' ? [`${message.role} ${message.turnIndex}`] : []))
  t.same(order(), ['agent 0'])
  stage.engine.emit({ type: 'user_speech_started', at: 100 })
  // A provider that hears the end of the turn before we do, and whose transcription is late.
  stage.engine.say('b', 'Fine.', 5)
  await playAll(stage, 5)
  stage.engine.emit({ type: 'user_speech_stopped', at: 900 })
  stage.engine.say('c', 'And now?', 5)
  t.same(order(), ['agent 0'], 'not shown')
  t.equal(stage.turns().length, 1, 'not told')
  stage.engine.emit({ ...words, text: 'Good, and', isFinal: false })
  stage.engine.emit({ ...words, text: 'Good, and you?', isFinal: true })
  t.same(order(), ['agent 0', 'user 1', 'agent 3'])
  t.same(
    stage.turns().map(({ text }) => text),
    ['How are you?', 'Good, and you?', 'Fine.'],
  )
  await playAll(stage, 5)
  t.equal(stage.turns().at(-1)?.text, 'And now?')
})

test("an agent's utterance is shown as it grows, under one number", async (t) => {
  const stage = await open(t)
  stage.engine.emit({ type: 'agent_text', itemId: 'a', text: 'Good' })
  stage.engine.emit({ type: 'agent_text', itemId: 'a', text: 'Good morning' })
  const shown = { type: 'transcript', role: 'agent', isFinal: false, turnIndex: 0 } as const
  t.match(stage.messages, [
    { ...shown, text: 'Good' },
    { ...shown, text: 'Good morning' },
  ])
})

test('a tool that the engine calls is a fact for the call, and its result goes to the session, also to the next one', async (t) => {
  const stage = await open(t)
  stage.engine.emit({ type: 'tool_call', id: 't1', name: 'lookup', arguments: { key: 'blue' } })
  t.match(stage.facts, [{ type: 'tool_called', id: 't1', name: 'lookup', arguments: { key: 'blue' } }])
  stage.engine.emit({ type: 'expiring', within: 60_000 })
  await stage.settle()
  t.equal(stage.engine.configs.length, 1, 'a session whose tool is under way is not given up')
  stage.conversation.toolResult('t1', 'lookup', { status: 'success', data: {} })
  t.same(stage.engine.told, ['result:t1:lookup:success'])
  stage.engine.emit({ type: 'tool_call', id: 't2', name: 'lookup', arguments: {} })
  stage.engine.emit({ type: 'failed', details: 'lost', isRetryable: true })
  stage.conversation.toolResult('t2', 'lookup', { status: 'error' })
  await stage.settle()
  t.same(stage.engine.told.at(-1), 'result:t2:lookup:error')
  stage.engine.emit({ type: 'tool_canceled', id: 't3' })
  t.match(stage.facts.at(-1), { type: 'tool_canceled', id: 't3' })
})

test('a turn that answers the caller says how long they waited for each stage of it', async (t) => {
  const stage = await open(t)
  for (let frame = 0; frame < 100; frame++) stage.leg.speak(3)
  await stage.settle()
  stage.engine.emit({ type: 'user_speech_started', at: 500 })
  stage.engine.emit({ type: 'user_speech_stopped', at: 1700 })
  stage.clock.advance(40)
  stage.engine.emit({ type: 'user_text', text: 'Hello', isFinal: true, confidence: 1, from: 500, to: 1700 })
  stage.clock.advance(60)
  stage.engine.emit({ type: 'agent_text', itemId: 'a', text: 'Hi' })
  stage.clock.advance(100)
  stage.engine.say('a', 'Hi', 5)
  stage.clock.advance(20)
  stage.leg.event({ type: 'sounding', seq: 0 })
  await playAll(stage, 5)
  const latency = { endOfTurn: 300, recognised: 340, decided: 400, firstAudio: 500, firstPacket: 520 }
  t.match(stage.turns(), [{ role: 'user' }, { role: 'agent', latency }])
  stage.engine.say('b', 'And one thing more', 5)
  await playAll(stage, 5)
  t.notOk('latency' in stage.turns()[2]!, 'nobody waited for it')
})

test('an answer that comes before we have found the end of the turn has its latency as well', async (t) => {
  const stage = await open(t)
  for (let frame = 0; frame < 100; frame++) stage.leg.speak(3)
  await stage.settle()
  stage.engine.emit({ type: 'user_speech_started', at: 500 })
  stage.clock.advance(100)
  stage.engine.emit({ type: 'audio', itemId: 'a', payload: new Uint8Array(640 * 5) })
  stage.clock.advance(20)
  stage.leg.event({ type: 'sounding', seq: 0 })
  await stage.settle()
  stage.clock.advance(30)
  stage.engine.emit({ type: 'user_speech_stopped', at: 1700 })
  stage.engine.emit({ type: 'user_text', text: 'Hello', isFinal: true, confidence: 1, from: 500, to: 1700 })
  stage.engine.emit({ type: 'agent_text', itemId: 'a', text: 'Hi' })
  stage.engine.emit({ type: 'item_done', itemId: 'a' })
  await playAll(stage, 5)
  t.match(stage.turns().at(-1), { role: 'agent', latency: { endOfTurn: 250, firstAudio: 250, firstPacket: 270 } })
})

test('sound of any length is cut into whole frames and nothing of it is lost', async (t) => {
  const random = createRandom(7)
  for (let round = 0; round < 50; round++) {
    const utterances = createUtterances(pcm16)
    const sound = Uint8Array.from({ length: 2 * (1 + random.below(5000)) }, () => random.below(256))
    const sent: Uint8Array[] = []
    for (let at = 0; at < sound.length;) {
      const until = Math.min(sound.length, at + 2 * (1 + random.below(900)))
      sent.push(...utterances.audio('a', sound.subarray(at, until), 0).map((frame) => frame.payload))
      at = until
    }
    sent.push(...(utterances.finish('a', 0) ?? []).map((frame) => frame.payload))
    const joined = Buffer.concat(sent)
    if (!joined.subarray(0, sound.length).equals(sound)) t.fail('sound was changed', { round })
    if (joined.length % 640 !== 0 || joined.length - sound.length >= 640) t.fail('frames are not whole', { round })
  }
  t.equal(heardText('yes of course', 1, 1), 'yes of course')
  t.equal(heardText('yes of course', 0, 10), '')
})
