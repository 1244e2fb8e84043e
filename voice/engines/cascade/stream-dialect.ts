/**
 * Owns the dialects in which servers transcribe speech as it comes, over a WebSocket at `/realtime`: which one a server speaks its first event tells.
 * Pure. OpenAI: https://developers.openai.com/api/docs/guides/realtime-transcription. Speaches: https://speaches.ai/usage/realtime-api, the same as it was
 * before it was generally available. vLLM: its own, vllm/entrypoints/openai/realtime.
 */
import { languageHint } from '../hosted/transcription-language.ts'
import { fieldsOf, isText, type Fields } from './fields.ts'

export type StreamDialect = {
  readonly rateHz: 16_000 | 24_000
  /** Asks for the model, and that nobody but us finds the ends of turns. */
  readonly update: object
  /** It tells that it has taken the update. */
  readonly confirms: boolean
  /** Sent before the sound of an utterance; null: nothing. */
  readonly begins: object | null
  readonly ends: object
  /** It works at one utterance at a time, and names none. */
  readonly isOneByOne: boolean
}

type Wanted = { readonly model: string; readonly language: string | null }

/** `created` is its `session.created`. */
export function dialectOf(created: Fields, { model, language }: Wanted): StreamDialect {
  const session = fieldsOf(created['session'])
  if (session === null)
    return {
      rateHz: 16_000,
      update: { type: 'session.update', model },
      confirms: false,
      begins: { type: 'input_audio_buffer.commit', final: false },
      ends: { type: 'input_audio_buffer.commit', final: true },
      isOneByOne: true,
    }
  const isOld = 'input_audio_transcription' in session || 'modalities' in session
  const transcription = { model, ...languageHint(model, language) }
  const input = { format: { type: 'audio/pcm', rate: 24_000 }, transcription, turn_detection: null }
  return {
    rateHz: 24_000,
    update: {
      type: 'session.update',
      session: isOld
        ? { input_audio_transcription: transcription, turn_detection: null }
        : { type: 'transcription', audio: { input } },
    },
    confirms: true,
    begins: null,
    ends: { type: 'input_audio_buffer.commit' },
    isOneByOne: false,
  }
}

/** `itemId` null: of the oldest utterance that is under way. */
export type StreamNews =
  | { readonly kind: 'created' | 'updated' | 'failed' }
  | { readonly kind: 'committed'; readonly itemId: string }
  | { readonly kind: 'text' | 'final'; readonly itemId: string | null; readonly text: string }
  | { readonly kind: 'unheard'; readonly itemId: string | null }

const transcription = 'conversation.item.input_audio_transcription.'

/** Null for what is of no use. */
export function newsIn({ type, item_id, delta, transcript, text }: Fields): StreamNews | null {
  const itemId = isText(item_id) ? item_id : null
  const said = [delta, transcript, text].find((value) => typeof value === 'string') ?? ''
  switch (type) {
    case 'session.created':
    case 'transcription_session.created':
      return { kind: 'created' }
    case 'session.updated':
    case 'transcription_session.updated':
      return { kind: 'updated' }
    case 'input_audio_buffer.committed':
      return itemId === null ? null : { kind: 'committed', itemId }
    case 'transcription.delta':
    case `${transcription}delta`:
      return { kind: 'text', itemId, text: said }
    case 'transcription.done':
    case `${transcription}completed`:
      return { kind: 'final', itemId, text: said }
    case `${transcription}failed`:
      return { kind: 'unheard', itemId }
    case 'error':
      return { kind: 'failed' }
    default:
      return null
  }
}
