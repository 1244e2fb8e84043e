/** What only OpenAI Realtime has: its configuration, its order of events, its errors and its end. On a server that is as strict as the real one. */
import { test, type Test } from 'tap'
import { systemClock } from '../../app/clock.ts'
import { EngineRefusal, type EngineConfig, type EngineEvent, type VoiceEngine } from '../../model/voice-engine.ts'
import { createOpenAiRealtimeEngine } from '../../voice/engines/openai-realtime/engine.ts'
import { createLineClock } from '../../voice/engines/openai-realtime/line-clock.ts'
import { realtimeModel, type RealtimeOptions, type Said } from '../fake/openai-realtime-options.ts'
import { openRealtimeServer } from '../fake/openai-realtime-server.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { callConfig, openSpokenCall, type SpokenCall } from '../scenes/spoken-call.ts'

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
    const provider = { url: server.url, apiKey: server.key, model: realtimeModel, voice: 'marin' }
    const rest = { transcriptionModel: 'gpt-transcribe', log, clock: systemClock }
    return createOpenAiRealtimeEngine({ ...provider, ...rest, ...changes })
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
const texts = (events: readonly EngineEvent[]) =>
  events.flatMap((event) => (event.type === 'agent_text' ? [event.text] : []))
/** The caller speaks, and does not stop. */
function speakOn({ session }: SpokenCall, ms: number): void {
  const frame = new Uint8Array(Int16Array.from({ length: 480 }, (_sample, index) => 8000 * Math.sin(index / 5)).buffer)
  for (let at = 0; at < ms; at += 20) session.hear(frame)
}
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
      input: { format: { type: 'audio/pcmu' }, transcription: { model: 'gpt-transcribe', languages: ['de'] } },
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

test('a transcription is told the language as its model takes it, and finds out which where it does not know it', async (t) => {
  const { server, log, call, engineWith } = await open(t)
  const told = () => server.events('session.update').at(-1)!.session as { audio: { input: { transcription: object } } }
  for (const language of ['nb-NO', 'sq', 'sq', 'haw']) (await call({ language })).session.close()
  const given = server
    .events('session.update')
    .map(({ session }) => (session as ReturnType<typeof told>).audio.input.transcription)
  const unknown = { model: 'gpt-transcribe' }
  t.same(given, [{ ...unknown, languages: ['no'] }, unknown, unknown, unknown])
  t.same(server.errors(), ['invalid_value', 'invalid_value'])
  t.equal(log.lines.filter(({ message }) => message.includes('language "sq"')).length, 1)
  const older = engineWith({ transcriptionModel: 'gpt-4o-transcribe' })
  ;(await openSpokenCall(older, { ...config, language: 'nb-NO' })).session.close()
  t.same(told().audio.input.transcription, { model: 'gpt-4o-transcribe', language: 'no' })
  await older.close()
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
  session.recall({ role: 'agent', text: 'Sugar?' })
  session.recall({ role: 'user', text: 'None.' })
  const other = await call()
  other.session.recall({ role: 'user', text: 'Milk.' })
  await other.agent()
  const content = (text: string) => [{ text }]
  t.match(
    server.events('conversation.item.create'),
    [
      { item: { role: 'assistant', content: [{ type: 'output_text', text: 'Tea?' }] } },
      { item: { role: 'user', content: [{ type: 'input_text', text: 'Yes.' }], id: 'earlier_2' } },
      { previous_item_id: 'earlier_2', item: { role: 'assistant', content: content('Sugar?'), id: 'earlier_3' } },
      { previous_item_id: 'earlier_3', item: { role: 'user', content: content('None.') } },
      { previous_item_id: 'root', item: { role: 'user', content: content('Milk.') } },
    ],
    'what is found later in front of what was said since',
  )
  t.same(server.errors(), [])
  session.close()
})

