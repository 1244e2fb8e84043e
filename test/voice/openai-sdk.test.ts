/** The fake OpenAI Realtime speaks as the official client understands it: what the engine is proved against is no invention of ours. */
import OpenAI from 'openai'
import { OpenAIRealtimeWS } from 'openai/realtime/ws'
import type { RealtimeServerEvent } from 'openai/resources/realtime/realtime'
import { test, type Test } from 'tap'
import { realtimeModel, type RealtimeOptions } from '../fake/openai-realtime-options.ts'
import { openRealtimeServer } from '../fake/openai-realtime-server.ts'
import { fakeTls } from '../scenes/tls.ts'

async function connect(t: Test, model: RealtimeOptions['model']) {
  const server = await openRealtimeServer({ model, tls: true })
  const baseURL = server.url.replace('wss:', 'https:').replace('/realtime', '')
  const client = new OpenAI({ apiKey: server.key, baseURL })
  const realtime = new OpenAIRealtimeWS({ model: realtimeModel, options: { ca: fakeTls.cert } }, client)
  const events: RealtimeServerEvent[] = []
  realtime.on('event', (event) => events.push(event))
  const errors: unknown[] = []
  realtime.on('error', (error) => errors.push(error.error?.code))
  t.teardown(async () => {
    realtime.close()
    await server.close()
  })
  await realtime.emitted('session.created')
  const types = (): string[] => events.map(({ type }) => type)
  return { server, realtime, events, errors, types }
}

const languages = ['en']
const input = {
  format: { type: 'audio/pcm', rate: 24000 },
  transcription: { model: 'gpt-transcribe', languages },
  turn_detection: { type: 'server_vad' },
} as const

test('the official client sets a session up, speaks to it, and hears text and sound', async (t) => {
  const { realtime, events, types, server } = await connect(t, () => [{ text: 'Hello there.' }])
  realtime.send({ type: 'session.update', session: { type: 'realtime', instructions: 'Be kind.', audio: { input } } })
  t.match((await realtime.emitted('session.updated')).session, { type: 'realtime', instructions: 'Be kind.' })
  const loud = Int16Array.from({ length: 24_000 }, (_, index) => 8000 * Math.sin(index / 8))
  const done = realtime.emitted('response.done')
  for (const samples of [loud, new Int16Array(24_000)])
    for (let at = 0; at < samples.length; at += 480) {
      const audio = Buffer.from(samples.slice(at, at + 480).buffer).toString('base64')
      realtime.send({ type: 'input_audio_buffer.append', audio })
    }
  t.match((await done).response, { status: 'completed', output: [{ type: 'message', role: 'assistant' }] })
  const order = [
    'input_audio_buffer.speech_started',
    'input_audio_buffer.speech_stopped',
    'input_audio_buffer.committed',
    'response.created',
    'response.output_item.added',
    'response.output_audio.delta',
    'response.output_audio_transcript.done',
    'response.output_item.done',
    'response.done',
  ]
  t.same(
    types().filter((type, index, all) => order.includes(type) && all.indexOf(type) === index),
    order,
  )
  const texts = events.flatMap((event) =>
    event.type === 'response.output_audio_transcript.delta' ? [event.delta] : [],
  )
  t.equal(texts.join(''), 'Hello there.')
  t.ok(types().includes('conversation.item.input_audio_transcription.completed'))
  t.same(server.errors(), [])
})

test('the official client is called back for a tool and gives its result', async (t) => {
  const { realtime, server } = await connect(t, ({ last }) =>
    last?.type === 'function_call_output' ? [{ text: last.output }] : [{ call: 'lookup', arguments: '{"key":"blue"}' }],
  )
  realtime.send({ type: 'response.create' })
  const call = await realtime.emitted('response.function_call_arguments.done')
  t.match(call, { name: 'lookup', arguments: '{"key":"blue"}' })
  const item = { type: 'function_call_output', call_id: call.call_id, output: 'Seven.' } as const
  realtime.send({ type: 'conversation.item.create', item })
  realtime.send({ type: 'response.create' })
  t.equal((await realtime.emitted('response.output_audio_transcript.done')).transcript, 'Seven.')
  t.same(server.errors(), [])
})

test('the official client knows the response it asked for by its metadata', async (t) => {
  const { realtime, server } = await connect(t, () => [{ text: 'Hello.' }])
  const metadata = { reply: 'the first' }
  realtime.send({ type: 'response.create', response: { metadata } })
  t.same((await realtime.emitted('response.created')).response.metadata, metadata)
  const { response } = await realtime.emitted('response.done')
  t.same(response.metadata, metadata)
  t.same(server.errors(), [])
})

test('the official client is told its errors, and by which field', async (t) => {
  const { realtime, errors } = await connect(t, () => [{ text: 'A long sentence that takes its time.' }])
  const params: unknown[] = []
  realtime.on('error', (error) => params.push(error.error?.param))
  realtime.send({ type: 'session.update', session: { type: 'realtime', temperature: 1 } as never })
  realtime.send({ type: 'conversation.item.truncate', item_id: 'nobody', content_index: 0, audio_end_ms: 1 })
  const item = { type: 'function_call_output', call_id: 'nobody', output: '' } as const
  realtime.send({ type: 'conversation.item.create', item })
  realtime.send({ type: 'response.create' })
  realtime.send({ type: 'response.create' })
  // Not `emitted`, which gives up at the first error.
  await new Promise((resolve) => realtime.on('response.done', resolve))
  const active = 'conversation_already_has_active_response'
  t.same(errors, ['unknown_parameter', 'item_truncate_invalid_item_id', 'invalid_tool_call_id', active])
  t.same(params.slice(0, 3), ['session.temperature', 'item_id', 'item.call_id'])
})
