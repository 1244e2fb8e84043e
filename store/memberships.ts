/**
 * Owns who belongs to which account, in which role. An account that has an owner keeps one: whoever would take the last one away is refused,
 * also when two are taken away at once. A user whose last membership ends is removed with all that is personal: nothing is kept of who
 * belongs nowhere.
 */
import type { AccountId, UserId } from '../model/ids.ts'
import { Problem } from '../model/problem.ts'
import type { Member, Membership, Role } from '../model/user.ts'
import { requireRoom } from './room.ts'
import type { Sql, Transaction } from './sql.ts'

export type NewMembership = {
  readonly accountId: AccountId
  readonly userId: UserId
  readonly role: Role
  readonly now: number
}

/** False: the user is a member, in whatever role, and stays so. */
export async function addMember(sql: Sql | Transaction, membership: NewMembership): Promise<boolean> {
  const { accountId, userId, role, now } = membership
  await requireRoom(sql, accountId, 'memberships')
  const added = await sql`
    insert into memberships (account_id, user_id, role, created_at) values (${accountId}, ${userId}, ${role}, ${now})
    on conflict do nothing`
  return added.count > 0
}

export function listMembers(sql: Sql | Transaction, accountId: AccountId): Promise<Member[]> {
  return sql<Member[]>`
    select users.id as user_id, email, name, role, memberships.created_at, last_sign_in_at
    from memberships join users on users.id = user_id
    where account_id = ${accountId} order by memberships.created_at, users.id`
}

export async function findMember(sql: Sql | Transaction, accountId: AccountId, userId: UserId): Promise<Member | null> {
  const [row] = await sql<Member[]>`
    select users.id as user_id, email, name, role, memberships.created_at, last_sign_in_at
    from memberships join users on users.id = user_id where account_id = ${accountId} and users.id = ${userId}`
  return row ?? null
}

/** Of one user, by the name of the account. */
export function listMemberships(sql: Sql | Transaction, userId: UserId): Promise<Membership[]> {
  return sql<Membership[]>`
    select account_id, accounts.name as account_name, role from memberships join accounts on accounts.id = account_id
    where user_id = ${userId} order by accounts.name, account_id`
}

export async function hasMembers(sql: Sql | Transaction, accountId: AccountId): Promise<boolean> {
  const rows = await sql`select from memberships where account_id = ${accountId} limit 1`
  return rows.length > 0
}

type OfMember = { readonly accountId: AccountId; readonly userId: UserId }

/** False: the account has no such user. Throws Problem CONFLICT for its last owner. */
export function changeRole(
  sql: Sql,
  { accountId, userId, role }: OfMember & { readonly role: Role },
): Promise<boolean> {
  return sql.begin(async (tx) => {
    if (role !== 'owner') await keepAnOwner(tx, userId, [accountId])
    const changed = await tx`
      update memberships set role = ${role} where account_id = ${accountId} and user_id = ${userId}`
    return changed.count > 0
  })
}

/**
 * From the account, with grants for it and open invitations to it: who comes back has nothing of before. Wholly when it was the only one. False: the
 * account has no such user. Throws Problem CONFLICT for its last owner.
 */
export function removeMember(sql: Sql, { accountId, userId }: OfMember): Promise<boolean> {
  return sql.begin(async (tx) => {
    await keepAnOwner(tx, userId, [accountId])
    // Of two who take away the last two memberships, the second sees that none is left.
    await tx`select from users where id = ${userId} for update`
    const removed = await tx`delete from memberships where account_id = ${accountId} and user_id = ${userId}`
    if (removed.count === 0) return false
    await tx`delete from oauth_grants where account_id = ${accountId} and user_id = ${userId}`
    await tx`
      delete from invitations
      where account_id = ${accountId} and email = (select email from users where id = ${userId})`
    await tx`delete from users where id = ${userId} and not exists (select from memberships where user_id = users.id)`
    return true
  })
}

/**
 * From all accounts, with sessions, grants and open invitations. False: there is no such user. Throws Problem CONFLICT for the last owner of
 * an account, unless the operator says that it may be without one.
 */
export function removeUser(sql: Sql, userId: UserId, mayLeaveNoOwner = false): Promise<boolean> {
  return sql.begin(async (tx) => {
    const owned = await tx<{ accountId: AccountId }[]>`
      select account_id from memberships where user_id = ${userId} and role = 'owner' order by account_id`
    if (!mayLeaveNoOwner) {
      const accounts = owned.map(({ accountId }) => accountId)
      await keepAnOwner(tx, userId, accounts)
    }
    await tx`delete from invitations where email = (select email from users where id = ${userId})`
    const removed = await tx`delete from users where id = ${userId}`
    return removed.count > 0
  })
}

/** The rows of owners are locked in one order: of two who would take each other away, the second sees what the first has left. */
async function keepAnOwner(tx: Transaction, userId: UserId, accountIds: readonly AccountId[]): Promise<void> {
  const owners = await tx<OfMember[]>`
    select account_id, user_id from memberships
    where account_id = any(${accountIds as AccountId[]}) and role = 'owner' order by account_id, user_id for update`
  for (const accountId of accountIds) {
    const own = owners.filter((owner) => owner.accountId === accountId)
    const isOwner = own.some((owner) => owner.userId === userId)
    if (isOwner && own.length === 1)
      throw new Problem(
        'CONFLICT',
        `An account keeps at least one owner. Make another user an owner of ${accountId} first.`,
      )
  }
}
