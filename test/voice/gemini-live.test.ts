/** The engine over Gemini Live against a server that speaks its protocol: the setup, turns, what is refused, what is lost, and what goes on. */
import { test, type Test } from 'tap'
import { systemClock } from '../../app/clock.ts'
import type { Clock } from '../../model/clock.ts'
import { bytesOf, samplesOf } from '../../model/frame.ts'
import type { Json } from '../../model/json.ts'
import { EngineRefusal, type EngineConfig } from '../../model/voice-engine.ts'
import { createSynthesiser } from '../../voice/engines/embedded/synthesiser.ts'
import { levelOf } from '../../media/vad/voice-activity.ts'
import { createVoiceDetectors } from '../../media/vad/voice-detector.ts'
import { createGeminiLiveEngine } from '../../voice/engines/gemini-live/engine.ts'
import { createGeminiWire, isRetryable } from '../../voice/engines/gemini-live/open-session.ts'
import { msOf, readMessage } from '../../voice/engines/gemini-live/messages.ts'
import { historyOf } from '../../voice/engines/gemini-live/setup.ts'
import type { WireTold } from '../../voice/engines/hosted/wire.ts'
import type { GeminiOptions, ModelWords } from '../fake/gemini-live-options.ts'
import { openGeminiServer, type GeminiServer } from '../fake/gemini-live-server.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { callConfig, openSpokenCall, type SpokenCall } from '../scenes/spoken-call.ts'
import { until } from '../scenes/in-time.ts'

const synthesiser = await createSynthesiser({ log: createQuietLog(), clock: systemClock })
const speech = await synthesiser.speak('Yes, please.', 'rms')
await synthesiser.close()

const lookup = {
  name: 'lookup',
  description: 'Looks up.',
  inputSchema: { type: 'object' as const, properties: {}, required: [] },
}

async function openStage(
  t: Test,
  options: Partial<GeminiOptions> = {},
  changes: { key?: string; model?: string } = {},
) {
  const server = await openGeminiServer({ model: () => [{ text: 'Hello there, what can I do?' }], ...options })
  const log = createQuietLog()
  const engine = createGeminiLiveEngine({
    url: server.url,
    apiKey: changes.key ?? server.key,
    model: changes.model ?? 'gemini-3.8-live',
    voice: 'Kore',
    log,
    clock: systemClock,
  })
  t.teardown(async () => {
    await engine.close()
    await server.close()
  })
  const formats = { hears: engine.hears[0]!, speaks: engine.speaks[0]! }
  const { worker } = callConfig()
  const config = (given: Partial<EngineConfig> = {}): EngineConfig =>
    callConfig({ formats, worker: { ...worker, voiceId: 'Puck', llmTemperature: 0.5 }, ...given })
  return { server, engine, log, config, open: (given?: Partial<EngineConfig>) => openSpokenCall(engine, config(given)) }
}

/** What clients have written to the model. */
const textsOf = (server: GeminiServer): string[] => server.received('realtimeInput').flatMap(({ text }) => text ?? [])

test('the setup names model, voice, language, temperature and tools, and both texts are asked for', async (t) => {
  const { server, open } = await openStage(t)
  await (await open({ tools: [lookup] })).agent()
  const [setup] = server.received('setup')
  t.equal(setup?.model, 'models/gemini-3.8-live')
  t.same(setup?.generationConfig, {
    responseModalities: ['AUDIO'],
    temperature: 0.5,
    speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: 'Puck' } }, languageCode: 'en-US' },
  })
  t.same([setup?.inputAudioTranscription, setup?.outputAudioTranscription, setup?.sessionResumption], [{}, {}, {}])
  t.match(JSON.stringify(setup?.tools), /"name":"lookup".*"behavior":"BLOCKING"/)
  t.equal(
    setup?.realtimeInputConfig?.automaticActivityDetection?.silenceDurationMs,
    500,
    'the silence that ends a turn',
  )
})

const dimensions = [{ key: 'name', name: 'Name', type: 'string' as const, required: true }]
const note = { call: 'note_value', args: { key: 'name', value: 'Ada' } } as const
/** What the agent was heard to say. */
const saidBy = ({ events }: SpokenCall): string[] => [
  ...new Map(
    events.flatMap((event) => (event.type === 'agent_text' ? [[event.itemId, event.text] as const] : [])),
  ).values(),
]

