/** Owns the Idempotency-Key: the same key with the same request gives the same answer, once done. docs/contract/rest.md "Idempotency". */
import { z } from 'zod'

export const idempotencyLifetime = 24 * 3_600_000

export const IdempotencyKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, 'must be 1 to 255 printable ASCII characters without a space')

/** What makes a request the one it was. `fingerprint` is SHA-256 over operation and body. */
export type Once = { readonly key: string; readonly fingerprint: Buffer }
