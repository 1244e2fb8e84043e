/** What only OpenAI Realtime has: its configuration, its order of events, its errors and its end. On a server that is as strict as the real one. */
import { test, type Test } from 'tap'
import { systemClock } from '../../app/clock.ts'
import { EngineRefusal, type EngineConfig, type EngineEvent, type VoiceEngine } from '../../model/voice-engine.ts'
import { createOpenAiRealtimeEngine } from '../../voice/engines/openai-realtime/engine.ts'
import { createLineClock } from '../../voice/engines/openai-realtime/line-clock.ts'
import { realtimeModel, type RealtimeOptions } from '../fake/openai-realtime-options.ts'
import { openRealtimeServer } from '../fake/openai-realtime-server.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { callConfig, openSpokenCall, type SpokenCall } from '../fake/spoken-call.ts'

const pcm = { encoding: 'pcm16', rateHz: 24000 } as const
const pcmu = { encoding: 'pcmu', rateHz: 8000 } as const
const { voiceId: _, ...worker } = callConfig().worker
const config = callConfig({ worker, formats: { hears: pcm, speaks: pcm } })
const lookup = {
  name: 'lookup',
  description: 'Looks a colour up.',
  inputSchema: { type: 'object' as const, properties: { key: { type: 'string' } }, required: ['key'] },
}
const speech = Int16Array.from({ length: 16_000 }, (_sample, index) => 8000 * Math.sin(index / 5))
const hello: RealtimeOptions['model'] = ({ count }) => [{ text: `Hello, this is sentence number ${count}.` }]

async function open(t: Test, options: Partial<RealtimeOptions> = {}) {
  const server = await openRealtimeServer({ model: hello, ...options })
  const log = createQuietLog()
  const engineWith = (changes: object = {}): VoiceEngine => {
    const provider = { url: server.url, apiKey: server.key, model: realtimeModel, voice: 'marin', ...changes }
    return createOpenAiRealtimeEngine({ ...provider, transcriptionModel: 'gpt-transcribe', log, clock: systemClock })
  }
  const engine = engineWith()
  t.teardown(async () => {
    await engine.close()
    await server.close()
  })
  const call = (changes: Partial<EngineConfig> = {}): Promise<SpokenCall> =>
    openSpokenCall(engine, { ...config, ...changes })
  return { server, log, engine, engineWith, call }
}

const finals = (events: readonly EngineEvent[]) =>
  events.flatMap((event) => (event.type === 'user_text' && event.isFinal ? [event.text] : []))
/** The caller hears the agent out, then speaks. */
async function answer(call: SpokenCall): Promise<void> {
  await call.listens()
  await call.say(speech)
}

test('telephone sound is agreed on as it is, with the language, the voice and the tools', async (t) => {
  const { server, call } = await open(t)
  const { session } = await call({ formats: { hears: pcmu, speaks: pcmu }, tools: [lookup], language: 'de-CH' })
  const update = server.events('session.update')[0]!.session
  t.match(update, {
    type: 'realtime',
    audio: {
      input: { format: { type: 'audio/pcmu' }, transcription: { model: 'gpt-transcribe', language: 'de' } },
      output: { format: { type: 'audio/pcmu' }, voice: 'marin' },
    },
  })
  t.match(update, { tools: [{ type: 'function', name: 'lookup' }, { name: 'end_call' }] })
  t.same(server.errors(), [])
  session.close()
})

test('a voice the provider has not got is told once and replaced by the voice of the engine', async (t) => {
  const { server, log, call } = await open(t)
  for (let times = 0; times < 2; times++) (await call({ worker: { ...worker, voiceId: 'rms' } })).session.close()
  t.same(server.errors(), ['invalid_value', 'invalid_value'])
  t.equal(server.events('session.update').length, 2)
  t.equal(log.lines.filter(({ message }) => message.includes('"rms"')).length, 1)
})

test('a temperature is told once to be without effect', async (t) => {
  const { log, call } = await open(t)
  for (let times = 0; times < 2; times++) (await call({ worker: { ...worker, llmTemperature: 1 } })).session.close()
  t.equal(log.lines.filter(({ message }) => message.includes('llmTemperature')).length, 1)
})

test('a wrong key, a provider without quota and one under load refuse the session; only the last may be tried again', async (t) => {
  const refusalOf = async (engine: VoiceEngine): Promise<EngineRefusal> =>
    engine
      .open(config, () => t.fail('a refused session says nothing'))
      .then(
        () => t.fail('it was opened') as never,
        (error) => error as EngineRefusal,
      )
  const wrong = await refusalOf((await open(t)).engineWith({ apiKey: 'sk-wrong' }))
  t.match(wrong, { isRetryable: false, message: /401/ })
  t.notMatch(wrong.message, /sk-wrong/)
  const poor = await open(t, {
    setupAfter: 5000,
    refusal: { type: 'invalid_request_error', code: 'insufficient_quota' },
  })
  t.match(await refusalOf(poor.engine), { isRetryable: false, message: /insufficient_quota/ })
  const busy = await open(t, { setupAfter: 5000, refusal: { type: 'server_error', code: 'server_error' } })
  const refusal = await refusalOf(busy.engine)
  t.ok(refusal instanceof EngineRefusal)
  t.equal(refusal.isRetryable, true)
})

