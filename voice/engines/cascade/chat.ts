/** Owns what the agent's words come from: one streamed chat completion. OpenAI API reference, "Create chat completion". */
import type { Clock } from '../../../model/clock.ts'
import type { EngineTool } from '../../../model/voice-engine.ts'
import type { UsedUnits } from '../../../model/usage.ts'
import type { Notices } from '../notices.ts'
import { createChatReply, type ModelCall } from './chat-reply.ts'
import { EndpointError, errorOfBody, textOf, twice, type Endpoint, type EndpointAnswer } from './endpoint.ts'
import { createEventStream } from './event-stream.ts'
import type { ChatMessage } from './history.ts'
import { createWordFilter, type WordFilter } from './reasoning.ts'

export type ChatRequest = {
  readonly messages: readonly ChatMessage[]
  readonly tools: readonly EngineTool[]
  readonly temperature: number | null
  readonly signal: AbortSignal
  onText(text: string): void
}

export type ChatAnswer = {
  readonly calls: readonly ModelCall[]
  /** The last words may be half a sentence. */
  readonly isCut: boolean
  /** Null: the endpoint does not tell. */
  readonly usage: UsedUnits | null
}

/** Resolves when all has come. Throws EndpointError. */
export type Chat = (request: ChatRequest) => Promise<ChatAnswer>

const waits = { head: 15_000, idle: 10_000, whole: 60_000 }
const maxBytes = 4 * 1024 * 1024
/** Of one reply: some minutes of speech. Models that think have another name for it, and count their thoughts: gpt-5 has had 1,400 for a sentence or two. */
const maxTokens = { max_tokens: 1_000, max_completion_tokens: 8_000 } as const
/** A model that does not stop is stopped. */
const maxText = 6_000

export function createChat(deps: { endpoint: Endpoint; model: string; clock: Clock; tellOnce: Notices }): Chat {
  const { endpoint, model, clock, tellOnce } = deps
  let dialect: Dialect = {
    limit: 'max_tokens',
    takesTemperature: true,
    thinksBeforeTools: true,
    beginsInThought: false,
    tellsUsage: true,
  }

  /** It has taken a request as it was asked: what it refuses later is something else. */
  let isUnderstood = false

  const attempt = async (request: ChatRequest, spoken: Dialect, onText: (text: string) => void) => {
    const { messages, tools, signal } = request
    const body = JSON.stringify({
      model,
      messages,
      ...(tools.length > 0 && { tools: tools.map(toolOf) }),
      ...(tools.length > 0 && !spoken.thinksBeforeTools && { reasoning_effort: 'none' }),
      ...fieldsIn(spoken, request.temperature),
      stream: true,
      ...(spoken.tellsUsage && { stream_options: { include_usage: true } }),
    })
    const head = { method: 'POST', path: '/chat/completions', contentType: 'application/json' } as const
    const answer = await endpoint.ask({ ...head, accept: 'text/event-stream', body, signal, waits, maxBytes })
    isUnderstood = true
    const words = createWordFilter(spoken.beginsInThought)
    try {
      return await read(answer, words, onText)
    } finally {
      if (words.beganInside()) {
        tellOnce('the chat model thinks aloud: its endpoint has to part its thoughts from its words')
        dialect = { ...dialect, beginsInThought: true }
      }
    }
  }
  return async (request) => {
    let hasText = false
    let again = true
    const onText = (text: string): void => {
      hasText ||= text.trim() !== ''
      if (!request.signal.aborted) request.onText(text)
    }
    for (;;) {
      const spoken = dialect
      try {
        const answer = await twice(
          clock,
          request.signal,
          () => attempt(request, spoken, onText),
          () => !hasText,
        )
        if (hasText || answer.calls.length > 0 || request.signal.aborted) return answer
        if (answer.isCut) tellOnce('the chat model was at its limit before it said a word: let it think less')
        if (!again) return answer
        again = false
      } catch (error) {
        const other = learnt(spoken, error, isUnderstood)
        if (other === null) throw error
        if (!other.thinksBeforeTools)
          tellOnce('the chat model takes tools only where it does not think: it is asked not to')
        if (!other.takesTemperature) tellOnce('the chat model takes no temperature: llmTemperature is ignored')
        dialect = { ...dialect, ...other }
      }
    }
  }
}

