/**
 * Owns how the answer of a language model is read: whatever it looks like, what it claims becomes claims, and what is no answer at all is an error. Whether
 * the claims are true is asked elsewhere. OpenAI API reference, "Create chat completion".
 */
import { ExtractionError, type Claim, type ClaimedAction, type Claims } from '../../model/extraction.ts'
import type { Json } from '../../model/json.ts'
import { errorOfBody } from '../engines/cascade/endpoint.ts'
import { errorBodyOf } from '../engines/cascade/error-body.ts'
import { fieldsOf, isText, parsedObject, type Fields } from '../engines/cascade/fields.ts'
import { createWordFilter } from '../engines/cascade/reasoning.ts'

/** It had no room for all of its answer, thoughts included. */
export class CutOffError extends ExtractionError {}

const maxClaims = 500
const maxQuote = 2_000

/** The text of the whole answer. Throws ExtractionError, or EndpointError for an error that the server tells with status 200. */
export function claimsOf(answer: string): Claims {
  const body = parsedObject(answer)
  const error = errorBodyOf(body)
  if (error !== null) throw errorOfBody(error)
  const [choice] = Array.isArray(body?.['choices']) ? (body['choices'] as unknown[]).map(fieldsOf) : []
  if (!choice) throw new ExtractionError('it answered what is no chat completion')
  const message = fieldsOf(choice['message']) ?? {}
  if (isText(message['refusal'])) throw new ExtractionError('it refused to answer')
  if (choice['finish_reason'] === 'length') throw new CutOffError('its answer was cut off at its limit')
  const report = reportIn(textOf(message['content']))
  if (report === null) throw new ExtractionError('its answer is not the JSON that it was asked for')
  const dimensions = fieldsOf(report['dimensions']) ?? {}
  return {
    values: Object.entries(dimensions)
      .slice(0, maxClaims)
      .flatMap(([key, entry]) => claimOf(key, entry)),
    nextAction: actionOf(report['next_action']),
    summary: isText(report['summary']) ? report['summary'] : null,
  }
}

/** Some give a list of parts. */
function textOf(content: unknown): string {
  if (!Array.isArray(content)) return isText(content) ? content : ''
  return content
    .map((part) => fieldsOf(part)?.['text'])
    .filter(isText)
    .join('')
}

/** Models think aloud, and put their answer between fences or sentences. */
function reportIn(content: string): Fields | null {
  const filter = createWordFilter(false)
  const words = filter.push(content) + filter.end()
  const report = parsedObject(words) ?? parsedObject(words.slice(words.indexOf('{'), words.lastIndexOf('}') + 1))
  const isReport = report !== null && ['dimensions', 'next_action', 'summary'].some((name) => name in report)
  return isReport ? report : null
}

/** A value without turn and quote is claimed all the same: it is dropped, and told, for want of them. */
function claimOf(key: string, entry: unknown): Claim[] {
  if (entry === null || entry === undefined) return []
  const fields = fieldsOf(entry) ?? { value: entry }
  const value = (fields['value'] ?? null) as Json
  return value === null ? [] : [{ key, value, ...quoteIn(fields) }]
}

const quoteIn = ({ turn, quote }: Fields) => ({
  turn: typeof turn === 'number' && Number.isInteger(turn) ? turn : -1,
  quote: isText(quote) ? quote.slice(0, maxQuote) : '',
})

function actionOf(given: unknown): ClaimedAction | 'none' | null {
  const action = fieldsOf(given) ?? {}
  const { key, data } = action
  if (!isText(key)) return null
  if (key === 'none') return 'none'
  const entries = Array.isArray(data) ? data.slice(0, maxClaims).map(fieldsOf) : []
  const claims = entries.flatMap((entry) => {
    const property = entry?.['property']
    return isText(property) ? claimOf(property, entry) : []
  })
  return { key, ...quoteIn(action), data: claims }
}
