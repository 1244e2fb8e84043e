/** The cascade keeps the rules of the VoiceEngine port. */
import { systemClock } from '../../app/clock.ts'
import { createCascadeEngine } from '../../voice/engines/cascade/engine.ts'
import { createSynthesiser } from '../../voice/engines/embedded/synthesiser.ts'
import { cascadeKey, cascadeModels, openCascadeServer, type Model } from '../fake/cascade-server.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { callConfig } from '../scenes/spoken-call.ts'
import { proveVoiceEngine } from './voice-engine-rules.ts'

const synthesiser = await createSynthesiser({ log: createQuietLog(), clock: systemClock })
const answer = await synthesiser.speak('Yes, please.', 'rms')
await synthesiser.close()

const formats = {
  hears: { encoding: 'pcm16', rateHz: 16_000 },
  speaks: { encoding: 'pcm16', rateHz: 24_000 },
} as const
const config = callConfig({ instructions: 'You are a waiter.', formats })

const think: Model = (messages, tools) => {
  const last = messages.at(-1)
  if (last?.role === 'tool') return 'It says seven.'
  if (!last?.content?.endsWith('Yes, please.')) return 'Welcome. Would you like a cup of tea?'
  if (tools.includes('lookup')) return { calls: [{ name: 'lookup', arguments: '{"key":"blue"}' }] }
  return { text: 'Fine. Goodbye.', calls: [{ name: 'end_call', arguments: '{}' }] }
}

proveVoiceEngine('cascade', async () => {
  const server = await openCascadeServer({ transcript: 'Yes, please.' })
  server.thinks(think)
  const address = { url: server.url, apiKey: cascadeKey }
  const engine = await createCascadeEngine({
    chat: { ...address, model: cascadeModels.chat },
    transcription: { ...address, model: cascadeModels.transcription },
    speech: { ...address, model: cascadeModels.speech, voice: null, rateHz: 24_000 },
    log: createQuietLog(),
    clock: systemClock,
  })
  return {
    engine,
    config,
    answer,
    swollen: {
      besides: Array.from({ length: 100 }, (_, at) => ({ before: [], news: `${at} ${'検'.repeat(1_000)}` })),
    },
    withTool: { config, wish: answer },
    impossible: { ...config, formats: { ...formats, hears: { encoding: 'pcmu', rateHz: 8000 } } },
    async close() {
      await engine.close()
      await server.close()
      if (server.violations.length > 0) throw new Error(server.violations.join('; '))
    },
  }
})
