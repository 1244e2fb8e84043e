/**
 * Owns how an inbound phone call is let in: the places of its account, its worker and its trunk, and its birth, in one transaction. Whoever is
 * full is busy (486), as a telephone is; who is too fast may try again (503), and a carrier does.
 */
import type { Clock } from '../../model/clock.ts'
import type { CallId, NewId, NodeId } from '../../model/ids.ts'
import type { InboundCall, RefusedArrival } from '../../model/telephony.ts'
import { addressGroupOf } from '../../net/addresses.ts'
import { countRunningCalls, countUnacknowledged } from '../../store/call-capacity.ts'
import type { Sql, Transaction } from '../../store/sql.ts'
import { findTrunkRoom, roomOf } from '../../store/trunk-room.ts'
import { holdWorker } from '../../store/workers.ts'
import { createInboundCall } from '../call/birth/create-inbound-call.ts'

export type ReceiveDeps = {
  readonly sql: Sql
  readonly clock: Clock
  readonly newId: NewId
  readonly nodeId: NodeId
  readonly wakeDeliveries: () => void
}

export async function receiveCall(deps: ReceiveDeps, call: InboundCall): Promise<{ callId: CallId } | RefusedArrival> {
  const { sql, clock, newId, nodeId } = deps
  const now = clock.now()
  const received = await sql.begin(
    async (tx) =>
      (await refusalOf(tx, call, now)) ?? { callId: await createInboundCall(tx, { ...call, nodeId, now, newId }) },
  )
  if ('callId' in received) deps.wakeDeliveries()
  return received
}

/** The caller proved a password since the route was found, and settings may have changed meanwhile. */
async function refusalOf(tx: Transaction, call: InboundCall, now: number): Promise<RefusedArrival | null> {
  const { route } = call
  const { accountId, id: trunkId, name } = route.trunk
  const refused = (reason: RefusedArrival['reason'], sipStatus: number, details: string): RefusedArrival => ({
    reason,
    details,
    sipStatus,
    accountId,
    trunkId,
  })
  const { limit, running, runningOfWorker } = await countRunningCalls(tx, accountId, route.workerId)
  const worker = await holdWorker(tx, accountId, route.workerId)
  const room = await findTrunkRoom(tx, trunkId, now)
  if (!worker?.isActive || !room)
    return refused('worker_inactive', 480, 'The worker or the trunk was switched off while the call came in.')
  if (running >= limit)
    return refused('account_at_capacity', 486, `The account has ${running} calls running, as many as it may.`)
  const unacknowledged = await unacknowledgedOf(tx, call, limit)
  if (unacknowledged !== null) return refused('too_many_unacknowledged', 503, unacknowledged)
  const ofWorker = worker.maxConcurrentCalls ?? Infinity
  if (runningOfWorker >= ofWorker)
    return refused(
      'worker_at_capacity',
      486,
      `The worker “${worker.name}” has ${runningOfWorker} calls running; its maxConcurrentCalls is ${ofWorker}.`,
    )
  if (room.carried >= (room.maxConcurrentCalls ?? Infinity))
    return refused(
      'trunk_at_capacity',
      486,
      `The trunk “${name}” carries ${room.carried} calls; its maxConcurrentCalls is ${room.maxConcurrentCalls}.`,
    )
  if (roomOf(room, now).count === 0)
    return refused(
      'too_many_calls_per_second',
      503,
      `The trunk “${name}” takes ${room.maxCallsPerSecond} calls a second (maxCallsPerSecond), and this was one more.`,
    )
  return null
}

/** Of an account's places: for others while a peer, or somebody in its name, lets calls hang. */
const shareOfOthers = 1 / 4

/** Null: there is room. */
async function unacknowledgedOf(
  tx: Transaction,
  { route, address }: InboundCall,
  limit: number,
): Promise<string | null> {
  const { accountId, id: trunkId, name } = route.trunk
  const most = limit - Math.floor(limit * shareOfOthers)
  const arrivedFrom = addressGroupOf(address)
  const { ofTrunk, ofAddress } = await countUnacknowledged(tx, { accountId, trunkId, arrivedFrom })
  if (Math.max(ofTrunk, ofAddress) < most) return null
  const whose = ofAddress >= most ? `from ${address}` : `of the trunk “${name}”`
  return `${Math.max(ofTrunk, ofAddress)} calls ${whose} ring or wait for their ACK, as many as may at once.`
}
