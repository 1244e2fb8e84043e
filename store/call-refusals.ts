/** Owns the rows of refused calls: alike ones counted together, the newest of each account kept, the old ones forgotten. */
import { toIso } from '../model/clock.ts'
import { msOf } from '../model/instant.ts'
import type { AccountId } from '../model/ids.ts'
import { placeOf, toPage, type Page } from '../model/paging.ts'
import type { CallRefusal, CallRefusalQuery, Refusal } from '../model/telephony.ts'
import type { Sql, Transaction } from './sql.ts'

export type CountedRefusal = Refusal & {
  /** Of the row; what is written under it again adds to its count. */
  readonly id: string
  readonly count: number
  readonly firstAt: number
  readonly lastAt: number
}

type Row = Omit<CountedRefusal, 'accountId'>

/** Of each account, and of refusals without a known account. */
const keptOfAccount = 1_000

/** All or nothing, so that what failed may be written again. */
export async function writeRefusals(sql: Sql, refusals: readonly CountedRefusal[]): Promise<void> {
  const accounts = new Map(refusals.map(({ accountId }) => [accountId ?? '', accountId]))
  await sql.begin(async (tx) => {
    await insertRefusals(tx, refusals)
    // In one order: two nodes wait for each other at most.
    for (const key of [...accounts.keys()].toSorted()) await trim(tx, accounts.get(key) ?? null)
  })
}

/** What belongs to an account that is gone is let go; a trunk that is gone is left out. */
async function insertRefusals(sql: Transaction, refusals: readonly CountedRefusal[]): Promise<void> {
  await sql`
    insert into call_refusals (id, account_id, trunk_id, call_id, direction, reason, details, sip_status, address, calling, called,
      count, first_at, last_at)
    select id, "accountId", (select trunks.id from trunks where trunks.id = "trunkId"), "callId", direction, reason, details,
      "sipStatus", address, calling, called, count, to_timestamp("firstAt" / 1000.0), to_timestamp("lastAt" / 1000.0)
    from jsonb_to_recordset(${sql.json(refusals)}) as given (id text, "accountId" text, "trunkId" text, "callId" text, direction text,
      reason text, details text, "sipStatus" integer, address text, calling text, called text, count integer, "firstAt" bigint,
      "lastAt" bigint)
    where "accountId" is null or exists (select from accounts where accounts.id = "accountId")
    on conflict (id) do update set count = call_refusals.count + excluded.count, last_at = excluded.last_at`
}

async function trim(sql: Transaction, accountId: string | null): Promise<void> {
  const own = ofAccount(sql, accountId)
  await sql`
    delete from call_refusals where ${own} and (last_at, id) < (
      select last_at, id from call_refusals where ${own}
      order by last_at desc, id desc offset ${keptOfAccount - 1} limit 1)`
}

/** Each in the form that finds the index. */
const ofAccount = (sql: Sql | Transaction, accountId: string | null) =>
  accountId === null ? sql`account_id is null` : sql`account_id = ${accountId}`

/** Newest first. */
export async function listRefusals(
  sql: Sql,
  accountId: AccountId,
  query: CallRefusalQuery,
): Promise<Page<CallRefusal>> {
  const { direction, reason, from, to, limit } = query
  const place = placeOf<'refusal'>(query)
  const none = sql``
  const rows = await sql<Row[]>`
    select ${rowColumns(sql)} from call_refusals
    where account_id = ${accountId}
      ${place ? sql`and (last_at, id) < (${place.at ?? sql`(select last_at from call_refusals where account_id = ${accountId} and id = ${place.id})`}, ${place.id})` : none}
      ${direction === undefined ? none : sql`and direction = ${direction}`}
      ${reason === undefined ? none : sql`and reason = ${reason}`}
      ${from === undefined ? none : sql`and last_at >= ${msOf(from)}`}
      ${to === undefined ? none : sql`and last_at < ${msOf(to)}`}
    order by last_at desc, id desc limit ${limit + 1}`
  return toPage(rows, limit, toCallRefusal, ({ lastAt }) => lastAt)
}

export type ToldRefusal = Row & { readonly accountId: AccountId | null }

/** For the operator of the deployment: of one account, or of all and those without a known account. Newest first. */
export function listAllRefusals(
  sql: Sql,
  { accountId, limit }: { readonly accountId: AccountId | null; readonly limit: number },
): Promise<ToldRefusal[]> {
  return sql<ToldRefusal[]>`
    select account_id, ${rowColumns(sql)} from call_refusals
    where ${accountId === null ? sql`true` : ofAccount(sql, accountId)} order by last_at desc, id desc limit ${limit}`
}

/** Deletes up to `limit` whose last one was before `before`. Several may do this at once. */
export async function forgetRefusals(sql: Sql, before: number, limit: number): Promise<number> {
  const { count } = await sql`
    delete from call_refusals where id in (
      select id from call_refusals where last_at < ${before} order by last_at limit ${limit} for update skip locked)`
  return count
}

const rowColumns = (sql: Sql) =>
  sql`id, trunk_id, call_id, direction, reason, details, sip_status, address, calling, called, count, first_at, last_at`

const toCallRefusal = ({ firstAt, lastAt, ...row }: Row): CallRefusal => ({
  ...row,
  firstAt: toIso(firstAt),
  lastAt: toIso(lastAt),
})
