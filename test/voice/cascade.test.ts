/** A talk over three HTTP endpoints, against a server that speaks their protocol: turns, interruptions, tools, and whatever can go wrong. */
import { setImmediate as turn } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { systemClock } from '../../app/clock.ts'
import type { Clock } from '../../model/clock.ts'
import { bytesOf } from '../../model/frame.ts'
import { EngineRefusal, type EngineConfig, type EngineEvent, type VoiceEngine } from '../../model/voice-engine.ts'
import { wavHeaderOf } from '../../media/recording/wav.ts'
import { createCascadeEngine, type CascadeEngineDeps } from '../../voice/engines/cascade/engine.ts'
import { createSynthesiser } from '../../voice/engines/embedded/synthesiser.ts'
import {
  cascadeKey,
  cascadeModels,
  msPerLetter,
  openCascadeServer,
  type CascadeServer,
  type ScriptedFailure,
  type Stage,
} from '../fake/cascade-server.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createQuietLog, type QuietLog } from '../fake/quiet-log.ts'
import { callConfig, openSpokenCall, type SpokenCall } from '../scenes/spoken-call.ts'

const synthesiser = await createSynthesiser({ log: createQuietLog(), clock: systemClock })
const question = await synthesiser.speak('When are you open tomorrow?', 'rms')
const short = await synthesiser.speak('Uh huh.', 'rms')
await synthesiser.close()
/** Of a keystroke's length. */
const click = Int16Array.from({ length: 1600 }, (_, index) => (index < 960 ? 8000 * Math.sin(index / 6) : 0))

const formats = {
  hears: { encoding: 'pcm16', rateHz: 16_000 },
  speaks: { encoding: 'pcm16', rateHz: 24_000 },
} as const
const worker = { ringTimeout: 30, firstSpeechTimeout: 4, recordingChannelMode: 'mixed' } as const
const lookup = {
  name: 'lookup',
  description: 'Looks a colour up.',
  inputSchema: { type: 'object' as const, properties: { key: { type: 'string' } }, required: ['key'] },
}

type Scene = {
  readonly server: CascadeServer
  readonly engine: VoiceEngine
  readonly log: QuietLog
  readonly config: EngineConfig
}
type SceneOptions = {
  readonly server?: Parameters<typeof openCascadeServer>[0]
  readonly clock?: Clock
  readonly config?: Partial<EngineConfig>
  readonly deps?: (url: string) => Partial<CascadeEngineDeps>
}

async function openScene(t: Test, options: SceneOptions = {}): Promise<Scene> {
  const server = await openCascadeServer(options.server)
  const log = createQuietLog()
  const address = { url: server.url, apiKey: cascadeKey }
  const engine = await createCascadeEngine({
    chat: { ...address, model: cascadeModels.chat },
    transcription: { ...address, model: cascadeModels.transcription },
    speech: { ...address, model: cascadeModels.speech, voice: 'alloy', rateHz: 24_000 },
    log,
    clock: options.clock ?? systemClock,
    ...options.deps?.(server.url),
  })
  t.teardown(async () => {
    await engine.close()
    await server.close()
    if (server.violations.length > 0) throw new Error(server.violations.join('; '))
    if (JSON.stringify(log.lines).includes(cascadeKey)) throw new Error('the key is in the log')
  })
  return {
    server,
    engine,
    log,
    config: callConfig({ instructions: 'You are a clerk.', formats, worker, ...options.config }),
  }
}

/** A call whose agent has said `Hello.` and been heard. */
async function openCall(t: Test, options: SceneOptions = {}): Promise<Scene & { readonly call: SpokenCall }> {
  const scene = await openScene(t, options)
  scene.server.replies('Hello.')
  const call = await openSpokenCall(scene.engine, scene.config)
  await call.agentHeard()
  await scene.server.next('chat')
  return { ...scene, call }
}

type Message = { readonly role: string; readonly content: string | null; readonly tool_calls?: readonly object[] }
const talkOf = (server: CascadeServer): Message[] =>
  (server.requestsOf('chat').at(-1)!.body['messages'] as Message[]).slice(1)
const spokenOf = (server: CascadeServer): unknown[] => server.requestsOf('speech').map(({ body }) => body['input'])
const textOf = (call: SpokenCall, itemId: string) =>
  call.events.findLast((event) => event.type === 'agent_text' && event.itemId === itemId) as
    { text: string } | undefined
const typesOf = (call: SpokenCall): string[] => call.events.map(({ type }) => type)
const finalTexts = (events: readonly EngineEvent[]) =>
  events.flatMap((event) => (event.type === 'user_text' && event.isFinal ? [event.text] : []))

test('a question is transcribed, answered and spoken, sentence by sentence', async (t) => {
  const { call, server } = await openCall(t, { config: { language: 'de-AT' } })
  server.hears({ text: 'Wann haben Sie morgen geöffnet?', logprob: -0.1 })
  server.replies('Am 3. Mai ab 10 Uhr. Möchten Sie kommen? Schön wär’s.')
  await call.silence(400)
  await call.say(question)
  const final = await call.next('user_text', ({ isFinal }) => isFinal)
  t.equal(final.text, 'Wann haben Sie morgen geöffnet?')
  t.ok(Math.abs((final.confidence ?? 0) - Math.exp(-0.1)) < 0.001)
  const { itemId } = await call.agent()
  t.equal(textOf(call, itemId)?.text, 'Am 3. Mai ab 10 Uhr. Möchten Sie kommen? Schön wär’s.')
  const sentences = ['Am 3. Mai ab 10 Uhr.', 'Möchten Sie kommen?', 'Schön wär’s.']
  t.same(spokenOf(server).slice(1), sentences)
  t.equal(call.soundOf(itemId), sentences.join('').length * msPerLetter)
  const loudness = call.events.flatMap((event) =>
    event.type === 'audio' && event.itemId === itemId ? [Buffer.from(event.payload).readInt16LE(0)] : [],
  )
  const order = loudness.map((sample) => sentences.findIndex(({ length }) => length === Math.abs(sample) - 1000))
  t.same(
    order,
    order.toSorted((a, b) => a - b),
    'in their order',
  )
  const [heard] = server.requestsOf('transcription')
  t.match(heard?.body, { language: 'de', model: cascadeModels.transcription, response_format: 'verbose_json' })
  const spoken = question.length / 16_000
  t.ok(heard!.seconds > spoken + 0.5 && heard!.seconds < spoken + 1.2, 'with what came before it and the wait after it')
  t.match(server.requestsOf('speech')[0]?.body, { voice: 'alloy', response_format: 'pcm' })
})

