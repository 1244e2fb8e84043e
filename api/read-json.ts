/** Owns the first look at a body: that it is JSON at all, and such JSON as can be stored. Shapes are the schemas' business. */
import { Problem } from '../model/problem.ts'
import type { Middleware } from './deps.ts'

const maxDepth = 64
const jsonType = /^application\/json\s*(;|$)/i

type Flaw = { readonly path: readonly string[]; readonly message: string }

/** The body stays readable for the validator that comes next. */
export const readJson: Middleware = async (c, next) => {
  if (!jsonType.test(c.req.header('content-type') ?? ''))
    throw new Problem('UNSUPPORTED_MEDIA_TYPE', 'The body must be application/json.')
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

/** Postgres stores neither NUL nor half a surrogate pair; nesting is bounded because everything behind this walks it recursively. */
function flawOf(value: unknown, depth = 0): Flaw | null {
  if (typeof value === 'string') return textFlawOf(value)
  if (typeof value !== 'object' || value === null) return null
  if (depth === maxDepth) return { path: [], message: `must not be nested deeper than ${maxDepth} levels` }
  for (const [key, item] of Object.entries(value)) {
    const flaw = textFlawOf(key) ?? flawOf(item, depth + 1)
    if (flaw) return { ...flaw, path: [key, ...flaw.path] }
  }
  return null
}

function textFlawOf(text: string): Flaw | null {
  if (text.includes('\0')) return { path: [], message: 'must not contain the character U+0000' }
  return text.isWellFormed() ? null : { path: [], message: 'must not contain half of a surrogate pair' }
}
