/**
 * Owns the routes of the delivery log: what became of each event of a subscription, and sending it again. docs/contract/webhooks.md "Delivery
 * log".
 */
import { createRoute, z } from '@hono/zod-openapi'
import { Delivery, DeliveryPage, DeliveryQuery } from '../model/webhook.ts'
import { idOf } from './authenticate.ts'
import type { Api, ApiDeps } from './deps.ts'
import { existing } from './existing.ts'
import { answerOf, named, needs, refusing, security } from './openapi.ts'

const deliveries = '/v1/accounts/{accountId}/webhook-subscriptions/{subscriptionId}/deliveries'
const namedDelivery = named('WebhookDelivery', Delivery)
const listParams = z.object({ accountId: z.string(), subscriptionId: z.string() })
const params = listParams.extend({ deliveryId: z.string() })
const shared = { security, tags: ['Webhook deliveries'] }

const list = createRoute({
  ...shared,
  method: 'get',
  path: deliveries,
  operationId: 'listWebhookDeliveries',
  ...needs('read'),
  summary: 'List the deliveries of a subscription, newest first',
  request: { params: listParams, query: DeliveryQuery },
  responses: answerOf(named('WebhookDeliveryPage', DeliveryPage), 'A page of deliveries.'),
})

const get = createRoute({
  ...shared,
  method: 'get',
  path: `${deliveries}/{deliveryId}`,
  operationId: 'getWebhookDelivery',
  ...needs('read'),
  summary: 'Get a delivery with all its attempts',
  request: { params },
  responses: answerOf(namedDelivery, 'The delivery.'),
})

const resend = createRoute({
  ...shared,
  method: 'post',
  path: `${deliveries}/{deliveryId}/resend`,
  operationId: 'resendWebhookDelivery',
  ...needs('manage'),
  summary: 'Send an exhausted delivery again',
  description: 'With its old event id. 409 for one that is not exhausted.',
  request: { params },
  ...refusing('CONFLICT'),
  responses: answerOf(namedDelivery, 'The delivery, pending again.'),
})

export function addDeliveryRoutes(app: Api, { subscriptions }: ApiDeps): void {
  app.openapi(list, async (c) => {
    const id = idOf<'subscription'>(c.req.valid('param').subscriptionId)
    const page = existing(await subscriptions.listDeliveries(c.get('accountId'), id, c.req.valid('query')))
    return c.json(page, 200)
  })
  app.openapi(get, async (c) => {
    const { subscriptionId, deliveryId } = c.req.valid('param')
    const ids = [idOf<'subscription'>(subscriptionId), idOf<'delivery'>(deliveryId)] as const
    return c.json(existing(await subscriptions.findDelivery(c.get('accountId'), ...ids)), 200)
  })
  app.openapi(resend, async (c) => {
    const { subscriptionId, deliveryId } = c.req.valid('param')
    const ids = [idOf<'subscription'>(subscriptionId), idOf<'delivery'>(deliveryId)] as const
    return c.json(existing(await subscriptions.resend(c.get('accountId'), ...ids)), 200)
  })
}