for (const model of ['gemini-3.8-live', 'gemini-3.1-flash-live-preview', 'gemini-2.5-flash-native-audio-latest']) {
  const isSilenced = model === 'gemini-3.8-live'
  const stageOf = async (t: Test, before: readonly ModelWords[]) => {
    const stage = await openStage(
      t,
      {
        models: [`models/${model}`],
        model: ({ kind }) => (kind === 'tool' ? [{ text: 'Is there anything else?' }] : before),
        pace: 1,
      },
      { model },
    )
    const worker = { ...stage.config().worker, dimensions }
    return { ...stage, call: await stage.open({ worker, tools: [lookup] }) }
  }

  test(`${model} says nothing more about a value that it has noted, and is heard when it is asked next`, async (t) => {
    const { server, call } = await stageOf(t, [{ text: 'Thank you.' }, note])
    await call.next('noted')
    await until(() => server.received('toolResponse').length === 1)
    await call.settled()
    t.same(saidBy(call), ['Thank you.'])
    call.session.say('Please wait.')
    await call.next('agent_text', ({ text }) => text === 'Please wait.')
    t.same(saidBy(call), ['Thank you.', 'Please wait.'])
    const declared = server
      .received('setup')[0]
      ?.tools?.flatMap((tool) => ('functionDeclarations' in tool ? (tool.functionDeclarations ?? []) : []))
    const own = isSilenced ? 'NON_BLOCKING' : 'BLOCKING'
    t.same(
      declared?.map(({ name, behavior }) => [name, behavior]),
      [
        ['lookup', 'BLOCKING'],
        ['end_call', own],
        ['note_value', own],
      ],
    )
    const [result] = server.received('toolResponse')[0]?.functionResponses ?? []
    t.equal(result?.scheduling, isSilenced ? 'SILENT' : undefined)
  })

  test(`${model} says nothing more behind its goodbye`, async (t) => {
    const { server, call } = await stageOf(t, [{ text: 'Goodbye.' }, { call: 'end_call', args: {} }])
    await call.next('finished')
    await until(() => server.received('toolResponse').length === 1)
    await call.settled()
    t.same(saidBy(call), ['Goodbye.'])
  })

  test(`${model} goes on after a value that it noted before it spoke, and says it once`, async (t) => {
    const { call } = await stageOf(t, [note])
    await call.next('noted')
    await call.silence(600)
    await call.next('agent_text', ({ text }) => text === 'Is there anything else?')
    await call.silence(600)
    await call.settled()
    t.same(saidBy(call), ['Is there anything else?'])
  })
}

test('a model that goes on by itself behind a value that it noted is not asked to speak about it', async (t) => {
  const kinds: string[] = []
  const { server, open, config } = await openStage(t, {
    model({ kind }) {
      kinds.push(kind)
      return [note, { text: 'And when do you come?' }]
    },
  })
  const call = await open({ worker: { ...config().worker, dimensions } })
  await call.agent()
  await call.silence(1_000)
  await call.settled()
  t.same(kinds, ['text'])
  t.same(saidBy(call), ['And when do you come?'])
  t.equal(server.received('toolResponse')[0]?.functionResponses?.[0]?.scheduling, 'SILENT')
})

test('models that take no JSON Schema are told the arguments of tools in the part of OpenAPI that they know', async (t) => {
  const model = 'gemini-2.5-flash-native-audio-latest'
  const { server, open } = await openStage(t, { models: [`models/${model}`] }, { model })
  const place = {
    type: 'object',
    properties: { town: { type: ['string', 'null'], pattern: '^A' } },
    required: ['town'],
  }
  const properties = {
    day: { type: 'string', format: 'date', description: 'When.' },
    seats: { type: 'integer', minimum: 1, exclusiveMaximum: 9, enum: [1, 2] },
    tags: { type: 'array', items: { enum: ['a', 'b'] }, uniqueItems: true },
    place,
    anything: { $ref: '#/$defs/thing' },
  }
  const inputSchema = { type: 'object' as const, properties, required: ['day', 'none'], additionalProperties: false }
  await (await open({ tools: [{ ...lookup, inputSchema }] })).agent()
  const declared = server
    .received('setup')[0]
    ?.tools?.flatMap((tool) => ('functionDeclarations' in tool ? (tool.functionDeclarations ?? []) : []))
  t.strictSame(declared?.[0]?.parameters, {
    type: 'object',
    properties: {
      day: { type: 'string', description: 'When.' },
      seats: { type: 'integer', minimum: 1 },
      tags: { type: 'array', items: { type: 'string', enum: ['a', 'b'] } },
      place: { type: 'object', properties: { town: { type: 'string', nullable: true } }, required: ['town'] },
      anything: { type: 'string' },
    },
    required: ['day'],
  })
  t.notOk('parameters' in declared![1]!, 'end_call has no arguments here')
})