const toolOf = ({ name, description, inputSchema }: EngineTool): object => ({
  type: 'function',
  function: { name, description, parameters: inputSchema },
})

type Dialect = {
  readonly limit: 'max_tokens' | 'max_completion_tokens'
  readonly takesTemperature: boolean
  /** Of OpenAI, gpt-5.4 and newer refuse tools in chat completions unless they are told not to think. */
  readonly thinksBeforeTools: boolean
  /** It says where its thoughts end, and not that they begin. */
  readonly beginsInThought: boolean
  /** It takes the wish to be told what it counts. */
  readonly tellsUsage: boolean
}

const fieldsIn = ({ limit, takesTemperature }: Dialect, temperature: number | null): object => ({
  [limit]: maxTokens[limit],
  ...(temperature !== null && takesTemperature && { temperature }),
})

/** Newer models have another word for the limit, and some a temperature of their own. Null when that is not what is wrong. */
function learnt(spoken: Dialect, error: unknown, isUnderstood: boolean): Dialect | null {
  if (!(error instanceof EndpointError) || error.isTooLong || error.isFiltered) return null
  if (![400, 422].includes(error.status ?? 0)) return null
  if (error.param === 'max_tokens' && spoken.limit === 'max_tokens')
    return { ...spoken, limit: 'max_completion_tokens' }
  if (error.param === 'reasoning_effort' && spoken.thinksBeforeTools) return { ...spoken, thinksBeforeTools: false }
  if (error.param === 'temperature' && spoken.takesTemperature) return { ...spoken, takesTemperature: false }
  // Not every server knows the wish, nor says in its refusal what it did not know.
  return spoken.tellsUsage && !isUnderstood ? { ...spoken, tellsUsage: false } : null
}

async function read(answer: EndpointAnswer, words: WordFilter, onText: (text: string) => void): Promise<ChatAnswer> {
  const reply = createChatReply()
  let letters = 0
  const give = (text: string): void => {
    letters += text.length
    if (text !== '') onText(text)
  }
  const take = (event: string): boolean => {
    const text = reply.take(event)
    const error = reply.error()
    if (error !== null) throw errorOfBody(error)
    if (text === null) throw new EndpointError('it sent what is no chunk of a chat completion')
    give(words.push(text))
    return letters <= maxText
  }
  // Some do not stream what has tools.
  if (answer.contentType.startsWith('application/json')) take(await textOf(answer.body))
  else await readEvents(answer, take, reply.isLast)
  if (letters > maxText) return { calls: [], isCut: true, usage: reply.usage() }
  if (!reply.isComplete()) throw new EndpointError('its answer was cut off')
  give(words.end())
  return { calls: reply.calls(), isCut: reply.isCut(), usage: reply.usage() }
}

/** `take`: false when nothing more is wanted. What comes after the last event is let go, so that the connection can be used again. */
async function readEvents(
  { contentType, body }: EndpointAnswer,
  take: (event: string) => boolean,
  isLast: () => boolean,
): Promise<void> {
  const events = createEventStream()
  let isOver = false
  try {
    for (;;) {
      const { done, value } = await body.next()
      if (done === true) return
      if (!contentType.startsWith('text/event-stream'))
        throw new EndpointError('it does not stream its answer', { status: 200 })
      if (!events.push(value).every(take)) return
      if (events.tooLong()) throw new EndpointError('it sent an event that is too long')
      isOver = isLast()
      if (isOver) return void drain(body)
    }
  } finally {
    if (!isOver) await body.return()
  }
}

/** Bounded as the body itself is; its failure has no effect. */
async function drain(body: EndpointAnswer['body']): Promise<void> {
  try {
    for await (const _ of body);
  } catch {
    // It was not wanted any more.
  }
}