test('of a long talk the newest is told to a new session', async (t) => {
  const { server, call } = await open(t)
  const history = Array.from(
    { length: 500 },
    (_said, index) => ({ role: 'user', text: `${index} ${'x'.repeat(994)}` }) as const,
  )
  const short = Array.from({ length: 500 }, (_said, index) => ({ role: 'agent', text: `${index}` }) as const)
  for (const said of [history, short, [{ role: 'agent', text: ' ' } as const]]) {
    const spoken = await call({ history: said, owesReply: true })
    await spoken.agent()
    spoken.session.close()
  }
  const [long, many, none] = server.sessions.map(({ received }) =>
    received.filter(({ type }) => type === 'conversation.item.create'),
  )
  t.match(JSON.stringify(long!.at(-1)), /499 xx/)
  t.ok(long!.length >= 40 && JSON.stringify(long).length < 60_000)
  t.equal(many!.length, 200)
  t.match(JSON.stringify(many!.at(0)), /"300"/)
  t.same(none, [])
  t.same(server.errors(), [])
})

test('a caller who breaks in: the model remembers what was heard, in whole milliseconds, and no more than it said', async (t) => {
  const { server, call } = await open(t, { pace: 1 })
  const spoken = await call()
  const { itemId } = await spoken.next('item_done')
  spoken.session.interrupt({ itemId, playedMs: 730.5 })
  spoken.session.interrupt({ itemId, playedMs: 9_999_999 })
  spoken.session.interrupt({ itemId, playedMs: 0 })
  spoken.session.interrupt({ itemId, playedMs: 400 })
  spoken.session.say('Go on.')
  await spoken.next('agent_text')
  t.same(
    server.events('conversation.item.truncate').map(({ audio_end_ms }) => audio_end_ms),
    [730],
  )
  t.equal(server.events('conversation.item.delete').length, 1)
  t.same(server.events('response.cancel'), [], 'no response is under way')
  t.same(server.errors(), [])
  spoken.session.close()
})