test('the first sentence is heard before the model has written the last one', async (t) => {
  const { call, server } = await openCall(t)
  server.hears('When are you open?')
  server.replies({ text: 'From nine to five. On Sunday we are closed.', heldAt: 25 })
  await call.say(question)
  await call.next('audio')
  t.equal(server.requestsOf('chat').length, 2)
  server.release()
  const { itemId } = await call.next('item_done')
  t.equal(textOf(call, itemId)?.text, 'From nine to five. On Sunday we are closed.')
})

test('speech is asked for two sentences ahead and no further', async (t) => {
  const { call, server } = await openCall(t)
  server.hears('Tell me more.')
  server.replies('One is one. Two is two. Three is three. Four is four. Five is five.')
  server.fails('speech', { answers: 'stall' })
  await call.say(question)
  for (let count = 0; count < 4; count++) await server.next('speech')
  await call.settled()
  t.same(spokenOf(server).slice(1), ['One is one.', 'Two is two.', 'Three is three.'])
})

test('German, French and Japanese come through whole, however the bytes were cut', async (t) => {
  const texts = {
    de: 'Grüß Gott! Schöne Bücher.',
    fr: 'Ça va ? À bientôt, Zoë.',
    ja: '少々お待ちください。𠮷田です、ありがとうございます！',
  }
  for (const [language, text] of Object.entries(texts)) {
    const { call, server } = await openCall(t, { config: { language } })
    server.hears('?')
    server.replies(text)
    await call.say(question)
    const { itemId } = await call.agent()
    t.equal(textOf(call, itemId)?.text, text)
    t.equal(spokenOf(server).slice(1).join('').replaceAll(' ', ''), text.replaceAll(' ', ''))
    call.session.close()
  }
})

test('a noise of a few frames is no speech', async (t) => {
  const { call, server } = await openCall(t)
  await call.say(click)
  await call.settled()
  t.notOk(typesOf(call).includes('user_speech_started'))
  t.equal(server.requestsOf('transcription').length, 0)
})

test('speech that was none has an empty text, and nobody answers it', async (t) => {
  const { call, server } = await openCall(t)
  server.hears('')
  await call.say(question)
  t.equal((await call.next('user_text')).text, '')
  await call.settled()
  t.equal(server.requestsOf('chat').length, 1)
})

test('an agent that is interrupted has said what was heard, and forgets the rest', async (t) => {
  const { call, server } = await openCall(t)
  server.hears('When are you open?', 'Stop. Only Monday.')
  server.replies('From nine to five. On Sunday we are closed. On holidays too.', 'On Monday from eight.')
  await call.say(question)
  const { itemId } = await call.next('item_done')
  const first = 'From nine to five.'.length * msPerLetter
  await call.sayOver(question, itemId, first + 0.5 * 'On Sunday we are closed.'.length * msPerLetter)
  await call.agent()
  t.same(talkOf(server), [
    { role: 'user', content: '[The call is connected.]' },
    { role: 'assistant', content: 'Hello.' },
    { role: 'user', content: 'When are you open?' },
    { role: 'assistant', content: 'From nine to five. On Sunday we' },
    { role: 'user', content: 'Stop. Only Monday.' },
  ])
})

test('an interruption before anything was heard leaves nothing of the answer', async (t) => {
  const { call, server } = await openCall(t)
  server.hears('When are you open?', 'I mean on Monday.')
  server.replies('From nine to five.')
  await call.say(question)
  await call.next('item_done')
  const started = call.next('user_speech_started').then(() => call.session.interrupt(null))
  await call.say(question)
  await started
  await call.agent()
  t.same(talkOf(server).at(-1), { role: 'user', content: 'When are you open?\nI mean on Monday.' })
})

test('what is under way when the caller speaks is ended: the speech at once, the words when it was really speech', async (t) => {
  const { call, server } = await openCall(t)
  server.hears('When are you open?', 'I mean on Monday.')
  server.replies({ text: 'From nine to five. And so on.', heldAt: 22 }, 'From eight.')
  server.fails('speech', { answers: 'stall' })
  await call.say(question)
  const { itemId } = await call.next('audio')
  const talking = server.requestsOf('chat').at(-1)!
  const speaking = server.requestsOf('speech').at(-1)!
  await call.sayOver(question, itemId, 20)
  await call.next('agent_text', ({ text }) => text === 'From eight.')
  t.ok(talking.aborted)
  t.ok(speaking.aborted)
  const sounded = call.events.findIndex((event) => event.type === 'user_speech_started' && event.at > 2000)
  t.notOk(call.events.slice(sounded).some((event) => event.type === 'audio' && event.itemId === itemId))
  t.equal(call.events.filter((event) => event.type === 'item_done' && event.itemId === itemId).length, 1)
})

for (const [what, heard] of [
  ['a mhm', 'Mhm.'],
  ['an okay', 'Okay.'],
  ['a cough', ''],
] as const)
  test(`${what} over the agent lets it go on with the sentence that was cut, without asking the model again`, async (t) => {
    const { call, server } = await openCall(t)
    server.hears('When are you open?', heard, 'And on Monday?')
    server.replies('From nine to five. On Sunday we are closed. On holidays too.')
    await call.say(question)
    const { itemId } = await call.next('item_done')
    await call.sayOver(short, itemId, ('From nine to five.'.length + 8) * msPerLetter)
    const again = await call.next('item_done')
    t.equal(textOf(call, again.itemId)?.text, 'On Sunday we are closed. On holidays too.')
    t.not(again.itemId, itemId)
    t.equal(finalTexts(call.events).at(-1), heard)
    t.equal(server.requestsOf('chat').length, 2)
    call.session.played(again.itemId)
    await call.silence(8000)
    await call.say(question)
    await call.next('agent_text')
    t.same(talkOf(server).slice(2), [
      { role: 'user', content: 'When are you open?' },
      { role: 'assistant', content: 'From nine to five. On Sunday we are closed. On holidays too.' },
      { role: 'user', content: 'And on Monday?' },
    ])
  })

test('words that the model was still writing are said after a false interruption too', async (t) => {
  const { call, server } = await openCall(t)
  server.hears('When are you open?', 'Mhm.')
  server.replies({ text: 'From nine to five. On Sunday we are closed. On holidays too.', heldAt: 24 })
  await call.say(question)
  const { itemId } = await call.next('audio')
  await call.sayOver(short, itemId, 100)
  server.release()
  const again = await call.next('item_done', (event) => event.itemId !== itemId)
  t.equal(textOf(call, again.itemId)?.text, 'From nine to five. On Sunday we are closed. On holidays too.')
  t.equal(server.requestsOf('chat').length, 2)
})

