/**
 * Owns what can be done with webhook subscriptions: their secrets are sealed here, their targets judged, test events sent.
 * docs/contract/webhooks.md "Subscriptions" and "Targets".
 */
import type { Clock } from '../../model/clock.ts'
import { deliveryModeOf } from '../../model/events.ts'
import type { NewId } from '../../model/ids.ts'
import type { Log } from '../../model/log.ts'
import { Problem } from '../../model/problem.ts'
import type { SubscriptionChange, Subscriptions, WebhookSubscription } from '../../model/webhook.ts'
import { findDelivery, listDeliveries, resendDelivery } from '../../store/delivery-log.ts'
import { removalWithin } from '../../store/removals.ts'
import type { SecretBox } from '../../store/secret-box.ts'
import type { Sql } from '../../store/sql.ts'
import {
  changeSubscription,
  createSubscription,
  deleteSubscription,
  findSubscription,
  findTarget,
  listSubscriptions,
} from '../../store/subscriptions.ts'
import type { WebhookSender } from './sender.ts'
import { sendTestEvent } from './test-event.ts'

type Deps = {
  readonly sql: Sql
  readonly box: SecretBox
  readonly sender: WebhookSender
  readonly clock: Clock
  readonly newId: NewId
  readonly log: Log
  /** Something has become due. */
  readonly wakeDeliveries: () => void
}

export function createSubscriptions(deps: Deps): Subscriptions {
  const { sql, box, sender, clock, newId, log, wakeDeliveries } = deps

  return {
    async create(accountId, request) {
      requireReachable(sender, request.url)
      return createSubscription(sql, box, { accountId, request, newId, now: clock.now() })
    },
    list: (accountId, workerId) => listSubscriptions(sql, accountId, workerId, box),
    find: (accountId, id) => findSubscription(sql, accountId, id, box),
    async change(accountId, id, change) {
      const subscription = await findSubscription(sql, accountId, id, box)
      if (!subscription) return null
      if (change.url !== undefined) requireReachable(sender, change.url)
      requireChangeable(subscription, change)
      return changeSubscription(sql, box, { accountId, id, change, now: clock.now() })
    },
    remove: async (accountId, id) =>
      (await findTarget(sql, accountId, id)) !== null && deleteSubscription(sql, accountId, id, removalWithin),
    async test(accountId, id) {
      const target = await findTarget(sql, accountId, id)
      return target && sendTestEvent({ box, sender, now: clock.now, newId, log }, accountId, target)
    },
    async listDeliveries(accountId, id, query) {
      return (await findTarget(sql, accountId, id)) ? listDeliveries(sql, accountId, id, query) : null
    },
    findDelivery: (accountId, id, deliveryId) => findDelivery(sql, accountId, id, deliveryId),
    async resend(accountId, id, deliveryId) {
      const resent = await resendDelivery(sql, { accountId, subscriptionId: id, id: deliveryId, now: clock.now() })
      if (resent) wakeDeliveries()
      const delivery = await findDelivery(sql, accountId, id, deliveryId)
      if (delivery && !resent) throw new Problem('CONFLICT', `The delivery is ${delivery.status}, not exhausted.`)
      return delivery
    },
  }
}

/** What a literal tells is told at once; what a name resolves to is judged at every sending. */
function requireReachable(sender: WebhookSender, url: string): void {
  const refusal = sender.refusalOf(url)
  if (refusal !== null)
    throw new Problem('VALIDATION_FAILED', 'The target cannot be used.', [{ path: 'url', message: refusal }])
}

/** Only these can abort a call. */
function requireChangeable({ eventType }: WebhookSubscription, { required }: SubscriptionChange): void {
  const aborts = eventType === 'call.worker_request' || deliveryModeOf(eventType) === 'both'
  if (!required || aborts) return
  throw new Problem('VALIDATION_FAILED', 'The subscription cannot be required.', [
    { path: 'required', message: 'is for call.worker_request and * only' },
  ])
}
