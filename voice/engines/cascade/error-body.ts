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
}

/** Of a whole answer, or of one event; null when it is no error. */
export function errorBodyOf(body: Fields | null): ErrorBody | null {
  if (body === null) return null
  const error = body['error']
  if (error !== undefined && error !== null) return errorIn(fieldsOf(error) ?? { message: error })
  // Older ones of vLLM are the error themselves.
  return body['object'] === 'error' ? errorIn(body) : null
}

function errorIn({ code, type, param, message }: Fields): ErrorBody {
  const named = [code, type].find((value) => isText(value) && /^[a-z][a-z._]{0,63}$/i.test(value))
  const status = typeof code === 'number' && code >= 400 && code < 600 ? code : null
  const name = isText(named) ? named : String(status ?? 'error')
  const said = `${name} ${isText(message) ? message.slice(0, 2_000) : ''}`
  return {
    code: name,
    status,
    param: isText(param) ? param : null,
    lacksModel: /model/i.test(said) && /not.?found|does not exist|no such/i.test(said),
    isTooLong: /context.?(?:length|window|size)|maximum context|input.?tokens|prompt is too long/i.test(said),
  }
}
