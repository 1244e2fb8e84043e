/**
 * Owns the life of a node that runs calls: it is alive while its lease runs, which it renews, takes over what dead nodes left behind, and ends
 * its calls before it leaves.
 */
import type { Clock } from '../../model/clock.ts'
import { deadline, goOn } from '../../model/deadline.ts'
import { findFactsOfCalls } from '../../store/call-steps.ts'
import { findCallScripts, keyOfScriptQuestion, type ScriptQuestion } from '../../store/documents.ts'
import { createOneQuery } from '../../store/one-query.ts'
import type { JournalFolder } from '../../store/journal-folder.ts'
import type { Sql } from '../../store/sql.ts'
import { createStepWriter } from '../../store/step-groups.ts'
import { endLease, hasFallen, leaseLength, renewLease } from '../../store/nodes.ts'
import type { CallId, NewId } from '../../model/ids.ts'
import { bornOf, writeKeptBirth, type KeptBirth } from '../call/birth/kept-birth.ts'
import type { CallActor, CallActorDeps } from '../call/life/call-actor.ts'
import type { AskWorkerRequest } from '../webhooks/worker-request.ts'
import { lookingForLeft, type DueWatch } from '../rounds/due-watch.ts'
import { createRounds } from '../rounds/rounds.ts'
import { createCallRouter, type CallRouter } from './call-router.ts'
import { createFoundTurns } from './found-turns.ts'
import { keepsNothing } from './keeps-nothing.ts'
import { createKeptSteps, type KeptSteps } from './kept-steps.ts'
import { createOwnedCalls, type OwnedCalls } from './owned-calls.ts'
import { handOver, takeOffers } from './hand-over.ts'
import { noPeers, type NodePeers } from './node-beats.ts'
import { createTakeover } from './take-over.ts'
import { createUnwrittenCalls, type Unwritten, type UnwrittenCalls } from './unwritten-calls.ts'

export type Switchboard = CallRouter &
  Pick<OwnedCalls, 'born'> & {
    /** The call is this node's although the database, which is away, does not know it; rejects where its birth cannot be kept. */
    bear(birth: Born): Promise<void>
    /** Resolves when the database has the call. Null: it has. */
    written(callId: CallId): Promise<void> | null
    /** Resolves when no actor of this node has the call. */
    gone(callId: CallId): Promise<void>
    running(): number
    /** The database has not taken this node's lease for a while, and its calls go on. */
    holds(): boolean
    /** Begins to renew the lease and to look for orphans; resolves when this node is known. */
    start(): Promise<void>
    /**
     * Takes no further calls from other nodes, and offers its own to them; resolves with how many were taken, when each has been tried. What is left may be
     * offered again. `signal` ends it.
     */
    handOver(signal: AbortSignal): Promise<number>
    /** Waits up to `grace` ms for calls to end by themselves, hangs the others up, and leaves. Idempotent. */
    close(grace: number): Promise<void>
  }

export type Born = Pick<Unwritten, 'script' | 'hook'> & {
  readonly birth: KeptBirth
  readonly worker: Parameters<typeof bornOf>[1]
  /** What may still come of writing it. */
  readonly late: Promise<unknown>
}

const heartbeat = 1_000
/** Ms since the lease was renewed last; less than it runs. */
const overdue = 2_500
/** Of different workers: a script may be a megabyte. */
const scriptsTogether = 10
const hangUpTime = 10_000
/** Ms to let go of those that did not end. */
const leaveTime = 5_000
/** Ms that somebody waits for steps that are kept here. */
const behindSteps = 2_000

type Deps = Omit<CallActorDeps, 'steps' | 'findCall' | 'findScript' | 'askWorkerRequest'> & {
  readonly askWorkerRequest: AskWorkerRequest
  /** Where steps are kept while the database is away. Absent: nowhere. */
  readonly journal?: JournalFolder
  readonly newId: NewId
  /** So many deliveries have been committed: send them. */
  readonly wakeDeliveries: (written: number) => void
  /** Absent: leases alone tell who is alive. */
  readonly peers?: NodePeers
  /** Absent: this looks once a second by itself for what dead nodes have left. */
  readonly dueWatch?: Pick<DueWatch, 'onLeft'>
}

