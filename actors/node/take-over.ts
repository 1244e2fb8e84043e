/** Owns the search for orphans: calls of a node that died, calls that this node lost, and work that a dead node had claimed. */
import type { CallId, NodeId } from '../../model/ids.ts'
import { findOrphans } from '../../store/call-steps.ts'
import { databaseUnreachable } from '../../store/database-unreachable.ts'
import type { LeftQuestion } from '../../store/due-work.ts'
import { forgetDeadNodes, listDeadNodes, releaseClaims } from '../../store/nodes.ts'
import type { CallActorDeps } from '../call/life/call-actor.ts'
import type { KeptSteps } from './kept-steps.ts'
import { nodeOfLeg } from './leg-link.ts'
import type { NodePeers } from './node-beats.ts'
import type { OwnedCalls } from './owned-calls.ts'

/** In one statement; those of a node that had more follow at once. */
const atOnce = 200
const maxBroken = 1_000
const deadNodesKept = 24 * 3_600_000

type Orphan = { readonly id: CallId; readonly owner: NodeId; readonly epoch: number }

/** Ms. */
const askLegWithin = 200

type Takeover = {
  /** One look; true: there may be more, and this one got all that it found. `isUrgent`: a node has just fallen silent, and only others' calls count. */
  look(isUrgent: boolean): Promise<boolean>
  /** Where it has no answer there is nothing to look for. */
  question(): LeftQuestion
}

export function createTakeover(
  deps: CallActorDeps & { readonly peers: NodePeers; readonly steps: Pick<KeptSteps, 'ids'> },
  owned: Pick<OwnedCalls, 'ids' | 'find' | 'adopt'>,
): Takeover {
  const { sql, bus, nodeId, log, peers, steps } = deps
  /** Calls whose state this program cannot read; they wait for one that can, and do not stand in the way of others. */
  const broken = new Set<CallId>()

  /** True when the call is this node's now. */
  const takeOver = async (callId: CallId): Promise<boolean> => {
    if (owned.find(callId)) return false
    try {
      // Whoever has it by now keeps it: what was found may be as old as the query.
      if (!(await owned.adopt(callId))) return false
      log.warn('took over a call', { callId })
      return true
    } catch (error) {
      log.error('a call cannot be taken over', { callId, error })
      if (!databaseUnreachable(error) && broken.size < maxBroken) broken.add(callId)
      return false
    }
  }
  /** Calls of this node without an actor, as of the former look. One that is just born has none for a moment, and is not lost. */
  let withoutActor = new Set<CallId>()
  const isRipe = async ({ id, owner, epoch }: Orphan, isUrgent: boolean): Promise<boolean> => {
    if (owner === nodeId) return !isUrgent && withoutActor.has(id)
    const near = peers.hasRivals() ? await nodeOfLeg(bus, id, epoch, askLegWithin) : null
    return peers.takes(id, owner, near)
  }

  /** A node that came back and dies again is looked at again. */
  let released: ReadonlySet<string> = new Set()
  /** True when there are dead nodes. */
  const releaseDead = async (): Promise<boolean> => {
    const dead = await listDeadNodes(sql)
    const news = dead.filter(({ death }) => !released.has(death)).map(({ id }) => id)
    if (news.length > 0) await releaseClaims(sql, news)
    released = new Set(dead.map(({ death }) => death))
    return dead.length > 0
  }
  const question = (): LeftQuestion => ({
    nodeId,
    passedOver: [...owned.ids(), ...steps.ids(), ...broken],
    seen: peers.sightings(),
    knownDeaths: [...released],
  })
  const look = async (isUrgent: boolean): Promise<boolean> => {
    const orphans = await findOrphans(sql, { ...question(), limit: atOnce })
    // All at once: they are claimed in one statement, and none waits for the sound of another.
    const take = async (orphan: Orphan): Promise<boolean> => (await isRipe(orphan, isUrgent)) && takeOver(orphan.id)
    const taken = await Promise.all(orphans.map(take))
    if (!isUrgent) withoutActor = new Set(orphans.filter(({ owner }) => owner === nodeId).map(({ id }) => id))
    if (orphans.length === atOnce && taken.some(Boolean)) return true
    // It is tried again: what cannot be released now must keep no call from being taken over.
    const areDead = await releaseDead().catch((error: unknown) => {
      log.error('claims of dead nodes could not be released', { error })
      return false
    })
    if (areDead) await forgetDeadNodes(sql, deadNodesKept)
    return false
  }
  return { look, question }
}
