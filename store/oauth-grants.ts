/**
 * Owns what people have allowed MCP clients, and what a bearer token grants at this moment. Whoever deletes a grant ends its codes and tokens
 * with it. docs/contract/mcp.md "Authorization".
 */
import { hash } from 'node:crypto'
import type { AccountId, UserId, WorkerId } from '../model/ids.ts'
import { isForWorker, mcpScopesIn, type FindMcpAccess, type McpAccess, type McpScope } from '../model/mcp-access.ts'
import type { OAuthGrantFacts } from '../model/oauth-grant.ts'
import { createOneQuery } from './one-query.ts'
import type { Payload } from './oauth-payloads.ts'
import type { Sql } from './sql.ts'
import { isToken } from './token.ts'

export type NewGrant = {
  readonly id: string
  readonly userId: UserId
  readonly accountId: AccountId
  readonly workerId: WorkerId | null
  readonly clientId: string
  readonly clientName: string
  readonly redirectHost: string
  readonly scopes: readonly McpScope[]
  readonly now: number
}

/** Ms that an approved grant has until its first token is there. */
const firstTokenWithin = 600_000

/** Not complete until the authorization server has saved its payload. The client counts as used. */
export async function beginGrant(sql: Sql, given: NewGrant): Promise<void> {
  const { id, userId, accountId, workerId, clientId, clientName, redirectHost, scopes, now } = given
  await sql.begin(async (tx) => {
    await tx`
      insert into oauth_grants (id, user_id, account_id, worker_id, client_id, client_name, redirect_host, scopes, created_at, expires_at)
      values (${id}, ${userId}, ${accountId}, ${workerId}, ${clientId}, ${clientName}, ${redirectHost}, ${[...scopes]}, ${now},
        ${now + firstTokenWithin})`
    await tx`update oauth_clients set used_at = ${now} where id = ${clientId}`
  })
}

/** False: there is no such grant. */
export async function saveGrantPayload(sql: Sql, id: string, payload: Payload): Promise<boolean> {
  const { count } = await sql`update oauth_grants set payload = ${sql.json(payload)} where id = ${id}`
  return count > 0
}

export async function findGrantPayload(sql: Sql, id: string, now: number): Promise<Payload | null> {
  const [row] = await sql<{ payload: Payload | null }[]>`
    select payload from oauth_grants where id = ${id} and expires_at > ${now}`
  return row?.payload ?? null
}

export type GrantOwner = { readonly userId: UserId; readonly accountId: AccountId; readonly clientId: string }

/** Null: it was gone already. */
export async function removeGrant(sql: Sql, id: string): Promise<GrantOwner | null> {
  const [row] = await sql<GrantOwner[]>`
    delete from oauth_grants where id = ${id} returning user_id, account_id, client_id`
  return row ?? null
}

/** Of the user's own. Null: there is no such. */
export async function removeGrantOf(sql: Sql, userId: UserId, id: string): Promise<GrantOwner | null> {
  const [row] = await sql<GrantOwner[]>`
    delete from oauth_grants where id = ${id} and user_id = ${userId} returning user_id, account_id, client_id`
  return row ?? null
}

/** Of a user of the account. False: there is no such. */
export async function removeGrantOfAccount(sql: Sql, accountId: AccountId, id: string): Promise<boolean> {
  const { count } = await sql`delete from oauth_grants where id = ${id} and account_id = ${accountId}`
  return count > 0
}

/** May its user still do what was granted? Asked whenever new tokens are issued. */
export async function isGrantAlive(sql: Sql, id: string, userId: string, now: number): Promise<boolean> {
  const found = await sql`
    select from oauth_grants join memberships using (account_id, user_id)
    where oauth_grants.id = ${id} and user_id = ${userId} and expires_at > ${now} and role <> 'viewer'`
  return found.count > 0
}

export type GrantFacts = {
  readonly id: string
  readonly accountId: AccountId
  readonly accountName: string
  readonly workerName: string | null
  readonly clientId: string
  readonly clientName: string
  readonly redirectHost: string
  readonly scopes: readonly McpScope[]
  readonly createdAt: number
  readonly usedAt: number | null
}

/** The newest first, so many at most. */
export function listGrants(sql: Sql, userId: UserId, now: number, limit = 200): Promise<GrantFacts[]> {
  return sql<GrantFacts[]>`
    select oauth_grants.id, oauth_grants.account_id, accounts.name as account_name, workers.name as worker_name, client_id,
      client_name, redirect_host, scopes, oauth_grants.created_at, used_at
    from oauth_grants join accounts on accounts.id = oauth_grants.account_id
    left join workers on workers.id = worker_id and deleted_at is null
    where user_id = ${userId} and expires_at > ${now} and payload is not null
    order by oauth_grants.created_at desc, oauth_grants.id desc limit ${limit}`
}

