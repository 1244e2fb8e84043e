/** Owns the answer to whoever sends new calls to a process: may each of its roles take them now? What runs is not asked for. */
import { createRoute, z } from '@hono/zod-openapi'
import { deadline } from '../model/deadline.ts'
import { Problem } from '../model/problem.ts'
import { allRoles, type Readiness, type Role } from '../model/roles.ts'
import type { Api, RimDeps } from './deps.ts'
import { answerOf, named } from './openapi.ts'

const answerWithin = 2_000

const Ready = z.object({
  status: z.literal('ready').openapi({ description: 'New calls may come.' }),
  roles: z.array(z.enum(allRoles)).openapi({ description: 'What the process that answers does.' }),
})

const get = createRoute({
  method: 'get',
  path: '/ready',
  security: [],
  tags: ['Health'],
  operationId: 'getReadiness',
  summary: 'Ask whether the process may take new calls',
  responses: answerOf(
    named('Ready', Ready),
    'It may. Otherwise the answer is 503 and says which of its roles may not, and why: starting, draining, database, no_room or no_peer.',
  ),
})

export function addReadyRoute(app: Api, { sql, callSql = sql, clock, readiness = () => ({}) }: RimDeps): void {
  app.openapi(get, async (c) => {
    const states = readiness()
    const answers = deadline(clock, answerWithin, callSql`select 1`.then(Boolean), () => false).catch(() => false)
    const told = (await answers) ? states : withoutDatabase(states)
    const unready = Object.entries(told).filter(([, why]) => why !== null)
    if (unready.length > 0) throw unreadyFor(unready.map(([role, why]) => `${role}: ${why}`))
    return c.json({ status: 'ready' as const, roles: Object.keys(told) as Role[] }, 200)
  })
}

const withoutDatabase = (states: Readiness): Readiness =>
  Object.fromEntries(Object.entries(states).map(([role, why]) => [role, why ?? 'database']))

const unreadyFor = (reasons: readonly string[]): Problem =>
  new Problem('SERVICE_UNAVAILABLE', `New calls should go elsewhere (${reasons.join(', ')}).`)
