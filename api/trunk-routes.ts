/** Owns the routes of SIP trunks. docs/contract/rest.md "Trunks". */
import { notFound } from '../model/problem.ts'
import { createRoute, z } from '@hono/zod-openapi'
import { Trunk, TrunkChange, TrunkRequest, TrunkState } from '../model/trunk.ts'
import { idOf } from './authenticate.ts'
import type { Api, ApiDeps } from './deps.ts'
import { existing } from './existing.ts'
import { answerOf, bodyOf, named, needs, noContentOf, refusing, security } from './openapi.ts'
import { readJson } from './read-json.ts'

const path = '/v1/accounts/{accountId}/trunks'
const shared = { security, tags: ['Trunks'] }
const withBody = { ...shared, middleware: [readJson] }
const accountParams = z.object({ accountId: z.string() })
const params = z.object({ accountId: z.string(), trunkId: z.string() })
const example = {
  name: 'Carrier',
  gateways: [{ host: 'sip.carrier.example', transport: 'tls' }],
  username: 'parley',
  password: '<password>',
  register: true,
}
const namedTrunk = named('Trunk', Trunk)

const list = createRoute({
  ...shared,
  method: 'get',
  path,
  operationId: 'listTrunks',
  ...needs('read'),
  summary: 'List the trunks of the account',
  request: { params: accountParams },
  responses: answerOf(z.array(namedTrunk), 'All trunks of the account. Passwords are never shown.'),
})

const create = createRoute({
  ...withBody,
  method: 'post',
  path,
  operationId: 'createTrunk',
  ...needs('manage'),
  summary: 'Create a trunk',
  ...refusing('CONFLICT'),
  request: { params: accountParams, body: bodyOf(named('TrunkRequest', TrunkRequest), example) },
  responses: answerOf(namedTrunk, 'The trunk.'),
})

const get = createRoute({
  ...shared,
  method: 'get',
  path: `${path}/{trunkId}`,
  operationId: 'getTrunk',
  ...needs('read'),
  summary: 'Get a trunk',
  request: { params },
  responses: answerOf(namedTrunk, 'The trunk.'),
})

const change = createRoute({
  ...withBody,
  method: 'patch',
  path: `${path}/{trunkId}`,
  operationId: 'changeTrunk',
  ...needs('manage'),
  summary: 'Change a trunk',
  description: 'What is not named stays; null takes a value away; lists are replaced whole.',
  request: { params, body: bodyOf(named('TrunkChange', TrunkChange)) },
  responses: answerOf(namedTrunk, 'The trunk as it is now.'),
})

const remove = createRoute({
  ...shared,
  method: 'delete',
  path: `${path}/{trunkId}`,
  operationId: 'deleteTrunk',
  ...needs('manage'),
  summary: 'Delete a trunk',
  request: { params },
  responses: noContentOf('It is gone.'),
})

const getState = createRoute({
  ...shared,
  method: 'get',
  path: `${path}/{trunkId}/state`,
  operationId: 'getTrunkState',
  ...needs('read'),
  summary: 'Get how a trunk does at this moment',
  description:
    'Its registration and its gateways, as the node reported last that looks after it; reachable is null for a gateway that was not asked yet, or is not to be asked.',
  request: { params },
  responses: answerOf(named('TrunkState', TrunkState), 'The state of the trunk.'),
})

export function addTrunkRoutes(app: Api, { trunks }: ApiDeps): void {
  app.openapi(list, async (c) => c.json(await trunks.list(c.get('accountId')), 200))
  app.openapi(create, async (c) => c.json(await trunks.create(c.get('accountId'), c.req.valid('json'), 'account'), 200))
  app.openapi(get, async (c) => {
    const trunk = existing(await trunks.find(c.get('accountId'), idOf<'trunk'>(c.req.valid('param').trunkId)))
    return c.json(trunk, 200)
  })
  app.openapi(getState, async (c) => {
    const state = existing(await trunks.stateOf(c.get('accountId'), idOf<'trunk'>(c.req.valid('param').trunkId)))
    return c.json(state, 200)
  })
  app.openapi(change, async (c) => {
    const trunkId = idOf<'trunk'>(c.req.valid('param').trunkId)
    const trunk = existing(await trunks.change(c.get('accountId'), trunkId, c.req.valid('json'), 'account'))
    return c.json(trunk, 200)
  })
  app.openapi(remove, async (c) => {
    if (!(await trunks.remove(c.get('accountId'), idOf<'trunk'>(c.req.valid('param').trunkId)))) throw notFound()
    return c.body(null, 204)
  })
}
