/**
 * Owns what becomes of the phone calls of an edge that died: their dialogs come to one of the edges that are left, which tells the peers, and the
 * calls end. A lease that ran out is a suspicion only: the leg itself is asked on the bus, so that a process that cannot reach the database, and goes on
 * with its calls, keeps them.
 */
import type { Bus } from '../../model/bus.ts'
import { pause, type Clock } from '../../model/clock.ts'
import type { CallId, NodeId } from '../../model/ids.ts'
import type { Log } from '../../model/log.ts'
import type { Dialogs, InheritedDialog, TrunkAccess } from '../../model/telephony.ts'
import { listAlive } from '../../store/call-steps.ts'
import { leaseLength } from '../../store/nodes.ts'
import {
  inheritDialogs,
  listOrphanedDialogs,
  othersHaveDialogs,
  type InheritedDialog as Inherited,
  type OrphanedDialog,
} from '../../store/sip-dialogs.ts'
import type { Sql } from '../../store/sql.ts'
import { findTrunkRow } from '../../store/telephony.ts'
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

/** Ms between two looks. */
const lookEvery = 1_000
/** Of one look. */
const mostAtOnce = 100
/** Ms from when a node is first seen without a lease. */
const settlesIn = 800
/** Ms after a look that failed: the others come back from the same outage, each in its time. */
const afterOutage = 5_000
/** Ms. */
const legAnswersWithin = 1_000
/** Of a node whose legs are subscribed and do not answer: it stands still, and may go on. */
const stillFor = 30_000
/** Of a call whose owner is gone, too: somebody takes it over meanwhile. */
const endTries = 10
const endEvery = 1_000

export function createDialogHeir(deps: DialogHeirDeps, tell: Parameters<Dialogs['inherit']>[0]) {
  const { sql, clock, log, nodeId, peers = noPeers, now = () => performance.now() } = deps
  const closing = new AbortController()
  const suspects = createSuspects(now)
  const began = now()
  /** Of who is alone: a lease of before may run when it begins. */
  const isDone = async (): Promise<boolean> =>
    peers === noPeers && now() - began > leaseLength + settlesIn && !(await othersHaveDialogs(sql, nodeId))

  const look = async (): Promise<boolean> => {
    try {
      const orphans = await listOrphanedDialogs(sql, { nodeId, sightings: peers.sightings(), limit: mostAtOnce })
      const dead = await deadOf(deps, suspects.ripe(orphans))
      if (orphans.length === 0 && (await isDone())) void rounds.close()
      if (dead.length === 0) return false
      const inherited = await inheritDialogs(sql, nodeId, dead)
      for (const dialog of inherited)
        carry(dialog, dead.find(({ callId }) => callId === dialog.callId)?.leftFor ?? null)
      return orphans.length === mostAtOnce && inherited.length > 0
    } catch (error) {
      suspects.outage()
      throw error
    }
  }
  const carry = (dialog: Inherited, leftFor: number | null): void => {
    deps.book.inherited(dialog.callId)
    log.warn('the edge of a call is gone: its peer is told', { callId: dialog.callId })
    const ended = endCall(deps, { callId: dialog.callId, leftFor }, closing.signal)
    void Promise.all([told(dialog), ended]).then(() => closing.signal.aborted || deps.book.over(dialog.callId))
  }
  const told = async (dialog: Inherited): Promise<void> => {
    try {
      await tell(await withTrunk(deps, dialog))
    } catch (error) {
      log.error('the peer of a dead edge could not be told', { callId: dialog.callId, error })
    }
  }
  const rounds = createRounds({ clock, log, every: lookEvery, look })
  const watching = peers.watch({ silence: () => rounds.wake(), link: () => undefined })
  rounds.wake()
  return {
    /** Rows whose peers have not answered yet are for the next heir; nobody waits for them. */
    async close(): Promise<void> {
      closing.abort()
      watching.close()
      await rounds.close()
    },
  }
}

/** Nodes without a lease, and since when. */
function createSuspects(now: () => number) {
  const since = new Map<NodeId, number>()
  let notBefore = -Infinity
  return {
    ripe(orphans: readonly OrphanedDialog[]): OrphanedDialog[] {
      const owners = new Set(orphans.map(({ owner }) => owner))
      for (const owner of since.keys()) if (!owners.has(owner)) since.delete(owner)
      for (const owner of owners) if (!since.has(owner)) since.set(owner, now())
      if (now() < notBefore) return []
      return orphans.filter(({ owner }) => now() - (since.get(owner) ?? Infinity) >= settlesIn)
    },
    outage() {
      since.clear()
      notBefore = now() + afterOutage
    },
  }
}

/** Those whose legs are not there. */
async function deadOf({ bus }: DialogHeirDeps, orphans: readonly OrphanedDialog[]): Promise<OrphanedDialog[]> {
  const asked = await Promise.all(
    orphans.map(async (orphan) => {
      // The lowest epoch there is: the leg takes nobody for its actor by it, and answers all the same.
      const { type } = await reachLeg(bus, orphan.callId, { type: 'ping', epoch: -1 }, legAnswersWithin)
      return type === 'gone' || (type === 'silent' && (orphan.leftFor ?? 0) > stillFor)
    }),
  )
  return orphans.filter((_, index) => asked[index])
}

async function withTrunk(deps: DialogHeirDeps, inherited: Inherited): Promise<InheritedDialog> {
  const { callId, dialog, heirs, accountId, trunkId } = inherited
  const row = await findTrunkRow(deps.sql, accountId, trunkId)
  const [trunk = null]: readonly (TrunkAccess | null)[] = accessOfAll(deps, row ? [row] : [])
  return { callId, dialog, heirs, trunk }
}

/** Its actor may be anywhere, or gone with the edge: then the one that takes it over is told. */
async function endCall(
  { sql, router, clock, log }: DialogHeirDeps,
  { callId, leftFor }: { readonly callId: CallId; readonly leftFor: number | null },
  signal: AbortSignal,
): Promise<void> {
  const fact = {
    type: 'leg_disconnected',
    cause: 'failed',
    details: 'the process that carried the call is gone',
    ...(leftFor !== null && { silentFor: leftFor }),
  } as const
  for (let tries = 0; tries < endTries; tries++) {
    try {
      if (await router.route(callId, fact)) return
      if ((await listAlive(sql, [callId])).length === 0) return
    } catch (error) {
      log.warn('a call without a leg could not be ended', { callId, error })
    }
    if (!(await pause(clock, endEvery, signal))) return
  }
}
