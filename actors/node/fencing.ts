/**
 * Owns how nodes learn at once that a call has another owner. The fence is the epoch in the database, and who does not hear this meets it with its next
 * step; what it says to nobody until then is work, and a provider's session, for nothing.
 */
import type { Bus, Subscription } from '../../model/bus.ts'
import { fromBytes, toBytes } from '../../model/bus-json.ts'
import type { CallId, NodeId } from '../../model/ids.ts'
import { CallTaken, everyTaken, nodeOf, nodeSubjectsOf } from '../../model/node-beat.ts'

type Taken = { readonly callId: CallId; readonly epoch: number }

/** The call is this node's from this epoch on. */
export const tellTaken = (bus: Bus, nodeId: NodeId, taken: Taken): void =>
  bus.publish(nodeSubjectsOf(nodeId).took, toBytes(taken))

/** Of the calls that became another node's than this. */
export const listenForTaken = (bus: Bus, nodeId: NodeId, take: (taken: Taken) => void): Subscription =>
  bus.subscribe(everyTaken, (message) => {
    const taken = nodeOf(message.subject) === nodeId ? undefined : CallTaken.safeParse(fromBytes(message.payload)).data
    if (taken) take(taken as Taken)
  })
