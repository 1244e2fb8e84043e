/**
 * Owns the calls of this node: which ones have an actor in memory, who gets a fact, and what happens to the calls of a node that died. A node
 * is alive while its lease runs; it renews it, and takes over what dead nodes left behind.
 */
import type { Clock } from '../model/clock.ts'
import type { CallId } from '../model/ids.ts'
import { claimCall, findOrphans } from '../store/call-steps.ts'
import { endLease, forgetDeadNodes, renewLease } from '../store/nodes.ts'
import { createCallActor, type CallActor, type CallActorDeps } from './call/call-actor.ts'
import type { CallFact } from './call/call-event.ts'
import { createRounds } from './rounds.ts'
import { deliverElsewhere, listenForFacts } from './remote-facts.ts'

export type Switchboard = {
  /** Gives the fact to the call, wherever its actor is. False when there is no such call, it is over, or nobody answers for it. */
  deliver(callId: CallId, fact: CallFact): Promise<boolean>
  running(): number
  /** Begins to renew the lease and to look for orphans; resolves when this node is known. */
  start(): Promise<void>
  /** Waits up to `grace` ms for calls to end by themselves, hangs the others up, and leaves. Idempotent. */
  close(grace: number): Promise<void>
}

const heartbeat = 1_000
const leaseLength = 5_000
const deadNodesKept = 24 * 3_600_000
const hangUpTime = 10_000
const orphansAtOnce = 50
/** An actor may leave (its call went dormant) just when a fact comes: the next one takes it. */
const deliveryAttempts = 3

export function createSwitchboard(deps: CallActorDeps): Switchboard {
  const { sql, clock, nodeId, log } = deps
  const actors = new Map<CallId, Promise<CallActor | null>>()

  const open = (callId: CallId): Promise<CallActor | null> => {
    const known = actors.get(callId)
    if (known) return known
    const opened = claim(callId)
    const forget = () => void actors.delete(callId)
    actors.set(callId, opened)
    opened.then((actor) => (actor ? actor.gone.then(forget) : forget()), forget)
    return opened
  }
  const claim = async (callId: CallId): Promise<CallActor | null> => {
    const claimed = await claimCall(sql, callId, nodeId, clock.now())
    if (!claimed) return null
    const actor = createCallActor(deps, callId, claimed)
    const listening = listenForFacts(deps.bus, callId, actor)
    void actor.gone.then(() => listening.close())
    return actor
  }
  const beat = async (): Promise<boolean> => {
    const now = clock.now()
    await renewLease(sql, nodeId, now + leaseLength)
    const running = [...actors.keys()]
    for (const callId of await findOrphans(sql, { nodeId, running, now, limit: orphansAtOnce })) {
      log.warn('taking over a call', { callId })
      await (await open(callId))?.deliver({ type: 'taken_over' })
    }
    await forgetDeadNodes(sql, now - deadNodesKept)
    return false
  }
  const heartbeats = createRounds({ clock, log, every: heartbeat, look: beat })
  let closing: Promise<void> | null = null

  return {
    async deliver(callId, fact) {
      for (let attempt = 0; attempt < deliveryAttempts; attempt++) {
        const actor = await open(callId)
        if (!actor) return deliverElsewhere(deps.bus, callId, fact)
        if (await actor.deliver(fact)) return true
      }
      return false
    },
    running: () => actors.size,
    start: () => heartbeats.idle(),
    close(grace) {
      closing ??= endCalls([...actors.values()], grace, clock)
        .then(() => heartbeats.close())
        .then(() => endLease(sql, nodeId))
      return closing
    },
  }
}

async function endCalls(opened: readonly Promise<CallActor | null>[], grace: number, clock: Clock): Promise<void> {
  const actors = (await Promise.all(opened)).filter((actor) => actor !== null)
  const gone = Promise.all(actors.map((actor) => actor.gone))
  if (grace > 0) await within(clock, grace, gone)
  for (const actor of actors) void actor.deliver({ type: 'hang_up_requested' })
  await within(clock, hangUpTime, gone)
  await Promise.all(actors.map((actor) => actor.abandon()))
}

function within(clock: Clock, ms: number, work: Promise<unknown>): Promise<unknown> {
  const { promise: late, resolve } = Promise.withResolvers<void>()
  const cancel = clock.after(ms, resolve)
  return Promise.race([work, late]).finally(cancel)
}
