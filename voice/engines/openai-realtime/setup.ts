/** Owns how a session is set up: its first `session.update`, and what was said before. */
import type { AudioFormat } from '../../../model/frame.ts'
import type { EngineTool, Said } from '../../../model/voice-engine.ts'
import { endWithin, tokensIn } from '../hosted/token-estimate.ts'
import { languageHint } from '../hosted/transcription-language.ts'
import type { WireSetup } from '../hosted/wire.ts'

/**
 * How the provider finds the end of a turn: by sound, which waits the same for everybody, in all languages, and whose times are exact; or by meaning as
 * well, which waits longer for who seems to have more to say: up to 8, 4 or 2 s by its eagerness, `auto` being `medium`.
 */
export type TurnDetection =
  | { readonly type: 'server_vad' }
  | { readonly type: 'semantic_vad'; readonly eagerness: 'auto' | 'low' | 'medium' | 'high' }

/** Of models that think, such as gpt-realtime-2. */
export type ReasoningEffort = 'minimal' | 'low' | 'medium' | 'high' | 'xhigh'

/** The provider's own defaults. */
const serverVad = { threshold: 0.5, prefix_padding_ms: 300, silence_duration_ms: 500 } as const

/** By how much the times that are told lie before the speech and behind it. Of `semantic_vad` nobody knows. */
export const paddingOf = ({ type }: TurnDetection): { readonly before: number; readonly behind: number } =>
  type === 'server_vad'
    ? { before: serverVad.prefix_padding_ms, behind: serverVad.silence_duration_ms }
    : { before: 0, behind: 0 }

/** What the provider chooses where the session does not, which is null. `reasoning`: the model's own, or none. */
export type SessionChoices = {
  readonly transcriptionModel: string
  /** Of the caller, as transcription-language.ts has it. */
  readonly language: string | null
  readonly voice: string | null
  readonly reasoning: ReasoningEffort | null
  readonly turnDetection: TurnDetection
}

export function sessionUpdate(setup: WireSetup, choices: SessionChoices): object {
  const { transcriptionModel, language, voice, reasoning, turnDetection } = choices
  const vad = turnDetection.type === 'server_vad' ? { ...turnDetection, ...serverVad } : turnDetection
  const session = {
    type: 'realtime',
    instructions: setup.instructions,
    ...(reasoning !== null && { reasoning: { effort: reasoning } }),
    output_modalities: ['audio'],
    include: ['item.input_audio_transcription.logprobs'],
    tools: setup.tools.map(functionOf),
    tool_choice: 'auto',
    audio: {
      input: {
        format: formatOf(setup.formats.hears),
        transcription: { model: transcriptionModel, ...languageHint(transcriptionModel, language) },
        noise_reduction: { type: 'near_field' },
        turn_detection: { ...vad, create_response: !setup.attends, interrupt_response: true },
      },
      output: { format: formatOf(setup.formats.speaks), ...(voice !== null && { voice: voiceOf(voice) }) },
    },
  }
  return { type: 'session.update', session }
}

const maxHistoryItems = 200

/** What was said before, oldest first; of a long talk the newest, as far as there is room for so many tokens. */
export function historyWithin(history: readonly Said[], maxTokens: number): Said[] {
  const items: Said[] = []
  let room = maxTokens
  for (const { role, text } of history.toReversed()) {
    if (room <= 0 || items.length >= maxHistoryItems) break
    const kept = endWithin(text.trim(), room)
    if (kept === '') continue
    room -= tokensIn(kept)
    items.unshift({ role, text: kept })
  }
  return items
}

/** `place`: under which name, and behind which item; none: behind all that there is. */
export const itemOf = (
  role: Said['role'],
  text: string,
  place?: { readonly id: string; readonly behind?: string },
): object => ({
  type: 'conversation.item.create',
  ...(place?.behind !== undefined && { previous_item_id: place.behind }),
  item: {
    ...(place && { id: place.id }),
    type: 'message',
    role: role === 'agent' ? 'assistant' : 'user',
    content: [{ type: role === 'agent' ? 'output_text' : 'input_text', text }],
  },
})

const functionOf = ({ name, description, inputSchema }: EngineTool): object => ({
  type: 'function',
  name,
  description,
  parameters: inputSchema,
})

const formatOf = ({ encoding, rateHz }: AudioFormat): object =>
  encoding === 'pcm16' ? { type: 'audio/pcm', rate: rateHz } : { type: `audio/${encoding}` }

/** Voices made for one customer are named by an id. */
const voiceOf = (voice: string): string | object => (voice.startsWith('voice_') ? { id: voice } : voice)