test('of an item that was heard to its end the model keeps every word', async (t) => {
  const { server, call } = await open(t)
  const spoken = await call()
  const { itemId } = await spoken.next('item_done')
  const whole = spoken.soundOf(itemId)
  for (const playedMs of [whole, whole + 1, whole - 10]) spoken.session.interrupt({ itemId, playedMs })
  spoken.session.say('Go on.')
  await spoken.next('agent_text')
  t.same(server.events('conversation.item.truncate'), [])
  t.same(server.events('conversation.item.delete'), [])
  t.same(server.errors(), [])
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

for (const hasNoMetadata of [false, true])
  test(`a provider that ${hasNoMetadata ? 'does not say' : 'says'} whose a reply is was quicker with one of its own: ours is said after it`, async (t) => {
    const { server, call } = await open(t, { pace: 5, hasNoMetadata })
    const spoken = await call()
    await spoken.listens()
    server.sessions[0]!.answer()
    spoken.session.say('Word for word.')
    await spoken.next('agent_text', (event) => event.text === 'Word for word.')
    await spoken.settled()
    t.same(server.errors(), ['conversation_already_has_active_response'])
    t.equal(texts(spoken.events).filter((text) => text === 'Word for word.').length, 1)
    t.ok(texts(spoken.events).includes('Hello, this is sentence number 1.'))
    spoken.session.close()
  })

test("a failed reply of the provider's own is not taken for ours, which is said once", async (t) => {
  const { server, call } = await open(t, {
    model: ({ count }) => (count === 1 ? [{ fails: 'server_error' }] : [{ text: `Reply ${count}.` }]),
  })
  const spoken = await call()
  await spoken.listens()
  server.sessions[0]!.answer()
  spoken.session.say('Word for word.')
  await spoken.next('agent_text', (event) => event.text.startsWith('Reply'))
  await spoken.settled()
  t.equal(texts(spoken.events).filter((text) => text === 'Word for word.').length, 1)
  t.same(server.errors(), [])
  spoken.session.close()
})

test('nothing is asked for while the caller speaks; the answer of the provider stands for a reply, but not for words that are owed', async (t) => {
  const { server, call } = await open(t, {
    model: ({ count }) =>
      count === 1 ? [{ call: 'lookup', arguments: '{"key":"blue"}' }] : [{ text: `Reply ${count}.` }],
  })
  const spoken = await call({ tools: [lookup] })
  await answer(spoken)
  const { id } = await spoken.next('tool_call')
  const asked = (): number => server.events('response.create').length
  const before = asked()
  speakOn(spoken, 1000)
  await spoken.next('user_speech_started')
  spoken.session.toolResult(id, 'lookup', { status: 'success', data: { found: 1 } })
  spoken.session.say('Word for word.')
  await spoken.settled()
  t.equal(asked(), before)
  await spoken.silence(900)
  await spoken.next('agent_text', (event) => event.text === 'Word for word.')
  await spoken.silence(2000)
  await spoken.settled()
  t.ok(texts(spoken.events).includes('Reply 2.'), 'the provider has answered by itself')
  t.equal(asked(), before + 1, 'only the words that were owed were asked for')
  t.same(server.errors(), [])
  spoken.session.close()
})

test('a caller who begins to speak while a reply is asked for is not spoken over, and what is owed is said afterwards', async (t) => {
  const { server, call } = await open(t, { pace: 5 })
  const spoken = await call()
  await spoken.listens()
  const [session] = server.sessions
  session!.sendRaw('{"type":"input_audio_buffer.speech_started","item_id":"a"}')
  spoken.session.say('Word for word.')
  await spoken.next('user_speech_started')
  const before = spoken.events.length
  await spoken.settled()
  t.same(spoken.events.slice(before), [])
  t.equal(server.events('response.cancel').length, 1)
  session!.sendRaw('{"type":"input_audio_buffer.speech_stopped","item_id":"a"}')
  await spoken.next('user_speech_stopped')
  await spoken.silence(600)
  await spoken.next('agent_text', (event) => event.text === 'Word for word.')
  t.same(server.errors(), [])
  spoken.session.close()
})

test('an answer that does not come is asked for after a moment', async (t) => {
  const { server, call } = await open(t)
  const spoken = await call()
  await spoken.listens()
  const [session] = server.sessions
  session!.sendRaw('{"type":"input_audio_buffer.speech_started","item_id":"a"}')
  await spoken.next('user_speech_started')
  spoken.session.say('Word for word.')
  session!.sendRaw('{"type":"input_audio_buffer.speech_stopped","item_id":"a"}')
  await spoken.next('user_speech_stopped')
  await spoken.settled()
  t.notOk(texts(spoken.events).includes('Word for word.'))
  await spoken.silence(600)
  await spoken.next('agent_text', (event) => event.text === 'Word for word.')
  t.same(server.errors(), [])
  spoken.session.close()
})

test('names of items and calls that the provider uses again are new to the call', async (t) => {
  const { server, call } = await open(t, {
    reusesIds: true,
    model: ({ count, last }) =>
      last?.type === 'message' && last.role === 'user'
        ? [{ call: 'lookup', arguments: '{"key":"blue"}' }]
        : [{ text: `Sentence ${count}.` }],
  })
  const items: string[] = []
  const calls: string[] = []
  for (let times = 0; times < 2; times++) {
    const spoken = await call({ tools: [lookup] })
    spoken.hearEverything()
    for (let turn = 0; turn < 2; turn++) {
      await answer(spoken)
      const { id } = await spoken.next('tool_call')
      calls.push(id)
      spoken.session.toolResult(id, 'lookup', { status: 'success', data: {} })
      await spoken.next('item_done')
    }
    const done = spoken.events.flatMap((event) => (event.type === 'item_done' ? [event.itemId] : []))
    for (const itemId of done) t.ok(spoken.soundOf(itemId) > 0)
    items.push(...done)
    spoken.session.close()
  }
  t.equal(items.length, 6)
  t.equal(new Set(items).size, 6)
  t.equal(new Set(calls).size, 4)
  t.same(server.errors(), [])
})

test('speech whose times the provider does not tell has those of the line', async (t) => {
  const { call } = await open(t, { hasNoTimes: true })
  const spoken = await call()
  await spoken.listens()
  await spoken.silence(2000)
  const before = spoken.at()
  await spoken.say(speech)
  const { at: from } = await spoken.next('user_speech_started')
  const { at: to } = await spoken.next('user_speech_stopped')
  t.ok(from >= before && from <= before + 1900)
  t.ok(to >= from && to <= before + 1900)
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

for (const broken of ['cancelled', 'incomplete'] as const)
  for (const [given, how] of [
    ['{"key":"blue"}', 'whole'],
    ['{"key":"bl', 'cut'],
  ] as const)
    test(`a call whose reply is ${broken} is not run, although its arguments are told as done (${how})`, async (t) => {
      const { server, call } = await open(t, {
        model: ({ count }) =>
          count === 1 ? [{ call: 'lookup', arguments: given, broken }] : [{ text: `Reply ${count}.` }],
      })
      const spoken = await call({ tools: [lookup] })
      await answer(spoken)
      await spoken.settled()
      t.notOk(spoken.events.some(({ type }) => type === 'tool_call'))
      t.same(server.events('conversation.item.create'), [], 'nothing is answered')
      // Of a reply that came to nothing by itself another one is asked for; one that was canceled makes room for the caller.
      t.equal(server.events('response.create').length, broken === 'cancelled' ? 1 : 2)
      t.same(server.errors(), [])
      spoken.session.close()
    })

test('a call that is told by its arguments alone is run when its reply is complete', async (t) => {
  const { call } = await open(t, {
    tellsCallsByArguments: true,
    model: ({ count }) => (count === 1 ? [{ call: 'lookup', arguments: '{"key":"blue"}' }] : [{ text: 'Well.' }]),
  })
  const spoken = await call({ tools: [lookup] })
  await answer(spoken)
  t.same((await spoken.next('tool_call')).arguments, { key: 'blue' })
  await spoken.settled()
  t.equal(spoken.events.filter(({ type }) => type === 'tool_call').length, 1)
  spoken.session.close()
})

test('a reply that is complete and empty, or cut off by the filter of the provider, is asked for once more, and not twice', async (t) => {
  const replies: readonly (readonly Said[])[] = [[], [{ filtered: true }], [{ text: 'Half of' }, { filtered: true }]]
  for (const bad of replies) {
    const mended = await open(t, { model: ({ count }) => (count === 1 ? bad : [{ text: `Reply ${count}.` }]) })
    const spoken = await mended.call()
    await answer(spoken)
    await spoken.next('agent_text', ({ text }) => text === 'Reply 2.')
    t.equal(mended.server.events('response.create').length, 2, 'the first words, and the answer once more')
    t.same(mended.server.errors(), [])
    spoken.session.close()
    const mute = await open(t, { model: ({ count }) => (count === 0 ? [{ text: 'Hello.' }] : bad) })
    const silent = await mute.call()
    await answer(silent)
    await silent.settled()
    t.equal(mute.server.events('response.create').length, 2)
    t.notOk(silent.events.some(({ type }) => type === 'failed'))
    silent.session.close()
  }
  const first = await open(t, { model: ({ count }) => (count === 0 ? [] : [{ text: `Reply ${count}.` }]) })
  const spoken = await first.call()
  t.equal((await spoken.agent()).text, 'Reply 1.', 'so are the first words of the agent')
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

const limits: readonly Extract<Said, { fails: string }>[] = [
  { fails: 'rate_limit_exceeded' },
  // Of Azure, whose type is that of a wrong request.
  { fails: 'inference_rate_limit_exceeded', type: 'invalid_request_error' },
]
for (const limited of limits)
  test(`a provider whose limit is reached (${limited.fails}) is asked again after a second and after two more, and then the session is given up`, async (t) => {
    const { server, call } = await open(t, { model: ({ count }) => (count < 2 ? [limited] : [{ text: 'Hello.' }]) })
    const asked = (): number => server.events('response.create').length
    const spoken = await call()
    for (const [index, wait] of [1000, 2000].entries()) {
      await spoken.settled()
      await spoken.silence(wait - 100)
      await spoken.settled()
      t.equal(asked(), index + 1)
      await spoken.silence(100)
    }
    await spoken.next('agent_text', (event) => event.text === 'Hello.')
    t.equal(asked(), 3)
    t.notOk(spoken.events.some(({ type }) => type === 'failed'))
    spoken.session.close()
    const other = await (await open(t, { model: () => [limited] })).call()
    for (let times = 0; times < 3; times++) {
      await other.settled()
      await other.silence(2000)
    }
    t.match(await other.next('failed'), { isRetryable: true, details: new RegExp(`\\(${limited.fails}\\)`) })
  })

test('a request that is refused for the limit of a provider, which does not say which one, is made again', async (t) => {
  const { server, call } = await open(t)
  const spoken = await call()
  await spoken.listens()
  const [session] = server.sessions
  session!.refuseNext('invalid_request_error', 'inference_rate_limit_exceeded')
  spoken.session.say('Word for word.')
  await spoken.settled()
  await spoken.silence(1000)
  await spoken.next('agent_text', ({ text }) => text === 'Word for word.')
  t.notOk(spoken.events.some(({ type }) => type === 'failed'))
  spoken.session.close()
})

test('what the provider says in its own words is not repeated: it may name a part of the key', async (t) => {
  const said = 'Incorrect API key provided: sk-ab***yz.'
  const refusal = { type: 'invalid_request_error', code: 'invalid_api_key', message: said }
  const { engine } = await open(t, { setupAfter: 5000, refusal })
  const error = await engine
    .open(config, () => t.fail('a refused session says nothing'))
    .catch((reason: unknown) => reason)
  t.match(error, { isRetryable: false, message: /invalid_request_error|invalid_api_key/ })
  t.notMatch(String(error), /sk-|Incorrect/)
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

test('a session whose end is told absurdly is announced no sooner than others, and by no timer that rings at once', async (t) => {
  const hour = 60 * 60_000
  for (const [expiresAt, least] of [
    [1e12, hour],
    [Number.MAX_VALUE, hour],
    [1, 50 * 60_000],
    [-5, 50 * 60_000],
  ] as const) {
    const { engineWith } = await open(t, { expiresAt })
    const waits: number[] = []
    const clock = {
      ...systemClock,
      after(ms: number, action: () => void) {
        waits.push(ms)
        return systemClock.after(ms, action)
      },
    }
    const spoken = await openSpokenCall(engineWith({ clock }), config)
    await spoken.agent()
    t.ok(Math.max(...waits) >= least && Math.max(...waits) < 2 ** 31)
    t.notOk(spoken.events.some(({ type }) => type === 'expiring'))
    spoken.session.close()
  }
})

test('what comes in one packet with the answer to the setup is not lost', async (t) => {
  const { call } = await open(t, {
    expiresAt: Math.floor(Date.now() / 1000) + 200,
    withSetup: [{ type: 'error', error: { type: 'invalid_request_error', code: 'session_expired' } }],
  })
  t.match(await (await call()).next('failed'), { isRetryable: true, details: /longest time/ })
})

test('a session that is being opened while the engine is closed is not left open', async (t) => {
  const { server, engine } = await open(t, { setupAfter: 50 })
  const opening = engine.open(config, () => t.fail('nothing is said'))
  await engine.close()
  await t.rejects(opening, EngineRefusal)
  t.equal(server.events('response.create').length, 0)
})

test('the end of a turn is found by meaning, and the model thinks as hard as the operator says', async (t) => {
  const { server, engineWith } = await open(t)
  const turnDetection = { type: 'semantic_vad', eagerness: 'low' } as const
  const spoken = await openSpokenCall(engineWith({ turnDetection, reasoningEffort: 'low' }), config)
  const { session } = server.events('session.update')[0]!
  t.match(session, {
    reasoning: { effort: 'low' },
    audio: { input: { turn_detection: { ...turnDetection, create_response: true, interrupt_response: true } } },
  })
  await spoken.listens()
  const before = spoken.at()
  await spoken.say(speech)
  const { at: from } = await spoken.next('user_speech_started')
  t.ok(from >= before && from <= before + 1000, 'its times have no padding')
  t.same(server.errors(), [])
  spoken.session.close()
})

test('a caller who hung up is not waited for by meaning: what they said is committed, whatever it is named then', async (t) => {
  const { server, engineWith } = await open(t, { patience: 60_000 })
  const spoken = await openSpokenCall(engineWith({ turnDetection: { type: 'semantic_vad', eagerness: 'low' } }), config)
  await spoken.listens()
  await spoken.say(speech, 0)
  await spoken.session.hearOut()
  const finals = spoken.events.filter((event) => event.type === 'user_text' && event.isFinal)
  t.match(finals, [{ text: /[a-z]/i }])
  t.equal(server.events('input_audio_buffer.commit').length, 1)
  t.same(server.errors(), [])
  spoken.session.close()
})

test('a model that does not think is told so once, and the session opens', async (t) => {
  const { server, log, engineWith } = await open(t, { refusesReasoning: true })
  const engine = engineWith({ reasoningEffort: 'high' })
  for (let times = 0; times < 2; times++) {
    const spoken = await openSpokenCall(engine, config)
    await spoken.agent()
    spoken.session.close()
  }
  t.equal(log.lines.filter(({ message }) => message.includes('OPENAI_REALTIME_REASONING_EFFORT')).length, 1)
  t.same(server.errors(), ['unsupported_parameter', 'unsupported_parameter'])
})

test('a prompt is measured in tokens: one beyond what its model takes is told, one beyond all that it remembers is refused', async (t) => {
  const { log, engineWith } = await open(t)
  const [small, large] = [engineWith({ model: 'gpt-realtime-1.5' }), engineWith()]
  const told = () => log.lines.filter(({ message }) => message.includes('tokens long'))
  const talk = async (engine: VoiceEngine, instructions: string): Promise<void> => {
    const { session } = await openSpokenCall(engine, { ...config, instructions })
    session.close()
  }
  await talk(small, 'word '.repeat(10_000))
  t.same(told(), [], '12,500 tokens of 16,384')
  // As many letters are more tokens in other scripts.
  const chinese = '好'.repeat(20_000)
  await talk(small, chinese)
  t.match(told(), [{ message: /about 2\d{4} tokens long \(estimated\), and gpt-realtime-1\.5 takes at most 16384/ }])
  t.equal(told()[0]?.fields['callId'], config.callId)
  await talk(large, chinese)
  t.equal(told().length, 1)
  const refused = talk(small, '好'.repeat(40_000))
  await t.rejects(refused, {
    name: 'EngineRefusal',
    isRetryable: false,
    message: /gpt-realtime-1\.5 takes at most 28224/,
  })
  const inputSchema = {
    type: 'object' as const,
    properties: { key: { type: 'string', description: '好'.repeat(20_000) } },
  }
  const tools = [{ ...lookup, inputSchema: { ...inputSchema, required: [] } }]
  await openSpokenCall(small, { ...config, tools }).then(({ session }) => session.close())
  t.equal(told().length, 2, 'its tools count')
  const spoken = await openSpokenCall(small, config)
  spoken.session.instruct(chinese)
  t.equal(told().length, 3, 'so do instructions that come during the call')
  spoken.session.close()
})

test('what was said before is told as far as there is room beside the prompt', async (t) => {
  const { server, engineWith } = await open(t)
  const history = Array.from({ length: 300 }, () => ({ role: 'user', text: '好'.repeat(100) }) as const)
  const small = engineWith({ model: 'gpt-realtime-1.5' })
  for (const instructions of ['Short.', '好'.repeat(16_000)]) {
    const spoken = await openSpokenCall(small, { ...config, instructions, history, owesReply: true })
    await spoken.agent()
    spoken.session.close()
  }
  const [short, long] = server.sessions.map(({ received }) =>
    received.filter(({ type }) => type === 'conversation.item.create'),
  )
  t.equal(short!.length, 120)
  t.ok(long!.length > 55 && long!.length < 65)
})
