/**
 * Owns which worker a called number or extension is, of the account that the number belongs to. An extension belongs to nobody: only here, in
 * account-numbers.ts and in trunk-addresses.ts nobody names an account.
 */
import type { AccountId, WorkerId } from '../model/ids.ts'
import type { Fragment, Sql } from './sql.ts'
import { asksPassword, type TrunkRow } from './telephony.ts'
import { isFreshSource, takesCallsIn } from './trunk-addresses.ts'

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

export type Called = {
  /** Numbers and users, the best first. */
  readonly called: readonly string[]
  readonly address: string
  /** Whose call it is; null: by an extension, of any account. */
  readonly accountId: AccountId | null
}

/**
 * Workers of the account with one of the numbers on active trunks that take calls in, and those that such trunks have an extension for. First
 * who may deliver to an active worker, by address before by password; of those the earlier number, then the oldest trunk. Of several accounts
 * the first one of each goes before the second of any, so that none is hidden behind many of another.
 */
export async function listInboundCandidates(
  sql: Sql,
  { called, address, accountId }: Called,
): Promise<InboundCandidate[]> {
  const texts = sql`${[...called]}::text[]`
  const asked = { called: texts, address: sql`${address}::text::inet`, accountId: sql`${accountId}::text` }
  const rows = await sql<Row[]>`${candidatesOf(sql, asked)}`
  return rows.map(({ workerId, workerName, isActive, toNumber, rule, ...found }) => ({
    trunk: found,
    workerId,
    workerName,
    isActive,
    toNumber,
    rule,
  }))
}

/** The same of values or columns, a select for a statement to be made of. */
export function candidatesOf(
  sql: Sql,
  { called, address, accountId }: Readonly<Record<keyof Called, Fragment>>,
): Fragment {
  const trunk = sql`trunks.id, trunks.account_id, trunks.name, trunks.config, trunks.password, trunks.tls_key, trunks.created_at`
  const worker = sql`workers.id as worker_id, workers.name as worker_name, workers.is_active`
  const delivers = sql`exists (
    select from trunk_addresses
    where trunk_addresses.trunk_id = trunks.id and network >>= ${address} and ${isFreshSource(sql)})`
  const takesIn = takesCallsIn(sql)
  const order = sql`rule = 'none', rule = 'password' and not is_active, not is_active, rule = 'password',
    array_position(${called}, to_number), created_at, id, worker_id`
  return sql`
    select * from (
      select ${trunk}, ${worker}, inbound_phone_number as to_number,
        case when ${delivers} then 'address' when ${asksPassword(sql)} then 'password' else 'none' end as rule
      from workers
      join trunk_workers on trunk_workers.worker_id = workers.id and trunk_workers.account_id = workers.account_id
      join trunks on trunks.id = trunk_workers.trunk_id and trunks.account_id = workers.account_id
      where inbound_phone_number = any(${called}) and workers.account_id = ${accountId} and ${takesIn}
      union all
      -- Scanners try short names first: who may not deliver the call is not told of, and the name of a line asks no stranger for a password.
      select ${trunk}, ${worker}, extension as to_number, case when ${delivers} then 'address' else 'password' end as rule
      from trunk_extensions
      join trunks on trunks.id = trunk_extensions.trunk_id and ${takesIn}
      cross join lateral (
        select workers.* from workers
        join trunk_workers on trunk_workers.worker_id = workers.id and trunk_workers.trunk_id = trunks.id
        where coalesce(trunk_extensions.worker_id, workers.id) = workers.id
        order by workers.is_active desc, workers.created_at, workers.id limit 1) workers
      where extension = any(${called}) and (${accountId} is null or trunks.account_id = ${accountId}) and (${delivers} or (
        ${asksPassword(sql)} and trunks.config->'extensions' @> jsonb_build_array(jsonb_build_object('user', extension))))
    ) found
    order by row_number() over (partition by account_id order by ${order}), ${order}
    limit ${maxCandidates}`
}

export type NumberedWorker = { readonly accountId: AccountId; readonly workerName: string; readonly toNumber: string }

/** Workers of the account that have one of the numbers and no trunk that could deliver to it; the oldest first. */
export function listUnreachableWorkers(
  sql: Sql,
  accountId: AccountId,
  called: readonly string[],
): Promise<NumberedWorker[]> {
  return sql<NumberedWorker[]>`
    select account_id, name as worker_name, inbound_phone_number as to_number from workers
    where inbound_phone_number = any(${[...called]}::text[]) and account_id = ${accountId}
    order by created_at, id limit ${maxCandidates}`
}
