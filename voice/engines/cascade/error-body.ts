/**
 * Owns what a program may know of an error that an endpoint tells, whoever wrote the endpoint, and no words of it: they may repeat what was asked, or
 * the key. Pure.
 */
import { fieldsOf, isText, type Fields } from './fields.ts'

export type ErrorBody = {
  /** `error` when it names none. */
  readonly code: string
  /** As an HTTP status, when it stands in the error itself. */
  readonly status: number | null
  readonly param: string | null
  readonly lacksModel: boolean
  /** What it was told is more than the model can take in. */
  readonly isTooLong: boolean
  /** A filter takes offence at what it was told. */
  readonly isFiltered: boolean
}

/** Of a whole answer, or of one event; null when it is no error. */
export function errorBodyOf(body: Fields | null): ErrorBody | null {
  if (body === null) return null
  const error = body['error']
  if (error !== undefined && error !== null) return errorIn(fieldsOf(error) ?? { message: error })
  // Older ones of vLLM are the error themselves.
  if (body['object'] === 'error') return errorIn(body)
  return isAnswer(body) ? null : errorInDetail(body['detail'])
}

/** An answer may have a field of any name besides its own. */
const isAnswer = (body: Fields): boolean => ['choices', 'text', 'data'].some((name) => name in body)

/**
 * FastAPI's HTTPException and RequestValidationError, of which many servers are made: a text, a list of what is wrong with which field, or whatever the
 * server likes. https://fastapi.tiangolo.com/tutorial/handling-errors
 */
function errorInDetail(detail: unknown): ErrorBody | null {
  if (isText(detail)) return errorIn({ message: detail })
  if (!Array.isArray(detail)) {
    const fields = fieldsOf(detail)
    return fields && errorIn(fieldsOf(fields['error']) ?? fields)
  }
  const wrong = detail.map(fieldsOf).find((one) => one !== null)
  if (!wrong) return errorIn({})
  const { loc, msg: message, type } = wrong
  return errorIn({ message, type, param: Array.isArray(loc) ? loc.findLast(isText) : null })
}

function errorIn({ code, type, param, message }: Fields): ErrorBody {
  const named = [code, type].find((value) => isText(value) && /^[a-z][a-z._]{0,63}$/i.test(value))
  const status = typeof code === 'number' && code >= 400 && code < 600 ? code : null
  const name = isText(named) ? named : String(status ?? 'error')
  const said = `${name} ${isText(message) ? message.slice(0, 2_000) : ''}`
  return {
    code: name,
    status,
    // Proxies pass on the words alone.
    param: isText(param) ? param : (/\breasoning_effort\b/.exec(said)?.[0] ?? null),
    lacksModel: /model/i.test(said) && /not.?found|does not exist|no such|not installed/i.test(said),
    // Azure's, by itself or as LiteLLM passes it on, and OpenAI's for models that think.
    isFiltered: /content.?filter|content.?(?:management.)?policy|responsible.?ai.?policy|invalid_prompt/i.test(said),
    isTooLong: /context.?(?:length|window|size)|maximum context|input.?tokens|prompt is too long/i.test(said),
  }
}
