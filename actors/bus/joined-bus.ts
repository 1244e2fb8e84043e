/**
 * Owns the `Bus` of a process that is one of several: what somebody in the own process hears, and nobody else has to, is handed over here and never
 * goes on the wire, so that a call whose leg and actor share the process does not notice that the wire is gone.
 */
import { isOfOneCall, type Bus, type NodeBus } from '../../model/bus.ts'
import type { LocalBus } from './local-bus.ts'
import type { Wire } from './nats-bus.ts'

/** `wire` must not bring back what it was given to publish. Both are closed with the bus. */
export function createJoinedBus({ local, wire }: { readonly local: LocalBus; readonly wire: Wire }): NodeBus {
  const staysHere = (subject: string): boolean => {
    const heardBy = local.heardBy(subject)
    return heardBy === 'queue' || (heardBy === 'somebody' && isOfOneCall(subject))
  }

  const subscribe: Bus['subscribe'] = (pattern, handler, options) => {
    const near = local.subscribe(pattern, handler, options)
    const far = wire.subscribe(pattern, handler, options)
    return {
      close() {
        near.close()
        far.close()
      },
    }
  }
  return {
    publish(subject, payload, isGiven) {
      // The wire takes a copy, so that the local one may be given away.
      if (!staysHere(subject)) wire.publish(subject, payload)
      local.publish(subject, payload, isGiven)
    },
    subscribe,
    async request(subject, payload, options) {
      return (local.heardBy(subject) === 'nobody' ? wire : local).request(subject, payload, options)
    },
    async flush() {
      await local.flush()
      await wire.flushWhileUp()
    },
    async close() {
      await Promise.all([local.close(), wire.close()])
    },
    quietFor: wire.quietFor,
  }
}
