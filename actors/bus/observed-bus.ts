/** Owns what is told of the requests of a bus, whichever it is: how long they took and what they led to. */
import { BusNoResponders, BusTimeout, type NodeBus } from '../../model/bus.ts'
import { dialSubject } from '../../model/dial.ts'
import type { Telemetry } from '../../model/telemetry.ts'

/** `now` in ms that never jump. */
export function observedBus(bus: NodeBus, { telemetry, now }: { telemetry: Telemetry; now: () => number }): NodeBus {
  return {
    ...bus,
    async request(subject, payload, options) {
      const began = now()
      let result: Result = 'failed'
      try {
        const answer = await bus.request(subject, payload, options)
        result = 'answered'
        return answer
      } catch (error) {
        result = resultOf(error)
        throw error
      } finally {
        telemetry.observe('bus.request', now() - began, { kind: kindOf(subject), result })
      }
    },
  }
}

type Result = 'answered' | 'timeout' | 'no_responders' | 'failed'

function resultOf(error: unknown): Result {
  if (error instanceof BusTimeout) return 'timeout'
  return error instanceof BusNoResponders ? 'no_responders' : 'failed'
}

function kindOf(subject: string) {
  if (subject === dialSubject) return 'dial'
  if (subject.endsWith('.leg.command')) return 'leg_command'
  return subject.endsWith('.fact') ? 'fact' : 'other'
}
