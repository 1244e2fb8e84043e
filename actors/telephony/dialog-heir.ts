/**
 * Owns what becomes of the phone calls of an edge that died: their dialogs come to one of the edges that are left. It asks their telephones over to itself,
 * and the calls go on; who does not come is told that its call is over, and it ends. A lease that ran out is a suspicion only, and so are connections that
 * ended: the leg itself is asked on the bus, so that a process that cannot reach the database, and goes on with its calls, keeps them.
 */
import type { Bus } from '../../model/bus.ts'
import { pause, type Cancel, type Clock } from '../../model/clock.ts'
import type { CallId, NodeId } from '../../model/ids.ts'
import type { Log } from '../../model/log.ts'
import {
  leftDialogsSubject,
  type DialogHeir,
  type InheritedDialog,
  type TakenCall,
  type TrunkAccess,
} from '../../model/telephony.ts'
import { listAlive } from '../../store/call-steps.ts'
import { leaseLength } from '../../store/nodes.ts'
import {
  inheritDialogs,
  listOrphanedDialogs,
  nobody as leftToAnyone,
  othersHaveDialogs,
  type InheritedDialog as Inherited,
  type OrphanedDialog,
} from '../../store/sip-dialogs.ts'
import type { Sql } from '../../store/sql.ts'
import { findTrunkRow } from '../../store/telephony.ts'
import type { CallFact } from '../call/call-event.ts'
import type { CallRouter } from '../node/call-router.ts'
import { noPeers, type NodePeers } from '../node/node-beats.ts'
import { reachLeg } from '../node/leg-link.ts'
import { createRounds } from '../rounds/rounds.ts'
import type { DialogBook } from './dialog-book.ts'
import { accessOfAll, type TrunkAccessDeps } from './trunk-access.ts'

export type DialogHeirDeps = TrunkAccessDeps & {
  readonly sql: Sql
  readonly bus: Bus
  readonly clock: Clock
  readonly nodeId: NodeId
  readonly log: Log
  readonly router: CallRouter
  readonly book: Pick<DialogBook, 'inherited' | 'over'>
  /** Absent, or none: no other process shares the bus, and those that may have died did so before this one began. */
  readonly peers?: NodePeers
  /** Ms that never jump. */
  readonly now?: () => number
}

/** Ms between two looks; and where somebody has just fallen silent, or is about to be taken for dead: their callers hear nothing meanwhile. */
const lookEvery = 1_000
const lookSoon = 200
/** Of one look. */
const mostAtOnce = 100
/** Ms from when a node is first seen without a lease. */
const settlesIn = 800
/** Of one that has no connection any more: one that only lost them both at once has them again by then, or not before long. */
const endedSettlesIn = 150
/** Ms after a look that failed: the others come back from the same outage, each in its time. */
const afterOutage = 5_000
/** Ms. */
const legAnswersWithin = 1_000
/** Of a node whose legs are subscribed and do not answer: it stands still, and may go on. */
const stillFor = 30_000
/** Of a call whose owner is gone, too: somebody takes it over meanwhile. */
const routeTries = 10
const routeEvery = 1_000

export function createDialogHeir(deps: DialogHeirDeps, heir: DialogHeir) {
  const { sql, bus, clock, log, nodeId, peers = noPeers, now = () => performance.now() } = deps
  const closing = new AbortController()
  const suspects = createSuspects(now)
  const carry = createCarrying(deps, heir, closing.signal)
  const began = now()
  /** Of who is alone: a lease of before may run when it begins. */
  const isDone = async (): Promise<boolean> =>
    peers === noPeers && now() - began > leaseLength + settlesIn && !(await othersHaveDialogs(sql, nodeId))

  const look = async (): Promise<boolean> => {
    try {
      const sightings = peers.sightings()
      const orphans = await listOrphanedDialogs(sql, { nodeId, sightings, limit: mostAtOnce })
      const ripe = suspects.ripe(orphans)
      if (suspects.expects(sightings.silent) || ripe.length < orphans.length) soon()
      const dead = await deadOf(deps, ripe)
      if (orphans.length === 0 && (await isDone())) void rounds.close()
      if (dead.length === 0) return false
      const inherited = await inheritDialogs(sql, nodeId, dead)
      for (const dialog of inherited) carry(dialog, dead)
      return orphans.length === mostAtOnce && inherited.length > 0
    } catch (error) {
      suspects.outage()
      throw error
    }
  }
  let cancelSoon: Cancel = () => undefined
  const soon = (): void => {
    cancelSoon()
    if (!closing.signal.aborted) cancelSoon = clock.after(lookSoon, () => rounds.wake())
  }
  const rounds = createRounds({ clock, log, every: lookEvery, look })
  const watching = peers.watch({ silence: () => rounds.wake(), link: () => undefined })
  const left = bus.subscribe(leftDialogsSubject, (message) => {
    if (!heir.mayAsk()) return
    message.respond(message.payload)
    rounds.wake()
  })
  rounds.wake()
  return {
    /** Rows whose peers have not answered yet are for the next heir; nobody waits for them. */
    async close(): Promise<void> {
      closing.abort()
      cancelSoon()
      left.close()
      watching.close()
      await rounds.close()
    },
  }
}

