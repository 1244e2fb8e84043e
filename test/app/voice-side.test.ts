/** Which engines a process has: those that are set up, in the order of preference, and the embedded one always. */
import { readFile } from 'node:fs/promises'
import { test } from 'tap'
import { systemClock } from '../../app/clock.ts'
import { readConfig } from '../../app/config.ts'
import { openEngine, openEngines, providersOf } from '../../app/voice-side.ts'
import { chooseEngine } from '../../actors/call/engine-choice.ts'
import { createQuietLog } from '../fake/quiet-log.ts'

const keys = { OPENAI_API_KEY: 'a', GEMINI_API_KEY: 'b', CASCADE_URL: 'http://127.0.0.1:9/v1', CASCADE_CHAT_MODEL: 'm' }
const deps = { log: createQuietLog(), clock: systemClock }
const call = { workerConfig: {}, request: {}, hookAnswer: {} }

test('providers are preferred in one order, and only those that are set up are there', async (t) => {
  const of = (environment: Record<string, string>) => providersOf(readConfig(environment).voice)
  t.same(of({}), ['embedded'])
  t.same(of({ GEMINI_API_KEY: 'b' }), ['voice_provider_b', 'embedded'])
  t.same(of(keys), ['voice_provider_a', 'voice_provider_b', 'cascade', 'embedded'])
})

test('engines are opened under the names of their providers, without asking those anything', async (t) => {
  await using closing = new AsyncDisposableStack()
  const { engines, embedded } = await openEngines(readConfig(keys), deps, closing)
  t.same([...engines.keys()], ['voice_provider_a', 'voice_provider_b', 'cascade', 'embedded'])
  for (const [provider, engine] of engines) t.equal(engine.name, provider)
  t.equal(engines.get('embedded'), embedded)
  t.ok((await embedded.speak('Yes.')).length > 0, 'it speaks for a synthetic caller')
  t.equal(chooseEngine(engines, call)?.name, 'voice_provider_a', 'the first of them is taken when nobody asks')
  t.equal(chooseEngine(engines, { ...call, workerConfig: { llmProvider: 'cascade' } })?.name, 'cascade')
})

test('what is not set up is not opened', async (t) => {
  const { voice } = readConfig({ EMBEDDED_HEARING: 'script' })
  t.equal(voice.embedded.hearing, 'script')
  for (const provider of ['voice_provider_a', 'voice_provider_b', 'cascade'] as const)
    t.equal(await openEngine(provider, voice, deps), null, provider)
})

test('no model is taken by default whose end OpenAI has announced; one that the operator chooses is told at the start', async (t) => {
  const address = 'https://api.openai.com/v1'
  const told = async (more: Record<string, string>): Promise<unknown[]> => {
    await using closing = new AsyncDisposableStack()
    const log = createQuietLog()
    await openEngines(readConfig({ ...keys, CASCADE_URL: address, ...more }), { ...deps, log }, closing)
    return log.lines.map(({ fields }) => [fields['setting'], fields['model'], fields['on']])
  }
  t.same(await told({}), [])
  const dying = {
    OPENAI_REALTIME_MODEL: 'gpt-realtime-mini',
    OPENAI_TRANSCRIPTION_MODEL: 'gpt-4o-mini-transcribe',
    CASCADE_TRANSCRIPTION_MODEL: 'whisper-1',
    CASCADE_SPEECH_MODEL: 'tts-1-hd',
  }
  t.same(await told(dying), [
    ['OPENAI_REALTIME_MODEL', 'gpt-realtime-mini', '2027-01-20'],
    ['OPENAI_TRANSCRIPTION_MODEL', 'gpt-4o-mini-transcribe', '2027-02-26'],
    ['CASCADE_TRANSCRIPTION_MODEL', 'whisper-1', '2027-02-26'],
    ['CASCADE_SPEECH_MODEL', 'tts-1-hd', '2027-01-06'],
  ])
  const own = {
    ...dying,
    OPENAI_REALTIME_URL: 'wss://proxy.example.com/v1/realtime',
    CASCADE_URL: 'http://127.0.0.1:9/v1',
  }
  t.same(await told(own), [], 'servers of one’s own use these names as well')
})

test('.env.example offers Ollama where a chat model is asked, and for the chat of the cascade alone of what speaks', async (t) => {
  const lines = (await readFile(new URL('../../.env.example', import.meta.url), 'utf8')).split('\n')
  t.same(
    lines.filter((line) => /^#\w+=.*:11434/.test(line)).map((line) => line.split('=')[0]),
    ['#CASCADE_CHAT_URL', '#EXTRACTION_URL'],
  )
})
