/** Owns a browser's way into its call: a token that works once, and a resume token that is replaced at every use. Only hashes are stored. */
import type { AccountId, CallId } from '../model/ids.ts'
import type { Sql, Transaction } from './sql.ts'

export type WebSession = {
  readonly id: string
  readonly accountId: AccountId
  readonly callId: CallId
  /** Null: any. */
  readonly allowedOrigins: string[] | null
}

export async function insertWebSession(
  tx: Transaction,
  session: WebSession & { tokenHash: Buffer; tokenExpiresAt: number },
): Promise<void> {
  await tx`
    insert into web_sessions (id, account_id, call_id, token_hash, token_expires_at, allowed_origins)
    values (${session.id}, ${session.accountId}, ${session.callId}, ${session.tokenHash}, ${session.tokenExpiresAt},
      ${session.allowedOrigins})`
}

/**
 * The session of an unused, unexpired token whose call is not over: one that was canceled has no client any more. Looking does not take it: a wrong
 * origin must not burn somebody else's token.
 */
export async function findByToken(sql: Sql, tokenHash: Buffer, now: number): Promise<WebSession | null> {
  const [session] = await sql<WebSession[]>`
    select web_sessions.id, web_sessions.account_id, call_id, allowed_origins
    from web_sessions join calls on calls.id = call_id
    where token_hash = ${tokenHash} and token_used_at is null and token_expires_at > ${now} and calls.outcome is null`
  return session ?? null
}

/** Used, expired or good, of whichever kind; of resume tokens the last two. */
export async function isKnownToken(sql: Sql, hash: Buffer): Promise<boolean> {
  const [row] = await sql`
    select from web_sessions where token_hash = ${hash} or resume_hash = ${hash} or previous_resume_hash = ${hash} limit 1`
  return row !== undefined
}

/** True for exactly one of all who try. */
export async function takeToken(sql: Sql, tokenHash: Buffer, resumeHash: Buffer, now: number): Promise<boolean> {
  const taken = await sql`
    update web_sessions set token_used_at = ${now}, resume_hash = ${resumeHash}
    where token_hash = ${tokenHash} and token_used_at is null and token_expires_at > ${now}`
  return taken.count === 1
}

/** Takes the token of a call away from a client that did not come. */
export async function expireToken(sql: Sql, callId: CallId, now: number): Promise<void> {
  await sql`update web_sessions set token_used_at = ${now} where call_id = ${callId} and token_used_at is null`
}

/** The session of a resume token whose call still runs. */
export async function findByResumeToken(sql: Sql, resumeHash: Buffer): Promise<WebSession | null> {
  const [session] = await sql<WebSession[]>`
    select web_sessions.id, web_sessions.account_id, call_id, allowed_origins
    from web_sessions join calls on calls.id = call_id where (resume_hash = ${resumeHash} or previous_resume_hash = ${resumeHash}) and calls.outcome is null`
  return session ?? null
}

/** The session of a resume token whose call has ended since then, and how. */
export async function findEndedByResumeToken(
  sql: Sql,
  resumeHash: Buffer,
  since: number,
): Promise<(WebSession & { readonly outcome: string }) | null> {
  const [session] = await sql<(WebSession & { readonly outcome: string })[]>`
    select web_sessions.id, web_sessions.account_id, call_id, allowed_origins, calls.outcome
    from web_sessions join calls on calls.id = call_id
    where (resume_hash = ${resumeHash} or previous_resume_hash = ${resumeHash}) and calls.outcome is not null and calls.ended_at >= ${since}`
  return session ?? null
}

/** The presented token stays good beside `next` until that one is presented: the client may lose its socket before it reads it. */
export async function replaceResumeToken(sql: Sql, resumeHash: Buffer, next: Buffer): Promise<boolean> {
  const taken = await sql`
    update web_sessions set resume_hash = ${next}, previous_resume_hash = ${resumeHash}
    where resume_hash = ${resumeHash} or previous_resume_hash = ${resumeHash}`
  return taken.count === 1
}
