/** Owns the first look at a body: that it is JSON at all, and such JSON as can be stored. Shapes are the schemas' business. */
import { flawOf } from '../model/json.ts'
import { Problem } from '../model/problem.ts'
import type { Middleware } from './deps.ts'

const jsonType = /^application\/json\s*(;|$)/i
const charset = /;\s*charset\s*=\s*"?([^";\s]*)/i
/** ASCII is UTF-8. */
const ourCharset = /^(?:utf-?8|us-ascii)$/i

/** The body stays readable for the validator that comes next. */
export const readJson: Middleware = async (c, next) => {
  const type = c.req.header('content-type') ?? ''
  if (!jsonType.test(type)) throw new Problem('UNSUPPORTED_MEDIA_TYPE', 'The body must be application/json.')
  if (!ourCharset.test(charset.exec(type)?.[1] ?? 'utf-8'))
    throw new Problem('UNSUPPORTED_MEDIA_TYPE', 'The body must be JSON in UTF-8, and its charset says something else.')
  if (!/^(?:identity)?$/i.test(c.req.header('content-encoding') ?? ''))
    throw new Problem('UNSUPPORTED_MEDIA_TYPE', 'The body must be sent as it is, without a Content-Encoding.')
  const flaw = flawOf(parse(await c.req.arrayBuffer()))
  if (flaw)
    throw new Problem('VALIDATION_FAILED', 'The body cannot be stored.', [
      { path: flaw.path.join('.'), message: flaw.message },
    ])
  return next()
}

function parse(bytes: ArrayBuffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    // Neither where nor why: the client has a parser of its own, and the message would quote the body.
    throw new Problem('INVALID_JSON', 'The body is not JSON in UTF-8.')
  }
}