test('several tools are called at once: the words that one of them wants are said, although another wants none', async (t) => {
  const { open, config } = await openStage(
    t,
    {
      models: ['models/gemini-3.1-flash-live-preview'],
      model: ({ kind }) =>
        kind === 'tool' ? [{ text: 'It says seven.' }] : [{ text: 'One moment.' }, { call: 'lookup', args: {} }, note],
    },
    { model: 'gemini-3.1-flash-live-preview' },
  )
  const call = await open({ worker: { ...config().worker, dimensions }, tools: [lookup] })
  const { id } = await call.next('tool_call')
  await call.next('noted')
  await call.silence(1_000)
  call.session.toolResult(id, 'lookup', { status: 'success', data: { found: 'seven' } })
  await call.next('agent_text', ({ text }) => text === 'It says seven.')
  t.same(saidBy(call), ['One moment.', 'It says seven.'])
})

test('1007 during the setup is for good; in the midst of a talk, whose sound was taken before, a new session may live', async (t) => {
  for (const reason of [
    'Request contains an invalid argument.',
    'The audio content type (CONTENT_TYPE_AUDIO) is not supported for this model configuration.',
  ]) {
    const refusing = await openStage(t, { refusal: { code: 1007, reason } })
    await t.rejects(refusing.open(), { name: 'EngineRefusal', isRetryable: false })
    const { server, open } = await openStage(t)
    const call = await open()
    await call.agentHeard()
    server.sessions[0]!.close(1007, reason)
    t.match(await call.next('failed'), { isRetryable: true, details: `1007: ${reason}` })
  }
})

test('a language that the model does not take by its code is left to the prompt, at once for the calls that follow', async (t) => {
  const { server, log, open } = await openStage(t, { refusedLanguages: ['de-CH'] })
  for (let times = 0; times < 2; times++) {
    const call = await open({ language: 'de-CH' })
    await call.agent()
    call.session.close()
  }
  const codes = server.received('setup').map(({ generationConfig }) => generationConfig?.speechConfig?.languageCode)
  t.same(codes, ['de-CH', undefined, undefined])
  t.equal(log.lines.filter(({ message }) => message.includes('language')).length, 1)
  await (await open({ language: 'en-US' })).agent()
  t.equal(server.received('setup').at(-1)?.generationConfig?.speechConfig?.languageCode, 'en-US')
})

test('models that cannot hold a call are refused with the reason, before anybody is asked', async (t) => {
  for (const [model, reason] of [
    ['gemini-3.8-live-extended-thinking', /how long to think.*GEMINI_LIVE_MODEL=gemini-3\.8-live/],
    ['models/gemini-3.5-live-translate-preview', /neither instructions nor tools/],
  ] as const) {
    const { server, log, open } = await openStage(t, { models: [model] }, { model })
    await t.rejects(open(), { name: 'EngineRefusal', isRetryable: false, message: reason })
    t.equal(server.sessions.length, 0)
    t.match(log.lines, [{ level: 'error', message: reason }])
  }
})

test('a voice that the provider has not got is told once, and the usual one speaks', async (t) => {
  const { server, open, log, config } = await openStage(t)
  const worker = { ...config().worker, voiceId: 'rms' }
  for (let count = 0; count < 2; count++) (await open({ worker })).session.close()
  t.match(JSON.stringify(server.received('setup')[0]), /"voiceName":"Kore"/)
  t.equal(log.lines.length, 1)
})

test('the text of an item is whole when it is done, in whatever order it comes with the sound', async (t) => {
  for (const textOrder of ['before', 'mixed', 'after'] as const) {
    const { open } = await openStage(t, { textOrder, binary: textOrder === 'mixed' })
    const call = await open()
    const { itemId } = await call.agent()
    const texts = call.events.flatMap((event) => (event.type === 'agent_text' ? [event] : []))
    t.same(texts.at(-1), { type: 'agent_text', itemId, text: 'Hello there, what can I do?' })
    t.equal(call.soundOf(itemId), 1700)
  }
})

test('a wrong key, an unknown model and a spent quota are for good; an internal error is not', async (t) => {
  const refused = async (options: Partial<GeminiOptions>, changes: { key?: string; model?: string } = {}) => {
    const { engine, config } = await openStage(t, options, changes)
    const error: unknown = await engine
      .open(config(), () => t.fail('nothing is said'))
      .catch((thrown: unknown) => thrown)
    if (!(error instanceof EngineRefusal)) throw new Error('it was not refused')
    return error
  }
  const wrong = await refused({}, { key: 'AIzaWrong' })
  t.match(wrong.message, /API key not valid/)
  t.notMatch(wrong.message, /AIzaWrong/)
  t.equal(wrong.isRetryable, false)
  t.equal((await refused({}, { model: 'gemini-0' })).isRetryable, false)
  const quota = { code: 1011, reason: 'You exceeded your current quota, please check your plan and billing details.' }
  t.equal((await refused({ refusal: quota })).isRetryable, false)
  t.equal((await refused({ refusal: { code: 1011, reason: 'Internal error encountered.' } })).isRetryable, true)
})

