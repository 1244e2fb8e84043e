/**
 * Owns what the authorization server keeps for a limited time: codes, tokens, requests under way. An identifier is stored as its SHA-256 and
 * found by it, and it does not stand in its own payload either: who reads the database holds nothing that works. docs/contract/mcp.md
 * "Authorization".
 */
import { hash } from 'node:crypto'
import type { Json } from '../model/json.ts'
import type { Sql } from './sql.ts'

export type PayloadKind = 'AccessToken' | 'AuthorizationCode' | 'Interaction' | 'RefreshToken' | 'ReplayDetection'

export type Payload = { readonly [name: string]: Json }

export type StoredPayload = { readonly payload: Payload; readonly consumedAt: number | null }

const maxPayloadBytes = 64 * 1024

const hashOf = (id: string): Buffer => hash('sha256', id, 'buffer')

/** What stands in a payload for its own identifier. Nobody who does not know the identifier can write it. */
const markOf = (id: string): string => `own:${hash('sha256', `own ${id}`, 'base64url')}`

const masked = (payload: Payload, id: string): Payload =>
  JSON.parse(JSON.stringify(payload).replaceAll(id, markOf(id))) as Payload

const unmasked = (payload: Payload, id: string): Payload =>
  JSON.parse(JSON.stringify(payload).replaceAll(markOf(id), id)) as Payload

export type NewPayload = {
  readonly kind: PayloadKind
  readonly id: string
  readonly payload: Payload
  /** Ms since the epoch. */
  readonly expiresAt: number
}

/** What belongs to no grant. Throws RangeError for more than 64 KiB. One of the same identifier is written anew. */
export async function savePayload(sql: Sql, { kind, id, payload, expiresAt }: NewPayload): Promise<void> {
  await sql`
    insert into oauth_payloads (kind, id_hash, payload, expires_at)
    values (${kind}, ${hashOf(id)}, ${sql.json(bounded(masked(payload, id)))}, ${expiresAt})
    on conflict (kind, id_hash) do update set payload = excluded.payload, expires_at = excluded.expires_at`
}

/** False: there is one of this identifier that has not expired. */
export async function savePayloadOnce(sql: Sql, given: NewPayload & { readonly now: number }): Promise<boolean> {
  const { kind, id, payload, expiresAt, now } = given
  const { count } = await sql`
    insert into oauth_payloads (kind, id_hash, payload, expires_at)
    values (${kind}, ${hashOf(id)}, ${sql.json(bounded(masked(payload, id)))}, ${expiresAt})
    on conflict (kind, id_hash) do update set expires_at = excluded.expires_at where oauth_payloads.expires_at <= ${now}`
  return count > 0
}

/** False: the grant is gone, and nothing was written. A grant lives as long as the last of its tokens. */
export async function savePayloadOfGrant(sql: Sql, given: NewPayload & { readonly grantId: string }): Promise<boolean> {
  const { kind, id, payload, expiresAt, grantId } = given
  const { count } = await sql`
    with held as (
      update oauth_grants set expires_at = greatest(expires_at, ${expiresAt}::timestamptz) where id = ${grantId} returning id)
    insert into oauth_payloads (kind, id_hash, payload, grant_id, expires_at)
    select ${kind}, ${hashOf(id)}, ${sql.json(bounded(masked(payload, id)))}, id, ${expiresAt}::timestamptz from held
    on conflict (kind, id_hash) do update set payload = excluded.payload, expires_at = excluded.expires_at`
  return count > 0
}

export async function findPayload(
  sql: Sql,
  { kind, id, now }: { kind: PayloadKind; id: string; now: number },
): Promise<StoredPayload | null> {
  const [row] = await sql<StoredPayload[]>`
    select payload, consumed_at from oauth_payloads
    where kind = ${kind} and id_hash = ${hashOf(id)} and expires_at > ${now}`
  return row ? { ...row, payload: unmasked(row.payload, id) } : null
}

/** False: it is gone, or was consumed before. Of two at once, one consumes. */
export async function consumePayload(
  sql: Sql,
  { kind, id, now }: { kind: PayloadKind; id: string; now: number },
): Promise<boolean> {
  const { count } = await sql`
    update oauth_payloads set consumed_at = ${now}
    where kind = ${kind} and id_hash = ${hashOf(id)} and consumed_at is null`
  return count > 0
}

export async function removePayload(sql: Sql, kind: PayloadKind, id: string): Promise<void> {
  await sql`delete from oauth_payloads where kind = ${kind} and id_hash = ${hashOf(id)}`
}

/** Deletes up to `limit` that have expired. Several may do this at once. */
export async function forgetPayloads(sql: Sql, now: number, limit: number): Promise<number> {
  const { count } = await sql`
    delete from oauth_payloads where (kind, id_hash) in (
      select kind, id_hash from oauth_payloads where expires_at <= ${now} order by expires_at limit ${limit}
      for update skip locked)`
  return count
}

function bounded(payload: Payload): Payload {
  if (JSON.stringify(payload).length > maxPayloadBytes) throw new RangeError('the payload is too large to be kept')
  return payload
}
