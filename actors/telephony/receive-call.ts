/**
 * Owns how an inbound phone call is let in: the places of its account, its worker and its trunk, and its birth, in one transaction. Calls of one account
 * that arrive together are let in together, one after the other. Whoever is full is busy (486), as a telephone is; who is too fast may try again (503),
 * and a carrier does.
 */
import type { Clock } from '../../model/clock.ts'
import type { CallId, NewId, NodeId } from '../../model/ids.ts'
import { loadRefusalOf } from '../../model/load-gate.ts'
import type { InboundCall, RefusedArrival } from '../../model/telephony.ts'
import { addressGroupOf } from '../../net/addresses.ts'
import { readArrivalRoom, type ArrivalRoom } from '../../store/arrival-room.ts'
import type { Claim } from '../../store/call-steps.ts'
import type { Sql, Transaction } from '../../store/sql.ts'
import { createTogether } from '../../store/together.ts'
import { roomOf } from '../../store/trunk-room.ts'
import { createInboundCalls, type BornCall, type InboundBirth } from '../call/birth/create-inbound-call.ts'
import type { Born } from '../node/switchboard.ts'
import { findKnownPersons } from '../call/birth/known-person.ts'
import { toldOfBirth } from '../call/birth/write-birth.ts'

export type Birthplace = {
  /** The call is written, and this node's by this claim. Absent: it is claimed when it begins. */
  born?(callId: CallId, claim: Claim): void
  /** The call is this node's although the database does not know it. Absent: nothing can be kept here until it does. */
  bear?(birth: Born): Promise<void>
  /** Resolves when the database knows the call. Null: it does. */
  written?(callId: CallId): Promise<void> | null
  /** Resolves when no actor of this node has the call. */
  gone?(callId: CallId): Promise<void>
  /** Of a process that runs no calls: the node whose they are written to be, and that has yet to claim them; null: nobody runs any. */
  birthplace?(): NodeId | null
}

/** `ids`: that it gets; absent: new ones. */
export type IdentifiedCall = InboundCall & Pick<InboundBirth, 'ids'>

export type ReceiveDeps = {
  readonly sql: Sql
  readonly clock: Clock
  readonly newId: NewId
  readonly nodeId: NodeId
  /** So many deliveries have been written. */
  readonly wakeDeliveries: (written: number) => void
  readonly router: Birthplace
  /** Nobody is to be asked about the call before it begins. */
  unasked(callId: CallId): void
}

type Admitted = {
  readonly callId: CallId
  readonly claim: Claim
  readonly written: number
  readonly isUnasked: boolean
}
type Received = Admitted | RefusedArrival

/** In one transaction: the row of the account is locked so long. */
const mostTogether = 40
/** Real ms from the beginning of one to that of the next, where many calls arrive. */
const pace = 20

export function createReceiver(
  deps: ReceiveDeps,
): (call: IdentifiedCall) => Promise<{ callId: CallId } | RefusedArrival> {
  const receive = createTogether<IdentifiedCall, Received>({
    keyOf: ({ route }) => route.trunk.accountId,
    work: (calls) => deps.sql.begin((tx) => receiveAll(deps, tx, calls)) as Promise<Received[]>,
    most: mostTogether,
    pace,
  })
  return async (call) => {
    const received = await receive(call)
    if (!('callId' in received)) return received
    const { callId, claim, written, isUnasked } = received
    deps.router.born?.(callId, claim)
    if (isUnasked) deps.unasked(callId)
    deps.wakeDeliveries(written)
    return { callId }
  }
}

/** All of one account. */
async function receiveAll(deps: ReceiveDeps, tx: Transaction, calls: readonly IdentifiedCall[]): Promise<Received[]> {
  const { clock, newId, router } = deps
  const nodeId = router.birthplace ? router.birthplace() : deps.nodeId
  if (nodeId === null) return calls.map(nobodyRunsIt)
  const now = clock.now()
  const [accountId] = calls.map(({ route }) => route.trunk.accountId)
  if (accountId === undefined) return []
  const [room, persons] = await Promise.all([
    readArrivalRoom(tx, accountId, {
      workerIds: [...new Set(calls.map(({ route }) => route.workerId))],
      trunkIds: [...new Set(calls.map(({ route }) => route.trunk.id))],
      arrivedFrom: [...new Set(calls.map(({ address }) => addressGroupOf(address)))],
      toldType: toldOfBirth,
      now,
    }),
    findKnownPersons(
      tx,
      accountId,
      calls.map(({ fromNumber }) => fromNumber),
    ),
  ])
  const places = createPlaces(room, now)
  const of = ({ route }: InboundCall) => room.takersOf.get(route.workerId) ?? []
  const judged = calls.map((call, index) => {
    return { call: { ...call, known: persons[index]! }, refused: places.take(call) }
  })
  const admitted = judged.flatMap(({ call, refused }) => (refused ? [] : [{ ...call, nodeId, now, newId }]))
  const born: readonly BornCall[] = await createInboundCalls(tx, admitted, {
    claims: router.birthplace === undefined,
    takersOf: of,
  })
  const left = born.values()
  return judged.map(({ call, refused }): Received => {
    if (refused) return refused
    const isUnasked = !room.asking.has(call.route.workerId)
    return { ...(left.next().value as BornCall), written: of(call).length, isUnasked }
  })
}