/** What becomes of a dialog that this node has inherited. */
function createCarrying(deps: DialogHeirDeps, heir: DialogHeir, signal: AbortSignal) {
  const { log, book } = deps
  const end = async (callId: CallId, found: DeadLeg | undefined, dialog: Promise<InheritedDialog>): Promise<void> => {
    log.warn('the edge of a call is gone: its peer is told', { callId })
    const telling = dialog.then(heir.tell).catch((error: unknown) => {
      log.error('the peer of a dead edge could not be told', { callId, error })
    })
    await Promise.all([telling, endCall(deps, { callId, leftFor: found?.leftFor ?? null }, signal)])
    if (!signal.aborted) book.over(callId)
  }
  return (dialog: Inherited, dead: readonly DeadLeg[]): void => {
    const { callId } = dialog
    book.inherited(callId)
    const found = dead.find((one) => one.callId === callId)
    const inherited = withTrunk(deps, dialog)
    const asking = found?.isGone && dialog.isTalking ? inherited.then(heir.askOver) : nobody
    void asking
      .catch(() => null) // Whoever tells finds the same.
      .then((taken) => (taken ? goOn(deps, { callId, taken }, signal) : end(callId, found, inherited)))
  }
}

/** Nodes without a lease, and since when. */
function createSuspects(now: () => number) {
  const since = new Map<NodeId, number>()
  const silentSince = new Map<NodeId, number>()
  let notBefore = -Infinity
  return {
    /** Their leases may be over at any moment. */
    expects(silent: readonly NodeId[]): boolean {
      for (const id of silentSince.keys()) if (!silent.includes(id)) silentSince.delete(id)
      for (const id of silent) if (!silentSince.has(id)) silentSince.set(id, now())
      return silent.some((id) => now() - (silentSince.get(id) ?? -Infinity) < leaseLength)
    },
    ripe(orphans: readonly OrphanedDialog[]): OrphanedDialog[] {
      const owners = new Set(orphans.map(({ owner }) => owner))
      for (const owner of since.keys()) if (!owners.has(owner)) since.delete(owner)
      for (const owner of owners) if (!since.has(owner)) since.set(owner, now())
      if (now() < notBefore) return []
      const isRipe = ({ owner, hasEnded }: OrphanedDialog): boolean =>
        owner === leftToAnyone || now() - (since.get(owner) ?? Infinity) >= (hasEnded ? endedSettlesIn : settlesIn)
      return orphans.filter(isRipe)
    },
    outage() {
      since.clear()
      notBefore = now() + afterOutage
    },
  }
}

const nobody: Promise<TakenCall | null> = Promise.resolve(null)

/** `isGone`: nobody hears it. One that is only silent may wake up again, and a call has no two legs. */
type DeadLeg = OrphanedDialog & { readonly isGone: boolean }

/** Those whose legs are not there. */
async function deadOf({ bus }: DialogHeirDeps, orphans: readonly OrphanedDialog[]): Promise<DeadLeg[]> {
  const asked = await Promise.all(
    orphans.map(async (orphan): Promise<DeadLeg[]> => {
      // The lowest epoch there is: the leg takes nobody for its actor by it, and answers all the same.
      const { type } = await reachLeg(bus, orphan.callId, { type: 'ping', epoch: -1 }, legAnswersWithin)
      const isDead = type === 'gone' || (type === 'silent' && (orphan.leftFor ?? 0) > stillFor)
      return isDead ? [{ ...orphan, isGone: type === 'gone' }] : []
    }),
  )
  return asked.flat()
}

async function withTrunk(deps: DialogHeirDeps, inherited: Inherited): Promise<InheritedDialog> {
  const { callId, dialog, heirs, accountId, trunkId } = inherited
  const row = await findTrunkRow(deps.sql, accountId, trunkId)
  const [trunk = null]: readonly (TrunkAccess | null)[] = accessOfAll(deps, row ? [row] : [])
  return { callId, dialog, heirs, trunk }
}

/** The talk goes on with the leg that is here now; one that nobody goes on with is over. */
async function goOn(
  deps: DialogHeirDeps,
  { callId, taken }: { readonly callId: CallId; readonly taken: TakenCall },
  signal: AbortSignal,
): Promise<void> {
  try {
    await taken.isThere
    if (await routeFact(deps, callId, { type: 'leg_returned' }, signal)) return
  } catch (error) {
    deps.log.error('a call whose telephone has come over does not go on', { callId, error })
  }
  taken.drop()
}

/** Its actor may be anywhere, or gone with the edge: then the one that takes it over is told. */
async function endCall(
  deps: DialogHeirDeps,
  { callId, leftFor }: { readonly callId: CallId; readonly leftFor: number | null },
  signal: AbortSignal,
): Promise<void> {
  const fact = {
    type: 'leg_disconnected',
    cause: 'failed',
    details: 'the process that carried the call is gone',
    ...(leftFor !== null && { silentFor: leftFor }),
  } as const
  await routeFact(deps, callId, fact, signal)
}

/** False: the call is over, or nobody takes it. */
async function routeFact(
  { sql, router, clock, log }: DialogHeirDeps,
  callId: CallId,
  fact: CallFact,
  signal: AbortSignal,
): Promise<boolean> {
  for (let tries = 0; tries < routeTries; tries++) {
    try {
      if (await router.route(callId, fact)) return true
      if ((await listAlive(sql, [callId])).length === 0) return false
    } catch (error) {
      log.warn('a call could not be told what became of its leg', { callId, fact: fact.type, error })
    }
    if (!(await pause(clock, routeEvery, signal))) return false
  }
  return false
}
