/** Owns where the calls of trunks come from: allowed networks, and gateways that are addresses. Found by address, whosever the trunk is. */
import type { AccountId, TrunkId } from '../model/ids.ts'
import type { TrunkSettings } from '../model/trunk.ts'
import { withoutBrackets } from '../net/addresses.ts'
import { plainNetworkOf } from '../net/networks.ts'
import type { Sql, Transaction } from './sql.ts'

export type KnownSource = {
  readonly accountId: AccountId
  readonly trunkId: TrunkId
  readonly name: string
}

/** Of how many trunks a refusal needs to know. */
const maxSources = 100

export async function replaceTrunkAddresses(
  tx: Transaction,
  accountId: AccountId,
  trunkId: TrunkId,
  settings: TrunkSettings,
): Promise<void> {
  await tx`delete from trunk_addresses where account_id = ${accountId} and trunk_id = ${trunkId}`
  await tx`
    insert into trunk_addresses (account_id, trunk_id, network)
    select ${accountId}::text, ${trunkId}::text, unnest(${sourcesOf(settings)}::text[])::inet on conflict do nothing`
}

/** Active trunks that take calls from this address, the oldest first. Those of all accounts: nobody knows yet whose call it is. */
export function listKnownSources(sql: Sql, address: string): Promise<KnownSource[]> {
  return sql<KnownSource[]>`
    select distinct trunks.created_at, trunks.account_id, trunks.id as trunk_id, name
    from trunk_addresses join trunks on trunks.id = trunk_addresses.trunk_id
    where network >>= ${address}::text::inet and is_active and direction <> 'outbound'
    order by trunks.created_at, trunks.id limit ${maxSources}`
}

/** Of any active trunk, also of one that only dials out: its gateway may ask whether we are there. */
export async function isTrunkAddress(sql: Sql, address: string): Promise<boolean> {
  const [row] = await sql`
    select from trunk_addresses join trunks on trunks.id = trunk_addresses.trunk_id
    where network >>= ${address}::text::inet and is_active limit 1`
  return row !== undefined
}

/** Each once, in one spelling. A gateway by name is none: what it resolves to is not known here. */
export function sourcesOf({ allowedAddresses = [], gateways = [] }: TrunkSettings): string[] {
  const sources = [...allowedAddresses, ...gateways.map(({ host }) => withoutBrackets(host))]
  return [...new Set(sources.flatMap((source) => plainNetworkOf(source) ?? []))]
}