/** Its node would live, and nobody would find the call. */
const nobodyRunsIt = ({ route }: InboundCall): RefusedArrival => {
  const { details, retryAfterSeconds } = loadRefusalOf('nodes')
  const { accountId, id: trunkId } = route.trunk
  return { reason: 'node_overloaded', details, sipStatus: 503, accountId, trunkId, retryAfterSeconds }
}

type Places = {
  /** Null: the call has its place, and the next one finds one less. */
  take(call: InboundCall): RefusedArrival | null
}

/** The caller proved a password since the route was found, and settings may have changed meanwhile. */
function createPlaces(room: ArrivalRoom, now: number): Places {
  let { running } = room
  const runningOf = new Map(room.runningOf)
  const unacknowledgedOf = new Map(room.unacknowledgedOf)
  const trunks = new Map(room.trunks)
  const refusalOf = (call: InboundCall): RefusedArrival | null => {
    const { route, address } = call
    const { accountId, id: trunkId, name } = route.trunk
    const refused = (reason: RefusedArrival['reason'], sipStatus: number, details: string): RefusedArrival => ({
      reason,
      details,
      sipStatus,
      accountId,
      trunkId,
    })
    const worker = room.workers.get(route.workerId)
    const trunk = trunks.get(trunkId)
    if (!worker?.isActive || !trunk)
      return refused('worker_inactive', 480, 'The worker or the trunk was switched off while the call came in.')
    if (running >= room.limit)
      return refused('account_at_capacity', 486, `The account has ${running} calls running, as many as it may.`)
    const ofTrunk = unacknowledgedOf.get(trunkId) ?? 0
    const ofAddress = unacknowledgedOf.get(addressGroupOf(address)) ?? 0
    const unacknowledged = unacknowledgedWords({ name, address, ofTrunk, ofAddress, limit: room.limit })
    if (unacknowledged !== null) return refused('too_many_unacknowledged', 503, unacknowledged)
    const [runningOfWorker, ofWorker] = [runningOf.get(route.workerId) ?? 0, worker.maxConcurrentCalls ?? Infinity]
    if (runningOfWorker >= ofWorker)
      return refused(
        'worker_at_capacity',
        486,
        `The worker “${worker.name}” has ${runningOfWorker} calls running; its maxConcurrentCalls is ${ofWorker}.`,
      )
    if (trunk.carried >= (trunk.maxConcurrentCalls ?? Infinity))
      return refused(
        'trunk_at_capacity',
        486,
        `The trunk “${name}” carries ${trunk.carried} calls; its maxConcurrentCalls is ${trunk.maxConcurrentCalls}.`,
      )
    if (roomOf(trunk, now).count === 0)
      return refused(
        'too_many_calls_per_second',
        503,
        `The trunk “${name}” takes ${trunk.maxCallsPerSecond} calls a second (maxCallsPerSecond), and this was one more.`,
      )
    return null
  }
  const count = ({ route, address }: InboundCall): void => {
    const [{ workerId }, { id: trunkId }, arrivedFrom] = [route, route.trunk, addressGroupOf(address)]
    running++
    runningOf.set(workerId, (runningOf.get(workerId) ?? 0) + 1)
    for (const from of [trunkId, arrivedFrom]) unacknowledgedOf.set(from, (unacknowledgedOf.get(from) ?? 0) + 1)
    const trunk = trunks.get(trunkId)
    if (trunk) trunks.set(trunkId, { ...trunk, carried: trunk.carried + 1, lately: [now, ...trunk.lately] })
  }
  return {
    take(call) {
      const refused = refusalOf(call)
      if (!refused) count(call)
      return refused
    },
  }
}

/** Of an account's places: for others while a peer, or somebody in its name, lets calls hang. */
const shareOfOthers = 1 / 4

type Unacknowledged = {
  readonly name: string
  readonly address: string
  readonly ofTrunk: number
  readonly ofAddress: number
  /** Of the account. */
  readonly limit: number
}

/** Null: there is room. */
function unacknowledgedWords({ name, address, ofTrunk, ofAddress, limit }: Unacknowledged): string | null {
  const most = limit - Math.floor(limit * shareOfOthers)
  if (Math.max(ofTrunk, ofAddress) < most) return null
  const whose = ofAddress >= most ? `from ${address}` : `of the trunk “${name}”`
  return `${Math.max(ofTrunk, ofAddress)} calls ${whose} ring or wait for their ACK, as many as may at once.`
}
