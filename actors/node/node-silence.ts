/**
 * Owns which nodes are taken for dead: those of which nothing was heard although what they tell would have come, and for whom nobody listens any more at
 * the bus, which knows at once of a process that ended. One that still listens there may be busy, and has longer. Pure: times are arguments, ms that
 * never jump.
 */
import type { CallId, NodeId } from '../../model/ids.ts'
import type { NodeBeat } from '../../model/node-beat.ts'
import type { NodeSightings } from '../../store/nodes.ts'

export type Heard = NodeBeat & { readonly nodeId: NodeId }

export type NodeSilence = {
  beat(nodeId: NodeId, beat: NodeBeat, at: number): void
  /** It has answered a question: it lives. */
  answered(nodeId: NodeId, at: number): void
  /** The bus says that nobody listens for it any more. `asked`: when it was asked. */
  left(nodeId: NodeId, asked: number): void
  /** Nodes that should have been heard again by now, and may be asked whether they live. */
  suspects(): NodeId[]
  /** This process itself was so many ms late: nobody's silence is counted for as long, as others on its machine may have been late with it. */
  stood(ms: number): void
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

/** Ms, of a node for which nobody listens at the bus any more. Three beats and the jitter of a busy machine. */
export const silentAfter = 350
/** Ms, of a node that listens: it is busy, or stands still, or its machine is gone and the bus has not noticed yet. */
export const frozenAfter = 1_000
/**
 * Ms, of one that was taken for dead and came back: each time twice as long as before, up to this. On a machine that has too much to do processes would
 * rob each other, over and over, of calls that cost more to begin anew than to wait for.
 */
export const longestPatience = 4_000
/** Ms after which it is like any other again. */
const forgivenAfter = 60_000
/** Ms after which a node is asked: two beats have not come. */
const askedAfter = 200
/** Ms after which whoever can takes what the first should have taken. */
export const othersAfter = 300
/** Ms. Connections that broke together come back one by one. */
const awayGrace = 1_500
/** Ms that a node is remembered as silent: its lease has run out by then. */
const rememberedFor = 60_000
const maxNodes = 1_000

type Known = {
  beat: NodeBeat
  at: number
  silentSince: number | null
  /** Nobody listens for it. */
  hasLeft: boolean
  /** As late as this process had been by `at`, in all. */
  late: number
  /** Ms. */
  patience: number
  cameBackAt: number
}

export function createNodeSilence(): NodeSilence {
  const known = new Map<NodeId, Known>()
  let reachedAt = -Infinity
  let isAway = true
  /** Of this process, ms in all. */
  let late = 0

  const forget = (nodeId: NodeId, { at }: Known): void => {
    if (reachedAt - at > rememberedFor) known.delete(nodeId)
  }
  const isSilent = (node: Known): boolean => {
    const quiet = reachedAt - node.at
    if (node.beat.leaves || (node.hasLeft && quiet >= silentAfter)) return true
    return quiet - (late - node.late) >= node.patience
  }
  const lives = (node: Known, at: number): void => {
    node.at = Math.max(node.at, at)
    node.late = late
    node.hasLeft = false
  }
  const idsOf = (fits: (node: Known) => boolean): NodeId[] =>
    [...known].filter(([, node]) => node.silentSince !== null && fits(node)).map(([id]) => id)
  const hasLeft = ({ hasLeft: isGone, beat }: Known): boolean => isGone || beat.leaves === true
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
        hasLeft: false,
        late,
        ...patienceAfter(before, at),
      })
    },
    answered(nodeId, at) {
      const node = known.get(nodeId)
      if (node && node.silentSince === null) lives(node, at)
    },
    left(nodeId, asked) {
      const node = known.get(nodeId)
      if (node && asked >= node.at) node.hasLeft = true
    },
    suspects: () =>
      [...known].flatMap(([nodeId, { at, silentSince, hasLeft }]) =>
        silentSince === null && !hasLeft && reachedAt - at >= askedAfter ? [nodeId] : [],
      ),
    stood: (ms) => void (late += ms),
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
      isAway
        ? { silent: [], heard: [], left: [] }
        : { silent: idsOf(() => true), heard: heard().map(({ nodeId }) => nodeId), left: idsOf(hasLeft) },
    heard,
    isFirstFor(callId, owner, candidates, self, at) {
      const since = known.get(owner)?.silentSince ?? null
      if (since === null || at - since >= othersAfter) return true
      return firstOf(callId, candidates) === self || candidates.length === 0
    },
  }
}

const patienceAfter = (before: Known | undefined, at: number): Pick<Known, 'patience' | 'cameBackAt'> => {
  const known =
    before && at - before.cameBackAt < forgivenAfter ? before : { patience: frozenAfter, cameBackAt: -Infinity }
  const isBack = before !== undefined && before.silentSince !== null
  if (!isBack) return { patience: known.patience, cameBackAt: known.cameBackAt }
  return { patience: Math.min(longestPatience, 2 * known.patience), cameBackAt: at }
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
