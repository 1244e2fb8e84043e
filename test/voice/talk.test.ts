/** One call of a hosted engine, whatever its provider: a wire that a test writes in the provider's place. */
import { test } from 'tap'
import type { EngineConfig, EngineEvent, EngineTool } from '../../model/voice-engine.ts'
import { effectiveConfigOf, type WorkerConfig } from '../../model/worker.ts'
import { advance } from '../../voice/engines/hosted/talk-machine.ts'
import { initialTalk, type TalkEvent, type TalkSetting, type TalkState } from '../../voice/engines/hosted/talk-state.ts'
import { openTalk } from '../../voice/engines/hosted/talk.ts'
import type { WireEvent } from '../../voice/engines/hosted/wire.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRandom } from '../fake/random.ts'

const format = { encoding: 'pcmu', rateHz: 8000 } as const
const frame = new Uint8Array(160).fill(0x55)
const begun = { type: 'reply_started', says: false } as const
const silence = new Uint8Array(160).fill(0xff)
const inputSchema: EngineTool['inputSchema'] = { type: 'object', properties: {}, required: [] }
const lookup: EngineTool = { name: 'look_up', description: 'Looks something up.', inputSchema }

type Over = Partial<EngineConfig> & { readonly settings?: WorkerConfig; readonly speaksWhileToolsRun?: boolean }

async function openScene({ settings = {}, speaksWhileToolsRun = false, ...over }: Over = {}) {
  const config: EngineConfig = {
    callId: 'a' as never,
    direction: 'inbound',
    language: 'en',
    worker: effectiveConfigOf(settings),
    script: 'Talk.',
    instructions: null,
    context: null,
    customer: null,
    tools: [lookup],
    formats: { hears: format, speaks: format },
    history: [],
    owesReply: false,
    memory: null,
    ...over,
  }
  const asked: string[] = []
  const heard: Uint8Array[] = []
  const events: EngineEvent[] = []
  let tell = (_: WireEvent): void => {}
  const log = createQuietLog()
  const clock = createHandClock()
  const session = await openTalk({
    config,
    clock,
    speaksWhileToolsRun,
    log,
    emit: (event) => void events.push(event),
    async openWire(_, emit) {
      tell = emit
      return {
        hear: (payload) => void heard.push(payload),
        interrupt: () => void asked.push('interrupt'),
        instruct: () => {},
        recall: ({ role, text }) => void asked.push(`recall ${role}: ${text}`),
        close: () => void asked.push('close'),
        lineClosed: () => void asked.push('line closed'),
        reply: (hint) => void asked.push(hint === null ? 'reply' : `reply: ${hint}`),
        say: (text) => void asked.push(`say: ${text}`),
        tell: (text) => void asked.push(`tell: ${text}`),
        answerTool: (id, _name, output) => void asked.push(`answer ${id}: ${JSON.stringify(output)}`),
      }
    },
  })
  await new Promise(setImmediate)
  const wait = (ms: number): void => {
    for (let passed = 0; passed < ms; passed += 20) session.hear(frame)
  }
  /** The model says this as one reply, and the caller hears all of it. */
  const say = (itemId: string, says = false): void => {
    tell({ type: 'reply_started', says })
    tell({ type: 'agent_text', itemId, text: itemId })
    tell({ type: 'audio', itemId, payload: frame })
    tell({ type: 'item_done', itemId })
    tell({ type: 'reply_done' })
    session.played(itemId)
  }
  const final = (text: string): void =>
    tell({ type: 'user_text', text, isFinal: true, confidence: null, from: 0, to: 100 })
  return {
    session,
    clock,
    asked,
    heard,
    events,
    log,
    wait,
    say,
    final,
    tell: (event: WireEvent) => tell(event),
    types: () => events.map(({ type }) => type),
    /** What was asked since the last time. */
    taken: () => asked.splice(0),
  }
}

