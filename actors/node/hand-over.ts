/**
 * Owns the handing over of calls by a node that is being stopped: one by one, each in a pause of its talk, to a node that takes it with the consent of
 * this one. A call that nobody takes stays where it is.
 */
import { BusNoResponders, BusTimeout, type Bus, type Subscription } from '../../model/bus.ts'
import { fromBytes, toBytes } from '../../model/bus-json.ts'
import { pause, type Clock } from '../../model/clock.ts'
import type { CallId, NodeId } from '../../model/ids.ts'
import type { Log } from '../../model/log.ts'
import { CallOffered, nodeSubjectsOf } from '../../model/node-beat.ts'
import { retry } from '../../model/retry.ts'
import { databaseUnreachable } from '../../store/database-unreachable.ts'
import { takesOver, type NodePeers } from './node-beats.ts'
import type { CallActor } from '../call/life/call-actor.ts'
import type { KeptSteps } from './kept-steps.ts'
import type { OwnedCalls } from './owned-calls.ts'

type Deps = {
  readonly bus: Bus
  readonly clock: Clock
  readonly log: Log
  readonly nodeId: NodeId
  readonly peers: NodePeers
  readonly owned: Pick<OwnedCalls, 'ids' | 'find' | 'own' | 'takeFrom'>
  /** The database does not know yet how far those calls are: they are given to nobody. While it is away none is: it could not be taken back. */
  readonly steps: Pick<KeptSteps, 'isAway' | 'keeps'>
}

/** Ms. A claim and its answer; a node that takes longer may have it all the same, and then this one cannot take it back. */
const answerWithin = 2_000
/** Ms between two looks whether a talk pauses. */
const lookEvery = 20
/** Ms. A talk without a pause is handed over in the middle of it. */
const patience = 20_000
/** Ms between two tries to take back a call that nobody took. */
const backAgainEvery = 250
/** At a time: each makes a node open a session. */
const mostAtOnce = 16

/** Takes what other nodes offer to this one, while `mayTake`. */
export function takeOffers(
  { bus, nodeId, log, owned }: Omit<Deps, 'peers' | 'clock' | 'steps'>,
  mayTake: () => boolean,
): Subscription {
  const take = async ({ callId, from }: { callId: CallId; from: NodeId }): Promise<boolean> => {
    if (!mayTake()) return false
    const actor = await owned.takeFrom(callId, from)
    if (actor) log.info('took a call that was handed over', { callId, from })
    return actor !== null
  }
  return bus.subscribe(nodeSubjectsOf(nodeId).offer, (message) => {
    const offer = CallOffered.safeParse(fromBytes(message.payload)).data as { callId: CallId; from: NodeId } | undefined
    if (!offer) return message.respond(toBytes({ taken: false }))
    take(offer).then(
      (taken) => message.respond(toBytes({ taken })),
      (error: unknown) => {
        log.error('a call that was offered could not be taken', { callId: offer.callId, error })
        message.respond(toBytes({ taken: false }))
      },
    )
  })
}

/** Offers every call of this node; resolves with how many were taken, when each has been tried. `signal` ends the waiting for pauses. */
export async function handOver(deps: Deps, signal: AbortSignal): Promise<number> {
  let underWay = 0
  const one = async (callId: CallId): Promise<boolean> => {
    const actor = await deps.owned.find(callId)?.catch(() => null)
    if (!actor || targetsOf(deps.peers).length === 0) return false
    const isKept = (): boolean => deps.steps.isAway() || deps.steps.keeps(callId)
    for (
      let waited = 0;
      underWay >= mostAtOnce || isKept() || (!actor.isQuiet() && waited < patience);
      waited += lookEvery
    )
      if (!(await pause(deps.clock, lookEvery, signal))) return false
    underWay++
    return give(deps, callId, actor, signal)
      .catch((error: unknown) => {
        // One call of many: whoever finds it without an owner takes it.
        deps.log.error('a call could be neither handed over nor taken back', { callId, error })
        return false
      })
      .finally(() => void underWay--)
  }
  const taken = await Promise.all(deps.owned.ids().map(one))
  return taken.filter(Boolean).length
}

async function give(deps: Deps, callId: CallId, actor: CallActor, signal: AbortSignal): Promise<boolean> {
  const { log, peers } = deps
  const targets = targetsOf(peers)
  // Once it is left there is no way back but another claim.
  if (targets.length === 0 || !(await actor.leave())) return false
  for (const target of deps.steps.keeps(callId) ? [] : targets.slice(0, 3)) {
    if (!(await offer(deps, target, callId))) continue
    log.info('handed a call over', { callId, to: target })
    return true
  }
  log.warn('a call that was to be handed over is taken back', { callId })
  await takeBack(deps, callId, signal)
  return false
}

/** Nobody else may take it while this node lives: a database that went away in between is waited for. */
async function takeBack({ owned, clock }: Deps, callId: CallId, signal: AbortSignal): Promise<void> {
  const wait = (error: unknown): number | null => (databaseUnreachable(error) ? backAgainEvery : null)
  await retry({ clock, wait, signal }, () => owned.own(callId))
}

/** Who has the fewest calls first. */
const targetsOf = (peers: NodePeers): NodeId[] =>
  peers
    .heard()
    .filter(takesOver)
    .toSorted((a, b) => a.running - b.running)
    .map(({ nodeId }) => nodeId)

async function offer({ bus, nodeId, log }: Deps, target: NodeId, callId: CallId): Promise<boolean> {
  try {
    const offered = toBytes({ callId, from: nodeId } satisfies { callId: CallId; from: NodeId })
    const answer = fromBytes(await bus.request(nodeSubjectsOf(target).offer, offered, { timeout: answerWithin }))
    return (answer as { taken?: unknown } | null)?.taken === true
  } catch (error) {
    if (!(error instanceof BusTimeout || error instanceof BusNoResponders)) throw error
    log.warn('a node did not take a call that was offered', { callId, to: target, error })
    return false
  }
}
