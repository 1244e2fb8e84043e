/**
 * Owns which node looks after a trunk, and how the trunk does. Turns are measured by the clock of the database: two nodes never have the same
 * trunk, however far apart their own clocks are.
 */
import { toIso } from '../model/clock.ts'
import type { AccountId, NodeId, TrunkId } from '../model/ids.ts'
import { storableJson } from '../model/json.ts'
import type { TrunkSettings, TrunkState } from '../model/trunk.ts'
import type { Sql, Transaction } from './sql.ts'
import type { TrunkRow } from './telephony.ts'
import { realmsColumn } from './trunk-realms.ts'

export type TrunkTurn = { readonly nodeId: NodeId; /** Ms. */ readonly length: number; readonly atMost: number }

/** There is something to do: to register, to see whether gateways for calls out answer, or to look up where calls come from. */
const needsCare = (sql: Sql) => sql`
  is_active and (
    coalesce((config->>'register')::boolean, false)
    or (jsonb_array_length(coalesce(config->'gateways', '[]')) > 0
      and direction <> 'inbound' and coalesce((config->>'qualify')::boolean, true))
    or (direction <> 'outbound' and exists (
      select from jsonb_array_elements_text(coalesce(config->'allowedAddresses', '[]')) source
      where source ~ '[A-Za-z]' and source !~ ':')))`

/**
 * Begins or goes on with the turns of this node: its own trunks first, then those that nobody has, in an order of its own, so that several nodes
 * that begin together do not all want the same. Of all accounts: the SIP edge serves them all. Rows are taken in one order, so that two nodes wait for each other at most, and never in a ring.
 */
export async function takeTrunkTurns(sql: Sql, { nodeId, length, atMost }: TrunkTurn): Promise<TrunkRow[]> {
  return sql<TrunkRow[]>`
    with wanted as (
      select trunks.id, trunks.account_id from trunks left join trunk_states on trunk_id = trunks.id
      where ${needsCare(sql)} and (keeper is null or keeper = ${nodeId} or kept_until <= clock_timestamp())
      order by keeper = ${nodeId} desc nulls last, md5(trunks.id || ${nodeId}::text) limit ${atMost}
    ), taken as (
      insert into trunk_states (trunk_id, account_id, keeper, kept_until)
      select id, account_id, ${nodeId}, clock_timestamp() + ${length}::int * interval '1 ms' from wanted order by id
      on conflict (trunk_id) do update set keeper = excluded.keeper, kept_until = excluded.kept_until
      where trunk_states.keeper is null or trunk_states.keeper = excluded.keeper
        or trunk_states.kept_until <= clock_timestamp()
      returning trunk_id)
    select id, account_id, name, config, password, tls_key, ${realmsColumn(sql)}
    from trunks where id in (select trunk_id from taken) order by id`
}

/** A node that goes gives its trunks to whoever asks next. */
export async function endTrunkTurns(sql: Sql, nodeId: NodeId): Promise<void> {
  await sql`update trunk_states set keeper = null, kept_until = null where keeper = ${nodeId}`
}

/** From its keeper only: what a former one tells comes too late. */
export async function writeTrunkState(
  sql: Sql,
  report: { nodeId: NodeId; trunkId: TrunkId; state: Omit<TrunkState, 'updatedAt'>; now: number },
): Promise<void> {
  const { nodeId, trunkId, state, now } = report
  await sql`
    update trunk_states set state = ${sql.json(storableJson(state))}, updated_at = ${now}
    where trunk_id = ${trunkId} and keeper = ${nodeId}`
}

export type FoundTrunkState = { readonly settings: TrunkSettings; readonly state: TrunkState | null }

/** Null: the account has no such trunk. */
export async function findTrunkState(
  sql: Sql | Transaction,
  accountId: AccountId,
  trunkId: TrunkId,
): Promise<FoundTrunkState | null> {
  const [row] = await sql<{ config: TrunkSettings; state: Omit<TrunkState, 'updatedAt'> | null; updatedAt: number }[]>`
    select config, state, trunk_states.updated_at from trunks left join trunk_states on trunk_id = trunks.id
    where trunks.account_id = ${accountId} and trunks.id = ${trunkId}`
  if (!row) return null
  const state = row.state && { ...row.state, updatedAt: toIso(row.updatedAt) }
  return { settings: row.config, state }
}
