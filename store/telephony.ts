/** Owns what an outbound call asks of telephony: is there a way out for its worker, which ones are free now, which one carries it. */
import type { AccountId, CallId, TrunkId, WorkerId } from '../model/ids.ts'
import type { TrunkSettings } from '../model/trunk.ts'
import type { Fragment, Sql, Transaction } from './sql.ts'
import { realmsColumn } from './trunk-realms.ts'
import { hasRoom, type TrunkRoom, trunkRoomColumns } from './trunk-room.ts'

/** How far the account's active trunks carry calls of one worker. */
export type WayOut = {
  readonly trunks: number
  readonly ofWorker: number
  /** Of those of the worker: dial out, and have a gateway to dial to. */
  readonly dialing: number
  /** Of those of the worker: dial out like that, or take calls in from somewhere. Whatever they carry can be passed on. */
  readonly carrying: number
}

/** A trunk as the SIP edge needs it; the password is sealed. */
export type TrunkRow = {
  readonly id: TrunkId
  readonly accountId: AccountId
  readonly name: string
  readonly config: TrunkSettings
  readonly password: string | null
  /** Sealed, too. */
  readonly tlsKey: string | null
  /** Only where it is read to call out. */
  readonly realms?: Readonly<Record<string, readonly string[]>>
}

/** To the letter the same wherever somebody asks what can dial. */
export const dialsOut = (sql: Sql | Transaction) =>
  sql`(trunks.direction <> 'inbound' and jsonb_array_length(coalesce(trunks.config->'gateways', '[]')) > 0)`

/** The password is asked of whoever calls, where no address is named. */
export const asksPassword = (sql: Sql | Transaction) => sql`
  (jsonb_array_length(coalesce(trunks.config->'allowedAddresses', '[]')) = 0
    and coalesce(trunks.config->>'authUsername', trunks.config->>'username') is not null and trunks.password is not null)`

const takesIn = (sql: Sql | Transaction) => sql`
  (trunks.direction <> 'outbound' and (${asksPassword(sql)}
    or exists (select from trunk_addresses where trunk_addresses.trunk_id = trunks.id)))`

export async function findWayOut(sql: Sql | Transaction, accountId: AccountId, workerId: WorkerId): Promise<WayOut> {
  const [row] = await sql<WayOut[]>`
    select count(*)::int as trunks, count(worker_id)::int as of_worker,
      count(worker_id) filter (where ${dialsOut(sql)})::int as dialing,
      count(worker_id) filter (where ${dialsOut(sql)} or ${takesIn(sql)})::int as carrying
    from trunks
    left join trunk_workers on trunk_workers.trunk_id = trunks.id and trunk_workers.account_id = trunks.account_id
      and worker_id = ${workerId}
    where trunks.account_id = ${accountId} and is_active`
  return row ?? { trunks: 0, ofWorker: 0, dialing: 0, carrying: 0 }
}

/** Is `carrying` of its way out more than none? Of values or columns, for a statement to be made of. */
export const carriesCalls = (
  sql: Sql | Transaction,
  { accountId, workerId }: Readonly<Record<'accountId' | 'workerId', Fragment>>,
) => sql`exists (
  select from trunk_workers join trunks on trunks.id = trunk_workers.trunk_id and trunks.account_id = trunk_workers.account_id
  where trunk_workers.account_id = ${accountId} and trunk_workers.worker_id = ${workerId} and trunks.is_active
    and (${dialsOut(sql)} or ${takesIn(sql)}))`

/** An active one, whoever uses it. */
export async function hasTrunk(sql: Sql | Transaction, accountId: AccountId): Promise<boolean> {
  const rows = await sql`select from trunks where account_id = ${accountId} and is_active limit 1`
  return rows.length > 0
}

export type WorkerReach = {
  readonly workerId: WorkerId
  /** One of its active trunks dials out, and has a gateway to dial to. */
  readonly dialsOut: boolean
  readonly takesIn: boolean
}

/** Of all workers that have an active trunk. */
export function listWorkerReach(sql: Sql | Transaction, accountId: AccountId): Promise<WorkerReach[]> {
  return sql<WorkerReach[]>`
    select worker_id, bool_or(${dialsOut(sql)}) as dials_out, bool_or(${takesIn(sql)}) as takes_in
    from trunks join trunk_workers on trunk_workers.trunk_id = trunks.id and trunk_workers.account_id = trunks.account_id
    where trunks.account_id = ${accountId} and is_active group by worker_id`
}

