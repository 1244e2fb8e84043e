/** Owns which client events OpenAI Realtime (GA) takes: fields it does not know and values it does not allow are refused by name. */
import type { RealtimeClientEvent, RealtimeError } from 'openai/resources/realtime/realtime'
import { z } from 'zod'

const id = z.string().min(1).max(512)
const format = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('audio/pcm'), rate: z.literal(24000) }),
  z.strictObject({ type: z.literal('audio/pcmu') }),
  z.strictObject({ type: z.literal('audio/pcma') }),
])
const names = ['alloy', 'ash', 'ballad', 'coral', 'echo', 'sage', 'shimmer', 'verse', 'marin', 'cedar'] as const
const voice = z.union([z.enum(names), z.strictObject({ id: z.string().startsWith('voice_') })])
const tool = z.strictObject({
  type: z.literal('function'),
  name: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/),
  description: z.string().optional(),
  parameters: z.looseObject({ type: z.literal('object') }).optional(),
})
const serverVad = z.strictObject({
  type: z.literal('server_vad'),
  threshold: z.number().min(0).max(1).optional(),
  prefix_padding_ms: z.int().min(0).optional(),
  silence_duration_ms: z.int().min(0).optional(),
  create_response: z.boolean().optional(),
  interrupt_response: z.boolean().optional(),
  idle_timeout_ms: z.int().min(5000).max(30000).nullish(),
})
/** openai 7.55, RealtimeAudioInputTurnDetection.SemanticVad and RealtimeReasoning. */
const semanticVad = z.strictObject({
  type: z.literal('semantic_vad'),
  eagerness: z.enum(['auto', 'low', 'medium', 'high']).optional(),
  create_response: z.boolean().optional(),
  interrupt_response: z.boolean().optional(),
})
const reasoning = z.strictObject({ effort: z.enum(['minimal', 'low', 'medium', 'high', 'xhigh']).optional() })
/** Of gpt-transcribe, which passes over `language` and refuses any other in `languages`; here the first is refused, too: tried by michaelwilhelmsen/humla#128. */
export const listedLanguages = (
  'af ar hy az be bn bs bg yue ca zh hr cs da nl en et fi fr gl ka de el gu he hi hu is id it ja kn kk ko lv lt mk ms ml mi ' +
  'mr ne no fa pl pt ro ru sr sk sl es sw sv tl ta te th tr uk ur vi cy'
).split(' ')
const transcription = z
  .strictObject({
    model: z.string().optional(),
    language: z
      .string()
      .regex(/^[a-z]{2}$/)
      .optional(),
    languages: z.array(z.string()).optional(),
    prompt: z.string().optional(),
  })
  .superRefine(({ model, language, languages }, context) => {
    const refuse = (...path: (string | number)[]) =>
      context.addIssue({ code: 'custom', path, message: 'Invalid value' })
    const hasList = model === 'gpt-transcribe'
    if (hasList && language !== undefined) refuse('language')
    if (!hasList && languages !== undefined) refuse('languages')
    for (const [at, one] of (languages ?? []).entries()) if (!listedLanguages.includes(one)) refuse('languages', at)
  })
const modalities = z.array(z.enum(['audio', 'text'])).length(1)
const session = z.strictObject({
  type: z.literal('realtime'),
  instructions: z.string().optional(),
  output_modalities: modalities.optional(),
  reasoning: reasoning.optional(),
  include: z.array(z.literal('item.input_audio_transcription.logprobs')).optional(),
  tools: z.array(tool).optional(),
  tool_choice: z.enum(['auto', 'none', 'required']).optional(),
  max_output_tokens: z.union([z.int().min(1).max(4096), z.literal('inf')]).optional(),
  audio: z
    .strictObject({
      input: z
        .strictObject({
          format: format.optional(),
          transcription: transcription.nullish(),
          noise_reduction: z.strictObject({ type: z.enum(['near_field', 'far_field']) }).nullish(),
          turn_detection: z.union([serverVad, semanticVad]).nullish(),
        })
        .optional(),
      output: z
        .strictObject({
          format: format.optional(),
          voice: voice.optional(),
          speed: z.number().min(0.25).max(1.5).optional(),
        })
        .optional(),
    })
    .optional(),
})
const message = (role: string, content: string) =>
  z.strictObject({
    id: id.optional(),
    type: z.literal('message'),
    role: z.literal(role),
    content: z.array(z.strictObject({ type: z.literal(content), text: z.string() })).min(1),
  })
const item = z.union([
  message('user', 'input_text'),
  message('system', 'input_text'),
  message('assistant', 'output_text'),
  z.strictObject({ id: id.optional(), type: z.literal('function_call_output'), call_id: id, output: z.string() }),
])
const event_id = id.optional()
const known = {
  'session.update': { session },
  'input_audio_buffer.append': { audio: z.base64() },
  'input_audio_buffer.commit': {},
  'input_audio_buffer.clear': {},
  'conversation.item.create': { previous_item_id: id.nullish(), item },
  'conversation.item.delete': { item_id: id },
  'conversation.item.retrieve': { item_id: id },
  'conversation.item.truncate': { item_id: id, content_index: z.int().min(0), audio_end_ms: z.int().min(0) },
  'response.cancel': { response_id: id.optional() },
  'response.create': {
    response: z
      .strictObject({
        instructions: z.string().optional(),
        output_modalities: modalities.optional(),
        metadata: z.record(z.string(), z.string()).nullish(),
        tool_choice: z.enum(['auto', 'none', 'required']).optional(),
      })
      .optional(),
  },
} as const
const schemas = new Map<unknown, z.ZodType>(
  Object.entries(known).map(([type, fields]) => [type, z.strictObject({ type: z.literal(type), event_id, ...fields })]),
)

type Read =
  | { readonly event: RealtimeClientEvent; readonly error: null }
  | { readonly event: null; readonly error: RealtimeError }

const invalid = (code: string, text: string, param: string | null): Read => ({
  event: null,
  error: { type: 'invalid_request_error', code, message: text, param, event_id: null },
})

export function readClientEvent(bytes: string): Read {
  let given: unknown
  try {
    given = JSON.parse(bytes)
  } catch {
    return invalid('invalid_json', 'We could not parse the JSON body of the event.', null)
  }
  const { type, event_id: named } = (given ?? {}) as Record<string, unknown>
  const schema = schemas.get(type)
  if (!schema) return invalid('invalid_value', `Invalid value: '${String(type)}'.`, 'type')
  const read = schema.safeParse(given)
  if (read.success) return { event: read.data as RealtimeClientEvent, error: null }
  const issue = read.error.issues[0]!
  const extra = issue.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : []
  const param = [...issue.path, ...extra].join('.')
  const refused = invalid(
    extra.length > 0 ? 'unknown_parameter' : 'invalid_value',
    `${issue.message}: '${param}'.`,
    param,
  )
  if (refused.error) refused.error.event_id = typeof named === 'string' ? named : null
  return refused
}