test('what was said before is told to the model as text, each with its speaker', async (t) => {
  const { server, call } = await open(t)
  const history = [{ role: 'agent', text: 'Tea?' } as const, { role: 'user', text: 'Yes.' } as const]
  const { session } = await call({ history, owesReply: false })
  await call().then((other) => other.agent())
  t.match(
    server.events('conversation.item.create').map(({ item }) => item),
    [
      { role: 'assistant', content: [{ type: 'output_text', text: 'Tea?' }] },
      { role: 'user', content: [{ type: 'input_text', text: 'Yes.' }] },
    ],
  )
  t.same(server.errors(), [])
  session.close()
})

test('a caller who breaks in: the model remembers what was heard, in whole milliseconds, and no more than it said', async (t) => {
  const { server, call } = await open(t, { pace: 1 })
  const spoken = await call()
  const { itemId } = await spoken.next('item_done')
  const whole = spoken.soundOf(itemId)
  spoken.session.interrupt({ itemId, playedMs: 730.5 })
  spoken.session.interrupt({ itemId, playedMs: 9_999_999 })
  spoken.session.interrupt({ itemId, playedMs: 0 })
  spoken.session.interrupt({ itemId, playedMs: 400 })
  spoken.session.say('Go on.')
  await spoken.next('agent_text')
  t.same(
    server.events('conversation.item.truncate').map(({ audio_end_ms }) => audio_end_ms),
    [730, whole],
  )
  t.same(
    server.events('conversation.item.delete').map(({ item_id }) => item_id),
    [itemId],
  )
  t.same(server.events('response.cancel'), [], 'no response is under way')
  spoken.session.close()
})

test('a reply that is cut off without speech is canceled, and nothing more of it is heard', async (t) => {
  const { server, call } = await open(t, { pace: 5 })
  const spoken = await call()
  const { itemId } = await spoken.next('audio')
  spoken.session.interrupt({ itemId, playedMs: 20 })
  const ms = spoken.soundOf(itemId)
  spoken.session.say('Go on.')
  await spoken.next('agent_text', (event) => event.text === 'Go on.')
  t.equal(server.events('response.cancel').length, 1)
  t.equal(spoken.soundOf(itemId), ms)
  t.same(server.errors(), [])
  spoken.session.close()
})

test('transcripts that come late, in the wrong order, not at all or failed are told in the order of what was said', async (t) => {
  const { call } = await open(t, {
    transcript: (count) =>
      [
        { text: 'one', after: 300, logprob: Math.log(0.5) },
        { text: 'two' },
        { text: '', outcome: 'failed' } as const,
        { text: '', outcome: 'never' } as const,
        { text: 'five' },
      ][count] ?? { text: 'more' },
  })
  const spoken = await call()
  spoken.hearEverything()
  for (let times = 0; times < 5; times++) await answer(spoken)
  await spoken.silence(6000)
  await spoken.next('user_text', (event) => event.text === 'five' && event.isFinal)
  t.same(finals(spoken.events), ['one', 'two', '[unclear]', '[unclear]', 'five'])
  const first = spoken.events.find((event) => event.type === 'user_text' && event.isFinal)
  t.ok(first?.type === 'user_text' && Math.abs((first.confidence ?? 0) - 0.5) < 0.001)
  spoken.session.close()
})

test('sound that the provider did not take does not move the times of what follows', (t) => {
  const line = createLineClock()
  for (let frame = 0; frame < 50; frame++) line.frame(true)
  for (let frame = 0; frame < 25; frame++) line.frame(false)
  for (let frame = 0; frame < 50; frame++) line.frame(true)
  t.equal(line.lineMs(500), 500)
  t.equal(line.lineMs(1500), 2000)
  t.equal(line.lineMs(99_999), 2500)
  t.end()
})

test('replies are asked for one at a time, and each is said in its turn', async (t) => {
  const { server, call } = await open(t, { pace: 1 })
  const spoken = await call()
  for (const text of ['First.', 'Second.', 'Third.']) spoken.session.say(text)
  for (const text of ['First.', 'Second.', 'Third.']) await spoken.next('agent_text', (event) => event.text === text)
  t.same(server.errors(), [])
  spoken.session.close()
})

