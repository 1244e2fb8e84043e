/** Owns what an outbound call asks of telephony before it is accepted: is there a way out for its worker. */
import type { AccountId, WorkerId } from '../model/ids.ts'
import type { Sql, Transaction } from './sql.ts'

/** How far the account's active trunks carry an outbound call of one worker. */
export type WayOut = {
  readonly trunks: number
  readonly ofWorker: number
  /** Of those of the worker: dial out, and have a gateway to dial to. */
  readonly dialing: number
}

export async function findWayOut(sql: Sql | Transaction, accountId: AccountId, workerId: WorkerId): Promise<WayOut> {
  const [row] = await sql<WayOut[]>`
    select count(*)::int as trunks, count(worker_id)::int as of_worker,
      count(worker_id) filter (
        where direction <> 'inbound' and jsonb_array_length(coalesce(config->'gateways', '[]')) > 0)::int as dialing
    from trunks
    left join trunk_workers on trunk_id = trunks.id and trunk_workers.account_id = trunks.account_id and worker_id = ${workerId}
    where trunks.account_id = ${accountId} and is_active`
  return row ?? { trunks: 0, ofWorker: 0, dialing: 0 }
}
