/**
 * Owns API keys: `vk_` and 32 random bytes in base62. Only the SHA-256 is stored, and a key is found by it, so that no comparison of
 * secrets can take a telling time. decisions.md, Identity, accounts, keys.
 */
import { hash, randomBytes } from 'node:crypto'
import type { AccountId, Id, NewId } from '../model/ids.ts'
import type { Sql, Transaction } from './sql.ts'

export type ApiKeyId = Id<'api_key'>

export type ApiKeyRow = {
  readonly id: ApiKeyId
  readonly accountId: AccountId
  readonly name: string
  readonly prefix: string
  readonly createdAt: number
  readonly lastUsedAt: number | null
  readonly expiresAt: number | null
  readonly revokedAt: number | null
}

export type NewApiKey = {
  readonly accountId: AccountId
  readonly name: string
  readonly expiresAt?: number | null | undefined
  readonly newId: NewId
  readonly now: number
}

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** 62⁴³ is the first power above 2²⁵⁶. */
const keyDigits = 43
const keyPattern = new RegExp(`^vk_[0-9A-Za-z]{${keyDigits}}$`)
const prefixLength = 11
/** How exact `lastUsedAt` is: more would write a row for every request. */
const touchInterval = 60_000

/** The only moment the key itself is seen. */
export async function createApiKey(
  sql: Sql | Transaction,
  { accountId, name, expiresAt = null, newId, now }: NewApiKey,
): Promise<{ readonly id: ApiKeyId; readonly key: string }> {
  const id = newId<'api_key'>()
  const key = `vk_${toBase62(randomBytes(32))}`
  await sql`
    insert into api_keys (id, account_id, name, prefix, hash, created_at, expires_at)
    values (${id}, ${accountId}, ${name}, ${key.slice(0, prefixLength)}, ${hashOf(key)}, ${now}, ${expiresAt})`
  return { id, key }
}

/** Null for a key that is none, is unknown, expired or revoked. */
export async function findAccountByKey(
  sql: Sql,
  key: string,
  now: number,
): Promise<{ readonly accountId: AccountId; readonly keyId: ApiKeyId } | null> {
  if (!keyPattern.test(key)) return null
  const [row] = await sql<{ keyId: ApiKeyId; accountId: AccountId; lastUsedAt: number | null }[]>`
    select id as key_id, account_id, last_used_at from api_keys
    where hash = ${hashOf(key)} and revoked_at is null and (expires_at is null or expires_at > ${now})`
  if (!row) return null
  if (row.lastUsedAt === null || row.lastUsedAt <= now - touchInterval) touch(sql, row.keyId, now)
  return { accountId: row.accountId, keyId: row.keyId }
}

export function listApiKeys(sql: Sql | Transaction, accountId: AccountId): Promise<ApiKeyRow[]> {
  return sql<ApiKeyRow[]>`
    select id, account_id, name, prefix, created_at, last_used_at, expires_at, revoked_at
    from api_keys where account_id = ${accountId} order by created_at, id`
}

/** False when the account has no such key. A key stays revoked since the first time. */
export async function revokeApiKey(
  sql: Sql | Transaction,
  accountId: AccountId,
  keyId: ApiKeyId,
  now: number,
): Promise<boolean> {
  const revoked = await sql`
    update api_keys set revoked_at = coalesce(revoked_at, ${now}::timestamptz)
    where account_id = ${accountId} and id = ${keyId}`
  return revoked.count > 0
}

/** Nobody waits for it; a row that another request is writing right now is left to that one. */
function touch(sql: Sql, keyId: ApiKeyId, now: number): void {
  const touched = sql`
    update api_keys set last_used_at = ${now} where id = (
      select id from api_keys
      where id = ${keyId} and (last_used_at is null or last_used_at <= ${now - touchInterval})
      for update skip locked)`
  touched.catch(() => {
    // The next request with this key tries again, and the time is good to a minute only.
  })
}

const hashOf = (key: string): Buffer => hash('sha256', key, 'buffer')

function toBase62(bytes: Uint8Array): string {
  let rest = BigInt(`0x${Buffer.from(bytes).toString('hex')}`)
  let text = ''
  for (let digit = 0; digit < keyDigits; digit++) {
    text = alphabet.charAt(Number(rest % 62n)) + text
    rest /= 62n
  }
  return text
}
