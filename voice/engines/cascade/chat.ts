/** Owns what the agent's words come from: one streamed chat completion. OpenAI API reference, "Create chat completion". */
import type { Clock } from '../../../model/clock.ts'
import type { EngineTool } from '../../../model/voice-engine.ts'
import type { Notices } from '../notices.ts'
import { createChatReply, type ModelCall } from './chat-reply.ts'
import { EndpointError, twice, type Endpoint, type EndpointAnswer } from './endpoint.ts'
import { createEventStream } from './event-stream.ts'
import type { ChatMessage } from './history.ts'

export type ChatRequest = {
  readonly messages: readonly ChatMessage[]
  readonly tools: readonly EngineTool[]
  readonly temperature: number | null
  readonly signal: AbortSignal
  onText(text: string): void
}

/** Resolves with the calls of tools when all has come. Throws EndpointError. */
export type Chat = (request: ChatRequest) => Promise<ModelCall[]>

const waits = { head: 15_000, idle: 10_000, whole: 60_000 }
const maxBytes = 4 * 1024 * 1024
/** Of one reply: some minutes of speech. */
const maxTokens = 1_000
/** A model that does not stop is stopped. */
const maxText = 6_000

export function createChat(deps: { endpoint: Endpoint; model: string; clock: Clock; tellOnce: Notices }): Chat {
  const { endpoint, model, clock, tellOnce } = deps
  let dialect: Dialect = { limit: 'max_tokens', takesTemperature: true }

  const attempt = async (request: ChatRequest, spoken: Dialect, onText: (text: string) => void) => {
    const { messages, tools, signal } = request
    const body = JSON.stringify({
      model,
      messages,
      ...(tools.length > 0 && { tools: tools.map(toolOf) }),
      ...fieldsIn(spoken, request.temperature),
      stream: true,
    })
    const head = { method: 'POST', path: '/chat/completions', contentType: 'application/json' } as const
    const answer = await endpoint.ask({ ...head, accept: 'text/event-stream', body, signal, waits, maxBytes })
    return read(answer, onText)
  }
  return async (request) => {
    let hasText = false
    const onText = (text: string): void => {
      hasText = true
      if (!request.signal.aborted) request.onText(text)
    }
    for (;;) {
      const spoken = dialect
      try {
        return await twice(
          clock,
          request.signal,
          () => attempt(request, spoken, onText),
          () => !hasText,
        )
      } catch (error) {
        const other = learnt(spoken, error)
        if (other === null) throw error
        if (!other.takesTemperature) tellOnce('the chat model takes no temperature: llmTemperature is ignored')
        dialect = other
      }
    }
  }
}

const toolOf = ({ name, description, inputSchema }: EngineTool): object => ({
  type: 'function',
  function: { name, description, parameters: inputSchema },
})

type Dialect = { readonly limit: 'max_tokens' | 'max_completion_tokens'; readonly takesTemperature: boolean }

const fieldsIn = ({ limit, takesTemperature }: Dialect, temperature: number | null): object => ({
  [limit]: maxTokens,
  ...(temperature !== null && takesTemperature && { temperature }),
})

/** Newer models have another word for the limit, and some a temperature of their own. Null when that is not what is wrong. */
function learnt(spoken: Dialect, error: unknown): Dialect | null {
  if (!(error instanceof EndpointError) || error.status !== 400) return null
  if (error.param === 'max_tokens' && spoken.limit === 'max_tokens')
    return { ...spoken, limit: 'max_completion_tokens' }
  return error.param === 'temperature' && spoken.takesTemperature ? { ...spoken, takesTemperature: false } : null
}

async function read({ contentType, body }: EndpointAnswer, onText: (text: string) => void): Promise<ModelCall[]> {
  const events = createEventStream()
  const reply = createChatReply()
  let letters = 0
  for await (const chunk of body) {
    if (!contentType.startsWith('text/event-stream'))
      throw new EndpointError('it does not stream its answer', { status: 200 })
    for (const event of events.push(chunk)) {
      const text = reply.take(event)
      const code = reply.errorCode()
      if (code !== null) throw new EndpointError(`it gave up (${code})`, { code })
      if (text === null) throw new EndpointError('it sent what is no chunk of a chat completion')
      letters += text.length
      if (text !== '') onText(text)
      if (letters > maxText) return []
    }
    if (events.tooLong()) throw new EndpointError('it sent an event that is too long')
  }
  if (!reply.isComplete()) throw new EndpointError('its answer was cut off')
  return reply.calls()
}
