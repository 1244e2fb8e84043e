/**
 * Owns which messages a client of Gemini Live may send, to the letter of the SDK's types. What is none is told in the words of Google's JSON parser, which
 * knows no optional extras.
 */
import type {
  AutomaticActivityDetection,
  Content,
  ContextWindowCompressionConfig,
  FunctionDeclaration,
  FunctionResponse,
  GenerationConfig,
  HistoryConfig,
  LiveClientContent,
  LiveClientContextUpdate,
  LiveClientMessage,
  LiveClientRealtimeInput,
  LiveClientSetup,
  LiveClientToolResponse,
  Part,
  PrebuiltVoiceConfig,
  RealtimeInputConfig,
  SessionResumptionConfig,
  SpeechConfig,
  Tool,
  VoiceConfig,
} from '@google/genai'

type Shape =
  | 'string'
  | 'number'
  | 'boolean'
  | 'any'
  | { readonly oneOf: readonly string[] }
  | { readonly list: Shape }
  | { readonly fields: Readonly<Record<string, Shape>> }

/** Only what the SDK names can be a field. */
const message = <Type>(fields: { readonly [Field in keyof Type]?: Shape }): Shape => ({
  fields: fields as Record<string, Shape>,
})
const listOf = (list: Shape): Shape => ({ list })
const oneOf = (...values: readonly string[]): Shape => ({ oneOf: values })

const sound = message<{ data: string; mimeType: string }>({ data: 'string', mimeType: 'string' })
const content = message<Content>({
  role: oneOf('user', 'model'),
  parts: listOf(message<Part>({ text: 'string' })),
})

const generationConfig = message<GenerationConfig>({
  responseModalities: listOf(oneOf('AUDIO', 'TEXT')),
  temperature: 'number',
  topP: 'number',
  topK: 'number',
  maxOutputTokens: 'number',
  seed: 'number',
  speechConfig: message<SpeechConfig>({
    languageCode: 'string',
    voiceConfig: message<VoiceConfig>({
      prebuiltVoiceConfig: message<PrebuiltVoiceConfig>({ voiceName: 'string' }),
    }),
  }),
})

const declaration = message<FunctionDeclaration>({
  name: 'string',
  description: 'string',
  parameters: 'any',
  parametersJsonSchema: 'any',
  behavior: oneOf('BLOCKING', 'NON_BLOCKING'),
})

const activityDetection = message<AutomaticActivityDetection>({
  disabled: 'boolean',
  startOfSpeechSensitivity: oneOf('START_SENSITIVITY_HIGH', 'START_SENSITIVITY_LOW'),
  endOfSpeechSensitivity: oneOf('END_SENSITIVITY_HIGH', 'END_SENSITIVITY_LOW'),
  prefixPaddingMs: 'number',
  silenceDurationMs: 'number',
})

const setup = message<LiveClientSetup>({
  model: 'string',
  generationConfig,
  systemInstruction: content,
  tools: listOf(message<Tool>({ functionDeclarations: listOf(declaration) })),
  realtimeInputConfig: message<RealtimeInputConfig>({
    automaticActivityDetection: activityDetection,
    activityHandling: oneOf('START_OF_ACTIVITY_INTERRUPTS', 'NO_INTERRUPTION'),
    turnCoverage: oneOf('TURN_INCLUDES_ONLY_ACTIVITY', 'TURN_INCLUDES_ALL_INPUT'),
  }),
  sessionResumption: message<SessionResumptionConfig>({ handle: 'string' }),
  contextWindowCompression: message<ContextWindowCompressionConfig>({ triggerTokens: 'string', slidingWindow: 'any' }),
  inputAudioTranscription: message({}),
  outputAudioTranscription: message({}),
  historyConfig: message<HistoryConfig>({ initialHistoryInClientContent: 'boolean' }),
})

const clientMessage = message<LiveClientMessage>({
  setup,
  clientContent: message<LiveClientContent>({ turns: listOf(content), turnComplete: 'boolean' }),
  realtimeInput: message<LiveClientRealtimeInput>({ audio: sound, text: 'string', audioStreamEnd: 'boolean' }),
  toolResponse: message<LiveClientToolResponse>({
    functionResponses: listOf(
      message<FunctionResponse>({
        id: 'string',
        name: 'string',
        response: 'any',
        scheduling: oneOf('SILENT', 'WHEN_IDLE', 'INTERRUPT'),
      }),
    ),
  }),
  contextUpdate: message<LiveClientContextUpdate>({ systemInstruction: content }),
})

/** Null for a message a client may send; else what the server says when it closes with 1007. */
export function flawOfClientMessage(value: unknown): string | null {
  const flaw = flawIn(value, clientMessage, '')
  if (flaw !== null) return flaw
  const kinds = Object.keys(value as object)
  return kinds.length === 1
    ? null
    : `Invalid value at '' (oneof), oneof field 'message_type' is set ${kinds.length} times.`
}

function flawIn(value: unknown, shape: Shape, at: string): string | null {
  if (shape === 'any') return null
  if (typeof shape === 'string')
    return typeof value === shape ? null : `Invalid value at '${at}' (TYPE_${shape.toUpperCase()}), ${said(value)}`
  if ('oneOf' in shape)
    return shape.oneOf.includes(value as string) ? null : `Invalid value at '${at}' (TYPE_ENUM), ${said(value)}`
  if ('list' in shape) {
    if (!Array.isArray(value)) return `Invalid value at '${at}' (TYPE_MESSAGE), ${said(value)}`
    return firstOf(value.map((item, index) => flawIn(item, shape.list, `${at}[${index}]`)))
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return `Invalid value at '${at}' (TYPE_MESSAGE), ${said(value)}`
  return firstOf(
    Object.entries(value).map(([name, field]) => {
      const inner = shape.fields[name]
      if (inner) return flawIn(field, inner, at === '' ? name : `${at}.${name}`)
      return `Invalid JSON payload received. Unknown name "${name}"${at && ` at '${at}'`}: Cannot find field.`
    }),
  )
}

const said = (value: unknown): string => (JSON.stringify(value) ?? 'undefined').slice(0, 60)
const firstOf = (flaws: readonly (string | null)[]): string | null => flaws.find((flaw) => flaw !== null) ?? null