test('a key that the provider repeats is not repeated by us', async (t) => {
  const { server, open, log } = await openStage(t)
  const call = await open()
  server.sessions[0]!.close(1008, `The key ${server.key} has expired.`)
  const { details } = await call.next('failed')
  t.match(details, /1008: The key \[key\] has expired/)
  t.notMatch(JSON.stringify([call.events, log.lines]), server.key)
})

test('a session that goes on is resumed by its handle, without its history', async (t) => {
  const { server, open } = await openStage(t)
  const call = await open()
  await call.agentHeard()
  const { memory } = await call.next('memory')
  call.session.close()
  const again = await open({ memory, history: [{ role: 'agent', text: 'Hello.' }], owesReply: true })
  await again.agent()
  t.match(server.received('setup').at(-1)?.sessionResumption, { handle: /./ })
  t.same(server.received('clientContent'), [])
})

test('a refused handle costs no call: a new session is told what was said', async (t) => {
  for (const handleRefusal of [
    { code: 1007, reason: 'Request contains an invalid argument.' },
    { code: 1008, reason: 'Requested entity was not found.' },
    { code: 1011, reason: 'Internal error occurred.' },
  ]) {
    const { server, open } = await openStage(t, { handleRefusal })
    const history = [{ role: 'agent', text: 'Hello.' } as const, { role: 'user', text: 'Hi.' } as const]
    const call = await open({ memory: { version: 1, handle: 'old' }, history, owesReply: true })
    await call.agent()
    t.same(server.received('clientContent')[0]?.turns, [
      { role: 'model', parts: [{ text: 'Hello.' }] },
      { role: 'user', parts: [{ text: 'Hi.' }] },
    ])
  }
})

test('the provider tells that it goes away, and how long that takes', async (t) => {
  const { server, open } = await openStage(t)
  const call = await open()
  server.sessions[0]!.goAway('59.5s')
  t.equal((await call.next('expiring')).within, 59_500)
})

test('a lost connection is told once, with its reason', async (t) => {
  const { server, open } = await openStage(t)
  const [first, second] = [await open(), await open()]
  server.sessions[0]!.close(1008, 'API key expired. Please renew the API key.')
  server.sessions[1]!.die()
  t.match(await first.next('failed'), { details: /1008: API key expired/, isRetryable: false })
  t.match(await second.next('failed'), { isRetryable: true })
  await second.silence(500)
  t.equal(second.events.filter(({ type }) => type === 'failed').length, 1)
})

test('a session whose call is over is open until it is closed, or its engine is', async (t) => {
  const { server, open, engine } = await openStage(t, {
    model: () => [{ text: 'Goodbye.' }, { call: 'end_call', args: {} }],
  })
  for (const _ of [1, 2]) {
    const call = await open()
    await call.next('finished')
  }
  t.same(
    server.sessions.map((session) => session.isOpen()),
    [true, true],
  )
  await engine.close()
  await until(() => server.sessions.every((session) => !session.isOpen()))
  t.pass()
})

test('garbage in a session is passed over', async (t) => {
  const { server, open } = await openStage(t)
  const call = await open()
  await call.agentHeard()
  const [session] = server.sessions
  for (const message of [
    { serverContent: 7 },
    { serverContent: { modelTurn: { parts: [null, 1, { inlineData: { data: 3 } }, { inlineData: { data: '' } }] } } },
    { toolCall: { functionCalls: [null, {}, { name: 5 }] } },
    { toolCallCancellation: { ids: ['none', 4] } },
    { sessionResumptionUpdate: { newHandle: 9, resumable: true } },
    { news: { of: 'tomorrow' } },
    {},
  ])
    session!.raw(JSON.stringify(message))
  session!.goAway('soon')
  t.equal((await call.next('expiring')).within, 10_000)
  t.notOk(call.events.some(({ type }) => type === 'failed' || type === 'tool_call'))
})

test('a caller who speaks over the agent ends the item, and what was asked for next is said after it', async (t) => {
  const { open, server } = await openStage(t, { pace: 20, transcript: () => 'Yes, please.' })
  const call = await open()
  const { itemId } = await call.next('audio')
  await call.sayOver(speech, itemId, 100)
  await call.next('item_done', (event) => event.itemId === itemId)
  const final = await call.next('user_text', (event) => event.isFinal)
  t.equal(final.text, 'Yes, please.')
  call.session.say('Please wait.')
  await call.next('agent_text', (event) => event.text === 'Please wait.')
  t.notOk(server.sessions[0]!.closedWith())
})

test('a tool that a caller has talked over is canceled, and its late result harms nothing', async (t) => {
  const { open, server } = await openStage(t, {
    model: ({ count }) => (count === 0 ? [{ call: 'lookup', args: {} }] : [{ text: 'As you like.' }]),
    transcript: () => 'Never mind.',
  })
  const call = await open({ tools: [lookup] })
  const { id, name } = await call.next('tool_call')
  await call.say(speech)
  t.equal((await call.next('tool_canceled')).id, id)
  call.session.toolResult(id, name, { status: 'success', data: {} })
  await call.agent()
  t.notOk(server.sessions[0]!.closedWith())
  t.same(server.received('toolResponse'), [])
})

