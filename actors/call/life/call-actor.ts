/**
 * Owns one running call: takes facts one by one, steps the machine, commits, then has the effects carried out. Everything it knows is in the
 * database after each step, so it may die at any moment and another node goes on.
 */
import { subjectsOf, type Subscription } from '../../../model/bus.ts'
import type { Cancel, Clock } from '../../../model/clock.ts'
import type { Log } from '../../../model/log.ts'
import type { CallId, NodeId } from '../../../model/ids.ts'
import { flawOf, storableJson } from '../../../model/json.ts'
import type { LegEvent } from '../../../model/leg.ts'
import { retry, waitsOf } from '../../../model/retry.ts'
import { databaseUnreachable } from '../../../store/database-unreachable.ts'
import type { Claim } from '../../../store/call-steps.ts'
import type { StepWriter } from '../../../store/step-groups.ts'
import { storedStep } from '../call-step.ts'
import type { NodePeers } from '../../node/node-beats.ts'
import type { CommitWatch } from '../../node/commit-watch.ts'
import { toLegEvent } from '../../node/leg-link.ts'
import type { CallFact, Deadline } from '../call-event.ts'
import { loggedFact, placeAfter, withoutMemory, type MemoryPlace } from './engine-memory.ts'
import { createCallPerformer } from './call-performer.ts'
import { factOf } from './leg-facts.ts'
import { createLegSightings } from './leg-sightings.ts'
import { createLegWatch } from './leg-watch.ts'
import { createMailbox } from './mailbox.ts'
import { toldNobody, type CallsTelling } from './call-telling.ts'
import type { CallEnd, PerformerDeps } from './performer-deps.ts'
import { nextDeadlineOf, stateOf, step, type CallState } from '../machine/step.ts'

export type CallActorDeps = PerformerDeps & {
  readonly nodeId: NodeId
  /** Of all calls of the node. */
  readonly steps: StepWriter
  readonly commits?: CommitWatch
  readonly telling?: CallsTelling
  /** Absent: there are no other nodes. */
  readonly peers?: NodePeers
  /** Is a node that is silent dead, by its lease too? */
  readonly hasFallen?: () => Promise<boolean>
}

export type CallActor = {
  readonly epoch: number
  /** True when the fact has been committed; false when this actor has left the call and took no notice. */
  deliver(fact: CallFact): Promise<boolean>
  /** Nobody says anything just now, and nothing is under way that another actor would have to begin again. */
  isQuiet(): boolean
  /** Leaves the conversation and commits what is known of it; true: the call waits for another node now. False: it needs none any more. */
  leave(): Promise<boolean>
  /** Stops here and now; the call stays in the database for another node. Idempotent. */
  abandon(): Promise<void>
  /** Resolves when the actor is gone, for whatever reason. */
  readonly gone: Promise<void>
}

/** A call posts a few facts a second; more waiting facts than this mean that the database has been away for long. */
const maxMailbox = 1_000
const commitRetryDelays = [50, 200, 500, 1_000, 2_000, 4_000, 8_000]

/** Its snapshot is whole. */
export type ActorClaim = Claim & { readonly memory: MemoryPlace }

