/**
 * Owns the calls of this node: which ones have an actor in memory, and how the node comes to own one. Only a process that runs actors can make
 * this, because an actor needs all that a call is run with; whoever has a fact for a call and nothing else has the router.
 */
import type { CallId, NodeId } from '../../model/ids.ts'
import { createRecent } from '../../net/recent.ts'
import { claimCall, claimCalls, claimOrphans, type Claim } from '../../store/call-steps.ts'
import { overAnyConnection } from '../../store/settle-group.ts'
import { createTogether } from '../../store/together.ts'
import { createCallActor, type CallActor, type CallActorDeps } from '../call/life/call-actor.ts'
import { withMemory } from '../call/life/engine-memory.ts'
import { stateOf } from '../call/machine/step.ts'
import { commandLeg } from './leg-link.ts'
import { listenForTaken, tellTaken } from './fencing.ts'
import { noPeers, type NodePeers } from './node-beats.ts'
import type { KeptSteps } from './kept-steps.ts'
import { listenForFacts } from './remote-facts.ts'

export type OwnedCalls = {
  /** Its actor here, or what is just becoming one; null when there is none. */
  find(callId: CallId): Promise<CallActor | null> | null
  /** Takes the call, with a higher epoch, unless another node that is alive has it or it is over: then null. */
  own(callId: CallId): Promise<CallActor | null>
  /** The call has just been written, as this node's by this claim: who wants it next need not claim it. */
  born(callId: CallId, claim: Claim): void
  /** Is its claim still unused? */
  isBorn(callId: CallId): boolean
  /** The same for a call that a node left behind in the middle of something; null too when it only waits by now. */
  adopt(callId: CallId): Promise<CallActor | null>
  /** The same from a node that has left it to this one, and lives. */
  takeFrom(callId: CallId, from: NodeId): Promise<CallActor | null>
  ids(): CallId[]
  /** Hears no more of other owners. Idempotent. */
  close(): void
}

/** Of calls that have not begun yet; the claim of one more is asked for again. */
const maxBirths = 1_000
/** In one statement, and real ms from one to the next where many are asked for. */
const mostTogether = 200
const pace = 20
/** Ms. */
const askLegWithin = 200

type Deps = CallActorDeps & { readonly steps: Pick<KeptSteps, 'settled'>; readonly peers?: NodePeers }

export function createOwnedCalls(deps: Deps): OwnedCalls {
  const { sql, bus, nodeId, peers = noPeers } = deps
  const actors = new Map<CallId, Promise<CallActor | null>>()

  const births = createRecent<Claim>(maxBirths)

  const together = (claim: typeof claimCalls) =>
    createTogether<CallId, Claim | null>({
      keyOf: () => '',
      // The claim that nobody heard of is fenced by the next one.
      work: overAnyConnection(async (callIds: readonly CallId[]) => {
        const claims = await claim(sql, callIds, nodeId, peers.sightings())
        return callIds.map((id) => claims.get(id) ?? null)
      }),
      most: mostTogether,
      pace,
    })
  const claimTogether = together(claimCalls)
  const claimOrphan = together(claimOrphans)
  /** What the others need not wait for is waited for here. */
  const claimNow = async (callId: CallId): Promise<Claim | null> =>
    (await claimTogether(callId)) ?? claimCall(sql, callId, nodeId, peers.sightings())
  const claimFrom = (callId: CallId, from: NodeId): Promise<Claim | null> => {
    const heard = peers.sightings().heard.filter((id) => id !== from)
    return claimCall(sql, callId, nodeId, { silent: [from], heard })
  }
  const open = (callId: CallId, asOrphan: boolean, from?: NodeId): Promise<CallActor | null> => {
    const known = actors.get(callId)
    if (known) return known
    const opened = claim(callId, asOrphan, from)
    const forget = () => void actors.delete(callId)
    actors.set(callId, opened)
    opened.then((actor) => (actor ? actor.gone.then(forget) : forget()), forget)
    return opened
  }
  /** Of words that were understood in part, and that the leg has kept whole. */
  const keepsWords = async (callId: CallId, { epoch, snapshot }: Claim): Promise<boolean> => {
    if (!stateOf(snapshot).context.heard) return false
    const here = await commandLeg(bus, callId, { type: 'ping', epoch }, askLegWithin).catch(() => null)
    return here?.type === 'here' && (here.kept ?? 0) > 0
  }
  const claim = async (callId: CallId, asOrphan: boolean, from?: NodeId): Promise<CallActor | null> => {
    const birth = births.get(callId)
    births.delete(callId)
    const known = asOrphan ? undefined : birth
    // The database does not know yet how far its former actor here has come. One that is born here has none.
    if (!known) await deps.steps.settled(callId)
    const claimed =
      known ?? (await (from ? claimFrom(callId, from) : asOrphan ? claimOrphan(callId) : claimNow(callId)))
    if (!claimed) return null
    const hearsAgain = claimed.epoch > 1 && (await keepsWords(callId, claimed))
    const actor = createCallActor(deps, callId, { ...claimed, ...(await withMemory(deps, callId, claimed.snapshot)) })
    if (claimed.epoch > 1) tellTaken(bus, nodeId, { callId, epoch: claimed.epoch })
    const listening = listenForFacts(bus, callId, actor)
    void actor.gone.then(() => listening.close())
    // In the middle of something: whoever did it is gone, and what was under way is asked for again before anything else. An orphan that only
    // waits has no use for the fact, and with that step it is given back. Of the first actor of a call nothing can be under way.
    const wasRun = claimed.epoch > 1 && stateOf(claimed.snapshot).waitsIn === null
    if (asOrphan || wasRun)
      void actor.deliver({ type: 'taken_over', keepsTools: true, seeksLeg: true, ...(hearsAgain && { hearsAgain }) })
    return actor
  }
  // Who was taken for dead and lives hears it here, and not with its next step.
  const fencing = listenForTaken(bus, nodeId, ({ callId, epoch }) => {
    const leave = (actor: CallActor | null): void => void (actor && actor.epoch < epoch && actor.abandon())
    actors.get(callId)?.then(leave, () => undefined)
  })
  return {
    find: (callId) => actors.get(callId) ?? null,
    own: (callId) => open(callId, false),
    adopt: (callId) => open(callId, true),
    takeFrom: (callId, from) => open(callId, true, from),
    born: (callId, claim) => births.set(callId, claim),
    isBorn: (callId) => births.get(callId) !== undefined,
    ids: () => [...actors.keys()],
    close: () => fencing.close(),
  }
}
