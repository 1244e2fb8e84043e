/** The engine of OpenAI Realtime keeps the rules of the VoiceEngine port, with 24 kHz and with telephone sound. */
import { systemClock } from '../../app/clock.ts'
import type { AudioFormat } from '../../model/frame.ts'
import { createOpenAiRealtimeEngine } from '../../voice/engines/openai-realtime/engine.ts'
import { realtimeModel, type Asked, type Said } from '../fake/openai-realtime-options.ts'
import { openRealtimeServer } from '../fake/openai-realtime-server.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { callConfig } from '../scenes/spoken-call.ts'
import { proveVoiceEngine, type Candidate } from './voice-engine-rules.ts'

const greeting = 'Welcome. This line is long enough to be cut off. Would you like tea?'
const spoken = Int16Array.from({ length: 16_000 }, (_, index) => 8000 * Math.sin(index / 5))
const goodbye: readonly Said[] = [{ text: 'Fine. Goodbye.' }, { call: 'end_call', arguments: '{}' }]

function answerOf({ last, instructions }: Asked, lookup: () => boolean): readonly Said[] {
  if (instructions !== null) return [{ text: 'Are you still there?' }]
  if (last?.type === 'function_call_output') return [{ text: 'It says seven.' }]
  if (last?.type !== 'message' || last.role !== 'user') return [{ text: greeting }]
  return lookup() ? [{ call: 'lookup', arguments: '{"key":"blue"}' }] : goodbye
}

async function candidate(format: AudioFormat): Promise<Candidate> {
  let hasLookup = false
  const server = await openRealtimeServer({ model: (asked) => answerOf(asked, () => hasLookup), pace: 1 })
  const provider = { url: server.url, apiKey: server.key, model: realtimeModel, voice: 'marin' }
  const log = createQuietLog()
  const engine = createOpenAiRealtimeEngine({
    ...provider,
    transcriptionModel: 'gpt-transcribe',
    log,
    clock: systemClock,
  })
  const { voiceId: _, ...worker } = callConfig().worker
  const config = callConfig({ worker, formats: { hears: format, speaks: format } })
  const tools = [
    { name: 'not a name', description: '', inputSchema: { type: 'object' as const, properties: {}, required: [] } },
  ]
  return {
    engine,
    config,
    answer: spoken,
    swollen: { handle: 'x'.repeat(100_000) },
    withTool: {
      get config() {
        hasLookup = true
        return config
      },
      wish: spoken,
    },
    impossible: { ...config, tools },
    async close() {
      await engine.close()
      await server.close()
    },
  }
}

proveVoiceEngine('voice_provider_a, 24 kHz', () => candidate({ encoding: 'pcm16', rateHz: 24000 }))
proveVoiceEngine('voice_provider_a, µ-law', () => candidate({ encoding: 'pcmu', rateHz: 8000 }))
