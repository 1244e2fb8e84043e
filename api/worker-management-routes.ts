/** Owns the routes that make and change workers; those that read them are in worker-routes.ts. docs/contract/rest.md "Workers". */
import { notFound } from '../model/problem.ts'
import { createRoute, z } from '@hono/zod-openapi'
import { toWorker, WorkerChange, WorkerRequest, WorkerResource } from '../model/worker-resource.ts'
import { deleteWorker } from '../store/delete-worker.ts'
import { changeWorker, createWorker } from '../store/workers.ts'
import { idOf } from './authenticate.ts'
import type { Api, ApiDeps } from './deps.ts'
import { existing } from './existing.ts'
import { answerOf, bodyOf, named, needs, noContentOf, refusing, security } from './openapi.ts'
import { readJson } from './read-json.ts'

const path = '/v1/accounts/{accountId}/workers'
const shared = { security, tags: ['Workers'] }
const withBody = { ...shared, middleware: [readJson] }
const example = { name: 'Reception', language: 'en-GB', config: { ringTimeout: 20 } }
const namedWorker = named('Worker', WorkerResource)

const create = createRoute({
  ...withBody,
  method: 'post',
  path,
  operationId: 'createWorker',
  ...needs('manage'),
  summary: 'Create a worker',
  ...refusing('CONFLICT'),
  request: {
    params: z.object({ accountId: z.string() }),
    body: bodyOf(named('WorkerRequest', WorkerRequest), example),
  },
  responses: answerOf(namedWorker, 'The worker.'),
})

const change = createRoute({
  ...withBody,
  method: 'patch',
  path: `${path}/{workerId}`,
  operationId: 'changeWorker',
  ...needs('manage'),
  summary: 'Change a worker',
  ...refusing('CONFLICT'),
  description:
    'What is not named stays; null takes a value away; config is merged key by key. isActive false switches the worker off.',
  request: {
    params: z.object({ accountId: z.string(), workerId: z.string() }),
    body: bodyOf(named('WorkerChange', WorkerChange), { config: { ringTimeout: 45, voiceId: null } }),
  },
  responses: answerOf(namedWorker, 'The worker as it is now.'),
})

const remove = createRoute({
  ...shared,
  method: 'delete',
  path: `${path}/{workerId}`,
  operationId: 'deleteWorker',
  ...needs('manage'),
  summary: 'Delete a worker',
  description:
    'A number that was not assigned by the operator is free for others; trunks, documents and persons lose the link; its calls stay with their workerId. 409 while a call of it runs, rings, or waits for its time, its turn or its browser. isActive false switches a worker off instead.',
  request: { params: z.object({ accountId: z.string(), workerId: z.string() }) },
  ...refusing('CONFLICT'),
  responses: noContentOf('It is gone.'),
})

export function addWorkerManagementRoutes(app: Api, { sql, clock, newId, mayClaimNumbers = true }: ApiDeps): void {
  const numberRule = mayClaimNumbers ? 'claim' : 'only_assigned'
  app.openapi(create, async (c) => {
    const request = c.req.valid('json')
    const asked = { ...request, accountId: c.get('accountId'), numberRule, newId, now: clock.now() } as const
    const worker = await createWorker(sql, asked)
    return c.json(toWorker(worker), 200)
  })
  app.openapi(change, async (c) => {
    const workerId = idOf<'worker'>(c.req.valid('param').workerId)
    const change = c.req.valid('json')
    const changed = { accountId: c.get('accountId'), workerId, change, numberRule, now: clock.now() } as const
    const worker = existing(await changeWorker(sql, changed))
    return c.json(toWorker(worker), 200)
  })
  app.openapi(remove, async (c) => {
    const workerId = idOf<'worker'>(c.req.valid('param').workerId)
    if (!(await deleteWorker(sql, { accountId: c.get('accountId'), workerId, now: clock.now() }))) throw notFound()
    return c.body(null, 204)
  })
}
