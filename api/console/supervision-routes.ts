/**
 * Owns the routes by which the console listens to a running call, whispers to its agent and takes it over. For people who are signed in only: what is told
 * names them. Each step is in the audit log, whatever came of it. docs/supervision.md.
 */
import type { Context } from 'hono'
import type { Json } from '../../model/json.ts'
import { Listen, Whisper, type Supervise } from '../../model/supervision.ts'
import { idOf } from '../authenticate.ts'
import type { Api, ApiEnv } from '../deps.ts'
import { createActing, membershipIn, type ActingDeps } from './acting.ts'
import { bodyOf } from './console-body.ts'

type Deps = ActingDeps & { readonly supervise: Supervise }

const path = '/console/accounts/:accountId/phone-calls/:callId/supervision'
const oneOf = `${path}/:id` as const

type Asked = Parameters<Supervise['leave']>[0]
type Act = (c: Context<ApiEnv>, asked: Asked) => Promise<Json>

export function addSupervisionRoutes(app: Api, deps: Deps): void {
  const { supervise, whoAsks } = deps
  const actingAs = createActing(deps, 'calls')
  const callOf = (c: Context<ApiEnv>) => idOf<'call'>(c.req.param('callId') ?? '')
  const acting = (action: string, act: Act) =>
    actingAs(
      action,
      (c) => ({ arguments: { callId: callOf(c) }, callId: callOf(c) }),
      (c, whose) => act(c, { ...whose, callId: callOf(c), id: c.req.param('id') ?? '' }),
    )
  const done =
    (act: (asked: Asked) => Promise<void>): Act =>
    async (_, asked) => {
      await act(asked)
      return null
    }

  app.get(path, async (c) => {
    const { accountId } = membershipIn(c, await whoAsks(c))
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
