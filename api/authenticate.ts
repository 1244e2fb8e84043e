/**
 * Owns who may ask: the API key, or the session of who is signed in (session-authentication.ts), and that a key reaches nothing outside of its own account. What belongs to another account answers
 * exactly like what does not exist. docs/contract/rest.md "Keys and accounts".
 */
import { toId, type CallId, type Id } from '../model/ids.ts'
import { notFound, Problem } from '../model/problem.ts'
import { createKeyLookup, type KeyOwner } from '../store/api-keys.ts'
import type { UsedCall } from '../store/call-usage.ts'
import { createKeyAndCallLookup } from '../store/key-and-call.ts'
import type { ApiDeps, Middleware } from './deps.ts'
import type { RequestLimit } from './rate-limit.ts'
import { recordingsPath } from './recording-link.ts'
import { createSessionAuthentication } from './session-authentication.ts'

/** A path segment that is no id names nothing. */
export function idOf<Kind extends string>(segment: string): Id<Kind> {
  const id = toId<Kind>(segment)
  if (id === null) throw notFound()
  return id
}

type Identified = { readonly owner: KeyOwner; readonly call?: UsedCall | null }

/** Comes before any routing, so that without a key nothing can be learned, not even which paths exist. Recordings have a signature instead. */
export function authenticate(
  deps: Pick<ApiDeps, 'sql' | 'clock' | 'noRoomFor' | 'sessions'>,
  limit: RequestLimit,
): Middleware {
  const { sql, clock, noRoomFor = () => null, sessions } = deps
  const signIn = sessions && createSessionAuthentication({ sessions, limit })
  const now = (): number => clock.now()
  const findOwner = createKeyLookup(sql, now)
  const findOwnerAndCall = createKeyAndCallLookup(sql, now)
  const identify = async (key: string, path: string): Promise<Identified | null> => {
    const callId = callIdOf(path)
    if (callId !== null) return findOwnerAndCall(key, callId)
    const owner = await findOwner(key)
    return owner && { owner }
  }
  return async (c, next) => {
    if (c.req.path.startsWith(`${recordingsPath}/`)) return next()
    const key = c.req.header('x-api-key')
    const found = key === undefined && signIn ? await signIn(c) : 'nobody'
    if (found === 'here') return next()
    if (found === 'elsewhere') throw notFound()
    limit.beforeKey(c.env, key)
    // While the database is what is short, it is not asked whose key it is.
    const problem = key === undefined || c.req.method !== 'POST' ? null : noRoomFor(createdBy(c.req.path))
    if (problem) throw problem
    const identified = key === undefined ? null : await identify(key, c.req.path)
    if (key === undefined || !identified) {
      limit.wrongKey(c.env, key)
      throw new Problem('UNAUTHORIZED', 'Send a valid API key in the header x-api-key.')
    }
    const { owner, call } = identified
    limit.goodKey(c.env, key, owner.accountId)
    c.env.info.proved?.()
    c.set('accountId', owner.accountId)
    c.set('keyId', owner.keyId)
    c.set('role', null)
    c.set('actor', { kind: 'api_key', keyId: owner.keyId })
    c.set('scopes', owner.scopes)
    if (call !== undefined) c.set('call', call)
    return next()
  }
}

const beforeAccount = '/v1/accounts/'
const beforeCall = '/phone-calls/'
const idLength = 36

/** Of a path that names a call and nothing below it: such a call is read together with the key. */
function callIdOf(path: string): CallId | null {
  const at = beforeAccount.length + idLength
  const from = at + beforeCall.length
  if (path.length !== from + idLength || !path.startsWith(beforeCall, at)) return null
  return toId<'call'>(path.slice(from))
}

/** What a POST to the path begins. */
function createdBy(path: string): 'web_call' | 'phone_call' | null {
  if (path.indexOf('/', beforeAccount.length) !== beforeAccount.length + idLength) return null
  if (path.endsWith('/web-calls')) return 'web_call'
  return path.endsWith('/phone-calls') ? 'phone_call' : null
}

/** Of every route below `/v1/accounts/{accountId}`, before its body is looked at. */
export const ownAccountOnly: Middleware = async (c, next) => {
  const { accountId } = c.req.param() as { accountId?: string }
  const own = c.get('accountId')
  // An id may be written in upper case.
  if (accountId !== own && (accountId === undefined || toId<'account'>(accountId) !== own)) throw notFound()
  return next()
}