test('new instructions are no question: they wait for what the model is asked next, and that they do is told once', async (t) => {
  const asked: string[] = []
  const { open, server, log } = await openStage(t, {
    transcript: () => 'Yes.',
    model({ kind }) {
      asked.push(kind)
      return [{ text: 'As you like.' }]
    },
  })
  const call = await open()
  await call.agentHeard()
  await call.listens()
  call.session.instruct('Speak of tea only.')
  call.session.instruct('And of milk.')
  call.session.whisper('Offer a biscuit.')
  call.session.recall({ role: 'user', text: 'No "sugar".' })
  await call.say(speech)
  await call.agentHeard()
  t.same(asked, ['text', 'voice'])
  t.equal(textsOf(server).length, 1)
  call.session.say('Please wait.')
  await call.next('agent_text', (event) => event.text === 'Please wait.')
  t.match(
    textsOf(server)[1],
    /Speak of tea only[^]*And of milk[^]*From your company[^]*Offer a biscuit[^]*The caller said: "No \\"sugar\\"\."[^]*Please wait/,
  )
  t.equal(log.lines.filter(({ message }) => message.includes('instructions')).length, 1)
})

test('durations, messages and histories of any kind are read or left alone', (t) => {
  t.same(['59.5s', '0s', '5', '-1s', '', undefined].map(msOf), [59_500, 0, null, null, null, null])
  t.same(readMessage({ goAway: 'now' }), {})
  t.equal(historyOf([]), null)
  const long = Array.from({ length: 500 }, (_, index) => ({
    role: 'user' as const,
    text: `${index} ${'x'.repeat(1000)}`,
  }))
  const turns = historyOf(long)?.clientContent.turns ?? []
  t.ok(turns.length > 10 && turns.length < 50)
  t.match(turns.at(-1)?.parts[0]?.text, /^499 /)
  t.equal(isRetryable('it closed the connection (1007: Request contains an invalid argument.)', 1007, false), false)
  t.equal(isRetryable('the connection was lost (1007: Request contains an invalid argument.)', 1007, true), true)
  t.equal(isRetryable('the connection was lost (1008: Requested entity was not found.)', 1008, true), true)
  t.equal(
    isRetryable('it answered: models/x is not found for API version v1beta, or is not served', 1011, false),
    false,
  )
  t.equal(isRetryable('the connection was lost (1011: You exceeded your current quota)', 1011, true), false)
  t.end()
})

const createDetector = await createVoiceDetectors()

type Opened = { readonly clock?: Clock; readonly memory?: Json }

/** A session without a talk: what it is asked for, and what comes of it. The line is fed faster than life. */
async function openLine(t: Test, server: GeminiServer, { clock = systemClock, memory = null }: Opened = {}) {
  const events: WireTold[] = []
  const openWire = createGeminiWire({
    url: server.url,
    apiKey: server.key,
    model: 'gemini-3.8-live',
    voice: null,
    clock,
    tellOnce: () => {},
    createDetector,
  })
  const { instructions: _, ...config } = callConfig({ memory, tools: [lookup] })
  const wire = await openWire({ ...config, instructions: 'Be kind.' }, (event) => events.push(event))
  t.teardown(() => wire.close())
  const said = (): string[] => [
    ...new Map(
      events.flatMap((event) => (event.type === 'agent_text' ? [[event.itemId, event.text] as const] : [])),
    ).values(),
  ]
  const feed = (samples: Int16Array): void => {
    for (let at = 0; at < samples.length; at += 320) {
      const frame = new Int16Array(320)
      frame.set(samples.subarray(at, at + 320))
      wire.hear(bytesOf(frame))
    }
  }
  return {
    wire,
    events,
    said,
    feed,
    silence: (ms: number) => feed(new Int16Array(ms * 16)),
    count: (type: WireTold['type']) => events.filter((event) => event.type === type).length,
    memory: () => events.findLast((event) => event.type === 'memory')?.memory ?? null,
    sound: () => Buffer.concat(events.flatMap((event) => (event.type === 'audio' ? [event.payload] : []))),
  }
}

async function openServer(t: Test, options: Partial<GeminiOptions> = {}): Promise<GeminiServer> {
  const server = await openGeminiServer({ model: () => [{ text: 'Hello there.' }], ...options })
  t.teardown(() => server.close())
  return server
}

/** All of the line has been heard by the server. */
const heardBy = (server: GeminiServer, frames: number): Promise<true> =>
  until(() => server.received('realtimeInput').filter(({ audio }) => audio).length >= frames)

