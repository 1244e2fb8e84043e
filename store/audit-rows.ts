/** Owns the rows of the audit log: written once, ended once, read newest first, forgotten by age alone. */
import type { AuditLogQuery, AuditRow } from '../model/audit.ts'
import { msOf } from '../model/instant.ts'
import type { AccountId } from '../model/ids.ts'
import { cursorOf } from '../model/paging.ts'
import type { Sql } from './sql.ts'

/**
 * New ones are inserted, begun ones get their end; what has an end keeps it, so that a row may be written again. Entries of an account that is gone
 * are let go.
 */
export async function writeAuditRows(sql: Sql, rows: readonly AuditRow[]): Promise<void> {
  await sql`
    insert into audit_entries (id, account_id, at, actor_kind, key_id, client_id, user_id, action, arguments, result, error_code, call_ids,
      request_id)
    select id, "accountId", to_timestamp(at / 1000.0), "actorKind", "keyId", "clientId", "userId", action, arguments, result, "errorCode",
      array(select jsonb_array_elements_text("callIds")), "requestId"
    from jsonb_to_recordset(${sql.json(rows)}) as given (id text, "accountId" text, at bigint, "actorKind" text, "keyId" text, "clientId" text,
      "userId" text, action text, arguments jsonb, result text, "errorCode" text, "callIds" jsonb, "requestId" text)
    where "accountId" is null or exists (select from accounts where accounts.id = "accountId")
    on conflict (id) do update set arguments = excluded.arguments, result = excluded.result, error_code = excluded.error_code,
      call_ids = excluded.call_ids
    where audit_entries.result is null and excluded.result is not null`
}

/** Of one account, or of none; undefined: of all, for the operator. One more than `limit` when there is more. */
export function listAuditRows(
  sql: Sql,
  accountId: AccountId | null | undefined,
  query: AuditLogQuery,
): Promise<AuditRow[]> {
  const { actor, action, callId, from, to, limit } = query
  const cursor = cursorOf<'audit_entry'>(query)
  const none = sql``
  return sql<AuditRow[]>`
    select id, account_id, at, actor_kind, key_id, client_id, user_id, action, arguments, result, error_code, call_ids, request_id
    from audit_entries
    where ${whose(sql, accountId)}
      ${cursor ? sql`and id < ${cursor}` : none}
      ${actor === undefined ? none : sql`and ${actor} in (actor_kind, key_id, client_id, user_id)`}
      ${action === undefined ? none : sql`and action = ${action}`}
      ${callId === undefined ? none : sql`and call_ids <> '{}' and call_ids @> array[${callId.toLowerCase()}]::text[]`}
      ${from === undefined ? none : sql`and at >= ${msOf(from)}`}
      ${to === undefined ? none : sql`and at < ${msOf(to)}`}
    order by id desc limit ${limit + 1}`
}

function whose(sql: Sql, accountId: AccountId | null | undefined) {
  if (accountId === undefined) return sql`true`
  return accountId === null ? sql`account_id is null` : sql`account_id = ${accountId}`
}

/** Deletes up to `limit` of before `before`. Several may do this at once. */
export async function forgetAuditRows(
  sql: Sql,
  {
    accountId,
    before,
    limit,
  }: { readonly accountId: AccountId | null; readonly before: number; readonly limit: number },
): Promise<number> {
  const { count } = await sql`
    delete from audit_entries where id in (
      select id from audit_entries where ${whose(sql, accountId)} and at < ${before}
      order by at limit ${limit} for update skip locked)`
  return count
}
