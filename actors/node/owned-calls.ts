/**
 * Owns the calls of this node: which ones have an actor in memory, and how the node comes to own one. Only a process that runs actors can make
 * this, because an actor needs all that a call is run with; whoever has a fact for a call and nothing else has the router.
 */
import type { CallId } from '../../model/ids.ts'
import { createRecent } from '../../net/recent.ts'
import { claimCall, claimCalls, claimOrphan, type Claim } from '../../store/call-steps.ts'
import { createTogether } from '../../store/together.ts'
import { createCallActor, type CallActor, type CallActorDeps } from '../call/life/call-actor.ts'
import { withMemory } from '../call/life/engine-memory.ts'
import { stateOf } from '../call/machine/step.ts'
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
  ids(): CallId[]
  /** Those that could be opened. */
  actors(): Promise<CallActor[]>
}

/** Of calls that have not begun yet; the claim of one more is asked for again. */
const maxBirths = 1_000
/** In one statement. */
const mostTogether = 40

const noClaim = (): null => null

export function createOwnedCalls(deps: CallActorDeps): OwnedCalls {
  const actors = new Map<CallId, Promise<CallActor | null>>()

  const births = createRecent<Claim>(maxBirths)

  const claimTogether = createTogether<CallId, Claim | null>({
    keyOf: () => '',
    async work(callIds) {
      const claims = await claimCalls(deps.sql, callIds, deps.nodeId)
      return callIds.map((id) => claims.get(id) ?? null)
    },
    most: mostTogether,
  })
  /** What the others need not wait for is waited for here, and one connection that was lost fails no crowd. */
  const claimNow = async (callId: CallId): Promise<Claim | null> =>
    (await claimTogether(callId).catch(noClaim)) ?? claimCall(deps.sql, callId, deps.nodeId)
  const open = (callId: CallId, asOrphan: boolean): Promise<CallActor | null> => {
    const known = actors.get(callId)
    if (known) return known
    const opened = claim(callId, asOrphan)
    const forget = () => void actors.delete(callId)
    actors.set(callId, opened)
    opened.then((actor) => (actor ? actor.gone.then(forget) : forget()), forget)
    return opened
  }
  const claim = async (callId: CallId, asOrphan: boolean): Promise<CallActor | null> => {
    const birth = births.get(callId)
    births.delete(callId)
    const known = asOrphan ? undefined : birth
    const claimed = known ?? (await (asOrphan ? claimOrphan(deps.sql, callId, deps.nodeId) : claimNow(callId)))
    if (!claimed) return null
    const actor = createCallActor(deps, callId, { ...claimed, ...(await withMemory(deps, callId, claimed.snapshot)) })
    const listening = listenForFacts(deps.bus, callId, actor)
    void actor.gone.then(() => listening.close())
    // In the middle of something: whoever did it is gone, and what was under way is asked for again before anything else. An orphan that only
    // waits has no use for the fact, and with that step it is given back. Of the first actor of a call nothing can be under way.
    const wasRun = claimed.epoch > 1 && stateOf(claimed.snapshot).waitsIn === null
    if (asOrphan || wasRun) void actor.deliver({ type: 'taken_over' })
    return actor
  }
  return {
    find: (callId) => actors.get(callId) ?? null,
    own: (callId) => open(callId, false),
    adopt: (callId) => open(callId, true),
    born: (callId, claim) => births.set(callId, claim),
    isBorn: (callId) => births.get(callId) !== undefined,
    ids: () => [...actors.keys()],
    async actors() {
      const settled = await Promise.allSettled(actors.values())
      return settled.flatMap((result) => (result.status === 'fulfilled' && result.value ? [result.value] : []))
    },
  }
}
