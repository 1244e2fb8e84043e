/**
 * Owns the sessions of browsers: a random token in a cookie, of which only the SHA-256 is stored. A session ends twelve hours after it was used
 * last and seven days after it began, by signing out, by a change of the password, and with its user.
 */
import type { UserId } from '../model/ids.ts'
import type { SignedIn } from '../model/user.ts'
import type { Sql } from './sql.ts'
import { createToken, hashOfToken, isToken } from './token.ts'

export const sessionLimits = { idle: 12 * 3_600_000, absolute: 7 * 86_400_000 } as const
/** Of one user; the oldest goes. */
const maxSessions = 50
/** How exact the last use is: more would write a row for every request. */
const touchInterval = 60_000

export type NewSession = {
  readonly userId: UserId
  /** Of the password that was shown. */
  readonly passwordHash: string
  /** What the browser had: it is good no more. */
  readonly former: string | null
  readonly now: number
}

/**
 * The only moment the token is seen. Null: the password is another one since, or the user is gone. The lock waits for a change of the password that
 * goes on at this moment, which then ends every session that was stored before it.
 */
export function createSession(sql: Sql, { userId, passwordHash, former, now }: NewSession): Promise<string | null> {
  const token = createToken()
  return sql.begin(async (tx) => {
    const known = await tx`
      select from users where id = ${userId} and password_hash = ${passwordHash} for no key update`
    if (known.length === 0) return null
    if (former !== null) await tx`delete from user_sessions where token_hash = ${hashOfToken(former)}`
    await tx`
      delete from user_sessions where token_hash in (
        select token_hash from user_sessions where user_id = ${userId} order by created_at desc, token_hash
        offset ${maxSessions - 1})`
    await tx`
      insert into user_sessions (token_hash, user_id, created_at, last_used_at)
      values (${hashOfToken(token)}, ${userId}, ${now}, ${now})`
    await tx`update users set last_sign_in_at = ${now} where id = ${userId}`
    return token
  })
}

export type SessionUser = Omit<SignedIn, 'csrf'>

/** Null: no such session, or it is over. */
export async function findSession(sql: Sql, token: string, now: number): Promise<SessionUser | null> {
  if (!isToken(token)) return null
  const [row] = await sql<(SessionUser & { lastUsedAt: number })[]>`
    select users.id as user_id, email, name, last_used_at, (
      select coalesce(jsonb_agg(
        jsonb_build_object('accountId', account_id, 'accountName', accounts.name, 'role', role) order by accounts.name, account_id
      ), '[]') from memberships join accounts on accounts.id = account_id where memberships.user_id = users.id
    ) as memberships
    from user_sessions join users on users.id = user_sessions.user_id
    where token_hash = ${hashOfToken(token)}
      and last_used_at > ${now - sessionLimits.idle} and user_sessions.created_at > ${now - sessionLimits.absolute}`
  if (!row) return null
  const { lastUsedAt, ...user } = row
  if (lastUsedAt <= now - touchInterval) touch(sql, token, now)
  return user
}

export async function endSession(sql: Sql, token: string): Promise<void> {
  if (isToken(token)) await sql`delete from user_sessions where token_hash = ${hashOfToken(token)}`
}

/** Those that are over. Returns how many. */
export async function forgetSessions(sql: Sql, now: number, limit: number): Promise<number> {
  const forgotten = await sql`
    delete from user_sessions where token_hash in (
      select token_hash from user_sessions
      where last_used_at <= ${now - sessionLimits.idle} or created_at <= ${now - sessionLimits.absolute}
      limit ${limit} for update skip locked)`
  return forgotten.count
}

/** Nobody waits for it; a row that another request is writing right now is left to that one. */
function touch(sql: Sql, token: string, now: number): void {
  const touched = sql`
    update user_sessions set last_used_at = ${now} where token_hash = (
      select token_hash from user_sessions where token_hash = ${hashOfToken(token)} and last_used_at < ${now}
      for update skip locked)`
  touched.catch(() => {
    // The next request of this session tries again.
  })
}
