/**
 * Owns the way of a fact to its call: the owner is found, here or on another node, and the fact handed over. Who routes does not own; a call
 * that nobody has is taken where actors are run.
 */
import type { Bus } from '../../model/bus.ts'
import type { CallId, NodeId } from '../../model/ids.ts'
import { findOwners } from '../../store/call-steps.ts'
import { createOneQuery } from '../../store/one-query.ts'
import type { Sql } from '../../store/sql.ts'
import type { CallFact } from '../call/call-event.ts'
import type { CallActor } from '../call/life/call-actor.ts'
import { noPeers, type NodePeers } from './node-beats.ts'
import type { OwnedCalls } from './owned-calls.ts'
import { sendFact, type Reached } from './remote-facts.ts'

export type CallRouter = {
  /**
   * True when the fact has been committed. False when there is no such call, it is over, or nobody answers for it. `isNobodys`: nobody had the call a
   * moment ago, so that who runs actors need not look for its owner first.
   */
  route(callId: CallId, fact: CallFact, isNobodys?: boolean): Promise<boolean>
}

/** An owner may leave (its call went dormant, its node died) just when a fact comes: the next one takes it. */
const attempts = 3

export function createCallRouter(deps: {
  readonly sql: Sql
  readonly bus: Bus
  readonly nodeId: NodeId
  readonly peers?: Pick<NodePeers, 'sightings'>
  readonly owned: Pick<OwnedCalls, 'find' | 'own'> & Partial<Pick<OwnedCalls, 'isBorn'>>
}): CallRouter {
  const { sql, bus, nodeId, owned, peers = noPeers } = deps

  const findOwner = createOneQuery<CallId, { readonly owner: NodeId | null }>({
    keyOf: (callId) => callId,
    query: (callIds) => findOwners(sql, callIds, peers.sightings()),
  })
  const own = async (callId: CallId, fact: CallFact): Promise<Reached> => {
    const actor = await owned.own(callId)
    return actor ? taken(actor, fact) : 'left'
  }
  const handOver = async (callId: CallId, fact: CallFact, isNobodys: boolean): Promise<Reached> => {
    const here = await owned.find(callId)
    if (here) return taken(here, fact)
    if (isNobodys || owned.isBorn?.(callId)) return own(callId, fact)
    const found = await findOwner(callId)
    if (found === null) return 'over'
    if (found.owner !== null && found.owner !== nodeId) return sendFact(bus, callId, fact)
    return own(callId, fact)
  }
  return {
    async route(callId, fact, isNobodys = false) {
      for (let attempt = 0; attempt < attempts; attempt++) {
        const reached = await handOver(callId, fact, isNobodys && attempt === 0)
        if (reached !== 'left') return reached === 'taken'
      }
      return false
    },
  }
}

const taken = async (actor: CallActor, fact: CallFact): Promise<Reached> =>
  (await actor.deliver(fact)) ? 'taken' : 'left'
