/** Owns the routes of what came of simulated callers. docs/contract/rest.md "Simulations". */
import { notFound } from '../model/problem.ts'
import { createRoute, z } from '@hono/zod-openapi'
import {
  Simulation,
  SimulationPage,
  SimulationQuery,
  SimulationRequest,
  SimulationSummary,
} from '../model/simulation.ts'
import { deleteSimulation, findSimulation, keepSimulation, listSimulations } from '../store/simulations.ts'
import { idOf } from './authenticate.ts'
import type { Api, ApiDeps } from './deps.ts'
import { existing } from './existing.ts'
import { answerOf, bodyOf, named, needs, noContentOf, security } from './openapi.ts'
import { readJson } from './read-json.ts'

const path = '/v1/accounts/{accountId}/simulations'
const shared = { security, tags: ['Simulations'] }
const params = z.object({ accountId: z.string() })
const ofOne = params.extend({ simulationId: z.string() })

const list = createRoute({
  ...shared,
  method: 'get',
  path,
  operationId: 'listSimulations',
  ...needs('read'),
  summary: 'List what came of simulated callers, newest first',
  request: { params, query: SimulationQuery },
  responses: answerOf(named('SimulationPage', SimulationPage), 'A page of results, without their runs.'),
})

const keep = createRoute({
  ...shared,
  middleware: [readJson],
  method: 'post',
  path,
  operationId: 'keepSimulation',
  ...needs('calls'),
  summary: 'Keep what came of simulated callers',
  description: 'npm run simulate does it, of a deployment that it called. The newest 50 of the account are kept.',
  request: { params, body: bodyOf(named('SimulationRequest', SimulationRequest)) },
  responses: answerOf(named('SimulationSummary', SimulationSummary), 'It is kept.'),
})

const get = createRoute({
  ...shared,
  method: 'get',
  path: `${path}/{simulationId}`,
  operationId: 'getSimulation',
  ...needs('read'),
  summary: 'Get what came of simulated callers',
  description: 'What was said in a run, and its waveform, stand with its call.',
  request: { params: ofOne },
  responses: answerOf(named('Simulation', Simulation), 'Scenarios, measures and runs.'),
})

const remove = createRoute({
  ...shared,
  method: 'delete',
  path: `${path}/{simulationId}`,
  operationId: 'deleteSimulation',
  ...needs('manage'),
  summary: 'Delete what came of simulated callers',
  description: 'Their calls stay.',
  request: { params: ofOne },
  responses: noContentOf('It is deleted.'),
})

export function addSimulationRoutes(app: Api, { sql, clock, newId }: ApiDeps): void {
  app.openapi(list, async (c) => c.json(await listSimulations(sql, c.get('accountId'), c.req.valid('query')), 200))
  app.openapi(keep, async (c) => {
    const kept = { accountId: c.get('accountId'), newId, now: clock.now() }
    return c.json(await keepSimulation(sql, c.req.valid('json'), kept), 200)
  })
  app.openapi(get, async (c) => {
    const id = idOf<'simulation'>(c.req.valid('param').simulationId)
    return c.json(existing(await findSimulation(sql, c.get('accountId'), id)), 200)
  })
  app.openapi(remove, async (c) => {
    const id = idOf<'simulation'>(c.req.valid('param').simulationId)
    if (!(await deleteSimulation(sql, c.get('accountId'), id))) throw notFound()
    return c.body(null, 204)
  })
}
