/**
 * Owns which nodes are taken for dead: those of which nothing was heard although what they tell would have come. Pure: times are arguments, ms that
 * never jump.
 */
import type { CallId, NodeId } from '../../model/ids.ts'
import type { NodeBeat } from '../../model/node-beat.ts'
import type { NodeSightings } from '../../store/nodes.ts'

export type Heard = NodeBeat & { readonly nodeId: NodeId }

export type NodeSilence = {
  beat(nodeId: NodeId, beat: NodeBeat, at: number): void
  /** All that had reached the bus at `at` has come here. Answers with the nodes that are silent since this call. */
  reached(at: number): NodeId[]
  /** The bus was away, or this process stood still, up to `at`: the others get some time to be heard again. */
  wasAway(at: number): void
  /** None are heard while this node's own bus is away. */
  sightings(): NodeSightings
  /** Nodes that are heard. */
  heard(): Heard[]
  /** One of those that take over should take this call first; the others do a moment later. */
  isFirstFor(callId: CallId, owner: NodeId, candidates: readonly NodeId[], self: NodeId, at: number): boolean
}

/** Ms. Three beats and the jitter of a busy machine. */
export const silentAfter = 350
/** Ms after which whoever can takes what the first should have taken. */
export const othersAfter = 300
/** Ms. Connections that broke together come back one by one. */
const awayGrace = 1_500
/** Ms that a node is remembered as silent: its lease has run out by then. */
const rememberedFor = 60_000
const maxNodes = 1_000

type Known = { beat: NodeBeat; at: number; silentSince: number | null }

export function createNodeSilence(): NodeSilence {
  const known = new Map<NodeId, Known>()
  let reachedAt = -Infinity
  let isAway = true

  const forget = (nodeId: NodeId, { at }: Known): void => {
    if (reachedAt - at > rememberedFor) known.delete(nodeId)
  }
  const isSilent = ({ beat, at }: Known): boolean => beat.leaves === true || reachedAt - at >= silentAfter
  const silent = (): NodeId[] => [...known].filter(([, node]) => node.silentSince !== null).map(([id]) => id)
  const heard = (): Heard[] =>
    [...known].filter(([, node]) => node.silentSince === null).map(([nodeId, { beat }]) => ({ ...beat, nodeId }))
  return {
    beat(nodeId, beat, at) {
      // One that left is not heard again: what comes late of it was told before.
      const before = known.get(nodeId)
      if (before?.beat.leaves) return
      if (!before && known.size >= maxNodes) known.delete(known.keys().next().value!)
      known.set(nodeId, {
        beat,
        at: Math.max(at, before?.at ?? at),
        silentSince: beat.leaves ? (before?.silentSince ?? null) : null,
      })
    },
    reached(at) {
      reachedAt = at
      isAway = false
      const news: NodeId[] = []
      for (const [nodeId, node] of known) {
        forget(nodeId, node)
        if (node.silentSince !== null || !isSilent(node)) continue
        node.silentSince = at
        news.push(nodeId)
      }
      return news
    },
    wasAway(at) {
      isAway = true
      for (const node of known.values()) node.at = Math.max(node.at, at + awayGrace)
    },
    sightings: () =>
      isAway ? { silent: [], heard: [] } : { silent: silent(), heard: heard().map(({ nodeId }) => nodeId) },
    heard,
    isFirstFor(callId, owner, candidates, self, at) {
      const since = known.get(owner)?.silentSince ?? null
      if (since === null || at - since >= othersAfter) return true
      return firstOf(callId, candidates) === self || candidates.length === 0
    },
  }
}

/** The same for all that know of the same candidates, and spread evenly over them. */
function firstOf(callId: CallId, candidates: readonly NodeId[]): NodeId | undefined {
  const weighed = candidates.map((id) => ({ id, weight: weightOf(`${callId}${id}`) }))
  return weighed.toSorted((a, b) => b.weight - a.weight || (a.id < b.id ? -1 : 1))[0]?.id
}

/** FNV-1a, mixed once more: neighbors in the alphabet must not be neighbors in weight. */
function weightOf(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
