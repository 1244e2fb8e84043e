/** Owns the rows of accounts. */
import type { AccountFacts } from '../model/account.ts'
import type { AccountId, NewId } from '../model/ids.ts'
import { Problem } from '../model/problem.ts'
import type { Sql, Transaction } from './sql.ts'

export type AccountConfig = {
  /** Calls of the account that may run at once; absent: as many as the deployment carries. */
  readonly maxConcurrentCalls?: number | undefined
  /** Where workers may pass callers on to besides their contacts. E.164. */
  readonly allowedTransferNumbers?: readonly string[] | undefined
}

export type AccountRow = AccountFacts & { readonly config: AccountConfig }

export type NewAccount = {
  readonly name: string
  /** Lower-case, unique over all accounts. */
  readonly slug: string
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

export async function findAccount(sql: Sql | Transaction, accountId: AccountId): Promise<AccountRow | null> {
  const [row] = await sql<AccountRow[]>`
    select id, name, slug, config, created_at, updated_at from accounts where id = ${accountId}`
  return row ?? null
}

/** Of the whole deployment, for its operator. */
export function listAccounts(sql: Sql): Promise<AccountRow[]> {
  return sql<AccountRow[]>`select id, name, slug, config, created_at, updated_at from accounts order by created_at, id`
}
