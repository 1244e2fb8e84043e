/**
 * Owns the life of a node that runs calls: it is alive while its lease runs, which it renews, takes over what dead nodes left behind, and ends
 * its calls before it leaves.
 */
import type { Clock } from '../../model/clock.ts'
import { deadline, goOn } from '../../model/deadline.ts'
import { findFactsOfCalls } from '../../store/call-steps.ts'
import { createOneQuery } from '../../store/one-query.ts'
import { createStepWriter } from '../../store/step-groups.ts'
import { endLease, leaseLength, renewLease } from '../../store/nodes.ts'
import type { CallId, NewId } from '../../model/ids.ts'
import type { CallActor, CallActorDeps } from '../call/life/call-actor.ts'
import { createRounds } from '../rounds/rounds.ts'
import { createCallRouter, type CallRouter } from './call-router.ts'
import { createOwnedCalls, type OwnedCalls } from './owned-calls.ts'
import { createTakeover } from './take-over.ts'

export type Switchboard = CallRouter &
  Pick<OwnedCalls, 'born'> & {
    running(): number
    /** Begins to renew the lease and to look for orphans; resolves when this node is known. */
    start(): Promise<void>
    /** Waits up to `grace` ms for calls to end by themselves, hangs the others up, and leaves. Idempotent. */
    close(grace: number): Promise<void>
  }

const heartbeat = 1_000
const hangUpTime = 10_000

type Deps = Omit<CallActorDeps, 'steps' | 'findCall'> & {
  readonly newId: NewId
  /** So many deliveries have been committed: send them. */
  readonly wakeDeliveries: (written: number) => void
}

export function createSwitchboard(deps: Deps): Switchboard {
  const { sql, clock, nodeId, log } = deps
  const findCall = createOneQuery({
    keyOf: (callId: CallId) => callId,
    query: (callIds) => findFactsOfCalls(sql, callIds),
  })
  const running: CallActorDeps = { ...deps, findCall, steps: createStepWriter(deps) }
  const owned = createOwnedCalls(running)
  const { route } = createCallRouter({ ...deps, owned })
  let closing: Promise<void> | null = null

  const renew = async (): Promise<boolean> => {
    const write = () => renewLease(sql, nodeId, leaseLength)
    await (deps.commits?.lease(write) ?? write())
    return false
  }
  // Rounds of their own: a takeover may take longer than the lease.
  const heartbeats = createRounds({ clock, log, every: heartbeat, look: renew })
  const takeOver = createTakeover(running, owned)
  const look = async (): Promise<boolean> => !closing && (await takeOver())
  const takeovers = createRounds({ clock, log, every: heartbeat, look })

  const end = async (grace: number): Promise<void> => {
    await endCalls(owned, grace, clock)
    await takeovers.close()
    await heartbeats.close()
    await endLease(sql, nodeId).catch((error: unknown) => log.error('the lease could not be given back', { error }))
  }
  return {
    route,
    born: owned.born,
    running: () => owned.ids().length,
    async start() {
      await heartbeats.idle()
      await takeovers.idle()
    },
    close: (grace) => (closing ??= end(grace)),
  }
}

/** Calls that began while the others had their grace time are hung up with them. */
async function endCalls(owned: OwnedCalls, grace: number, clock: Clock): Promise<void> {
  if (grace > 0) await deadline(clock, grace, goneOf(await owned.actors()), goOn)
  const actors = await owned.actors()
  for (const actor of actors) void actor.deliver({ type: 'hang_up_requested', by: 'service' })
  await deadline(clock, hangUpTime, goneOf(actors), goOn)
  await Promise.all((await owned.actors()).map((actor) => actor.abandon()))
}

const goneOf = (actors: readonly CallActor[]) => Promise.all(actors.map((actor) => actor.gone))
