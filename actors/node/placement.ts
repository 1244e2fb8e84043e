/**
 * Owns where a call gets its actor that nobody has, when the process that has a fact for it runs none: at one of the nodes that run calls, chosen by
 * the room that they tell. The fact goes along, so that a call is placed and begun by one question.
 */
import { BusNoResponders, BusTimeout, type Bus, type Subscription } from '../../model/bus.ts'
import { fromBytes, toBytes } from '../../model/bus-json.ts'
import type { CallId, NodeId } from '../../model/ids.ts'
import type { CallFact } from '../call/call-event.ts'
import type { CallRouter } from './call-router.ts'
import type { NodePeers } from './node-beats.ts'
import type { Reached } from './remote-facts.ts'

/** Ms until another node is asked: a step takes a few, and a node that died is silent. */
const answerTimeout = 2_000
const mostAsked = 3

type Placed = { readonly callId: CallId; readonly fact: CallFact }

const subjectOf = (nodeId: NodeId): string => `node.${nodeId}.place`

/** Takes calls for `router` of a node that runs them. `isLeaving`: they go to others. `begins`: one more is begun. */
export function listenForPlaced(
  bus: Bus,
  nodeId: NodeId,
  {
    router,
    isLeaving,
    begins,
  }: { readonly router: CallRouter; readonly isLeaving: () => boolean; readonly begins: () => void },
): Subscription {
  return bus.subscribe(subjectOf(nodeId), (message) => {
    const placed = fromBytes(message.payload) as Placed | null
    if (!placed || isLeaving()) return message.respond(toBytes({ taken: false }))
    if (placed.fact.type === 'client_connected') begins()
    const answer = (taken: boolean): void => message.respond(toBytes({ taken }))
    router.route(placed.callId, placed.fact).then(answer, () => answer(false))
  })
}

export type Placement = {
  /** A node that should run one more call; null: nobody runs calls. */
  choose(): NodeId | null
  /** `left`: nobody took it. `first`: asked before the others. */
  place(callId: CallId, fact: CallFact, first: NodeId | null): Promise<Reached>
}

type Deps = {
  readonly bus: Bus
  readonly peers: Pick<NodePeers, 'heard'>
  /** 0–1. */
  readonly random?: () => number
}

export function createPlacement({ bus, peers, random = Math.random }: Deps): Placement {
  const running = () => peers.heard().filter(({ roles, draining }) => roles.includes('actors') && !draining)

  /** Of two at random the one with more room: what is told is a tenth of a second old, and not all should choose the same. */
  const choose = (but: ReadonlySet<NodeId>): NodeId | null => {
    const nodes = running().filter(({ nodeId }) => !but.has(nodeId))
    const one = nodes[Math.floor(random() * nodes.length)]
    const other = nodes[Math.floor(random() * nodes.length)]
    if (!one || !other) return null
    const isOther = other.room === one.room ? other.running < one.running : other.room > one.room
    return (isOther ? other : one).nodeId
  }
  const ask = async (nodeId: NodeId, placed: Placed): Promise<boolean> => {
    try {
      const answer = await bus.request(subjectOf(nodeId), toBytes(placed), { timeout: answerTimeout })
      return (fromBytes(answer) as { readonly taken?: unknown } | null)?.taken === true
    } catch (error) {
      if (error instanceof BusNoResponders || error instanceof BusTimeout) return false
      throw error
    }
  }
  return {
    choose: () => choose(new Set()),
    async place(callId, fact, first) {
      const asked = new Set<NodeId>()
      for (let next = first ?? choose(asked); next && asked.size < mostAsked; next = choose(asked)) {
        asked.add(next)
        if (await ask(next, { callId, fact })) return 'taken'
      }
      return 'left'
    },
  }
}
