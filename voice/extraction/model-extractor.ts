/**
 * Owns the extractor that asks a language model, by any OpenAI-compatible endpoint with structured outputs: one question a talk, in its time, its answer
 * bounded. What a server does not know (schemas, a limit's name, a temperature, so long a text) is learnt from its refusal. OpenAI API reference, "Create
 * chat completion".
 */
import { Agent } from 'undici'
import type { Clock } from '../../model/clock.ts'
import {
  ExtractionError,
  type Claims,
  type ExtractionQuestion,
  type Extractor,
  type TellUsed,
} from '../../model/extraction.ts'
import type { Log } from '../../model/log.ts'
import { createEndpoint, EndpointError, textOf, type EndpointAddress } from '../engines/cascade/endpoint.ts'
import { chatUsageIn } from '../engines/cascade/chat-usage.ts'
import { fieldsOf, parsedObject } from '../engines/cascade/fields.ts'
import { claimsOf, CutOffError } from './model-answer.ts'
import { maxTranscript, modelQuestionOf, type ModelQuestion } from './model-question.ts'

export type ModelExtractorDeps = {
  readonly address: EndpointAddress
  /** Ms for a question with all its answers. */
  readonly timeout: number
  readonly clock: Clock
  readonly log: Log
}

const connectTimeout = 3_000
const maxAnswer = 256 * 1024
/** Tokens of an answer: without dimensions, and of each; and of the thoughts before it, for which OpenAI's guide to reasoning models leaves so many. */
const tokens = { plain: 3_000, ofDimension: 100, most: 12_000, thoughts: 25_000 } as const
/** A model that takes in less than this of a talk reads none. */
const leastTranscript = 4_000

/** What the server takes. */
type Dialect = {
  readonly format: 'json_schema' | 'json_object' | 'none'
  readonly limit: 'max_tokens' | 'max_completion_tokens'
  readonly takesTemperature: boolean
  /** What it thinks counts as its answer. */
  readonly thinks: boolean
}

export function createModelExtractor({ address, timeout, clock, log }: ModelExtractorDeps): Extractor {
  const agent = new Agent({ connect: { timeout: connectTimeout }, headersTimeout: 0, bodyTimeout: 0 })
  const endpoint = createEndpoint({ address, agent, clock })
  const ending = new AbortController()
  let dialect: Dialect = { format: 'json_schema', limit: 'max_tokens', takesTemperature: true, thinks: false }
  /** A question was answered: what is refused of a later one is that question's, such as words that a filter takes offence at, or a schema that is too large. */
  let isProven = false
  const learn = (spoken: Dialect): void => {
    dialect = isProven ? { ...dialect, thinks: dialect.thinks || spoken.thinks } : spoken
    isProven = true
  }

  const ask = async (
    asked: ModelQuestion,
    spoken: Dialect,
    { dimensions, left, used }: { readonly dimensions: number; readonly left: number; readonly used: TellUsed },
  ): Promise<Claims> => {
    const answer = await endpoint.ask({
      method: 'POST',
      path: '/chat/completions',
      contentType: 'application/json',
      accept: 'application/json',
      body: JSON.stringify({ model: address.model, ...bodyIn(spoken, asked, dimensions) }),
      signal: ending.signal,
      waits: { head: left, idle: left, whole: left },
      maxBytes: maxAnswer,
    })
    const text = await textOf(answer.body)
    const units = chatUsageIn(fieldsOf(parsedObject(text)?.['usage']))
    if (units !== null) used(address.model, units)
    return claimsOf(text)
  }
  const extract = async (question: ExtractionQuestion, used: TellUsed = () => {}): Promise<Claims> => {
    const until = clock.now() + timeout
    let spoken = dialect
    for (let room = maxTranscript; ;) {
      const asked = modelQuestionOf(question, room)
      const left = until - clock.now()
      if (left <= 0) throw new ExtractionError(`it did not answer within ${timeout} ms`)
      try {
        const claims = await ask(asked, spoken, { dimensions: question.dimensions.length, left, used })
        learn(spoken)
        return asked.unread > 0 ? { ...claims, unread: asked.unread } : claims
      } catch (error) {
        if (error instanceof CutOffError && !spoken.thinks) {
          spoken = { ...spoken, thinks: true }
          continue
        }
        if (!(error instanceof EndpointError)) throw error
        const other = without(spoken, error)
        if (other !== null) {
          log.warn('the extractor takes less than it was asked with', { code: error.code, param: error.param })
          spoken = other
        } else if (error.isTooLong && room / 2 >= leastTranscript) room /= 2
        else throw new ExtractionError(error.message, { cause: error })
      }
    }
  }
  return {
    name: 'model',
    extract,
    async close() {
      ending.abort()
      await agent.destroy()
    },
  }
}

function bodyIn(
  { format, limit, takesTemperature, thinks }: Dialect,
  { instructions, transcript, schema }: ModelQuestion,
  dimensions: number,
): object {
  const asText = format === 'json_schema' ? '' : `\n\n# The schema of your answer\n${JSON.stringify(schema)}`
  return {
    messages: [
      { role: 'system', content: instructions + asText },
      { role: 'user', content: transcript },
    ],
    [limit]: Math.min(tokens.most, tokens.plain + tokens.ofDimension * dimensions) + (thinks ? tokens.thoughts : 0),
    ...(takesTemperature && { temperature: 0 }),
    ...(format === 'json_schema' && {
      response_format: { type: 'json_schema', json_schema: { name: 'call_report', strict: true, schema } },
    }),
    ...(format === 'json_object' && { response_format: { type: 'json_object' } }),
  }
}

/** Without what was refused. Null when the refusal is about something else. */
function without(spoken: Dialect, { status, param, isTooLong, isFiltered }: EndpointError): Dialect | null {
  if (isTooLong || isFiltered || ![400, 422].includes(status ?? 0)) return null
  // It is the word of models that think.
  if (param === 'max_tokens' && spoken.limit === 'max_tokens')
    return { ...spoken, limit: 'max_completion_tokens', thinks: true }
  if (param === 'temperature' && spoken.takesTemperature) return { ...spoken, takesTemperature: false }
  // Servers name the schema, a part of it, or nothing at all.
  if (spoken.format === 'json_schema') return { ...spoken, format: 'json_object' }
  return spoken.format === 'json_object' ? { ...spoken, format: 'none' } : null
}
