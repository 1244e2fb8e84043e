/** Owns the way of a fact to a call whose actor lives on another node: a request over the bus, answered when the fact has been committed. */
import { BusNoResponders, BusTimeout, type Bus, type Subscription } from '../../model/bus.ts'
import { fromBytes, toBytes } from '../../model/bus-json.ts'
import type { CallId } from '../../model/ids.ts'
import type { CallActor } from '../call/life/call-actor.ts'
import type { CallFact } from '../call/call-event.ts'

const answerTimeout = 5_000
const subjectOf = (callId: CallId): string => `call.${callId}.fact`

/** Takes facts for `actor` from other nodes until it is gone. Facts come from our own nodes only: the bus is private. */
export function listenForFacts(bus: Bus, callId: CallId, actor: CallActor): Subscription {
  return bus.subscribe(subjectOf(callId), (message) => {
    const fact = fromBytes(message.payload) as CallFact | null
    if (fact) void actor.deliver(fact).then((taken) => message.respond(toBytes({ taken })))
  })
}

/**
 * What became of a fact: `left`, nobody has the call any more, or its actor left it; `silent`, somebody has it and does not answer; `over`, the
 * call needs no facts any more.
 */
export type Reached = 'taken' | 'left' | 'silent' | 'over'

/** To the owner of the call. */
export async function sendFact(bus: Bus, callId: CallId, fact: CallFact): Promise<Reached> {
  try {
    const answer = fromBytes(await bus.request(subjectOf(callId), toBytes(fact), { timeout: answerTimeout }))
    return (answer as { taken?: unknown } | null)?.taken === true ? 'taken' : 'left'
  } catch (error) {
    if (error instanceof BusNoResponders) return 'left'
    if (error instanceof BusTimeout) return 'silent'
    throw error
  }
}
