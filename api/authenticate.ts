/**
 * Owns who may ask: the API key, and that a key reaches nothing outside of its own account. What belongs to another account answers
 * exactly like what does not exist. decisions.md, Identity, accounts, keys.
 */
import { toId, type Id } from '../model/ids.ts'
import { Problem } from '../model/problem.ts'
import { findAccountByKey } from '../store/api-keys.ts'
import type { ApiDeps, Middleware } from './deps.ts'
import { recordingsPath } from './recording-link.ts'

export const notFound = (): Problem => new Problem('NOT_FOUND', 'No such resource.')

/** A path segment that is no id names nothing. */
export function idOf<Kind extends string>(segment: string): Id<Kind> {
  const id = toId<Kind>(segment)
  if (id === null) throw notFound()
  return id
}

/** Comes before any routing, so that without a key nothing can be learned, not even which paths exist. Recordings have a signature instead. */
export function authenticate({ sql, clock }: Pick<ApiDeps, 'sql' | 'clock'>): Middleware {
  return async (c, next) => {
    if (c.req.path.startsWith(`${recordingsPath}/`)) return next()
    const key = c.req.header('x-api-key')
    const found = key === undefined ? null : await findAccountByKey(sql, key, clock.now())
    if (!found) throw new Problem('UNAUTHORIZED', 'Send a valid API key in the header x-api-key.')
    c.set('accountId', found.accountId)
    return next()
  }
}

/** Of every route below `/v1/accounts/{accountId}`, before its body is looked at. */
export const ownAccountOnly: Middleware = async (c, next) => {
  const { accountId } = c.req.param() as { accountId?: string }
  if (accountId === undefined || toId<'account'>(accountId) !== c.get('accountId')) throw notFound()
  return next()
}