test('an agent that was cut off by a cough goes on a moment later; one that was answered does not', async (t) => {
  const scene = await openScene()
  const { session, tell, taken, wait, final } = scene
  t.same(taken(), ['reply'])
  const cutOff = (): void => {
    tell(begun)
    tell({ type: 'audio', itemId: 'a1', payload: frame })
    tell({ type: 'user_speech_started', at: 100 })
    session.interrupt({ itemId: 'a1', playedMs: 20 })
    tell({ type: 'reply_done' })
    tell({ type: 'user_speech_stopped', at: 200 })
  }
  cutOff()
  t.same(taken(), ['interrupt'])
  final('')
  wait(500)
  t.same(taken(), [], 'not at once: the provider may answer by itself')
  wait(300)
  t.match(taken(), [/^reply: .*noise.*Go on/])
  wait(3_000)
  t.same(taken(), [], 'once')

  cutOff()
  final('No, stop.')
  wait(3_000)
  t.same(taken(), ['interrupt'], 'what the caller said is for the provider to answer')

  cutOff()
  final(' ')
  tell(begun)
  tell({ type: 'reply_done' })
  wait(3_000)
  t.same(taken(), ['interrupt'], 'a provider that goes on by itself is not asked')
})

test('a cough in a pause of the agent asks for nothing', async (t) => {
  const { say, tell, final, wait, taken } = await openScene()
  say('hello')
  taken()
  tell({ type: 'user_speech_started', at: 100 })
  tell({ type: 'user_speech_stopped', at: 200 })
  final('')
  wait(3_000)
  t.same(taken(), [])
})

test('a filler is said once while a tool takes its time, and not into what the caller says', async (t) => {
  const { say, tell, wait, taken, session } = await openScene({ speaksWhileToolsRun: true })
  say('hello')
  tell(begun)
  tell({ type: 'tool_call', id: 't1', name: 'look_up', arguments: {} })
  tell({ type: 'reply_done' })
  tell({ type: 'user_speech_started', at: 100 })
  taken()
  wait(4_000)
  t.same(taken(), [], 'the caller speaks')
  tell({ type: 'user_speech_stopped', at: 4_000 })
  wait(100)
  t.same(taken(), ['say: One moment, please.'])
  wait(4_000)
  session.toolResult('t1', 'look_up', { status: 'success', data: { found: 1 } } as never)
  t.same(taken(), ['answer t1: {"found":1}'])
})

