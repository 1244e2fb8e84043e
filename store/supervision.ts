/** Owns who listens to a call, as its snapshot has it, and whether its account allows that. */
import type { UserId } from '../model/ids.ts'
import type { SupervisedCall, Supervisor } from '../model/supervision.ts'
import { scopesOfRole, type Role } from '../model/user.ts'
import type { LlmProvider } from '../model/worker.ts'
import type { Sql } from './sql.ts'

export type SupervisedRow = {
  readonly isAllowed: boolean
  readonly isTalking: boolean
  readonly supervisors: readonly Supervisor[]
  readonly voice: string | null
  /** It has taken the place of the call's own. */
  readonly engine: LlmProvider | null
}

/** Null: the account has no such call. */
export async function findSupervised(sql: Sql, { accountId, callId }: SupervisedCall): Promise<SupervisedRow | null> {
  const [row] = await sql<SupervisedRow[]>`
    select coalesce((accounts.config ->> 'supervisionEnabled')::boolean, false) as is_allowed,
      calls.outcome is null and calls.started_at is not null and not calls.finished as is_talking,
      case when calls.outcome is null then coalesce(snapshot #> '{context,supervisors}', '[]'::jsonb) else '[]'::jsonb end as supervisors,
      snapshot #>> '{context,voice}' as voice, snapshot #>> '{context,engine}' as engine
    from calls join accounts on accounts.id = calls.account_id
    where calls.id = ${callId} and calls.account_id = ${accountId}`
  return row ?? null
}

/** What people are called by those of their account. */
export async function namesOfUsers(sql: Sql, userIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
  if (userIds.length === 0) return new Map()
  const rows = await sql<{ id: string; name: string }[]>`
    select id, coalesce(name, email) as name from users where id = any(${[...userIds]}::text[])`
  return new Map(rows.map(({ id, name }) => [id, name]))
}

/** Their role may have been taken, or the account's permission. */
export async function maySupervise(
  sql: Sql,
  { accountId, userId }: Pick<SupervisedCall, 'accountId'> & { readonly userId: UserId },
): Promise<boolean> {
  const [row] = await sql<{ role: Role; isAllowed: boolean }[]>`
    select role, coalesce((accounts.config ->> 'supervisionEnabled')::boolean, false) as is_allowed
    from memberships join accounts on accounts.id = memberships.account_id
    where memberships.account_id = ${accountId} and user_id = ${userId}`
  return row !== undefined && row.isAllowed && scopesOfRole(row.role).includes('calls')
}
