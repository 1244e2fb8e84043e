/** Owns the rows of users: who they are, and their password. A user belongs to no account: memberships.ts says to which they may. */
import type { NewId, UserId } from '../model/ids.ts'
import { Problem } from '../model/problem.ts'
import type { Sql, Transaction } from './sql.ts'

export type UserRow = {
  readonly userId: UserId
  readonly email: string
  readonly name: string | null
  readonly passwordHash: string
}

export type NewUser = {
  /** As `UserEmail` gives it. */
  readonly email: string
  readonly name: string | null
  readonly passwordHash: string
  readonly newId: NewId
  readonly now: number
}

/** Throws Problem CONFLICT when there is a user with the address. */
export async function createUser(sql: Sql | Transaction, user: NewUser): Promise<UserId> {
  const { email, name, passwordHash, newId, now } = user
  const id = newId<'user'>()
  const created = await sql`
    insert into users (id, email, name, password_hash, password_changed_at, created_at)
    values (${id}, ${email}, ${name}, ${passwordHash}, ${now}, ${now})
    on conflict (email) do nothing`
  if (created.count === 0) throw new Problem('CONFLICT', 'There is a user with this e-mail address.')
  return id
}

export async function findUserByEmail(sql: Sql | Transaction, email: string): Promise<UserRow | null> {
  const [row] = await sql<UserRow[]>`
    select id as user_id, email, name, password_hash from users where email = ${email}`
  return row ?? null
}

export type NewPassword = {
  readonly userId: UserId
  readonly passwordHash: string
  /** What it takes the place of; absent: whatever there is. */
  readonly formerHash?: string
  readonly now: number
}

/** Ends all sessions of the user. False: there is no such user, or another password since. */
export function changePassword(sql: Sql, change: NewPassword): Promise<boolean> {
  const { userId, passwordHash, formerHash, now } = change
  return sql.begin(async (tx) => {
    const changed = await tx`
      update users set password_hash = ${passwordHash}, password_changed_at = ${now}
      where id = ${userId} ${formerHash === undefined ? tx`` : tx`and password_hash = ${formerHash}`}`
    // Whoever has signed in with the former one has stored their session by now: see createSession.
    await tx`delete from user_sessions where user_id = ${userId}`
    return changed.count > 0
  })
}

export type RenewedHash = Pick<UserRow, 'userId' | 'passwordHash'> & { readonly formerHash: string }

/** The same password, hashed anew: its sessions go on. False: it is another one since. */
export async function renewHash(sql: Sql, { userId, passwordHash, formerHash }: RenewedHash): Promise<boolean> {
  const renewed = await sql`
    update users set password_hash = ${passwordHash} where id = ${userId} and password_hash = ${formerHash}`
  return renewed.count > 0
}

export type ListedUser = Pick<UserRow, 'userId' | 'email' | 'name'> & {
  /** `<slug> <role>` */
  readonly memberships: readonly string[]
}

/** Of the whole deployment, for its operator. */
export function listUsers(sql: Sql): Promise<ListedUser[]> {
  return sql<ListedUser[]>`
    select users.id as user_id, email, users.name,
      coalesce(array_agg(slug || ' ' || role order by slug) filter (where slug is not null), '{}') as memberships
    from users left join memberships on user_id = users.id left join accounts on accounts.id = account_id
    group by users.id order by users.created_at, users.id`
}