export function createCallActor(deps: CallActorDeps, callId: CallId, claim: ActorClaim): CallActor {
  const { clock } = deps
  const log = deps.log.with({ callId, epoch: claim.epoch })
  let { version, memory } = claim
  let state = stateOf(claim.snapshot)
  const telling = (deps.telling ?? toldNobody).begin(callId, state)
  let over = false
  const { promise: gone, resolve: isGone } = Promise.withResolvers<void>()

  const take = async (fact: CallFact): Promise<boolean> =>
    stepWith(fact).catch((error: unknown) => {
      log.error('a step of a call failed', { fact: fact.type, error })
      return stop()
    })
  const stepWith = async (told: CallFact): Promise<boolean> => {
    if (over) return false
    const now = clock.now()
    const fact = loggedFact(memory, state.context.memory, told)
    const next = step(state.persisted, fact, now)
    if (next.ignored) log.info('a call ignored a fact', { fact: fact.type, progress: state.progress })
    const nextMemory = next.ignored ? memory : placeAfter(memory, fact, version + 1)
    const snapshot = withoutMemory(nextMemory, next.state.persisted)
    const tenure = { callId, accountId: claim.accountId, nodeId: deps.nodeId, epoch: claim.epoch, version }
    const written = storedStep(tenure, { fact, next, now, snapshot })
    const commit = () => deps.steps.write(written)
    const committing = () => commitWithRetry(commit, clock, log)
    const committed = await (deps.commits?.step(committing) ?? committing())
    telling.committed(committed, clock.now() - now)
    if (committed === 'refused') return true
    if (committed !== 'written') return stop()
    // It is in the log, and another actor runs the call by now: what the step asks for is asked for there.
    if (over) return true
    version++
    memory = nextMemory
    state = next.state
    telling.stepped(next, now)
    performer.perform(next.effects)
    waits.arm(state)
    if (state.waitsIn !== null || state.finished) stop()
    return true
  }
  const mailbox = createMailbox(maxMailbox, take)
  // A text of a telephone network, a receiver or a model that Postgres cannot store would make the step fail, and the call deaf to the fact.
  const deliver = (fact: CallFact): Promise<boolean> => mailbox.post(flawOf(fact) ? storableJson(fact) : fact)
  const sightings = createLegSightings(clock, claim.leftFor)
  const post = (fact: CallFact): void => void deliver(sightings.aged(fact))
  const end = { callId, epoch: claim.epoch, post, deliver, legSeen: sightings.seen }
  const performer = createCallPerformer({ ...deps, log }, end)
  const waits = createWaits(deps, end)
  const subscription = subscribeToLeg(deps, callId, (event) => {
    sightings.seen()
    performer.legEvent(event)
    const fact = isReturn(event, state) ? ({ type: 'leg_returned' } as const) : factOf(event)
    if (fact) post(fact)
  })
  const stop = (): false => {
    over = true
    telling.end()
    waits.disarm()
    subscription.close()
    performer.abandon()
    isGone()
    return false
  }

  waits.arm(state)
  return {
    epoch: claim.epoch,
    deliver,
    gone,
    isQuiet: () => performer.isQuiet(),
    async leave() {
      await performer.leave()
      // The last turn of the talk, among others.
      await mailbox.empty()
      if (over) return false
      stop()
      return true
    },
    async abandon() {
      stop()
      await mailbox.empty()
      await performer.settled()
    },
  }
}

/** A leg connects once: this is another one, of a browser that has come back by another process. */
const isReturn = ({ type }: LegEvent, { context }: CallState): boolean =>
  type === 'connected' && context.transport === 'webrtc' && context.answeredAt !== null

/** For the earliest deadline of a state, and for a leg that says nothing. */
function createWaits(deps: CallActorDeps, end: CallEnd) {
  const deadline = createDeadline(deps.clock, (name) => end.post({ type: 'deadline_passed', deadline: name }))
  const legWatch = createLegWatch(deps, end)
  return {
    arm(state: CallState): void {
      deadline.arm(state)
      legWatch.state(state)
    },
    disarm(): void {
      deadline.disarm()
      legWatch.close()
    },
  }
}

/** The machine's waits are absolute times in its state; the actor keeps one timer, for the earliest. */
function createDeadline(clock: Clock, passed: (deadline: Deadline) => void) {
  let cancel: Cancel = () => {}
  return {
    arm(state: CallState): void {
      cancel()
      const due = nextDeadlineOf(state)
      if (due) cancel = clock.after(Math.max(0, due.at - clock.now()), () => passed(due.deadline))
    },
    disarm: (): void => cancel(),
  }
}

function subscribeToLeg(deps: CallActorDeps, callId: CallId, take: (event: LegEvent) => void): Subscription {
  return deps.bus.subscribe(subjectsOf(callId).legEvent, (message) => {
    const event = toLegEvent(message.payload)
    if (event) take(event)
  })
}

/**
 * A database that is away for a moment delays the call and does not end it. A fact that the database refuses for good (a value it cannot
 * store) is dropped, because a retry would fail as well.
 */
async function commitWithRetry(
  commit: () => Promise<'written' | 'fenced'>,
  clock: Clock,
  log: Log,
): Promise<'written' | 'fenced' | 'refused' | 'unreachable'> {
  const attempt = (): Promise<'written' | 'fenced'> =>
    commit().catch((error: unknown) => {
      log.error('a step of a call could not be committed', { error })
      throw error
    })
  try {
    const wait = waitsOf(commitRetryDelays, databaseUnreachable)
    return await retry({ clock, wait }, attempt)
  } catch (error) {
    return databaseUnreachable(error) ? 'unreachable' : 'refused'
  }
}
