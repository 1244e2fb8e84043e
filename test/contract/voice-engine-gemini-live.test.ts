/** The engine over Gemini Live keeps the rules of the VoiceEngine port, against a server that speaks the provider's protocol. */
import { systemClock } from '../../app/clock.ts'
import { createSynthesiser } from '../../voice/engines/embedded/synthesiser.ts'
import { createGeminiLiveEngine } from '../../voice/engines/gemini-live/engine.ts'
import type { ModelInput, ModelWords } from '../fake/gemini-live-options.ts'
import { openGeminiServer } from '../fake/gemini-live-server.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { callConfig } from '../scenes/spoken-call.ts'
import { proveVoiceEngine } from './voice-engine-rules.ts'

const synthesiser = await createSynthesiser({ log: createQuietLog(), clock: systemClock })
const answer = await synthesiser.speak('Yes, please.', 'rms')
await synthesiser.close()

function model({ kind, text, setup }: ModelInput): readonly ModelWords[] {
  if (kind === 'tool') return [{ text: 'It says seven.' }]
  if (kind === 'text')
    return [{ text: text.includes('still there') ? 'Are you still there?' : 'Welcome. Would you like a cup of tea?' }]
  const hasLookup = JSON.stringify(setup.tools ?? []).includes('"lookup"')
  if (hasLookup) return [{ call: 'lookup', args: { key: 'blue' } }]
  return [{ text: 'Fine, goodbye.' }, { call: 'end_call', args: {} }]
}

proveVoiceEngine('gemini-live', async () => {
  // Its texts come first: the rules read the first text of an item, and those that come in pieces are proved in gemini-live.test.ts.
  const server = await openGeminiServer({ model, transcript: () => 'Yes, please.', textOrder: 'before', pace: 5 })
  const engine = createGeminiLiveEngine({
    url: server.url,
    apiKey: server.key,
    model: 'gemini-3.8-live',
    voice: 'Puck',
    log: createQuietLog(),
    clock: systemClock,
  })
  const config = callConfig({ formats: { hears: engine.hears[0]!, speaks: engine.speaks[0]! } })
  return {
    engine,
    config,
    answer,
    swollen: {
      version: 1,
      handle: 'a handle that the provider has forgotten',
      news: Array.from({ length: 32 }, (_, at) => ({ text: `${at} ${'検'.repeat(4_000)}`, wantsAnswer: false })),
    },
    withTool: { config, wish: answer },
    // The server has no such voice.
    impossible: { ...config, worker: { ...config.worker, voiceId: 'Zephyr' } },
    async close() {
      await engine.close()
      await server.close()
    },
  }
})
