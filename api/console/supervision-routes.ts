/**
 * Owns the routes by which the console listens to a running call, whispers to its agent and takes it over. For people who are signed in only: what is told
 * names them. Each step is in the audit log, whatever came of it. docs/supervision.md.
 */
import type { Context } from 'hono'
import type { Json } from '../../model/json.ts'
import { notFound, Problem } from '../../model/problem.ts'
import { Listen, Whisper, type Supervise } from '../../model/supervision.ts'
import { scopesOfRole, type SignedIn } from '../../model/user.ts'
import type { AuditLog } from '../../store/audit.ts'
import { idOf } from '../authenticate.ts'
import type { Api, ApiEnv } from '../deps.ts'
import { requireToken } from '../session-authentication.ts'
import { bodyOf } from './console-body.ts'

type Deps = {
  readonly supervise: Supervise
  readonly audit: Pick<AuditLog, 'note'>
  /** Throws Problem where nobody is. */
  whoAsks(c: Context<ApiEnv>): Promise<SignedIn>
}

const path = '/console/accounts/:accountId/phone-calls/:callId/supervision'
const oneOf = `${path}/:id` as const

type Asked = Parameters<Supervise['leave']>[0]
type Act = (c: Context<ApiEnv>, asked: Asked) => Promise<Json>

export function addSupervisionRoutes(app: Api, { supervise, audit, whoAsks }: Deps): void {
  const membershipOf = (c: Context<ApiEnv>, { memberships }: SignedIn) => {
    const membership = memberships.find(({ accountId }) => accountId === c.req.param('accountId'))
    if (!membership) throw notFound()
    return membership
  }
  const acting = (action: string, act: Act) => async (c: Context<ApiEnv>) => {
    const signedIn = await whoAsks(c)
    requireToken(c.req.raw, signedIn)
    const { accountId, role } = membershipOf(c, signedIn)
    const { userId } = signedIn
    const callId = idOf<'call'>(c.req.param('callId') ?? '')
    const note = (ending: { readonly result: 'success' | 'error'; readonly errorCode?: string }) =>
      audit.note({
        accountId,
        actor: { kind: 'user', userId },
        action,
        arguments: { callId },
        requestId: c.env.requestId,
        callIds: ending.result === 'success' ? [callId] : [],
        ...ending,
      })
    try {
      if (!scopesOfRole(role).includes('calls'))
        throw new Problem(
          'INSUFFICIENT_SCOPE',
          `This needs the role operator or owner; yours in this account is ${role}.`,
        )
      const answer = await act(c, { accountId, callId, userId, id: c.req.param('id') ?? '' })
      await note({ result: 'success' })
      return answer === null ? c.body(null, 204) : c.json(answer, 200)
    } catch (error) {
      await note({ result: 'error', errorCode: error instanceof Problem ? error.type : 'INTERNAL' })
      throw error
    }
  }
  const done =
    (act: (asked: Asked) => Promise<void>): Act =>
    async (_, asked) => {
      await act(asked)
      return null
    }

  app.get(path, async (c) => {
    const { accountId } = membershipOf(c, await whoAsks(c))
    return c.json(await supervise.read({ accountId, callId: idOf<'call'>(c.req.param('callId')) }), 200)
  })
  app.post(
    path,
    acting('supervision.listen', async (c, asked) => supervise.listen({ ...asked, ...(await bodyOf(c, Listen)) })),
  )
  app.post(
    `${path}/whisper`,
    acting('supervision.whisper', async (c, asked) => {
      await supervise.whisper({ ...asked, ...(await bodyOf(c, Whisper)) })
      return null
    }),
  )
  app.post(`${oneOf}/take-over`, acting('supervision.take_over', done(supervise.takeOver)))
  app.post(`${oneOf}/give-back`, acting('supervision.give_back', done(supervise.giveBack)))
  app.delete(oneOf, acting('supervision.leave', done(supervise.leave)))
}
