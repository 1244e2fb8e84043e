/**
 * Owns which account a telephone number takes calls for: one, held by the database. The operator assigns numbers; an account claims a free one
 * by giving it to a worker. docs/security.md "Numbers and trunks".
 */
import type { AccountId } from '../model/ids.ts'
import { Problem } from '../model/problem.ts'
import { settleHomeCountry } from './accounts.ts'
import type { Sql, Transaction } from './sql.ts'
import { isFreshSource, takesCallsIn } from './trunk-addresses.ts'

/** How a worker gets a number: the operator's word assigns it, an account claims one that is free, or has only what was assigned to it. */
export type NumberRule = 'assign' | 'claim' | 'only_assigned'

export type OwnedNumber = {
  readonly number: string
  readonly accountId: AccountId
  /** Null: a claim. */
  readonly assignedAt: number | null
  readonly workers: readonly string[]
}

const taken = (number: string): Problem =>
  new Problem('CONFLICT', `The number ${number} takes calls for another account.`)

/** Throws Problem: CONFLICT for the number of another account, VALIDATION_FAILED for one that the account may not claim. */
export async function takeNumber(
  tx: Transaction,
  accountId: AccountId,
  { number, rule }: { readonly number: string; readonly rule: NumberRule },
): Promise<void> {
  const owner = await findOwner(tx, number)
  if (owner !== null && owner !== accountId) throw taken(number)
  if (owner === null && rule === 'only_assigned') {
    const message = 'must be a number that the operator assigned to the account (npm run admin -- number assign)'
    throw new Problem('VALIDATION_FAILED', `inboundPhoneNumber ${message}`, [{ path: 'inboundPhoneNumber', message }])
  }
  await tx`
    insert into account_numbers (number, account_id, assigned_at)
    values (${number}, ${accountId}, case when ${rule === 'assign'} then now() end)
    on conflict (number) do update set assigned_at = coalesce(account_numbers.assigned_at, excluded.assigned_at)
    where account_numbers.account_id = excluded.account_id`
}

/** Who is called sees it, and may call it back: throws Problem CONFLICT for the number of another account. */
export async function requireNotOthers(sql: Sql | Transaction, accountId: AccountId, number: string): Promise<void> {
  const owner = await findOwner(sql, number)
  if (owner === null || owner === accountId) return
  throw new Problem('CONFLICT', `The number ${number} belongs to another account.`)
}

async function findOwner(sql: Sql | Transaction, number: string): Promise<AccountId | null> {
  const [row] = await sql<{ accountId: AccountId }[]>`select account_id from account_numbers where number = ${number}`
  return row?.accountId ?? null
}

/** Of two that take a number at once the database lets one. */
export function conflictOf(number: string | null | undefined, error: unknown): never {
  const lost = error instanceof Error && 'constraint_name' in error && error.constraint_name === 'workers_number'
  throw lost && number ? taken(number) : error
}

export type NumberOwner = {
  readonly number: string
  readonly accountId: AccountId
  /** It brings calls from this address. */
  readonly counts: boolean
}

/**
 * Whose the numbers are, for a call from this address. A claim counts where nobody else's calls come from: at an address that trunks of another
 * account name as well, only what the operator assigned does. On this machine there are no strangers.
 */
export function listNumberOwners(
  sql: Sql,
  numbers: readonly string[],
  { address, isOwnMachine }: { readonly address: string; readonly isOwnMachine: boolean },
): Promise<NumberOwner[]> {
  return sql<NumberOwner[]>`
    select number, account_id, (assigned_at is not null or ${isOwnMachine} or not exists (
      select from trunk_addresses join trunks on trunks.id = trunk_addresses.trunk_id
      where network >>= ${address}::text::inet and ${isFreshSource(sql)} and ${takesCallsIn(sql)}
        and trunks.account_id <> account_numbers.account_id)) as counts
    from account_numbers where number = any(${[...numbers]}::text[])`
}

/** Of one account, or of all. */
export function listNumbers(sql: Sql, accountId: AccountId | null): Promise<OwnedNumber[]> {
  return sql<OwnedNumber[]>`
    select number, account_id, assigned_at, array(
      select name from workers
      where workers.account_id = account_numbers.account_id and inbound_phone_number = number order by created_at, id) as workers
    from account_numbers where ${accountId}::text is null or account_id = ${accountId} order by number`
}

/** What became of the number before: its former account, whose workers have lost it. */
export type Assigned = { readonly from: AccountId | null; readonly workers: readonly string[] }

/**
 * By the operator. A claim of another account ends; what was assigned to another one is moved only with `move`, else Problem CONFLICT. The
 * workers of the former account lose the number.
 */
export async function assignNumber(
  sql: Sql,
  { accountId, number, move }: { readonly accountId: AccountId; readonly number: string; readonly move: boolean },
): Promise<Assigned> {
  return sql.begin(async (tx) => {
    const [owner] = await tx<{ accountId: AccountId; assignedAt: number | null }[]>`
      select account_id, assigned_at from account_numbers where number = ${number} for update`
    const isOthers = owner !== undefined && owner.accountId !== accountId
    if (isOthers && owner.assignedAt !== null && !move)
      throw new Problem(
        'CONFLICT',
        `${number} is assigned to the account ${owner.accountId}; --move takes it from there`,
      )
    const lost = isOthers ? await takeFromWorkers(tx, number) : []
    await tx`
      insert into account_numbers (number, account_id, assigned_at) values (${number}, ${accountId}, now())
      on conflict (number) do update set account_id = excluded.account_id,
        assigned_at = coalesce(case when account_numbers.account_id = excluded.account_id then account_numbers.assigned_at end, now())`
    await settleHomeCountry(tx, accountId, number)
    return { from: isOthers ? owner.accountId : null, workers: lost }
  })
}

/** By the operator: nobody has it any more. Null: nobody had. */
export async function releaseNumber(sql: Sql, number: string): Promise<Assigned | null> {
  return sql.begin(async (tx) => {
    const [owner] = await tx<{ accountId: AccountId }[]>`
      select account_id from account_numbers where number = ${number} for update`
    if (!owner) return null
    const workers = await takeFromWorkers(tx, number)
    await tx`delete from account_numbers where number = ${number}`
    return { from: owner.accountId, workers }
  })
}

async function takeFromWorkers(tx: Transaction, number: string): Promise<string[]> {
  const rows = await tx<{ name: string }[]>`
    update workers set inbound_phone_number = null where inbound_phone_number = ${number} returning name`
  return rows.map(({ name }) => name)
}
