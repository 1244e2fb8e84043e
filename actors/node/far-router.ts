/** Owns the way of a fact to its call from a process that runs none: to the node that has the call, or to one that takes it (placement.ts). */
import type { Bus } from '../../model/bus.ts'
import type { CallId, NodeId } from '../../model/ids.ts'
import { findOwners } from '../../store/call-steps.ts'
import { createOneQuery } from '../../store/one-query.ts'
import type { Sql } from '../../store/sql.ts'
import type { CallFact } from '../call/call-event.ts'
import type { CallRouter } from './call-router.ts'
import type { NodePeers } from './node-beats.ts'
import type { Placement } from './placement.ts'
import { sendFact, type Reached } from './remote-facts.ts'

/** An owner may leave just when a fact comes: the next one takes it. */
const attempts = 3

export function createFarRouter(deps: {
  readonly sql: Sql
  readonly bus: Bus
  readonly peers: Pick<NodePeers, 'sightings'>
  readonly placement: Pick<Placement, 'place'>
}): CallRouter {
  const { sql, bus, peers, placement } = deps
  const findOwner = createOneQuery<CallId, { readonly owner: NodeId | null }>({
    keyOf: (callId) => callId,
    query: (callIds) => findOwners(sql, callIds, peers.sightings()),
  })
  const handOver = async (callId: CallId, fact: CallFact): Promise<Reached> => {
    // One connection that was lost fails no crowd.
    const found = await findOwner(callId).catch(
      async () => (await findOwners(sql, [callId], peers.sightings())).get(callId) ?? null,
    )
    if (found === null) return 'over'
    const reached = found.owner === null ? 'left' : await sendFact(bus, callId, fact)
    // A call that has just been born at a node has no actor there yet.
    return reached === 'left' ? placement.place(callId, fact, found.owner) : reached
  }
  return {
    async route(callId, fact) {
      for (let attempt = 0; attempt < attempts; attempt++) {
        const reached = await handOver(callId, fact)
        if (reached !== 'left') return reached === 'taken'
      }
      return false
    },
  }
}