export function createSwitchboard(deps: Deps): Switchboard {
  const { sql, clock, nodeId, log, peers = noPeers } = deps
  const findStored = createOneQuery({
    keyOf: (callId: CallId) => callId,
    query: (callIds) => findFactsOfCalls(sql, callIds),
  })
  const findStoredScript = createOneQuery({
    keyOf: keyOfScriptQuestion,
    query: (questions: readonly ScriptQuestion[]) => findCallScripts(sql, questions),
    maxQuestions: scriptsTogether,
  })
  const writer = createStepWriter(deps)
  const unwritten = createUnwrittenCalls()
  const writeBirth = async (birth: KeptBirth): Promise<void> =>
    deps.wakeDeliveries(await writeKeptBirth(sql, deps.newId, birth))
  const bringFound = createFoundTurns({ ...deps, peers, find: (callId) => owned.find(callId) })
  const steps = deps.journal
    ? createKeptSteps({ ...deps, journal: deps.journal, writer, writeBirth, bringFound, fenced, written })
    : keepsNothing(writer)
  deps.telling?.watch(() => ({ memory: writer.waiting(), disk: steps.count() }))
  const findBehindSteps = async (callId: CallId) => {
    await deadline(clock, behindSteps, steps.settled(callId), () => {
      throw new StepsAreKept('steps of the call wait for the database')
    })
    return findStored(callId)
  }
  /** What is stored of a call is old as long as steps of it are kept here. */
  const findCall: typeof findStored = async (callId) =>
    unwritten.find(callId)?.facts ?? (steps.keeps(callId) ? findBehindSteps : findStored)(callId)
  const known = knownOf(deps, unwritten, { findStoredScript, steps })
  const running = { ...deps, peers, hasFallen: fallenAmong(sql, peers), findCall, ...known }
  const owned = createOwnedCalls(running)
  const { route } = createCallRouter({ ...deps, owned })
  function fenced(callId: CallId, epoch: number): void {
    // One that took the call later runs it by right: the steps are those of a former process.
    void owned.find(callId)?.then((actor) => void (actor && actor.epoch <= epoch && actor.abandon()), ignored)
  }
  function written(): void {
    deps.wakeJobs()
    deps.wakeDispatcher()
  }
  let closing: Promise<void> | null = null
  let isLeaving = false
  const offers = takeOffers({ ...running, owned }, () => !closing && !isLeaving)

  let renewedAt = clock.now()
  const renew = async (): Promise<boolean> => {
    const write = () => renewLease(sql, nodeId, leaseLength, peers.isOffBus())
    await (deps.commits?.lease(write) ?? write())
    renewedAt = clock.now()
    return false
  }
  // Rounds of their own: a takeover may take longer than the lease.
  const heartbeats = createRounds({ clock, log, every: heartbeat, look: renew })
  const takeover = createTakeover(running, owned)
  let isUrgent = false
  const look = async (): Promise<boolean> => {
    const urgent = isUrgent
    isUrgent = false
    if (closing || isLeaving) return false
    // A neighbour that died may have left steps on this disk: whoever took its calls before they are written would fence them. Those calls are passed over.
    await deadline(clock, behindSteps, steps.adopt(), goOn)
    return !closing && !isLeaving && (await takeover.look(urgent))
  }
  const told = lookingForLeft(deps.dueWatch, takeover.question, heartbeat)
  const takeovers = createRounds({ clock, log, look, ...told })
  // A node that cannot be heard says so where its lease is.
  const link = (): void => heartbeats.wake()
  const silence = (): void => {
    isUrgent = true
    takeovers.wake()
  }
  const watching = peers.watch({ silence, link })

  const end = async (grace: number): Promise<void> => {
    await endCalls(owned, grace, clock)
    watching.close()
    offers.close()
    owned.close()
    await takeovers.close()
    await heartbeats.close()
    await steps.close()
    await endLease(sql, nodeId).catch((error: unknown) => log.error('the lease could not be given back', { error }))
  }
  return {
    route,
    born: owned.born,
    async bear({ birth, worker, late, ...known }) {
      const { claim, facts } = bornOf(birth, worker, deps.newId)
      await steps.bear(birth, late)
      unwritten.add({ ...known, facts }, steps.settled(birth.callId))
      owned.born(birth.callId, claim)
    },
    gone: async (callId) => (await owned.find(callId))?.gone,
    written: (callId) => (unwritten.find(callId) ? steps.settled(callId) : null),
    running: () => owned.ids().length,
    holds: () => clock.now() - renewedAt > overdue,
    async start() {
      await heartbeats.idle()
      // Before anybody goes on with those calls.
      await steps.start()
      await takeovers.idle()
    },
    handOver(signal) {
      isLeaving = true
      return handOver({ ...running, owned }, signal)
    },
    close: (grace) => (closing ??= end(grace)),
  }
}

