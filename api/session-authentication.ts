/**
 * Owns the other way to ask the API: as somebody who is signed in on the pages of this service, with what their role in the account of the path
 * may. Their browser sends the cookie by itself, so every request must come from a page of ours, and one that changes something must carry the
 * token that only such a page knows. docs/security.md "Pages and sign-in".
 */
import { timingSafeEqual } from 'node:crypto'
import type { Context } from 'hono'
import { toId, type AccountId } from '../model/ids.ts'
import { Problem } from '../model/problem.ts'
import { scopesOfRole, type Membership, type PageSessions, type SignedIn } from '../model/user.ts'
import type { ApiEnv } from './deps.ts'
import type { RequestLimit } from './rate-limit.ts'

export const csrfHeader = 'x-csrf-token'
/** Which of several, where a path names none. */
export const accountHeader = 'x-account-id'

type Deps = { readonly sessions: PageSessions; readonly limit: RequestLimit }

/** `elsewhere`: the account is not one of theirs, of which nothing can be learned, not even that it exists. */
type Found = 'nobody' | 'elsewhere' | 'here'

/** Throws Problem for a request that only looks like theirs. */
export function createSessionAuthentication({ sessions, limit }: Deps) {
  return async (c: Context<ApiEnv>): Promise<Found> => {
    const request = c.req.raw
    const signedIn = await signedInBy({ sessions, limit }, request, c.env)
    if (!signedIn) return 'nobody'
    sessions.requireOwnOrigin(request)
    if (request.method !== 'GET' && request.method !== 'HEAD') requireToken(request, signedIn)
    const membership = membershipFor(c, signedIn)
    if (!membership) return 'elsewhere'
    const { accountId, role } = membership
    limit.goodKey(c.env, budgetOf(request), accountId)
    c.env.info.proved?.()
    c.set('accountId', accountId)
    c.set('keyId', null)
    c.set('role', role)
    c.set('scopes', scopesOfRole(role))
    c.set('actor', { kind: 'user', userId: signedIn.userId })
    return 'here'
  }
}

/** Null: nobody is signed in. The address is charged until the session proves good. */
export async function signedInBy(
  { sessions, limit }: Deps,
  request: Request,
  asked: ApiEnv['Bindings'],
): Promise<SignedIn | null> {
  if (!request.headers.has('cookie')) return null
  limit.beforeKey(asked, budgetOf(request))
  return sessions.findSignedIn(request)
}

/** Cookies that were good once are not charged to their address any more. */
export const budgetOf = (request: Request): string => `session ${request.headers.get('cookie') ?? ''}`

/** Throws Problem ORIGIN_NOT_ALLOWED for a change that no page of ours asks for. */
export function requireToken(request: Request, { csrf }: SignedIn): void {
  const [given, wanted] = [Buffer.from(request.headers.get(csrfHeader) ?? ''), Buffer.from(csrf)]
  if (given.length === wanted.length && timingSafeEqual(given, wanted)) return
  throw new Problem(
    'ORIGIN_NOT_ALLOWED',
    `A change by who is signed in carries the token of their page in ${csrfHeader}.`,
  )
}

const ofAccount = /^\/v1\/accounts\/([^/]+)/

function membershipFor(c: Context<ApiEnv>, { memberships }: SignedIn): Membership | undefined {
  const named = ofAccount.exec(c.req.path)?.[1]
  const wanted = named === undefined || named === 'current' ? c.req.header(accountHeader) : named
  return wanted === undefined ? memberships[0] : membershipIn(memberships, toId<'account'>(wanted))
}

const membershipIn = (memberships: readonly Membership[], accountId: AccountId | null): Membership | undefined =>
  memberships.find((membership) => membership.accountId === accountId)
