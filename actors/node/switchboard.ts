/**
 * Owns the calls of this node: which ones have an actor in memory, who gets a fact, and what happens to the calls of a node that died. A node
 * is alive while its lease runs; it renews it, and takes over what dead nodes left behind.
 */
import type { Clock } from '../../model/clock.ts'
import { deadline, goOn } from '../../model/deadline.ts'
import type { CallId } from '../../model/ids.ts'
import { claimCall } from '../../store/call-steps.ts'
import { endLease, renewLease } from '../../store/nodes.ts'
import { createCallActor, type CallActor, type CallActorDeps } from '../call/life/call-actor.ts'
import type { CallFact } from '../call/call-event.ts'
import { createRounds } from '../rounds/rounds.ts'
import { createTakeover } from './take-over.ts'
import { stateOf } from '../call/machine/step.ts'
import { deliverElsewhere, listenForFacts, type Reached } from './remote-facts.ts'

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
const hangUpTime = 10_000
/** An actor, here or elsewhere, may leave (its call went dormant) just when a fact comes: the next one takes it. */
const deliveryAttempts = 3

export function createSwitchboard(deps: CallActorDeps): Switchboard {
  const { sql, clock, nodeId, log } = deps
  const actors = new Map<CallId, Promise<CallActor | null>>()

  const open = (callId: CallId, asOrphan = false): Promise<CallActor | null> => {
    const known = actors.get(callId)
    if (known) return known
    const opened = claim(callId, asOrphan)
    const forget = () => void actors.delete(callId)
    actors.set(callId, opened)
    opened.then((actor) => (actor ? actor.gone.then(forget) : forget()), forget)
    return opened
  }
  const claim = async (callId: CallId, asOrphan: boolean): Promise<CallActor | null> => {
    const claimed = await claimCall(sql, callId, nodeId)
    if (!claimed) return null
    const actor = createCallActor(deps, callId, claimed)
    const listening = listenForFacts(deps.bus, callId, actor)
    void actor.gone.then(() => listening.close())
    // In the middle of something: whoever did it is gone, and what was under way is asked for again before anything else. An orphan that only
    // waits has no use for the fact, and with that step it is given back. Of the first actor of a call nothing can be under way.
    const wasRun = claimed.epoch > 1 && stateOf(claimed.snapshot).waitsIn === null
    if (asOrphan || wasRun) void actor.deliver({ type: 'taken_over' })
    return actor
  }
  const renew = async (): Promise<boolean> => {
    await renewLease(sql, nodeId, leaseLength)
    return false
  }
  // Rounds of their own: a takeover may take longer than the lease.
  const heartbeats = createRounds({ clock, log, every: heartbeat, look: renew })
  const takeOver = createTakeover(deps, { running: () => [...actors.keys()], open: (callId) => open(callId, true) })
  const look = async (): Promise<boolean> => !closing && (await takeOver())
  const takeovers = createRounds({ clock, log, every: heartbeat, look })
  let closing: Promise<void> | null = null

  const end = async (grace: number): Promise<void> => {
    await endCalls(() => [...actors.values()], grace, clock)
    await takeovers.close()
    await heartbeats.close()
    await endLease(sql, nodeId).catch((error: unknown) => log.error('the lease could not be given back', { error }))
  }
  return {
    async deliver(callId, fact) {
      for (let attempt = 0; attempt < deliveryAttempts; attempt++) {
        const actor = await open(callId)
        const answer = actor ? await taken(actor, fact) : await deliverElsewhere(deps.bus, callId, fact)
        if (answer !== 'left') return answer === 'taken'
      }
      return false
    },
    running: () => actors.size,
    async start() {
      await heartbeats.idle()
      await takeovers.idle()
    },
    close: (grace) => (closing ??= end(grace)),
  }
}

const taken = async (actor: CallActor, fact: CallFact): Promise<Reached> =>
  (await actor.deliver(fact)) ? 'taken' : 'left'

type Opened = readonly Promise<CallActor | null>[]

/** Calls that began while the others had their grace time are hung up with them. */
async function endCalls(opened: () => Opened, grace: number, clock: Clock): Promise<void> {
  if (grace > 0) await deadline(clock, grace, goneOf(await present(opened())), goOn)
  const actors = await present(opened())
  for (const actor of actors) void actor.deliver({ type: 'hang_up_requested' })
  await deadline(clock, hangUpTime, goneOf(actors), goOn)
  await Promise.all((await present(opened())).map((actor) => actor.abandon()))
}

/** One that could not be opened is nobody to wait for. */
async function present(opened: Opened): Promise<CallActor[]> {
  const settled = await Promise.allSettled(opened)
  return settled.flatMap((result) => (result.status === 'fulfilled' && result.value ? [result.value] : []))
}

const goneOf = (actors: readonly CallActor[]) => Promise.all(actors.map((actor) => actor.gone))
