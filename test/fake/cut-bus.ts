/** Owns a node's end of the bus that can be cut: what a process that died still wanted to say or hear is lost. */
import type { Bus, Subscription } from '../../model/bus.ts'

export type CutBus = Bus & { cut(): void }

export function createCutBus(bus: Bus): CutBus {
  const subscriptions = new Set<Subscription>()
  let isCut = false
  return {
    ...bus,
    publish: (subject, payload) => void (isCut || bus.publish(subject, payload)),
    subscribe(pattern, handler, options) {
      const subscription = bus.subscribe(pattern, handler, options)
      subscriptions.add(subscription)
      return subscription
    },
    request: (...given) => (isCut ? new Promise<never>(() => {}) : bus.request(...given)),
    cut() {
      isCut = true
      for (const subscription of subscriptions) subscription.close()
    },
  }
}
