/**
 * Owns where the calls of trunks come from: allowed networks, gateways that are addresses, and what names lead to. Found by address, whosever
 * the trunk is.
 */
import type { AccountId, TrunkId } from '../model/ids.ts'
import type { NumberFormat } from '../model/number-format.ts'
import { sourceNamesOf, type TrunkSettings } from '../model/trunk.ts'
import { withoutBrackets } from '../net/addresses.ts'
import { plainNetworkOf } from '../net/networks.ts'
import type { Fragment, Sql, Transaction } from './sql.ts'

export type KnownSource = {
  readonly accountId: AccountId
  readonly trunkId: TrunkId
  readonly name: string
  /** How its network writes numbers; null: as E.164. */
  readonly numberFormat: NumberFormat | null
}

/** Of how many trunks a refusal needs to know. */
const maxSources = 100

export async function replaceTrunkAddresses(
  tx: Transaction,
  accountId: AccountId,
  trunkId: TrunkId,
  settings: TrunkSettings,
): Promise<void> {
  await tx`
    delete from trunk_addresses
    where account_id = ${accountId} and trunk_id = ${trunkId}
      and (name is null or name <> all(${sourceNamesOf(settings)}::text[]))`
  await tx`
    insert into trunk_addresses (account_id, trunk_id, network)
    select ${accountId}::text, ${trunkId}::text, unnest(${sourcesOf(settings)}::text[])::inet
    on conflict (trunk_id, network) do update set name = null, seen_at = null`
}

/** What a name leads to now, in place of what it led to before. Nothing of a trunk that does not name it any more. */
export async function learnTrunkAddresses(
  sql: Sql,
  trunkId: TrunkId,
  { name, addresses, now }: { readonly name: string; readonly addresses: readonly string[]; readonly now: number },
): Promise<void> {
  await sql.begin(async (tx) => {
    const [trunk] = await tx<{ accountId: AccountId; config: TrunkSettings }[]>`
      select account_id, config from trunks where id = ${trunkId} for share`
    if (!trunk || !sourceNamesOf(trunk.config).includes(name)) return
    const networks = [...new Set(addresses.flatMap((address) => plainNetworkOf(address) ?? []))]
    await tx`
      delete from trunk_addresses
      where trunk_id = ${trunkId} and name = ${name} and network <> all(${networks}::text[]::inet[])`
    await tx`
      insert into trunk_addresses (account_id, trunk_id, network, name, seen_at)
      select ${trunk.accountId}::text, ${trunkId}::text, unnest(${networks}::text[])::inet, ${name}::text, ${now}::timestamptz
      on conflict (trunk_id, network) do update set name = excluded.name, seen_at = excluded.seen_at
      where trunk_addresses.name is not null
        and (trunk_addresses.name <> excluded.name or trunk_addresses.seen_at < excluded.seen_at - interval '10 min')`
  })
}

/** What a name led to a day ago may be somebody else's by now. */
export const isFreshSource = (sql: Sql | Transaction) =>
  sql`(trunk_addresses.seen_at is null or trunk_addresses.seen_at > clock_timestamp() - interval '1 day')`

export const takesCallsIn = (sql: Sql | Transaction) => sql`(trunks.is_active and trunks.direction <> 'outbound')`

/**
 * A select of the columns of KnownSource: active trunks that take calls from this address. Those of all accounts: nobody knows yet whose call it is.
 * The oldest first, but one of each account before the second of any, so that none is hidden behind many of another.
 */
export const knownSourcesOf = (sql: Sql, address: Fragment) => sql`
  select account_id, trunk_id, name, number_format from (
    select distinct trunks.created_at, trunks.account_id, trunks.id as trunk_id, trunks.name,
      config->'numberFormat' as number_format
    from trunk_addresses join trunks on trunks.id = trunk_addresses.trunk_id
    where network >>= ${address} and ${isFreshSource(sql)} and ${takesCallsIn(sql)}) known
  order by row_number() over (partition by account_id order by created_at, trunk_id), created_at, trunk_id
  limit ${maxSources}`

/** Of any active trunk, also of one that only dials out: its gateway may ask whether we are there. */
export async function isTrunkAddress(sql: Sql, address: string): Promise<boolean> {
  const [row] = await sql`
    select from trunk_addresses join trunks on trunks.id = trunk_addresses.trunk_id
    where network >>= ${address}::text::inet and ${isFreshSource(sql)} and is_active limit 1`
  return row !== undefined
}

/** Each once, in one spelling. A gateway by name is none: what it resolves to is not known here. */
export function sourcesOf({ allowedAddresses = [], gateways = [] }: TrunkSettings): string[] {
  const sources = [...allowedAddresses, ...gateways.map(({ host }) => withoutBrackets(host))]
  return [...new Set(sources.flatMap((source) => plainNetworkOf(source) ?? []))]
}
