/**
 * Owns who may join a web call: tokens, origins, and telling the call that its client is here. docs/contract/signaling.md "Joining" and
 * "Resuming".
 */
import type { Clock } from '../../../model/clock.ts'
import { Problem } from '../../../model/problem.ts'
import type { Admission, Admitted } from '../../../model/web-call.ts'
import { admitsOrigin } from '../../../model/web-origin.ts'
import type { Sql } from '../../../store/sql.ts'
import { createToken, hashOfToken, isToken } from '../../../store/token.ts'
import {
  findByResumeToken,
  findByToken,
  isKnownToken,
  replaceResumeToken,
  takeToken,
  type WebSession,
} from '../../../store/web-sessions.ts'
import type { CallRouter } from '../../node/call-router.ts'

/** Unknown, used and expired tokens get one answer, so that guessing tells nothing. */
const refused = () => new Problem('UNAUTHORIZED', 'the token is unknown, used or expired')

export function createAdmission(deps: {
  readonly sql: Sql
  readonly clock: Clock
  readonly router: CallRouter
}): Admission {
  const { sql, clock, router } = deps
  return {
    async admit(token, origin) {
      const session = isToken(token) ? await findByToken(sql, hashOfToken(token), clock.now()) : null
      const problem = session ? originProblem(session, origin) : refused()
      if (!session || problem) return problem ?? refused()
      const resumeToken = createToken()
      if (!(await takeToken(sql, hashOfToken(token), hashOfToken(resumeToken), clock.now()))) return refused()
      const taken = await router.route(session.callId, { type: 'client_connected' })
      if (!taken) return new Problem('SERVICE_UNAVAILABLE', 'the call cannot be joined now')
      return admitted(session, resumeToken)
    },
    async resume(resumeToken, origin) {
      const session = isToken(resumeToken) ? await findByResumeToken(sql, hashOfToken(resumeToken)) : null
      const problem = session ? originProblem(session, origin) : refused()
      if (!session || problem) return problem ?? refused()
      const next = createToken()
      if (!(await replaceResumeToken(sql, hashOfToken(resumeToken), hashOfToken(next)))) return refused()
      return admitted(session, next)
    },
    arrive: async () => null,
    isOurs: async (token) => isToken(token) && isKnownToken(sql, hashOfToken(token)),
  }
}

const admitted = (session: WebSession, resumeToken: string): Admitted => ({
  callId: session.callId,
  sessionId: session.id,
  resumeToken,
})

/** With a list of origins a client that sends none is refused too. */
function originProblem(session: WebSession, origin: string | null): Problem | null {
  if (session.allowedOrigins === null) return null
  if (origin !== null && admitsOrigin(session.allowedOrigins, origin)) return null
  return new Problem('ORIGIN_NOT_ALLOWED', 'this origin may not join the call')
}
