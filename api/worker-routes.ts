/** Owns the routes of workers and their scripts. docs/contract/rest.md "Workers". */
import { createRoute, z } from '@hono/zod-openapi'
import {
  OutboundCallScript,
  toWorker,
  toWorkerConfig,
  WorkerConfigResource,
  WorkerResource,
} from '../model/worker-resource.ts'
import type { AccountId } from '../model/ids.ts'
import { accountDefaultsOf } from '../model/worker.ts'
import { findAccount } from '../store/accounts.ts'
import { listOutboundCallScripts } from '../store/documents.ts'
import { findWorker, listWorkers, type Worker } from '../store/workers.ts'
import { idOf } from './authenticate.ts'
import type { Api, ApiDeps } from './deps.ts'
import { existing } from './existing.ts'
import { answerOf, named, needs, security } from './openapi.ts'

const workers = '/v1/accounts/{accountId}/workers'
const shared = { security, tags: ['Workers'] }
const accountParams = z.object({ accountId: z.string() })
const workerParams = z.object({ accountId: z.string(), workerId: z.string() })
const namedWorker = named('Worker', WorkerResource)

const list = createRoute({
  ...shared,
  method: 'get',
  path: workers,
  operationId: 'listWorkers',
  ...needs('read'),
  summary: 'List the workers of the account',
  request: { params: accountParams },
  responses: answerOf(z.array(namedWorker), 'All workers of the account.'),
})

const get = createRoute({
  ...shared,
  method: 'get',
  path: `${workers}/{workerId}`,
  operationId: 'getWorker',
  ...needs('read'),
  summary: 'Get a worker',
  request: { params: workerParams },
  responses: answerOf(namedWorker, 'The worker.'),
})

const getConfig = createRoute({
  ...shared,
  method: 'get',
  path: `${workers}/{workerId}/config`,
  operationId: 'getWorkerConfiguration',
  ...needs('read'),
  summary: 'Get the effective configuration of a worker',
  request: { params: workerParams },
  responses: answerOf(named('WorkerConfiguration', WorkerConfigResource), 'What its calls start from.'),
})

const listScripts = createRoute({
  ...shared,
  method: 'get',
  path: `${workers}/{workerId}/documents/outbound-call-scripts`,
  operationId: 'listOutboundCallScripts',
  ...needs('read'),
  summary: 'List the outbound call scripts of a worker',
  request: { params: workerParams },
  responses: answerOf(z.array(named('OutboundCallScript', OutboundCallScript)), 'The scripts in use.'),
})

export function addWorkerRoutes(app: Api, { sql }: ApiDeps): void {
  const workerOf = async (accountId: AccountId, workerId: string): Promise<Worker> =>
    existing(await findWorker(sql, accountId, idOf<'worker'>(workerId)))

  app.openapi(list, async (c) => c.json((await listWorkers(sql, c.get('accountId'))).map(toWorker), 200))
  app.openapi(get, async (c) => {
    const worker = await workerOf(c.get('accountId'), c.req.valid('param').workerId)
    return c.json(toWorker(worker), 200)
  })
  app.openapi(getConfig, async (c) => {
    const accountId = c.get('accountId')
    const [worker, account] = await Promise.all([
      workerOf(accountId, c.req.valid('param').workerId),
      findAccount(sql, accountId),
    ])
    return c.json(toWorkerConfig(worker, accountDefaultsOf(account?.config ?? {})), 200)
  })
  app.openapi(listScripts, async (c) => {
    const { accountId, id } = await workerOf(c.get('accountId'), c.req.valid('param').workerId)
    return c.json(await listOutboundCallScripts(sql, accountId, id), 200)
  })
}