const framesOf = (samples: Int16Array): number => Math.ceil(samples.length / 320)

test('nobody asks the model while the caller speaks: its answer is the reply, and words that are owed follow', async (t) => {
  const asked: string[] = []
  const server = await openServer(t, {
    transcript: () => 'Yes, please.',
    model({ kind }) {
      asked.push(kind)
      return [{ text: 'As you said.' }]
    },
  })
  const { wire, feed, silence, said, count } = await openLine(t, server)
  feed(speech)
  t.equal(count('user_speech_started'), 1)
  wire.reply(null)
  wire.say('Please wait.')
  silence(100)
  await heardBy(server, framesOf(speech) + 5)
  t.same(textsOf(server), [])
  silence(900)
  await until(() => said().includes('Please wait.') && count('reply_done') === 2)
  t.same(said(), ['As you said.', 'Please wait.'])
  silence(5_000)
  await heardBy(server, framesOf(speech) + 300)
  t.same(asked, ['voice'])
  t.equal(textsOf(server).length, 1)
})

test('words that the caller talked over before they began are said after the answer', async (t) => {
  const server = await openServer(t, { firstAudioAfter: 400, model: () => [{ text: 'As you said.' }] })
  const { wire, feed, silence, said, count } = await openLine(t, server)
  wire.say('Please wait.')
  await until(() => textsOf(server).length === 1)
  feed(speech)
  silence(900)
  await until(() => said().includes('Please wait.') && count('reply_done') === 2)
  t.same(said(), ['As you said.', 'Please wait.'])
})

test('what only we have heard is not answered: the model is asked when its answer does not come', async (t) => {
  const server = await openServer(t)
  const { wire, feed, silence, said, count } = await openLine(t, server)
  let loudest = 0
  for (let at = 0; at < speech.length; at += 320) loudest = Math.max(loudest, levelOf(speech.subarray(at, at + 320)))
  const faint = speech.map((sample) => (sample * 290) / loudest)
  feed(faint)
  t.equal(count('user_speech_started'), 1)
  wire.reply(null)
  silence(3_000)
  t.equal(count('user_speech_stopped'), 1)
  await heardBy(server, framesOf(speech) + 150)
  t.same(textsOf(server), [])
  silence(1_500)
  await until(() => said().length === 1)
  t.equal(textsOf(server).length, 1)
})

test('our own text that breaks off what the model had not begun to say is no caller, and is answered', async (t) => {
  const server = await openServer(t, { firstAudioAfter: 200 })
  const { wire, said, count } = await openLine(t, server)
  wire.say('Please wait.')
  await until(() => textsOf(server).length === 1)
  server.sessions[0]!.send({ serverContent: { interrupted: true } })
  server.sessions[0]!.send({ serverContent: { turnComplete: true } })
  await until(() => count('reply_done') === 1)
  t.same(said(), ['Please wait.'])
  t.equal(count('user_speech_started'), 0)
  t.equal(textsOf(server).length, 1)
})

test('a result that cannot be sent is told in writing, and answered', async (t) => {
  const server = await openServer(t, {
    model: ({ text }) => (text.includes('"seven"') ? [{ text: 'It says seven.' }] : [{ call: 'lookup', args: {} }]),
  })
  const { wire, events, said, silence } = await openLine(t, server)
  wire.reply(null)
  await until(() => events.some(({ type }) => type === 'tool_call'))
  const call = events.find((event) => event.type === 'tool_call')
  const [session] = server.sessions
  session!.stopReading()
  const flood = new Uint8Array(128_000)
  for (let count = 0; count < 150; count++) wire.hear(flood)
  wire.answerTool(call?.id ?? '', 'lookup', { result: 'seven' }, true)
  session!.readOn()
  await heardBy(server, 5)
  // It is sent when the provider reads again, with the frames of the line.
  await until(() => {
    silence(20)
    return said()[0] === 'It says seven.'
  })
  t.same(server.received('toolResponse'), [])
  t.same(said(), ['It says seven.'])
})

test('a result that was lost with its session is told to the next one, and answered once', async (t) => {
  const server: GeminiServer = await openServer(t, {
    model({ kind, text }) {
      if (kind === 'tool') server.sessions[0]!.die()
      return text.includes('"seven"') ? [{ text: 'It says seven.' }] : [{ call: 'lookup', args: {} }]
    },
  })
  const first = await openLine(t, server)
  first.wire.reply(null)
  await until(() => first.count('tool_call') === 1)
  const call = first.events.find((event) => event.type === 'tool_call')
  first.wire.answerTool(call?.id ?? '', 'lookup', { result: 'seven' }, true)
  await until(() => first.count('failed') === 1)
  const memory = JSON.parse(JSON.stringify(first.memory())) as Json
  for (const isAsked of [true, false]) {
    const next = await openLine(t, server, { memory })
    const before = textsOf(server).length
    if (isAsked) next.wire.reply(null)
    next.silence(200)
    await until(() => next.count('reply_done') === 1 && !JSON.stringify(next.memory()).includes('seven'))
    t.same(next.said(), ['It says seven.'])
    next.silence(1_000)
    t.equal(textsOf(server).length, before + 1)
    next.wire.close()
  }
})

