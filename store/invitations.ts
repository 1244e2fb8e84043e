/**
 * Owns invitations: a link with a token that is good once and for seven days, by which a person becomes a user of an account in a role. Only the
 * SHA-256 of the token is stored, and its row goes when it is accepted. A later invitation of the same address to the same account takes the
 * place of the former one.
 */
import type { AccountId, InvitationId, NewId, UserId } from '../model/ids.ts'
import { Problem } from '../model/problem.ts'
import type { InvitationFacts, Role } from '../model/user.ts'
import { addMember } from './memberships.ts'
import { requireRoom } from './room.ts'
import type { Sql, Transaction } from './sql.ts'
import { createToken, hashOfToken, isToken } from './token.ts'
import { createUser } from './users.ts'

const lifetime = 7 * 86_400_000

export type NewInvitation = {
  readonly accountId: AccountId
  /** As `UserEmail` gives it. */
  readonly email: string
  readonly role: Role
  readonly newId: NewId
  readonly now: number
}

/** The only moment the token is seen. Throws Problem CONFLICT for who belongs to the account. */
export function invite(
  sql: Sql,
  { accountId, email, role, newId, now }: NewInvitation,
): Promise<{ readonly invitation: InvitationFacts; readonly token: string }> {
  return sql.begin(async (tx) => {
    const isMember = await tx`
      select from users join memberships on user_id = users.id where email = ${email} and account_id = ${accountId}`
    if (isMember.length > 0) throw new Problem('CONFLICT', 'This person is a user of the account.')
    await requireRoom(tx, accountId, 'invitations')
    const [token, expiresAt] = [createToken(), now + lifetime]
    const [invitation] = await tx<InvitationFacts[]>`
      insert into invitations (id, account_id, email, role, token_hash, created_at, expires_at)
      values (${newId<'invitation'>()}, ${accountId}, ${email}, ${role}, ${hashOfToken(token)}, ${now}, ${expiresAt})
      on conflict (account_id, email) do update set
        role = excluded.role, token_hash = excluded.token_hash, created_at = excluded.created_at, expires_at = excluded.expires_at
      returning id, email, role, expires_at`
    if (!invitation) throw new Error('an insert returned no row')
    return { invitation, token }
  })
}

export type FoundInvitation = InvitationFacts & {
  readonly accountId: AccountId
  readonly accountName: string
  /** There is a user with its address, who accepts it signed in. */
  readonly hasUser: boolean
}

/** Null: unknown, used or expired. */
export async function findInvitation(sql: Sql, token: string, now: number): Promise<FoundInvitation | null> {
  if (!isToken(token)) return null
  const [row] = await sql<FoundInvitation[]>`
    select invitations.id, account_id, accounts.name as account_name, email, role, expires_at,
      exists (select from users where users.email = invitations.email) as has_user
    from invitations join accounts on accounts.id = account_id
    where token_hash = ${hashOfToken(token)} and expires_at > ${now}`
  return row ?? null
}

export type Acceptance = {
  readonly token: string
  readonly name: string
  readonly passwordHash: string
  readonly newId: NewId
  readonly now: number
}

/** Makes the user. Null: it was used meanwhile. Throws Problem CONFLICT when there is a user with its address by now. */
export function acceptAsNewUser(sql: Sql, acceptance: Acceptance): Promise<UserId | null> {
  const { token, name, passwordHash, newId, now } = acceptance
  return sql.begin(async (tx) => {
    const taken = await take(tx, token, now)
    if (!taken) return null
    const userId = await createUser(tx, { email: taken.email, name, passwordHash, newId, now })
    await addMember(tx, { ...taken, userId, now })
    return userId
  })
}

/** False: it was used meanwhile, or is for somebody else. */
export function acceptAsUser(
  sql: Sql,
  {
    token,
    userId,
    email,
    now,
  }: { readonly token: string; readonly userId: UserId; readonly email: string; readonly now: number },
): Promise<boolean> {
  return sql.begin(async (tx) => {
    const taken = await take(tx, token, now, email)
    if (taken) await addMember(tx, { ...taken, userId, now })
    return taken !== null
  })
}

type Taken = { readonly accountId: AccountId; readonly email: string; readonly role: Role }

/** Of two at once, the second finds nothing. */
async function take(tx: Transaction, token: string, now: number, email: string | null = null): Promise<Taken | null> {
  if (!isToken(token)) return null
  const [taken] = await tx<Taken[]>`
    delete from invitations
    where token_hash = ${hashOfToken(token)} and expires_at > ${now} ${email === null ? tx`` : tx`and email = ${email}`}
    returning account_id, email, role`
  return taken ?? null
}

export function listInvitations(sql: Sql, accountId: AccountId, now: number): Promise<InvitationFacts[]> {
  return sql<InvitationFacts[]>`
    select id, email, role, expires_at from invitations
    where account_id = ${accountId} and expires_at > ${now} order by created_at, id`
}

/** By its id, or by its address. False: there is none. */
export async function withdrawInvitation(
  sql: Sql,
  accountId: AccountId,
  by: { readonly id: InvitationId } | { readonly email: string },
): Promise<boolean> {
  const which = 'id' in by ? sql`id = ${by.id}` : sql`email = ${by.email}`
  const withdrawn = await sql`delete from invitations where account_id = ${accountId} and ${which}`
  return withdrawn.count > 0
}

/** Those that nobody accepted in time. Returns how many. */
export async function forgetInvitations(sql: Sql, now: number, limit: number): Promise<number> {
  const forgotten = await sql`
    delete from invitations where id in (
      select id from invitations where expires_at <= ${now} limit ${limit} for update skip locked)`
  return forgotten.count
}