test('the same words answer a question that the agent has just asked', async (t) => {
  const { call, server } = await openCall(t)
  server.hears('When are you open?', 'Okay.')
  server.replies('Shall I make an appointment?', 'It is made.')
  await call.say(question)
  const { itemId } = await call.next('item_done')
  await call.sayOver(short, itemId, 1000)
  t.equal((await call.agent()).text, 'It is made.')
})

test('who stops in the middle of a sentence is waited for, and answered once', async (t) => {
  const { call, server } = await openCall(t)
  server.hears('I would like to come on Monday and', 'on Tuesday.')
  server.replies('Fine.')
  await call.say(question)
  await call.next('user_text')
  await call.settled()
  t.equal(server.requestsOf('chat').length, 1)
  await call.say(question)
  t.equal((await call.agent()).text, 'Fine.')
  t.same(talkOf(server).at(-1), { role: 'user', content: 'I would like to come on Monday and\non Tuesday.' })
  t.equal(server.requestsOf('chat').length, 2)
})

test('who stops in the middle of a sentence and says no more is answered a second later', async (t) => {
  const { call, server } = await openCall(t)
  server.hears('I would like to,')
  server.replies('Go on.')
  await call.say(question)
  await call.next('user_text')
  await call.silence(1000)
  t.equal((await call.agent()).text, 'Go on.')
})

test('who speaks for more than half a minute is understood in parts', async (t) => {
  const { call, server } = await openCall(t)
  server.hears('The first part', 'the second part.')
  const long = new Int16Array(35 * 16_000)
  for (let at = 0; at + question.length < long.length; at += question.length) long.set(question, at)
  await call.say(long)
  await call.next('user_text', ({ text }) => text === 'the second part.')
  const [first, second] = server.requestsOf('transcription')
  t.ok(first!.seconds <= 30.1 && first!.seconds > 29)
  t.ok(second!.seconds > 3)
})

test('tools are called, and the model speaks when all of them have answered', async (t) => {
  const { call, server } = await openCall(t, { config: { tools: [lookup] } })
  server.hears('What about blue and red?')
  server.replies(
    {
      text: 'Let me see.',
      calls: [
        { name: 'lookup', arguments: '{"key":"blue"}', id: 'w1' },
        { name: 'lookup', arguments: '{"key":"röd 😀"}', id: 'w2' },
      ],
    },
    'Seven and eight.',
  )
  await call.say(question)
  const first = await call.next('tool_call')
  const second = await call.next('tool_call')
  t.same([first.arguments, second.arguments], [{ key: 'blue' }, { key: 'röd 😀' }])
  t.not(first.id, second.id)
  call.session.toolResult(second.id, 'lookup', { status: 'success', data: { result: 8 } })
  await call.settled()
  t.equal(server.requestsOf('chat').length, 2)
  call.session.toolResult(first.id, 'lookup', { status: 'success', data: { result: 7 } })
  t.equal((await call.next('agent_text', ({ text }) => text.startsWith('Seven'))).text, 'Seven and eight.')
  const talk = talkOf(server).slice(3)
  t.match(talk[0], { role: 'assistant', content: 'Let me see.', tool_calls: [{ id: 'w1' }, { id: 'w2' }] })
  t.same(talk.slice(1), [
    { role: 'tool', tool_call_id: 'w1', content: '{"result":7}' },
    { role: 'tool', tool_call_id: 'w2', content: '{"result":8}' },
  ])
  const tools = server.requestsOf('chat').at(-1)?.body['tools'] as { function: { name: string } }[]
  t.same(
    tools.map(({ function: { name } }) => name),
    ['lookup', 'end_call'],
  )
})

test('a caller who speaks while a tool runs is answered, and the tool is canceled', async (t) => {
  const { call, server } = await openCall(t, { config: { tools: [lookup] } })
  server.hears('What about blue?', 'Forget it.')
  server.replies({ calls: [{ name: 'lookup', arguments: '{"key":"blue"}' }] }, 'As you like.')
  await call.say(question)
  const { id } = await call.next('tool_call')
  await call.say(question)
  t.equal((await call.next('tool_canceled')).id, id)
  await call.next('agent_text', ({ text }) => text === 'As you like.')
  const talk = talkOf(server)
  const canceled = talk.findIndex(({ content }) => content === '{"error":"canceled: the caller spoke"}')
  t.match(talk.slice(canceled), [{ role: 'tool' }, { role: 'user', content: 'Forget it.' }])
  call.session.toolResult(id, 'lookup', { status: 'success', data: { result: 7 } })
  await call.settled()
  t.equal(server.requestsOf('chat').length, 3)
})

test('a tool is not called while the caller speaks: not at all when it was speech, after it when it was none', async (t) => {
  for (const heard of ['Forget it.', '']) {
    const { call, server } = await openCall(t, { config: { tools: [lookup] } })
    server.hears('What about blue?', heard)
    server.replies(
      { text: 'Let me see that.', calls: [{ name: 'lookup', arguments: '{"key":"blue"}' }], heldAt: 16 },
      'Well.',
    )
    await call.say(question)
    await server.next('chat')
    await call.settled()
    const speech = call.say(question)
    await call.next('user_speech_started')
    server.release()
    await speech
    await call.next('user_text', ({ text }) => text === heard)
    await call.settled()
    t.equal(typesOf(call).filter((type) => type === 'tool_call').length, heard === '' ? 1 : 0)
    call.session.close()
  }
})

test('arguments that are no object are the model’s to mend', async (t) => {
  const { call, server } = await openCall(t, { config: { tools: [lookup] } })
  server.hears('What about blue?')
  server.replies({ calls: [{ name: 'lookup', arguments: '{"key":' }] }, 'Once more, please.')
  await call.say(question)
  t.equal((await call.agent()).text, 'Once more, please.')
  t.notOk(typesOf(call).includes('tool_call'))
  t.match(talkOf(server).at(-1)?.content, /JSON object/)
})

test('a result of another session is news, and a key that is pressed is told', async (t) => {
  const { call, server } = await openCall(t)
  server.replies('Thank you.', 'You pressed one.')
  call.session.toolResult('elsewhere-1', 'lookup', { status: 'success', data: { result: 7 } })
  await call.agentHeard()
  t.same(talkOf(server).at(-1), { role: 'user', content: '[The tool lookup answered: {"result":7}]' })
  call.session.dtmf('1')
  call.session.dtmf('#')
  t.equal(await call.agentHeard(), 'You pressed one.')
  t.match(talkOf(server).at(-1)?.content, 'pressed 1')
})

