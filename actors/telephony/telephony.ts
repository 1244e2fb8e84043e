/** Owns the telephone edge's port to the rest: routing, places, ways out, the guard against fraud, and who looks after a trunk. */
import type { Bus } from '../../model/bus.ts'
import type { Clock } from '../../model/clock.ts'
import type { AccountId, CallId, NewId, NodeId, WorkerId } from '../../model/ids.ts'
import type { Log } from '../../model/log.ts'
import {
  leftDialogsSubject,
  type Dialogs,
  type RefusedArrival,
  type Telephony,
  type TrunkAccess,
} from '../../model/telephony.ts'
import { createRecent } from '../../net/recent.ts'
import type { SecretBox } from '../../store/secret-box.ts'
import { createOneQuery } from '../../store/one-query.ts'
import { findRouteFacts, type RouteFacts, type RouteQuestion } from '../../store/route-facts.ts'
import type { Sql } from '../../store/sql.ts'
import { findTrunkRow, listOutboundTrunks, noteCarrier, takeDial } from '../../store/telephony.ts'
import { isTrunkAddress, learnTrunkAddresses } from '../../store/trunk-addresses.ts'
import { noteRealm } from '../../store/trunk-realms.ts'
import { endTrunkTurns, takeTrunkTurns, writeTrunkState } from '../../store/trunk-states.ts'
import type { CallRouter } from '../node/call-router.ts'
import type { NodePeers } from '../node/node-beats.ts'
import { createArrivalsWhileAway } from './arrivals-while-away.ts'
import { createDialogBook, type DialogBook } from './dialog-book.ts'
import { createLadderBook } from './ladder-book.ts'
import { createDialogHeir } from './dialog-heir.ts'
import type { DestinationPolicy } from './destination-policy.ts'
import { findRoute } from './find-route.ts'
import { createReceiver, type Birthplace, type ReceiveDeps } from './receive-call.ts'
import { createRefusalLog } from './refusal-log.ts'
import { accessOf, accessOfAll } from './trunk-access.ts'

export type TelephonyDeps = Pick<ReceiveDeps, 'wakeDeliveries'> & {
  readonly sql: Sql
  readonly bus: Bus
  readonly clock: Clock
  readonly log: Log
  readonly box: SecretBox
  readonly newId: NewId
  readonly nodeId: NodeId
  readonly router: CallRouter & Birthplace
  readonly refusalOf: DestinationPolicy
  /** Absent: no other process shares the bus. */
  readonly peers?: NodePeers
}

export type TelephonySide = Telephony & {
  /** What was refused until now has been written down. */
  written(): Promise<void>
  /** What is known for the time that the database is away is as the database has it now. */
  refreshed(): Promise<void>
  /** Gives the trunks of this node away. Idempotent. */
  close(): Promise<void>
}

const turnLength = 60_000
/** A node asks again early enough: its clock may differ, and the way to the database takes time. */
const turnMargin = 5_000
/** Calls that are stored and have not begun; one of more is found out about when it begins. */
const maxUnbegun = 1_000
/** Of one node; what is more is for other nodes. */
const maxKept = 1_000

