/** Owns the hosted providers of a conversation of ten turns: servers that speak their protocols, each with the same model, and the settings that lead to them. */
import type { LlmProvider } from '../../../model/worker.ts'
import { cascadeKey, cascadeModels, openCascadeServer } from '../../fake/cascade-server.ts'
import type { ModelWords } from '../../fake/gemini-live-options.ts'
import { openGeminiServer } from '../../fake/gemini-live-server.ts'
import type { Said } from '../../fake/openai-realtime-options.ts'
import { openRealtimeServer } from '../../fake/openai-realtime-server.ts'
import { openProviderLine, type ProviderLine } from '../../fake/provider-line.ts'
import { answerIn, exchanges, replyTo, replyToTool, type Reply } from './conversation.ts'

type Teardown = { teardown(close: () => Promise<void>): unknown }

/** What a provider of a finished call knows. */
export type Provider = {
  readonly settings: Readonly<Record<string, string>>
  readonly line: ProviderLine
  /** What the engine did that the provider's documentation forbids. */
  flaws(): readonly string[]
  /** How long the provider believes that the caller listened to what was broken off, ms; null where its protocol does not say. */
  heardOfCut(): number | null
}

/** Ms between two pieces of 100 ms: faster than it is spoken, and not all at once. */
const pace = 20
const spoken = exchanges.map(({ says }) => says)

export async function openProviders(t: Teardown): Promise<ReadonlyMap<LlmProvider, Provider>> {
  return new Map([
    ['voice_provider_a', await openRealtime(t)],
    ['voice_provider_b', await openGemini(t)],
    ['cascade', await openCascade(t)],
  ])
}

async function openRealtime(t: Teardown): Promise<Provider> {
  let answers = 0
  const server = await openRealtimeServer({
    model({ last, instructions }) {
      if (instructions !== null) return [{ text: `Unexpected: ${instructions}` }]
      if (last?.type === 'function_call_output') return realtimeWords(replyToTool(JSON.parse(last.output)))
      const isCaller = last?.type === 'message' && last.role === 'user'
      return realtimeWords(replyTo(isCaller ? answers++ : null))
    },
    transcript: (count) => ({ text: spoken[count] ?? 'too much', logprob: -0.1 }),
    pace,
  })
  t.teardown(() => server.close())
  const line = await openProviderLine(t, server.url)
  return {
    settings: { OPENAI_API_KEY: server.key, OPENAI_REALTIME_URL: line.through(server.url) },
    line,
    flaws: () => server.errors(),
    heardOfCut: () => server.events('conversation.item.truncate').at(0)?.audio_end_ms ?? null,
  }
}

function realtimeWords({ text, call }: Reply): readonly Said[] {
  const calls = call ? [{ call: call.name, arguments: JSON.stringify(call.arguments) }] : []
  return [...(text === undefined ? [] : [{ text }]), ...calls]
}

async function openGemini(t: Teardown): Promise<Provider> {
  let answers = 0
  const server = await openGeminiServer({
    model({ kind, responses }) {
      if (kind === 'tool') return geminiWords(replyToTool(responses[0]?.response?.['output']))
      return geminiWords(replyTo(kind === 'voice' ? answers++ : null))
    },
    transcript: (count) => spoken[count] ?? 'too much',
    pace,
  })
  t.teardown(() => server.close())
  const line = await openProviderLine(t, server.url)
  return {
    settings: { GEMINI_API_KEY: server.key, GEMINI_LIVE_URL: line.through(server.url) },
    line,
    flaws: () =>
      server.sessions.flatMap((session) => session.closedWith() ?? []).map(({ code, reason }) => `${code} ${reason}`),
    heardOfCut: () => null,
  }
}

function geminiWords({ text, call }: Reply): readonly ModelWords[] {
  const calls = call ? [{ call: call.name, args: call.arguments }] : []
  return [...(text === undefined ? [] : [{ text }]), ...calls]
}

async function openCascade(t: Teardown): Promise<Provider> {
  const server = await openCascadeServer()
  server.hears(...spoken)
  server.thinks((messages) => {
    const last = messages.at(-1)
    const { text, call } =
      last?.role === 'tool' ? replyToTool(JSON.parse(last.content)) : replyTo(answerIn(last?.content ?? ''))
    const calls = call ? [{ name: call.name, arguments: JSON.stringify(call.arguments) }] : []
    return { ...(text !== undefined && { text }), calls }
  })
  t.teardown(() => server.close())
  const line = await openProviderLine(t, server.url)
  return {
    settings: {
      CASCADE_URL: line.through(server.url),
      CASCADE_API_KEY: cascadeKey,
      CASCADE_TRANSCRIPTION_MODEL: cascadeModels.transcription,
      CASCADE_CHAT_MODEL: cascadeModels.chat,
      CASCADE_SPEECH_MODEL: cascadeModels.speech,
    },
    line,
    flaws: () => server.violations,
    heardOfCut: () => null,
  }
}
