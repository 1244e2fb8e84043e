/** Owns how a session of Gemini Live is asked for: its address, the setup, what was said before, and what goes on from an earlier session. Pure. */
import { z } from 'zod'
import { storableText, type Json } from '../../../model/json.ts'
import { engineToolNames, type EngineTool, type Said } from '../../../model/voice-engine.ts'
import { newestThatFit } from '../hosted/newest-that-fit.ts'
import type { WireSetup } from '../hosted/wire.ts'
import { takesJsonSchema, takesSilentResults } from './live-models.ts'
import { openApiOf } from './tool-schema.ts'

const path = '/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent'
/** Of the newest; older ones would cost more than they tell. */
const maxHistoryTurns = 200
const maxHistoryLength = 40_000

/** Of one piece of news that is remembered. */
const maxNewsLength = 4_000
/** What ends a turn of the caller's: models differ in what they take for it themselves. */
const silenceDurationMs = 500

/**
 * Of a session that only hears. The protocol has none: the model answers whom it hears, and so it is told that nobody hears it and is let say little. What
 * it says is thrown away; what is wanted is the transcription of its input. docs/supervision.md.
 */
const onlyListens =
  'Two people talk with each other, and you hear one of them. You only listen: nobody hears you, and nothing is asked of you. Whatever is said, say "OK" and nothing else.'
const mostOfListener = 32

/** What the model is to learn, or has learnt since its last handle. */
export type News = { readonly text: string; readonly wantsAnswer: boolean }

const News = z.object({ text: z.string(), wantsAnswer: z.boolean() })
const Memory = z.object({
  version: z.literal(1),
  handle: z.string().min(1).max(8192),
  news: z.array(News).optional().catch(undefined),
})

/** The key is in it: for the socket only, never for a log. */
export function addressOf(base: string, apiKey: string): string {
  const url = new URL(base)
  url.pathname = `${url.pathname.replace(/\/+$/, '')}${path}`
  url.searchParams.set('key', apiKey)
  return url.href
}

export const memoryOf = (handle: string, news: readonly News[]): Json => ({
  version: 1,
  handle,
  ...(news.length > 0 && {
    news: news.map(({ text, ...rest }) => ({ text: storableText(text, maxNewsLength), ...rest })),
  }),
})
/** A session that goes on from the handle lacks the oldest of the news. */
export function shortenedMemory(memory: Json, maxBytes: number): Json {
  const { handle, news = [] } = Memory.parse(memory)
  const empty = Buffer.byteLength(JSON.stringify(memoryOf(handle, [{ text: '', wantsAnswer: false }])))
  return memoryOf(handle, newestThatFit(news, maxBytes - empty))
}
export const handleOf = (memory: Json): string | null => Memory.safeParse(memory).data?.handle ?? null
/** Of the session before, which may have been lost before the provider kept it. */
export const newsOf = (memory: Json): readonly News[] => Memory.safeParse(memory).data?.news ?? []

/** The model does not wait for the answer of the engine's own tools, where it takes them in silence; for the worker's it does. */
export const isBlocking = (model: string, tool: string): boolean =>
  !takesSilentResults(model) || !engineToolNames.includes(tool)

function parametersOf(model: string, schema: EngineTool['inputSchema']): object {
  if (takesJsonSchema(model)) return { parametersJsonSchema: schema }
  const parameters = openApiOf(schema)
  return parameters === null ? {} : { parameters }
}

/** `handle` null: a session that knows nothing, to which `historyOf` is told before anything else. `language` empty: the model's own choice. */
export function setupOf(
  { instructions, language, tools, history, attends, worker: { llmTemperature: temperature } }: WireSetup,
  { model, voice }: { readonly model: string; readonly voice: string | null },
  handle: string | null,
) {
  const voiceConfig = voice === null ? {} : { voiceConfig: { prebuiltVoiceConfig: { voiceName: voice } } }
  const functionDeclarations = tools.map(({ name, description, inputSchema }) => ({
    name,
    description,
    ...parametersOf(model, inputSchema),
    behavior: isBlocking(model, name) ? 'BLOCKING' : 'NON_BLOCKING',
  }))
  return {
    setup: {
      model: model.startsWith('models/') ? model : `models/${model}`,
      generationConfig: {
        responseModalities: ['AUDIO'],
        ...(temperature === undefined ? {} : { temperature }),
        ...(attends && { maxOutputTokens: mostOfListener }),
        speechConfig: { ...voiceConfig, ...(language === '' ? {} : { languageCode: language }) },
      },
      systemInstruction: { parts: [{ text: attends ? onlyListens : instructions }] },
      ...(functionDeclarations.length === 0 ? {} : { tools: [{ functionDeclarations }] }),
      realtimeInputConfig: { automaticActivityDetection: { disabled: false, silenceDurationMs } },
      inputAudioTranscription: {},
      ...(!attends && { outputAudioTranscription: {} }),
      // A handle of null is refused by some models: it is left out.
      sessionResumption: handle === null ? {} : { handle },
      contextWindowCompression: { slidingWindow: {} },
      ...(handle === null && history.length > 0 ? { historyConfig: { initialHistoryInClientContent: true } } : {}),
    },
  }
}

/** Null when nothing was said before. */
export function historyOf(history: readonly Said[]) {
  let room = maxHistoryLength
  const told = history.slice(-maxHistoryTurns).toReversed()
  const fitting = told.filter(({ text }) => (room -= text.length) >= 0).toReversed()
  if (fitting.length === 0) return null
  const turns = fitting.map(({ role, text }) => ({ role: role === 'agent' ? 'model' : 'user', parts: [{ text }] }))
  return { clientContent: { turns, turnComplete: true } }
}
