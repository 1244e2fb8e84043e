/**
 * Owns whose worker a called number is, over all accounts: who calls is known by trunk and address only when this has been found. Only here
 * and in trunk-addresses.ts nobody names an account.
 */
import type { AccountId, WorkerId } from '../model/ids.ts'
import type { Sql } from './sql.ts'
import { asksPassword, type TrunkRow } from './telephony.ts'

export type InboundCandidate = {
  readonly trunk: TrunkRow
  readonly workerId: WorkerId
  readonly workerName: string
  readonly isActive: boolean
  readonly toNumber: string
  /** Why this trunk may deliver the call: from where it comes, or by its password; `none`: it may not. */
  readonly rule: 'address' | 'password' | 'none'
}

type Row = TrunkRow & Omit<InboundCandidate, 'trunk'>

/** The first one counts; the others make explanations. */
const maxCandidates = 10

/**
 * Workers with one of the numbers on active trunks that take calls in. First who may deliver to an active worker, by address before by
 * password; of those the earlier number, then the oldest trunk.
 */
export async function listInboundCandidates(
  sql: Sql,
  called: readonly string[],
  address: string,
): Promise<InboundCandidate[]> {
  const rows = await sql<Row[]>`
    select * from (
      select trunks.id, trunks.account_id, trunks.name, trunks.config, trunks.password, trunks.created_at,
        workers.id as worker_id, workers.name as worker_name, workers.is_active, inbound_phone_number as to_number,
        case
          when exists (select from trunk_addresses
            where trunk_addresses.trunk_id = trunks.id and network >>= ${address}::text::inet) then 'address'
          when ${asksPassword(sql)} then 'password'
          else 'none' end as rule
      from workers
      join trunk_workers on trunk_workers.worker_id = workers.id and trunk_workers.account_id = workers.account_id
      join trunks on trunks.id = trunk_workers.trunk_id and trunks.account_id = workers.account_id
      where inbound_phone_number = any(${[...called]}::text[]) and trunks.is_active and trunks.direction <> 'outbound'
    ) found
    order by rule = 'none', rule = 'password' and not is_active, not is_active, rule = 'password',
      array_position(${[...called]}::text[], to_number), created_at, id, worker_id
    limit ${maxCandidates}`
  return rows.map(({ workerId, workerName, isActive, toNumber, rule, ...trunk }) => ({
    trunk,
    workerId,
    workerName,
    isActive,
    toNumber,
    rule,
  }))
}

export type NumberedWorker = { readonly accountId: AccountId; readonly workerName: string; readonly toNumber: string }

/** Workers that have one of the numbers and no trunk that could deliver to it; the oldest first. */
export function listUnreachableWorkers(sql: Sql, called: readonly string[]): Promise<NumberedWorker[]> {
  return sql<NumberedWorker[]>`
    select account_id, name as worker_name, inbound_phone_number as to_number from workers
    where inbound_phone_number = any(${[...called]}::text[])
    order by created_at, id limit ${maxCandidates}`
}
