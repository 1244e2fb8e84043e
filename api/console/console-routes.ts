/** Owns what answers below `/console`: the page for who is signed in, its files, whose session it is, and the stream of running calls. docs/console.md. */
import type { Context } from 'hono'
import { z } from 'zod'
import { notFound, Problem } from '../../model/problem.ts'
import type { SignedIn } from '../../model/user.ts'
import { signalingUrlFor } from '../../net/public-url.ts'
import type { AuditLog } from '../../store/audit.ts'
import { databaseUnreachable } from '../../store/database-unreachable.ts'
import { idOf } from '../authenticate.ts'
import type { Api, ApiDeps, ApiEnv } from '../deps.ts'
import type { RequestLimit } from '../rate-limit.ts'
import { budgetOf, requireToken, signedInBy } from '../session-authentication.ts'
import { bodyOf } from './console-body.ts'
import { readConsoleFiles } from './console-files.ts'
import { createConsolePage } from './console-page.ts'
import { createEventStreams } from './event-streams.ts'
import { createLiveCalls } from './live-calls.ts'
import { addSupervisionRoutes } from './supervision-routes.ts'
import { addTrunkExamination } from './trunk-routes.ts'

/** Without sessions there is nobody who could use it. */
export function addConsoleRoutes(app: Api, deps: ApiDeps, limit: RequestLimit, audit: AuditLog): void {
  const { sessions, publicUrl, signalingUrl, notes = [] } = deps
  if (!sessions) return
  const files = lazily(readConsoleFiles)
  const page = lazily(() => createConsolePage(files()))
  const streams = createEventStreams({ ...deps, sessions, live: createLiveCalls(deps) })
  const who = async (c: Context<ApiEnv>): Promise<SignedIn | null> => {
    const signedIn = await signedInBy({ sessions, limit }, c.req.raw, c.env)
    const account = signedIn?.memberships[0]
    if (account) limit.goodKey(c.env, budgetOf(c.req.raw), account.accountId)
    return signedIn
  }
  /** What is told to pages of ours only. */
  const whoAsks = async (c: Context<ApiEnv>): Promise<SignedIn> => {
    sessions.requireOwnOrigin(c.req.raw)
    const signedIn = await who(c)
    if (!signedIn) throw new Problem('UNAUTHORIZED', 'Nobody is signed in. Sign in at /sign-in.')
    return signedIn
  }

  app.get('/console/assets/*', (c) => {
    const answer = files().answer(c.req.path, c.req.raw)
    if (!answer) throw notFound()
    return answer
  })
  app.get('/console/session', async (c) => c.json(sessionOf(await whoAsks(c), notes), 200))
  app.get('/console/events', async (c) => {
    const signedIn = await whoAsks(c)
    const membership = signedIn.memberships.find(({ accountId }) => accountId === c.req.query('accountId'))
    if (!membership) throw notFound()
    const only = c.req.query('callId')
    const whose = { userId: signedIn.userId, accountId: membership.accountId }
    return streams.open(c.req.raw, { ...whose, callId: only === undefined ? null : idOf<'call'>(only) })
  })
  app.post('/console/script-check', async (c) => {
    requireToken(c.req.raw, await whoAsks(c))
    const { text } = await bodyOf(c, Script)
    return c.json({ errors: deps.checkScript?.(text).slice(0, maxErrors) ?? [] }, 200)
  })
  if (deps.supervise) addSupervisionRoutes(app, { supervise: deps.supervise, audit, whoAsks })
  addTrunkExamination(app, { ...deps, audit, whoAsks })
  app.get('/console/*', async (c) => {
    // The page is the same for everybody, and tells what is wrong better than an answer for programs.
    const isLet = (await who(c).catch(whileUnreachable)) !== null
    if (isLet) return page()(signalingUrlFor({ signalingUrl, publicUrl }, c.req.raw))
    const { pathname, search } = new URL(c.req.url)
    return c.redirect(`/sign-in?returnTo=${encodeURIComponent(pathname + search)}`, 303)
  })
}

function whileUnreachable(error: unknown): 'nobody knows' {
  if (databaseUnreachable(error)) return 'nobody knows'
  throw error
}

const maxErrors = 100
const Script = z.strictObject({ text: z.string().max(500_000) })

/** Most processes are never asked. */
function lazily<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | null = null
  return () => (made ??= { value: make() }).value
}

/** `notes` are about the service, and for those who own an account on it. */
const sessionOf = ({ userId, email, name, memberships, csrf }: SignedIn, notes: readonly string[]) => ({
  user: { id: userId, email, name },
  accounts: memberships.map(({ accountId, accountName, role }) => ({ id: accountId, name: accountName, role })),
  csrf,
  notes: memberships.some(({ role }) => role === 'owner') ? notes : [],
})