test('a turn that was asked for and brings nothing is over all the same', async (t) => {
  const over = ['reply_started', 'reply_done']
  const isReply = ({ type }: WireTold): boolean => over.includes(type)
  for (const words of [[], [{ reason: 'RESPONSE_REJECTED' }]]) {
    const server = await openServer(t, { model: () => words })
    const { wire, events } = await openLine(t, server)
    wire.reply(null)
    await until(() => events.filter(isReply).length >= 2)
    t.same(
      events.filter(isReply).map(({ type }) => type),
      over,
    )
  }
  const server = await openServer(t, { firstAudioAfter: 3_600_000 })
  const { wire, events, silence, count } = await openLine(t, server)
  wire.reply(null)
  silence(9_900)
  t.equal(count('reply_started'), 0)
  silence(200)
  t.same(
    events.filter(isReply).map(({ type }) => type),
    over,
  )
})

test('a text that the model passes over is sent once more', async (t) => {
  const server = await openServer(t, { passesOver: (count) => count === 0 })
  const { wire, said, silence } = await openLine(t, server)
  wire.instruct('Speak of tea only.')
  wire.say('Please wait.')
  silence(3_900)
  await heardBy(server, 195)
  t.equal(textsOf(server).length, 1)
  silence(200)
  await until(() => said()[0] === 'Please wait.')
  t.same(said(), ['Please wait.'])
  const [first, second] = textsOf(server)
  t.equal(second, first, 'with the news that went with it')
  t.match(second, /tea/)
})

test('a turn that was silent, or rejected, is asked for once more, and not twice', async (t) => {
  for (const reason of ['RESPONSE_REJECTED', 'MALFORMED_FUNCTION_CALL', null]) {
    const bad: readonly ModelWords[] = reason === null ? [] : [{ reason }]
    const mended = await openServer(t, { model: ({ count }) => (count === 0 ? bad : [{ text: 'Hello there.' }]) })
    const asked = await openLine(t, mended)
    asked.wire.say('Please wait.')
    asked.wire.reply(null)
    await until(() => {
      asked.silence(20)
      return asked.said()[1] === 'Hello there.'
    })
    asked.silence(1_000)
    t.same(asked.said(), ['Please wait.', 'Hello there.'])

    const mute = await openServer(t, { model: () => bad })
    const never = await openLine(t, mute)
    never.wire.reply(null)
    await until(() => never.count('reply_done') === 1)
    never.silence(20)
    await until(() => textsOf(mute).length === 2)
    never.silence(3_000)
    await heardBy(mute, 151)
    t.equal(textsOf(mute).length, 2)
  }
})

test('a model that says nothing any more, whatever it is asked, is given up for a session that knows what was said and no more', async (t) => {
  const server = await openServer(t, { model: ({ count }) => (count === 0 ? [{ text: 'Hello there.' }] : []) })
  const { wire, events, said, silence, count } = await openLine(t, server)
  wire.reply(null)
  await until(() => said()[0] === 'Hello there.' && count('reply_done') === 1)
  await until(() => {
    wire.reply(null)
    silence(20)
    return count('failed') === 1
  })
  t.match(events.at(-1), { type: 'failed', details: 'the model says nothing any more', isRetryable: true })
  t.equal(textsOf(server).length, 5, 'two requests, each asked twice')
  t.match(
    events.findLast(({ type }) => type === 'memory'),
    { memory: null },
  )
})

test('so is the answer to the caller, unless the model waits for them to go on', async (t) => {
  for (const [bad, texts] of [
    [[], 1],
    [[{ reason: 'RESPONSE_REJECTED' }], 1],
    [[{ reason: 'NEED_MORE_INPUT' }], 0],
  ] as const) {
    const server = await openServer(t, {
      transcript: () => 'Yes, please.',
      model: ({ count }) => (count === 0 ? bad : [{ text: 'As you said.' }]),
    })
    const { feed, silence, said, count } = await openLine(t, server)
    feed(speech)
    silence(900)
    await until(() => count('user_text') > 0 && server.received('realtimeInput').length > 0)
    await heardBy(server, framesOf(speech) + 45)
    // The end of the turn comes behind the words.
    await until(() => count('memory') > 1)
    silence(1_000)
    if (texts === 1) await until(() => said()[0] === 'As you said.')
    t.equal(textsOf(server).length, texts)
    silence(2_000)
    t.equal(textsOf(server).length, texts)
  }
})

