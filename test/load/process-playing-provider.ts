/**
 * Owns a provider of the voice bench, in a process of its own: one of the conformance servers with known delays, and the receiver of the tool that
 * its model calls. It measures what a tool took beyond its own work.
 */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import process from 'node:process'
import { cascadeKey, cascadeModels, openCascadeServer } from '../fake/cascade-server.ts'
import { openGeminiServer } from '../fake/gemini-live-server.ts'
import { openRealtimeServer } from '../fake/openai-realtime-server.ts'
import type { CallersWish } from './process-calling-with-voice.ts'

export type ProviderName = 'OpenAI Realtime' | 'Gemini Live' | 'cascade'

export type ProviderReady = {
  /** Of the service. */
  readonly settings: Readonly<Record<string, string>>
  readonly hookUrl: string
  readonly says: CallersWish['says']
  /** From the end of the caller's turn to its first sound, ms. */
  readonly delayMs: number
}

export type ProviderTake = {
  /** From the call of the tool to its result, without the tool's own time, ms. */
  readonly tools: readonly number[]
  /** What the service did wrong, as the server sees it. */
  readonly complaints: readonly string[]
}

type Provider = Omit<ProviderReady, 'hookUrl'> & { complaints(): readonly string[]; close(): Promise<void> }

const line = 'Thank you, I have written that down, and somebody will see to it.'
const firstSoundAfter = 150
const stageAfter = 50
/** As long as the fake of Gemini Live speaks the line. */
const playedAfter = line.length * 60
const toolTakes = 50
const tool = {
  name: 'write_down',
  description: 'Writes something down.',
  inputSchema: { type: 'object', properties: { number: { type: 'integer' } }, required: ['number'] },
  signingSecret: 'voice-bench-tool',
}

let callsTools = false
const toolCalls = createToolCalls()

/** What a model says when it is asked; `result` is what a tool answered, as JSON. */
function nextWords(
  result: string | null,
  calledAfter: number,
): { readonly text: string } | { readonly number: number } {
  if (result !== null) toolCalls.answered(result)
  return result === null && callsTools ? { number: toolCalls.call(calledAfter) } : { text: line }
}

function createToolCalls() {
  const calledAt = new Map<number, number>()
  const ownMs = new Map<number, number>()
  let count = 0
  let overheads: number[] = []
  return {
    call(after: number): number {
      calledAt.set(++count, performance.now() + after)
      return count
    },
    worked: (number: number, ms: number): void => void ownMs.set(number, ms),
    answered(result: string): void {
      const number = Number(/"number"\s*:\s*(\d+)/.exec(result)?.[1])
      const [called, own] = [calledAt.get(number), ownMs.get(number)]
      calledAt.delete(number)
      ownMs.delete(number)
      if (called !== undefined && own !== undefined) overheads.push(performance.now() - called - own)
    },
    take(): number[] {
      const taken = overheads
      overheads = []
      return taken
    },
  }
}

async function openOpenAi(): Promise<Provider> {
  const server = await openRealtimeServer({
    firstAudioAfter: firstSoundAfter,
    model({ last }) {
      const words = nextWords(last?.type === 'function_call_output' ? last.output : null, 0)
      return 'text' in words ? [words] : [{ call: tool.name, arguments: JSON.stringify(words) }]
    },
  })
  return {
    settings: { OPENAI_API_KEY: server.key, OPENAI_REALTIME_URL: server.url },
    // Its server VAD; the service asks for 500 ms of silence.
    says: { vowels: { onsetFrames: 3, silentFrames: 25 } },
    delayMs: firstSoundAfter,
    complaints: server.errors,
    close: server.close,
  }
}

async function openGemini(): Promise<Provider> {
  const server = await openGeminiServer({
    firstAudioAfter: firstSoundAfter,
    turnCompleteAfter: playedAfter,
    model({ kind, responses }) {
      const words = nextWords(kind === 'tool' ? JSON.stringify(responses) : null, firstSoundAfter)
      return 'text' in words ? [words] : [{ call: tool.name, args: words }]
    },
    transcript: () => 'I would like to know more.',
  })
  return {
    settings: { GEMINI_API_KEY: server.key, GEMINI_LIVE_URL: server.url },
    // What it takes when nobody asks for anything else.
    says: { vowels: { onsetFrames: 1, silentFrames: 25 } },
    delayMs: firstSoundAfter,
    complaints: () => server.sessions.flatMap((session) => session.closedWith()?.reason ?? []),
    close: server.close,
  }
}

async function openCascade(): Promise<Provider> {
  const delays = { transcription: stageAfter, chatFirst: stageAfter, speechFirst: stageAfter }
  const server = await openCascadeServer({ delays, transcript: 'I would like to know more.' })
  server.thinks((messages) => {
    const last = messages.at(-1)
    const words = nextWords(last?.role === 'tool' ? last.content : null, stageAfter)
    if ('text' in words) return words
    const id = `call_${words.number}`
    return { calls: [{ id, name: tool.name, arguments: JSON.stringify(words) }] }
  })
  return {
    settings: {
      CASCADE_URL: server.url,
      CASCADE_API_KEY: cascadeKey,
      CASCADE_CHAT_MODEL: cascadeModels.chat,
      CASCADE_TRANSCRIPTION_MODEL: cascadeModels.transcription,
      CASCADE_SPEECH_MODEL: cascadeModels.speech,
    },
    says: { vowels: 'for our detector' },
    delayMs: 3 * stageAfter,
    complaints: () => server.violations,
    close: server.close,
  }
}

const openers: Readonly<Record<ProviderName, () => Promise<Provider>>> = {
  'OpenAI Realtime': openOpenAi,
  'Gemini Live': openGemini,
  cascade: openCascade,
}

async function jsonOf(request: IncomingMessage): Promise<{ data: { arguments?: { number?: number } } }> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return JSON.parse(Buffer.concat(chunks).toString('utf8'))
}

/** Answers before each call which tools it has, and does the tool's work. */
const receiver = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  const askedAt = performance.now()
  const deliveryUrl = `http://${request.headers.host}/tool`
  const answerAs = (json: object): void => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify(json))
  }
  void jsonOf(request).then(({ data }) => {
    if (request.url !== '/tool') return answerAs({ tools: [{ ...tool, deliveryUrl }] })
    const number = data.arguments?.number ?? 0
    setTimeout(() => {
      toolCalls.worked(number, performance.now() - askedAt)
      answerAs({ result: { number } })
    }, toolTakes)
  })
})

const provider = await openers[process.argv[2] as ProviderName]()

async function answer(question: unknown): Promise<void> {
  if (question === 'close') {
    receiver.close()
    receiver.closeAllConnections()
    await provider.close()
    return process.disconnect()
  }
  callsTools = question === 'call tools'
  process.send?.({ tools: toolCalls.take(), complaints: provider.complaints() } satisfies ProviderTake)
}

// Whoever asked is gone.
process.once('disconnect', () => process.exit())
process.on('message', (question) => void answer(question))
receiver.listen(0, '127.0.0.1', () => {
  const { settings, says, delayMs } = provider
  const hookUrl = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`
  process.send?.({ settings, says, delayMs, hookUrl } satisfies ProviderReady)
})
