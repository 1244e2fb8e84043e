/** Owns the settings of the voice engines. */
import { z } from 'zod'
import { text, optional, WebSocketUrl, HttpUrl, Rate, ApiKey, WrongSettings, nothingWithout } from './setting.ts'

export const voiceSettings = z.object({
  OPENAI_API_KEY: optional(ApiKey),
  OPENAI_REALTIME_URL: optional(WebSocketUrl),
  OPENAI_REALTIME_MODEL: optional(text.min(1)),
  OPENAI_REALTIME_VOICE: optional(text.min(1)),
  OPENAI_REALTIME_REASONING_EFFORT: optional(z.enum(['minimal', 'low', 'medium', 'high', 'xhigh'])),
  OPENAI_REALTIME_TURN_DETECTION: optional(z.enum(['server_vad', 'semantic_vad'])),
  OPENAI_REALTIME_EAGERNESS: optional(z.enum(['auto', 'low', 'medium', 'high'])),
  OPENAI_TRANSCRIPTION_MODEL: optional(text.min(1)),
  GEMINI_API_KEY: optional(ApiKey),
  GEMINI_LIVE_URL: optional(WebSocketUrl),
  GEMINI_LIVE_MODEL: optional(text.min(1)),
  GEMINI_LIVE_VOICE: optional(text.min(1)),
  CASCADE_URL: optional(HttpUrl),
  CASCADE_CHAT_URL: optional(HttpUrl),
  CASCADE_TRANSCRIPTION_URL: optional(HttpUrl),
  CASCADE_SPEECH_URL: optional(HttpUrl),
  CASCADE_API_KEY: optional(ApiKey),
  CASCADE_CHAT_MODEL: optional(text.min(1)),
  CASCADE_TRANSCRIPTION_MODEL: optional(text.min(1)),
  CASCADE_SPEECH_MODEL: optional(text.min(1)),
  CASCADE_VOICE: optional(text.min(1)),
  CASCADE_SPEECH_RATE: optional(Rate),
  CASCADE_TRANSCRIPTION_STREAM: z.enum(['auto', 'off']).default('auto'),
  EMBEDDED_HEARING: z.enum(['fsg', 'vad', 'script']).default('fsg'),
  EMBEDDED_INSTRUCTIONS: z.enum(['ignore', 'script']).default('ignore'),
})

type Settings = z.infer<typeof voiceSettings>

/** Per provider; null where it is not set up. The embedded engine is always there. */
export const voiceOf = (settings: Settings) => ({
  openai: openaiOf(settings),
  gemini: geminiOf(settings),
  cascade: cascadeOf(settings),
  embedded: {
    hearing: settings.EMBEDDED_HEARING,
    ...(settings.EMBEDDED_INSTRUCTIONS === 'script' && { followsInstructions: true }),
  },
})

function openaiOf(settings: Settings) {
  const { OPENAI_API_KEY, OPENAI_REALTIME_URL, OPENAI_REALTIME_MODEL, OPENAI_REALTIME_VOICE } = settings
  const { OPENAI_TRANSCRIPTION_MODEL, OPENAI_REALTIME_REASONING_EFFORT } = settings
  const { OPENAI_REALTIME_TURN_DETECTION, OPENAI_REALTIME_EAGERNESS } = settings
  const turns = { OPENAI_REALTIME_TURN_DETECTION, OPENAI_REALTIME_EAGERNESS }
  const models = { OPENAI_REALTIME_MODEL, OPENAI_TRANSCRIPTION_MODEL, OPENAI_REALTIME_REASONING_EFFORT }
  const others = { OPENAI_REALTIME_URL, ...models, OPENAI_REALTIME_VOICE, ...turns }
  if (OPENAI_API_KEY === null) return nothingWithout('OPENAI_API_KEY', others)
  const isSemantic = OPENAI_REALTIME_TURN_DETECTION === 'semantic_vad'
  if (!isSemantic) nothingWithout('OPENAI_REALTIME_TURN_DETECTION=semantic_vad', { OPENAI_REALTIME_EAGERNESS })
  return {
    apiKey: OPENAI_API_KEY,
    url: OPENAI_REALTIME_URL ?? 'wss://api.openai.com/v1/realtime',
    model: OPENAI_REALTIME_MODEL ?? 'gpt-realtime-2.1',
    voice: OPENAI_REALTIME_VOICE ?? 'marin',
    transcriptionModel: OPENAI_TRANSCRIPTION_MODEL ?? 'gpt-transcribe',
    /** Null: the model's own choice. */
    reasoningEffort: OPENAI_REALTIME_REASONING_EFFORT,
    turnDetection: isSemantic
      ? { type: 'semantic_vad' as const, eagerness: OPENAI_REALTIME_EAGERNESS ?? ('auto' as const) }
      : { type: 'server_vad' as const },
  }
}

