/** Owns how many calls an account may run at once. */
import type { AccountId } from '../model/ids.ts'
import type { Transaction } from './sql.ts'

const defaultLimit = 100

/**
 * Locks the account's row until the transaction ends, so that two calls cannot both take the last place. A call runs from its creation to its
 * outcome; scheduled phone calls do not, waiting browsers do.
 */
export async function countRunningCalls(
  tx: Transaction,
  accountId: AccountId,
): Promise<{ readonly limit: number; readonly running: number }> {
  const [account] = await tx<{ limit: number | null }[]>`
    select (config->>'maxConcurrentCalls')::int as "limit" from accounts where id = ${accountId} for update`
  const [count] = await tx<{ running: number }[]>`
    select count(*)::int as running from calls where account_id = ${accountId} and not finished and outcome is null
      and (transport = 'webrtc' or progress not in ('scheduled', 'queued'))`
  return { limit: account?.limit ?? defaultLimit, running: count?.running ?? 0 }
}
