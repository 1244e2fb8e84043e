/** Owns links that sign a user in once: a random token of which only the SHA-256 is stored, good for a quarter of an hour. docs/console.md. */
import type { UserId } from '../model/ids.ts'
import type { Sql } from './sql.ts'
import { createToken, hashOfToken, isToken } from './token.ts'

/** Ms. */
const goodFor = 15 * 60_000

/** The only moment the token is seen. A later one takes the place of the former one of the user. */
export async function createSignInLink(sql: Sql, userId: UserId, now: number): Promise<string> {
  const token = createToken()
  await sql`
    with former as (delete from sign_in_links where user_id = ${userId} or expires_at <= ${now})
    insert into sign_in_links (token_hash, user_id, expires_at) values (${hashOfToken(token)}, ${userId}, ${now + goodFor})`
  return token
}

/** Uses it up. Null: there is none, or it was used, or is too old. */
export async function useSignInLink(
  sql: Sql,
  token: string,
  now: number,
): Promise<{ readonly userId: UserId; readonly passwordHash: string } | null> {
  if (!isToken(token)) return null
  const [row] = await sql<{ userId: UserId; passwordHash: string }[]>`
    with used as (delete from sign_in_links where token_hash = ${hashOfToken(token)} returning user_id, expires_at)
    select users.id as user_id, password_hash from used join users on users.id = user_id where expires_at > ${now}`
  return row ?? null
}
