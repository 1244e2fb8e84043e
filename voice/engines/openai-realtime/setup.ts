/** Owns how a session is set up: its first `session.update`, and what was said before. */
import type { AudioFormat } from '../../../model/frame.ts'
import type { EngineTool, Said } from '../../../model/voice-engine.ts'
import type { WireSetup } from '../hosted/wire.ts'

/**
 * By sound, not by meaning (`semantic_vad`): it waits the same for everybody, in all languages, and its times are exact. The provider's own
 * defaults.
 */
export const turnDetection = {
  type: 'server_vad',
  threshold: 0.5,
  prefix_padding_ms: 300,
  silence_duration_ms: 500,
  create_response: true,
  interrupt_response: true,
} as const

export function sessionUpdate(setup: WireSetup, transcriptionModel: string, voice: string | null): object {
  const session = {
    type: 'realtime',
    instructions: setup.instructions,
    output_modalities: ['audio'],
    include: ['item.input_audio_transcription.logprobs'],
    tools: setup.tools.map(functionOf),
    tool_choice: 'auto',
    audio: {
      input: {
        format: formatOf(setup.formats.hears),
        transcription: { model: transcriptionModel, ...languageOf(setup.language) },
        noise_reduction: { type: 'near_field' },
        turn_detection: turnDetection,
      },
      output: { format: formatOf(setup.formats.speaks), ...(voice !== null && { voice: voiceOf(voice) }) },
    },
  }
  return { type: 'session.update', session }
}

/** Some 12,000 tokens of a European language: less than half of what the smallest model remembers. */
const maxHistoryText = 48_000
const maxHistoryItems = 200

/** What was said before, oldest first; of a long talk the newest. */
export function historyItems(history: readonly Said[]): object[] {
  const items: object[] = []
  let room = maxHistoryText
  for (const { role, text } of history.toReversed()) {
    if (room <= 0 || items.length >= maxHistoryItems) break
    const kept = text.trim().slice(-room)
    if (kept === '') continue
    room -= kept.length
    items.unshift(itemOf(role, kept))
  }
  return items
}

export const itemOf = (role: Said['role'], text: string): object => ({
  type: 'conversation.item.create',
  item: {
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

/** ISO 639-1, where the language has such a code. */
function languageOf(language: string): { readonly language?: string } {
  const [code = ''] = language.toLowerCase().split('-')
  return /^[a-z]{2}$/.test(code) ? { language: code } : {}
}
