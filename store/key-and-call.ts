/** Owns the lookup of the most frequent request of all: whose key it is, and one call of that account, in one query. */
import type { CallId } from '../model/ids.ts'
import { hashOfKey, noteUse, type KeyOwner, type UsedKey } from './api-keys.ts'
import { answerColumns } from './call-rows.ts'
import { usedColumns, type UsedCall } from './call-usage.ts'
import { createOneQuery } from './one-query.ts'
import type { Sql } from './sql.ts'

/** `call` is null when the key's own account has no such call. */
export type KeyAndCall = { readonly owner: KeyOwner; readonly call: UsedCall | null }

type Question = { readonly hash: string; readonly callId: CallId }
type Row = UsedKey & UsedCall & { readonly hash: string; readonly askedId: CallId }

/** Null for a key that is none, is unknown, expired or revoked. Requests of one turn share the query. */
export function createKeyAndCallLookup(sql: Sql, now: () => number) {
  const lookup = createOneQuery<Question, KeyAndCall>({ keyOf, query: (questions) => findAll(sql, questions, now()) })
  return async (key: string, callId: CallId): Promise<KeyAndCall | null> => {
    const hash = hashOfKey(key)
    return hash === null ? null : lookup({ hash, callId })
  }
}

const keyOf = ({ hash, callId }: Question): string => `${hash} ${callId}`

async function findAll(
  sql: Sql,
  questions: readonly Question[],
  now: number,
): Promise<ReadonlyMap<string, KeyAndCall>> {
  const hashes = questions.map(({ hash }) => hash)
  const callIds = questions.map(({ callId }) => callId)
  // The inner selects hide how long the lists are, so that the plan is made once and not again for every length.
  const rows = await sql<Row[]>`
    select asked.hash, asked.call_id as asked_id, ${answerColumns(sql)}, ${usedColumns(sql)},
      -- After the account of the call, which is null without one.
      api_keys.account_id, api_keys.id as key_id, scopes, last_used_at
    from unnest((select ${hashes}::text[]), (select ${callIds}::text[])) as asked (hash, call_id)
      join api_keys on api_keys.hash = decode(asked.hash, 'hex')
      left join calls on calls.account_id = api_keys.account_id and calls.id = asked.call_id
    where revoked_at is null and (expires_at is null or expires_at > ${now})`
  noteUse(sql, rows, now)
  return new Map(rows.map((row) => [keyOf({ hash: row.hash, callId: row.askedId }), toFound(row)]))
}

/** Without a call its columns are null, against their types. */
function toFound(row: Row): KeyAndCall {
  const { keyId, accountId, scopes } = row
  return { owner: { keyId, accountId, scopes }, call: (row.id as CallId | null) === null ? null : row }
}