test('of a result that is too long for any model its beginning is told, and that there is more', async (t) => {
  const { session, asked, tell } = await openScene()
  tell({ type: 'tool_call', id: 't1', name: 'look_up', arguments: {} })
  const rooms = Array.from({ length: 5_000 }, (_, number) => `room ${number}`)
  session.toolResult('t1', 'look_up', { status: 'success', data: { result: { rooms } } } as never)
  const [, told = ''] = /^answer t1: (.*)$/.exec(asked.at(-1) ?? '') ?? []
  const output = JSON.parse(told) as Record<string, string>
  t.match(output, { beginning: /^\{"result":\{"rooms":\["room 0",/, note: /too long/ })
  t.equal(output['beginning']?.length, 16_000)
})

test('what the caller said before the end of the call is told, however late its text is; nothing else is', async (t) => {
  const { say, tell, final, events, taken, types, wait, heard } = await openScene()
  say('hello')
  tell({ type: 'user_speech_started', at: 100 })
  tell({ type: 'user_speech_stopped', at: 200 })
  tell(begun)
  tell({ type: 'audio', itemId: 'bye', payload: frame })
  tell({ type: 'item_done', itemId: 'bye' })
  tell({ type: 'tool_call', id: 'e1', name: 'end_call', arguments: {} })
  t.notOk(types().includes('finished'), 'not before its reply has come')
  tell({ type: 'reply_done' })
  t.equal(types().at(-1), 'finished')
  const before = events.length
  final('Goodbye.')
  tell({ type: 'audio', itemId: 'more', payload: frame })
  tell({ type: 'user_speech_started', at: 900 })
  t.match(events.slice(before), [{ type: 'user_text', text: 'Goodbye.' }])
  t.equal(events.length, before + 1)
  wait(20)
  t.same(heard.at(-1), silence, 'and nobody is listened to')
  t.notOk(taken().includes('close'), 'who hangs up closes it')
  tell({ type: 'failed', details: 'gone', isRetryable: true })
  t.equal(events.length, before + 1, 'a session that is over and dies is not mourned')
  t.ok(taken().includes('close'))
})

test('a model that ends the call without a word is asked for its goodbye, and is over without one', async (t) => {
  const { say, tell, taken, types } = await openScene()
  say('hello')
  taken()
  tell(begun)
  tell({ type: 'tool_call', id: 'e1', name: 'end_call', arguments: {} })
  t.match(taken(), [/^answer e1: .*goodbye/])
  tell({ type: 'reply_done' })
  t.notOk(types().includes('finished'))
  say('bye')
  t.equal(types().at(-1), 'finished')

  const mute = await openScene()
  mute.say('hello')
  mute.tell(begun)
  mute.tell({ type: 'tool_call', id: 'e1', name: 'end_call', arguments: {} })
  mute.tell({ type: 'reply_done' })
  mute.wait(19_000)
  t.equal(mute.types().at(-1), 'finished')
})

test('nobody is listened to while the static message is said, and the message comes first', async (t) => {
  const settings = { inboundStaticMessageEnabled: true, inboundStaticMessageText: 'Calls are recorded.' }
  const { taken, wait, heard, say, log, tell, session } = await openScene({ settings })
  t.same(taken(), ['say: Calls are recorded.'])
  wait(20)
  t.same(heard.at(-1), silence)
  tell(begun)
  tell({ type: 'agent_text', itemId: 'm', text: 'Calls are recorded' })
  tell({ type: 'audio', itemId: 'm', payload: frame })
  tell({ type: 'item_done', itemId: 'm' })
  tell({ type: 'reply_done' })
  session.played('m')
  t.same(taken(), ['reply'], 'then the agent begins')
  t.same(log.lines, [], 'said word for word but for its full stop')
  wait(20)
  t.same(heard.at(-1), frame)
  say('hello')
})

test('a session that goes on greets nobody; it says what is due and no more', async (t) => {
  const history = [{ role: 'user', text: 'Is it open?' }] as const
  t.same((await openScene({ history, owesReply: true })).taken(), ['reply'])
  const quiet = await openScene({ history })
  t.same(quiet.taken(), [])
  quiet.wait(10_000)
  t.match(quiet.taken(), [/still there/], 'and it listens')
})

test('a caller who says nothing is asked twice, then told goodbye', async (t) => {
  const { say, wait, taken, types } = await openScene()
  say('hello')
  taken()
  for (const words of [/still there/, /still there/, /goodbye/]) {
    wait(10_020)
    t.match(taken(), [words])
    say('…')
  }
  t.equal(types().at(-1), 'finished')
})

test('a goodbye to nobody that comes to nothing at first is waited for, but not for long', async (t) => {
  for (const comesAfterAll of [true, false]) {
    const { say, wait, tell, types } = await openScene()
    say('hello')
    for (const words of ['Are you there?', 'Are you still there?']) {
      wait(10_020)
      say(words)
    }
    wait(10_020)
    tell(begun)
    tell({ type: 'reply_done' })
    t.not(types().at(-1), 'finished')
    if (comesAfterAll) say('Goodbye.')
    else wait(3_020)
    t.equal(types().at(-1), 'finished')
  }
})

test('an agent that is to say its last words says them in place of anything else, hears nobody, and is finished', async (t) => {
  const { say, session, tell, taken, types, wait, heard, events } = await openScene({
    direction: 'outbound',
    script: 'Ask for Ada.\n\nvoicemail: Please call us back.',
  })
  t.equal(session.voicemail, 'Please call us back.')
  wait(6_000)
  taken()
  tell(begun)
  tell({ type: 'audio', itemId: 'a1', payload: frame })
  session.interrupt({ itemId: 'a1', playedMs: 20 })
  session.sayLast(session.voicemail ?? '')
  t.same(taken(), ['interrupt', 'say: Please call us back.'])
  wait(20)
  t.same(heard.at(-1), silence)
  const told = events.length
  tell({ type: 'audio', itemId: 'a1', payload: frame })
  tell({ type: 'reply_done' })
  say('an answer of its own')
  t.equal(events.length, told, 'nothing else is heard, and none of it was the last words')
  session.dtmf('1')
  wait(5_000)
  t.same(taken(), [], 'a key is no reason to talk')
  say('Please call us back.', true)
  t.match(types().slice(told), ['agent_text', 'audio', 'item_done', 'finished'])
})

test('a call is not over while a tool that the model has called with its goodbye is at work', async (t) => {
  const { say, session, tell, types, wait, taken } = await openScene()
  say('hello')
  tell(begun)
  tell({ type: 'audio', itemId: 'bye', payload: frame })
  tell({ type: 'item_done', itemId: 'bye' })
  tell({ type: 'tool_call', id: 't1', name: 'look_up', arguments: {} })
  tell({ type: 'tool_call', id: 'e1', name: 'end_call', arguments: {} })
  tell({ type: 'reply_done' })
  session.played('bye')
  wait(8_000)
  t.notOk(types().includes('finished'))
  taken()
  session.toolResult('t1', 'look_up', { status: 'success', data: {} } as never)
  t.match(taken(), [/^answer t1/])
  say('It is done.')
  t.equal(types().at(-1), 'finished')
})

test('a model that ends the call again and again without a word has ended it, with the next action it named', async (t) => {
  const settings = { nextActions: [{ key: 'call_back', name: 'Call back' }] }
  const { say, tell, events, taken } = await openScene({ settings })
  say('hello')
  taken()
  for (const given of [{ next_action: 'call_back' }, {}]) {
    tell(begun)
    tell({ type: 'tool_call', id: `e${Object.keys(given).length}`, name: 'end_call', arguments: given })
    tell({ type: 'reply_done' })
  }
  t.equal(taken().length, 2, 'two answers')
  tell(begun)
  tell({ type: 'reply_done' })
  t.match(events.at(-1), { type: 'finished', nextAction: 'call_back' })
})

test('who has one more question after the goodbye is answered; what was said before it ends nothing late', async (t) => {
  const { say, tell, final, types, session } = await openScene()
  say('hello')
  tell({ type: 'user_speech_started', at: 1 })
  tell({ type: 'user_speech_stopped', at: 2 })
  const goodbye = (id: string): void => {
    tell(begun)
    tell({ type: 'audio', itemId: id, payload: frame })
    tell({ type: 'item_done', itemId: id })
    tell({ type: 'tool_call', id: `end ${id}`, name: 'end_call', arguments: {} })
  }
  goodbye('bye')
  tell({ type: 'user_speech_started', at: 3 })
  session.interrupt({ itemId: 'bye', playedMs: 10 })
  tell({ type: 'reply_done' })
  t.notOk(types().includes('finished'), 'the caller speaks')
  tell({ type: 'user_speech_stopped', at: 4 })
  final('Wait, one more question.')
  say('Sure, what is it?')
  t.notOk(types().includes('finished'))
  tell({ type: 'user_speech_started', at: 5 })
  tell({ type: 'user_speech_stopped', at: 6 })
  goodbye('bye again')
  final('No, thank you. Bye.')
  tell({ type: 'reply_done' })
  t.equal(types().at(-1), 'finished')
})

test('a cough over the goodbye ends the call a moment later, not at once', async (t) => {
  const { say, tell, final, types, session, wait } = await openScene()
  say('hello')
  tell(begun)
  tell({ type: 'audio', itemId: 'bye', payload: frame })
  tell({ type: 'tool_call', id: 'e1', name: 'end_call', arguments: {} })
  tell({ type: 'user_speech_started', at: 3 })
  session.interrupt({ itemId: 'bye', playedMs: 10 })
  tell({ type: 'reply_done' })
  tell({ type: 'user_speech_stopped', at: 4 })
  final('')
  t.notOk(types().includes('finished'))
  say('Goodbye.')
  t.equal(types().at(-1), 'finished')
  wait(20)
})

test('a filler is no goodbye: the result of the tool is told first', async (t) => {
  const { say, tell, types, session, wait, taken } = await openScene({ speaksWhileToolsRun: true })
  say('hello')
  tell(begun)
  tell({ type: 'tool_call', id: 't1', name: 'look_up', arguments: {} })
  tell({ type: 'tool_call', id: 'e1', name: 'end_call', arguments: {} })
  tell({ type: 'reply_done' })
  taken()
  wait(20_000)
  t.same(taken(), ['say: One moment, please.'])
  tell({ type: 'reply_started', says: true })
  tell({ type: 'audio', itemId: 'filler', payload: frame })
  session.toolResult('t1', 'look_up', { status: 'success', data: {} } as never)
  tell({ type: 'item_done', itemId: 'filler' })
  tell({ type: 'reply_done' })
  session.played('filler')
  t.notOk(types().includes('finished'))
  say('It is done. Goodbye.')
  t.equal(types().at(-1), 'finished')
})

test('last words are said after the end, after a reply that failed, and past tools that wait', async (t) => {
  const { say, session, tell, types, taken, wait } = await openScene({ direction: 'outbound' })
  wait(5_000)
  say('hello')
  tell(begun)
  tell({ type: 'tool_call', id: 't1', name: 'look_up', arguments: {} })
  tell({ type: 'audio', itemId: 'bye', payload: frame })
  tell({ type: 'item_done', itemId: 'bye' })
  tell({ type: 'reply_done' })
  taken()
  session.sayLast('Call us back.')
  t.same(taken(), ['answer t1: {"error":"The call is over."}', 'say: Call us back.'])
  tell(begun)
  tell({ type: 'tool_call', id: 't2', name: 'look_up', arguments: {} })
  t.same(taken(), ['answer t2: {"error":"The call is over."}'])
  tell({ type: 'reply_done' })
  tell({ type: 'reply_started', says: true })
  tell({ type: 'reply_done' })
  t.notOk(types().includes('finished'), 'that one failed')
  say('Call us back.', true)
  t.equal(types().at(-1), 'finished')

  const over = await openScene({ direction: 'outbound' })
  over.wait(5_000)
  over.tell(begun)
  over.tell({ type: 'audio', itemId: 'bye', payload: frame })
  over.tell({ type: 'item_done', itemId: 'bye' })
  over.tell({ type: 'tool_call', id: 'e1', name: 'end_call', arguments: {} })
  over.tell({ type: 'reply_done' })
  t.equal(over.types().at(-1), 'finished')
  over.session.sayLast('Call us back.')
  over.say('Call us back.', true)
  t.match(over.types().slice(-2), ['item_done', 'finished'])
})

test('who presses a key while the agent says goodbye to nobody is there', async (t) => {
  const { say, types, wait, session, tell, taken } = await openScene()
  say('hello')
  for (let asked = 0; asked < 2; asked++) {
    wait(10_020)
    say('still there?')
  }
  wait(10_020)
  tell(begun)
  session.dtmf('1')
  tell({ type: 'reply_done' })
  wait(2_000)
  t.notOk(types().includes('finished'))
  t.ok(taken().includes('tell: [pressed 1]'))
})

test('who comes back while the agent says goodbye to nobody is talked to', async (t) => {
  const { say, tell, final, types, wait, taken } = await openScene()
  say('hello')
  for (const words of ['still there?', 'still there?']) {
    wait(10_020)
    say(words)
  }
  wait(10_020)
  taken()
  tell(begun)
  tell({ type: 'user_speech_started', at: 1 })
  tell({ type: 'reply_done' })
  tell({ type: 'user_speech_stopped', at: 2 })
  final('Yes, I am here.')
  say('Good.')
  wait(9_000)
  t.notOk(types().includes('finished'))
  wait(1_500)
  t.match(taken(), [/still there/], 'and is waited for as before')
})

test('a noise at pick-up is no greeting: the agent begins in time', async (t) => {
  const { tell, final, wait, taken } = await openScene({ direction: 'outbound', settings: { firstSpeechTimeout: 4 } })
  wait(1_000)
  tell({ type: 'user_speech_started', at: 500 })
  tell({ type: 'user_speech_stopped', at: 700 })
  final('')
  wait(2_800)
  t.same(taken(), [])
  wait(300)
  t.same(taken(), ['reply'])
})

test('a static message that does not come is waited for, not for ever', async (t) => {
  const settings = { inboundStaticMessageEnabled: true, inboundStaticMessageText: 'Calls are recorded.' }
  const { taken, wait, tell } = await openScene({ settings })
  taken()
  tell(begun)
  tell({ type: 'reply_done' })
  t.same(taken(), [], 'the wire tries again')
  wait(4_000)
  t.same(taken(), [])
  wait(2_000)
  t.same(taken(), ['reply'])
})

test('the rules of a talk change no state but make the next one, which may be written down and read back', async (t) => {
  const setting: TalkSetting = {
    worker: effectiveConfigOf({}),
    opening: { announcement: 'Calls are recorded.', begins: 'anew', isInbound: true, firstSpeech: 200 },
    filler: 'One moment, please.',
  }
  const wire = (event: WireEvent): TalkEvent => ({ type: 'wire', event })
  const events: readonly TalkEvent[] = [
    { type: 'begun' },
    ...Array.from({ length: 20 }, (): TalkEvent => ({ type: 'frame' })),
    { type: 'interrupted', heard: null },
    { type: 'played', itemId: 'a1' },
    { type: 'dtmf', digit: '1' },
    { type: 'say', text: 'Hello.' },
    { type: 'tool_result', id: 't1', name: 'look_up', result: { status: 'success', data: {} } as never },
    wire(begun),
    wire({ type: 'audio', itemId: 'a1', payload: frame }),
    wire({ type: 'agent_text', itemId: 'a1', text: 'Calls are recorded' }),
    wire({ type: 'reply_done' }),
    wire({ type: 'user_speech_started', at: 0 }),
    wire({ type: 'user_speech_stopped', at: 0 }),
    wire({ type: 'user_text', text: 'Yes.', isFinal: true, confidence: null, from: 0, to: 0 }),
    wire({ type: 'tool_call', id: 't1', name: 'look_up', arguments: {} }),
    wire({ type: 'tool_canceled', id: 't1' }),
    wire({ type: 'tool_call', id: 'e1', name: 'end_call', arguments: {} }),
    { type: 'say_last', text: 'Goodbye.' },
  ]
  const frozen = (state: TalkState): TalkState => {
    for (const part of Object.values(state)) Object.freeze(part)
    return Object.freeze(state)
  }
  const random = createRandom(11)
  const phases = new Set<TalkState['phase']>()
  for (let call = 0; call < 40; call++) {
    let state = frozen(initialTalk)
    for (let step = 0; step < 300; step++) {
      const event = events[Math.floor(random.next() * events.length)] ?? { type: 'frame' }
      const advanced = advance(setting, state, event)
      const again = advance(setting, JSON.parse(JSON.stringify(state)) as TalkState, event)
      if (JSON.stringify(again) !== JSON.stringify(advanced)) return t.same(again, advanced, `after ${event.type}`)
      state = frozen(advanced.state)
      phases.add(state.phase)
    }
    t.same(advance(setting, state, { type: 'closed' }).actions, [{ type: 'close' }])
  }
  t.same([...phases].toSorted(), ['finished', 'talking'])
})

const dimensions = [{ key: 'book', name: 'Book it', type: 'boolean' }] as const
const noting = { type: 'tool_call', id: 'n1', name: 'note_value', arguments: { key: 'book', value: true } } as const

test('a caller who hung up is heard out: their text, and what the model notes of it, and nothing is said', async (t) => {
  const scene = await openScene({ settings: { dimensions: [...dimensions] } })
  const { session, clock, tell, final, say, taken } = scene
  say('question')
  tell({ type: 'user_speech_started', at: 100 })
  taken()
  let isOver = false
  const over = session.hearOut().then(() => (isOver = true))
  t.same(taken(), ['line closed'])
  t.ok(
    scene.heard.slice(-40).every((payload) => payload.every((byte) => byte === 0xff)),
    'silence ends any speech',
  )
  const passed = async (ms: number): Promise<boolean> => {
    clock.advance(ms)
    await new Promise(setImmediate)
    return isOver
  }
  t.notOk(await passed(1_500), 'the caller is still speaking, as far as the provider has told')
  tell({ type: 'user_speech_stopped', at: 300 })
  t.notOk(await passed(1_500), 'the text is not known')
  const from = scene.events.length
  tell(begun)
  final('Yes, please.')
  t.notOk(await passed(400), 'the model is answering')
  tell(noting)
  tell({ type: 'tool_call', id: 'w1', name: 'look_up', arguments: {} })
  tell({ type: 'audio', itemId: 'a1', payload: frame })
  tell({ type: 'tool_call', id: 'e1', name: 'end_call', arguments: {} })
  tell({ type: 'reply_done' })
  t.ok(await passed(20))
  await over
  t.match(scene.events.slice(from), [
    { type: 'user_text', text: 'Yes, please.' },
    { type: 'noted', key: 'book', value: true },
    { type: 'finished', nextAction: null },
  ])
  t.equal(scene.events.length - from, 3)
  t.match(
    taken(),
    ['answer n1', 'answer w1', 'answer e1'].map((answer) => new RegExp(answer)),
  )
  session.close()
  t.equal(clock.pending(), 0)
})

test('who hung up in silence is waited for a moment, and a session that fails for nothing', async (t) => {
  const silent = await openScene({ settings: { dimensions: [...dimensions] } })
  silent.say('question')
  let isOver = false
  void silent.session.hearOut().then(() => (isOver = true))
  silent.clock.advance(540)
  await new Promise(setImmediate)
  t.notOk(isOver, 'a provider may be late')
  silent.clock.advance(60)
  await new Promise(setImmediate)
  t.ok(isOver)
  silent.session.close()
  const failing = await openScene()
  failing.tell({ type: 'user_speech_started', at: 100 })
  const over = failing.session.hearOut()
  failing.tell({ type: 'failed', details: 'gone', isRetryable: true })
  await over
  t.equal(failing.clock.pending(), 0)
  const closed = await openScene()
  closed.session.close()
  await closed.session.hearOut()
})

test('keys that were pressed right before the end are words of the caller', async (t) => {
  const { session, events, taken, say } = await openScene()
  say('question')
  taken()
  session.dtmf('1')
  session.dtmf('2')
  void session.hearOut()
  t.match(events.at(-1), { type: 'user_text', text: '[pressed 1 2]', isFinal: true })
  t.same(taken(), ['line closed'])
  session.close()
})

test('a talk whose process was lost in the middle of a sentence goes on right behind it, and says nothing of that', async (t) => {
  const history = [{ role: 'agent', text: 'We come on Monday,' }] as const
  const { asked } = await openScene({ history, owesReply: true, brokenOff: { rest: 'at nine.' } })
  await new Promise(setImmediate)
  t.match(asked, [/^reply: You were in the middle of a sentence: go on.*You were going to say: at nine\.$/])
  const unknown = await openScene({ history, owesReply: true, brokenOff: { rest: '' } })
  await new Promise(setImmediate)
  t.match(unknown.asked, [/do not mention it\.$/])
})

test('a talk that takes the place of another engine’s begins with a sentence about it, also where no reply is due, and listens meanwhile', async (t) => {
  const history = [{ role: 'agent', text: 'Which day?' }] as const
  for (const owesReply of [true, false]) {
    const { asked, heard, session } = await openScene({ history, owesReply, bridges: true })
    await new Promise(setImmediate)
    t.match(asked, [/^reply: The line was interrupted.*one short sentence.*go on where the talk was/])
    session.hear(frame)
    t.same(heard.at(-1), frame)
  }
  const { asked } = await openScene({ history, owesReply: false })
  await new Promise(setImmediate)
  t.same(asked, [])
})
