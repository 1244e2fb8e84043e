/**
 * Owns how an inbound phone call is let in: the places of its account, its worker and its trunk, and its birth, in one transaction. Whoever is
 * full is busy (486), as a telephone is; who is too fast may try again (503), and a carrier does.
 */
import type { Clock } from '../../model/clock.ts'
import type { CallId, NewId, NodeId } from '../../model/ids.ts'
import type { InboundCall, RefusedArrival } from '../../model/telephony.ts'
import { countRunningCalls } from '../../store/call-capacity.ts'
import type { Sql, Transaction } from '../../store/sql.ts'
import { findTrunkRoom, roomOf } from '../../store/trunk-room.ts'
import { findWorker } from '../../store/workers.ts'
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
async function refusalOf(tx: Transaction, { route }: InboundCall, now: number): Promise<RefusedArrival | null> {
  const { accountId, id: trunkId, name } = route.trunk
  const refused = (reason: RefusedArrival['reason'], sipStatus: number, details: string): RefusedArrival => ({
    reason,
    details,
    sipStatus,
    accountId,
    trunkId,
  })
  const { limit, running, runningOfWorker } = await countRunningCalls(tx, accountId, route.workerId)
  const worker = await findWorker(tx, accountId, route.workerId)
  const room = await findTrunkRoom(tx, trunkId, now)
  if (!worker?.isActive || !room)
    return refused('worker_inactive', 480, 'The worker or the trunk was switched off while the call came in.')
  if (running >= limit)
    return refused('account_at_capacity', 486, `The account has ${running} calls running, as many as it may.`)
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
