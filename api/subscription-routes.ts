/** Owns the routes of webhook subscriptions. docs/contract/webhooks.md "Subscriptions". */
import { notFound } from '../model/problem.ts'
import { createRoute, z } from '@hono/zod-openapi'
import { toId } from '../model/ids.ts'
import { SubscriptionChange, SubscriptionRequest, SubscriptionTest, WebhookSubscription } from '../model/webhook.ts'
import { idOf } from './authenticate.ts'
import type { Api, ApiDeps } from './deps.ts'
import { existing } from './existing.ts'
import { answerOf, bodyOf, named, needs, noContentOf, refusing, security } from './openapi.ts'
import { readJson } from './read-json.ts'

const subscriptionsPath = '/v1/accounts/{accountId}/webhook-subscriptions'
const subscriptionPath = `${subscriptionsPath}/{subscriptionId}`
const accountParams = z.object({ accountId: z.string() })
const params = z.object({ accountId: z.string(), subscriptionId: z.string() })
const namedSubscription = named('WebhookSubscription', WebhookSubscription)
const shared = { security, tags: ['Webhook subscriptions'] }
const withBody = { ...shared, middleware: [readJson] }

const create = createRoute({
  ...withBody,
  method: 'post',
  path: subscriptionsPath,
  operationId: 'createWebhookSubscription',
  ...needs('manage'),
  summary: 'Subscribe an endpoint to events',
  ...refusing('CONFLICT'),
  description:
    'Without workerId for every worker of the account. timeoutMs is for sync events, 5000 when unset. required, for call.worker_request and * only: a call whose hook fails is ended instead of going on with the worker as it is.',
  request: {
    params: accountParams,
    body: bodyOf(named('WebhookSubscriptionRequest', SubscriptionRequest), {
      eventType: 'call.ended',
      url: 'https://hooks.example.com/calls',
      headers: { 'X-Tenant': 'acme' },
    }),
  },
  responses: answerOf(namedSubscription, 'The subscription with its signing secret, shown this once.'),
})

const list = createRoute({
  ...shared,
  method: 'get',
  path: subscriptionsPath,
  operationId: 'listWebhookSubscriptions',
  ...needs('read'),
  summary: 'List the subscriptions of the account',
  description: 'With workerId only those scoped to that worker, without those of the whole account.',
  request: { params: accountParams, query: z.object({ workerId: z.string().optional() }) },
  responses: answerOf(z.array(namedSubscription), 'All of the account, or those scoped to the worker.'),
})

const get = createRoute({
  ...shared,
  method: 'get',
  path: subscriptionPath,
  operationId: 'getWebhookSubscription',
  ...needs('read'),
  summary: 'Get a subscription',
  request: { params },
  responses: answerOf(namedSubscription, 'The subscription, without its secret.'),
})

const change = createRoute({
  ...withBody,
  method: 'patch',
  path: subscriptionPath,
  operationId: 'changeWebhookSubscription',
  ...needs('manage'),
  summary: 'Change a subscription',
  description: 'What is not named stays. signingSecret sets another secret, good from now on.',
  request: {
    params,
    body: bodyOf(named('WebhookSubscriptionChange', SubscriptionChange), { enabled: false, timeoutMs: 2000 }),
  },
  responses: answerOf(namedSubscription, 'The subscription as it is now.'),
})

const remove = createRoute({
  ...shared,
  method: 'delete',
  path: subscriptionPath,
  operationId: 'deleteWebhookSubscription',
  ...needs('manage'),
  summary: 'Delete a subscription and its deliveries',
  request: { params },
  responses: noContentOf('It is gone.'),
})

const test = createRoute({
  ...shared,
  method: 'post',
  path: `${subscriptionPath}/test`,
  operationId: 'testWebhookSubscription',
  ...needs('manage'),
  summary: 'Send a synthetic event to a subscription',
  description:
    'Of its type, for * a call.status_update; its metadata says test. A disabled subscription is tested too. For sync events error tells what was answered when it is not good.',
  request: { params },
  responses: answerOf(named('WebhookSubscriptionTest', SubscriptionTest), 'What the endpoint answered.', {
    delivered: true,
    statusCode: 200,
  }),
})

export function addSubscriptionRoutes(app: Api, { subscriptions }: ApiDeps): void {
  app.openapi(create, async (c) => c.json(await subscriptions.create(c.get('accountId'), c.req.valid('json')), 200))
  app.openapi(list, async (c) => {
    const { workerId } = c.req.valid('query')
    if (workerId === undefined) return c.json(await subscriptions.list(c.get('accountId'), null), 200)
    const scope = toId<'worker'>(workerId)
    // A filter finds nothing where a path would name nothing.
    return c.json(scope === null ? [] : await subscriptions.list(c.get('accountId'), scope), 200)
  })
  app.openapi(get, async (c) => {
    const id = idOf<'subscription'>(c.req.valid('param').subscriptionId)
    return c.json(existing(await subscriptions.find(c.get('accountId'), id)), 200)
  })
  app.openapi(change, async (c) => {
    const id = idOf<'subscription'>(c.req.valid('param').subscriptionId)
    return c.json(existing(await subscriptions.change(c.get('accountId'), id, c.req.valid('json'))), 200)
  })
  app.openapi(remove, async (c) => {
    const id = idOf<'subscription'>(c.req.valid('param').subscriptionId)
    if (!(await subscriptions.remove(c.get('accountId'), id))) throw notFound()
    return c.body(null, 204)
  })
  app.openapi(test, async (c) => {
    const id = idOf<'subscription'>(c.req.valid('param').subscriptionId)
    return c.json(existing(await subscriptions.test(c.get('accountId'), id)), 200)
  })
}
