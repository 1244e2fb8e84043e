/** Owns how many things an account may have: what is listed whole, or asked about at every event, must not grow without end. */
import type { AccountId } from '../model/ids.ts'
import { Problem } from '../model/problem.ts'
import type { Sql, Transaction } from './sql.ts'

const limits = {
  workers: 1_000,
  documents: 10_000,
  trunks: 100,
  api_keys: 10_000,
  webhook_subscriptions: 500,
  memberships: 1_000,
  invitations: 1_000,
} as const

/** Throws Problem CONFLICT when the account has as many as it may. Several at once may pass together: the bound is against endless growth. */
export async function requireRoom(
  sql: Sql | Transaction,
  accountId: AccountId,
  table: keyof typeof limits,
): Promise<void> {
  const [row] = await sql<{ count: number }[]>`
    select count(*)::int as count from ${sql(table)}
    where account_id = ${accountId} ${table === 'workers' || table === 'webhook_subscriptions' ? sql`and deleted_at is null` : sql``}`
  if ((row?.count ?? 0) < limits[table]) return
  throw new Problem('CONFLICT', `The account has ${limits[table]} ${table.replace('_', ' ')}, as many as it may.`)
}
