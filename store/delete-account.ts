/**
 * Owns the deletion of an account with all that it has. At once: its keys, users, trunks, numbers, workers and subscriptions, so that nobody gets in,
 * no call is made and nothing is sent. By and by, in the walk of removals.ts: calls with their logs and recordings, then the other tables that
 * can be long (account-rows.ts); the account itself, and what is short, last. docs/operations.md "Accounts".
 */
import type { AccountId } from '../model/ids.ts'
import { Problem } from '../model/problem.ts'
import { isOver } from './delete-calls.ts'
import { orderRemoval, type Removal } from './removals.ts'
import type { Sql, Transaction } from './sql.ts'

/** Null: there is no such account. Throws Problem CONFLICT, and changes nothing, while a call of it is not over. Asked again, the same removal. */
export function closeAccount(sql: Sql, accountId: AccountId): Promise<Removal | null> {
  return sql.begin(async (tx) => {
    const [account] = await tx`select from accounts where id = ${accountId} for update`
    if (!account) return null
    // Who writes a call holds its worker until it is committed; trunks before workers, as by who changes a trunk.
    await tx`select from trunks where account_id = ${accountId} order by id for update`
    await tx`select from workers where account_id = ${accountId} order by id for update`
    await requireOver(tx, accountId)
    for (const table of ['api_keys', 'oauth_grants', 'invitations', 'memberships', 'account_numbers', 'trunks'])
      await tx`delete from ${tx(table)} where account_id = ${accountId}`
    await tx`
      update workers set deleted_at = coalesce(deleted_at, now()), is_active = false, inbound_phone_number = null, outbound_phone_number = null
      where account_id = ${accountId}`
    await tx`
      update webhook_subscriptions set enabled = false, deleted_at = coalesce(deleted_at, now()) where account_id = ${accountId}`
    return orderRemoval(tx, { kind: 'account', accountId, subjectId: accountId })
  })
}

async function requireOver(tx: Transaction, accountId: AccountId): Promise<void> {
  const [row] = await tx<{ count: number }[]>`
    select count(*)::int as count from calls where account_id = ${accountId} and not (${isOver(tx)})`
  const count = row?.count ?? 0
  if (count === 0) return
  const calls = count === 1 ? 'a call that is' : `${count} calls that are`
  throw new Problem(
    'CONFLICT',
    `The account has ${calls} not over: hang up what runs, cancel what waits, or wait until it is processed.`,
  )
}