test('two calls in one reply are answered together; arguments that are no object are answered with an error', async (t) => {
  const { server, call } = await open(t, {
    model: ({ last, count }) => {
      if (last?.type === 'function_call_output') return [{ text: 'Both came.' }]
      if (count === 0) return [{ text: 'Hello.' }]
      const [blue, red] = ['{"key":"blue"}', '{"key":"red"}']
      return [blue, red, '[1]'].map((given) => ({ call: 'lookup', arguments: given }))
    },
  })
  const spoken = await call({ tools: [lookup] })
  await answer(spoken)
  const first = await spoken.next('tool_call')
  const second = await spoken.next('tool_call')
  t.not(first.id, second.id)
  t.same([first.arguments, second.arguments], [{ key: 'blue' }, { key: 'red' }])
  const asked = server.events('response.create').length
  spoken.session.toolResult(first.id, 'lookup', { status: 'success', data: { found: 1 } })
  await spoken.settled()
  t.equal(server.events('response.create').length, asked, 'the second is still at work')
  spoken.session.toolResult(second.id, 'lookup', { status: 'success', data: { found: 2 } })
  await spoken.next('agent_text', (event) => event.text === 'Both came.')
  t.equal(spoken.events.filter(({ type }) => type === 'tool_call').length, 2)
  t.same(server.errors(), [])
  spoken.session.close()
})

test('a caller who goes on speaking cancels the tools at work', async (t) => {
  const { server, call } = await open(t, {
    model: ({ count }) => (count === 1 ? [{ call: 'lookup', arguments: '{"key":"blue"}' }] : [{ text: 'Well.' }]),
  })
  const spoken = await call({ tools: [lookup] })
  await answer(spoken)
  const { id } = await spoken.next('tool_call')
  await spoken.say(speech)
  t.equal((await spoken.next('tool_canceled')).id, id)
  spoken.session.toolResult(id, 'lookup', { status: 'success', data: {} })
  await spoken.settled()
  t.equal(server.events('conversation.item.create').length, 1, 'the late result goes nowhere')
  t.same(server.errors(), [])
  spoken.session.close()
})

test('a reply that fails is asked for once more, and then the session is given up', async (t) => {
  const mended = await open(t, {
    model: ({ count }) => (count === 0 ? [{ fails: 'server_error' }] : [{ text: 'Hello.' }]),
  })
  const spoken = await mended.call()
  await spoken.agent()
  t.notOk(spoken.events.some(({ type }) => type === 'failed'))
  const broken = await open(t, { model: () => [{ fails: 'server_error' }] })
  t.match(await (await broken.call()).next('failed'), { isRetryable: true })
  const poor = await open(t, { model: () => [{ fails: 'insufficient_quota' }] })
  t.match(await (await poor.call()).next('failed'), { isRetryable: false })
})

test('an error of one request is told once and survived; the end of the session and a lost connection are not', async (t) => {
  const { server, log, call } = await open(t)
  const spoken = await call()
  await spoken.listens()
  for (let times = 0; times < 3; times++) server.sessions[0]!.error('invalid_request_error', 'odd')
  spoken.session.say('Go on.')
  await spoken.next('agent_text')
  t.equal(log.lines.filter(({ fields }) => fields['code'] === 'odd').length, 1)
  server.sessions[0]!.expire()
  t.match(await spoken.next('failed'), { isRetryable: true })
  const other = await call()
  server.sessions[1]!.die()
  t.match(await other.next('failed'), { isRetryable: true })
  t.equal(other.events.filter(({ type }) => type === 'failed').length, 1)
})

test('garbage and unknown events are survived', async (t) => {
  const { server, call } = await open(t)
  const spoken = await call()
  await spoken.listens()
  const types = [
    'response.created',
    'response.done',
    'response.output_audio.delta',
    'error',
    'session.updated',
    '__proto__',
  ]
  for (const type of [...types, 'input_audio_buffer.committed', 'response.output_item.done', 'constructor'])
    for (const odd of [{}, { item: 7, response: [], delta: 1, error: 'x', item_id: null, response_id: {} }])
      server.sessions[0]!.sendRaw(JSON.stringify({ ...odd, type }))
  await spoken.settled()
  server.sessions[0]!.sendRaw('{"type":"response.done","response":{}}')
  spoken.session.say('Go on.')
  await spoken.next('agent_text', (event) => event.text === 'Go on.')
  server.sessions[0]!.sendRaw('no JSON')
  t.match(await spoken.next('failed'), { isRetryable: true })
})

test('a session that will end is announced, with the time that is left', async (t) => {
  const { call } = await open(t, { expiresAt: Math.floor(Date.now() / 1000) + 200 })
  const spoken = await call()
  const { within } = await spoken.next('expiring')
  t.ok(within > 150_000 && within <= 200_000)
  spoken.session.close()
})
