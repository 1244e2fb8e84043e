/**
 * Owns who may join a web call: tokens, origins, and telling the call that its client is here. docs/contract/signaling.md "Joining" and
 * "Resuming". A token that was taken when the database went away, before the call could be told, is good for its client's next try.
 */
import type { Clock } from '../../../model/clock.ts'
import { Problem } from '../../../model/problem.ts'
import { resumeWindow, type Admission, type Admitted, type CameTooLate } from '../../../model/web-call.ts'
import { admitsOrigin } from '../../../model/web-origin.ts'
import { createRecent } from '../../../net/recent.ts'
import { databaseUnreachable } from '../../../store/database-unreachable.ts'
import type { Sql } from '../../../store/sql.ts'
import { createToken, hashOfToken, isToken } from '../../../store/token.ts'
import {
  findByResumeToken,
  findEndedByResumeToken,
  findByToken,
  isKnownToken,
  replaceResumeToken,
  takeToken,
  type WebSession,
} from '../../../store/web-sessions.ts'
import type { CallRouter } from '../../node/call-router.ts'

type Joining = { readonly session: WebSession; readonly resumeToken: string }

const maxHalfway = 1_000
/** Ms. Who lost its socket tries for 30 s; a call may have ended before that is noticed. */
const comesBackWithin = 2 * resumeWindow

/** Unknown, used and expired tokens get one answer, so that guessing tells nothing. */
const refused = () => new Problem('UNAUTHORIZED', 'the token is unknown, used or expired')

export function createAdmission(deps: {
  readonly sql: Sql
  readonly clock: Clock
  readonly router: CallRouter
}): Admission {
  const { sql, clock, router } = deps
  /** By the token. */
  const halfway = createRecent<Joining>(maxHalfway)

  /** False: somebody else has taken it. The answer to a former try of this may have been lost. */
  const take = async (token: string, { resumeToken }: Joining): Promise<boolean> => {
    const next = hashOfToken(resumeToken)
    if (await takeToken(sql, hashOfToken(token), next, clock.now())) return true
    return halfway.get(token) !== undefined && (await findByResumeToken(sql, next)) !== null
  }
  const endedMeanwhile = async (resumeToken: string, origin: string | null): Promise<CameTooLate | Problem> => {
    const since = clock.now() - comesBackWithin
    const session = await findEndedByResumeToken(sql, hashOfToken(resumeToken), since)
    if (!session) return refused()
    return originProblem(session, origin) ?? { ended: session.outcome }
  }
  /** The call ended in the same moment, or nobody answers for it. */
  const whyNot = async ({ resumeToken }: Joining): Promise<Problem> =>
    (await findByResumeToken(sql, hashOfToken(resumeToken)))
      ? new Problem('SERVICE_UNAVAILABLE', 'the call cannot be joined now')
      : refused()
  return {
    async admit(token, origin) {
      if (!isToken(token)) return refused()
      const begun = halfway.get(token)
      const session = begun?.session ?? (await findByToken(sql, hashOfToken(token), clock.now()))
      const problem = session ? originProblem(session, origin) : refused()
      if (!session || problem) return problem ?? refused()
      const joining = begun ?? { session, resumeToken: createToken() }
      try {
        if (!(await take(token, joining))) return refused()
        const taken = await router.route(session.callId, { type: 'client_connected' })
        halfway.delete(token)
        if (!taken) return await whyNot(joining)
        return admitted(session, joining.resumeToken)
      } catch (error) {
        if (databaseUnreachable(error)) halfway.set(token, joining)
        throw error
      }
    },
    async resume(resumeToken, origin) {
      if (!isToken(resumeToken)) return refused()
      const session = await findByResumeToken(sql, hashOfToken(resumeToken))
      if (!session) return endedMeanwhile(resumeToken, origin)
      const problem = originProblem(session, origin)
      if (problem) return problem
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
