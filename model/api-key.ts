/** Owns what API keys may do, and how answers show them: never the key itself, but once. docs/contract/rest.md "Keys and accounts". */
import { z } from 'zod'
import { toIso } from './clock.ts'
import { Instant, msOf } from './instant.ts'
import { Problem } from './problem.ts'
import { withoutNulls } from './without-nulls.ts'

/** A set: none implies another. */
export const keyScopes = ['read', 'calls', 'manage'] as const
export type KeyScope = (typeof keyScopes)[number]

const Scopes = z.array(z.enum(keyScopes)).min(1).max(keyScopes.length)

/** The same scopes once each, in one order. */
export const scopesIn = (given: readonly KeyScope[]): KeyScope[] => keyScopes.filter((scope) => given.includes(scope))

/** Those of `wanted` that `held` has not. */
export const missingScopes = (held: readonly KeyScope[], wanted: readonly KeyScope[]): KeyScope[] =>
  wanted.filter((scope) => !held.includes(scope))

export const ApiKeyRequest = z.strictObject({
  name: z.string().min(1).max(200),
  scopes: Scopes.optional(),
  expiresAt: Instant.optional(),
})
export type ApiKeyRequest = z.infer<typeof ApiKeyRequest>

/** Ms since the epoch; null: never. Throws Problem VALIDATION_FAILED for a key that would never work. */
export function expiryOf(expiresAt: string | undefined, now: number): number | null {
  if (expiresAt === undefined) return null
  const ms = msOf(expiresAt)
  if (ms > now) return ms
  throw new Problem('VALIDATION_FAILED', 'A key must expire in the future.', [
    { path: 'expiresAt', message: 'must be a time in the future' },
  ])
}

export const ApiKey = z.object({
  id: z.string(),
  name: z.string(),
  /** The first characters, to recognise it by. */
  prefix: z.string(),
  scopes: z.array(z.enum(keyScopes)),
  /** Plaintext, only in the answer to the creation. */
  key: z.string().optional(),
  createdAt: z.string(),
  lastUsedAt: z.string().optional(),
  expiresAt: z.string().optional(),
  revokedAt: z.string().optional(),
})
export type ApiKey = z.infer<typeof ApiKey>

export type ApiKeyFacts = {
  readonly id: string
  readonly name: string
  readonly prefix: string
  readonly scopes: readonly KeyScope[]
  readonly createdAt: number
  readonly lastUsedAt: number | null
  readonly expiresAt: number | null
  readonly revokedAt: number | null
}

export function toApiKey({ id, name, prefix, scopes, ...stamps }: ApiKeyFacts): ApiKey {
  const { createdAt, lastUsedAt, expiresAt, revokedAt } = stamps
  const iso = (ms: number | null): string | null => (ms === null ? null : toIso(ms))
  const times = withoutNulls({ lastUsedAt: iso(lastUsedAt), expiresAt: iso(expiresAt), revokedAt: iso(revokedAt) })
  return { id, name, prefix, scopes: scopesIn(scopes), createdAt: toIso(createdAt), ...times }
}
