/** Owns webhook subscriptions as the API shows them. rest-api-and-webhooks.md, Webhook subscription; decisions.md, Webhooks. */
import { z } from 'zod'
import { SubscribedType } from './events.ts'

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
    if (Object.keys(headers).length > 32) context.addIssue({ code: 'custom', message: 'at most 32 headers' })
  })

const needsSync = (subscription: { eventType: string; required?: boolean | undefined }): boolean =>
  !subscription.required || subscription.eventType === 'call.worker_request' || subscription.eventType === '*'

export const SubscriptionRequest = z
  .strictObject({
    workerId: z.string().optional(),
    eventType: SubscribedType,
    url: z.url({ protocol: /^https?$/ }).max(2000),
    headers: CustomHeaders.optional(),
    timeoutMs: z.number().int().min(1).max(maxHookTimeout).optional(),
    enabled: z.boolean().optional(),
    required: z.boolean().optional(),
  })
  .refine(needsSync, { path: ['required'], message: 'only for call.worker_request and *' })
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
  createdAt: z.string(),
  updatedAt: z.string(),
})
export type WebhookSubscription = z.infer<typeof WebhookSubscription>
