/**
 * Owns what room there is for phone calls that arrive: of their account, their workers and their trunks, read for any number of calls at once by who
 * holds the row of the account (call-capacity.ts).
 */
import type { EventType } from '../model/events.ts'
import type { AccountId, SubscriptionId, TrunkId, WorkerId } from '../model/ids.ts'
import { lockPlaces, runs } from './call-capacity.ts'
import type { Transaction } from './sql.ts'
import { trunkRoomColumns, type TrunkRoom } from './trunk-room.ts'
import type { Worker } from './workers.ts'

/** Of a worker: what arriving calls need. */
export type ArrivalWorker = Pick<Worker, 'name' | 'isActive' | 'maxConcurrentCalls'>

export type ArrivalRoom = {
  /** Of the account. */
  readonly limit: number
  readonly running: number
  readonly runningOf: ReadonlyMap<WorkerId, number>
  /** Inbound phone calls that ring, or were answered and have no ACK yet: by their trunk, and by their address. */
  readonly unacknowledgedOf: ReadonlyMap<string, number>
  /** One that is not here is not there; one that is stays until the transaction ends. */
  readonly workers: ReadonlyMap<WorkerId, ArrivalWorker>
  /** One that is not here is switched off, or deleted; one that is stays until the transaction ends. */
  readonly trunks: ReadonlyMap<TrunkId, TrunkRoom>
  /** Who takes `toldType` of each worker; they stay until the transaction ends. */
  readonly takersOf: ReadonlyMap<WorkerId, readonly SubscriptionId[]>
  /** Somebody is asked call.worker_request of their calls. */
  readonly asking: ReadonlySet<WorkerId>
}

export type Arriving = {
  readonly workerIds: readonly WorkerId[]
  readonly trunkIds: readonly TrunkId[]
  /** As addressGroupOf says them. */
  readonly arrivedFrom: readonly string[]
  /** What is told of them. */
  readonly toldType: EventType
  readonly now: number
}

/** Asked in one flight, the lock first: the second statement sees what was committed before the first one was done. */
export async function readArrivalRoom(tx: Transaction, accountId: AccountId, arriving: Arriving): Promise<ArrivalRoom> {
  const [{ limit }, [row]] = await Promise.all([lockPlaces(tx, accountId), readRoom(tx, accountId, arriving)])
  const { running = 0, ofWorkers, ofTrunks, ofAddresses, workers, trunks, takers } = row ?? {}
  const takersOf = (id: WorkerId, type: EventType) =>
    (takers ?? []).filter((taker) => [null, id].includes(taker.workerId) && [type, '*'].includes(taker.eventType))
  return {
    limit,
    running,
    runningOf: new Map(Object.entries(ofWorkers ?? {}) as [WorkerId, number][]),
    unacknowledgedOf: new Map([...Object.entries(ofTrunks ?? {}), ...Object.entries(ofAddresses ?? {})]),
    workers: new Map((workers ?? []).map((worker) => [worker.id, worker])),
    trunks: new Map((trunks ?? []).map((trunk) => [trunk.id, trunk])),
    takersOf: new Map(arriving.workerIds.map((id) => [id, takersOf(id, arriving.toldType).map((taker) => taker.id)])),
    asking: new Set(arriving.workerIds.filter((id) => takersOf(id, askedType).length > 0)),
  }
}

type Row = {
  readonly running: number
  readonly ofWorkers: Record<WorkerId, number> | null
  readonly ofTrunks: Record<TrunkId, number> | null
  readonly ofAddresses: Record<string, number> | null
  readonly workers: readonly (ArrivalWorker & { readonly id: WorkerId })[] | null
  readonly trunks: readonly (TrunkRoom & { readonly id: TrunkId })[] | null
  readonly takers: readonly TakerRow[] | null
}
type TakerRow = { readonly id: SubscriptionId; readonly workerId: WorkerId | null; readonly eventType: EventType | '*' }

const askedType: EventType = 'call.worker_request'

/** What must not go before the transaction ends is held in the order of its ids: of two transactions that hold several rows none waits for the other. */
const readRoom = (
  tx: Transaction,
  accountId: AccountId,
  { workerIds, trunkIds, arrivedFrom, toldType, now }: Arriving,
) => tx<Row[]>`
  with running as materialized (
    select worker_id, trunk_id, arrived_from,
      direction = 'inbound' and transport = 'sip_trunk' and progress <> 'in_progress' as is_unacknowledged
    from calls where account_id = ${accountId} and ${runs(tx)}
  ), worker as materialized (
    select id, name, is_active, max_concurrent_calls from workers
    where account_id = ${accountId} and id = any(${[...workerIds]}::text[]) and deleted_at is null order by id for key share
  ), trunk as materialized (
    select id, ${trunkRoomColumns(tx, now)} from trunks
    where id = any(${[...trunkIds]}::text[]) and is_active order by id for key share
  ), taker as materialized (
    select id, worker_id, event_type from webhook_subscriptions
    where account_id = ${accountId} and enabled and (worker_id is null or worker_id = any(${[...workerIds]}::text[]))
      and event_type = any(${[toldType, askedType, '*']}::text[])
    order by id for key share)
  select (select count(*)::int from running) as running,
    (select json_object_agg(worker_id, calls) from (
      select worker_id, count(*) as calls from running
      where worker_id = any(${[...workerIds]}::text[]) group by worker_id) counted) as of_workers,
    (select json_object_agg(trunk_id, calls) from (
      select trunk_id, count(*) as calls from running
      where is_unacknowledged and trunk_id = any(${[...trunkIds]}::text[]) group by trunk_id) counted) as of_trunks,
    (select json_object_agg(arrived_from, calls) from (
      select arrived_from, count(*) as calls from running
      where is_unacknowledged and arrived_from = any(${[...arrivedFrom]}::text[])
      group by arrived_from) counted) as of_addresses,
    (select json_agg(json_build_object('id', id, 'name', name, 'isActive', is_active,
      'maxConcurrentCalls', max_concurrent_calls)) from worker) as workers,
    (select json_agg(json_build_object('id', id, 'maxConcurrentCalls', max_concurrent_calls,
      'maxCallsPerSecond', max_calls_per_second, 'carried', carried, 'lately', lately)) from trunk) as trunks,
    (select json_agg(json_build_object('id', id, 'workerId', worker_id, 'eventType', event_type) order by id) from taker) as takers`