export async function findTrunkRow(sql: Sql, accountId: AccountId, trunkId: TrunkId): Promise<TrunkRow | null> {
  const [row] = await sql<TrunkRow[]>`
    select id, account_id, name, config, password, tls_key, ${realmsColumn(sql)}
    from trunks where account_id = ${accountId} and id = ${trunkId}`
  return row ?? null
}

export type OutboundTrunk = TrunkRow & {
  /** Chosen for the call when it got its turn, or carries it already. */
  readonly chosen: boolean
  /** This call left out of the count. */
  readonly free: boolean
  /** The number that the call is to show was settled when it was placed, and belongs to another account by now. */
  readonly showsOthers: boolean
}

/** Of one call: the trunk that was chosen for it first, then the others as they were made. */
export async function listOutboundTrunks(
  sql: Sql,
  { accountId, workerId, callId, now }: { accountId: AccountId; workerId: WorkerId; callId: CallId; now: number },
): Promise<OutboundTrunk[]> {
  const rows = await sql<(TrunkRow & TrunkRoom & { chosen: boolean; showsOthers: boolean })[]>`
    select trunks.id, trunks.account_id, name, config, password, tls_key, ${realmsColumn(sql)}, ${trunkRoomColumns(sql, now, callId)},
      trunks.id is not distinct from (
        select trunk_id from calls where account_id = ${accountId} and id = ${callId}) as chosen,
      exists (
        select from calls join account_numbers on account_numbers.number = calls.from_number
        where calls.id = ${callId} and account_numbers.account_id <> ${accountId}) as shows_others
    from trunks join trunk_workers on trunk_workers.trunk_id = trunks.id and trunk_workers.account_id = trunks.account_id
    where trunks.account_id = ${accountId} and worker_id = ${workerId} and is_active and ${dialsOut(sql)}
    order by chosen desc, trunks.created_at, trunks.id`
  return rows.map(({ id, name, config, password, tlsKey, realms, chosen, showsOthers, ...room }) => ({
    id,
    accountId,
    name,
    config,
    password,
    tlsKey,
    realms: realms ?? {},
    chosen,
    free: hasRoom(room, now),
    showsOthers,
  }))
}

/**
 * The one permission to dial for an outbound call. An actor that takes the call over raises the epoch before it looks for a leg: the edge
 * that got the permission has a leg that is found, and an edge that asks later gets none.
 */
export async function takeDial(
  sql: Sql,
  { callId, epoch, now }: { callId: CallId; epoch: number; now: number },
): Promise<'may' | 'was_dialed' | 'passed_on'> {
  const taken = await sql`
    update calls set dialed_at = ${now}
    where id = ${callId} and epoch = ${epoch} and dialed_at is null and outcome is null and progress = 'queued'`
  if (taken.count === 1) return 'may'
  const [own] = await sql`
    select from calls
    where id = ${callId} and epoch = ${epoch} and outcome is null and progress in ('queued', 'ringing')`
  return own ? 'was_dialed' : 'passed_on'
}

/** Of the same account only. The trunk is held before the call: who deletes it finds the call linked, or there is nothing to link to. */
export async function noteCarrier(sql: Sql, callId: CallId, trunkId: TrunkId): Promise<void> {
  await sql`
    with carrier as materialized (select id, account_id from trunks where id = ${trunkId} for key share)
    update calls set trunk_id = carrier.id from carrier
    where calls.id = ${callId} and calls.trunk_id is distinct from carrier.id and calls.account_id = carrier.account_id`
}

/** No call is longer. */
const longestCall = 4 * 3_600_000

/** Ms that outbound calls of the account have talked since `since`, running ones until now. */
export async function talkedSince(sql: Sql, accountId: AccountId, since: number, now: number): Promise<number> {
  const [row] = await sql<{ ms: number }[]>`
    select coalesce(sum(extract(epoch from
      least(coalesce(ended_at, ${now}::timestamptz), ${now}::timestamptz) - greatest(started_at, ${since}::timestamptz))), 0)::float8 * 1000 as ms
    from calls
    where account_id = ${accountId} and direction = 'outbound' and started_at > ${since - longestCall}
      and coalesce(ended_at, ${now}::timestamptz) > ${since} and started_at <= ${now}`
  return row?.ms ?? 0
}
