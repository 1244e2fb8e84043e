/** Owns the self-test's own webhook receiver: every event of one account, verified, and waits for those that have not come yet. */
import { openWebhookReceiver } from '../../callers/webhook-receiver.ts'
import { toId, type AccountId } from '../../../model/ids.ts'
import { createSubscription, deleteSubscription } from '../../../store/subscriptions.ts'
import { newId } from '../../../app/core.ts'
import type { Parley } from '../../../app/parley.ts'

export type HeardEvent = { readonly type: string; readonly data: Readonly<Record<string, unknown>> }

export type HeardEvents = {
  counts(): { readonly verified: number; readonly refused: number }
  /** The first that fits, of those that came and those to come; or the first after `passedOver` of them. */
  until(fits: (event: HeardEvent) => boolean, passedOver?: number): Promise<HeardEvent>
}

/** Its subscription is gone when `closing` is. */
export async function hearEvents(
  service: Parley,
  accountId: AccountId,
  closing: AsyncDisposableStack,
): Promise<HeardEvents> {
  const heard = createHeard<HeardEvent>()
  let secret: string | null = null
  const receiver = await openWebhookReceiver({
    secretOf: () => secret,
    answer: (delivery, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
      heard.take({ type: delivery.type, data: delivery.data as HeardEvent['data'] })
    },
  })
  closing.defer(() => receiver.close())
  const request = { eventType: '*', url: `${receiver.url}/self-test` } as const
  const subscription = await createSubscription(service.sql, service.box, {
    accountId,
    request,
    newId,
    now: Date.now(),
  })
  closing.defer(async () => void (await deleteSubscription(service.sql, accountId, toId(subscription.id) ?? newId())))
  secret = subscription.signingSecret
  return { counts: () => receiver.counts(), until: heard.until }
}

/** Everything that came so far, and waits for what has not come yet. */
export function createHeard<Item>() {
  const kept: Item[] = []
  const waiting = new Set<() => void>()
  return {
    take(item: Item): void {
      kept.push(item)
      for (const look of waiting) look()
    },
    until: (fits: (item: Item) => boolean, passedOver = 0) =>
      new Promise<Item>((resolve) => {
        const look = (): void => {
          const found = kept.filter(fits)[passedOver]
          if (found === undefined) return
          waiting.delete(look)
          resolve(found)
        }
        waiting.add(look)
        look()
      }),
  }
}
