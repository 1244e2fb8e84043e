/** Owns which voice engines this process has: those that are set up, in the order in which they are preferred, and the embedded one always. */
import type { Engines } from '../actors/call/engine-choice.ts'
import type { Clock } from '../model/clock.ts'
import type { Log } from '../model/log.ts'
import type { VoiceEngine } from '../model/voice-engine.ts'
import type { LlmProvider } from '../model/worker.ts'
import { createCascadeEngine } from '../voice/engines/cascade/engine.ts'
import { createEmbeddedEngine, type EmbeddedEngine } from '../voice/engines/embedded/engine.ts'
import { createGeminiLiveEngine } from '../voice/engines/gemini-live/engine.ts'
import { retirementOf } from '../voice/engines/hosted/retirements.ts'
import { createOpenAiRealtimeEngine } from '../voice/engines/openai-realtime/engine.ts'
import type { Config } from './config.ts'

type VoiceConfig = Config['voice']
type Deps = { readonly log: Log; readonly clock: Clock }

/** The providers that are set up, then the embedded engine. docs/decisions.md "Voice engines". */
export const providersOf = ({ openai, gemini, cascade }: VoiceConfig): LlmProvider[] => [
  ...(openai ? (['voice_provider_a'] as const) : []),
  ...(gemini ? (['voice_provider_b'] as const) : []),
  ...(cascade ? (['cascade'] as const) : []),
  'embedded',
]

/** What this process knows of the engines of those that run calls. */
export const knownTo = ({ roles, voice }: Config, own: Engines): ReadonlyMap<LlmProvider, unknown> =>
  roles.has('actors') ? own : new Map(providersOf(voice).map((provider) => [provider, 'set up']))

/** Null: it is not set up. No provider is asked anything before a call is. */
export async function openEngine(provider: LlmProvider, config: VoiceConfig, deps: Deps): Promise<VoiceEngine | null> {
  switch (provider) {
    case 'voice_provider_a':
      return config.openai && createOpenAiRealtimeEngine({ ...config.openai, ...deps })
    case 'voice_provider_b':
      return config.gemini && createGeminiLiveEngine({ ...config.gemini, ...deps })
    case 'cascade':
      return config.cascade && (await createCascadeEngine({ ...config.cascade, ...deps }))
    case 'embedded':
      return createEmbeddedEngine({ ...config.embedded, ...deps })
  }
}

/** What the operator has chosen, and the provider has announced the end of. */
function tellRetirements({ openai, cascade }: VoiceConfig, log: Log): void {
  const chosen = [
    openai && { setting: 'OPENAI_REALTIME_MODEL', ...openai },
    openai && { setting: 'OPENAI_TRANSCRIPTION_MODEL', url: openai.url, model: openai.transcriptionModel },
    cascade && { setting: 'CASCADE_TRANSCRIPTION_MODEL', ...cascade.transcription },
    cascade && { setting: 'CASCADE_SPEECH_MODEL', ...cascade.speech },
  ]
  for (const choice of chosen) {
    const end = choice && retirementOf(choice.url, choice.model)
    if (end)
      log.warn('a model that is set up will be shut down', { setting: choice.setting, model: choice.model, ...end })
  }
}

/** They are closed with `closing`. */
export async function openEngines(
  { voice }: Pick<Config, 'voice'>,
  deps: Deps,
  closing: AsyncDisposableStack,
): Promise<{ readonly engines: Engines; readonly embedded: EmbeddedEngine }> {
  tellRetirements(voice, deps.log)
  const engines = new Map<LlmProvider, VoiceEngine>()
  for (const provider of providersOf(voice)) {
    if (provider === 'embedded') continue
    const engine = await openEngine(provider, voice, deps)
    if (engine)
      engines.set(
        provider,
        closing.adopt(engine, (opened) => opened.close()),
      )
  }
  const embedded = await createEmbeddedEngine({ ...voice.embedded, ...deps })
  engines.set(
    'embedded',
    closing.adopt(embedded, (opened) => opened.close()),
  )
  return { engines, embedded }
}
