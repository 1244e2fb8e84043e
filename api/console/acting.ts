/**
 * Owns what people who are signed in do from the console beside REST: their role lets them, their page proves that it is ours, and each step is in the audit
 * log, whatever came of it.
 */
import type { Context } from 'hono'
import type { AccountId, CallId, UserId } from '../../model/ids.ts'
import type { Json, JsonObject } from '../../model/json.ts'
import { notFound, Problem } from '../../model/problem.ts'
import { scopesOfRole, type SignedIn } from '../../model/user.ts'
import type { AuditLog } from '../../store/audit.ts'
import type { KeyScope } from '../../model/api-key.ts'
import type { ApiEnv } from '../deps.ts'
import { requireToken } from '../session-authentication.ts'

export type ActingDeps = {
  readonly audit: Pick<AuditLog, 'note'>
  /** Throws Problem where nobody is. */
  whoAsks(c: Context<ApiEnv>): Promise<SignedIn>
}

type Whose = { readonly accountId: AccountId; readonly userId: UserId }
/** What the audit log has besides: `callId`, of the call that it is about. */
type About = { readonly arguments: JsonObject; readonly callId?: CallId }
type Act = (c: Context<ApiEnv>, whose: Whose) => Promise<Json>

export function membershipIn(c: Context<ApiEnv>, { memberships }: SignedIn) {
  const membership = memberships.find(({ accountId }) => accountId === c.req.param('accountId'))
  if (!membership) throw notFound()
  return membership
}

/** Null of `act`: there is nothing to tell. */
export const createActing =
  ({ audit, whoAsks }: ActingDeps, scope: KeyScope) =>
  (action: string, about: (c: Context<ApiEnv>) => About, act: Act) =>
  async (c: Context<ApiEnv>) => {
    const signedIn = await whoAsks(c)
    requireToken(c.req.raw, signedIn)
    const { accountId, role } = membershipIn(c, signedIn)
    const { userId } = signedIn
    const { arguments: given, callId } = about(c)
    const note = (ending: { readonly result: 'success' | 'error'; readonly errorCode?: string }) =>
      audit.note({
        accountId,
        actor: { kind: 'user', userId },
        action,
        arguments: given,
        requestId: c.env.requestId,
        callIds: ending.result === 'success' && callId ? [callId] : [],
        ...ending,
      })
    try {
      if (!scopesOfRole(role).includes(scope))
        throw new Problem(
          'INSUFFICIENT_SCOPE',
          `This needs the role operator or owner; yours in this account is ${role}.`,
        )
      const answer = await act(c, { accountId, userId })
      await note({ result: 'success' })
      return answer === null ? c.body(null, 204) : c.json(answer, 200)
    } catch (error) {
      await note({ result: 'error', errorCode: error instanceof Problem ? error.type : 'INTERNAL' })
      throw error
    }
  }
