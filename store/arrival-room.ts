/**
 * Owns what room there is for phone calls that arrive: of their account, their workers and their trunks, read for any number of calls at once by who
 * holds the row of the account (call-capacity.ts).
 */
import type { AccountId, TrunkId, WorkerId } from '../model/ids.ts'
import { lockPlaces, runs } from './call-capacity.ts'
import type { Transaction } from './sql.ts'
import { findTrunkRoom, type TrunkRoom } from './trunk-room.ts'
import { holdWorker, type Worker } from './workers.ts'

export type ArrivalRoom = {
  /** Of the account. */
  readonly limit: number
  readonly running: number
  readonly runningOf: ReadonlyMap<WorkerId, number>
  /** Inbound phone calls that ring, or were answered and have no ACK yet: by their trunk, and by their address. */
  readonly unacknowledgedOf: ReadonlyMap<string, number>
  /** Null: there is no such worker. One that is there stays until the transaction ends. */
  readonly workers: ReadonlyMap<WorkerId, Worker | null>
  /** Null: it is switched off, or deleted. One that is there stays until the transaction ends. */
  readonly trunks: ReadonlyMap<TrunkId, TrunkRoom | null>
}

export type Arriving = {
  readonly workerIds: readonly WorkerId[]
  readonly trunkIds: readonly TrunkId[]
  /** As addressGroupOf says them. */
  readonly arrivedFrom: readonly string[]
  readonly now: number
}

/** All of it is asked in one flight, the lock first: each statement sees what was committed before it began. */
export async function readArrivalRoom(tx: Transaction, accountId: AccountId, arriving: Arriving): Promise<ArrivalRoom> {
  // Of two transactions that hold several rows none waits for the other.
  const [workerIds, trunkIds] = [arriving.workerIds.toSorted(), arriving.trunkIds.toSorted()]
  const [{ limit }, counts, workers, trunks] = await Promise.all([
    lockPlaces(tx, accountId),
    countCalls(tx, accountId, arriving),
    Promise.all(workerIds.map(async (id) => [id, await holdWorker(tx, accountId, id)] as const)),
    Promise.all(trunkIds.map(async (id) => [id, await findTrunkRoom(tx, id, arriving.now)] as const)),
  ])
  return { limit, ...counts, workers: new Map(workers), trunks: new Map(trunks) }
}

type Counts = {
  readonly running: number
  readonly ofWorkers: Record<WorkerId, number> | null
  readonly ofTrunks: Record<TrunkId, number> | null
  readonly ofAddresses: Record<string, number> | null
}

async function countCalls(
  tx: Transaction,
  accountId: AccountId,
  { workerIds, trunkIds, arrivedFrom }: Arriving,
): Promise<Pick<ArrivalRoom, 'running' | 'runningOf' | 'unacknowledgedOf'>> {
  const [counts] = await tx<Counts[]>`
    with running as materialized (
      select worker_id, trunk_id, arrived_from,
        direction = 'inbound' and transport = 'sip_trunk' and progress <> 'in_progress' as is_unacknowledged
      from calls where account_id = ${accountId} and ${runs(tx)})
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
        group by arrived_from) counted) as of_addresses`
  const { running = 0, ofWorkers, ofTrunks, ofAddresses } = counts ?? {}
  return {
    running,
    runningOf: new Map(Object.entries(ofWorkers ?? {}) as [WorkerId, number][]),
    unacknowledgedOf: new Map([...Object.entries(ofTrunks ?? {}), ...Object.entries(ofAddresses ?? {})]),
  }
}
