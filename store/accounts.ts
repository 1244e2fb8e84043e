/** Owns the rows of accounts. */
import type { AccountConfig, AccountFacts } from '../model/account.ts'
import type { AccountId, NewId } from '../model/ids.ts'
import { Problem } from '../model/problem.ts'
import { countryOf, type Country } from '../net/numbering-plans.ts'
import { readNumber } from '../net/read-number.ts'
import type { Sql, Transaction } from './sql.ts'

export type AccountRow = AccountFacts & { readonly config: AccountConfig }

export type NewAccount = {
  readonly name: string
  /** Lower-case, unique over all accounts. */
  readonly slug: string
  /** Absent: no limit at all. Whoever makes an account for others gives it `newAccountLimits`. */
  readonly config?: AccountConfig | undefined
  readonly newId: NewId
  readonly now: number
}

/** Throws Problem CONFLICT when the slug is taken. */
export async function createAccount(sql: Sql | Transaction, account: NewAccount): Promise<AccountRow> {
  const { name, slug, config = {}, newId, now } = account
  const [row] = await sql<AccountRow[]>`
    insert into accounts (id, name, slug, config, created_at, updated_at)
    values (${newId<'account'>()}, ${name}, ${slug}, ${sql.json(config)}, ${now}, ${now})
    on conflict (slug) do nothing
    returning id, name, slug, config, created_at, updated_at`
  if (!row) throw new Problem('CONFLICT', `Another account has the slug ${slug}.`)
  return row
}

/** The first number that an account gets says where it is at home, and no later one. Nothing for an account that may call everywhere. */
export async function settleHomeCountry(sql: Sql | Transaction, accountId: AccountId, number: string): Promise<void> {
  const country = countryOf(number)
  if (country === null) return
  await sql`
    update accounts set config = config || jsonb_build_object('homeCountry', ${country}::text)
    where id = ${accountId} and config @> '{"homeCountryOnly": true}' and config->>'homeCountry' is null`
}

/** The home of an account whose numbers have not settled one: that of its first worker with a number. Null: there is none. */
export async function guessHomeCountry(sql: Sql | Transaction, accountId: AccountId): Promise<string | null> {
  const [row] = await sql<{ number: string }[]>`
    select coalesce(inbound_phone_number, outbound_phone_number) as number from workers
    where account_id = ${accountId} and coalesce(inbound_phone_number, outbound_phone_number) is not null
    order by created_at, id limit 1`
  return row ? countryOf(row.number) : null
}

/** Within which numbers of the account are read that have no country code. Null: none is known. */
export async function findHomeCountry(sql: Sql | Transaction, accountId: AccountId): Promise<Country | null> {
  const [row] = await sql<{ home: string | null }[]>`
    select config->>'homeCountry' as home from accounts where id = ${accountId}`
  return row?.home ?? guessHomeCountry(sql, accountId)
}

/** The same, where one of these texts cannot be read without it: most can, and cost no question. */
export async function countryToRead(
  sql: Sql | Transaction,
  accountId: AccountId,
  texts: readonly (string | null | undefined)[],
): Promise<Country | null> {
  const isNeeded = texts.some((text) => typeof text === 'string' && readNumber(text) === null)
  return isNeeded ? findHomeCountry(sql, accountId) : null
}

export async function findAccount(sql: Sql | Transaction, accountId: AccountId): Promise<AccountRow | null> {
  const [row] = await sql<AccountRow[]>`
    select id, name, slug, config, created_at, updated_at from accounts where id = ${accountId}`
  return row ?? null
}

/** Of the whole deployment, for its operator; those that are being deleted are none. */
export function listAccounts(sql: Sql): Promise<AccountRow[]> {
  return sql<AccountRow[]>`
    select id, name, slug, config, created_at, updated_at from accounts
    where not exists (select from removals where kind = 'account' and subject_id = accounts.id) order by created_at, id`
}

/** Key by key; null takes a key away. Null: there is no such account. */
export async function changeAccountConfig(
  sql: Sql,
  accountId: AccountId,
  change: { readonly [Key in keyof AccountConfig]: AccountConfig[Key] | null },
  now: number,
): Promise<AccountRow | null> {
  const removed = Object.keys(change).filter((key) => change[key as keyof AccountConfig] === null)
  const [row] = await sql<AccountRow[]>`
    update accounts set config = (config || ${sql.json(change)}::jsonb) - ${removed}::text[], updated_at = ${now}
    where id = ${accountId} returning id, name, slug, config, created_at, updated_at`
  return row ?? null
}
