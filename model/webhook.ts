/** Owns webhook subscriptions as the API shows them. docs/contract/webhooks.md "Subscriptions" and "Delivery log". */
import { z } from 'zod'
import type { AccountId, DeliveryId, SubscriptionId, WorkerId } from './ids.ts'
import { EventType, SubscribedType } from './events.ts'
import { oneLine } from './one-line.ts'
import { pageOf, Paging, type Page } from './paging.ts'
import { WebUrl } from './web-url.ts'

export const maxHookTimeout = 10_000
export const defaultHookTimeout = 5_000

const reserved =
  /^(host|connection|content-.*|x-service-.*|webhook-.*|transfer-encoding|expect|keep-alive|upgrade|te|trailer|proxy-.*)$/i

export const CustomHeaders = z
  .record(
    z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/, 'must be an HTTP header name'),
    z
      .string()
      .max(2000)
      .regex(/^[\t\x20-\x7e]*$/, 'must be printable ASCII'),
  )
  .superRefine((headers, context) => {
    for (const name of Object.keys(headers))
      if (reserved.test(name))
        context.addIssue({ code: 'custom', path: [name], message: 'is a header the service sets itself' })
    if (Object.keys(headers).length > 32) context.addIssue({ code: 'custom', message: 'must have 32 fields at most' })
  })

const needsSync = (subscription: { eventType: string; required?: boolean | undefined }): boolean =>
  !subscription.required || subscription.eventType === 'call.worker_request' || subscription.eventType === '*'

export const SubscriptionRequest = z
  .strictObject({
    workerId: z.string().optional(),
    eventType: SubscribedType,
    url: WebUrl,
    headers: CustomHeaders.optional(),
    timeoutMs: z.number().min(1).max(maxHookTimeout).optional(),
    enabled: z.boolean().optional(),
    required: z.boolean().optional(),
  })
  .refine(needsSync, { path: ['required'], message: 'is for call.worker_request and * only' })
export type SubscriptionRequest = z.infer<typeof SubscriptionRequest>

export const WebhookSubscription = z.object({
  id: z.string(),
  accountId: z.string(),
  workerId: z.string().nullable(),
  eventType: SubscribedType,
  deliveryMode: z.enum(['sync', 'async', 'both']),
  url: z.string(),
  /** Plaintext only in the answer to the creation. */
  signingSecret: z.string().nullable(),
  headers: z.record(z.string(), z.string()),
  timeoutMs: z.number(),
  enabled: z.boolean(),
  required: z.boolean(),
  /** Additive, like the one below: since when nothing has arrived; three days of it switch the subscription off. */
  failingSince: z.string().optional(),
  /** Why the service switched it off: its endpoint answered 410, or failed for three days. */
  disabledReason: z.enum(['gone', 'failing']).optional(),
  createdAt: z.string(),
  updatedAt: z.string(),
})
export type WebhookSubscription = z.infer<typeof WebhookSubscription>

/** One that a client sets, like that of a tool: how well it is kept, and how hard to guess it is, is its own affair. Ours are `whsec_` and 43 characters more. */
const OwnSecret = z.string().min(1).max(500).refine(oneLine, 'must be one line')

/** What is not named stays. `signingSecret` sets a new one and is never shown again. */
export const SubscriptionChange = z.strictObject({
  url: WebUrl.optional(),
  signingSecret: OwnSecret.optional(),
  headers: CustomHeaders.optional(),
  timeoutMs: z.number().min(1).max(maxHookTimeout).optional(),
  enabled: z.boolean().optional(),
  required: z.boolean().optional(),
})
export type SubscriptionChange = z.infer<typeof SubscriptionChange>

/** What became of a test delivery. For sync subscriptions `error` tells the answer too when it is not a good one. */
export const SubscriptionTest = z.object({
  delivered: z.boolean(),
  statusCode: z.number().int().optional(),
  error: z.string().optional(),
})
export type SubscriptionTest = z.infer<typeof SubscriptionTest>

export const DeliveryStatus = z.enum(['pending', 'delivered', 'exhausted'])
export type DeliveryStatus = z.infer<typeof DeliveryStatus>

const DeliveryAttempt = z.object({
  attempt: z.number().int(),
  at: z.string(),
  durationMs: z.number().int(),
  statusCode: z.number().int().nullable(),
  error: z.string().nullable(),
  responseExcerpt: z.string().nullable(),
})

/** Additive: what became of an event for one subscription. `id` is its `X-Service-Event-Id`. */
export const Delivery = z.object({
  id: z.string(),
  subscriptionId: z.string(),
  callId: z.string(),
  eventType: EventType,
  status: DeliveryStatus,
  eventAt: z.string(),
  /** Null unless pending. */
  nextAttemptAt: z.string().nullable(),
  deliveredAt: z.string().nullable(),
  attempts: z.array(DeliveryAttempt),
})
export type Delivery = z.infer<typeof Delivery>
export const DeliveryPage = pageOf(Delivery)
export const DeliveryQuery = Paging.extend({ status: DeliveryStatus.optional(), callId: z.string().optional() })
export type DeliveryQuery = z.infer<typeof DeliveryQuery>

/** Webhook subscriptions, as the API sees them: sealing secrets and sending are none of its business. Null: the account has no such thing. */
export type Subscriptions = {
  /** Throws Problem VALIDATION_FAILED for a worker the account has not got. */
  create(accountId: AccountId, request: SubscriptionRequest): Promise<WebhookSubscription>
  /** With a worker: only those of this worker. */
  list(accountId: AccountId, workerId: WorkerId | null): Promise<WebhookSubscription[]>
  find(accountId: AccountId, id: SubscriptionId): Promise<WebhookSubscription | null>
  /** Throws Problem VALIDATION_FAILED for `required` on an event type that cannot be. Enabling forgets former failures. */
  change(accountId: AccountId, id: SubscriptionId, change: SubscriptionChange): Promise<WebhookSubscription | null>
  /** False: there was none. */
  remove(accountId: AccountId, id: SubscriptionId): Promise<boolean>
  test(accountId: AccountId, id: SubscriptionId): Promise<SubscriptionTest | null>
  listDeliveries(accountId: AccountId, id: SubscriptionId, query: DeliveryQuery): Promise<Page<Delivery> | null>
  findDelivery(accountId: AccountId, id: SubscriptionId, deliveryId: DeliveryId): Promise<Delivery | null>
  /** Makes an exhausted delivery pending again. Throws Problem CONFLICT for one that is not. */
  resend(accountId: AccountId, id: SubscriptionId, deliveryId: DeliveryId): Promise<Delivery | null>
}
