/** Owns the routes of webhook subscriptions. rest-api-and-webhooks.md, Webhook subscriptions. */
import { createRoute, z } from '@hono/zod-openapi'
import { toId } from '../model/ids.ts'
import { SubscriptionRequest, WebhookSubscription } from '../model/webhook.ts'
import { ownAccountOnly } from './authenticate.ts'
import type { Api, ApiDeps } from './deps.ts'
import { answerOf, bodyOf, named, security } from './openapi.ts'
import { readJson } from './read-json.ts'

const path = '/v1/accounts/{accountId}/webhook-subscriptions'
const params = z.object({ accountId: z.string() })
const namedSubscription = named('WebhookSubscription', WebhookSubscription)

const create = createRoute({
  method: 'post',
  path,
  security,
  middleware: [ownAccountOnly, readJson],
  request: { params, body: bodyOf(named('WebhookSubscriptionRequest', SubscriptionRequest)) },
  responses: answerOf(namedSubscription, 'The subscription with its signing secret, shown this once.'),
})

const list = createRoute({
  method: 'get',
  path,
  security,
  middleware: [ownAccountOnly],
  request: { params, query: z.object({ workerId: z.string().optional() }) },
  responses: answerOf(z.array(namedSubscription), 'All of the account, or those scoped to the worker.'),
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
}