/** Those of all users of the account: the newest first, so many at most. */
export function listGrantsOfAccount(
  sql: Sql,
  accountId: AccountId,
  now: number,
  limit = 200,
): Promise<OAuthGrantFacts[]> {
  return sql<OAuthGrantFacts[]>`
    select oauth_grants.id, user_id, users.email as user_email, users.name as user_name, client_id, client_name, redirect_host,
      scopes, workers.name as worker_name, oauth_grants.created_at, used_at
    from oauth_grants join users on users.id = user_id
    left join workers on workers.id = worker_id and deleted_at is null
    where oauth_grants.account_id = ${accountId} and expires_at > ${now} and payload is not null
    order by oauth_grants.created_at desc, oauth_grants.id desc limit ${limit}`
}

/** Deletes up to `limit` whose last token has expired. Several may do this at once. */
export async function forgetGrants(sql: Sql, now: number, limit: number): Promise<number> {
  const { count } = await sql`
    delete from oauth_grants where id in (
      select id from oauth_grants where expires_at <= ${now} order by expires_at limit ${limit} for update skip locked)`
  return count
}

type AccessRow = Omit<McpAccess, 'scopes'> & {
  readonly hash: string
  readonly audience: string | null
  readonly scope: string | null
  readonly usedAt: number | null
}

/** How exact the last use is: more would write a row for every request. */
const touchInterval = 60_000

/** One indexed query, which tokens that are asked about in one turn share. `isAudience`: is this one of the addresses of `/mcp`? */
export function createFindMcpAccess(deps: {
  readonly sql: Sql
  readonly now: () => number
  readonly isAudience: (resource: string) => boolean
}): FindMcpAccess {
  const { sql, now, isAudience } = deps
  const lookup = createOneQuery<string, AccessRow>({
    keyOf: (asked) => asked,
    query: (hashes) => rowsOf(sql, hashes, now()),
  })
  return async (token) => {
    if (!isToken(token)) return null
    const row = await lookup(hash('sha256', token, 'hex'))
    if (row === null || row.audience === null || !isAudience(row.audience)) return null
    const scopes = scopesOf(row)
    if (scopes.length === 0) return null
    noteUse(sql, row, now())
    const { accountId, userId, clientId, clientName, grantId, workerId, expiresAt } = row
    return { accountId, userId, clientId, clientName, grantId, scopes, workerId, expiresAt }
  }
}

/** What is for one worker goes with it. */
const scopesOf = ({ scope, workerId }: AccessRow): readonly McpScope[] =>
  mcpScopesIn(scope).filter((one) => !isForWorker(one) || workerId !== null)

/** The inner select hides how long the list is, so that the plan is made once and not again for every length. */
async function rowsOf(sql: Sql, hashes: readonly string[], now: number): Promise<ReadonlyMap<string, AccessRow>> {
  const rows = await sql<AccessRow[]>`
    select asked.hash, oauth_grants.account_id, oauth_grants.user_id, client_id, client_name, oauth_grants.id as grant_id,
      workers.id as worker_id, oauth_payloads.expires_at, oauth_payloads.payload->>'aud' as audience,
      oauth_payloads.payload->>'scope' as scope, oauth_grants.used_at
    from unnest((select ${hashes}::text[])) as asked (hash)
    join oauth_payloads on kind = 'AccessToken' and id_hash = decode(asked.hash, 'hex')
    join oauth_grants on oauth_grants.id = grant_id
    join memberships on memberships.account_id = oauth_grants.account_id and memberships.user_id = oauth_grants.user_id
    left join workers on workers.account_id = oauth_grants.account_id and workers.id = worker_id and deleted_at is null
    where oauth_payloads.expires_at > ${now} and role <> 'viewer'`
  return new Map(rows.map((row) => [row.hash, row]))
}

/** Nobody waits for it; a row that another request is writing right now is left to that one. */
function noteUse(sql: Sql, { grantId, usedAt }: AccessRow, now: number): void {
  if (usedAt !== null && usedAt > now - touchInterval) return
  const touched = sql`
    update oauth_grants set used_at = ${now} where id = (
      select id from oauth_grants where id = ${grantId} and (used_at is null or used_at <= ${now - touchInterval})
      for update skip locked)`
  touched.catch(() => {
    // The next request with this token tries again, and the time is good to a minute only.
  })
}
