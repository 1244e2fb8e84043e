/** Owns in which parts the rows of an account go that is deleted (delete-account.ts). */
import type { AccountId, CallId } from '../model/ids.ts'
import { deleteRows } from './delete-calls.ts'
import type { Transaction } from './sql.ts'

const callsAtOnce = 100
const rowsAtOnce = 1_000
/** Whose rows can be many, by their own; everything else goes with the row of the account. */
const longTables = ['idempotency_keys', 'call_refusals', 'persons', 'documents', 'audit_entries', 'confirmations']

/** One part of the walk; false: nothing of it is left but what is short. */
export async function removePartOfAccount(tx: Transaction, accountId: AccountId): Promise<boolean> {
  const calls = await tx<{ id: CallId; now: number }[]>`
    select id, now() as now from calls where account_id = ${accountId} order by created_at limit ${callsAtOnce} for update`
  const [first] = calls
  if (first) {
    await deleteRows(tx, { accountId, callIds: calls.map(({ id }) => id), now: first.now })
    return true
  }
  const sent = await tx`
    delete from deliveries where id = any(array(
      select deliveries.id from webhook_subscriptions join deliveries on subscription_id = webhook_subscriptions.id
      where webhook_subscriptions.account_id = ${accountId} limit ${rowsAtOnce}))`
  if (sent.count > 0) return true
  for (const table of longTables) {
    const { count } = await tx`
      delete from ${tx(table)} where ctid = any(array(
        select ctid from ${tx(table)} where account_id = ${accountId} limit ${rowsAtOnce}))`
    if (count > 0) return true
  }
  return false
}
