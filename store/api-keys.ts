/**
 * Owns API keys: `vk_` and 32 random bytes in base62. Only the SHA-256 is stored, and a key is found by it, so that no comparison of
 * secrets can take a telling time. docs/contract/rest.md "Keys and accounts".
 */
import { hash, randomBytes } from 'node:crypto'
import { keyScopes, scopesIn, type ApiKeyFacts, type KeyScope } from '../model/api-key.ts'
import type { AccountId, ApiKeyId, NewId } from '../model/ids.ts'
import { createOneQuery, type Lookup } from './one-query.ts'
import { requireRoom } from './room.ts'
import { relaxedCommit } from './relaxed-commit.ts'
import type { Sql, Transaction } from './sql.ts'

export type ApiKeyRow = ApiKeyFacts & { readonly id: ApiKeyId; readonly accountId: AccountId }

export type NewApiKey = {
  readonly accountId: AccountId
  readonly name: string
  /** Absent: all. */
  readonly scopes?: readonly KeyScope[] | undefined
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
  { accountId, name, scopes = keyScopes, expiresAt = null, newId, now }: NewApiKey,
): Promise<{ readonly id: ApiKeyId; readonly key: string }> {
  await requireRoom(sql, accountId, 'api_keys')
  const id = newId<'api_key'>()
  const key = `vk_${toBase62(randomBytes(32))}`
  await sql`
    insert into api_keys (id, account_id, name, prefix, hash, scopes, created_at, expires_at)
    values (${id}, ${accountId}, ${name}, ${key.slice(0, prefixLength)}, ${hashOf(key)}, ${scopesIn(scopes)}::text[], ${now},
      ${expiresAt})`
  return { id, key }
}

export type KeyOwner = { readonly accountId: AccountId; readonly keyId: ApiKeyId; readonly scopes: readonly KeyScope[] }

/** The same for many requests: keys asked for in one turn share a query. Every request asks, so that a revoked key is good for none. */
export function createKeyLookup(sql: Sql, now: () => number): Lookup<string, KeyOwner> {
  const lookup = createOneQuery<string, KeyOwner>({
    keyOf: (hash) => hash,
    query: (hashes) => findOwners(sql, hashes, now()),
  })
  return async (key) => {
    const hash = hashOfKey(key)
    return hash === null ? null : lookup(hash)
  }
}

/** In hex; null for what cannot be a key. */
export const hashOfKey = (key: string): string | null => (keyPattern.test(key) ? hash('sha256', key, 'hex') : null)

export type UsedKey = KeyOwner & { readonly lastUsedAt: number | null }

/** Each key once, however often it was asked for. */
export function noteUse(sql: Sql, used: readonly UsedKey[], now: number): void {
  const stale = used.filter(({ lastUsedAt }) => lastUsedAt === null || lastUsedAt <= now - touchInterval)
  for (const keyId of new Set(stale.map((key) => key.keyId))) touch(sql, keyId, now)
}

/** By the hash of their key. The inner select hides how long the list is, so that the plan is made once and not again for every length. */
async function findOwners(sql: Sql, hashes: readonly string[], now: number): Promise<ReadonlyMap<string, KeyOwner>> {
  const rows = await sql<(UsedKey & { readonly hash: string })[]>`
    select asked.hash, id as key_id, account_id, scopes, last_used_at
    from unnest((select ${hashes}::text[])) as asked (hash) join api_keys on api_keys.hash = decode(asked.hash, 'hex')
    where revoked_at is null and (expires_at is null or expires_at > ${now})`
  noteUse(sql, rows, now)
  return new Map(rows.map(({ hash, accountId, keyId, scopes }) => [hash, { accountId, keyId, scopes }]))
}

export function listApiKeys(sql: Sql | Transaction, accountId: AccountId): Promise<ApiKeyRow[]> {
  return sql<ApiKeyRow[]>`
    select id, account_id, name, prefix, scopes, created_at, last_used_at, expires_at, revoked_at
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
    with ${relaxedCommit(sql)}
    update api_keys set last_used_at = ${now} from relaxed where id = (
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

export async function findApiKey(
  sql: Sql | Transaction,
  accountId: AccountId,
  keyId: ApiKeyId,
): Promise<ApiKeyRow | null> {
  const [row] = await sql<ApiKeyRow[]>`
    select id, account_id, name, prefix, scopes, created_at, last_used_at, expires_at, revoked_at
    from api_keys where account_id = ${accountId} and id = ${keyId}`
  return row ?? null
}