test('a tool whose answer brings nothing is over all the same', async (t) => {
  const server = await openServer(t, { model: ({ kind }) => (kind === 'tool' ? [] : [{ call: 'lookup', args: {} }]) })
  const { wire, events, silence, count } = await openLine(t, server)
  wire.reply(null)
  await until(() => count('tool_call') === 1)
  silence(600)
  t.equal(count('reply_done'), 1)
  const call = events.find((event) => event.type === 'tool_call')
  wire.answerTool(call?.id ?? '', 'lookup', {}, true)
  await until(() => count('reply_done') === 2)
  t.equal(count('reply_started'), 2)
})

test('a connection that the provider does not end expires by our own count, once', async (t) => {
  const hand = createHandClock()
  const clock: Clock = {
    now: systemClock.now,
    after: (ms, action) => (ms > 60_000 ? hand : systemClock).after(ms, action),
  }
  const server = await openServer(t)
  const { events, wire } = await openLine(t, server, { clock })
  const expiring = () => events.flatMap((event) => (event.type === 'expiring' ? [event.within] : []))
  hand.advance(8.9 * 60_000)
  t.same(expiring(), [])
  hand.advance(0.1 * 60_000)
  t.same(expiring(), [60_000])
  wire.close()
  const told = await openLine(t, server, { clock })
  server.sessions[1]!.goAway('999999999s')
  await until(() => told.count('expiring') === 1)
  t.same(told.events.at(-1), { type: 'expiring', within: 600_000 })
  t.equal(hand.pending(), 0, 'what the provider tells is better')
  const closed = await openLine(t, server, { clock })
  closed.wire.close()
  t.equal(hand.pending(), 0)
})

const soundMessage = (bytes: Buffer, mimeType?: string) => ({
  serverContent: {
    modelTurn: { parts: [{ inlineData: { data: bytes.toString('base64'), ...(mimeType && { mimeType }) } }] },
  },
})
const toneOf = (rateHz: number): Buffer =>
  Buffer.from(
    bytesOf(Int16Array.from({ length: rateHz }, (_, at) => 8_000 * Math.sin((2 * Math.PI * 500 * at) / rateHz))),
  )

test('sound that is cut within a sample is joined again, and none of it goes over into the next turn', async (t) => {
  const server = await openServer(t)
  const { sound, count } = await openLine(t, server)
  const [session] = server.sessions
  const tone = toneOf(24_000)
  for (const [from, to] of [
    [0, 1],
    [1, 4_002],
    [4_002, 4_003],
    [4_003, 20_001],
  ])
    session!.send(soundMessage(tone.subarray(from, to), 'audio/pcm;rate=24000'))
  session!.send({ serverContent: { turnComplete: true } })
  session!.send(soundMessage(tone.subarray(0, 2_000)))
  session!.send({ serverContent: { turnComplete: true } })
  await until(() => count('reply_done') === 2)
  t.ok(sound().equals(Buffer.concat([tone.subarray(0, 20_000), tone.subarray(0, 2_000)])))
})

test('sound at another rate is converted, and what is no sound is passed over', async (t) => {
  for (const rate of [8_000, 16_000, 48_000]) {
    const server = await openServer(t)
    const { sound, count } = await openLine(t, server)
    const [session] = server.sessions
    const tone = toneOf(rate)
    session!.send(soundMessage(Buffer.from('no sound'), 'image/png'))
    for (let at = 0; at < tone.length; at += 1_001) {
      session!.send(soundMessage(tone.subarray(at, at + 1_001), `audio/pcm; rate=${rate}`))
    }
    session!.send({ serverContent: { turnComplete: true } })
    await until(() => count('reply_done') === 1)
    const samples = samplesOf(sound())
    t.ok(Math.abs(samples.length - 24_000) <= 2, `${samples.length} samples of a second at ${rate} Hz`)
    // Halves of waves; near nothing there is ripple.
    const halves = samples.filter((sample) => Math.abs(sample) > 2_000).map(Math.sign)
    const waves = halves.reduce((sum, half, at) => sum + Number(half !== halves[at - 1]), 0)
    t.ok(Math.abs(waves - 1_000) <= 5, `${waves} halves of a wave of 500 Hz`)
  }
})

test('sound that we cannot play ends the session with the reason', async (t) => {
  for (const mimeType of ['audio/opus', 'audio/pcm;rate=1']) {
    const server = await openServer(t)
    const { events, count } = await openLine(t, server)
    server.sessions[0]!.send(soundMessage(Buffer.alloc(100), mimeType))
    server.sessions[0]!.send(soundMessage(Buffer.alloc(100)))
    await until(() => count('failed') > 0)
    t.match(events.at(-1), { type: 'failed', details: new RegExp(mimeType), isRetryable: false })
    t.same(count('audio'), 0)
  }
})