test('what is said word for word is said as it stands, and remembered', async (t) => {
  const { call, server } = await openCall(t)
  server.hears('What?')
  call.session.say('First this. Then that.')
  const { itemId, text } = await call.agent()
  t.equal(text, 'First this. Then that.', 'all of it from the beginning')
  call.session.played(itemId)
  await call.silence(4000)
  await call.say(question)
  await call.agent()
  t.same(talkOf(server).slice(-2), [
    { role: 'assistant', content: 'Hello. First this. Then that.' },
    { role: 'user', content: 'What?' },
  ])
})

test('instructions are followed from the next turn on, and a temperature is passed on', async (t) => {
  const { call, server, config } = await openCall(t, {
    config: { worker: { ...worker, llmTemperature: 0.3, voiceId: 'verse' } },
  })
  t.match(server.requestsOf('chat')[0]?.body, { temperature: 0.3, model: cascadeModels.chat })
  t.match((server.requestsOf('chat')[0]!.body['messages'] as Message[])[0]?.content, config.instructions ?? '')
  t.equal(server.requestsOf('speech')[0]?.body['voice'], 'verse')
  server.hears('Who are you?')
  call.session.instruct('You are a pirate.')
  await call.say(question)
  await call.agent()
  t.match(server.requestsOf('chat')[1]?.body['messages'], [{ role: 'system', content: 'You are a pirate.' }])
})