type Stored = { readonly findStoredScript: CallActorDeps['findScript']; readonly steps: KeptSteps }

/** What actors ask for, answered from here for calls that the database does not know yet. */
function knownOf(
  { tools, askWorkerRequest }: Deps,
  unwritten: UnwrittenCalls,
  { findStoredScript, steps }: Stored,
): Pick<CallActorDeps, 'findScript' | 'askWorkerRequest' | 'tools'> & { readonly steps: KeptSteps } {
  return {
    async findScript(question) {
      const script = steps.isAway() ? unwritten.script(question) : undefined
      return script === undefined ? findStoredScript(question) : script
    },
    askWorkerRequest: (callId, question) => askWorkerRequest(callId, question, unwritten.find(callId)?.hook),
    // Of a call that the database does not know all that they do is there.
    tools: {
      call: (accountId, workerId, request, work) =>
        tools.call(accountId, workerId, request, { ...work, isAway: steps.isAway }),
      list: async (...given) =>
        given[2]?.phoneCallId !== undefined && unwritten.find(given[2].phoneCallId as CallId)
          ? []
          : tools.list(...given),
    },
    steps: {
      ...steps,
      async write(step) {
        const result = await steps.write(step)
        if (result === 'written') unwritten.stepped(step)
        return result
      },
    },
  }
}

/** Calls that ask in one moment share a query. */
function fallenAmong(sql: Sql, peers: NodePeers): () => Promise<boolean> {
  const ask = createOneQuery<'', boolean>({
    keyOf: () => '',
    query: async () => new Map([['', await hasFallen(sql, peers.sightings().silent)]]),
  })
  return async () => (await ask('')) === true
}

/** Calls that began while the others had their grace time are hung up with them. One that waits for the database to be opened keeps no other. */
async function endCalls(owned: Pick<OwnedCalls, 'ids' | 'find'>, grace: number, clock: Clock): Promise<void> {
  const each = (act: (actor: CallActor) => Promise<void>) =>
    Promise.all(owned.ids().map(async (callId) => owned.find(callId)?.then((actor) => actor && act(actor), ignored)))
  if (grace > 0)
    await deadline(
      clock,
      grace,
      each((actor) => actor.gone),
      goOn,
    )
  const hungUp = each((actor) => {
    void actor.deliver({ type: 'hang_up_requested', by: 'service' })
    return actor.gone
  })
  await deadline(clock, hangUpTime, hungUp, goOn)
  await deadline(
    clock,
    leaveTime,
    each((actor) => actor.abandon()),
    goOn,
  )
}

/** Of the kind that passes. */
class StepsAreKept extends Error {
  override readonly name = 'StepsAreKept'
  readonly code = '57P03'
}

/** Who could not be opened is nobody to be left. */
const ignored = (): void => {}