export function createTelephony(deps: TelephonyDeps): TelephonySide {
  const { sql, clock, log, nodeId } = deps
  const refusals = createRefusalLog(deps)
  const book = createDialogBook(deps)
  const ladders = createLadderBook(deps)
  const keyOf = (asked: RouteQuestion): string => JSON.stringify(asked)
  const findFacts = createOneQuery<RouteQuestion, RouteFacts>({
    keyOf,
    async query(questions) {
      const facts = await findRouteFacts(sql, questions)
      return new Map(questions.map((asked, index) => [keyOf(asked), facts[index] as RouteFacts]))
    },
    maxQuestions: 40,
    clock,
  })
  const unasked = createRecent<true>(maxUnbegun)
  const arrivals = createArrivalsWhileAway(deps, {
    route: (arrival) => findRoute({ ...deps, findFacts }, arrival),
    receive: createReceiver({ ...deps, unasked: (callId) => unasked.set(callId, true) }),
  })
  let closing: Promise<void> | null = null
  let taking: Promise<unknown> = Promise.resolve()

  async function end(): Promise<void> {
    await book.close()
    await ladders.close()
    await arrivals.close()
    await refusals.close()
    // What is being taken now would stay taken.
    await taking.catch(() => null) // Whoever asked was told.
    await endTrunkTurns(sql, nodeId).catch((error: unknown) => log.error('trunks could not be given away', { error }))
  }

  return {
    dialogs: {
      ...dialogsOf(book, deps.router),
      inherit: (heir) => createDialogHeir({ ...deps, book }, heir),
      haveHeirs: () => haveHeirs(deps.bus),
      async leave(callIds) {
        await book.leave(callIds)
        deps.bus.publish(leftDialogsSubject, nothing)
      },
    },
    knows: (address) => isTrunkAddress(sql, address),
    route: arrivals.route,
    receive: arrivals.receive,
    async begin(callId) {
      const isUnasked = unasked.get(callId)
      unasked.delete(callId)
      const hasBegun = await deps.router.route(callId, { type: 'client_connected', ...(isUnasked && { isUnasked }) })
      arrivals.begun(callId)
      return hasBegun
    },
    waysOut: (accountId, workerId, callId) => findWaysOut(deps, { accountId, workerId, callId }),
    refusalOf: deps.refusalOf,
    mayDial: (callId, epoch) => takeDial(sql, { callId, epoch, now: clock.now() }),
    carriedBy: (callId, trunkId) => noteCarrier(sql, callId, trunkId),
    refused: (refusal) => refusals.note(refusal),
    ladder: ladders.add,
    async keep() {
      // Before the question: the turn ends by the clock of the database, which starts it later.
      const until = clock.now() + turnLength - turnMargin
      if (closing) return { trunks: [], until }
      const taken = takeTrunkTurns(sql, { nodeId, length: turnLength, atMost: maxKept })
      taking = taken
      const trunks = await taken
      if (trunks.length === maxKept) log.warn('this node looks after as many trunks as it may', { trunks: maxKept })
      return { trunks: accessOfAll(deps, trunks), until }
    },
    async trunkOf(accountId, trunkId) {
      const row = await findTrunkRow(sql, accountId, trunkId)
      return row && accessOf(deps, row)
    },
    found: (trunkId, source) => learnTrunkAddresses(sql, trunkId, { ...source, now: clock.now() }),
    learnRealm: (trunkId, news) => noteRealm(sql, trunkId, news, clock.now()),
    report: (trunkId, state) => writeTrunkState(sql, { nodeId, trunkId, state, now: clock.now() }),
    written: () => refusals.written(),
    refreshed: arrivals.refreshed,
    close: () => (closing ??= end()),
  }
}

const nothing = new Uint8Array()
/** Ms. */
const heirsAnswerWithin = 500

const haveHeirs = (bus: Bus): Promise<boolean> =>
  bus.request(leftDialogsSubject, nothing, { timeout: heirsAnswerWithin }).then(
    () => true,
    () => false, // None, or none that can be reached.
  )

/** The dialog of a call that the database does not know yet is written down behind it. */
function dialogsOf(book: DialogBook, router: Birthplace): Pick<Dialogs, 'held' | 'over'> {
  const waiting = new Set<CallId>()
  return {
    held(callId, ...dialog) {
      const written = router.written?.(callId)
      if (!written) return book.held(callId, ...dialog)
      waiting.add(callId)
      const note = (): void => void (waiting.delete(callId) && book.held(callId, ...dialog))
      written.then(note, () => waiting.delete(callId))
    },
    over(callId) {
      waiting.delete(callId)
      book.over(callId)
    },
  }
}

type Dialed = { readonly accountId: AccountId; readonly workerId: WorkerId; readonly callId: CallId }

async function findWaysOut(deps: TelephonyDeps, call: Dialed): Promise<readonly TrunkAccess[] | RefusedArrival> {
  const trunks = await listOutboundTrunks(deps.sql, { ...call, now: deps.clock.now() })
  const refused = { accountId: call.accountId, trunkId: null }
  if (trunks.length === 0) {
    const details =
      'No active trunk of the worker dials out with a gateway; see workerIds, direction and gateways of the trunks.'
    return { ...refused, reason: 'no_trunk', details, sipStatus: 404 }
  }
  if (trunks.some(({ showsOthers }) => showsOthers)) {
    const details =
      'The number that the call was to show belongs to another account by now; place the call again with another one.'
    return { ...refused, reason: 'number_of_another_account', details, sipStatus: 403 }
  }
  // The chosen one counted this call when it got its turn.
  const free = trunks.filter((trunk) => trunk.chosen || trunk.free)
  if (free.length > 0) return accessOfAll(deps, free)
  const names = trunks.map(({ name }) => `“${name}”`).join(', ')
  const details = `The trunks of the worker (${names}) carry as many calls as they may; see maxConcurrentCalls and maxCallsPerSecond.`
  return { ...refused, reason: 'trunk_at_capacity', details, sipStatus: 503 }
}
