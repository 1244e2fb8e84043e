/** Owns which realms a trunk's password has been proved to. The first that were proved at a host stay until they are forgotten. */
import type { AccountId, TrunkId } from '../model/ids.ts'
import type { RealmNews } from '../model/telephony.ts'
import type { TrunkRealm } from '../model/trunk.ts'
import type { Sql, Transaction } from './sql.ts'

/** By host, as a column of a row of trunks. */
export const realmsColumn = (sql: Sql | Transaction) => sql`
  coalesce((
    select jsonb_object_agg(host, to_jsonb(trunk_realms.realms)) from trunk_realms
    where trunk_realms.trunk_id = trunks.id and cardinality(trunk_realms.realms) > 0), '{}') as realms`

/** Of two that prove at once the first one decides. */
export async function noteRealm(sql: Sql, trunkId: TrunkId, { host, proved, refused }: RealmNews, now: number) {
  await sql`
    insert into trunk_realms (trunk_id, account_id, host, realms, refused, updated_at)
    select id, account_id, ${host}, ${[...proved]}::text[], ${refused}, ${now}::timestamptz from trunks where id = ${trunkId}
    on conflict (trunk_id, host) do update set
      realms = case when cardinality(trunk_realms.realms) = 0 then excluded.realms else trunk_realms.realms end,
      refused = excluded.refused, updated_at = excluded.updated_at`
}

/** In place of what was there. */
export async function replaceRealms(sql: Sql, trunkId: TrunkId, news: RealmNews, now: number): Promise<void> {
  await sql`delete from trunk_realms where trunk_id = ${trunkId} and host = ${news.host}`
  await noteRealm(sql, trunkId, news, now)
}

export async function listRealms(sql: Sql | Transaction, trunkId: TrunkId): Promise<TrunkRealm[]> {
  return sql<TrunkRealm[]>`select host, realms, refused from trunk_realms where trunk_id = ${trunkId} order by host`
}

/** The next ones that are proved are learned. */
export async function forgetRealms(sql: Sql | Transaction, accountId: AccountId, trunkId: TrunkId): Promise<void> {
  await sql`delete from trunk_realms where account_id = ${accountId} and trunk_id = ${trunkId}`
}
