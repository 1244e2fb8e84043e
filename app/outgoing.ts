/** Owns the wiring of what leaves the service by itself: webhooks, their log and its retention, e-mail. */
import { createRemovals } from '../actors/rounds/removals.ts'
import { createRetention } from '../actors/rounds/retention.ts'
import { createEmail, type Email } from '../actors/tools/email.ts'
import { createDeliveryLoop } from '../actors/webhooks/delivery-loop.ts'
import { createWebhookSender, type WebhookSender } from '../actors/webhooks/sender.ts'
import { createSubscriptions } from '../actors/webhooks/subscriptions.ts'
import type { Subscriptions } from '../model/webhook.ts'
import type { Config } from './config.ts'
import type { Core } from './core.ts'

export type Outgoing = {
  readonly sender: WebhookSender
  readonly subscriptions: Subscriptions
  /** Null: no mail server is set up. */
  readonly email: Email | null
  /** Something was committed that waits to be sent; `written`: so many deliveries, where it is known. */
  readonly wakeDeliveries: (written?: number) => void
  start(): void
  /** Another process has committed something that waits to be sent. */
  wake(): void
  /** Resolves when all that was due has been sent, as far as its receivers take it. */
  drained(): Promise<void>
}

export function openOutgoing(core: Core, config: Config, closing: AsyncDisposableStack): Outgoing {
  const { sql, clock, log, recordings } = core
  const sender = createWebhookSender({ allowHosts: config.webhookAllowHosts, log, clock })
  closing.defer(() => sender.close())
  const email = config.email && createEmail({ ...config.email, log })
  if (email) closing.defer(() => email.close())
  const deliveries = createDeliveryLoop({ ...core, sender, random: Math.random })
  closing.defer(() => deliveries.close())
  const retention = createRetention({ sql, clock, log, recordings, keep: { deliveries: config.deliveryRetention } })
  closing.defer(() => retention.close())
  const removals = createRemovals(core)
  closing.defer(() => removals.close())
  const wakeDeliveries = (written?: number): void => {
    if (written !== 0) deliveries.wake()
  }
  const subscriptions = createSubscriptions({ ...core, sender, wakeDeliveries })
  const start = (): void => {
    deliveries.start()
    retention.wake()
    removals.wake()
  }
  const { wake } = deliveries
  return { sender, subscriptions, email, wakeDeliveries, start, wake, drained: () => deliveries.idle() }
}