function geminiOf(settings: Settings) {
  const { GEMINI_API_KEY, GEMINI_LIVE_URL, GEMINI_LIVE_MODEL, GEMINI_LIVE_VOICE } = settings
  if (GEMINI_API_KEY === null)
    return nothingWithout('GEMINI_API_KEY', { GEMINI_LIVE_URL, GEMINI_LIVE_MODEL, GEMINI_LIVE_VOICE })
  return {
    apiKey: GEMINI_API_KEY,
    url: GEMINI_LIVE_URL ?? 'wss://generativelanguage.googleapis.com',
    model: GEMINI_LIVE_MODEL ?? 'gemini-3.8-live',
    /** Null: the provider's own choice. */
    voice: GEMINI_LIVE_VOICE,
  }
}

/** One address for all three parts, or one for each; a part's own goes first. */
function cascadeOf(settings: Settings) {
  const { CASCADE_URL, CASCADE_CHAT_URL, CASCADE_TRANSCRIPTION_URL, CASCADE_SPEECH_URL } = settings
  const { CASCADE_API_KEY: apiKey, CASCADE_CHAT_MODEL, CASCADE_TRANSCRIPTION_MODEL, CASCADE_SPEECH_MODEL } = settings
  const { CASCADE_VOICE, CASCADE_SPEECH_RATE } = settings
  const parts = Object.entries({ CASCADE_CHAT_URL, CASCADE_TRANSCRIPTION_URL, CASCADE_SPEECH_URL })
  const [given] = [['CASCADE_URL', CASCADE_URL] as const, ...parts].filter(([, address]) => address !== null)
  if (given === undefined) {
    const models = { CASCADE_CHAT_MODEL, CASCADE_TRANSCRIPTION_MODEL, CASCADE_SPEECH_MODEL }
    return nothingWithout('CASCADE_URL', { CASCADE_API_KEY: apiKey, ...models, CASCADE_VOICE, CASCADE_SPEECH_RATE })
  }
  const need = <Value>(name: string, value: Value | null): Value => {
    if (value === null) throw new WrongSettings(`${given[0]} needs ${name} as well`)
    return value
  }
  const address = (own: string | null, name: string): string => need(`CASCADE_URL or ${name}`, own ?? CASCADE_URL)
  return {
    chat: {
      url: address(CASCADE_CHAT_URL, 'CASCADE_CHAT_URL'),
      model: need('CASCADE_CHAT_MODEL', CASCADE_CHAT_MODEL),
      apiKey,
    },
    transcription: {
      url: address(CASCADE_TRANSCRIPTION_URL, 'CASCADE_TRANSCRIPTION_URL'),
      model: CASCADE_TRANSCRIPTION_MODEL ?? 'gpt-transcribe',
      apiKey,
      streams: settings.CASCADE_TRANSCRIPTION_STREAM === 'auto',
    },
    speech: {
      url: address(CASCADE_SPEECH_URL, 'CASCADE_SPEECH_URL'),
      // Of servers of one's own: OpenAI has no model left for this endpoint from 2027-01-06 on.
      model: CASCADE_SPEECH_MODEL ?? 'kokoro',
      voice: CASCADE_VOICE ?? 'alloy',
      /** Null: as its WAV says. */
      rateHz: CASCADE_SPEECH_RATE,
      apiKey,
    },
  }
}