test('what people of the account whisper is told besides the instructions, to sessions that are opened later as well', async (t) => {
  const { call, server, config } = await openCall(t, { config: { whispers: ['They are in a hurry.'] } })
  const told = (at: number): string => (server.requestsOf('chat')[at]!.body['messages'] as Message[])[0]?.content ?? ''
  t.match(told(0), /From your company[^]*- They are in a hurry\./)
  server.hears('Who are you?')
  call.session.whisper('Offer ten percent\n# Off.')
  await call.say(question)
  await call.agent()
  t.ok(told(1).startsWith(config.instructions ?? ''))
  t.match(told(1), /- They are in a hurry\.\n- Offer ten percent # Off\.$/)
})

test('what an endpoint does not take is left out, once it has said so, and a model that thinks has room for that', async (t) => {
  const refuses = { refusesMaxTokens: true, refusesTemperature: true, refusesVerbose: true, refusesStreamOptions: true }
  const { call, server, log } = await openCall(t, {
    server: { ...refuses, thoughts: 1_400 },
    config: { worker: { ...worker, llmTemperature: 0.3 } },
  })
  t.equal(server.requestsOf('chat').length, 4)
  t.match(log.lines, [{ message: /llmTemperature/ }])
  server.hears('Who are you?', 'And now?')
  for (const text of ['Who are you?', 'And now?']) {
    await call.say(question)
    const final = await call.next('user_text')
    t.match(final, { text, confidence: null })
    await call.agentHeard()
    await call.silence(2000)
  }
  t.equal(server.requestsOf('chat').length, 6)
  t.same(
    server.requestsOf('transcription').map(({ body }) => body['response_format']),
    ['verbose_json', 'json', 'json'],
  )
})

test('a talk that goes on knows what was said', async (t) => {
  const { server, engine, config } = await openScene(t)
  server.replies('Nine.')
  const history = [
    { role: 'agent', text: 'Hello.' },
    { role: 'user', text: 'When are you open?' },
  ] as const
  const call = await openSpokenCall(engine, { ...config, history, owesReply: true })
  t.equal((await call.agent()).text, 'Nine.')
  t.same(talkOf(server).slice(1), [
    { role: 'assistant', content: 'Hello.' },
    { role: 'user', content: 'When are you open?' },
  ])
})

test('a result that comes to a session opened later answers the call of the one before', async (t) => {
  const { call, server, engine, config } = await openCall(t, { config: { tools: [lookup] } })
  server.hears('What about blue?')
  server.replies({ text: 'Let me see.', calls: [{ name: 'lookup', arguments: '{"key":"blue"}', id: 'w1' }] })
  await call.say(question)
  const { id } = await call.next('tool_call')
  const { memory } = call.events.findLast((event) => event.type === 'memory')!
  t.ok(typesOf(call).indexOf('memory') < typesOf(call).indexOf('tool_call'), 'before anybody acts on it')
  call.session.close()
  const history = [
    { role: 'agent', text: 'Hello.' },
    { role: 'user', text: 'What about blue?' },
    { role: 'agent', text: 'Let me see.' },
  ] as const
  const again = await openSpokenCall(engine, { ...config, history, memory: JSON.parse(JSON.stringify(memory)) })
  await again.silence(100)
  await again.settled()
  t.equal(server.requestsOf('chat').length, 2, 'nothing is due yet')
  server.replies('Seven.')
  again.session.toolResult(id, 'lookup', { status: 'success', data: { result: 7 } })
  t.equal(await again.agentHeard(), 'Seven.')
  t.match(talkOf(server).slice(1), [
    { role: 'assistant', content: 'Hello.' },
    { role: 'user', content: 'What about blue?' },
    { role: 'assistant', content: 'Let me see.', tool_calls: [{ id: 'w1' }] },
    { role: 'tool', tool_call_id: 'w1', content: '{"result":7}' },
  ])
  again.session.toolResult(id, 'lookup', { status: 'success', data: { result: 8 } })
  await again.settled()
  t.equal(server.requestsOf('chat').length, 3, 'it has been answered')
})

test('a result that nobody spoke about before the session died is spoken about by the next one', async (t) => {
  const { call, server, engine, config } = await openCall(t, { config: { tools: [lookup] } })
  server.hears('What about blue?', 'And red?')
  server.replies({ text: 'Let me see.', calls: [{ name: 'lookup', arguments: '{"key":"blue"}' }] })
  await call.say(question)
  const { id } = await call.next('tool_call')
  await call.next('item_done')
  server.fails('chat', { status: 401 })
  call.session.toolResult(id, 'lookup', { status: 'success', data: { result: 7 } })
  await call.next('failed')
  const { memory } = call.events.findLast((event) => event.type === 'memory')!
  server.replies('Seven.', 'Eight.')
  const said = (text: string) => ({ role: 'agent' as const, text })
  const history = [said('Hello.'), { role: 'user' as const, text: 'What about blue?' }, said('Let me see.')]
  const again = await openSpokenCall(engine, { ...config, history, memory })
  await again.silence(100)
  t.equal(await again.agentHeard(), 'Seven.')
  t.match(talkOf(server).at(-1), { role: 'tool', content: '{"result":7}' })
  const third = await openSpokenCall(engine, { ...config, history: [...history, said('Seven.')], memory })
  await third.silence(100)
  await third.settled()
  t.notOk(typesOf(third).includes('audio'), 'it has been spoken about')
  third.session.toolResult(id, 'lookup', { status: 'success', data: { result: 7 } })
  await third.say(question)
  await third.agent()
  t.equal(talkOf(server).filter(({ role }) => role === 'tool').length, 1)
})

test('news that came to one session is known to the next one', async (t) => {
  const { call, server, engine, config } = await openCall(t)
  server.replies('Thank you.', 'Nine.')
  call.session.toolResult('elsewhere-1', 'lookup', { status: 'success', data: { result: '😀'.repeat(9_000) } })
  await call.agentHeard()
  const { memory } = call.events.findLast((event) => event.type === 'memory')!
  const history = [
    { role: 'agent', text: 'Hello.' },
    { role: 'agent', text: 'Thank you.' },
    { role: 'user', text: 'When?' },
  ] as const
  const again = await openSpokenCall(engine, { ...config, history, owesReply: true, memory })
  await again.agent()
  const news = talkOf(server)[2]
  t.match(news, { role: 'user', content: /^\[The tool lookup answered: / })
  t.ok(news?.content?.isWellFormed() && news.content.length < 5_000)
})

test('what a model thinks, marks up or draws is not spoken', async (t) => {
  const { call, server } = await openCall(t)
  server.hears('When are you open?', 'And then?')
  server.replies(
    '<think>They ask for the hours. Say them.</think>\n\n**Hours:**\n- Monday: *nine* to five 😀.\n- Sunday: [closed](https://a.org/b?c=d).',
  )
  await call.say(question)
  t.equal(await call.agentHeard(), 'Hours: Monday: nine to five. Sunday: closed.')
  t.same(spokenOf(server).slice(1), ['Hours:', 'Monday: nine to five.', 'Sunday: closed.'])
  await call.silence(8000)
  await call.say(question)
  await call.agent()
  t.same(talkOf(server).at(-2), { role: 'assistant', content: 'Hours: Monday: nine to five. Sunday: closed.' })
})

test('a model whose thoughts begin without a word of it is known by their end', async (t) => {
  const { call, server, log } = await openCall(t)
  server.hears('When?', 'When?')
  server.replies('They ask.</think> Nine.', 'They ask again.</think> Still nine.')
  await call.say(question)
  await call.agentHeard()
  await call.silence(2000)
  await call.say(question)
  t.equal(await call.agentHeard(), 'Still nine.')
  t.match(log.lines.at(-1), { message: /thinks aloud/ })
})

test('a reply that was cut at its limit ends with a whole sentence', async (t) => {
  const { call, server } = await openCall(t)
  server.hears('When?')
  server.replies({ text: 'From nine to five. On Sunday we', finish: 'length' })
  await call.say(question)
  t.equal((await call.agent()).text, 'From nine to five.')
})

test('a model that says nothing is asked once more', async (t) => {
  const { call, server, log } = await openCall(t)
  server.hears('When?', 'When?')
  server.replies({ text: '<think>Hm.</think>' }, 'Nine.')
  await call.say(question)
  t.equal(await call.agentHeard(), 'Nine.')
  await call.silence(2000)
  server.replies({ text: '<think>Hm', finish: 'length' }, { text: '', finish: 'length' })
  await call.say(question)
  await call.settled()
  t.equal(server.requestsOf('chat').length, 5)
  t.match(log.lines.at(-1), { message: /at its limit before it said a word/ })
  t.notOk(typesOf(call).includes('failed'))
})

test('a reply that is not streamed is a reply', async (t) => {
  const { call, server } = await openCall(t, { config: { tools: [lookup] } })
  server.hears('What about blue?')
  const message = { content: 'Let me see.', tool_calls: [{ function: { name: 'lookup', arguments: { key: 'blue' } } }] }
  const body = JSON.stringify({ choices: [{ message, finish_reason: 'tool_calls' }] })
  server.fails('chat', { contentType: 'application/json', body })
  await call.say(question)
  t.same((await call.next('tool_call')).arguments, { key: 'blue' })
  t.equal(textOf(call, (await call.next('item_done')).itemId)?.text, 'Let me see.')
})

test('a stream that is over is not waited for, though its connection stays open', async (t) => {
  const { call, server } = await openCall(t, { clock: createHandClock() })
  server.hears('When?')
  const body = `data: {"choices":[{"delta":{"content":"Nine."},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n`
  server.fails('chat', { contentType: 'text/event-stream', body, staysOpen: true })
  await call.say(question)
  t.equal((await call.agent()).text, 'Nine.')
})

test('a talk that has become too long for the model goes on without its beginning', async (t) => {
  const { engine, server, config } = await openScene(t, { server: { contextLetters: 12_000 } })
  const history = Array.from({ length: 100 }, (_, index) => ({
    role: index % 2 === 0 ? ('user' as const) : ('agent' as const),
    text: `${index} ${'word '.repeat(80)}`,
  }))
  const call = await openSpokenCall(engine, { ...config, history, owesReply: true })
  t.equal((await call.agent()).text, 'Yes.')
  t.match(JSON.stringify(talkOf(server)), '99 word')
  t.notMatch(JSON.stringify(talkOf(server)), '"9 word')
})

test('words that a filter takes offence at are not understood: the model asks again, and the talk goes on', async (t) => {
  const { call, server } = await openCall(t)
  const azure = {
    status: 400,
    error: { code: 'content_filter', param: 'prompt', message: 'The response was filtered.' },
  }
  const liteLlm = {
    contentType: 'text/event-stream',
    body: `data: ${JSON.stringify({ error: { code: '400', message: 'litellm.ContentPolicyViolationError: AzureException' } })}\n\n`,
  }
  const saidAfter = async (text: string, reply: string): Promise<unknown[]> => {
    server.hears(text)
    server.replies(reply)
    await call.say(question)
    t.equal(await call.agentHeard(), reply)
    return talkOf(server).map(({ content }) => content)
  }
  server.fails('chat', azure)
  t.same((await saidAfter('I could kill for a pizza.', 'Pardon?')).slice(-2), ['Hello.', '[unclear]'])
  t.same((await saidAfter('A pizza, please.', 'Sure.')).slice(-3), ['[unclear]', 'Pardon?', 'A pizza, please.'])
  server.fails('chat', liteLlm, azure)
  t.notOk((await saidAfter('And a knife.', 'What else?')).includes('A pizza, please.'), 'it was something before that')
  t.match(finalTexts(call.events), [/kill/, /pizza/, /knife/], 'the transcript has it all')
  server.fails('chat', azure, azure, azure)
  server.hears('What?')
  await call.say(question)
  t.match(await call.next('failed'), { details: /400 \(content_filter\)/, isRetryable: false }, 'it is not the caller')
})

test('sound in a WAV file of another rate is heard as it should be', async (t) => {
  const { call, server } = await openCall(t)
  server.hears('When?')
  server.replies('Nine.')
  const sound = bytesOf(new Int16Array(22_050).fill(1000))
  const body = Buffer.concat([wavHeaderOf({ rateHz: 22_050, channels: 1 }, sound.length), sound])
  server.fails('speech', { contentType: 'audio/wav', body })
  await call.say(question)
  const { itemId } = await call.agent()
  t.equal(Math.round(call.soundOf(itemId)), 1000)
})

test('a sentence that has no sound is left out, and one that does not end is cut off', async (t) => {
  const { call, server, log } = await openCall(t)
  server.hears('When?')
  server.replies('One is one. Two is two. Three is three.')
  server.fails('speech', { contentType: 'audio/pcm', body: '' }, { answers: 'huge' })
  await call.say(question)
  const { itemId, text } = await call.agent()
  t.equal(text, 'Two is two. Three is three.')
  const ms = call.soundOf(itemId)
  t.ok(ms > 8_000 && ms < 14_000, `${ms} ms`)
  t.match(log.lines.map(({ message }) => message).join(), /no sound for a sentence.*spoke on without an end/)
})

test('a voice that has no sound at all is no voice', async (t) => {
  const clock = createHandClock()
  const { server, engine, config } = await openScene(t, { clock })
  server.fails('speech', ...twice({ contentType: 'audio/pcm', body: '' }))
  const call = await openSpokenCall(engine, config)
  const failed = await pass(clock, call.next('failed'))
  t.match(failed, { details: 'speech: it answered no sound', isRetryable: true })
})

test('a mere host has its interface at /v1, and languages go by the names that Whisper has', async (t) => {
  const { call, server } = await openCall(t, {
    config: { language: 'nb-NO' },
    server: { refusesLanguage: true },
    deps: (url) => ({ chat: { url: new URL(url).origin, model: cascadeModels.chat, apiKey: cascadeKey } }),
  })
  server.hears('Når?')
  await call.say(question)
  t.match(await call.next('user_text'), { text: 'Når?' })
  await call.agentHeard()
  t.same(
    server.requestsOf('transcription').map(({ body }) => body['language']),
    ['no', 'no', undefined],
  )
})

test('a transcription model that has a list of languages is told by that, and by none where it does not know the language', async (t) => {
  for (const [language, told] of [
    ['nb-NO', ['no', 'no']],
    ['sq', ['sq', undefined]],
  ] as const) {
    const models = { ...cascadeModels, transcription: 'gpt-transcribe' }
    const { call, server } = await openCall(t, {
      config: { language },
      server: { models },
      deps: (url) => ({ transcription: { url, model: models.transcription, apiKey: cascadeKey } }),
    })
    for (let times = 0; times < 2; times++) {
      server.hears('Hallo?')
      await call.say(question)
      t.match(await call.next('user_text'), { text: 'Hallo?' })
      await call.agentHeard()
    }
    const asked = server.requestsOf('transcription').map(({ body }) => body['languages[]'])
    t.same([asked[0], asked.at(-1)], told)
  }
})

test('no connection is left open by an engine that is closed, whatever was under way', async (t) => {
  const { call, server, engine } = await openCall(t)
  server.hears('When are you open?')
  server.replies({ text: 'From nine to five. And so on.', heldAt: 22 })
  server.fails('speech', { answers: 'stall' })
  await call.say(question)
  await call.next('audio')
  t.ok(server.sockets() > 0)
  call.session.close()
  await engine.close()
  while (server.sockets() > 0) await turn()
  t.pass()
})

const refusals: Readonly<Record<string, { options: SceneOptions; message: RegExp; isRetryable: boolean }>> = {
  'a wrong key': {
    options: { server: { apiKey: 'another' } },
    message: /^(chat|transcription|speech): it answered 401 \(invalid_api_key\)$/,
    isRetryable: false,
  },
  'a model that is not there': {
    options: { server: { models: { ...cascadeModels, chat: 'brain-2' } } },
    message: /^chat: it has no model "brain-1"$/,
    isRetryable: false,
  },
  'nobody listening': {
    options: { deps: () => ({ chat: { url: 'http://127.0.0.1:9/v1', model: 'brain-1', apiKey: cascadeKey } }) },
    message: /^chat: it cannot be reached: ECONNREFUSED$/,
    isRetryable: true,
  },
}
for (const [what, { options, message, isRetryable }] of Object.entries(refusals))
  test(`${what} refuses the session, ${isRetryable ? 'for now' : 'for good'}`, async (t) => {
    const { engine, config } = await openScene(t, options)
    const refusal: unknown = await engine.open(config, () => t.fail('it says nothing')).catch((error: unknown) => error)
    t.ok(refusal instanceof EngineRefusal)
    t.match(refusal, { message, isRetryable })
    t.notMatch((refusal as Error).message, cascadeKey)
  })

test('endpoints are asked for their models once for a while; one that has no such list is taken as it is', async (t) => {
  const clock = createHandClock()
  const { server, engine, config } = await openScene(t, { clock })
  for (const wait of [0, 0, 31_000]) {
    clock.advance(wait)
    const session = await engine.open(config, () => {})
    session.close()
  }
  t.equal(server.requestsOf('models').length, 6)
  const listless = await openScene(t, { server: { listsModels: false } })
  const session = await listless.engine.open(listless.config, () => {})
  session.close()
})

/** Turns the hands until the work is done. */
async function pass<Value>(clock: ReturnType<typeof createHandClock>, work: Promise<Value>): Promise<Value> {
  let done = false
  const marked = work.finally(() => (done = true))
  while (!done) {
    // Not faster than loopback answers what is no failure.
    for (let count = 0; count < 20 && !done; count++) await turn()
    clock.advance(100)
  }
  return marked
}

const bad = (...answers: Extract<ScriptedFailure, { answers: unknown }>['answers'][]): ScriptedFailure[] =>
  answers.map((answer) => ({ answers: answer }))

test('what passes is tried a second time, and the caller does not notice', async (t) => {
  const clock = createHandClock()
  const error = { contentType: 'application/json', body: '{"error":"overloaded"}' }
  const failures: Partial<Record<Stage, ScriptedFailure[]>> = {
    transcription: [{ status: 500 }, error, ...bad('hang', 'stall', 'cut')],
    chat: [{ status: 429, headers: { 'retry-after': '1' } }, { status: 503 }, error, ...bad('hang')],
    speech: [{ status: 502 }, error, ...bad('hang', 'stall', 'cut')],
  }
  for (const [stage, each] of Object.entries(failures) as [Stage, ScriptedFailure[]][])
    for (const failure of each) {
      const { call, server } = await openCall(t, { clock })
      server.fails(stage, failure)
      server.hears('When are you open?')
      server.replies('From nine to five.')
      await call.say(question)
      t.equal((await pass(clock, call.next('user_text'))).text, 'When are you open?')
      const { itemId } = await pass(clock, call.next('item_done'))
      t.equal(call.soundOf(itemId), 'From nine to five.'.length * msPerLetter, `${stage} ${JSON.stringify(failure)}`)
      t.equal(server.requestsOf(stage).length, stage === 'transcription' ? 2 : 3)
      t.notOk(typesOf(call).includes('failed'))
      call.session.close()
    }
})

const twice = (failure: ScriptedFailure): ScriptedFailure[] => [failure, failure]
const streamed = (event: object): ScriptedFailure => ({
  contentType: 'text/event-stream',
  body: `data: ${JSON.stringify(event)}\n\n`,
})
const vllmError = (code: number) => ({ object: 'error', message: cascadeKey, type: 'InternalServerError', code })
const losses: readonly (readonly [Stage, string, readonly ScriptedFailure[], RegExp, boolean])[] = [
  [
    'chat',
    'a wrong key',
    [{ status: 401, error: { code: 'invalid_api_key', message: cascadeKey } }],
    /401 \(invalid_api_key\)$/,
    false,
  ],
  ['chat', 'a missing model', [{ status: 404, error: { code: 'model_not_found' } }], /404/, false],
  ['chat', 'no money', [{ status: 429, error: { code: 'insufficient_quota' } }], /429 \(insufficient_quota\)$/, false],
  ['chat', 'a long wait', [{ status: 429, headers: { 'retry-after': '60' } }], /429$/, true],
  ['chat', 'an outage', twice({ status: 500 }), /500$/, true],
  ['chat', 'silence', twice({ answers: 'hang' }), /did not answer within/, true],
  ['chat', 'an answer that stops', [{ answers: 'stall' }], /stopped for/, true],
  ['chat', 'an answer that is cut off', [{ answers: 'cut' }], /cannot be reached|cut off/, true],
  ['chat', 'half an answer', [{ answers: 'half' }], /^chat: its answer was cut off$/, true],
  ['chat', 'garbage', twice({ answers: 'garbage' }), /no chunk of a chat completion/, true],
  ['chat', 'an endless line', twice({ answers: 'huge' }), /too long|more than/, true],
  ['chat', 'an error in the stream', twice(streamed(vllmError(500))), /gave up \(InternalServerError\)$/, true],
  ['chat', 'a refusal in the stream', [streamed(vllmError(400))], /gave up \(InternalServerError\)$/, false],
  ['chat', 'a web page', [{ answers: 'web page' }], /does not stream/, false],
  ['chat', 'another address', [{ answers: 'redirect' }], /307$/, false],
  ['speech', 'an outage', twice({ status: 500 }), /500$/, true],
  [
    'speech',
    'an unknown voice',
    [{ status: 400, error: { code: 'invalid_value', param: 'voice' } }],
    /400 \(invalid_value\)/,
    false,
  ],
  ['speech', 'silence', twice({ answers: 'hang' }), /did not answer within/, true],
  [
    'speech',
    'an endless sound of another kind',
    [{ contentType: 'audio/mpeg', body: 'x' }],
    /audio\/mpeg, not pcm/,
    false,
  ],
  ['speech', 'a web page', [{ answers: 'web page' }], /text\/html, not pcm/, false],
]
for (const [stage, what, failures, details, isRetryable] of losses)
  test(`${what} instead of ${stage} ends the session, ${isRetryable ? 'for now' : 'for good'}`, async (t) => {
    const clock = createHandClock()
    const { call, server } = await openCall(t, { clock })
    server.fails(stage, ...failures)
    server.hears('My secret is 1234.')
    await call.say(question)
    const failed = await pass(clock, call.next('failed'))
    t.match(failed, { details, isRetryable })
    t.ok(failed.details.startsWith(`${stage}: `))
    t.notMatch(failed.details, /1234|sk-/)
    const said = call.events.length
    await call.say(question)
    call.session.say('Nobody hears this.')
    await turn()
    t.equal(call.events.length, said, 'nothing comes after it')
  })

test('speech that nobody could transcribe is told as such, and the model answers that', async (t) => {
  for (const failures of [
    twice({ status: 500 }),
    twice({ answers: 'hang' }),
    twice({ answers: 'stall' }),
    bad('garbage'),
    bad('huge'),
  ]) {
    const clock = createHandClock()
    const { call, server } = await openCall(t, { clock })
    server.fails('transcription', ...failures)
    server.replies('Pardon?')
    await call.say(question)
    const final = await pass(clock, call.next('user_text'))
    t.match(final, { text: '[unclear]', confidence: null, isFinal: true })
    t.equal((await pass(clock, call.agent())).text, 'Pardon?')
    t.same(talkOf(server).at(-1), { role: 'user', content: '[unclear]' })
    call.session.close()
  }
})

test('a transcription that is refused for good ends the session, after word of what was not understood', async (t) => {
  const { call, server } = await openCall(t)
  server.fails('transcription', { status: 403 })
  await call.say(question)
  const failed = await call.next('failed')
  t.match(failed, { details: /^transcription: it answered 403$/, isRetryable: false })
  t.same(finalTexts(call.events), ['[unclear]'])
})

test('a session that is closed ends its requests, and an engine that is closed all sessions', async (t) => {
  const { call, server, engine, config } = await openCall(t)
  server.hears('When are you open?')
  server.fails('chat', ...bad('hang'))
  await call.say(question)
  const talking = await server.next('chat')
  const other = await openSpokenCall(engine, config)
  await other.agentHeard()
  call.session.close()
  const said = call.events.length
  await engine.close()
  await other.say(question)
  other.session.close()
  while (!talking.aborted) await turn()
  t.equal(call.events.length, said)
  t.notOk(typesOf(other).includes('user_speech_started'))
  await t.rejects(
    engine.open(config, () => {}),
    EngineRefusal,
  )
})

test('a chat model that refuses tools while it thinks is asked not to, at once in every later reply', async (t) => {
  const { call, server, log } = await openCall(t, { server: { refusesThinkingWithTools: true } })
  server.hears('When are you open?')
  server.replies('From nine to five.')
  await call.say(question)
  t.equal((await call.agent()).text, 'From nine to five.')
  t.same(
    server.requestsOf('chat').map(({ body }) => body['reasoning_effort']),
    [undefined, 'none', 'none'],
  )
  t.equal(log.lines.filter(({ message }) => message.includes('does not think')).length, 1)
})

test('a server whose errors are told as FastAPI tells them is understood: what it lacks, what it refuses, what is too long', async (t) => {
  const missing = { status: 404, detail: 'Model `brain-1` is not installed locally. You can download it.' }
  const lacking = await openScene(t)
  lacking.server.fails('models', missing, missing, missing)
  await t.rejects(
    lacking.engine.open(lacking.config, () => undefined),
    {
      isRetryable: false,
      message: /it has no model/,
    },
  )
  const { call, server } = await openCall(t)
  server.hears('When are you open?')
  server.replies('From nine to five.')
  const extra = { type: 'extra_forbidden', loc: ['body', 'max_tokens'], msg: 'Extra inputs are not permitted' }
  server.fails('chat', { status: 422, detail: [extra] })
  server.fails('transcription', { status: 422, detail: [{ ...extra, loc: ['body', 'response_format'] }] })
  await call.say(question)
  t.equal((await call.agent()).text, 'From nine to five.')
  t.ok('max_completion_tokens' in server.requestsOf('chat').at(-1)!.body, 'the field that it refused has another name')
  const gone = await openCall(t)
  gone.server.hears('My secret is 1234.')
  gone.server.fails('chat', { status: 400, detail: [{ type: 'value_error', loc: ['body', 'messages'], msg: '1234' }] })
  await gone.call.say(question)
  const { details } = await gone.call.next('failed')
  t.equal(details, 'chat: it answered 400 (value_error)', 'and none of the words of the talk')
})

test('a voice of any rate sounds as it should: its speech is asked for as WAV where nobody says how fast it is', async (t) => {
  const ms = 'From nine to five.'.length * msPerLetter
  for (const [rateHz, refusesWav] of [
    [22_050, false],
    [16_000, false],
    [24_000, true],
  ] as const) {
    const { call, server } = await openCall(t, {
      server: { rateHz, refusesWav },
      deps: (url) => ({
        speech: { url, apiKey: cascadeKey, model: cascadeModels.speech, voice: 'alloy', rateHz: null },
      }),
    })
    server.hears('When are you open?')
    server.replies('From nine to five.')
    await call.say(question)
    const { itemId } = await call.agent()
    t.ok(Math.abs(call.soundOf(itemId) - ms) < 10, `${call.soundOf(itemId)} ms of ${ms} at ${rateHz} Hz`)
    t.same(
      server.requestsOf('speech').map(({ body }) => body['response_format']),
      refusesWav ? ['wav', 'pcm', 'pcm'] : ['wav', 'wav'],
    )
  }
})

for (const dialect of ['openai', 'speaches', 'vllm'] as const) {
  test(`speech is transcribed as it comes where the server can (${dialect})`, async (t) => {
    const { call, server } = await openCall(t, { server: { stream: { dialect } }, config: { language: 'de-CH' } })
    for (const said of ['When are you open tomorrow?', 'And on Sunday?']) {
      server.hears(said)
      server.replies('From nine to five.')
      await call.say(question)
      const final = await call.next('user_text', ({ isFinal }) => isFinal)
      t.equal(final.text, said)
      await call.agentHeard()
    }
    t.same(server.requestsOf('transcription'), [], 'nothing is sent twice')
    t.equal(server.streamed.length, 2)
    const spoken = (question.length / 16_000) * 1000
    for (const { ms } of server.streamed) t.ok(ms > spoken + 500 && ms < spoken + 1_200, 'all of it, at its rate')
    const partial = call.events.find((event) => event.type === 'user_text' && !event.isFinal)
    t.match(partial, { text: dialect === 'speaches' ? 'When are you open tomorrow?' : /^When/, confidence: null })
    const stopped = call.events.findIndex(({ type }) => type === 'user_speech_stopped')
    if (dialect !== 'speaches') t.ok(call.events.indexOf(partial!) < stopped, 'before the end of it')
    call.session.close()
  })

  for (const ends of ['late', 'broken', 'lost'] as const)
    test(`speech whose text does not come that way (${dialect}, ${ends}) is transcribed whole`, async (t) => {
      const { call, server } = await openCall(t, { server: { stream: { dialect, ends } } })
      server.hears('When are you open tomorrow?')
      server.replies('From nine to five.')
      await call.say(question)
      const final = await call.next('user_text', ({ isFinal }) => isFinal)
      t.equal(final.text, 'When are you open tomorrow?')
      await call.agentHeard()
      t.equal(server.requestsOf('transcription').length, 1)
      t.equal(server.streamed.length, 1)
      t.notOk(typesOf(call).includes('failed'))
      call.session.close()
    })
}

test('a server that streams no texts is asked once for all calls, and whoever wants no stream asks nobody', async (t) => {
  const { engine, config, server } = await openScene(t, { server: { transcript: 'Yes.' } })
  for (let times = 0; times < 2; times++) {
    const call = await openSpokenCall(engine, config)
    await call.agentHeard()
    await call.say(question)
    t.equal((await call.next('user_text', ({ isFinal }) => isFinal)).text, 'Yes.')
    call.session.close()
  }
  t.equal(server.requestsOf('transcription').length, 2)
  t.equal(server.streamRefusals(), 2, 'by the address of OpenAI and by that of Speaches')
  const quiet = await openCall(t, {
    server: { stream: { dialect: 'openai' }, transcript: 'Yes.' },
    deps: (url) => ({
      transcription: { url, apiKey: cascadeKey, model: cascadeModels.transcription, streams: false },
    }),
  })
  await quiet.call.say(question)
  await quiet.call.next('user_text', ({ isFinal }) => isFinal)
  t.equal(quiet.server.requestsOf('transcription').length, 1)
  t.equal(quiet.server.streamed.length, 0)
})

test('a server that leaves the question for a stream unanswered keeps nobody waiting, nor a connection open', async (t) => {
  const { call, server, engine } = await openCall(t, {
    server: { transcript: 'Yes.', hangsOnStreams: true },
  })
  await call.say(question)
  t.equal((await call.next('user_text', ({ isFinal }) => isFinal)).text, 'Yes.')
  await engine.close()
  while (server.sockets() > 0) await turn()
  t.equal(server.streamRefusals(), 1)
})
